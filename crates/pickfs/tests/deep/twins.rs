//! A tree is scanned, and another is generated from nothing but the profile: are they alike? By
//! sizes, bytes, depth and fan-out, and by what btrfs stores of them under each of its compressors.
//!
//! `cargo test --release --test end-to-end twins:: -- --ignored --nocapture` prints the table of
//! docs/data.md; PICKFS_TREES names further directories, with colons between.

use crate::common::{Lab, Loop, no_compsize, not_run, run};
use pickfs_trees::profile::Profile;
use pickfs_trees::{Shape, apparent_bytes, generate_like};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Kolmogorov's distance of the sizes, at most.
const SIZES: f64 = 0.02;
/// Tolerance of the bytes, as a share.
const BYTES: f64 = 0.01;
/// What chi-squared may call unlikely.
const UNLIKELY: f64 = 0.05;
/// Tolerance of the share that btrfs stores, in points.
const POINTS: f64 = 3.0;
const CODECS: [&str; 4] = ["lzo", "zlib", "zstd:1", "zstd:3"];

#[test]
fn a_twin_of_the_headers_has_their_shape() {
    let original = Path::new("/usr/include");
    if !original.is_dir() {
        not_run(Some(format!("there is no {}", original.display())));
        return;
    }
    let twin = Twin::of(original);
    let alike = Alike::new(original, &twin.root());
    println!("{alike:?}");
    alike.assert();
}

#[test]
fn a_twin_takes_as_much_space_on_btrfs() {
    if not_run(no_compsize()) {
        return;
    }
    let original = Path::new("/usr/include/linux");
    if !original.is_dir() {
        not_run(Some(format!("there is no {}", original.display())));
        return;
    }
    let twin = Twin::of(original);
    for codec in CODECS {
        let shares = shares(codec, &[original, &twin.root()]);
        println!("{codec}: {shares:.1?} %");
        assert!((shares[0] - shares[1]).abs() <= POINTS, "{codec}: {shares:?}");
    }
}

