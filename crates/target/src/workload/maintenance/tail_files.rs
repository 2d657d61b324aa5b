//! Files that lie where the file system is cut off when it is made smaller.

use super::{FILE, Pool, read_anew};
use crate::workload::room::Room;
use anyhow::{Context, Result, ensure};
use rustix::fs::syncfs;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

/// Two thirds of the device are written and every fourth file stays. Wherever the first one lies,
/// at least a quarter of what stays lies in the half that goes. More could not stay: resize2fs(8)
/// estimates carefully what it needs.
pub(super) struct TailFiles<'a> {
    pub(super) folder: PathBuf,
    pub(super) pool: &'a Pool,
    /// Written, most of which were removed.
    pub(super) files: u64,
    /// Bytes of the file system before.
    pub(super) before: u64,
}

impl<'a> TailFiles<'a> {
    const STAYS: usize = 4;

    /// As many on each file system.
    pub(super) fn new(folder: PathBuf, pool: &'a Pool, device_bytes: u64) -> TailFiles<'a> {
        TailFiles { folder, pool, files: device_bytes / 3 * 2 / FILE as u64, before: 0 }
    }

    pub(super) fn lay_out(&mut self) -> Result<()> {
        std::fs::create_dir(&self.folder)?;
        let write = |number| std::fs::write(self.path(number), self.pool.piece(number, FILE));
        self.all().try_for_each(write).context("writing files over two thirds of the device")?;
        // What is removed before it was written has never been anywhere.
        syncfs(File::open(&self.folder)?)?;
        let goes = |number: &u64| number % Self::STAYS as u64 != 0;
        self.all().filter(goes).try_for_each(|number| std::fs::remove_file(self.path(number)))?;
        self.before = Room::at(&self.folder)?.of_all;
        Ok(())
    }

    fn all(&self) -> Range<u64> {
        0..self.files
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}"))
    }

    pub(super) fn verify_smaller(&self) -> Result<()> {
        let after = Room::at(&self.folder)?.of_all;
        ensure!(after < self.before, "the file system has {after} bytes, and had {} before", self.before);
        self.verify()
    }

    pub(super) fn verify(&self) -> Result<()> {
        self.all().step_by(Self::STAYS).try_for_each(|number| {
            let same = read_anew(&self.path(number))? == self.pool.piece(number, FILE);
            ensure!(same, "file {number} has other bytes since the file system is smaller");
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fourth_file_stays_and_must_stay_the_same() {
        let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::new(3, 1 << 20));
        let mut cut = TailFiles::new(folder.path().join("cut"), &pool, 12 << 20);
        assert_eq!(cut.files, 8);
        cut.lay_out().unwrap();
        cut.verify().unwrap();
        assert!(cut.before > 0 && cut.verify_smaller().is_err(), "it has not become smaller");
        let names = std::fs::read_dir(&cut.folder).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<std::collections::BTreeSet<_>>(), ["0", "4"].map(Into::into).into());
        cut.before = u64::MAX;
        cut.verify_smaller().unwrap();
        std::fs::write(cut.path(4), pool.piece(5, FILE)).unwrap();
        assert!(cut.verify_smaller().is_err());
        std::fs::remove_file(cut.path(4)).unwrap();
        assert!(cut.verify().is_err());
    }
}
