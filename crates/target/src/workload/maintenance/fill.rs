//! Files of 1 MiB: until none fits, and removed again.

use super::{AT_MOST, FILE, GIB, GIVEN_BACK, PAUSE, Pool};
use crate::stack::Argv;
use crate::stage::{Stage, Timed};
use crate::workload::content::files_until_durable;
use crate::workload::room::Room;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

const FILES_IN_A_FOLDER: u64 = 512;

/// Files that fill the file system.
pub(super) struct Fill<'a> {
    pub(super) root: PathBuf,
    pub(super) pool: &'a Pool,
    /// Complete ones.
    pub(super) files: u64,
    /// Unused when it was empty, and when it was full: root fills what is kept for root too.
    pub(super) room: [u64; 2],
    /// What makes durable in addition to `syncfs(2)`.
    pub(super) commit: Option<Argv>,
}

impl Fill<'_> {
    /// The error is the one that a full file system gives; any other fails the cell.
    pub(super) fn until_full(&mut self, p: &mut Timed) -> Result<()> {
        self.room[0] = Room::at(&self.root)?.unused;
        let limits = p.limits();
        loop {
            limits()?;
            match self.write_next() {
                Ok(()) => self.files += 1,
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error).context("a full file system gave another error than ENOSPC"),
            }
        }
        ensure!(self.files > 0, "not one file of 1 MiB fits");
        let full = Room::at(&self.root)?;
        self.room[1] = full.unused;
        p.handled(self.files * FILE as u64, self.files);
        p.say("filled_bytes", (self.files * FILE as u64) as f64);
        p.say("free_when_full_bytes", full.free as f64);
        p.done_times(self.files as f64 * FILE as f64 / GIB);
        Ok(())
    }

    /// What is fuller may have no room to be rebuilt in.
    pub(super) fn a_third(&mut self, stage: &mut Stage) -> Result<()> {
        let least = Room::at(&self.root)?.free / 3 * 2;
        stage.lay_out("filling a third of it", |stage| {
            while let files @ 1.. = files_until_durable(Room::at(&self.root)?.free, least, FILE) {
                let limits = stage.limits();
                for _ in 0..files {
                    limits()?;
                    self.write_next()?;
                    self.files += 1;
                }
                stage.make_durable()?;
            }
            Ok(())
        })
    }

    fn write_next(&self) -> std::io::Result<()> {
        let path = self.path(self.files);
        if self.files % FILES_IN_A_FOLDER == 0 {
            std::fs::create_dir_all(path.parent().expect("a folder"))?;
        }
        File::create(path)?.write_all(self.pool.piece(self.files, FILE))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.root.join(format!("fill{}/{number}", number / FILES_IN_A_FOLDER))
    }

    pub(super) fn remove_half(&mut self, p: &mut Timed) -> Result<()> {
        let removed: Vec<u64> = (0..self.files).step_by(2).collect();
        p.removed(removed.len() as u64 * FILE as u64, removed.len() as u64);
        removed.iter().try_for_each(|number| std::fs::remove_file(self.path(*number)))?;
        // btrfs and ZFS free the space with a commit, which else comes when their own timer is due.
        p.own(|| Ok(rustix::fs::syncfs(File::open(&self.root)?)?))?;
        self.commit.iter().try_for_each(|words| p.command(words))?;
        let share = removed.len() as f64 / self.files as f64 * GIVEN_BACK;
        let wanted = self.room[1] as f64 + self.room[0].saturating_sub(self.room[1]) as f64 * share;
        let free = p.until(AT_MOST, PAUSE, || Ok(Room::at(&self.root)?.unused as f64 >= wanted))?;
        ensure!(free, "the space of removed files was not free after {} s", AT_MOST.as_secs());
        Ok(())
    }

    pub(super) fn read(&self, p: &mut Timed) -> Result<()> {
        p.handled(self.bytes(), self.numbers().count() as u64);
        let read = |number: u64| std::fs::read(self.path(number)).map(drop);
        p.own(|| self.numbers().try_for_each(read).context("reading while a device is missing"))?;
        p.done_times(self.bytes() as f64 / GIB);
        Ok(())
    }

    /// Bytes of the files that are there.
    pub(super) fn bytes(&self) -> u64 {
        self.numbers().count() as u64 * FILE as u64
    }

    /// All files, or every second.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let step = if self.is_thinned() { 2 } else { 1 };
        (step - 1..self.files).step_by(step as usize)
    }

    fn is_thinned(&self) -> bool {
        self.files > 0 && !self.path(0).exists()
    }

    /// A file fits again, and durably.
    pub(super) fn goes_on(&self) -> Result<()> {
        let path = self.root.join("after");
        let mut file = File::create_new(&path).context("making a file")?;
        file.write_all(self.pool.piece(7, FILE)).and_then(|()| file.sync_all()).context("writing a file")?;
        ensure!(std::fs::read(&path)? == self.pool.piece(7, FILE), "other bytes came back than were written");
        Ok(())
    }

    /// What was written without an error is there.
    pub(super) fn verify(&self) -> Result<()> {
        for number in self.numbers() {
            let found = std::fs::read(self.path(number)).with_context(|| format!("reading file {number}"))?;
            ensure!(found == self.pool.piece(number, FILE), "file {number} of {} has other bytes", self.files);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_changed_are_found() {
        let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::new(3, 1 << 20));
        let mut fill = Fill { root: folder.path().into(), pool: &pool, files: 0, room: [0; 2], commit: None };
        for _ in 0..3 {
            fill.write_next().unwrap();
            fill.files += 1;
        }
        fill.verify().unwrap();
        assert!(!fill.is_thinned());
        std::fs::remove_file(fill.path(2)).unwrap();
        assert!(fill.verify().is_err());
        std::fs::remove_file(fill.path(0)).unwrap();
        assert!(fill.is_thinned() && fill.verify().is_ok());
        std::fs::write(fill.path(1), vec![0; FILE]).unwrap();
        assert!(fill.verify().is_err());
        fill.goes_on().unwrap();
    }
}
