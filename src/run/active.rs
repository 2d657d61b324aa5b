//! Which runs may have left something on this machine: one small file a run, naming its journal, written before the
//! run touches anything and removed when all is undone, by whoever knows that it is. `pickfs clean` starts here.

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub struct Active {
    run: String,
    /// Locked while the run is alive, so that its entry speaks for it even when its journal is deleted.
    _alive: File,
}

impl Active {
    pub fn register(run: &str, journal: &Path) -> Result<Active> {
        let folder = folder();
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join(run);
        let journal = std::path::absolute(journal)?;
        let write = || {
            let mut file = File::create(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            file.write_all(journal.as_os_str().as_bytes()).map(|()| file)
        };
        let _alive = write().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Active { run: run.into(), _alive })
    }

    pub fn is_alive(run: &str) -> bool {
        let lock = |file: File| flock(&file, FlockOperation::NonBlockingLockShared).is_err();
        File::open(folder().join(run)).is_ok_and(lock)
    }

    /// All is undone, or nothing was touched. Said, not left to a drop: an error or a panic on the way must leave the
    /// entry to `pickfs clean`.
    pub fn done(self) {
        Active::forget(&self.run);
    }

    /// Run ids and journals of all runs that are under way, or that died. The latest first, as what it saved of the
    /// machine's settings may be what an earlier one had put there.
    pub fn list() -> Vec<(String, PathBuf)> {
        let entries = std::fs::read_dir(folder()).into_iter().flatten().flatten();
        let read = |entry: std::fs::DirEntry| {
            let journal = std::fs::read(entry.path()).ok()?;
            let begun = entry.metadata().and_then(|found| found.modified()).ok()?;
            let journal = PathBuf::from(OsString::from_vec(journal));
            Some((Reverse(begun), entry.file_name().to_string_lossy().into_owned(), journal))
        };
        let mut all: Vec<_> = entries.filter_map(read).collect();
        all.sort();
        all.into_iter().map(|(_, run, journal)| (run, journal)).collect()
    }

    pub fn forget(run: &str) {
        // Gone already is as good.
        let _ = std::fs::remove_file(folder().join(run));
    }
}

/// `$XDG_STATE_HOME/pickfs/active`, by default under `~/.local/state`.
fn folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
    state
        .unwrap_or_else(|| std::env::temp_dir().join(format!("pickfs-state-{}", rustix::process::geteuid().as_raw())))
        .join("pickfs/active")
}
