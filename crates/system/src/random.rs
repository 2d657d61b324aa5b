//! Random numbers that are the same on every machine and in every release.
//!
//! The raw stream of xoshiro256++ is fixed by its definition; what `rand` makes of such a stream is
//! not, so the mapping to ranges and distributions is done here, with nothing but integer and
//! exactly rounded (IEEE 754) operations: the last bit of a library's `exp` or `ln` may differ
//! between machines.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Every stream of a seed is a different sequence, so that each file has its own.
    pub fn new(seed: u64, stream: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(xxh3_64_with_seed(&stream.to_le_bytes(), seed)))
    }

    /// All 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fills with bytes that no compressor shrinks.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// Below `end`, by multiplication; its bias is under 2^-32 for every range used here.
    pub fn below(&mut self, end: u64) -> u64 {
        scale(self.bits(), end)
    }

    /// An index of something that long.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Every order as likely as any other.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for place in (1..all.len()).rev() {
            all.swap(place, self.index(place + 1));
        }
    }

    /// Standard normal to within a few parts in a hundred out to three deviations: the sum of
    /// twelve uniforms.
    fn normal(&mut self) -> f64 {
        let uniform = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        (0..12).map(|_| uniform(self.bits())).sum::<f64>() - 6.0
    }

    /// Lognormal: the exponential is (1 + x/1024)^1024.
    pub fn lognormal(&mut self, median: f64, deviation: f64) -> f64 {
        let root = 1.0 + deviation * self.normal() / 1024.0;
        median * (0..10).fold(root, |power, _| power * power)
    }
}

/// Maps all of u64 to below `end`, in order.
pub fn scale(bits: u64, end: u64) -> u64 {
    ((u128::from(bits) * u128::from(end)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_pinned() {
        let mut random = Random::new(42, 0);
        let first = [random.bits(), random.bits(), random.below(1000)];
        assert_eq!(first, [4743269192790329603, 5449243938200292681, 222]);
        assert_ne!(Random::new(42, 1).bits(), first[0]);
    }

    #[test]
    fn sizes_have_the_median_and_spread_asked_for() {
        let mut random = Random::new(1, 0);
        let mut sizes: Vec<f64> = (0..20_001).map(|_| random.lognormal(4096.0, 1.3)).collect();
        sizes.sort_by(f64::total_cmp);
        assert!((3900.0..4300.0).contains(&sizes[10_000]), "median {}", sizes[10_000]);
        let upper = sizes[16_826] / sizes[10_000]; // one deviation up
        assert!((3.4..3.95).contains(&upper), "e^1.3 = 3.67, found {upper}");
    }
}
