//! Our loops of create, stat and delete compared with a bare loop of the same system calls,
//! bonnie++, fs_mark and fio, by turns on one ext4 in memory (or in PICKFS_BENCH_DIR).
//!
//! `cargo bench --bench small_files`.
//!
//! 1. What measuring costs an operation: less than 100 ns.
//! 2. Ours against the bare loop, in pairs on 4096 files: at most 3 % more, by the interval's lower
//!    end.
//! 3. Ours against the programs, in PICKFS_BENCH_ROUNDS rounds (5) on PICKFS_BENCH_FILES x 1024
//!    files (512: fewer, and bonnie++ reports nothing for stat): at most 3 % more than the fastest,
//!    by the interval's lower end.
//!
//! Exit code 1 if a limit is exceeded. A program that is missing is named and left out.

mod common;

use pickfs_stats::paired_ratio;
use pickfs_target::stage::Latencies;
use pickfs_target::workload::small_files::engine::{Batch, Names, Step, Workers, create, delete, stat};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const MEASURING_LIMIT_NS: f64 = 100.0;
const RATIO_LIMIT: f64 = 1.03;
const PAIRS: usize = 41;
/// So few that a turn is over before a busy machine takes the processor away, mostly.
const FEW: usize = 4 << 10;

/// Nanoseconds an operation, by operation and program, one a round.
type Times = BTreeMap<(&'static str, &'static str), Vec<f64>>;

