//! What the instrument adds to what it measures, against a plain clock in the same run. All but the
//! first need root, loop devices and ext4; they say so otherwise. `-- loops` is the first alone.
//!
//! 0. Our loops at 1, 4 and 16 threads, compared with a bare loop of the same system calls with a
//!    clock around each, by turns on a file system in memory: median, 99th percentile and all of
//!    the time. An interval that is over 1.03 fails the bench.
//! 1. A phase whose work is `true`: its time until durable, compared with a plain clock around
//!    starting and awaiting `true`. More than 5 ms in the median fails the bench.
//! 2. The write phase of `tree`, compared with the same `cp -a` and sync by hand on the same kind
//!    of stack, in turns. The ratio is printed with its interval; 1 is right.

mod common;
#[path = "overhead/loops.rs"]
mod loops;

use common::{run, text};
use pickfs_core::journal::{Folded, fold_file};
use pickfs_system::units::show_duration;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const LIMIT_NS: f64 = 5e6;
const ROUNDS: usize = 12;
const SIZE: &str = "512MiB";

fn main() -> ExitCode {
    common::keep_mounts_apart();
    let slower = loops::compare();
    slower.iter().for_each(|what| println!("NOT MET: {what}"));
    if std::env::args().any(|word| word == "loops") {
        return if slower.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let needs = [
        pickfs_target::stack::fs::find("ext4").map(|fs| fs.needs()),
        pickfs_target::stack::backing::find("memory").map(|b| b.needs.to_vec()),
    ];
    let missing = pickfs_system::need::missing(&needs.into_iter().flatten().flatten().collect::<Vec<_>>());
    if let Some(why) = missing.first() {
        println!("overhead: not run, because {why}");
        return ExitCode::SUCCESS;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let added = added_to_true(folder.path());
    by_hand(folder.path());
    if added > LIMIT_NS || !slower.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Median nanoseconds that a phase takes more than a plain clock sees.
fn added_to_true(folder: &Path) -> f64 {
    let plain: Vec<f64> = (0..200).map(|_| timed(|| run("true", &[]))).collect();
    let folded = pickfs(folder, "meta.true", &[], ROUNDS);
    let (returned, durable) = (values(&folded, "true", "returned_ns"), values(&folded, "true", "durable_ns"));
    let [plain, returned, durable] = [plain, returned, durable].map(|times| median(&times));
    println!("`true`: plain clock {}, phase returned {}, durable {}", shown(plain), shown(returned), shown(durable));
    println!("added by the phase: {} (limit {})\n", shown(durable - plain), shown(LIMIT_NS));
    durable - plain
}

fn by_hand(folder: &Path) {
    let source = folder.join("source");
    pickfs_trees::generate(&source, &pickfs_trees::Shape { files: 2000, bytes: 96 << 20 }, 1).expect("a source");
    let staged = Path::new("/dev/shm").join(format!("pickfs-bench-{}", std::process::id()));
    run("cp", &["-a", &text(&source), &text(&staged)]);
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let hand = Hand::new(folder).write(&staged);
        let folded = pickfs(folder, "tree", &["--source", &text(&source)], 1);
        let instrument = median(&values(&folded, "write", "time_ns"));
        println!("write by hand {}, by pickfs {}", shown(hand), shown(instrument));
        ratios.push(instrument.ln() - hand.ln());
    }
    run("rm", &["-rf", &text(&staged)]);
    let estimate = pickfs_stats::paired_ratio(&ratios, 0.95).expect("rounds");
    let (low, high) = estimate.interval.unwrap_or((f64::NAN, f64::NAN));
    println!("pickfs / by hand: {:.3} ({low:.3}–{high:.3})", estimate.ratio);
}

/// The same stack as the memory backing with ext4, by hand.
struct Hand {
    memory: PathBuf,
    mount: PathBuf,
}

impl Hand {
    fn new(folder: &Path) -> Hand {
        let (memory, mount) = (folder.join("memory"), folder.join("mount"));
        [&memory, &mount].into_iter().for_each(|path| std::fs::create_dir_all(path).expect("a folder"));
        run("mount", &["-t", "tmpfs", "-o", "size=600m,huge=never", "bench", &text(&memory)]);
        let image = memory.join("image");
        run("dd", &["if=/dev/urandom", &format!("of={}", text(&image)), "bs=1M", "count=512", "status=none"]);
        run(
            "mke2fs",
            &["-t", "ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", &text(&image)],
        );
        run("mount", &["-o", "loop", &text(&image), &text(&mount)]);
        run("sync", &[]);
        Hand { memory, mount }
    }

    fn write(self, source: &Path) -> f64 {
        timed(|| {
            run("cp", &["-a", &text(source), &text(&self.mount.join("tree"))]);
            run("sync", &["-f", &text(&self.mount)]);
        })
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        run("umount", &[&text(&self.mount)]);
        run("umount", &[&text(&self.memory)]);
    }
}

/// A run of the real binary on ext4 in memory.
fn pickfs(folder: &Path, workload: &str, more: &[&str], rounds: usize) -> Folded {
    let journal = folder.join("journal.jsonl");
    let _ = std::fs::remove_file(&journal);
    let mut command = Command::new(env!("CARGO_BIN_EXE_pickfs"));
    command.args(["run", "--fs", "ext4", "--memory", "--size", SIZE, "--workload", workload]).args(more);
    command.args(["--rounds", &rounds.to_string(), "--journal"]).arg(&journal).current_dir(folder);
    let output = command.env("XDG_STATE_HOME", folder).output().expect("pickfs starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fold_file(&journal).expect("a journal")
}

/// One value a cell; these phases are done once.
fn values(folded: &Folded, phase: &str, metric: &str) -> Vec<f64> {
    let samples = folded.cells.iter().flat_map(|cell| folded.samples(cell));
    samples.filter(|(in_phase, name, _)| (*in_phase, *name) == (phase, metric)).map(|(_, _, value)| value).collect()
}

fn median(values: &[f64]) -> f64 {
    pickfs_stats::median(values).expect("values")
}

fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_nanos() as f64
}

fn shown(ns: f64) -> String {
    show_duration(ns)
}
