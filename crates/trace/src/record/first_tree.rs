//! What lay in the watched folders before the program began, and how much of it a replay needs.

use super::class::class_of_file;
use super::scope::Scope;
use crate::{Entry, EntryKind};
use anyhow::{Context, Result, ensure};
use foldhash::{HashMap, HashSet};
use pickfs_system::sys::file;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More is seldom meant, and takes minutes to look at.
const MOST: usize = 2_000_000;

/// What was found before anything ran.
pub(crate) struct FirstTree {
    found: Vec<FirstEntry>,
}

struct FirstEntry {
    path: PathBuf,
    what: Before,
    bytes: u64,
    /// Those of `bytes` that are not in memory.
    uncached: u64,
    /// Device and inode, of files with several names.
    inode: Option<(u64, u64)>,
}

enum Before {
    Folder,
    File,
    Link(PathBuf),
    Other,
}

/// What the program did to what was there, by the numbers of paths.
#[derive(Default)]
pub struct TouchedPaths {
    pub opened: HashSet<u32>,
    pub listed: HashSet<u32>,
    /// Folders that got another name: what is in them is named by other paths later.
    pub moved: HashSet<u32>,
}

impl FirstTree {
    pub(crate) fn look(scope: &Scope) -> Result<FirstTree> {
        let mut found = Vec::new();
        for (root, _) in scope.roots() {
            for entry in walkdir::WalkDir::new(&root).same_file_system(true).sort_by_file_name() {
                // What cannot be read is as if it were not there.
                let Ok(entry) = entry else { continue };
                let Ok(metadata) = entry.metadata() else { continue };
                let kind = metadata.file_type();
                let what = match () {
                    () if kind.is_dir() => Before::Folder,
                    () if kind.is_file() => Before::File,
                    () if kind.is_symlink() => Before::Link(std::fs::read_link(entry.path()).unwrap_or_default()),
                    () => Before::Other,
                };
                let inode = (kind.is_file() && metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino()));
                let uncached = if kind.is_file() { file::uncached_bytes(entry.path()).unwrap_or_default() } else { 0 };
                found.push(FirstEntry { path: entry.into_path(), what, bytes: metadata.len(), uncached, inode });
                ensure!(
                    found.len() <= MOST,
                    "{} holds more than {MOST} files; name a smaller folder with --under",
                    root.display()
                );
            }
        }
        Ok(FirstTree { found })
    }

    /// What a replay needs: what the program named, what it saw in listings, and what lay in
    /// folders that it renamed; and bytes of its files that were not in memory.
    pub(crate) fn needed(&self, scope: &mut Scope, touched: &TouchedPaths, named: usize) -> Result<(Vec<Entry>, u64)> {
        let mut needed = Needed { scope, touched, named, moved: HashSet::default(), names: HashMap::default() };
        let (mut entries, mut uncached) = (Vec::new(), 0);
        for found in &self.found {
            let Some(entry) = needed.entry(found)? else { continue };
            uncached += if matches!(entry.what, EntryKind::File { .. }) { found.uncached } else { 0 };
            entries.push(entry);
        }
        Ok((entries, uncached))
    }
}

struct Needed<'a> {
    scope: &'a mut Scope,
    touched: &'a TouchedPaths,
    /// Paths up to this number are those of the program.
    named: usize,
    /// What lies in moved folders.
    moved: HashSet<PathBuf>,
    /// The first name of each file with several.
    names: HashMap<(u64, u64), u32>,
}

impl Needed<'_> {
    fn entry(&mut self, found: &FirstEntry) -> Result<Option<Entry>> {
        let folder = found.path.parent().map(PathBuf::from).unwrap_or_default();
        let (above, known) = (self.known(&folder), self.known(&found.path));
        let is_root = self.scope.roots().any(|(root, _)| root == found.path);
        let in_moved = self.moved.contains(&folder) || above.is_some_and(|above| self.touched.moved.contains(&above));
        let is_listed = above.is_some_and(|above| self.touched.listed.contains(&above));
        if !(known.is_some() || is_root || in_moved || is_listed) {
            return Ok(None);
        }
        let path = self.number(&found.path)?;
        if in_moved {
            self.moved.insert(found.path.clone());
        }
        let is_used = in_moved || found.inode.is_some() || self.touched.opened.contains(&path);
        Ok(Some(Entry { path, what: self.what(found, path, is_used)? }))
    }

    fn what(&mut self, found: &FirstEntry, path: u32, is_used: bool) -> Result<EntryKind> {
        let first = found.inode.map(|inode| *self.names.entry(inode).or_insert(path));
        Ok(match &found.what {
            Before::Folder => EntryKind::Directory,
            Before::Link(to) => EntryKind::Link { to: self.leads_to(found, to, is_used) },
            Before::Other => EntryKind::Node,
            Before::File if first.is_some_and(|first| first != path) => {
                EntryKind::HardLink { to: first.unwrap_or(path) }
            }
            Before::File if is_used => {
                EntryKind::File { bytes: found.bytes, class: class_of_file(&found.path, found.bytes) }
            }
            Before::File => EntryKind::Hollow { bytes: found.bytes },
        })
    }

    /// A file elsewhere that was opened through the link gets a name that stands for it: without,
    /// the replay's link would lead nowhere.
    fn leads_to(&mut self, link: &FirstEntry, to: &Path, is_opened: bool) -> Option<u32> {
        let folder = link.path.parent()?.as_os_str().as_bytes();
        let end = if is_opened { link.path.canonicalize().ok() } else { None };
        match end.filter(|end| !self.scope.covers(end.as_os_str().as_bytes())) {
            Some(end) => self.scope.stand_in(end.as_os_str().as_bytes(), true),
            None => self.scope.resolve(folder, to.as_os_str().as_bytes()),
        }
    }

    fn known(&mut self, path: &Path) -> Option<u32> {
        self.scope.known(path.as_os_str().as_bytes()).filter(|path| *path as usize <= self.named)
    }

    fn number(&mut self, path: &Path) -> Result<u32> {
        self.scope.resolve(b"", path.as_os_str().as_bytes()).with_context(|| format!("{} is too deep", path.display()))
    }
}