fn main() -> ExitCode {
    common::keep_mounts_apart();
    let Some(lab) = Lab::new() else { return ExitCode::SUCCESS };
    let mut broken = Vec::new();
    let measuring = measuring();
    println!("measuring costs {measuring:.1} ns an operation (limit {MEASURING_LIMIT_NS:.0})");
    if measuring >= MEASURING_LIMIT_NS {
        broken.push(format!("measuring costs {measuring:.1} ns"));
    }
    println!("\nours and a bare loop of the same system calls, {PAIRS} pairs on {FEW} files in one directory:");
    let files = Files::new(FEW);
    let mut times = Times::new();
    for round in 0..=PAIRS {
        let mut both: [(&str, Turn); 2] = [("ours", ours), ("bare", bare)];
        both.rotate_left(round % 2);
        let mut seen = Times::new();
        both.iter().for_each(|(name, turn)| turn(&files, &lab.place(name), &mut seen));
        // The first pair warms what is cached.
        if round > 0 {
            seen.into_iter().for_each(|(key, values)| times.entry(key).or_default().extend(values));
        }
    }
    broken.extend(tell(&times, &["bare"]));
    broken.extend(beside_programs(&lab));
    broken.iter().for_each(|what| println!("DOES NOT HOLD: {what}"));
    if broken.is_empty() {
        println!("bench holds");
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

/// Creates, stats and deletes the files, and notes the times.
type Turn = fn(&Files, &Path, &mut Times);

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn beside_programs(lab: &Lab) -> Vec<String> {
    let (rounds, thousands) = (number("PICKFS_BENCH_ROUNDS", 5), number("PICKFS_BENCH_FILES", 512));
    println!("\nours and the programs, {rounds} rounds on {} files in one directory:", thousands << 10);
    let files = Files::new(thousands << 10);
    let mut turns: Vec<(&str, Turn)> =
        vec![("ours", ours), ("bare", bare), ("bonnie++", bonnie), ("fs_mark", fs_mark), ("fio", fio)];
    turns.retain(|(name, _)| {
        let there = ["ours", "bare"].contains(name) || pickfs_system::need::find_program(name).is_some();
        if !there {
            println!("  {name}: not run, because there is no program `{name}`");
        }
        there
    });
    let mut times = Times::new();
    for round in 0..rounds {
        for turn in 0..turns.len() {
            let (name, play) = turns[(turn + round) % turns.len()];
            play(&files, &lab.place(name), &mut times);
        }
    }
    tell(&times, &["bare", "bonnie++", "fs_mark", "fio"])
}

/// Prints a table of medians and ratios; what does not hold. Against programs, the fastest counts.
fn tell(times: &Times, peers: &[&'static str]) -> Vec<String> {
    let mut broken = Vec::new();
    println!("  {:<20}{:<10}{:>12}{:>26}", "operation", "by", "ns each", "ours / theirs");
    for operation in
        ["sequential create", "sequential stat", "sequential delete", "random create", "random stat", "random delete"]
    {
        let Some(ours) = times.get(&(operation, "ours")) else { continue };
        println!("  {operation:<20}{:<10}{:>12.0}", "ours", median(ours));
        for peer in peers {
            let theirs = times.get(&(operation, *peer)).map_or(&[][..], Vec::as_slice);
            if theirs.len() != ours.len() {
                let (has, of) = (theirs.len(), ours.len());
                println!("  {:<20}{peer:<10}{:>12}  not compared: it has a value in {has} of {of} rounds", "", "-");
                continue;
            }
            let logs: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| (ours / theirs).ln()).collect();
            let Some(estimate) = paired_ratio(&logs, 0.95) else { continue };
            let interval = estimate.interval.map(|(low, high)| format!(" ({low:.3}–{high:.3})")).unwrap_or_default();
            println!(
                "  {:<20}{peer:<10}{:>12.0}{:>26}",
                "",
                median(theirs),
                format!("{:.3}{interval}", estimate.ratio)
            );
            if estimate.interval.is_some_and(|(low, _)| low > RATIO_LIMIT) {
                broken.push(format!("{operation}: {:.3} of {peer}{interval}", estimate.ratio));
            }
        }
    }
    broken
}

/// Nanoseconds that one operation's latency costs, in the best of some goes: others can only add to
/// it.
fn measuring() -> f64 {
    const LAPS: u32 = 2_000_000;
    let mut latencies = Latencies::new();
    let go = |latencies: &mut Latencies| {
        let begun = Instant::now();
        latencies.start();
        (0..LAPS).for_each(|_| latencies.lap());
        begun.elapsed().as_nanos() as f64 / f64::from(LAPS)
    };
    (0..9).map(|_| go(&mut latencies)).fold(f64::INFINITY, f64::min)
}

/// The names, made before any clock runs.
struct Files {
    count: usize,
    in_order: Names,
    at_random: Names,
}

impl Files {
    fn new(count: usize) -> Files {
        Files { count, in_order: Names::in_order(count, 1), at_random: Names::at_random(count, 1) }
    }

    /// For either set: the names of its operations, the order of making files, and that of the
    /// rest.
    fn sets(&self) -> [([&'static str; 3], Vec<Step<'_>>, Vec<Step<'_>>); 2] {
        let (in_order, at_random) = (&self.in_order, &self.at_random);
        [
            (["sequential create", "sequential stat", "sequential delete"], in_order.steps(), in_order.steps()),
            (["random create", "random stat", "random delete"], at_random.steps(), at_random.shuffled()),
        ]
    }

    fn each(&self, all: impl FnOnce()) -> f64 {
        let begun = Instant::now();
        all();
        begun.elapsed().as_nanos() as f64 / self.count as f64
    }
}

fn note(times: &mut Times, operation: &'static str, by: &'static str, ns: f64) {
    times.entry((operation, by)).or_default().push(ns);
}

fn ours(files: &Files, place: &Path, times: &mut Times) {
    for ([made, asked, deleted], steps, order) in files.sets() {
        let batch = Batch::make(&place.join(made), 1).expect("a batch");
        let mut workers = Workers::new(1).expect("a thread");
        let ns = files.each(|| {
            workers
                .work(&steps, |steps, own| batch.each("create", steps, own, |f, name| create(f, name, &[])))
                .expect("files");
        });
        note(times, made, "ours", ns);
        let ns = files.each(|| workers.work(&order, |steps, own| batch.each("stat", steps, own, stat)).expect("files"));
        note(times, asked, "ours", ns);
        let ns =
            files.each(|| workers.work(&order, |steps, own| batch.each("delete", steps, own, delete)).expect("files"));
        note(times, deleted, "ours", ns);
        assert_eq!(workers.latencies().count(), 3 * files.count as u64);
    }
    clean(place);
}

/// The same system calls, and nothing else.
fn bare(files: &Files, place: &Path, times: &mut Times) {
    for ([made, asked, deleted], steps, order) in files.sets() {
        let path = place.join(made);
        std::fs::create_dir(&path).expect("a folder");
        let folder = rustix::fs::open(&path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).expect("a folder");
        let ns = files.each(|| {
            for (_, name) in &steps {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                drop(rustix::fs::openat(&folder, *name, flags, Mode::RUSR | Mode::WUSR).expect("a file"));
            }
        });
        note(times, made, "bare", ns);
        let ns = files.each(|| {
            for (_, name) in &order {
                rustix::fs::statat(&folder, *name, AtFlags::empty()).expect("a file");
            }
        });
        note(times, asked, "bare", ns);
        let ns = files.each(|| {
            for (_, name) in &order {
                rustix::fs::unlinkat(&folder, *name, AtFlags::empty()).expect("a file");
            }
        });
        note(times, deleted, "bare", ns);
    }
    clean(place);
}

/// By its own rates; where it prints +++++ (less than half a second) there is no value.
fn bonnie(files: &Files, place: &Path, times: &mut Times) {
    let count = format!("{}:0:0:1", files.count >> 10);
    let printed = output("bonnie++", &["-d", &text(place), "-u", "root", "-s", "0", "-n", &count, "-r", "0", "-q"]);
    let fields: Vec<&str> = printed.trim().split(',').collect();
    let operations =
        ["sequential create", "sequential stat", "sequential delete", "random create", "random stat", "random delete"];
    for (number, operation) in operations.into_iter().enumerate() {
        if let Some(rate) = fields.get(26 + 2 * number).and_then(|field| field.parse::<f64>().ok()) {
            note(times, operation, "bonnie++", 1e9 / rate);
        }
    }
    clean(place);
}

/// By its files a second without what it calls its own overhead: create, an empty write, and close.
/// It deletes nothing.
fn fs_mark(files: &Files, place: &Path, times: &mut Times) {
    let log = place.join("log");
    let words = ["-d", &text(&place.join("files")), "-l", &text(&log), "-S", "0", "-s", "0", "-L", "1", "-t", "1"];
    let printed = output("fs_mark", &[&words[..], &["-n", &files.count.to_string()]].concat());
    let last = printed.lines().next_back().unwrap_or_default();
    let fields: Vec<f64> = last.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    let [_, count, _, rate, overhead_us] = fields[..] else { panic!("fs_mark said {printed}") };
    note(times, "random create", "fs_mark", 1e9 / rate - overhead_us * 1e3 / count);
    clean(place);
}

/// By the run times of its jobs, one operation a file.
fn fio(files: &Files, place: &Path, times: &mut Times) {
    let engines =
        [("filecreate", "sequential create"), ("filestat", "sequential stat"), ("filedelete", "sequential delete")];
    for (engine, operation) in engines {
        let (engine, count) = (format!("--ioengine={engine}"), format!("--nrfiles={}", files.count));
        let words = ["--name=bench", &engine, &count, &format!("--directory={}", text(place))];
        let job = ["--openfiles=1", "--filesize=4k", "--bs=4k", "--rw=write", "--fallocate=none"];
        let more = ["--file_service_type=sequential", "--create_on_open=0", "--output-format=json"];
        let printed = output("fio", &[&words[..], &job, &more].concat());
        let told: serde_json::Value = serde_json::from_str(&printed[printed.find('{').unwrap_or(0)..]).expect("JSON");
        let done = &told["jobs"][0]["write"];
        let value = |name: &str| done[name].as_f64().unwrap_or(f64::NAN);
        assert_eq!(value("total_ios"), files.count as f64, "fio did something else");
        note(times, operation, "fio", value("runtime") * 1e6 / value("total_ios"));
        if engine.contains("filecreate") || engine.contains("filedelete") {
            clean(place);
        }
    }
    clean(place);
}

fn clean(place: &Path) {
    std::fs::remove_dir_all(place).expect("the place can be removed");
    std::fs::create_dir(place).expect("a folder");
    rustix::fs::sync();
}

/// ext4 in memory, or the folder that was given.
struct Lab {
    folder: tempfile::TempDir,
    mounted: bool,
}

impl Lab {
    /// Nothing, and says why, where it cannot be made.
    fn new() -> Option<Lab> {
        if let Some(given) = std::env::var_os("PICKFS_BENCH_DIR") {
            let folder = tempfile::tempdir_in(given).expect("a folder in PICKFS_BENCH_DIR");
            return Some(Lab { folder, mounted: false });
        }
        let needs = [
            pickfs_target::stack::fs::find("ext4").map(|fs| fs.needs()),
            pickfs_target::stack::backing::find("memory").map(|backing| backing.needs.to_vec()),
        ];
        let missing = pickfs_system::need::missing(&needs.into_iter().flatten().flatten().collect::<Vec<_>>());
        if let Some(why) = missing.first() {
            println!("small_files: not run, because {why}; or give PICKFS_BENCH_DIR");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (memory, mount) = (folder.path().join("memory"), folder.path().join("mount"));
        [&memory, &mount].into_iter().for_each(|path| std::fs::create_dir(path).expect("a folder"));
        run("mount", &["-t", "tmpfs", "-o", "size=3g,huge=never", "bench", &text(&memory)]);
        let image = memory.join("image");
        std::fs::File::create(&image).and_then(|file| file.set_len(2 << 30)).expect("an image");
        let born = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
        run("mke2fs", &["-t", "ext4", "-q", "-F", "-N", "1300000", "-E", born, &text(&image)]);
        run("mount", &["-o", "loop", &text(&image), &text(&mount)]);
        Some(Lab { folder, mounted: true })
    }

    /// Makes a separate folder on the file system.
    fn place(&self, name: &str) -> PathBuf {
        let root = if self.mounted { self.folder.path().join("mount") } else { self.folder.path().into() };
        let place = root.join(name);
        std::fs::create_dir_all(&place).expect("a folder");
        place
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in ["mount", "memory"].iter().filter(|_| self.mounted) {
            run("umount", &[&text(&self.folder.path().join(name))]);
        }
    }
}

fn median(values: &[f64]) -> f64 {
    pickfs_stats::median(values).unwrap_or(f64::NAN)
}

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status().expect("the program starts");
    assert!(status.success(), "{program} {words:?}");
}

fn output(program: &str, words: &[&str]) -> String {
    let program = pickfs_system::need::find_program(program).expect("it was looked for");
    let output = Command::new(program).args(words).stdin(Stdio::null()).output().expect("the program starts");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
