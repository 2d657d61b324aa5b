//! What a site generator does before it decides that nothing is to be compiled: it lists every
//! directory and asks for the metadata of every file, and writes nothing.

use super::{Dataset, Jobs, in_threads};
use crate::stage::{Latencies, Stage};
use crate::workload::{Description, Workload, described};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::Settings;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(crate) struct Walk;

impl Workload for Walk {
    fn description(&self) -> &'static Description {
        described!("walk.toml", [Dataset::ROWS, Jobs::ROWS], Dataset::of_a_site)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let source = Dataset::of_a_site(settings).staged(stage.place())?;
        let tree = stage.root().join("tree");
        super::lay_out(stage, &source, &tree)?;
        let Jobs { jobs } = Jobs::of(settings);
        for _ in stage.repeats() {
            stage.phase("walk", |p| {
                p.handled(0, source.digest.files);
                let walked = p.own(|| walk(&tree, jobs))?;
                let (seen, wanted) = (walked.lstat.count(), source.digest.entries);
                ensure!(seen == wanted, "the walk saw {seen} of {wanted} entries");
                p.latencies("lstat", walked.lstat);
                p.latencies("readdir", walked.readdir);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// How long each operation took.
struct WalkLatencies {
    lstat: Latencies,
    /// Opening a directory and reading all of its names.
    readdir: Latencies,
}

/// Names of a directory and what the directory itself says of their kinds.
type Entries = Vec<(CString, FileType)>;

/// Directories that are still to be listed, shared by the listing threads.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<PathBuf>,
    /// Being listed: each may bring more.
    busy: usize,
    failed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None when all have been listed, or one could not be.
    fn next(&self) -> Option<PathBuf> {
        let mut state = self.state();
        while !state.failed {
            if let Some(path) = state.waiting.pop() {
                state.busy += 1;
                return Some(path);
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn listed(&self, below: Option<Vec<PathBuf>>) {
        let mut state = self.state();
        state.busy -= 1;
        state.failed |= below.is_none();
        state.waiting.extend(below.into_iter().flatten());
        self.changed.notify_all();
    }
}

/// Walks every directory below the root, and the root, with `jobs` threads; what is in a directory
/// is asked for in the order in which it was listed, before any directory below is opened.
fn walk(root: &Path, jobs: u64) -> Result<WalkLatencies> {
    let queue = Queue::default();
    queue.state().waiting.push(root.to_path_buf());
    in_threads(jobs, |_| {
        let mut walked = WalkLatencies { lstat: Latencies::new(), readdir: Latencies::new() };
        while let Some(path) = queue.next() {
            let below = walked.directory(&path);
            queue.listed(below.as_ref().ok().cloned());
            below?;
        }
        Ok(walked)
    })?
    .into_iter()
    .reduce(|mut all, one| {
        all.lstat.add(&one.lstat);
        all.readdir.add(&one.readdir);
        all
    })
    .context("nothing walked")
}

impl WalkLatencies {
    /// The directories in it.
    fn directory(&mut self, path: &Path) -> Result<Vec<PathBuf>> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut below = Vec::new();
        self.readdir.start();
        let (directory, entries) = list(path, flags).with_context(|| format!("listing {}", path.display()))?;
        self.readdir.lap();
        self.lstat.start();
        for (name, kind) in entries {
            let found = rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW);
            self.lstat.lap();
            let found = found.with_context(|| format!("lstat of {name:?} in {}", path.display()))?;
            // A directory need not tell kinds.
            let known = if kind == FileType::Unknown { FileType::from_raw_mode(found.st_mode) } else { kind };
            if known == FileType::Directory {
                below.push(path.join(OsStr::from_bytes(name.to_bytes())));
                self.lstat.start();
            }
        }
        Ok(below)
    }
}

fn list(path: &Path, flags: OFlags) -> rustix::io::Result<(OwnedFd, Entries)> {
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            entries.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    Ok((directory, entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_asked_for_once_and_every_directory_listed_once() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        pickfs_trees::generate(&tree, &pickfs_trees::Shape { files: 90, bytes: 1 << 18 }, 5).unwrap();
        std::os::unix::fs::symlink("..", tree.join("back")).unwrap();
        let all: Vec<_> = walkdir::WalkDir::new(&tree).into_iter().map(Result::unwrap).collect();
        let directories = all.iter().filter(|entry| entry.file_type().is_dir()).count();
        for jobs in [1, 4] {
            let walked = walk(&tree, jobs).unwrap();
            let counts = (walked.lstat.count() as usize, walked.readdir.count() as usize);
            assert_eq!(counts, (all.len() - 1, directories), "{jobs}");
            assert!(directories > 1 && walk(&folder.path().join("nowhere"), jobs).is_err());
        }
    }
}
