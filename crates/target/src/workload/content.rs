//! Content to write that compresses as what people keep does, and a file that is overwritten with
//! it again and again.

use anyhow::{Context, Result, ensure};
use pickfs_system::random::Random;
use pickfs_trees::content::Content;
use pickfs_trees::profile::Stuff;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Text, object code and media in equal parts, to cut from.
pub(crate) struct Pool(Vec<u8>);

impl Pool {
    /// `of_each` bytes of each class.
    pub(crate) fn new(seed: u64, of_each: usize) -> Pool {
        let (mut content, mut made) = (Content::new(), Vec::with_capacity(3 * of_each));
        for (stream, stuff) in (1..).zip([Stuff::Source, Stuff::Object, Stuff::Media]) {
            made.extend_from_slice(content.like(stuff, &mut Random::new(seed, stream), of_each));
        }
        Pool(made)
    }

    /// The piece of this number, of `bytes`: the next begins behind it at an odd distance, so that
    /// none comes twice for long.
    #[inline]
    pub(crate) fn piece(&self, number: u64, bytes: usize) -> &[u8] {
        self.at(number.wrapping_mul(3 * bytes as u64 + 4097), bytes)
    }

    /// Writes as many bytes, in pieces of at most `most`, from the one with this number on.
    pub(crate) fn write_to(&self, out: &mut impl Write, first: u64, bytes: u64, most: u64) -> std::io::Result<()> {
        (first..).zip((0..bytes).step_by(most as usize)).try_for_each(|(number, from)| {
            let length = (bytes - from).min(most);
            out.write_all(self.piece(number, length as usize))
        })
    }

    #[inline]
    pub(crate) fn at(&self, place: u64, bytes: usize) -> &[u8] {
        let at = (place % (self.0.len() - bytes) as u64) as usize;
        &self.0[at..at + bytes]
    }
}

/// Files of one size that are written one after the other, in folders of 512.
pub(crate) struct Files<'a> {
    pub folder: PathBuf,
    pub size: usize,
    /// Complete ones.
    pub count: u64,
    pub pool: &'a Pool,
}

impl Files<'_> {
    const IN_A_FOLDER: u64 = 512;

    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{}/{number}", number / Files::IN_A_FOLDER))
    }

    pub(crate) fn write_next(&mut self) -> std::io::Result<()> {
        let path = self.path(self.count);
        if self.count % Files::IN_A_FOLDER == 0 {
            std::fs::create_dir_all(path.parent().expect("a folder"))?;
        }
        File::create_new(path)?.write_all(self.pool.piece(self.count, self.size))?;
        self.count += 1;
        Ok(())
    }

    /// These are there as they were written.
    pub(crate) fn verify(&self, mut numbers: impl Iterator<Item = u64>) -> Result<()> {
        numbers.try_for_each(|number| {
            let path = self.path(number);
            let found = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            ensure!(found == self.pool.piece(number, self.size), "{} has other bytes", path.display());
            Ok(())
        })
    }
}

/// How many files of that size to write, and make durable, before the next look at the bytes that
/// are free, until no more than `least` are: half of what is missing, as btrfs and ZFS count a
/// block as taken only when it is durable.
pub(crate) fn files_until_durable(free: u64, least: u64, size: usize) -> u64 {
    free.saturating_sub(least).div_ceil(size as u64).div_ceil(2)
}

/// A new file that is written in blocks from start to end, and then again.
pub(crate) struct Ring<'a> {
    file: File,
    pool: &'a Pool,
    blocks: u64,
    /// Blocks written since it was made.
    written: u64,
}

impl Ring<'_> {
    pub(crate) const BLOCK: usize = 256 << 10;

    pub(crate) fn new<'a>(path: &Path, pool: &'a Pool, bytes: u64) -> Result<Ring<'a>> {
        let file = File::options().read(true).write(true).create_new(true).open(path);
        let file = file.with_context(|| format!("making {}", path.display()))?;
        Ok(Ring { file, pool, blocks: Ring::in_blocks(bytes), written: 0 })
    }

    /// Number of whole blocks for `bytes` bytes, one at least.
    pub(crate) fn in_blocks(bytes: u64) -> u64 {
        bytes.div_ceil(Ring::BLOCK as u64).max(1)
    }

    /// Writes the next block.
    pub(crate) fn write(&mut self) -> Result<()> {
        let offset = self.offset(self.written);
        self.file.write_all_at(self.block(self.written), offset).with_context(|| format!("writing at {offset}"))?;
        self.written += 1;
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data().context("fdatasync")
    }

    /// Other bytes each time that a place comes round.
    fn block(&self, number: u64) -> &[u8] {
        self.pool.piece(number, Ring::BLOCK)
    }

    fn offset(&self, number: u64) -> u64 {
        number % self.blocks * Ring::BLOCK as u64
    }

    /// The last round holds what was written last.
    pub(crate) fn verify(&self) -> Result<()> {
        let mut found = vec![0; Ring::BLOCK];
        for number in self.written.saturating_sub(self.blocks)..self.written {
            self.file.read_exact_at(&mut found, self.offset(number))?;
            ensure!(found == self.block(number), "other bytes at {} than were written", self.offset(number));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As where only what is durable counts as taken.
    #[test]
    fn the_mark_is_reached_and_not_passed() {
        for (mut free, least, size) in [(1000, 300, 1), (1000, 999, 1), (1 << 40, 1 << 30, 1 << 20), (1000, 333, 7)] {
            let mut looks = 0;
            while let files @ 1.. = files_until_durable(free, least, size) {
                assert!(files == 1 || free - files * size as u64 >= least, "{files} files of {size} in {free}");
                (free, looks) = (free - files * size as u64, looks + 1);
            }
            assert!(free <= least && least - free < size as u64 && looks < 30, "{free} is left, after {looks} looks");
        }
        assert_eq!(files_until_durable(5, 9, 1), 0);
    }

    #[test]
    fn files_that_changed_are_found() {
        let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::new(5, 1 << 20));
        let mut files = Files { folder: folder.path().join("small"), size: 100, count: 0, pool: &pool };
        for _ in 0..Files::IN_A_FOLDER + 2 {
            files.write_next().unwrap();
        }
        files.verify(0..files.count).unwrap();
        assert!(files.path(Files::IN_A_FOLDER).starts_with(folder.path().join("small/1")));
        std::fs::write(files.path(Files::IN_A_FOLDER), vec![0; 100]).unwrap();
        assert!(files.verify(0..files.count).is_err());
        std::fs::remove_file(files.path(3)).unwrap();
        assert!(files.verify(0..files.count).is_err());
    }

    #[test]
    fn a_ring_goes_round_and_damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::new(1, 1 << 20);
        let mut ring = Ring::new(&folder.path().join("file"), &pool, 5 * Ring::BLOCK as u64).unwrap();
        for blocks in [5, 2, 4, 3] {
            (0..blocks).for_each(|_| ring.write().unwrap());
            ring.verify().unwrap();
        }
        assert_eq!((ring.written, ring.file.metadata().unwrap().len()), (14, 5 * Ring::BLOCK as u64));
        assert_ne!(ring.block(0), ring.block(5));
        ring.file.write_all_at(b"damage", 2 * Ring::BLOCK as u64 + 70).unwrap();
        assert!(ring.verify().is_err());
    }

    #[test]
    fn pieces_are_neither_zeros_nor_the_same() {
        let pool = Pool::new(1, 1 << 20);
        assert_ne!(pool.piece(0, 8192), pool.piece(1, 8192));
        assert!(pool.piece(7, 8192).iter().any(|byte| *byte != 0) && pool.piece(7, 0).is_empty());
    }
}
