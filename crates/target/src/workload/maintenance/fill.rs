//! Files of 1 MiB: until none fits, and removed again.

use super::{AT_MOST, FILE, GIB, GIVEN_BACK, PAUSE};
use crate::stack::Argv;
use crate::stage::{Stage, Timed};
use crate::workload::content::{Files, files_until_durable};
use crate::workload::room::Room;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Files that fill the file system.
pub(super) struct Fill<'a> {
    pub(super) root: PathBuf,
    pub(super) files: Files<'a>,
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
            match self.files.write_next() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error).context("a full file system gave another error than ENOSPC"),
            }
        }
        ensure!(self.files.count > 0, "not one file of 1 MiB fits");
        let full = Room::at(&self.root)?;
        self.room[1] = full.unused;
        p.handled(self.files.count * FILE as u64, self.files.count);
        p.say("filled_bytes", (self.files.count * FILE as u64) as f64);
        p.say("free_when_full_bytes", full.free as f64);
        p.done_times(self.files.count as f64 * FILE as f64 / GIB);
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
                    self.files.write_next()?;
                }
                stage.make_durable()?;
            }
            Ok(())
        })
    }

    pub(super) fn remove_half(&mut self, p: &mut Timed) -> Result<()> {
        let removed: Vec<u64> = (0..self.files.count).step_by(2).collect();
        p.removed(removed.len() as u64 * FILE as u64, removed.len() as u64);
        removed.iter().try_for_each(|number| std::fs::remove_file(self.files.path(*number)))?;
        // btrfs and ZFS free the space with a commit, which else comes when their own timer is due.
        p.own(|| Ok(rustix::fs::syncfs(File::open(&self.root)?)?))?;
        self.commit.iter().try_for_each(|words| p.command(words))?;
        let share = removed.len() as f64 / self.files.count as f64 * GIVEN_BACK;
        let wanted = self.room[1] as f64 + self.room[0].saturating_sub(self.room[1]) as f64 * share;
        let free = p.until(AT_MOST, PAUSE, || Ok(Room::at(&self.root)?.unused as f64 >= wanted))?;
        ensure!(free, "the space of removed files was not free after {} s", AT_MOST.as_secs());
        Ok(())
    }

    pub(super) fn read(&self, p: &mut Timed) -> Result<()> {
        p.handled(self.bytes(), self.numbers().count() as u64);
        let read = |number: u64| std::fs::read(self.files.path(number)).map(drop);
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
        (step - 1..self.files.count).step_by(step as usize)
    }

    fn is_thinned(&self) -> bool {
        self.files.count > 0 && !self.files.path(0).exists()
    }

    /// A file fits again, and durably.
    pub(super) fn goes_on(&self) -> Result<()> {
        let path = self.root.join("after");
        let mut file = File::create_new(&path).context("making a file")?;
        file.write_all(self.files.pool.piece(7, FILE)).and_then(|()| file.sync_all()).context("writing a file")?;
        ensure!(std::fs::read(&path)? == self.files.pool.piece(7, FILE), "other bytes came back than were written");
        Ok(())
    }

    /// What was written without an error is there.
    pub(super) fn verify(&self) -> Result<()> {
        self.files.verify(self.numbers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::content::Pool;

    #[test]
    fn files_that_changed_are_found() {
        let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::new(3, 1 << 20));
        let files = Files { folder: folder.path().join("fill"), size: FILE, count: 0, pool: &pool };
        let mut fill = Fill { root: folder.path().into(), files, room: [0; 2], commit: None };
        for _ in 0..3 {
            fill.files.write_next().unwrap();
        }
        fill.verify().unwrap();
        assert!(!fill.is_thinned());
        std::fs::remove_file(fill.files.path(2)).unwrap();
        assert!(fill.verify().is_err());
        std::fs::remove_file(fill.files.path(0)).unwrap();
        assert!(fill.is_thinned() && fill.verify().is_ok());
        std::fs::write(fill.files.path(1), vec![0; FILE]).unwrap();
        assert!(fill.verify().is_err());
        fill.goes_on().unwrap();
    }
}
