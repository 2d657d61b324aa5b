//! The entries of the fuzzers on seeds that are damaged at random: without coverage as a guide, but
//! on any compiler. A few of each always; with PICKFS_FUZZ_SECONDS as long as that says (`make
//! fuzz`), and PICKFS_FUZZED may name the one that is.

#[path = "../../../../fuzz/entry.rs"]
mod entry;

use pickfs_system::sys::clock::thread_ns;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;

const FEW: u64 = 40;

/// Files that the entry understands.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let own = format!("fuzz/seeds/{name}");
    let folders: &[&str] = match name {
        "disk-model" => &["crates/disks/src/models"],
        "import" => &[&own, "fixtures/import"],
        "journal" => &[&own, "fixtures/journals"],
        "plan" => &["examples"],
        "profile" => &["crates/trees/src/profile/builtin"],
        "protocol" => &[&own, "fixtures/journals"],
        _ => &[&own],
    };
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap().flatten());
    let files = files.filter(|entry| entry.metadata().is_ok_and(|found| found.is_file() && found.len() < 200_000));
    let mut found: Vec<Vec<u8>> = files.map(|entry| std::fs::read(entry.path()).unwrap()).collect();
    found.sort();
    found
}

/// Bytes are turned, cut out, doubled, put in from other seeds; or a number becomes another.
fn damaged(seeds: &[Vec<u8>], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut below = |most: usize| (random.next_u64() % most.max(1) as u64) as usize;
    let mut data = seeds[below(seeds.len())].clone();
    for _ in 0..=below(6) {
        let (at, length) = (below(data.len()), below(64));
        let end = (at + length).min(data.len());
        match below(6) {
            0 if at < data.len() => data[at] ^= 1 << below(8),
            1 => drop(data.drain(at.min(end)..end)),
            2 => {
                let piece = data[at.min(end)..end].to_vec();
                data.splice(at..at, piece);
            }
            3 => {
                let other = &seeds[below(seeds.len())];
                let from = below(other.len());
                data.splice(at..at, other[from..(from + length).min(other.len())].iter().copied());
            }
            4 => {
                let odd: &[&str] =
                    &["-1", "1e999", "18446744073709551616", "null", "\"\"", "[]", "{}", "NaN", "\0", "\n", "=", "é"];
                data.splice(at..at, odd[below(odd.len())].bytes());
            }
            _ => data.truncate(end),
        }
    }
    data
}

/// All at the same time, but each gets as many seconds of processor time as are asked for.
#[test]
fn nothing_that_is_read_brings_a_reader_down() {
    let seconds = std::env::var("PICKFS_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let only = std::env::var("PICKFS_FUZZED").ok();
    let chosen = |name: &str| only.as_ref().is_none_or(|only| only == name);
    std::thread::scope(|scope| {
        for (name, entry) in entry::ALL.iter().filter(|(name, _)| chosen(name)) {
            scope.spawn(move || fuzz(name, *entry, seconds));
        }
    });
}

fn fuzz(name: &str, entry: entry::Entry, seconds: Option<u64>) {
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name}");
    seeds.iter().for_each(|seed| entry(seed));
    let goes_on = |number: u64| match seconds {
        Some(seconds) => thread_ns() < seconds * 1_000_000_000,
        None => number < FEW,
    };
    let mut number = 0;
    while goes_on(number) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
        let data = damaged(&seeds, &mut random);
        if let Err(panic) = std::panic::catch_unwind(|| entry(&data)) {
            let kept = std::env::temp_dir().join(format!("pickfs-{name}-{number}"));
            std::fs::write(&kept, &data).unwrap();
            eprintln!("{name}, number {number}: see {}", kept.display());
            std::panic::resume_unwind(panic);
        }
        number += 1;
    }
    println!("{name}: {number} inputs from {} seeds", seeds.len());
}
