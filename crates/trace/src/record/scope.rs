//! Which files are watched: those below some folders. Turns paths as a program writes them into
//! numbers.

use super::class::class_of_file;
use crate::{Entry, EntryKind, Numbering};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The folders that are watched.
pub struct Scope {
    roots: Vec<Root>,
    pub numbering: Numbering,
    /// Files from elsewhere that got a name here: they are in the first tree, under names that
    /// stand for theirs.
    pub brought: Vec<Entry>,
    /// The folders are those of another machine: files here say nothing of them.
    is_of_log: bool,
}

struct Root {
    /// Ways to write it: as the user did, and without links.
    spellings: Vec<Vec<u8>>,
    path: u32,
}

impl Scope {
    /// Folders must be absolute.
    pub(crate) fn new(folders: &[PathBuf]) -> std::io::Result<Scope> {
        let (mut numbering, mut roots) = (Numbering::default(), Vec::new());
        for (number, folder) in (0..).zip(folders) {
            let mut spellings: Vec<Vec<u8>> = [folder.clone(), folder.canonicalize()?]
                .map(|path| {
                    path.as_os_str().as_bytes().strip_suffix(b"/").unwrap_or(path.as_os_str().as_bytes()).to_vec()
                })
                .into();
            spellings.dedup();
            roots.push(Root { spellings, path: numbering.root(number) });
        }
        Ok(Scope { roots, numbering, brought: Vec::new(), is_of_log: false })
    }

    /// Folders that a log names: what they are here does not matter.
    pub fn of_log(folders: &[Vec<u8>]) -> Scope {
        let mut numbering = Numbering::default();
        let root = |(number, folder): (u32, &Vec<u8>)| {
            let spelling = folder.strip_suffix(b"/").unwrap_or(folder).to_vec();
            Root { spellings: vec![spelling], path: numbering.root(number) }
        };
        let roots = (0..).zip(folders).map(root).collect();
        Scope { roots, numbering, brought: Vec::new(), is_of_log: true }
    }

    /// In full, without `..`.
    pub(crate) fn absolute(&self, base: &[u8], path: &[u8]) -> Vec<u8> {
        if self.is_of_log { absolute_by_text(base, path) } else { absolute(base, path) }
    }

    /// The absolute path lies in a watched folder.
    pub(crate) fn covers(&self, full: &[u8]) -> bool {
        self.below(full).is_some()
    }

    /// The folders without links, and the numbers of their paths.
    pub(crate) fn roots(&self) -> impl Iterator<Item = (PathBuf, u32)> + '_ {
        let last = |root: &Root| root.spellings.last().cloned().unwrap_or_default();
        self.roots.iter().map(move |root| {
            let path = std::ffi::OsString::from_vec(last(root));
            (if path.is_empty() { PathBuf::from("/") } else { PathBuf::from(path) }, root.path)
        })
    }

    /// The number of a path, if it is watched; `base` is the folder that a relative one starts
    /// from.
    pub(crate) fn resolve(&mut self, base: &[u8], path: &[u8]) -> Option<u32> {
        let full = self.absolute(base, path);
        let (root, rest) = self.below(&full)?;
        let mut at = root;
        for part in parts(&full[rest..]) {
            at = self.numbering.below(at, part)?;
        }
        Some(at)
    }

    /// The number of a name in the first watched folder that stands for a path elsewhere. Where
    /// that `is_there` now, and was not brought there from here, it is in the first tree.
    pub(crate) fn stand_in(&mut self, full: &[u8], is_there: bool) -> Option<u32> {
        let root = self.roots.first()?.path;
        // Longer and of other bytes than any name in a folder.
        let name = [b"/elsewhere/", full].concat();
        if let Some(path) = self.numbering.known_below(root, &name) {
            return Some(path);
        }
        let file = std::path::Path::new(OsStr::from_bytes(full));
        // What a log found is in its first tree anyway.
        let bytes = match (is_there && !self.is_of_log, file.symlink_metadata()) {
            (false, _) => None,
            (true, Ok(found)) if found.is_file() => Some(found.len()),
            (true, _) => return None,
        };
        let path = self.numbering.stand_in(root, &name)?;
        let what = |bytes| EntryKind::File { bytes, class: class_of_file(file, bytes) };
        self.brought.extend(bytes.map(|bytes| Entry { path, what: what(bytes) }));
        Some(path)
    }

    /// The number of an absolute path that has one already.
    pub(crate) fn known(&self, full: &[u8]) -> Option<u32> {
        let (root, rest) = self.below(full)?;
        parts(&full[rest..]).try_fold(root, |at, part| self.numbering.known_below(at, part))
    }

    /// The root's path, and where in the text the rest begins.
    fn below(&self, full: &[u8]) -> Option<(u32, usize)> {
        self.roots.iter().find_map(|root| {
            root.spellings.iter().find_map(|spelling| {
                let inside = full.starts_with(spelling) && matches!(full.get(spelling.len()), None | Some(b'/'));
                inside.then_some((root.path, spelling.len()))
            })
        })
    }
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

