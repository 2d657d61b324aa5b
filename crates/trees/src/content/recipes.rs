//! Recipes and what compressors make of them, measured; and which recipes to mix so that content
//! shrinks as wanted.
//!
//! `recipes.csv` has a line for each recipe: its six numbers, then for files of 512 bytes to 128
//! KiB, each size twice the one before, thousandths that LZO, LZ4, zlib, zstd:1 and zstd:3 leave of
//! them. A test holds the table to the compressors; `make recipes`
//! (crates/pickfs/tests/deep/recipes.rs) makes it anew.

use crate::codec::Ratios;
use crate::content::Recipe;
use crate::profile::{Kind, Stuff};
use std::sync::LazyLock;

/// A recipe and its ratios at each of the [`UNITS`].
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub recipe: Recipe,
    ratios: [[f64; CODECS]; UNITS],
}

pub const CODECS: usize = 5;
/// Sizes that ratios are measured for: 512 bytes, 1 KiB, ... 128 KiB.
pub const UNITS: usize = 9;
pub const SMALLEST: u64 = 512;
/// What counts for how much when not all codecs can be met: LZO sees other things than the rest,
/// which agree.
const WEIGHTS: [f64; CODECS] = [2.0, 0.5, 1.5, 1.5, 1.5];
/// The price of mixing recipes that differ, against missing by so much: files of a group are alike.
const UNLIKENESS: f64 = 0.05;

/// All recipes, in an order that never changes.
pub fn recipes() -> &'static [Entry] {
    static RECIPES: LazyLock<Vec<Entry>> = LazyLock::new(|| parse(include_str!("recipes.csv")));
    &RECIPES
}

/// Two recipes, and which share of the bytes is made by the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture {
    pub recipes: [Recipe; 2],
    pub first: f64,
}

/// The recipes that come nearest to the ratios, on files of `bytes` bytes, or on pieces of 128 KiB
/// of larger files.
pub(crate) fn mixture(wanted: &Ratios, bytes: u64) -> Mixture {
    let wanted = array(wanted);
    let known: Vec<(Recipe, [f64; CODECS])> = recipes().iter().map(|entry| (entry.recipe, entry.at(bytes))).collect();
    let mut best = (f64::INFINITY, Mixture { recipes: [recipes()[0].recipe; 2], first: 1.0 });
    for (place, a) in known.iter().enumerate() {
        for b in &known[place..] {
            let (miss, first) = nearest(&wanted, &a.1, &b.1);
            if miss < best.0 {
                best = (miss, Mixture { recipes: [a.0, b.0], first });
            }
        }
    }
    best.1
}

/// How far the best mix of two is from what is wanted, and the share of the first in it.
fn nearest(wanted: &[f64; CODECS], a: &[f64; CODECS], b: &[f64; CODECS]) -> (f64, f64) {
    let sum = |term: &dyn Fn(usize) -> f64| (0..CODECS).map(|codec| WEIGHTS[codec] * term(codec)).sum::<f64>();
    let apart = sum(&|codec| (a[codec] - b[codec]) * (a[codec] - b[codec]));
    let along = sum(&|codec| (a[codec] - b[codec]) * (wanted[codec] - b[codec]));
    let first = if apart > 0.0 { (along / apart).clamp(0.0, 1.0) } else { 1.0 };
    let miss = |codec: usize| b[codec] + first * (a[codec] - b[codec]) - wanted[codec];
    let missed = sum(&|codec| miss(codec) * miss(codec));
    (missed + UNLIKENESS * first * (1.0 - first) * apart, first)
}

impl Entry {
    /// Between the two sizes that are measured and next to this one.
    pub fn at(&self, bytes: u64) -> [f64; CODECS] {
        let bytes = bytes.clamp(SMALLEST, SMALLEST << (UNITS - 1));
        let unit = ((bytes / SMALLEST).ilog2() as usize).min(UNITS - 2);
        let from = SMALLEST << unit;
        let way = (bytes - from) as f64 / from as f64;
        let (low, high) = (&self.ratios[unit], &self.ratios[unit + 1]);
        std::array::from_fn(|codec| low[codec] + way * (high[codec] - low[codec]))
    }
}

/// In the order of the table.
pub fn array(ratios: &Ratios) -> [f64; CODECS] {
    [ratios.lzo, ratios.lz4, ratios.zlib, ratios.zstd1, ratios.zstd3]
}

