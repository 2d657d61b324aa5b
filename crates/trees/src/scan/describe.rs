//! From a survey to a profile: quantiles, pairs and shares, in as much detail as fits into an
//! issue.

use super::sketch::Sizes;
use super::survey::{Survey, Tally};
use super::{duplicates, measure};
use crate::profile::{Class, Contents, Kind, Level, Names, Profile, SCHEMA};
use anyhow::Result;
use std::collections::BTreeMap;

/// Bytes of a profile as a file, at most: half of what an issue may have.
pub(crate) const LARGEST_PROFILE: usize = 32 << 10;

/// How detailed the description is.
struct Detail {
    /// Quantiles of the sizes of a kind that is not rare.
    points: usize,
    /// Largest sizes.
    largest: usize,
    /// Leading bits of the numbers of entries above 16.
    bits: u32,
    /// Rows about content.
    rows: usize,
}

/// Less and less, for trees of many kinds and levels.
const DETAILS: [Detail; 4] = [
    Detail { points: 201, largest: 32, bits: 3, rows: 90 },
    Detail { points: 201, largest: 16, bits: 2, rows: 70 },
    Detail { points: 101, largest: 8, bits: 1, rows: 50 },
    Detail { points: 51, largest: 4, bits: 1, rows: 30 },
];
/// Kinds with a smaller share of the files get fewer points.
const RARE: f64 = 0.05;

/// What was found by reading: nothing where that was not wanted.
#[derive(Default)]
struct Read {
    measured: measure::Measured,
    repeated: BTreeMap<Kind, f64>,
}

/// The profile of what was surveyed. With `content` files are read, a bounded number of them.
pub fn describe(survey: &Survey, content: bool, threads: usize, about: String) -> Result<Profile> {
    let read = if content {
        Read { measured: measure::measure(survey, threads), repeated: duplicates::repeated(survey, threads) }
    } else {
        Read::default()
    };
    let holes: BTreeMap<Kind, (f64, f64)> =
        survey.kinds.iter().map(|(kind, tally)| (*kind, duplicates::holes(survey, &tally.thin, tally.files))).collect();
    let mut profile = Profile::default();
    for detail in &DETAILS {
        let mut contents = read.measured.contents(survey, detail.rows);
        let class = |(kind, tally): (&Kind, &Tally)| Class {
            duplicates: significant(read.repeated.get(kind).copied().unwrap_or(0.0)),
            sparse: significant(holes[kind].0),
            holes: (holes[kind].1 * 1e6).round() / 1e6,
            contents: contents.remove(kind).unwrap_or_default().into_iter().map(shortened).collect(),
            ..sizes(*kind, tally, survey.files(), detail)
        };
        let classes = survey.kinds.iter().filter(|(_, tally)| tally.files > 0).map(class).collect();
        let levels = levels(survey, detail);
        profile =
            Profile { schema: SCHEMA, about: about.clone(), names: names(survey), directories: None, levels, classes };
        if profile.to_toml()?.len() <= LARGEST_PROFILE {
            break;
        }
    }
    Ok(profile)
}

fn names(survey: &Survey) -> Names {
    let mut lengths = Sizes::default();
    let counts = survey.names.iter().enumerate().filter(|(_, names)| **names > 0);
    counts.for_each(|(length, names)| lengths.add(length as u64, *names));
    Names {
        lengths: lengths.quantiles(51).into_iter().map(|length| length as u32).collect(),
        symlinks: survey.symlinks,
        symlink_bytes: survey.symlink_bytes.checked_div(survey.symlinks).unwrap_or(0),
        hard_links: survey.hard_links,
    }
}

fn levels(survey: &Survey, detail: &Detail) -> Vec<Level> {
    let pairs = |fans: &super::sketch::Fans| fans.pairs(detail.bits);
    let level = |level: &super::survey::Level| Level {
        subdirectories: pairs(&level.subdirectories),
        files: pairs(&level.files),
    };
    survey.levels.iter().map(level).collect()
}

fn sizes(kind: Kind, tally: &Tally, files: u64, detail: &Detail) -> Class {
    let common = tally.files as f64 >= RARE * files as f64;
    let points = if common { detail.points } else { detail.points / 4 + 1 };
    Class {
        kind,
        files: tally.files,
        bytes: fitting(tally.bytes),
        sizes: rounded(tally.sizes.quantiles(points)),
        largest: tally.largest.iter().take(detail.largest).map(|size| fitting(*size)).collect(),
        executable: significant(tally.executable as f64 / tally.files.max(1) as f64),
        ..Class::default()
    }
}

/// TOML's numbers end here.
fn fitting(bytes: u64) -> u64 {
    bytes.min(i64::MAX as u64)
}

/// Four digits of each but for a size that many files share, the smallest and the largest.
fn rounded(sizes: Vec<u64>) -> Vec<u64> {
    let last = sizes.len().saturating_sub(1);
    let exact = |at: usize| {
        at == 0 || at == last || sizes[at - 1] == sizes[at] || sizes.get(at + 1).is_some_and(|next| *next == sizes[at])
    };
    // Rounded up or down past a neighbour that is exact it would be out of order.
    let near = |at: usize| four_digits(sizes[at]).clamp(sizes[at.saturating_sub(1)], sizes[(at + 1).min(last)]);
    (0..sizes.len()).map(|at: usize| fitting(if exact(at) { sizes[at] } else { near(at) })).collect()
}

fn four_digits(number: u64) -> u64 {
    let unit = 10u64.pow((number.checked_ilog10().unwrap_or(0)).saturating_sub(3));
    (number / unit).saturating_mul(unit).saturating_add(if number % unit * 2 >= unit && unit > 1 { unit } else { 0 })
}

/// Four digits of a share.
fn significant(share: f64) -> f64 {
    format!("{share:.3e}").parse().unwrap_or(share)
}

fn shortened(mut row: Contents) -> Contents {
    let three = |ratio: f64| (ratio * 1000.0).round() / 1000.0;
    row.sizes = (fitting(row.sizes.0), fitting(row.sizes.1));
    row.share = significant(row.share);
    for ratio in
        [&mut row.ratios.lzo, &mut row.ratios.lz4, &mut row.ratios.zlib, &mut row.ratios.zstd1, &mut row.ratios.zstd3]
    {
        *ratio = three(*ratio);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_four_digits_and_those_that_many_share_all() {
        let cases: [(&[u64], &[u64]); 4] = [
            (&[], &[]),
            (&[123_456], &[123_456]),
            (&[1, 123_456, 234_567, 345_678], &[1, 123_500, 234_600, 345_678]),
            (&[1, 16_383, 16_384, 16_384, 20_001], &[1, 16_380, 16_384, 16_384, 20_001]),
        ];
        for (sizes, wanted) in cases {
            assert_eq!(rounded(sizes.to_vec()), wanted);
        }
        assert_eq!([four_digits(9999), four_digits(99_995), four_digits(0)], [9999, 100_000, 0]);
        assert!(rounded(vec![1, 99_996, 99_997, 99_998]).is_sorted());
    }
}
