//! Files that may hold the same: a sample in which both of a pair are, or neither.
//!
//! A hash of the size decides whether files of that size are in. When there are too many, half of
//! the sizes leave, and so on; which ones does not depend on the order in which files came.

use crate::profile::Kind;
use crate::scan::sketch::{Lowest, Numbers, Sample};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Most files that are kept in all, and most of one size.
const FILES: usize = 4096;
const OF_ONE_SIZE: usize = 64;

pub struct SameSizeFiles {
    seed: u64,
    /// A size is kept if its hash has at least this many leading zeros.
    zeros: u32,
    sizes: Numbers<SizeGroup>,
    kept: usize,
}

/// Files of one size.
pub(crate) struct SizeGroup {
    pub size: u64,
    /// A random number of the size: see [`SameSizeFiles::sizes`].
    pub order: u64,
    /// How many there are, by kind, names of one file each counted.
    pub files: BTreeMap<Kind, u64>,
    pub samples: Lowest,
}

impl SameSizeFiles {
    pub(crate) fn new(seed: u64) -> SameSizeFiles {
        SameSizeFiles { seed, zeros: 0, sizes: Numbers::default(), kept: 0 }
    }

    /// Empty files are all alike, which is not worth telling.
    pub(crate) fn add(&mut self, kind: Kind, rank: u64, size: u64, sample: impl Fn() -> Sample) {
        let order = xxh3_64_with_seed(&size.to_le_bytes(), self.seed);
        if size == 0 || order.leading_zeros() < self.zeros {
            return;
        }
        let group = self.sizes.entry(size).or_insert_with(|| SizeGroup::new(size, order));
        *group.files.entry(kind).or_default() += 1;
        if group.samples.wants(rank) {
            let before = group.samples.len();
            group.samples.add(sample());
            self.kept += group.samples.len() - before;
            self.shrink();
        }
    }

    pub(crate) fn merge(&mut self, other: SameSizeFiles) {
        self.zeros = self.zeros.max(other.zeros);
        for (size, group) in other.sizes {
            let own = self.sizes.entry(size).or_insert_with(|| SizeGroup::new(size, group.order));
            group.files.into_iter().for_each(|(kind, files)| *own.files.entry(kind).or_default() += files);
            own.samples.merge(group.samples);
        }
        self.leave();
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.kept > FILES && self.zeros < 63 {
            self.zeros += 1;
            self.leave();
        }
    }

    fn leave(&mut self) {
        let zeros = self.zeros;
        self.sizes.retain(|_, group| group.order.leading_zeros() >= zeros);
        self.kept = self.sizes.values().map(|group| group.samples.len()).sum();
    }

    /// In random order, so that the first ones are a sample of all.
    pub(crate) fn sizes(&self) -> Vec<&SizeGroup> {
        let mut sizes: Vec<&SizeGroup> = self.sizes.values().collect();
        sizes.sort_by_key(|group| group.order);
        sizes
    }
}

impl SizeGroup {
    fn new(size: u64, order: u64) -> SizeGroup {
        SizeGroup { size, order, files: BTreeMap::new(), samples: Lowest::new(OF_ONE_SIZE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same_size(numbers: impl Iterator<Item = u64>) -> SameSizeFiles {
        let mut same_size = SameSizeFiles::new(1);
        for number in numbers {
            let sample = || Sample { rank: number, path: vec![], size: number / 2 };
            same_size.add(Kind::Other, number, number / 2, sample);
        }
        same_size
    }

    fn seen(same_size: &SameSizeFiles) -> Vec<(u64, u64)> {
        same_size.sizes().iter().map(|group| (group.size, group.files[&Kind::Other])).collect()
    }

    #[test]
    fn both_of_a_pair_are_in_whatever_the_order() {
        let up = same_size(0..50_000);
        let mut parts = same_size((0..20_000).rev());
        parts.merge(same_size(20_000..50_000));
        assert_eq!(seen(&up), seen(&parts));
        assert!((1000..=FILES).contains(&up.kept), "{}", up.kept);
        assert!(seen(&up).iter().all(|(_, files)| *files == 2));
    }

    #[test]
    fn one_size_of_very_many_files_leaves_room_for_others() {
        let mut same_size = same_size(0..200);
        for rank in 0..10_000 {
            same_size.add(Kind::Other, rank, 4096, || Sample { rank, path: vec![], size: 4096 });
        }
        assert_eq!(same_size.sizes.len(), 100);
        assert_eq!(
            (same_size.sizes[&4096].files[&Kind::Other], same_size.sizes[&4096].samples.len()),
            (10_000, OF_ONE_SIZE)
        );
    }
}
