//! Which runs may have left something on this machine: one small file a run, naming its journal, written before the
//! run touches anything and removed when all is undone, by whoever knows that it is. `pickfs clean` starts here.

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

pub struct Active {
    run: String,
    /// Locked while the run is alive, so that its entry speaks for it even when its journal is deleted.
    _alive: File,
}

impl Active {
    pub fn register(run: &str, journal: &Path) -> Result<Active> {
        let folder = folder();
        make(&folder)
            .with_context(|| format!("cannot make {}; set XDG_STATE_HOME to a folder of yours", folder.display()))?;
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
        let own = |entry: &std::fs::DirEntry| entry.metadata().is_ok_and(|found| is_own(&found) && found.is_file());
        let folder = Some(folder()).filter(|folder| folder.metadata().is_ok_and(|found| is_own(&found)));
        let entries =
            folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten().filter(own);
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

/// For us alone: whoever can write there says what `clean` undoes.
fn make(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = std::fs::metadata(folder)?;
    if is_own(&found) { Ok(()) } else { Err(std::io::Error::other(format!("it belongs to user {}", found.uid()))) }
}

fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

fn folder() -> PathBuf {
    state_folder().join("active")
}

/// `$XDG_STATE_HOME/pickfs`, by default under `~/.local/state`; in the temporary folder for users without a home,
/// such as nobody.
pub fn state_folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME").filter(|home| home.is_dir());
    let state = variable("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state")));
    state
        .unwrap_or_else(|| std::env::temp_dir().join(format!("pickfs-state-{}", rustix::process::geteuid().as_raw())))
        .join("pickfs")
}
