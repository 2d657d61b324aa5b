//! One run at a time on a machine: two would measure each other, and restore each other's settings.

use super::Progress;
use super::supervise::stop_requested;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);

/// Held until dropped, also by death. `None` where no lock file can be had, then nobody waits; and when asked to stop
/// while waiting, so that the caller looks.
pub fn take(progress: &mut dyn Progress) -> Option<File> {
    let folder = ["/run/lock", "/var/lock", "/tmp"].into_iter().map(Path::new).find(|folder| folder.is_dir())?;
    let path = folder.join("pickfs.lock");
    let file = open(&path).or_else(|_| create(&path)).or_else(|_| open(&path)).ok()?;
    let mut told = false;
    // Looked at again and again, as a lock that is waited for hears no Ctrl-C.
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if !told {
            progress.say("waiting for another pickfs run on this machine to end");
            told = true;
        }
        if stop_requested() {
            return None;
        }
        std::thread::sleep(LOOK);
    }
    Some(file)
}

/// Whoever else may write to the folder can have put a symlink or a pipe there: neither is followed nor waited for.
fn open(path: &Path) -> std::io::Result<File> {
    let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(careful.bits() as i32).open(path)
}

/// Made by whichever user comes first: all others may read it, whatever the umask, and a lock asks for no more.
fn create(path: &Path) -> std::io::Result<File> {
    let file = File::create_new(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    Ok(file)
}
