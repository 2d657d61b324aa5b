//! Folders that only this user and root can have made, and in which only they can make files.

use super::process::trusts;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Kept open, so that it stays the same folder whatever is renamed or linked meanwhile.
#[derive(Debug)]
pub struct OwnFolder(OwnedFd);

impl OwnFolder {
    /// Opens the folder part by part. A symbolic link is followed only where no other user can have
    /// made it. The error says which part another user could swap.
    pub fn open(path: &Path) -> io::Result<OwnFolder> {
        Walk::to(path, false)
    }

    /// The same; what is not there is made, for this user alone.
    pub fn make(path: &Path) -> io::Result<OwnFolder> {
        Walk::to(path, true)
    }

    /// For calls of this process on names in it, which do not follow the last part.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// Links that a path may lead through, as in Linux (path_resolution(7)).
const MOST_LINKS: u32 = 40;

struct Walk {
    here: OwnedFd,
    shown: PathBuf,
    /// The next one last.
    parts: Vec<OsString>,
    links: u32,
}

impl Walk {
    fn to(path: &Path, makes: bool) -> io::Result<OwnFolder> {
        let (here, shown) = (root()?, PathBuf::from("/"));
        let mut walk = Walk { here, shown, parts: Vec::new(), links: 0 };
        walk.then(&std::path::absolute(path)?);
        while let Some(part) = walk.parts.pop() {
            walk.step(&part, makes)?;
        }
        let found = fstat(&walk.here)?;
        let own = rustix::process::geteuid().as_raw();
        if found.st_uid == own && found.st_mode & 0o022 == 0 {
            Ok(OwnFolder(walk.here))
        } else {
            refused(&walk.shown, &format!("is not a folder of user {own} alone"))
        }
    }

    fn then(&mut self, path: &Path) {
        self.parts.extend(path.iter().rev().map(OsString::from));
    }

    fn step(&mut self, part: &OsStr, makes: bool) -> io::Result<()> {
        if part == "/" {
            (self.here, self.shown) = (root()?, PathBuf::from("/"));
            return Ok(());
        }
        let shown = self.shown.join(part);
        match statat(&self.here, part, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
                return self.follow(part, &found, &shown);
            }
            Err(Errno::NOENT) if makes => match mkdirat(&self.here, part, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            },
            _ => {}
        }
        self.enter(part, shown)
    }

    fn follow(&mut self, link: &OsStr, found: &Stat, shown: &Path) -> io::Result<()> {
        self.links += 1;
        if !is_trusted(found.st_uid) {
            return refused(shown, &format!("is a link of user {}", found.st_uid));
        }
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = readlinkat(&self.here, link, Vec::new())?;
        self.then(Path::new(&OsString::from_vec(target.into_bytes())));
        Ok(())
    }

    fn enter(&mut self, part: &OsStr, shown: PathBuf) -> io::Result<()> {
        let entered = openat(&self.here, part, FLAGS, Mode::empty())?;
        let found = fstat(&entered)?;
        if !is_trusted(found.st_uid) {
            return refused(&shown, &format!("belongs to user {}", found.st_uid));
        }
        if others_may_rename(&found) {
            return refused(&shown, "can be written to by others");
        }
        (self.here, self.shown) = (entered, shown);
        Ok(())
    }
}

const FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn root() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/", FLAGS, Mode::empty())?)
}

fn is_trusted(owner: u32) -> bool {
    owner == 0 || trusts(owner)
}

/// In a sticky folder only what belongs to a user (or all of it to the folder's owner) can be
/// renamed by him. A group with the number of the owner is the owner's own, as useradd(8) makes one
/// for each user.
fn others_may_rename(found: &Stat) -> bool {
    let is_sticky = found.st_mode & 0o1000 != 0;
    let by_group = found.st_mode & 0o020 != 0 && found.st_gid != 0 && found.st_gid != found.st_uid;
    !is_sticky && (by_group || found.st_mode & 0o002 != 0)
}

fn refused<T>(shown: &Path, why: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", shown.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    const STRANGER: u32 = 65534;

    /// A laboratory in a folder that only root can write to; `None` without root.
    fn lab() -> Option<(tempfile::TempDir, PathBuf)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_path_buf();
        rustix::process::geteuid().is_root().then_some((folder, path))
    }

    fn why(path: &Path) -> String {
        OwnFolder::open(path).map(drop).map_err(|error| error.to_string()).err().unwrap_or_default()
    }

    #[test]
    fn what_is_not_there_is_made_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        assert_eq!(OwnFolder::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let made = OwnFolder::make(&path).unwrap();
        std::fs::write(made.path().join("file"), "text").unwrap();
        assert_eq!(std::fs::read_to_string(path.join("file")).unwrap(), "text");
        for part in [&path, &folder.path().join("a")] {
            assert_eq!(part.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        }
    }

    #[test]
    fn a_folder_of_a_stranger_on_the_way_is_refused() {
        let Some((_folder, path)) = lab() else { return };
        create_dir(path.join("theirs")).unwrap();
        create_dir(path.join("theirs/ours")).unwrap();
        chown(path.join("theirs"), Some(STRANGER), None).unwrap();
        assert!(why(&path.join("theirs/ours")).contains("belongs to user 65534"));
        assert!(why(&path.join("theirs")).contains("belongs to user 65534"));
    }

    #[test]
    fn a_folder_that_others_may_write_to_must_be_sticky() {
        let Some((_folder, path)) = lab() else { return };
        let (open, ours) = (path.join("open"), path.join("open/ours"));
        create_dir(&open).unwrap();
        create_dir(&ours).unwrap();
        for (mode, group, is_refused) in
            [(0o777, 0, true), (0o1777, 0, false), (0o775, 1234, true), (0o1775, 1234, false), (0o775, 0, false)]
        {
            chown(&open, None, Some(group)).unwrap();
            set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            assert_eq!(why(&ours).contains("can be written to by others"), is_refused, "{mode:o} {group}");
        }
        // At its end there is no such leave.
        set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
        assert!(why(&open).contains("is not a folder of user 0 alone"));
    }

    #[test]
    fn a_link_is_followed_only_where_no_stranger_made_it() {
        let Some((_folder, path)) = lab() else { return };
        create_dir(path.join("real")).unwrap();
        symlink("./real", path.join("link")).unwrap();
        assert_eq!(why(&path.join("link")), "");
        assert_eq!(why(&path.join("link/../real/.")), "");
        lchown(path.join("link"), Some(STRANGER), None).unwrap();
        assert!(why(&path.join("link")).contains("is a link of user 65534"));
        symlink("round", path.join("round")).unwrap();
        assert!(!why(&path.join("round")).is_empty());
        // Where the link leads to is looked at too.
        create_dir(path.join("theirs")).unwrap();
        chown(path.join("theirs"), Some(STRANGER), None).unwrap();
        symlink(path.join("theirs"), path.join("away")).unwrap();
        assert!(why(&path.join("away")).contains("belongs to user 65534"));
        std::fs::write(path.join("file"), "").unwrap();
        assert!(!why(&path.join("file")).is_empty());
    }
}
