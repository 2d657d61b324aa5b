//! Files that the operations of [`super`] work on, and what each of them does.
//!
//! All that is to be cold is used once after a cold start: there is as much of it as the probes can
//! use in their time.

use super::{Operation, Responding};
use crate::stage::SMALLEST_INODE;
use crate::workload::content::Pool;
use anyhow::{Context, Result};
use pickfs_system::random::Random;
use rustix::fs::Advice;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One block is read of so much: beyond what is read ahead of it, and beyond what compression takes
/// for one.
const REGION: u64 = 128 << 10;
/// Paths for each that is asked for, so that few lie in the same block of inodes as one before.
const PATHS_FOR_EACH: u64 = 8;
const PATHS_IN_A_FOLDER: u64 = 64;
/// Every 50 ms.
const OFTEN: u64 = 20;
/// What there is, and how much of it.
pub(crate) struct ProbeFiles {
    /// Blocks that can be read, one in a region.
    blocks: u64,
    paths: u64,
    /// Programs that can be started.
    starts: u64,
    start_files: u64,
    start_bytes: u64,
}

impl ProbeFiles {
    pub(crate) const BLOCK: usize = 4096;

    /// As many as are used in the longest time after one cold start, and some for an end that comes
    /// late.
    pub(crate) fn new(given: &Responding) -> ProbeFiles {
        let most = given.time + given.drain_time;
        let often = (most.as_millis() as u64).div_ceil(1000) * OFTEN * 11 / 10 + 20;
        let starts = (most.as_nanos() / given.start_every.as_nanos().max(1)) as u64 + 2;
        let start_files = given.start_files.max(1);
        let start_bytes = given.start_bytes / start_files * start_files;
        ProbeFiles { blocks: often, paths: often * PATHS_FOR_EACH, starts, start_files, start_bytes }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.blocks * REGION + self.starts * self.start_bytes
    }

    /// Bytes that an operation done so often makes the device read at least, after a cold start.
    pub(crate) fn least_read(&self, operation: Operation, done: u64) -> u64 {
        match operation {
            Operation::Read => done.min(self.blocks) * ProbeFiles::BLOCK as u64,
            Operation::Stat => done.min(self.paths) * SMALLEST_INODE,
            Operation::Start => done.min(self.starts) * self.start_bytes,
            Operation::Append | Operation::Create => 0,
        }
    }

    pub(crate) fn lay_out(&self, root: &Path, pool: &Pool) -> Result<()> {
        let mut file = File::create_new(root.join("blocks"))?;
        for number in 0..self.blocks {
            file.write_all(pool.piece(number, REGION as usize))?;
        }
        File::create_new(root.join("appended"))?;
        std::fs::create_dir(root.join("created"))?;
        for number in 0..self.paths {
            let path = path(root, number);
            if number % PATHS_IN_A_FOLDER == 0 {
                std::fs::create_dir_all(path.parent().context("a path without a folder")?)?;
            }
            File::create_new(path)?;
        }
        for start in 0..self.starts {
            std::fs::create_dir_all(program(root, start))?;
            for number in 0..self.start_files {
                let mut file = File::create_new(program(root, start).join(format!("file{number}")))?;
                let seed = start * self.start_files + number;
                pool.write_to(&mut file, seed * 31, self.start_bytes / self.start_files, REGION)?;
            }
        }
        Ok(())
    }

