//! Which runs may have left something on this machine: one small file per run, which names its
//! journal. The run writes it before it touches anything; it is removed once all is known to be
//! undone. `pickfs clean` starts here.

use super::state::State;
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::is_run_id;
use rustix::fs::{FlockOperation, flock};
use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const FOLDER: &str = "active";

pub struct Active {
    run: String,
    /// Locked while the run is alive, so that its entry speaks for it even when its journal is
    /// deleted.
    _alive: File,
}

impl Active {
    pub(crate) fn register(run: &str, journal: &Path) -> Result<Active> {
        let state = State::create(FOLDER)?;
        let mut file = state.made_file(run)?;
        let shown = state.shown(run);
        let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        ensure!(is_free, "the run {run} is under way; wait for it, or stop it first");
        let is_new = file.metadata()?.len() == 0;
        let journal = std::path::absolute(journal)?.into_os_string();
        // Cut at last, so that a disk that is full does not take what an earlier sitting wrote.
        let written = file.write_all(journal.as_bytes()).and_then(|()| file.set_len(journal.len() as u64));
        if written.is_err() && is_new {
            state.remove(run);
        }
        written.with_context(|| format!("cannot write {}", shown.display()))?;
        Ok(Active { run: run.into(), _alive: file })
    }

    pub fn is_alive(run: &str) -> bool {
        let lock = |file: File| flock(&file, FlockOperation::NonBlockingLockShared).is_err();
        State::find(FOLDER).ok().flatten().and_then(|state| state.opened(run)).is_some_and(lock)
    }

    /// All is undone, or nothing was touched. Said, not left to a drop: an error or a panic on the
    /// way must leave the entry to `pickfs clean`.
    pub(crate) fn done(self) {
        Active::forget(&self.run);
    }

    /// Run ids and journals of all runs that are under way, or that died. The latest first, as what
    /// it saved of the machine's settings may be what an earlier one had put there. The path is
    /// empty where the run died before it was written.
    pub fn list() -> Result<Vec<(String, PathBuf)>> {
        let Some(state) = State::find(FOLDER)? else { return Ok(Vec::new()) };
        let read = |run: String| {
            let (journal, found) = state.read(&run)?;
            let journal = PathBuf::from(OsString::from_vec(journal));
            (journal.is_absolute() || journal.as_os_str().is_empty()).then_some((
                Reverse(found.modified().ok()),
                run,
                journal,
            ))
        };
        let runs = state.names().into_iter().filter(|name| is_run_id(name));
        let mut all: Vec<_> = runs.filter_map(read).collect();
        all.sort();
        Ok(all.into_iter().map(|(_, run, journal)| (run, journal)).collect())
    }

    /// Where it is known that the run may have left something.
    pub fn entry(run: &str) -> Option<PathBuf> {
        State::find(FOLDER).ok().flatten().map(|state| state.shown(run))
    }

    pub fn forget(run: &str) {
        if let Some(state) = State::find(FOLDER).ok().flatten().filter(|_| is_run_id(run)) {
            state.remove(run);
        }
    }
}
