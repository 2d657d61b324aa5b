//! Whether btrfs tries to compress a piece: the kernel looks at sixteen of every 256 bytes and at
//! how often each value occurs there, as compressing in vain costs more than it may bring.
//!
//! It tries when the sample's halves are equal, when few values occur, when few values make up most
//! of it, or when Shannon's entropy is below 80 % of what eight bits can hold; it does not when two
//! hundred values are needed for most of it. Steps and limits are from btrfs' documentation and the
//! kernel's comments (Timofey Titovets, 2017); whole numbers throughout, as there.

const STEP: usize = 256;
const READ: usize = 16;
const SECTOR: usize = 4096;
/// Fewer values than this are compressed without a further look.
const FEW_VALUES: usize = 64;
/// Number of distinct values that make up nine tenths of the sample: data with at most the first
/// compresses well, data with at least the second does not.
const CORE_LOW: usize = 64;
const CORE_HIGH: usize = 200;
/// Percent of the highest possible entropy.
const HIGH_ENTROPY: u64 = 80;

/// Whether btrfs would try. What is missing of the last sector are zeros.
pub fn worth_trying(piece: &[u8]) -> bool {
    let sample = sample(piece);
    let half = sample.len() / 2;
    if sample[..half] == sample[half..2 * half] {
        return true;
    }
    let mut counts = [0u64; 256];
    sample.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    if counts.iter().filter(|count| **count > 0).count() < FEW_VALUES {
        return true;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let core = core_values(&counts, sample.len() as u64);
    core <= CORE_LOW || (core < CORE_HIGH && entropy(&counts, sample.len() as u64) < HIGH_ENTROPY)
}

fn sample(piece: &[u8]) -> Vec<u8> {
    let mut sample = Vec::with_capacity(piece.len().next_multiple_of(SECTOR) / STEP * READ);
    for at in (0..piece.len().next_multiple_of(SECTOR)).step_by(STEP) {
        let end = piece.len().min(at + READ);
        sample.extend_from_slice(piece.get(at..end).unwrap_or(&[]));
        sample.resize(at / STEP * READ + READ, 0);
    }
    sample
}

/// How many of the most frequent values make up nine tenths, counted as the kernel does: less one.
fn core_values(counts: &[u64; 256], all: u64) -> usize {
    let enough = all * 90 / 100;
    let mut sum = 0;
    for (index, count) in counts.iter().enumerate() {
        sum += count;
        if sum > enough || *count == 0 || index == CORE_HIGH {
            return index;
        }
    }
    counts.len()
}

/// In parts of a hundred of eight bits, from logarithms in quarters of a bit, rounded down.
fn entropy(counts: &[u64; 256], all: u64) -> u64 {
    let quarters = |n: u64| u64::from((n * n * n * n).ilog2());
    let held = counts.iter().filter(|count| **count > 0);
    let sum: u64 = held.map(|count| count * (quarters(all) - quarters(*count))).sum();
    sum / all.max(1) * 100 / (8 * 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;
    use crate::profile::Stuff;
    use pickfs_system::random::Random;

    const PIECE: usize = 128 << 10;

    fn made(stuff: Stuff) -> Vec<u8> {
        Content::new().like(stuff, &mut Random::new(7, 1), PIECE).to_vec()
    }

    #[test]
    fn text_is_tried_and_noise_is_not() {
        assert!(worth_trying(&made(Stuff::Source)) && worth_trying(&made(Stuff::Object)));
        assert!(!worth_trying(&made(Stuff::Media)));
        assert!(worth_trying(&[]) && worth_trying(&[0; PIECE]));
    }

    #[test]
    fn halves_that_repeat_are_tried_whatever_they_hold() {
        let noise = &made(Stuff::Media)[..PIECE / 2];
        assert!(!worth_trying(noise));
        assert!(worth_trying(&[noise, noise].concat()));
    }

    #[test]
    fn the_rest_of_a_small_files_sector_counts_as_zeros() {
        let noise = made(Stuff::Media);
        assert!(worth_trying(&noise[..1000]));
        assert_eq!(sample(&noise[..1000]).len(), 256);
        assert_eq!(sample(&noise[..1000])[4 * 16 - 1..4 * 16 + 1], [noise[3 * 256 + 15], 0]);
    }

    #[test]
    fn entropy_is_of_a_hundred() {
        let even = |values: usize| std::array::from_fn(|i| if i < values { 32 } else { 0 });
        assert_eq!([1, 16, 64, 256].map(|values| entropy(&even(values), 32 * values as u64)), [0, 50, 75, 100]);
        assert_eq!([1, 16, 256].map(|values| core_values(&even(values), 32 * values as u64)), [0, 14, 200]);
    }
}
