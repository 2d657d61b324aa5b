//! `pickfs scan` is quick and small: entries a second of a warm tree in memory, without and with
//! reading files, compared with `du -s` and `find -printf` in the same rounds by turns; and the
//! peak memory for a million entries. Prints figures with their limits; exit code 1 if one is
//! exceeded. `cargo bench --bench scan`.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
/// The tree for speed: the number of directories, and of files in each.
const QUICK: (usize, usize) = (10_000, 19);
/// The tree for memory: every file has a second name and its own size.
const LARGE: (usize, usize) = (5_000, 199);
/// Entries a second, warm, without reading, in the best round: other programs can only take from
/// it.
const RATE_LIMIT: f64 = 500_000.0;
const MEMORY_LIMIT: u64 = 300 << 20;

fn main() -> ExitCode {
    // In memory, so that no disk is measured.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.expect("a temporary folder can be made");
    let rate = speed(&folder.path().join("quick"));
    let peak = memory_of(&folder.path().join("large"));
    let met = |met: bool| if met { "met" } else { "NOT MET" };
    println!("{rate:.0} entries/s (limit {RATE_LIMIT:.0}): {}", met(rate >= RATE_LIMIT));
    println!("peak memory {} MiB (limit {} MiB): {}", peak >> 20, MEMORY_LIMIT >> 20, met(peak < MEMORY_LIMIT));
    if rate < RATE_LIMIT || peak >= MEMORY_LIMIT { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Entries a second in the best round.
fn speed(tree: &Path) -> f64 {
    let entries = grow(tree, QUICK, false) as f64;
    println!("{entries} entries in memory, {ROUNDS} rounds by turns:");
    let shown = tree.display().to_string();
    let pickfs = env!("CARGO_BIN_EXE_pickfs");
    let programs: [&[&str]; 4] = [
        &[pickfs, "scan", "--no-content", &shown],
        &[pickfs, "scan", &shown],
        &["du", "-s", &shown],
        &["find", &shown, "-printf", "%s\n"],
    ];
    let mut times = [const { Vec::new() }; 4];
    let mut ticks = [0; 4];
    for round in 0..=ROUNDS {
        for (index, program) in programs.iter().enumerate() {
            let (before, time) = (ticks_of_children(), timed(program));
            // The first round warms what is cached.
            if round > 0 {
                times[index].push(time);
                ticks[index] += ticks_of_children() - before;
            }
        }
    }
    let rates: Vec<f64> = times.iter().map(|times| entries / median(times)).collect();
    for (index, name) in ["scan --no-content", "scan", "du -s", "find -printf %s"].iter().enumerate() {
        let (rate, best) = (rates[index], entries / fastest(&times[index]));
        let processor = entries * ROUNDS as f64 / (ticks[index] as f64 / TICKS);
        println!(
            "  {name:<18}{rate:>9.0} entries/s in the median, {best:>9.0} at best, {processor:>9.0} a CPU second; \
             {:.2} of du, {:.2} of find",
            rate / rates[2],
            rate / rates[3]
        );
    }
    entries / fastest(&times[0])
}

fn fastest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Linux reports processor time in ticks; this is their number per second.
const TICKS: f64 = 100.0;

/// Processor time of all children that ended: see proc(5), cutime and cstime, counted behind the
/// name in parentheses.
fn ticks_of_children() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn timed(program: &[&str]) -> f64 {
    let begun = Instant::now();
    let mut command = Command::new(program[0]);
    let status = command.args(&program[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("the program starts").success(), "{program:?}");
    begun.elapsed().as_secs_f64()
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Bytes that a scan of a million entries had at its peak.
fn memory_of(tree: &Path) -> u64 {
    let entries = grow(tree, LARGE, true);
    let mut command = Command::new(env!("CARGO_BIN_EXE_pickfs"));
    command.arg("scan").arg(tree).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("pickfs starts");
    let mut peak = 0;
    while child.try_wait().expect("a child can be waited for").is_none() {
        peak = peak.max(high_water(child.id()));
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{entries} entries, every file with two names and its own size:");
    peak
}

fn high_water(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Makes a tree of directories in directories; gives its entries. Sizes are many; small files hold
/// something.
fn grow(tree: &Path, (directories, files): (usize, usize), linked: bool) -> usize {
    let endings = ["c", "h", "o", "txt", "json", "png", "gz", "db", "xyz"];
    let mut before = None;
    fs::create_dir(tree).expect("a folder");
    let outer = directories / 100;
    (0..outer).for_each(|number| fs::create_dir(tree.join(number.to_string())).expect("a folder"));
    for number in 0..directories - outer {
        let folder = tree.join(format!("{}/directory{number}", number % outer));
        fs::create_dir(&folder).expect("a folder");
        for file in 0..files {
            let path = folder.join(format!("file{file}.{}", endings[(number + file) % endings.len()]));
            match before.take().filter(|_| linked) {
                Some(other) => fs::hard_link::<std::path::PathBuf, _>(other, path).expect("a second name"),
                None => {
                    make(&path, number * files + file);
                    before = Some(path);
                }
            }
        }
    }
    directories + (directories - outer) * files
}

fn make(path: &Path, number: usize) {
    if number % 16 == 0 {
        return fs::write(path, format!("{number}\n").repeat(number % 500)).expect("a file");
    }
    File::create(path).and_then(|file| file.set_len(number as u64 % 300_007)).expect("a file");
}
