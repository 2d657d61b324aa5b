//! Blocks of the files of a tree, chosen at random: the larger a file, the likelier is one of its
//! blocks.

use anyhow::{Result, ensure};
use pickfs_system::random::Random;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub(crate) const BLOCK: usize = 4096;

/// A tree's files that hold something.
pub(crate) struct Blocks {
    /// In the order of names, with their bytes.
    pub files: Vec<(PathBuf, u64)>,
    /// Blocks of each file and those before it.
    sums: Vec<u64>,
}

/// A piece of a file; what is shorter than a block is the whole of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece<'a> {
    pub path: &'a Path,
    pub start: u64,
    pub length: usize,
}

impl Blocks {
    pub(crate) fn of(tree: &Path) -> Result<Blocks> {
        let mut files = Vec::new();
        for entry in walkdir::WalkDir::new(tree).sort_by_file_name() {
            let entry = entry?;
            let bytes = if entry.file_type().is_file() { entry.metadata()?.len() } else { 0 };
            if bytes > 0 {
                files.push((entry.into_path(), bytes));
            }
        }
        ensure!(!files.is_empty(), "no file of the tree holds a byte");
        let add = |sum: &mut u64, (_, bytes): &(PathBuf, u64)| {
            *sum += bytes.div_ceil(BLOCK as u64);
            Some(*sum)
        };
        let sums = files.iter().scan(0, add).collect();
        Ok(Blocks { files, sums })
    }

    pub(crate) fn count(&self) -> u64 {
        self.sums.last().copied().unwrap_or_default()
    }

    pub(crate) fn any(&self, random: &mut Random) -> Piece<'_> {
        self.piece(random.below(self.count()))
    }

    /// A piece of any file, the small as likely as the large.
    pub(crate) fn of_any_file(&self, random: &mut Random) -> Piece<'_> {
        let at = random.index(self.files.len());
        let before = if at == 0 { 0 } else { self.sums[at - 1] };
        self.piece(before + random.below(self.sums[at] - before))
    }

    /// Different ones in random order, as many as there are at most.
    pub(crate) fn different(&self, count: u64, random: &mut Random) -> Vec<Piece<'_>> {
        let (mut met, mut chosen) = (HashSet::new(), Vec::new());
        while (chosen.len() as u64) < count.min(self.count()) {
            let block = random.below(self.count());
            if met.insert(block) {
                chosen.push(self.piece(block));
            }
        }
        chosen
    }

    fn piece(&self, block: u64) -> Piece<'_> {
        let at = self.sums.partition_point(|sum| *sum <= block);
        let (path, bytes) = &self.files[at];
        let start = (block - if at == 0 { 0 } else { self.sums[at - 1] }) * BLOCK as u64;
        Piece { path, start, length: (bytes - start).min(BLOCK as u64) as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_there_once() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("a", 1), ("b", 4096), ("c", 4097), ("empty", 0)] {
            std::fs::write(folder.path().join(name), vec![0; bytes]).unwrap();
        }
        let blocks = Blocks::of(folder.path()).unwrap();
        assert_eq!(blocks.files.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [1, 4096, 4097]);
        let mut all = blocks.different(100, &mut Random::new(1, 0));
        all.sort_by_key(|piece| (piece.path, piece.start));
        let found: Vec<(u64, usize)> = all.iter().map(|piece| (piece.start, piece.length)).collect();
        assert_eq!(found, [(0, 1), (0, 4096), (0, 4096), (4096, 1)]);
        assert_eq!(blocks.different(2, &mut Random::new(1, 0)).len(), 2);
        let mut random = Random::new(1, 0);
        let of_files: HashSet<(&Path, u64)> =
            (0..100).map(|_| blocks.of_any_file(&mut random)).map(|piece| (piece.path, piece.start)).collect();
        assert_eq!(of_files.len(), 4);
        std::fs::remove_file(folder.path().join("c")).unwrap();
        assert!(Blocks::of(&folder.path().join("empty")).is_err());
    }
}
