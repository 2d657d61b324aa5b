//! A folder that others may write to, by its descriptor: links in it are not followed, and what is
//! answered is on the disk.

use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, linkat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
/// No link, and no pipe that waits for a writer.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

pub(crate) struct Folder(File);

impl Folder {
    /// One that the user names: links on the way are the user's.
    pub(crate) fn open(path: &Path) -> Result<Folder> {
        Ok(Folder(openat(CWD, path, FOLDER, Mode::empty())?.into()))
    }

    pub(crate) fn below(&self, name: &str) -> Result<Folder> {
        Ok(Folder(openat(&self.0, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?.into()))
    }

    /// Made durably if it is not there.
    pub(crate) fn make(&self, name: &str) -> Result<Folder> {
        match mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => self.sync()?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.below(name)
    }

    /// To read.
    pub(crate) fn file(&self, name: impl Arg) -> Result<File> {
        let file = File::from(openat(&self.0, name, PLAIN, Mode::empty())?);
        let is_file = file.metadata()?.is_file();
        if is_file { Ok(file) } else { Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file")) }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = Dir::read_from(&self.0).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(String::from));
        names.filter(|name| name != "." && name != "..").collect()
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.0.sync_all()
    }

    /// Removes the files of dead processes, which no process has locked.
    pub(crate) fn remove_dead(&self) {
        for name in self.names() {
            // Locked until its name is gone: a writer that has just made it would take the free
            // lock for its own.
            let dead = self.file(&name).ok().filter(lock);
            if dead.is_some() {
                let _ = unlinkat(&self.0, &name, AtFlags::empty());
            }
        }
    }
}

fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// A file that is being written: its name goes when it is dropped, or when the next writer finds
/// its lock free.
pub(crate) struct Unfinished {
    folder: Folder,
    name: String,
    pub file: File,
}

/// Among the threads of this process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Unfinished {
    pub(crate) fn new(folder: Folder) -> Result<Unfinished> {
        let flags = PLAIN | OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
        loop {
            let name = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            let file = match openat(&folder.0, &name, flags, Mode::from_raw_mode(0o600)) {
                Ok(file) => File::from(file),
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            };
            // Another writer may have taken it for one of a dead process.
            if lock(&file) && file.metadata()?.nlink() > 0 {
                return Ok(Unfinished { folder, name, file });
            }
        }
    }

    /// Gives it a name in a folder of the same disk, durably; false where another file has that
    /// name.
    pub(crate) fn keep(&self, folder: &Folder, name: &str) -> Result<bool> {
        self.file.sync_all()?;
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let is_new = match linkat(CWD, own, &folder.0, name, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => true,
            // It may be on its way to the disk.
            Err(Errno::EXIST) => folder.file(name)?.sync_all().map(|()| false)?,
            Err(error) => return Err(error.into()),
        };
        folder.sync()?;
        Ok(is_new)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = unlinkat(&self.folder.0, &self.name, AtFlags::empty());
    }
}
