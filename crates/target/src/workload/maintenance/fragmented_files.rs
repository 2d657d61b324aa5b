//! Files that lie in many pieces, until they are put together.

use super::{Pool, read_anew};
use crate::stack::Argv;
use crate::stage::{Stage, Timed};
use anyhow::{Context, Result, ensure};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Files that grow in turn, each by a piece that is allocated before the next file's is.
pub(super) struct FragmentedFiles<'a> {
    /// As the work sees them, and on the file system itself.
    pub(super) folder: PathBuf,
    pub(super) stored: PathBuf,
    pub(super) pool: &'a Pool,
    /// In how many fragments they lie; 0 before they are written.
    pub(super) fragments: u64,
}

impl FragmentedFiles<'_> {
    const FILES: u64 = 16;
    const OF_A_FILE: u64 = 256;
    const BYTES: usize = 16 << 10;

    /// File systems allocate more at once than is written, to keep files together. `fallocate` gets
    /// exactly what it asks for.
    pub(super) fn lay_out(&self) -> Result<()> {
        std::fs::create_dir(&self.folder)?;
        let make = |file| File::create_new(self.folder.join(format!("{file}")));
        let files = (0..Self::FILES).map(make).collect::<Result<Vec<_>, _>>().context("making files")?;
        for piece in 0..Self::OF_A_FILE {
            for (number, file) in files.iter().enumerate() {
                let at = piece * Self::BYTES as u64;
                fallocate(file, FallocateFlags::empty(), at, Self::BYTES as u64).context("allocating a piece")?;
                file.write_all_at(self.content(number as u64, piece), at).context("writing a piece")?;
            }
        }
        Ok(())
    }

    fn content(&self, file: u64, piece: u64) -> &[u8] {
        self.pool.piece(file * Self::OF_A_FILE + piece, Self::BYTES)
    }

    /// Fails where the file system has kept them together: then there is nothing to do.
    pub(super) fn count(&mut self, stage: &mut Stage) -> Result<()> {
        self.fragments = stage.fragments(&self.stored)?;
        ensure!(
            self.fragments >= 2 * Self::FILES,
            "{} files written in turn lie in {} fragments: there is nothing to defragment",
            Self::FILES,
            self.fragments
        );
        Ok(())
    }

    /// Each program is given all files.
    pub(super) fn put_together(&self, p: &mut Timed, programs: &[Argv]) -> Result<()> {
        p.handled(Self::FILES * Self::OF_A_FILE * Self::BYTES as u64, Self::FILES);
        let files: Vec<String> =
            (0..Self::FILES).map(|file| self.stored.join(format!("{file}")).display().to_string()).collect();
        programs.iter().try_for_each(|words| p.command(words.iter().chain(&files)))
    }

    /// They are what they were, in fewer fragments: how many there were, and are.
    pub(super) fn verify_fewer(&self, stage: &mut Stage) -> Result<[u64; 2]> {
        stage.check("reading back what was defragmented", || self.verify())?;
        let after = stage.fragments(&self.stored)?;
        ensure!(after < self.fragments, "{} fragments before, {after} after", self.fragments);
        Ok([self.fragments, after])
    }

    pub(super) fn verify(&self) -> Result<()> {
        for file in 0..Self::FILES {
            let found = read_anew(&self.folder.join(format!("{file}")))?;
            let whole = found.len() as u64 == Self::OF_A_FILE * Self::BYTES as u64;
            let same = (0..).zip(found.chunks(Self::BYTES)).all(|(piece, bytes)| bytes == self.content(file, piece));
            ensure!(whole && same, "file {file} of many pieces has other bytes");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_changed_or_are_missing_are_found() {
        let (folder, pool) = (tempfile::tempdir().unwrap(), Pool::new(3, 1 << 20));
        let at = folder.path().join("pieces");
        let pieces = FragmentedFiles { folder: at.clone(), stored: at.clone(), pool: &pool, fragments: 0 };
        pieces.lay_out().unwrap();
        pieces.verify().unwrap();
        let last = at.join(format!("{}", FragmentedFiles::FILES - 1));
        let whole = std::fs::read(&last).unwrap();
        let moved = [&whole[FragmentedFiles::BYTES..], &whole[..FragmentedFiles::BYTES]].concat();
        for wrong in [&moved, &whole[..whole.len() - FragmentedFiles::BYTES], &[&whole[..], &whole[..1]].concat()] {
            std::fs::write(&last, wrong).unwrap();
            assert!(pieces.verify().is_err(), "{} of {} bytes", wrong.len(), whole.len());
        }
    }
}
