//! Recipes of content: what btrfs makes of the ones in use, and the scripts that make
//! crates/trees/src/content/recipes.csv.
//!
//! `make recipes` chooses recipes anew and writes the table; `PICKFS_RECIPES=FILE cargo test
//! --release --test end-to-end measure_recipes -- --ignored` keeps the recipes and measures them
//! again, for when a codec has changed.

use pickfs_system::random::Random;
use pickfs_trees::codec::Meter;
use pickfs_trees::content::recipes::{CODECS, Entry, SMALLEST, UNITS, array, recipes};
use pickfs_trees::content::vocabulary::VOCABULARIES;
use pickfs_trees::content::{Content, MEDIA, Recipe};
use pickfs_trees::predict::rules::heuristic::worth_trying;
use std::fmt::Write;

/// The place of zstd:1 among the codecs.
const ZSTD1: usize = 3;

#[test]
fn btrfs_tries_what_shrinks() {
    let mut content = Content::new();
    for Entry { recipe, .. } in recipes().iter().filter(|entry| entry.at(128 << 10)[ZSTD1] < 0.85) {
        let mut tried = |stream: &u64| worth_trying(content.make(recipe, &mut Random::new(9, *stream), 128 << 10));
        let refused = (0..200).filter(|stream| !tried(stream)).count();
        assert!(refused <= 1, "{recipe:?}: {refused} of 200 pieces");
    }
}

/// Many recipes, of which those stay that are unlike all that are chosen already.
#[test]
#[ignore = "a script: make recipes"]
fn make_recipes() {
    let Ok(file) = std::env::var("PICKFS_RECIPES") else { return };
    let known = candidates().into_iter().map(|recipe| (recipe, at_two_sizes(&recipe)));
    let mut known: Vec<_> =
        known.filter(|(recipe, ratios)| ratios[CODECS + ZSTD1] > 0.85 || btrfs_tries(recipe, 16)).collect();
    let mut chosen: Vec<(Recipe, Vec<f64>)> = vec![(MEDIA, at_two_sizes(&MEDIA))];
    while chosen.len() < 140 {
        let from = |(_, ratios): &(Recipe, Vec<f64>)| {
            chosen.iter().map(|(_, other)| distance(ratios, other)).fold(f64::INFINITY, f64::min)
        };
        let next = (0..known.len()).max_by(|a, b| from(&known[*a]).total_cmp(&from(&known[*b]))).unwrap_or(0);
        let next = known.swap_remove(next);
        if next.1[CODECS + ZSTD1] > 0.85 || btrfs_tries(&next.0, 2000) {
            chosen.push(next);
        }
    }
    let recipes: Vec<Recipe> = chosen.into_iter().map(|(recipe, _)| recipe).collect();
    std::fs::write(file, table(&recipes)).unwrap();
}

/// When a codec has changed and the recipes are as good as before.
#[test]
#[ignore = "a script: make recipes"]
fn measure_recipes() {
    let Ok(file) = std::env::var("PICKFS_RECIPES") else { return };
    let recipes: Vec<Recipe> = recipes().iter().map(|entry| entry.recipe).collect();
    std::fs::write(file, table(&recipes)).unwrap();
}

fn table(recipes: &[Recipe]) -> String {
    let mut text =
        String::from("# vocabulary,repeats,longest,reach,noise,bits, then lzo,lz4,zlib,zstd1,zstd3 by size\n");
    recipes.iter().for_each(|recipe| line(recipe, &mut text));
    text
}

fn candidates() -> Vec<Recipe> {
    let mut all = vec![MEDIA];
    for vocabulary in 0..VOCABULARIES.len() as u8 {
        for repeats in [0, 16, 40, 72, 112, 152, 192, 224, 244] {
            for (longest, reach) in
                [(127, 2048), (127, 30_000), (31, 2048), (31, 400), (127, 700), (1023, 1024), (4095, 512)]
            {
                for (noise, bits) in [(0, 8), (6, 8), (20, 8), (60, 8), (150, 8), (40, 6), (200, 6), (60, 4), (200, 4)]
                {
                    let fits = u16::from(repeats) + noise < 253;
                    let same = (repeats == 0 && reach != 2048) || (noise > 100 && vocabulary % 4 != 0);
                    if fits && !same {
                        all.push(Recipe { vocabulary, repeats, longest, reach, noise: noise as u8, bits });
                    }
                }
            }
        }
    }
    all
}

fn at_two_sizes(recipe: &Recipe) -> Vec<f64> {
    [4 << 10, 128 << 10].into_iter().flat_map(|unit| measured(recipe, unit, 128 << 10)).collect()
}

/// btrfs shrinks exactly the files that it tries to compress. A recipe with one piece in a hundred
/// that it does not try would make three files in a hundred that are stored plain, as one piece
/// decides for many.
fn btrfs_tries(recipe: &Recipe, pieces: u64) -> bool {
    let mut content = Content::new();
    (0..pieces).all(|stream| worth_trying(content.make(recipe, &mut Random::new(5, stream), 128 << 10)))
}

/// Between logarithms, as halving counts alike whether from 1 or from 0.1; what is nearly nothing
/// is alike.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| ((a + 0.03) / (b + 0.03)).ln().powi(2)).sum()
}

fn line(recipe: &Recipe, text: &mut String) {
    let Recipe { vocabulary, repeats, longest, reach, noise, bits } = recipe;
    write!(text, "{vocabulary},{repeats},{longest},{reach},{noise},{bits}").unwrap();
    for unit in 0..UNITS {
        let found = measured(recipe, SMALLEST << unit, 2 << 20);
        found.iter().for_each(|ratio| write!(text, ",{:.0}", ratio * 1000.0).unwrap());
    }
    text.push('\n');
}

/// Ratios of files of `unit` bytes, over as many as have `bytes` together.
fn measured(recipe: &Recipe, unit: u64, bytes: u64) -> [f64; CODECS] {
    let (mut content, mut meter) = (Content::new(), Meter::new());
    let count = (bytes / unit).max(1);
    let mut sum = [0.0; CODECS];
    for stream in 0..count {
        let made = content.make(recipe, &mut Random::new(5, stream), unit as usize);
        let found = array(&meter.ratios(made));
        sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found / count as f64);
    }
    sum
}
