//! What a site generator does before it decides that nothing is to be compiled: it lists every directory and asks for
//! the metadata of every file, and writes nothing.

use super::Dataset;
use crate::plan::Settings;
use crate::stage::phase::*;
use crate::stage::{Latencies, Stage};
use crate::workload::{Description, Workload};
use anyhow::{Context, Result, ensure};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

pub struct Walk;

const DESCRIPTION: Description = Description {
    name: "walk",
    about: "metadata of a tree, by default a static site: every directory listed, every entry's lstat",
    settings: Dataset::ROWS,
    main_setting: "source",
    phases: &[Phase::new("walk", "list every directory and lstat every entry, cold", Cold, Metadata, Returned)],
    programs: &[("cp", "coreutils")],
    ..Description::EMPTY
};

impl Workload for Walk {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn dataset(&self, settings: &Settings) -> Option<Dataset> {
        Some(Dataset::of_a_site(settings))
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let source = Dataset::of_a_site(settings).staged(stage.place())?;
        let tree = stage.root().join("tree");
        super::lay_out(stage, &source, &tree)?;
        for _ in stage.repeats() {
            stage.phase("walk", |p| {
                p.handled(0, source.digest.files);
                let walked = p.own(|| walk(&tree))?;
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
struct Walked {
    lstat: Latencies,
    /// Opening a directory and reading all of its names.
    readdir: Latencies,
}

/// Names of a directory and what the directory itself says of their kinds.
type Entries = Vec<(CString, FileType)>;

/// Every directory below the root, and the root; what is in a directory is asked for in the order in which it was
/// listed, before any directory below is opened.
fn walk(root: &Path) -> Result<Walked> {
    let mut walked = Walked { lstat: Latencies::new(), readdir: Latencies::new() };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut waiting = vec![root.to_path_buf()];
    while let Some(path) = waiting.pop() {
        walked.readdir.start();
        let (directory, entries) = list(&path, flags).with_context(|| format!("listing {}", path.display()))?;
        walked.readdir.lap();
        walked.lstat.start();
        for (name, kind) in entries {
            let found = rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW);
            walked.lstat.lap();
            let found = found.with_context(|| format!("lstat of {name:?} in {}", path.display()))?;
            // A directory need not tell kinds.
            let known = if kind == FileType::Unknown { FileType::from_raw_mode(found.st_mode) } else { kind };
            if known == FileType::Directory {
                use std::os::unix::ffi::OsStrExt;
                waiting.push(path.join(std::ffi::OsStr::from_bytes(name.to_bytes())));
                walked.lstat.start();
            }
        }
    }
    Ok(walked)
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
        crate::data::generate(&tree, &crate::data::Shape { files: 90, bytes: 1 << 18 }, 5).unwrap();
        std::os::unix::fs::symlink("..", tree.join("back")).unwrap();
        let all: Vec<_> = walkdir::WalkDir::new(&tree).into_iter().map(Result::unwrap).collect();
        let directories = all.iter().filter(|entry| entry.file_type().is_dir()).count();
        let walked = walk(&tree).unwrap();
        let counts = (walked.lstat.count() as usize, walked.readdir.count() as usize);
        assert_eq!(counts, (all.len() - 1, directories));
        assert!(directories > 1 && walk(&folder.path().join("nowhere")).is_err());
    }
}
