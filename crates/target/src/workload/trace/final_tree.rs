//! What a replay has left: equal on all targets, if each did what the program did.

use anyhow::Result;
use rustix::fs::{lgetxattr, llistxattr};
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use walkdir::WalkDir;
use xxhash_rust::xxh3::Xxh3;

/// Attributes that are the program's own; a kernel may add others, such as those of SELinux.
const OWN: &[u8] = b"user.";

/// In words: how many entries, and a hash of their paths, types, sizes, numbers of links, where
/// links lead, and the names and lengths of `user.` attributes. Sizes of folders are the file
/// system's choice; contents are those of the replay, and are not looked at.
pub(crate) fn summary(root: &Path) -> Result<String> {
    let (mut entries, mut all) = (0_u64, Xxh3::new());
    for entry in WalkDir::new(root).min_depth(1).sort_by_file_name() {
        let entry = entry?;
        let found = entry.metadata()?;
        let is_file = found.is_file();
        let path = entry.path().strip_prefix(root)?;
        let to = if found.is_symlink() { std::fs::read_link(entry.path())? } else { Default::default() };
        let numbers = [
            path.as_os_str().len() as u64,
            u64::from(found.mode() & libc::S_IFMT),
            if is_file { found.size() } else { 0 },
            if is_file { found.nlink() } else { 0 },
        ];
        numbers.iter().for_each(|number| all.update(&number.to_le_bytes()));
        all.update(path.as_os_str().as_bytes());
        all.update(to.strip_prefix(root).unwrap_or(&to).as_os_str().as_bytes());
        for (name, length) in attributes(entry.path())? {
            all.update(&name);
            all.update(&(length as u64).to_le_bytes());
        }
        entries += 1;
    }
    Ok(format!("{entries} entries, {:016x}", all.digest()))
}

/// Sorted: each file system lists them in its own order.
fn attributes(path: &Path) -> Result<Vec<(Vec<u8>, usize)>, Errno> {
    let (mut names, mut value) = ([MaybeUninit::<u8>::uninit(); 64 << 10], [MaybeUninit::<u8>::uninit(); 64 << 10]);
    let names = match llistxattr(path, &mut names) {
        Ok((names, _)) => &*names,
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for name in names.split_inclusive(|byte| *byte == 0).filter(|name| name.starts_with(OWN)) {
        let Ok(text) = CStr::from_bytes_with_nul(name) else { continue };
        found.push((name.to_vec(), lgetxattr(path, text, &mut value)?.0.len()));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_differs_in_one_thing_has_another_summary() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 6] = [
            ("a file more", |root| fs::write(root.join("more"), "").unwrap()),
            ("a name", |root| fs::rename(root.join("folder/file"), root.join("folder/other")).unwrap()),
            ("a size", |root| fs::write(root.join("folder/file"), "longer").unwrap()),
            ("a link's end", |root| {
                fs::remove_file(root.join("link")).unwrap();
                std::os::unix::fs::symlink(root.join("folder"), root.join("link")).unwrap();
            }),
            ("a second name", |root| {
                fs::remove_file(root.join("second")).unwrap();
                fs::write(root.join("second"), "text").unwrap();
            }),
            ("a type", |root| {
                fs::remove_file(root.join("link")).unwrap();
                fs::create_dir(root.join("link")).unwrap();
            }),
        ];
        let made = |change: Option<Change>| {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            fs::create_dir(root.join("folder")).unwrap();
            fs::write(root.join("folder/file"), "text").unwrap();
            fs::hard_link(root.join("folder/file"), root.join("second")).unwrap();
            std::os::unix::fs::symlink(root.join("folder/file"), root.join("link")).unwrap();
            change.into_iter().for_each(|change| change(root));
            summary(root).unwrap()
        };
        assert_eq!(made(None), made(None));
        for (what, change) in changes {
            assert_ne!(made(Some(change)), made(None), "{what}");
        }
    }

    #[test]
    fn attributes_count() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        let before = summary(folder.path()).unwrap();
        let set = rustix::fs::lsetxattr(&path, "user.a", b"value", rustix::fs::XattrFlags::empty());
        if set == Err(Errno::OPNOTSUPP) {
            return; // tmpfs has them since Linux 6.6
        }
        set.unwrap();
        assert_ne!(summary(folder.path()).unwrap(), before);
    }
}