#[test]
#[ignore = "copies gigabytes for minutes"]
fn twins_of_large_trees() {
    if not_run(no_compsize()) {
        return;
    }
    let further = std::env::var("PICKFS_TREES").unwrap_or_default();
    let trees =
        ["/usr/include", "/usr/share/doc"].into_iter().chain(further.split(':')).filter(|tree| !tree.is_empty());
    println!("| tree | files | bytes | sizes, KS | depth, p | fan-out, p | lzo | zlib | zstd:1 | zstd:3 |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut far = Vec::new();
    for tree in trees.map(Path::new) {
        let twin = Twin::of(tree);
        let alike = Alike::new(tree, &twin.root());
        let shares = CODECS.map(|codec| shares(codec, &[tree, &twin.root()]));
        let cells: Vec<String> = shares.iter().map(|s| format!("{:.1} / {:.1}", s[0], s[1])).collect();
        println!("{} {} |", alike.row(tree), cells.join(" | "));
        far.extend(
            shares.iter().filter(|s| (s[0] - s[1]).abs() > POINTS).map(|s| format!("{}: {s:?}", tree.display())),
        );
        alike.assert();
    }
    assert!(far.is_empty(), "{far:?}");
}

/// A generated tree, in memory.
struct Twin {
    folder: tempfile::TempDir,
}

impl Twin {
    /// By way of the file that `pickfs scan` writes.
    fn of(original: &Path) -> Twin {
        let lab = Lab::new();
        lab.run(&["scan", original.to_str().unwrap(), "--output", "profile.toml"]).code(0);
        let profile = Profile::parse(&std::fs::read_to_string(lab.path("profile.toml")).unwrap()).unwrap();
        let twin = Twin { folder: tempfile::tempdir_in("/dev/shm").unwrap() };
        generate_like(&twin.root(), &profile, &Shape::scaled(&profile, 1.0), 1).unwrap();
        twin
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("twin")
    }
}

/// What the two have in common.
#[derive(Debug)]
struct Alike {
    files: [usize; 2],
    bytes: [u64; 2],
    /// Kolmogorov's distance.
    sizes: f64,
    /// How likely two trees of one kind differ at least so much.
    depth: f64,
    fan_out: f64,
}

impl Alike {
    fn new(original: &Path, twin: &Path) -> Alike {
        let found = [original, twin].map(Found::new);
        let [a, b] = &found;
        Alike {
            files: [a.sizes.len(), b.sizes.len()],
            bytes: [original, twin].map(apparent_bytes),
            sizes: kolmogorov(&a.sizes, &b.sizes),
            depth: chi_squared(&a.depths, &b.depths),
            fan_out: chi_squared(&a.fans, &b.fans),
        }
    }

    fn assert(&self) {
        let [original, twin] = self.bytes.map(|bytes| bytes as f64);
        assert!((twin / original - 1.0).abs() <= BYTES && self.sizes <= SIZES, "{self:?}");
        assert!(self.depth > UNLIKELY && self.fan_out > UNLIKELY, "{self:?}");
    }

    fn row(&self, tree: &Path) -> String {
        let Alike { files, bytes, sizes, depth, fan_out } = self;
        let of = tree.display();
        format!("| {of} | {files:?} | {bytes:?} | {sizes:.4} | {depth:.2} | {fan_out:.2} |")
    }
}

/// Counts of a tree: files at each depth, and directories by their number of entries, in ranges
/// that double.
struct Found {
    sizes: Vec<u64>,
    depths: BTreeMap<usize, f64>,
    fans: BTreeMap<usize, f64>,
}

impl Found {
    fn new(root: &Path) -> Found {
        let mut found = Found { sizes: Vec::new(), depths: BTreeMap::new(), fans: BTreeMap::new() };
        let mut seen = std::collections::HashSet::new();
        let mut entries: BTreeMap<PathBuf, usize> = BTreeMap::from([(root.into(), 0)]);
        for entry in walkdir::WalkDir::new(root).min_depth(1) {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            *entries.entry(entry.path().parent().unwrap().into()).or_default() += usize::from(!entry.path_is_symlink());
            if metadata.is_dir() {
                entries.entry(entry.path().into()).or_default();
            } else if metadata.is_file() && (metadata.nlink() == 1 || seen.insert(metadata.ino())) {
                found.sizes.push(metadata.len());
                *found.depths.entry(entry.depth()).or_default() += 1.0;
            }
        }
        for count in entries.into_values() {
            *found.fans.entry(count.checked_ilog2().map_or(0, |power| power as usize + 1)).or_default() += 1.0;
        }
        found.sizes.sort_unstable();
        found
    }
}

/// The largest difference of the two shares of files up to a size.
fn kolmogorov(a: &[u64], b: &[u64]) -> f64 {
    let share = |sizes: &[u64], size: u64| sizes.partition_point(|other| *other <= size) as f64 / sizes.len() as f64;
    let differ = |size: &u64| (share(a, *size) - share(b, *size)).abs();
    a.iter().chain(b).map(differ).fold(0.0, f64::max)
}

/// How likely two samples of one distribution differ at least so much; what is rare goes with its
/// neighbour.
fn chi_squared(a: &BTreeMap<usize, f64>, b: &BTreeMap<usize, f64>) -> f64 {
    let last = a.keys().chain(b.keys()).max().copied().unwrap_or(0);
    let at = |counts: &BTreeMap<usize, f64>, key: usize| counts.get(&key).copied().unwrap_or(0.0);
    let mut bins = vec![(0.0, 0.0)];
    for key in 0..=last {
        if bins.last().is_some_and(|(a, b)| a + b >= 10.0) {
            bins.push((0.0, 0.0));
        }
        let bin = bins.last_mut().unwrap();
        *bin = (bin.0 + at(a, key), bin.1 + at(b, key));
    }
    let [all_a, all_b] = [a, b].map(|counts| counts.values().sum::<f64>());
    let (to_b, to_a) = ((all_a / all_b).sqrt(), (all_b / all_a).sqrt());
    let term = |(a, b): &(f64, f64)| if a + b > 0.0 { (a * to_a - b * to_b).powi(2) / (a + b) } else { 0.0 };
    let statistic: f64 = bins.iter().map(term).sum();
    match bins.len() {
        1 => 1.0,
        bins => 1.0 - ChiSquared::new(bins as f64 - 1.0).unwrap().cdf(statistic),
    }
}

/// What btrfs stores of each tree, in percent of what it holds.
fn shares(codec: &str, trees: &[&Path]) -> Vec<f64> {
    let made = Loop::btrfs(Path::new("/dev/shm"), 16 << 30, &["-m", "single"], &format!("compress={codec}"));
    let share = |(number, tree): (usize, &&Path)| {
        let copy = made.mount_point().join(number.to_string());
        run(&["cp", "-a", tree.to_str().unwrap(), copy.to_str().unwrap()]);
        run(&["sync", "--file-system", copy.to_str().unwrap()]);
        let text = run(&["compsize", "-b", copy.to_str().unwrap()]);
        let total = text.lines().find(|line| line.starts_with("TOTAL")).unwrap();
        let numbers: Vec<f64> = total.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        100.0 * numbers[0] / numbers[1]
    };
    trees.iter().enumerate().map(share).collect()
}

#[test]
fn unlike_things_are_told() {
    let (a, b) = (BTreeMap::from([(1, 50.0), (2, 50.0)]), BTreeMap::from([(1, 80.0), (2, 20.0)]));
    assert!(chi_squared(&a, &b) < 0.001 && chi_squared(&a, &a) > 0.99);
    assert_eq!(kolmogorov(&[1, 2, 3, 4], &[3, 4, 5, 6]), 0.5);
    assert_eq!(kolmogorov(&[1, 2], &[1, 2]), 0.0);
}