    /// 4 KiB at the end of a file, and durable.
    pub(crate) fn append<'a>(
        &self,
        root: &Path,
        pool: &'a Pool,
    ) -> Result<impl FnMut(u64) -> Result<()> + Send + use<'a>> {
        let path = root.join("appended");
        let mut file =
            File::options().append(true).open(&path).with_context(|| format!("opening {}", path.display()))?;
        let mut next = 0;
        Ok(move |_| {
            next += 1;
            file.write_all(pool.piece(next, ProbeFiles::BLOCK)).context("appending")?;
            file.sync_data().context("fdatasync of what was appended")
        })
    }

    /// Reads a block that has not been read since the cold start.
    pub(crate) fn read(&self, root: &Path) -> Result<impl FnMut(u64) -> Result<()> + Send + use<>> {
        let path = root.join("blocks");
        let file = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
        // Otherwise read-ahead brings other blocks with it, and the next is warm.
        rustix::fs::fadvise(&file, 0, None, Advice::Random).context("cannot switch reading ahead off")?;
        let order = shuffled(self.blocks, 3);
        let (mut next, mut buffer) = (0, vec![0; ProbeFiles::BLOCK]);
        Ok(move |_| {
            let at = order[next % order.len()] * REGION;
            next += 1;
            file.read_exact_at(&mut buffer, at).context("reading a block")?;
            // For the case that the end comes so late that it is asked for again.
            rustix::fs::fadvise(&file, at, NonZeroU64::new(REGION), Advice::DontNeed).context("dropping a block")
        })
    }

    /// A new file under its last name, and the folder durable.
    pub(crate) fn create(
        &self,
        root: &Path,
        background: &'static str,
    ) -> Result<impl FnMut(u64) -> Result<()> + Send + use<>> {
        let folder = root.join("created");
        let directory = File::open(&folder).with_context(|| format!("opening {}", folder.display()))?;
        let mut next = 0;
        Ok(move |_| {
            let (new, last) = (folder.join("new"), folder.join(format!("{background}{next}")));
            next += 1;
            File::create_new(&new).context("creating a file")?;
            std::fs::rename(&new, &last).context("renaming a file")?;
            directory.sync_all().context("fsync of a directory")
        })
    }

    /// Looks up a path that has not been looked up since the cold start.
    pub(crate) fn stat(&self, root: &Path) -> impl FnMut(u64) -> Result<()> + Send + use<> {
        let (root, order, mut next) = (root.to_path_buf(), shuffled(self.paths, 4), 0);
        move |_| {
            let path = path(&root, order[next % order.len()]);
            next += 1;
            path.symlink_metadata().map(drop).with_context(|| format!("stat of {}", path.display()))
        }
    }

    /// All files of a program that was not started since the cold start.
    pub(crate) fn start(&self, root: &Path) -> impl FnMut(u64) -> Result<()> + Send + use<> {
        let (root, files, starts, mut next) = (root.to_path_buf(), self.start_files, self.starts, 0);
        let mut content = Vec::new();
        move |_| {
            let folder = program(&root, next % starts);
            next += 1;
            for number in 0..files {
                content.clear();
                let file = File::open(folder.join(format!("file{number}")));
                file.and_then(|mut file| file.read_to_end(&mut content)).context("reading a program's file")?;
            }
            Ok(())
        }
    }
}

fn path(root: &Path, number: u64) -> PathBuf {
    root.join(format!("paths/{}/{number}", number / PATHS_IN_A_FOLDER))
}

fn program(root: &Path, number: u64) -> PathBuf {
    root.join(format!("programs/{number}"))
}

/// All numbers below, in an order that is the same for all targets.
fn shuffled(count: u64, stream: u64) -> Vec<u64> {
    let (mut numbers, mut random) = ((0..count).collect::<Vec<_>>(), Random::new(2, stream));
    random.shuffle(&mut numbers);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Settings;
    use serde_json::json;

    fn probe_files() -> ProbeFiles {
        let given = json!({"time": 1_000_000_000_u64, "drain_time": 1_000_000_000_u64,
            "start_every": 2_000_000_000_u64, "start_files": 3, "start_bytes": 600_000});
        ProbeFiles::new(&Responding::of(&Settings(given.as_object().unwrap().clone().into_iter().collect())))
    }

    #[test]
    fn everything_is_used_once_before_anything_is_used_again() {
        let mut all = shuffled(1000, 7);
        assert!(all != shuffled(1000, 8) && all == shuffled(1000, 7) && !all.is_sorted());
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        let often = 2 * OFTEN;
        let files = probe_files();
        assert!(files.blocks >= often && files.paths >= often && files.starts >= 2);
    }

    #[test]
    fn every_cold_probe_has_something_to_prove() {
        let files = probe_files();
        let read = |operation| [0, 2, u64::MAX].map(|done| files.least_read(operation, done));
        assert_eq!(read(Operation::Read), [0, 2 * 4096, files.blocks * 4096]);
        assert_eq!(read(Operation::Stat), [0, 2 * 44, files.paths * 44]);
        assert_eq!(read(Operation::Start), [0, 2 * 600_000, files.starts * 600_000]);
        assert_eq!((read(Operation::Append), read(Operation::Create)), ([0; 3], [0; 3]));
    }

    #[test]
    fn every_probe_does_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let (root, files, pool) = (folder.path(), probe_files(), Pool::new(2, 1 << 20));
        files.lay_out(root, &pool).unwrap();
        assert_eq!(root.join("blocks").metadata().unwrap().len(), files.blocks * REGION);
        let bytes = pickfs_trees::apparent_bytes(root);
        assert!(bytes.abs_diff(files.bytes()) < 1 << 20, "{bytes} of {}", files.bytes());
        let mut append = files.append(root, &pool).unwrap();
        let mut read = files.read(root).unwrap();
        let mut create = files.create(root, "idle").unwrap();
        let (mut stat, mut start) = (files.stat(root), files.start(root));
        for number in 0..5 {
            append(number).unwrap();
            read(number).unwrap();
            create(number).unwrap();
            stat(number).unwrap();
            start(number).unwrap();
        }
        assert_eq!(root.join("appended").metadata().unwrap().len(), 5 * ProbeFiles::BLOCK as u64);
        assert_eq!(root.join("created").read_dir().unwrap().count(), 5);
        std::fs::remove_dir_all(root.join("programs")).unwrap();
        assert!(start(5).is_err());
        std::fs::write(root.join("blocks"), "").unwrap();
        assert!(read(5).is_err());
    }
}
