//! Files that are there twice, until their copies share their blocks.

use super::{AT_MOST, FILE, GIVEN_BACK, PAUSE, read_anew};
use crate::stack::Argv;
use crate::stage::Timed;
use crate::workload::room::Room;
use anyhow::{Context, Result, ensure};
use pickfs_system::random::Random;
use std::fs::File;
use std::path::PathBuf;

/// Files of which each has a copy in its own blocks: half of their bytes are duplicates.
pub(super) struct DedupFiles {
    pub(super) root: PathBuf,
}

impl DedupFiles {
    const FILES: u64 = 32;
    const DUPLICATES: u64 = Self::FILES * FILE as u64;

    pub(super) fn lay_out(&self) -> Result<()> {
        std::fs::create_dir(self.root.join("twice"))?;
        self.all().try_for_each(|(path, content)| std::fs::write(path, content)).context("writing files and copies")
    }

    fn all(&self) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
        let one = |number| (self.root.join(format!("twice/{number}")), Self::content(number % Self::FILES));
        (0..2 * Self::FILES).map(one)
    }

    /// No block is like another's.
    fn content(number: u64) -> Vec<u8> {
        let mut content = vec![0; FILE];
        Random::new(number, 2).fill(&mut content);
        content
    }

    /// Until nearly all that was there twice is free.
    pub(super) fn share(&self, p: &mut Timed, programs: &[Argv]) -> Result<()> {
        p.handled(2 * Self::DUPLICATES, 2 * Self::FILES);
        let before = Room::at(&self.root)?.free;
        programs.iter().try_for_each(|words| p.command(words))?;
        p.own(|| Ok(rustix::fs::syncfs(File::open(&self.root)?)?))?;
        let freed = || -> Result<u64> { Ok(Room::at(&self.root)?.free.saturating_sub(before)) };
        let wanted = (Self::DUPLICATES as f64 * GIVEN_BACK) as u64;
        let is_free = p.until(AT_MOST, PAUSE, || Ok(freed()? >= wanted))?;
        let freed = freed()?;
        ensure!(is_free, "of {} bytes that were there twice, {freed} were free after {AT_MOST:?}", Self::DUPLICATES);
        p.say("duplicate_bytes", Self::DUPLICATES as f64);
        p.say("freed_bytes", freed as f64);
        Ok(())
    }

    pub(super) fn verify(&self) -> Result<()> {
        self.all().try_for_each(|(path, content)| {
            let found = read_anew(&path)?;
            ensure!(found == content, "{} has other bytes since it is shared", path.display());
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_file_is_a_copy_and_must_stay_one() {
        let folder = tempfile::tempdir().unwrap();
        let twice = DedupFiles { root: folder.path().into() };
        twice.lay_out().unwrap();
        twice.verify().unwrap();
        let bytes = |number: u64| std::fs::read(folder.path().join(format!("twice/{number}"))).unwrap();
        assert!(bytes(0) == bytes(DedupFiles::FILES) && bytes(0) != bytes(1));
        let blocks: std::collections::BTreeSet<Vec<u8>> = (0..DedupFiles::FILES)
            .flat_map(|number| bytes(number).chunks(4096).map(Vec::from).collect::<Vec<_>>())
            .collect();
        assert_eq!(blocks.len() as u64 * 4096, DedupFiles::DUPLICATES, "a block is there more often than twice");
        let mut changed = bytes(3);
        changed[77] ^= 1;
        std::fs::write(folder.path().join("twice/3"), changed).unwrap();
        assert!(twice.verify().is_err());
    }
}
