//! One run at a time on a machine: two would measure each other, and restore each other's settings.

use super::Progress;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;

/// Held until dropped, also by death. `None` where no lock file can be had: then nobody waits.
pub fn take(progress: &mut dyn Progress) -> Option<File> {
    let folder = ["/run/lock", "/var/lock", "/tmp"].into_iter().map(Path::new).find(|folder| folder.is_dir())?;
    let path = folder.join("pickfs.lock");
    // Made by whichever user comes first: another user may read it, and a lock asks for no more.
    let file = File::open(&path).or_else(|_| File::create_new(&path)).or_else(|_| File::open(&path)).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        progress.say("waiting for another pickfs run on this machine to end");
        flock(&file, FlockOperation::LockExclusive).ok()?;
    }
    Some(file)
}
