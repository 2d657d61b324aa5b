//! Counts in bounded memory that are the same however the work was shared out: of sizes, of entries
//! in directories, and samples.
//!
//! Each keeps what depends on the whole set alone, not on the order in which it came, and two of
//! them merge into what one would have been.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// For keys that are numbers: one multiplication (Fibonacci hashing, Knuth 1973), as our own names
/// make no collisions on purpose.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

pub(crate) type Numbers<T> = HashMap<u64, T, BuildHasherDefault<Mixer>>;

/// How many files have each size. Exact until there are too many different sizes; then as many
/// leading bits are kept as fit, and each cell stands for the smallest size in it, so that a size
/// that many files share stays what it is.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// (smallest size, files) by the size without its last bits.
    cells: Numbers<(u64, u64)>,
    /// Leading bits that are kept.
    bits: u32,
    most: usize,
}

impl Sizes {
    /// Just under seven eighths of a power of two, where the table would double.
    pub(crate) const CELLS: usize = 28_000;

    pub(crate) fn new(most: usize) -> Sizes {
        Sizes { cells: Numbers::default(), bits: 64, most }
    }

    pub(crate) fn add(&mut self, size: u64, files: u64) {
        self.put(size, files);
        self.shrink();
    }

    pub(crate) fn merge(&mut self, other: &Sizes) {
        self.keep(self.bits.min(other.bits));
        for (size, files) in other.cells.values() {
            self.add(*size, *files);
        }
    }

    /// Twelve leading bits are a part in four thousand; less would show.
    fn shrink(&mut self) {
        while self.cells.len() > self.most && self.bits > 8 {
            self.keep(if self.bits == 64 { 16 } else { self.bits - 1 });
        }
    }

    fn keep(&mut self, bits: u32) {
        if bits < self.bits {
            let mut fewer = Sizes { cells: Numbers::default(), bits, most: self.most };
            self.cells.values().for_each(|(size, files)| fewer.put(*size, *files));
            *self = fewer;
        }
    }

    fn put(&mut self, size: u64, files: u64) {
        let cell = self.cells.entry(leading(size, self.bits)).or_insert((size, 0));
        *cell = (cell.0.min(size), cell.1 + files);
    }

    pub(crate) fn files(&self) -> u64 {
        self.cells.values().map(|(_, files)| files).sum()
    }

    /// The sizes at `points` equally distant places from the smallest to the largest file; all
    /// sizes when there are fewer files than that.
    pub(crate) fn quantiles(&self, points: usize) -> Vec<u64> {
        let mut cells: Vec<(u64, u64)> = self.cells.values().copied().collect();
        cells.sort_unstable();
        let files = self.files();
        let points = points.min(files as usize);
        let (mut at, mut before) = (0, 0);
        let mut quantile = |point: usize| {
            let place = (u128::from(files - 1) * point as u128 / (points - 1).max(1) as u128) as u64;
            while before + cells[at].1 <= place {
                before += cells[at].1;
                at += 1;
            }
            cells[at].0
        };
        (0..points).map(&mut quantile).collect()
    }
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes::new(Self::CELLS)
    }
}

/// The number with all but its `bits` leading bits cleared.
fn leading(number: u64, bits: u32) -> u64 {
    let last = (64 - number.leading_zeros()).saturating_sub(bits);
    number >> last << last
}

/// Histogram of directories by their number of entries: exact for few entries; for many, in cells
/// of an eighth with the exact mean.
#[derive(Clone, Debug, Default)]
pub struct Fans(BTreeMap<u64, (u64, u64)>);

impl Fans {
    pub(crate) fn add(&mut self, entries: u64) {
        self.put(entries, 1, entries);
    }

    pub(crate) fn merge(&mut self, other: &Fans) {
        other.0.iter().for_each(|(entries, (directories, sum))| self.put(*entries, *directories, *sum));
    }

    fn put(&mut self, entries: u64, directories: u64, sum: u64) {
        let cell = self.0.entry(leading(entries, 4)).or_default();
        *cell = (cell.0 + directories, cell.1 + sum);
    }

    /// (Entries, directories), ascending. Above 16 entries `bits` leading bits distinguish cells,
    /// and a cell becomes two pairs of neighbours with the cell's mean.
    pub(crate) fn pairs(&self, bits: u32) -> Vec<(u64, u64)> {
        let mut cells: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (entries, (directories, sum)) in &self.0 {
            let key = if *entries <= 16 { *entries } else { leading(*entries, bits).max(17) };
            let cell = cells.entry(key).or_default();
            *cell = (cell.0 + directories, cell.1 + sum);
        }
        let mut pairs: BTreeMap<u64, u64> = BTreeMap::new();
        for (directories, sum) in cells.into_values() {
            *pairs.entry(sum / directories).or_default() += directories - sum % directories;
            *pairs.entry(sum / directories + 1).or_default() += sum % directories;
        }
        pairs.into_iter().filter(|(_, directories)| *directories > 0).collect()
    }
}

/// A file that was drawn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sample {
    /// A random number that the file had from the start; a sample's files are those with the
    /// lowest.
    pub rank: u64,
    /// Below the root of the walk.
    pub path: Vec<u8>,
    /// Bytes.
    pub size: u64,
}

