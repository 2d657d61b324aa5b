//! One run at a time on a machine: two would measure each other, and restore each other's settings.
//! First come, first served: the kernel queues the waiting callers of flock(2).
//!
//! Simulations measure nothing of this machine, so they share it with each other, as do guests
//! whose plan says so; others wait for them, as they keep processors busy.
//!
//! Root's runs have their own lock, in a folder where only root can make a file, so that no user
//! delays them; they also take the lock that users share, once it is free.

use super::Progress;
use super::rounds::up_to_next_look;
use super::supervise::stop_requested;
use pickfs_core::journal::fold_file;
use pickfs_core::plan;
use pickfs_system::units::show_duration;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(200);
/// Half a minute.
const LOOKS_UNTIL_SAID: u32 = 150;

/// Held until dropped, also by death.
pub(crate) struct Turn {
    _own: Option<File>,
    /// Gets the shared lock when that is free.
    _shared: Option<Receiver<File>>,
}

/// Waits for the lock. Where no lock file can be made, no run waits; a request to stop ends the
/// waiting without the lock, and the caller looks for it.
pub(crate) fn take(journal: &Path, wanted: plan::Turn, progress: &mut dyn Progress) -> Turn {
    let shared = ["/run/lock", "/var/lock", "/tmp"].map(|folder| Path::new(folder).join("pickfs.lock"));
    // A user may not be let make a file in the first that is there.
    let shared = shared.into_iter().find_map(|path| opened(path, 0o666, wanted));
    if !rustix::process::geteuid().is_root() {
        let own = shared.and_then(|lock| waited_for(lock, journal, progress));
        return Turn { _own: own, _shared: None };
    }
    let own =
        opened(PathBuf::from("/run/pickfs.lock"), 0o600, wanted).and_then(|lock| waited_for(lock, journal, progress));
    let shared = shared.map(|lock| {
        if let Some(holder) = holder_unless_free(&lock) {
            progress.remark(&format!("another user's run is under way and disturbs this one: {holder}"));
        }
        lock.queue(journal)
    });
    Turn { _own: own, _shared: shared }
}

fn waiting(wanted: plan::Turn) -> FlockOperation {
    if wanted == plan::Turn::Alone { FlockOperation::LockExclusive } else { FlockOperation::LockShared }
}

fn trying(wanted: plan::Turn) -> FlockOperation {
    match wanted {
        plan::Turn::Alone => FlockOperation::NonBlockingLockExclusive,
        plan::Turn::Shared => FlockOperation::NonBlockingLockShared,
    }
}

struct Lock {
    file: File,
    path: PathBuf,
    wanted: plan::Turn,
}

impl Lock {
    /// By a thread: waiting for a lock would block Ctrl-C.
    fn queue(self, journal: &Path) -> Receiver<File> {
        let (send, taken) = mpsc::channel();
        let journal = std::path::absolute(journal).unwrap_or_else(|_| journal.into());
        let note = format!("process {}, {}\n", std::process::id(), journal.display());
        std::thread::spawn(move || {
            let mut file = self.file;
            while let Err(error) = flock(&file, waiting(self.wanted)) {
                if error != rustix::io::Errno::INTR {
                    return;
                }
            }
            // For waiting runs; one that another user has made cannot be written to.
            let _ = file.set_len(0).and_then(|()| file.write_all(note.as_bytes()));
            let _ = send.send(file);
        });
        taken
    }
}

/// The holder as noted in the lock file, if the lock is held.
fn holder_unless_free(lock: &Lock) -> Option<String> {
    if flock(&lock.file, trying(lock.wanted)).is_ok() {
        let _ = flock(&lock.file, FlockOperation::Unlock);
        return None;
    }
    let noted = std::fs::read_to_string(&lock.path).unwrap_or_default();
    let shown: String =
        noted.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(300).collect();
    Some(if shown.is_empty() { "it did not note which run it is".into() } else { shown })
}

fn waited_for(lock: Lock, journal: &Path, progress: &mut dyn Progress) -> Option<File> {
    let holder = holder_unless_free(&lock);
    if let Some(holder) = &holder {
        let meanwhile = "meanwhile `pickfs plan`, `report` and `scan` work; Ctrl-C ends the waiting";
        progress.remark(&format!("waiting for another pickfs run on this machine to end: {holder}; {meanwhile}"));
    }
    let taken = lock.queue(journal);
    for looks in 1.. {
        match taken.recv_timeout(LOOK) {
            Ok(file) => return Some(file),
            Err(RecvTimeoutError::Timeout) if !stop_requested() => {}
            Err(_) => return None,
        }
        if let Some(holder) = holder.as_ref().filter(|_| looks % LOOKS_UNTIL_SAID == 0) {
            let waited = show_duration((LOOK * looks).as_nanos() as f64);
            progress.remark(&format!("waited {waited} for another run{}", how_far(holder)));
        }
    }
    None
}

/// ", which has done 7 of 24 cells up to its next look". To root alone: in the lock that users
/// share any of them may have noted anything.
fn how_far(holder: &str) -> String {
    if !rustix::process::geteuid().is_root() {
        return String::new();
    }
    let folded = holder.split_once(", ").and_then(|(_, journal)| fold_file(Path::new(journal)).ok());
    let run = folded.as_ref().and_then(|folded| folded.run.as_ref());
    let counts = run.zip(folded.as_ref()).map(|(run, folded)| up_to_next_look(&run.plan, folded));
    let words = |(planned, ended)| format!(", which has done {ended} of {planned} cells up to its next look");
    counts.filter(|(planned, _)| *planned > 0).map(words).unwrap_or_default()
}

/// Made by whichever user comes first, readable for all that may use it, whatever the umask.
fn opened(path: PathBuf, mode: u32, wanted: plan::Turn) -> Option<Lock> {
    let made = || File::create_new(&path).and_then(|file| file.set_permissions(Permissions::from_mode(mode)));
    let opened = open(&path).or_else(|_| made().and_then(|()| open(&path))).or_else(|_| open(&path));
    opened.ok().map(|file| Lock { file, path, wanted })
}

/// Opens a lock file. Another user with write access to the folder can have put a symlink or a pipe
/// there: neither is followed nor waited for.
fn open(path: &Path) -> std::io::Result<File> {
    let careful = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(careful).open(path);
    open(true).or_else(|_| open(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Turn::{Alone, Shared};

    /// To root alone.
    #[test]
    fn one_that_waits_sees_how_far_the_other_is() {
        let journal = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals/default-run.jsonl");
        let said = how_far(&format!("process 1, {journal}"));
        assert_eq!(said.contains(" of 54 cells"), rustix::process::geteuid().is_root(), "{said}");
        assert_eq!(how_far("process 1, /no/such/file") + &how_far(""), "");
    }

    #[test]
    fn simulations_share_the_machine_and_real_runs_wait_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        for (first, second, waits) in
            [(Alone, Alone, true), (Alone, Shared, true), (Shared, Alone, true), (Shared, Shared, false)]
        {
            let held = opened(path.clone(), 0o600, first).unwrap().queue(&folder.path().join("first"));
            let held = held.recv_timeout(Duration::from_secs(60)).unwrap();
            let next = opened(path.clone(), 0o600, second).unwrap();
            assert_eq!(holder_unless_free(&next).is_some(), waits, "{first:?}, {second:?}");
            drop(held);
            assert_eq!(holder_unless_free(&next), None);
        }
    }
}
