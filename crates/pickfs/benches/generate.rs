//! Trees are generated faster than they are copied: content a core, and `boost-build` onto memory
//! against `cp -a` of it. Prints figures with their limits; exit code 1 if one is missed. `cargo
//! bench --bench generate`.

use pickfs_system::random::Random;
use pickfs_trees::content::Content;
use pickfs_trees::content::recipes::recipes;
use pickfs_trees::{Shape, TreeLayout, profile::builtin, write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Least speed of every recipe, on one core.
const BYTES_PER_SECOND: f64 = 1e9;
const MEMORY_LIMIT: u64 = 300 << 20;
const ROUNDS: usize = 3;
const PIECE: usize = 128 << 10;

fn main() -> ExitCode {
    let rates = rates();
    let (slowest, median) = (rates[0], rates[rates.len() / 2]);
    println!("content: slowest recipe {:.2} GB/s, median {:.2} GB/s (limit 1 GB/s)", slowest / 1e9, median / 1e9);
    let times: Vec<[Duration; 2]> = (0..ROUNDS).map(|_| boost_build()).collect();
    for [made, copied] in &times {
        println!("boost-build: generated in {made:.2?}, copied in {copied:.2?}");
    }
    let [made, copied] = [0, 1].map(|which| times.iter().map(|pair| pair[which]).min().unwrap_or_default());
    let peak = peak_memory();
    println!(
        "best of {ROUNDS}: {made:.2?} (limit {copied:.2?}); peak memory {} MiB (limit {})",
        peak >> 20,
        MEMORY_LIMIT >> 20
    );
    let good = slowest >= BYTES_PER_SECOND && made <= copied && peak <= MEMORY_LIMIT;
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Bytes a second of each recipe, rising; the best of some tries, as others use the core too.
fn rates() -> Vec<f64> {
    let mut content = Content::new();
    let mut rate = |recipe| {
        let mut once = |try_: u64| {
            let begun = Instant::now();
            (0..64).for_each(|stream| {
                std::hint::black_box(content.make(recipe, &mut Random::new(try_, stream), PIECE));
            });
            64.0 * PIECE as f64 / begun.elapsed().as_secs_f64()
        };
        (0..8).map(&mut once).fold(0.0, f64::max)
    };
    let mut rates: Vec<f64> = recipes().iter().map(|entry| rate(&entry.recipe)).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// How long it takes to generate the tree in memory, and to copy it there.
fn boost_build() -> [Duration; 2] {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    let [made, copy] = ["made", "copy"].map(|name| folder.path().join(name));
    let generating = timed(|| generate(&made));
    let copying = timed(|| {
        let status = Command::new("cp").arg("-a").args([&made, &copy]).status().expect("cp starts");
        assert!(status.success());
    });
    [generating, copying]
}

fn generate(root: &Path) {
    let profile = builtin::profile("boost-build").expect("a shipped profile");
    let outline = TreeLayout::new(&profile, &Shape::scaled(&profile, 1.0), 1).expect("an outline");
    write(root, &outline).expect("a tree");
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// Most memory that this process has used, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
