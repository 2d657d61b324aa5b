//! A tree's digest: equal for trees that hold the same, whatever file system they lie on.
//!
//! In it are names, types, permission bits, link targets, sizes and bytes; holes read as zeros do.
//! Not in it are times, owners, inode numbers, which names share an inode, and the root's own name
//! and permissions: `cp -a` or tar onto another file system may change those.

use super::parallel;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};
use xxhash_rust::xxh3::Xxh3;

/// What a tree holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// XXH3 of 128 bits, in hexadecimal.
    pub hash: String,
    /// Everything below the root.
    pub entries: u64,
    /// Regular files among them, by name.
    pub files: u64,
    /// Sum of their sizes.
    pub bytes: u64,
}

/// Reads the whole tree below `root`.
pub fn digest(root: &Path) -> Result<Digest> {
    digest_without(root, None)
}

/// The same without folders of this name, such as `.git`, whose bytes depend on inode numbers and
/// times.
pub fn digest_without(root: &Path, name: Option<&str>) -> Result<Digest> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    digest_in_parts(root, name, PART, processors)
}

/// Entries that threads share at a time: enough to keep them busy, and few compared with a large
/// tree.
const PART: usize = 2048;

/// Files are read by all threads, and what they hold is put together in the order of their names.
fn digest_in_parts(root: &Path, without: Option<&str>, part: usize, threads: usize) -> Result<Digest> {
    let (mut digest, mut all) = (Digest::default(), Xxh3::new());
    let mut left = entries(root).filter_entry(|entry| without.is_none_or(|name| entry.file_name() != name));
    loop {
        let some = left.by_ref().take(part).collect::<walkdir::Result<Vec<DirEntry>>>()?;
        if some.is_empty() {
            break;
        }
        let items = parallel::map(threads, &some, Reader::new, |reader, entry| reader.read(entry));
        for (entry, item) in some.iter().zip(items) {
            let item = item.with_context(|| format!("reading {}", entry.path().display()))?;
            item.update(relative(root, entry).as_os_str().as_bytes(), &mut all);
            digest.entries += 1;
            digest.files += u64::from(item.kind == Kind::File);
            digest.bytes += item.bytes;
        }
    }
    digest.hash = format!("{:032x}", all.digest128());
    Ok(digest)
}

/// Below the root, sorted by name at each level, so that no file system's order shows.
fn entries(root: &Path) -> walkdir::IntoIter {
    WalkDir::new(root).min_depth(1).sort_by_file_name().into_iter()
}

fn relative<'a>(root: &Path, entry: &'a DirEntry) -> &'a Path {
    entry.path().strip_prefix(root).unwrap_or(entry.path())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
    Link,
    Other,
}

/// What counts of an entry, apart from its name.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    kind: Kind,
    /// Zero for links, whose permissions mean nothing on Linux.
    permissions: u32,
    /// Size of regular files only: directories have a size of the file system's choice.
    bytes: u64,
    content: u128,
}