/// What stuff leaves of pieces of 128 KiB; found on headers in C, HTML, JSON, the log of a web
/// server and programs.
pub(crate) fn of_stuff(stuff: Stuff) -> Ratios {
    let [lzo, lz4, zlib, zstd1, zstd3] = match stuff {
        Stuff::Source => [0.40, 0.31, 0.22, 0.22, 0.21],
        Stuff::Prose => [0.48, 0.40, 0.27, 0.27, 0.25],
        Stuff::Records => [0.33, 0.22, 0.16, 0.15, 0.14],
        Stuff::Log => [0.25, 0.16, 0.10, 0.095, 0.09],
        Stuff::Object => [0.68, 0.62, 0.47, 0.50, 0.47],
        Stuff::Media => [1.0; CODECS],
    };
    Ratios { lzo, lz4, zlib, zstd1, zstd3 }
}

/// What files of a kind hold unless a profile says.
pub(crate) fn usual(kind: Kind) -> Stuff {
    match kind {
        Kind::Source => Stuff::Source,
        Kind::Document => Stuff::Prose,
        Kind::Data | Kind::Store => Stuff::Records,
        Kind::Object | Kind::Other => Stuff::Object,
        Kind::Image | Kind::Media | Kind::Archive => Stuff::Media,
    }
}

/// The table is part of the program: what is wrong in it is found by tests, and counts as
/// incompressible here.
fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter(|line| !line.starts_with('#')).map(entry).collect()
}

fn entry(line: &str) -> Entry {
    let numbers: Vec<u16> = line.split(',').map(|word| word.trim().parse().unwrap_or(0)).collect();
    let number = |place: usize| numbers.get(place).copied().unwrap_or(1000);
    let small = |place: usize| number(place) as u8;
    Entry {
        recipe: Recipe {
            vocabulary: small(0),
            repeats: small(1),
            longest: number(2),
            reach: number(3),
            noise: small(4),
            bits: small(5),
        },
        ratios: std::array::from_fn(|unit| {
            std::array::from_fn(|codec| f64::from(number(6 + unit * CODECS + codec)) / 1000.0)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Meter;
    use crate::content::Content;
    use pickfs_system::random::Random;

    /// What a mixture comes to.
    fn ratios(mixture: &Mixture, bytes: u64) -> Ratios {
        let of = |recipe| recipes().iter().find(|entry| entry.recipe == recipe).map(|entry| entry.at(bytes));
        let [a, b] = mixture.recipes.map(|recipe| of(recipe).unwrap_or([1.0; CODECS]));
        let mixed: [f64; CODECS] = std::array::from_fn(|codec| b[codec] + mixture.first * (a[codec] - b[codec]));
        let [lzo, lz4, zlib, zstd1, zstd3] = mixed;
        Ratios { lzo, lz4, zlib, zstd1, zstd3 }
    }

    /// Ratios of files of `unit` bytes, over as many as have 2 MiB together.
    fn measured(recipe: &Recipe, unit: u64) -> [f64; CODECS] {
        let (mut content, mut meter) = (Content::new(), Meter::new());
        let count = (2 << 20) / unit;
        let mut sum = [0.0; CODECS];
        for stream in 0..count {
            let made = content.make(recipe, &mut Random::new(5, stream), unit as usize);
            let found = array(&meter.ratios(made));
            sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found / count as f64);
        }
        sum
    }

    #[test]
    fn the_table_is_what_compressors_find() {
        assert_eq!(recipes().len(), 140);
        for entry in recipes().iter().step_by(17) {
            for unit in [2u64 << 10, 128 << 10] {
                let (known, found) = (entry.at(unit), measured(&entry.recipe, unit));
                for codec in 0..CODECS {
                    let off = (known[codec] - found[codec]).abs();
                    assert!(off < 0.001, "{:?} at {unit}: {known:?} in the table, {found:?}", entry.recipe);
                }
            }
        }
    }

    /// What was measured on real files, at their sizes, is met.
    #[test]
    fn mixtures_meet_what_real_files_have() {
        let rows = [
            ("C headers", 128 << 10, [0.388, 0.308, 0.218, 0.219, 0.209]),
            ("Python", 128 << 10, [0.459, 0.350, 0.251, 0.250, 0.238]),
            ("programs", 128 << 10, [0.685, 0.621, 0.467, 0.495, 0.465]),
            ("media", 128 << 10, [1.0, 1.0, 1.0, 1.0, 1.0]),
        ];
        for (what, bytes, wanted) in rows {
            let [lzo, lz4, zlib, zstd1, zstd3] = wanted;
            let found = array(&ratios(&mixture(&Ratios { lzo, lz4, zlib, zstd1, zstd3 }, bytes), bytes));
            let worst = wanted.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 0.035, "{what}: {wanted:?} became {found:?}");
        }
    }
}