/// The files with the lowest ranks of all that came: a random sample, whatever the order. A rank
/// that comes twice is one file with two names, and keeps the first by name.
#[derive(Clone, Debug)]
pub struct Lowest {
    samples: BTreeMap<u64, Sample>,
    most: usize,
}

impl Lowest {
    pub(crate) fn new(most: usize) -> Lowest {
        Lowest { samples: BTreeMap::new(), most }
    }

    /// Whether a file of that rank would be kept.
    pub(crate) fn wants(&self, rank: u64) -> bool {
        self.samples.len() < self.most || self.samples.last_key_value().is_some_and(|(last, _)| rank <= *last)
    }

    pub(crate) fn add(&mut self, sample: Sample) {
        if !self.wants(sample.rank) {
            return;
        }
        let known = self.samples.entry(sample.rank).or_insert_with(|| sample.clone());
        if sample.path < known.path {
            *known = sample;
        }
        if self.samples.len() > self.most {
            self.samples.pop_last();
        }
    }

    pub(crate) fn merge(&mut self, other: Lowest) {
        other.samples.into_values().for_each(|sample| self.add(sample));
    }

    /// By rank.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.samples.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::random::Random;

    /// Half lognormal, a third 4096 exactly, the rest 0.
    fn made_up(files: usize) -> Vec<u64> {
        let mut random = Random::new(5, 0);
        let mut size = |number: usize| match number % 6 {
            0..3 => random.lognormal(20_000.0, 2.5) as u64,
            3 | 4 => 4096,
            _ => 0,
        };
        (0..files).map(&mut size).collect()
    }

    fn sketch(sizes: &[u64], most: usize) -> Sizes {
        let mut sketch = Sizes::new(most);
        sizes.iter().for_each(|size| sketch.add(*size, 1));
        sketch
    }

    /// The largest difference between the shares of files that are no larger than a size.
    fn distance(a: &[u64], b: &[u64]) -> f64 {
        let share = |of: &[u64], size| of.partition_point(|other| *other <= size) as f64 / of.len() as f64;
        a.iter().chain(b).map(|size| (share(a, *size) - share(b, *size)).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn quantiles_are_near_also_where_many_files_have_one_size() {
        let mut sizes = made_up(60_000);
        for most in [100_000, 5_000] {
            let found = sketch(&sizes, most).quantiles(201);
            sizes.sort_unstable();
            let far = distance(&sizes, &found);
            assert!(far <= 0.0055, "{far} with {most} cells");
            assert_eq!((found[0], found[100]), (0, sizes[29_999]));
            assert!(found.iter().filter(|size| **size == 4096).count() >= 66);
        }
    }

    #[test]
    fn merged_is_as_if_counted_by_one() {
        let sizes = made_up(20_000);
        for most in [100_000, 3_000] {
            let mut parts = sketch(&sizes[..13_000], most);
            parts.merge(&sketch(&sizes[13_000..], most));
            let whole = sketch(&sizes, most);
            assert_eq!((parts.files(), parts.bits), (20_000, whole.bits));
            assert_eq!(parts.quantiles(999), whole.quantiles(999));
        }
    }

    #[test]
    fn few_files_are_all_told() {
        let cases: [(&[u64], &[u64]); 3] = [(&[], &[]), (&[7], &[7]), (&[9, 7, 7], &[7, 7, 9])];
        for (sizes, wanted) in cases {
            assert_eq!(sketch(sizes, 100).quantiles(201), wanted);
        }
    }

    #[test]
    fn fans_are_exact_for_few_and_right_in_the_mean_for_many() {
        let mut fans = Fans::default();
        let counts = [0, 0, 3, 16, 17, 100, 101, 120, 5000];
        counts.iter().for_each(|count| fans.add(*count));
        for bits in [1, 2, 4] {
            let pairs = fans.pairs(bits);
            assert_eq!(pairs[..3], [(0, 2), (3, 1), (16, 1)], "{bits}");
            let sum: u64 = pairs.iter().map(|(entries, directories)| entries * directories).sum();
            let directories: u64 = pairs.iter().map(|pair| pair.1).sum();
            assert_eq!((sum, directories), (counts.iter().sum(), 9), "{bits}");
        }
    }

    #[test]
    fn samples_do_not_depend_on_the_order() {
        let sample = |rank: u64| Sample { rank: rank * 37 % 101, path: vec![rank as u8], size: rank };
        let (mut up, mut down) = (Lowest::new(10), Lowest::new(10));
        (0..101).for_each(|number| up.add(sample(number)));
        (0..101).rev().for_each(|number| down.add(sample(number)));
        assert!(up.iter().eq(down.iter()));
        assert!(up.iter().map(|sample| sample.rank).eq(0..10));
        let twice = |path: u8| Sample { rank: 3, path: vec![path], size: 0 };
        let mut named = Lowest::new(2);
        [2, 1, 3].into_iter().for_each(|path| named.add(twice(path)));
        assert_eq!(named.iter().collect::<Vec<_>>(), [&twice(1)]);
    }
}
