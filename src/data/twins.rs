//! Files that may hold the same: a sample in which both of a pair are, or neither.
//!
//! A hash of the size decides whether files of that size are in. When there are too many, half of the sizes leave, and
//! so on; which ones does not depend on the order in which files came.

use super::profile::Kind;
use super::sketch::{Lowest, Numbers, Sample};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// So many files are kept, and of one size so many.
const FILES: usize = 4096;
const OF_ONE_SIZE: usize = 64;

pub struct Twins {
    seed: u64,
    /// So many leading zeros in a size's hash let it in.
    zeros: u32,
    sizes: Numbers<Alike>,
    kept: usize,
}

/// Files of one size.
pub struct Alike {
    pub size: u64,
    /// A random number of the size: see [`Twins::sizes`].
    pub order: u64,
    /// How many there are, by kind, names of one file each counted.
    pub files: BTreeMap<Kind, u64>,
    pub samples: Lowest,
}

impl Twins {
    pub fn new(seed: u64) -> Twins {
        Twins { seed, zeros: 0, sizes: Numbers::default(), kept: 0 }
    }

    /// Empty files are all alike, which is not worth telling.
    pub fn add(&mut self, kind: Kind, rank: u64, size: u64, sample: impl Fn() -> Sample) {
        let order = xxh3_64_with_seed(&size.to_le_bytes(), self.seed);
        if size == 0 || order.leading_zeros() < self.zeros {
            return;
        }
        let alike = self.sizes.entry(size).or_insert_with(|| Alike::new(size, order));
        *alike.files.entry(kind).or_default() += 1;
        if alike.samples.wants(rank) {
            let before = alike.samples.len();
            alike.samples.add(sample());
            self.kept += alike.samples.len() - before;
            self.shrink();
        }
    }

    pub fn merge(&mut self, other: Twins) {
        self.zeros = self.zeros.max(other.zeros);
        for (size, alike) in other.sizes {
            let own = self.sizes.entry(size).or_insert_with(|| Alike::new(size, alike.order));
            alike.files.into_iter().for_each(|(kind, files)| *own.files.entry(kind).or_default() += files);
            own.samples.merge(alike.samples);
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
        self.sizes.retain(|_, alike| alike.order.leading_zeros() >= zeros);
        self.kept = self.sizes.values().map(|alike| alike.samples.len()).sum();
    }

    /// In random order, so that the first ones are a sample of all.
    pub fn sizes(&self) -> Vec<&Alike> {
        let mut sizes: Vec<&Alike> = self.sizes.values().collect();
        sizes.sort_by_key(|alike| alike.order);
        sizes
    }
}

impl Alike {
    fn new(size: u64, order: u64) -> Alike {
        Alike { size, order, files: BTreeMap::new(), samples: Lowest::new(OF_ONE_SIZE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twins(numbers: impl Iterator<Item = u64>) -> Twins {
        let mut twins = Twins::new(1);
        for number in numbers {
            let sample = || Sample { rank: number, path: vec![], size: number / 2 };
            twins.add(Kind::Other, number, number / 2, sample);
        }
        twins
    }

    fn seen(twins: &Twins) -> Vec<(u64, u64)> {
        twins.sizes().iter().map(|alike| (alike.size, alike.files[&Kind::Other])).collect()
    }

    #[test]
    fn both_of_a_pair_are_in_whatever_the_order() {
        let up = twins(0..50_000);
        let mut parts = twins((0..20_000).rev());
        parts.merge(twins(20_000..50_000));
        assert_eq!(seen(&up), seen(&parts));
        assert!((1000..=FILES).contains(&up.kept), "{}", up.kept);
        assert!(seen(&up).iter().all(|(_, files)| *files == 2));
    }

    #[test]
    fn one_size_of_very_many_files_leaves_room_for_others() {
        let mut twins = twins(0..200);
        for rank in 0..10_000 {
            twins.add(Kind::Other, rank, 4096, || Sample { rank, path: vec![], size: 4096 });
        }
        assert_eq!(twins.sizes.len(), 100);
        assert_eq!((twins.sizes[&4096].files[&Kind::Other], twins.sizes[&4096].samples.len()), (10_000, OF_ONE_SIZE));
    }
}