/// With the folder before it, and without `..`: what that means depends on links, so the kernel is
/// asked while the program stands still.
fn absolute(base: &[u8], path: &[u8]) -> Vec<u8> {
    let full = joined(base, path);
    if !full.split(|byte| *byte == b'/').any(|part| part == b"..") {
        return full;
    }
    let all: Vec<&[u8]> = parts(&full).collect();
    let last = all.iter().rposition(|part| *part == b"..").map_or(0, |last| last + 1);
    let chain = |parts: &[&[u8]]| parts.iter().flat_map(|part| [b"/", *part].concat()).collect::<Vec<u8>>();
    let upper = chain(&all[..last]);
    let upper = match Path::new(OsStr::from_bytes(&upper)).canonicalize() {
        Ok(path) => path.into_os_string().into_vec(),
        Err(_) => by_text(&all[..last]),
    };
    let upper = if upper == b"/" { Vec::new() } else { upper };
    [upper, chain(&all[last..])].concat()
}

fn joined(base: &[u8], path: &[u8]) -> Vec<u8> {
    if path.first() == Some(&b'/') { path.to_vec() } else { [base, path].join(&b'/') }
}

/// As if no folder on the way were a link.
pub(crate) fn absolute_by_text(base: &[u8], path: &[u8]) -> Vec<u8> {
    by_text(&parts(&joined(base, path)).collect::<Vec<_>>())
}

/// Where no such folder is: the call will fail too.
fn by_text(parts: &[&[u8]]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in parts {
        match *part {
            b".." => kept.truncate(kept.len().saturating_sub(1)),
            part => kept.push(part),
        }
    }
    kept.iter().flat_map(|part| [b"/", *part].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_watched_however_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("work/sub")).unwrap();
        std::os::unix::fs::symlink(real.join("work"), real.join("link")).unwrap();
        let mut scope = Scope::new(&[real.join("link")]).unwrap();
        let text = |path: &str| real.join(path).into_os_string().into_vec();
        let mut number = |base: &str, path: &str| scope.resolve(&text(base), path.as_bytes());
        let file = number("work", "sub/file").unwrap();
        for (base, path) in [
            ("link", "sub/file"),
            ("work", "./sub//file"),
            ("work/sub", "file"),
            ("work/sub", "../sub/file"),
            ("work", "nowhere/../sub/file"),
            ("elsewhere", &real.join("link/sub/file").display().to_string()),
        ] {
            assert_eq!(number(base, path), Some(file), "{base} {path}");
        }
        for (base, path) in [("work", "../file"), ("elsewhere", "file"), ("", "work"), ("work", "/"), ("workers", "x")]
        {
            assert_eq!(number(base, path), None, "{base} {path}");
        }
    }
}
