//! The folder of the sockets by which sessions of ssh share one connection; it goes with the
//! process that made it.

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Before the number of its process. Short: a socket's path has at most 107 bytes.
const NAME: &str = "pickfs-ssh-";

pub(crate) struct Sockets {
    folder: PathBuf,
    /// Locked for as long as its process lives.
    _folder: File,
}

impl Sockets {
    /// Also removes what killed processes of this user have left.
    pub(crate) fn new() -> Result<Sockets> {
        let (all, own) = (std::env::temp_dir(), std::process::id());
        remove_dead(&all, own);
        let folder = all.join(format!("{NAME}{own}"));
        let make = || -> std::io::Result<File> {
            DirBuilder::new().mode(0o700).create(&folder)?;
            let file = open(&folder)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok(file)
        };
        let file = make().with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Sockets { folder, _folder: file })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

fn open(folder: &Path) -> std::io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    File::options().read(true).custom_flags(flags.bits() as i32).open(folder)
}

/// Those of this user whose process is not there, nor holds its lock from where its number is
/// another.
fn remove_dead(all: &Path, own: u32) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        let is_dead = |number: &u32| *number == own || !Path::new(&format!("/proc/{number}")).exists();
        let Some(_) = number.filter(is_dead) else { continue };
        let Ok(folder) = open(&entry.path()) else { continue };
        let is_own = folder.metadata().is_ok_and(|found| found.uid() == user);
        if is_own && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&entry.path());
        }
    }
}

/// Shared connections end with the last of their sessions, or by themselves.
fn remove(folder: &Path) {
    for socket in fs::read_dir(folder).into_iter().flatten().flatten() {
        let control = format!("ControlPath={}", socket.path().display());
        let words = ["-o", &control, "-O", "exit", "none"];
        let _ =
            Command::new("ssh").args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    let _ = fs::remove_dir_all(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_processes_go_and_others_stay() {
        let all = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::create_dir(all.path().join(name)).unwrap();
        let (own, dead) = (std::process::id(), u32::MAX);
        let (live, locked) = (format!("{NAME}1"), format!("{NAME}{}", dead - 1));
        for name in [&format!("{NAME}{own}"), &format!("{NAME}{dead}"), &live, &locked, "pickfs-ssh-x", "other"] {
            make(name);
        }
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), all.path().join(format!("{NAME}{}", dead - 2))).unwrap();
        let lock = open(&all.path().join(&locked)).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove_dead(all.path(), own);
        let mut left: Vec<_> = fs::read_dir(all.path()).unwrap().flatten().map(|one| one.file_name()).collect();
        left.sort();
        let link = format!("{NAME}{}", dead - 2);
        let mut wanted = vec!["other", &live, &link, &locked, "pickfs-ssh-x"];
        wanted.sort_unstable();
        assert_eq!(left, wanted);
        assert!(elsewhere.path().exists());
    }
}