impl Item {
    /// Every part has a fixed length or its length before it, so that no two trees feed the same
    /// bytes.
    fn update(&self, name: &[u8], hash: &mut Xxh3) {
        hash.update(&(name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update(&[self.kind as u8]);
        hash.update(&self.permissions.to_le_bytes());
        hash.update(&self.bytes.to_le_bytes());
        hash.update(&self.content.to_le_bytes());
    }

    /// How two entries of the same name differ, in words.
    fn difference(&self, other: &Item, modes: Modes) -> Option<String> {
        match () {
            () if self.kind != other.kind => Some(format!("{:?} and {:?}", self.kind, other.kind)),
            () if self.bytes != other.bytes => Some(format!("{} and {} bytes", self.bytes, other.bytes)),
            () if self.content != other.content => Some("the content differs".into()),
            () if modes == Modes::Kept && self.permissions != other.permissions => {
                Some(format!("permissions {:o} and {:o}", self.permissions, other.permissions))
            }
            () => None,
        }
    }
}

/// One buffer for all files.
struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    fn new() -> Reader {
        Reader { buffer: vec![0; 1 << 20] }
    }

    fn read(&mut self, entry: &DirEntry) -> Result<Item> {
        let metadata = entry.metadata()?;
        let permissions = metadata.permissions().mode() & 0o7777;
        let (kind, permissions, (bytes, content)) = match entry.file_type() {
            t if t.is_dir() => (Kind::Directory, permissions, (0, 0)),
            t if t.is_file() => (Kind::File, permissions, self.read_file(entry.path())?),
            t if t.is_symlink() => (Kind::Link, 0, (0, link_hash(entry.path())?)),
            _ => (Kind::Other, permissions, (0, 0)),
        };
        Ok(Item { kind, permissions, bytes, content })
    }

    /// As many bytes as there are, and their hash.
    fn read_file(&mut self, path: &Path) -> Result<(u64, u128)> {
        let mut file = File::open(path)?;
        let mut hash = Xxh3::new();
        let mut bytes = 0;
        loop {
            let length = match file.read(&mut self.buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if length == 0 {
                return Ok((bytes, hash.digest128()));
            }
            hash.update(&self.buffer[..length]);
            bytes += length as u64;
        }
    }
}

fn link_hash(path: &Path) -> Result<u128> {
    let target = std::fs::read_link(path)?;
    Ok(xxhash_rust::xxh3::xxh3_128(target.as_os_str().as_bytes()))
}

/// Whether permissions of files and folders are compared: some file systems have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    Kept,
    Lost,
}

impl Modes {
    pub fn kept(kept: bool) -> Modes {
        if kept { Modes::Kept } else { Modes::Lost }
    }
}

/// The first hard or symbolic link of a tree, or nothing where there is none.
pub fn first_link(root: &Path) -> Option<PathBuf> {
    let is_link = |entry: &DirEntry| {
        let kind = entry.file_type();
        kind.is_symlink() || (kind.is_file() && entry.metadata().is_ok_and(|found| found.nlink() > 1))
    };
    entries(root).filter_map(Result::ok).find(is_link).map(DirEntry::into_path)
}

/// The first differences between two trees, at most `most`, as text for error messages.
pub fn differences(a: &Path, b: &Path, most: usize, modes: Modes) -> Vec<String> {
    let (in_a, in_b) = match (list(a), list(b)) {
        (Ok(in_a), Ok(in_b)) => (in_a, in_b),
        (a, b) => {
            return [a.err(), b.err()].into_iter().flatten().map(|error| format!("{error:#}")).take(most).collect();
        }
    };
    let mut reader = Reader::new();
    let only_in_b = in_b.keys().filter(|path| !in_a.contains_key(*path));
    let only_in_b = only_in_b.map(|path| format!("{}: only in {}", path.display(), b.display()));
    let rest = in_a.iter().filter_map(|(path, entry)| match in_b.get(path) {
        None => Some(format!("{}: only in {}", path.display(), a.display())),
        Some(other) => compare(&mut reader, entry, other, modes).map(|how| format!("{}: {how}", path.display())),
    });
    // The cheap ones first: names alone tell them.
    only_in_b.chain(rest).take(most).collect()
}

fn list(root: &Path) -> Result<BTreeMap<PathBuf, DirEntry>> {
    entries(root).map(|entry| entry.map(|e| (relative(root, &e).to_path_buf(), e)).map_err(Into::into)).collect()
}

fn compare(reader: &mut Reader, a: &DirEntry, b: &DirEntry, modes: Modes) -> Option<String> {
    match (reader.read(a), reader.read(b)) {
        (Ok(a), Ok(b)) => a.difference(&b, modes),
        (a, b) => a.err().or(b.err()).map(|error| format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, remove_file, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        create_dir(at("d")).unwrap();
        write(at("d/file"), "content").unwrap();
        write(at("zeros"), vec![0; 100_000]).unwrap();
        symlink("d/file", at("link")).unwrap();
        for (name, mode) in [("d", 0o755), ("d/file", 0o640), ("zeros", 0o644)] {
            set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        folder
    }

    #[test]
    fn a_tree_has_links_of_both_kinds_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "a").unwrap();
        assert_eq!(first_link(folder.path()), None);
        std::fs::hard_link(at("a"), at("b")).unwrap();
        assert!(first_link(folder.path()).is_some());
        std::fs::remove_file(at("b")).unwrap();
        symlink("a", at("c")).unwrap();
        assert_eq!(first_link(folder.path()), Some(at("c")));
    }

    #[test]
    fn neither_threads_nor_parts_change_a_digest() {
        let folder = tree();
        let whole = digest_in_parts(folder.path(), None, 100, 1).unwrap();
        // The result of one thread that read all in one go: journals of different versions are
        // compared by it.
        assert_eq!(whole.hash, "a69f5fb47faedab729a16ad2595dba7d");
        for (part, threads) in [(1, 1), (1, 3), (2, 2), (3, 2), (4, 2), (100, 3)] {
            assert_eq!(digest_in_parts(folder.path(), None, part, threads).unwrap(), whole, "{part} {threads}");
        }
        assert_eq!(digest_in_parts(folder.path(), Some("d"), 1, 2).unwrap().entries, 2);
        assert!(digest_in_parts(&folder.path().join("nowhere"), None, 1, 2).is_err());
    }

    #[test]
    fn holes_and_order_do_not_show() {
        let (a, b) = (tree(), tree());
        remove_file(b.path().join("zeros")).unwrap();
        File::create(b.path().join("zeros")).unwrap().set_len(100_000).unwrap();
        set_permissions(b.path().join("zeros"), std::fs::Permissions::from_mode(0o644)).unwrap();
        let digest = digest(a.path()).unwrap();
        assert_eq!(digest, super::digest(b.path()).unwrap());
        assert_eq!((digest.entries, digest.files, digest.bytes, digest.hash.len()), (4, 2, 100_007, 32));
        assert_eq!(differences(a.path(), b.path(), 9, Modes::Kept), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_change_shows_and_is_named() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 6] = [
            ("d/file: the content differs", |root| write(root.join("d/file"), "conteNt").unwrap()),
            ("d/file: 7 and 8 bytes", |root| write(root.join("d/file"), "contents").unwrap()),
            ("zeros: permissions 644 and 755", |root| {
                set_permissions(root.join("zeros"), std::fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("zeros: only in A", |root| remove_file(root.join("zeros")).unwrap()),
            ("new: only in B", |root| create_dir(root.join("new")).unwrap()),
            ("link: the content differs", |root| {
                remove_file(root.join("link")).unwrap();
                symlink("d/filE", root.join("link")).unwrap();
            }),
        ];
        for (said, change) in changes {
            let (a, b) = (tree(), tree());
            change(b.path());
            assert_ne!(digest(a.path()).unwrap().hash, digest(b.path()).unwrap().hash, "{said}");
            let names =
                |line: String| line.replace(a.path().to_str().unwrap(), "A").replace(b.path().to_str().unwrap(), "B");
            let found: Vec<String> = differences(a.path(), b.path(), 9, Modes::Kept).into_iter().map(names).collect();
            assert_eq!(found, [said]);
            let without = differences(a.path(), b.path(), 9, Modes::Lost).len();
            assert_eq!(without, usize::from(!said.contains("permissions")), "{said}");
            assert_eq!(differences(a.path(), b.path(), 0, Modes::Kept).len(), 0);
        }
    }
}
