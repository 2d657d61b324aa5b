//! How the files lie on the device: in one piece, or in many.
//!
//! The layout score is that of Smith and Seltzer (File System Aging, SIGMETRICS 1997): of all
//! blocks of files but each file's first, the share that lies right behind its predecessor; 1 is a
//! perfect layout. A fragment is what lies in one piece, so extents that touch each other are one
//! fragment.
//!
//! Of compressed data (btrfs), only the place where an extent begins is reported, not its length
//! there. Its blocks count as adjacent, because they are read together, and the next extent counts
//! as touching it if it begins behind it, within its length uncompressed. Files inside the metadata
//! have no own block; they count as one fragment and no blocks.

use super::{Probe, Reading, Subject, state};
use pickfs_system::sys::extents::{Extent, Place, extents};
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use walkdir::WalkDir;

const BLOCK: u64 = 4096;

pub(super) const PROBE: Probe = Probe {
    name: "layout",
    about: "share of blocks that lie right behind the one before, fragments of files, where the file system reports it (FIEMAP)",
    read,
    only_after_writing: true,
};

fn read(subject: &Subject) -> Vec<Reading> {
    let Ok(Some(found)) = Found::of(&subject.mount_point) else { return Vec::new() };
    let score = found.score().map(|score| state("layout_adjacent_share", score));
    let (mean, p99) = (found.mean_fragments(), found.fragments_at(0.99));
    let counts = [state("layout_fragments_mean", mean), state("layout_fragments_p99", p99 as f64)];
    score.into_iter().chain(counts).collect()
}

/// The layout of a tree's files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// Blocks that are not the first of their file.
    followers: u64,
    /// Those of them that lie right behind their predecessor.
    adjacent: u64,
    /// Fragments of each file that has any, sorted.
    fragments: Vec<u64>,
}

impl Found {
    /// `None` where no file has an extent or the file system reports none; dirty data must have
    /// been written.
    pub(crate) fn of(root: &Path) -> io::Result<Option<Found>> {
        let mut found = Found::default();
        let mut met = HashSet::new();
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32;
        for entry in WalkDir::new(root).same_file_system(true) {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let metadata = entry.metadata()?;
            if metadata.nlink() == 1 || met.insert(metadata.ino()) {
                let file = OpenOptions::new().read(true).custom_flags(flags).open(entry.path())?;
                found.add(&extents(&file)?);
            }
        }
        found.fragments.sort_unstable();
        Ok((!found.fragments.is_empty()).then_some(found))
    }

    fn add(&mut self, extents: &[Extent]) {
        let there: Vec<&Extent> =
            extents.iter().filter(|extent| !matches!(extent.place, Place::Nowhere | Place::Unwritten)).collect();
        let blocks = |extent: &&Extent| if extent.place == Place::Inside { 0 } else { extent.bytes.div_ceil(BLOCK) };
        let all: u64 = there.iter().map(blocks).sum();
        let touching = there.windows(2).filter(|pair| touches(pair[0], pair[1])).count() as u64;
        let with_blocks = there.iter().filter(|extent| blocks(extent) > 0).count() as u64;
        if !there.is_empty() {
            self.followers += all.saturating_sub(1);
            self.adjacent += all - with_blocks + touching;
            self.fragments.push(there.len() as u64 - touching);
        }
    }

    /// Fragments of all files together.
    pub(crate) fn fragments(&self) -> u64 {
        self.fragments.iter().sum()
    }

    pub(crate) fn files(&self) -> usize {
        self.fragments.len()
    }

    /// 1: every file lies in one piece. `None` where no file has two blocks.
    pub(crate) fn score(&self) -> Option<f64> {
        (self.followers > 0).then(|| self.adjacent as f64 / self.followers as f64)
    }

    pub(crate) fn mean_fragments(&self) -> f64 {
        self.fragments() as f64 / self.fragments.len() as f64
    }

    /// The number of fragments that this share of the files does not exceed.
    pub(crate) fn fragments_at(&self, share: f64) -> u64 {
        let place = (self.fragments.len() as f64 * share).ceil() as usize;
        self.fragments[place.clamp(1, self.fragments.len()) - 1]
    }
}

fn touches(one: &Extent, next: &Extent) -> bool {
    match (one.place, next.place) {
        (Place::Inside, _) | (_, Place::Inside) => false,
        (Place::Encoded, _) => next.physical > one.physical && next.physical <= one.physical + one.bytes,
        _ => next.physical == one.physical + one.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extents one behind the other in the file: where each begins on the device and how long it
    /// is, in blocks.
    fn file(list: &[(u64, u64, Place)]) -> Vec<Extent> {
        let mut logical = 0;
        let extent = |&(physical, blocks, place): &(u64, u64, Place)| {
            logical += blocks * BLOCK;
            Extent { logical: logical - blocks * BLOCK, physical: physical * BLOCK, bytes: blocks * BLOCK, place }
        };
        list.iter().map(extent).collect()
    }

    /// Extents, then followers, adjacent ones among them, fragments.
    type Case = (&'static [(u64, u64, Place)], u64, u64, u64);

    #[test]
    fn scores_are_those_of_hand_made_files() {
        use Place::*;
        let cases: [Case; 11] = [
            (&[(100, 8, Plain)], 7, 7, 1),
            (&[(100, 4, Plain), (104, 4, Plain)], 7, 7, 1),
            (&[(100, 4, Plain), (105, 4, Plain)], 7, 6, 2),
            (&[(100, 4, Plain), (50, 4, Plain), (54, 2, Plain)], 9, 8, 2),
            (&[(9, 1, Plain), (7, 1, Plain), (5, 1, Plain)], 2, 0, 3),
            (&[(100, 32, Encoded), (110, 32, Encoded), (132, 32, Encoded)], 95, 95, 1),
            (&[(100, 32, Encoded), (133, 32, Encoded), (90, 32, Encoded)], 95, 93, 3),
            (&[(0, 1, Inside)], 0, 0, 1),
            (&[(100, 2, Plain), (102, 9, Nowhere)], 1, 1, 1),
            (&[(100, 2, Plain), (102, 9, Unwritten)], 1, 1, 1),
            (&[(100, 1, Plain)], 0, 0, 1),
        ];
        for (list, followers, adjacent, fragments) in cases {
            let mut found = Found::default();
            found.add(&file(list));
            assert_eq!(found, Found { followers, adjacent, fragments: vec![fragments] }, "{list:?}");
        }
        let mut found = Found::default();
        found.add(&file(&[(1, 5, Nowhere)]));
        found.add(&[]);
        assert_eq!(found, Found::default());
    }

    #[test]
    fn files_come_together() {
        let found = Found { followers: 8, adjacent: 6, fragments: [vec![1; 98], vec![4, 9]].concat() };
        assert_eq!((found.score(), found.fragments(), found.mean_fragments()), (Some(0.75), 111, 1.11));
        assert_eq!([0.0, 0.5, 0.98, 0.985, 1.0].map(|share| found.fragments_at(share)), [1, 1, 1, 4, 9]);
        assert_eq!(Found { followers: 0, ..found }.score(), None);
    }

    #[test]
    fn where_nothing_is_told_nothing_is_read() {
        assert_eq!(read(&Subject { mount_point: "/proc/self/fdinfo".into(), ..Subject::default() }), []);
        assert_eq!(read(&Subject { mount_point: "/nowhere".into(), ..Subject::default() }), []);
    }
}
