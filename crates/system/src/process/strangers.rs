//! Folders in which another user could put something else in the place of what root makes there.

use crate::sys::process::trusts;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows in a path (path_resolution(7)).
const MOST_LINKS: usize = 40;
const STICKY: u32 = 0o1000;

/// A part of the way to a folder that others may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposedPath {
    pub message: String,
    pub remedy: String,
}

/// The first part of the path to a folder, or the folder itself, that a user whom root does not
/// trust may change: by renaming what is in it, that user has root write anywhere. Links on the
/// path count too. The path is checked from above downwards, so that no checked part can be changed
/// again. `None` for users other than root, as they can be led to their own files only.
pub fn exposed(folder: &Path) -> Option<ExposedPath> {
    // The owner of `/`, as in a guest whose root a user has made, can lead root anywhere in any
    // case.
    let rules = Path::new("/").metadata().ok()?.uid();
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root() && is_of_machine(&map);
    is_root.then(|| first(folder, |owner| owner == rules || trusts(owner))).flatten()
}

/// In a user namespace, as in a container without privileges, root has the rights of the user that
/// made it (user_namespaces(7)).
fn is_of_machine(uid_map: &str) -> bool {
    uid_map.is_empty() || uid_map.split_whitespace().take(2).eq(["0", "0"])
}

fn first(folder: &Path, trusts: impl Fn(u32) -> bool) -> Option<ExposedPath> {
    let whole = std::env::current_dir().ok()?.join(folder);
    let (mut left, mut at, mut links) = (backwards(&whole), PathBuf::from("/"), 0);
    while let Some(part) = left.pop() {
        let next = at.join(&part);
        match part.to_str() {
            Some("..") => drop(at.pop()),
            _ => {
                // What is not there yet cannot be anybody else's.
                let found = next.symlink_metadata().ok()?;
                if let Some(how) = how(&found, &trusts) {
                    return Some(exposure(&next, &how, found.mode()));
                }
                match found.is_symlink() {
                    true if links == MOST_LINKS => return None,
                    true => left.extend(backwards(&next.read_link().ok()?)),
                    false => at = next,
                }
                links += usize::from(found.is_symlink());
            }
        }
    }
    None
}

fn backwards(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// How others may change it. What lies in a sticky folder is its owner's alone to rename. A group
/// with the number of the owner is his own, as most distributions make one for each user.
fn how(found: &std::fs::Metadata, trusts: impl Fn(u32) -> bool) -> Option<String> {
    let (owner, group, mode) = (found.uid(), found.gid(), found.mode());
    if !trusts(owner) {
        return Some(format!("belongs to user {owner}, who"));
    }
    if found.is_symlink() || mode & STICKY != 0 {
        return None;
    }
    match (mode & 0o002 != 0, mode & 0o020 != 0 && group != 0 && group != owner) {
        (true, _) => Some("may be written to by anyone, who".into()),
        (_, true) => Some(format!("may be written to by group {group}, which")),
        _ => None,
    }
}

fn exposure(part: &Path, how: &str, mode: u32) -> ExposedPath {
    let shown = part.display();
    let message = format!("{shown} {how} could lead root to other files");
    let mend = if how.starts_with("belongs") { "chown -h root" } else { "chmod go-w" };
    let and =
        if how.starts_with("belongs") && mode & 0o022 != 0 { format!("; chmod go-w {shown}") } else { String::new() };
    ExposedPath {
        message,
        remedy: format!("name a folder that root alone may change, such as /var/tmp; or `{mend} {shown}{and}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    const STRANGER: u32 = 65534;

    struct Row {
        owner: u32,
        group: u32,
        mode: u32,
        /// A part of the message; empty where nothing speaks against it.
        says: &'static str,
    }

    const ROWS: &[Row] = &[
        Row { owner: 0, group: 0, mode: 0o755, says: "" },
        Row { owner: 0, group: 0, mode: 0o775, says: "" },
        Row { owner: 0, group: 7, mode: 0o755, says: "" },
        Row { owner: 0, group: 7, mode: 0o1775, says: "" },
        Row { owner: 0, group: 0, mode: 0o1777, says: "" },
        Row { owner: 1234, group: 1234, mode: 0o775, says: "" },
        Row { owner: 1234, group: 7, mode: 0o775, says: "may be written to by group 7" },
        Row { owner: 0, group: 7, mode: 0o775, says: "may be written to by group 7" },
        Row { owner: 0, group: 0, mode: 0o777, says: "may be written to by anyone" },
        Row { owner: STRANGER, group: 0, mode: 0o700, says: "belongs to user 65534" },
        Row { owner: STRANGER, group: 0, mode: 0o1777, says: "belongs to user 65534" },
    ];

    /// 1234 is the user behind sudo.
    fn said(folder: &Path) -> String {
        first(folder, |owner| [0, 1234].contains(&owner)).map_or(String::new(), |exposed| exposed.message)
    }

    #[test]
    fn root_of_a_container_without_privileges_is_none_of_the_machine() {
        let of_machine = ["", "         0          0 4294967295\n"].map(is_of_machine);
        let of_user = ["0 1000 1\n1 100000 65536\n", "0 100000 65536\n", "1000 0 1\n"].map(is_of_machine);
        assert_eq!((of_machine, of_user), ([true; 2], [false; 3]));
    }

    #[test]
    fn each_part_of_the_way_must_be_root_s_own() {
        if !rustix::process::geteuid().is_root() {
            return pickfs_test_support::not_run("only root can give a folder to another user");
        }
        let folder = tempfile::tempdir().unwrap();
        let (part, below) = (folder.path().join("part"), folder.path().join("part/own"));
        std::fs::create_dir_all(&below).unwrap();
        std::fs::create_dir(folder.path().join("links")).unwrap();
        let link = folder.path().join("links/link");
        symlink("../part/own", &link).unwrap();
        for Row { owner, group, mode, says } in ROWS {
            chown(&part, Some(*owner), Some(*group)).unwrap();
            std::fs::set_permissions(&part, PermissionsExt::from_mode(*mode)).unwrap();
            for way in [&part, &below, &link, &below.join("../own"), &below.join("not/there")] {
                let said = said(way);
                assert_eq!(said.is_empty(), says.is_empty(), "{owner} {group} {mode:o} {}: {said}", way.display());
                assert!(said.contains(says), "{said}");
            }
        }
        chown(&part, Some(0), Some(0)).unwrap();
        std::fs::set_permissions(&part, PermissionsExt::from_mode(0o755)).unwrap();
        // The owner of a folder may change where a link in it leads.
        chown(folder.path().join("links"), Some(STRANGER), None).unwrap();
        assert!(said(&link).contains("links belongs to user 65534"), "{}", said(&link));
        assert_eq!(said(&below), "");
    }
}
