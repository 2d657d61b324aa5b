//! What snapshots hold while another program goes on writing.

use super::{AT_MOST, FILE, Pool, read_anew};
use crate::stage::{SnapshotPrograms, Timed};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// Files of 1 MiB that are there before the snapshots, and of which every second one is written
/// anew while all are held.
pub(super) struct SnapshotData<'a> {
    pub(super) folder: PathBuf,
    pub(super) pool: &'a Pool,
    pub(super) programs: SnapshotPrograms,
    pub(super) is_changed: bool,
}

impl SnapshotData<'_> {
    pub(super) const SNAPSHOTS: u64 = 100;
    const FILES: u64 = 64;

    pub(super) fn lay_out(&self) -> Result<()> {
        std::fs::create_dir(&self.folder)?;
        (0..Self::FILES).try_for_each(|number| {
            let path = self.path(number);
            std::fs::write(&path, self.content(number)).with_context(|| format!("writing {}", path.display()))
        })
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}"))
    }

    fn content(&self, number: u64) -> &[u8] {
        let version = if self.is_changed && number % 2 == 0 { Self::FILES } else { 0 };
        self.pool.piece(number + version, FILE)
    }

    pub(super) fn take(&self, p: &mut Timed) -> Result<()> {
        self.programs.take.iter().try_for_each(|words| p.command(words))
    }

    /// In place, so that it is the file system that keeps what was there.
    pub(super) fn change(&mut self) -> Result<()> {
        self.is_changed = true;
        (0..Self::FILES).step_by(2).try_for_each(|number| {
            let path = self.path(number);
            let written =
                File::options().write(true).open(&path).and_then(|mut file| file.write_all(self.content(number)));
            written.with_context(|| format!("writing {} anew", path.display()))
        })
    }

    pub(super) fn delete(&self, p: &mut Timed) -> Result<()> {
        self.programs.delete_all(p, AT_MOST)
    }

    pub(super) fn verify(&self) -> Result<()> {
        (0..Self::FILES).try_for_each(|number| {
            let same = read_anew(&self.path(number))? == self.content(number);
            ensure!(same, "file {number} that snapshots held has other bytes");
            Ok(())
        })
    }
}
