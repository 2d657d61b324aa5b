//! Our reads and writes of a file, compared with fio's and with a bare loop of the same system
//! calls: on the same file of one ext4 in memory, by turns, nanoseconds an operation. `cargo bench
//! --bench io`, as root; without, or with a folder (`-- DIR`), on a file there.
//!
//! Prints medians over the rounds, below each row what of it was processor time, and, pairing them
//! by rounds, what ours takes of the others with its interval. Exit code 1 if an interval says that
//! ours is slower than the fastest of fio's by more than 3 %, than the bare loop by more than 3 %
//! of a direct operation, or that measuring costs more than 100 ns.

#![expect(unsafe_code, reason = "a ring by hand, to compare with")]

mod common;

use io_uring::{IoUring, opcode, types};
use pickfs_system::sys::file::{AlignedBuffer, open_direct};
use pickfs_target::stage::Latencies;
use pickfs_target::workload::io::blocks::{self, Supply};
use pickfs_target::workload::io::engine::{Direction, Engine, Job, Workers};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const BLOCK: usize = 4096;
const BLOCKS: u32 = 65_536;
/// Operations: passes over the file that is cached, a part of it past the cache.
const CACHED: usize = 2 * BLOCKS as usize;
const DIRECT: usize = BLOCKS as usize / 2;
const REST: Duration = Duration::from_millis(100);
const SLOWER: f64 = 1.03;
const MEASURING_NS: f64 = 100.0;

/// Operations at a time, and by which calls.
#[derive(Clone, Copy, PartialEq)]
enum Calls {
    Plain,
    Ring(usize),
}

/// What is done: by all of [`Who`] on the same file.
#[derive(Clone, Copy)]
struct Case {
    write: bool,
    direct: bool,
    calls: Calls,
}

#[derive(Clone, Copy, PartialEq)]
enum Who {
    Ours,
    Bare,
    /// As people run it.
    Fio,
    /// With `gtod_reduce`: without latencies.
    FioQuick,
}

const ALL: [Who; 4] = [Who::Ours, Who::Bare, Who::Fio, Who::FioQuick];

fn main() -> ExitCode {
    common::keep_mounts_apart();
    if pickfs_system::need::find_program("fio").is_none() {
        println!("io: not run, because there is no program `fio`: apt-get install fio");
        return ExitCode::SUCCESS;
    }
    let place = match Place::new() {
        Ok(place) => place,
        Err(why) => {
            println!("io: not run, because {why}");
            return ExitCode::SUCCESS;
        }
    };
    let lap = lap_ns();
    println!("a look at the clock and its place in the histogram: {lap:.0} ns (limit {MEASURING_NS} ns)\n");
    println!("4 KiB at random, nanoseconds an operation, medians of {ROUNDS} rounds by turns\n");
    println!("| | ours | bare loop | fio | fio gtod_reduce | ours / bare | ours / fastest fio | ours - bare |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let mut broken: Vec<String> = (lap > MEASURING_NS).then(|| "measuring".into()).into_iter().collect();
    // PICKFS_BENCH_DIRECT=1 does those alone.
    let only_direct = std::env::var_os("PICKFS_BENCH_DIRECT").is_some();
    for direct in [false, true].into_iter().filter(|direct| *direct || !only_direct) {
        for write in [false, true] {
            let file = place.file(write, direct);
            for calls in [Calls::Plain, Calls::Ring(1), Calls::Ring(32)] {
                broken.extend(compare(Case { write, direct, calls }, &file));
            }
        }
    }
    println!();
    broken.iter().for_each(|what| println!("NOT MET: {what}"));
    if broken.is_empty() {
        println!("no limit is surely broken");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints a row; what is surely broken.
fn compare(case: Case, path: &Path) -> Vec<String> {
    let mut times = [const { Vec::new() }; ALL.len()];
    let mut processor = [const { Vec::new() }; ALL.len()];
    for round in 0..=ROUNDS {
        for turn in 0..ALL.len() {
            let who = (turn + round) % ALL.len();
            let (ns, cpu_ns) = measure(ALL[who], case, path);
            // Nothing that one has left is written in another's time.
            run("sync", &["-f", &text(path)]);
            // The first round brings everything into caches.
            if round > 0 {
                times[who].push(ns);
                processor[who].push(cpu_ns);
            }
        }
    }
    let [ours, bare, fio, quick] = &times;
    // Compare with one of the two throughout: the faster of both in each round would mostly be
    // chance.
    let fastest = if median(fio) < median(quick) { fio } else { quick };
    let (to_bare, to_fio) = (Ratio::of(ours, bare), Ratio::of(ours, fastest));
    let added = median(&ours.iter().zip(bare).map(|(ours, bare)| ours - bare).collect::<Vec<_>>());
    let [ours, bare, fio, quick] = [ours, bare, fio, quick].map(|times| median(times));
    let name = case.name();
    println!("| {name} | {ours:.0} | {bare:.0} | {fio:.0} | {quick:.0} | {to_bare} | {to_fio} | {added:.0} ns |");
    let [ours, bare, fio, quick] = processor.map(|times| median(&times));
    println!("| its processor time | {ours:.0} | {bare:.0} | {fio:.0} | {quick:.0} | | | {:.0} ns |", ours - bare);
    let mut broken = Vec::new();
    if to_fio.low > SLOWER {
        broken.push(format!("{name}: {to_fio} of the fastest fio"));
    }
    // A cached operation is a copy of 4 KiB; 3 % of it are less than a look at the clock takes.
    if to_bare.low > SLOWER && (case.direct || added > MEASURING_NS) {
        broken.push(format!("{name}: {to_bare} of the bare loop"));
    }
    broken
}

impl Case {
    fn name(&self) -> String {
        let (way, what) = (if self.direct { "direct" } else { "cached" }, if self.write { "write" } else { "read" });
        let calls = match self.calls {
            Calls::Plain => if self.write { "pwrite" } else { "pread" }.to_string(),
            Calls::Ring(depth) => format!("io_uring {depth}"),
        };
        format!("{way} {what}, {calls}")
    }

    fn operations(&self) -> usize {
        if self.direct { DIRECT } else { CACHED }
    }

    fn open(&self, path: &Path) -> File {
        let opened = match self.direct {
            true => open_direct(path, true),
            false => File::options().read(true).write(true).open(path),
        };
        opened.expect("the file opens")
    }
}

struct Ratio {
    middle: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    fn of(ours: &[f64], other: &[f64]) -> Ratio {
        let logs: Vec<f64> = ours.iter().zip(other).map(|(ours, other)| (ours / other).ln()).collect();
        let estimate = pickfs_stats::paired_ratio(&logs, 0.95).expect("rounds");
        let (low, high) = estimate.interval.expect("enough rounds");
        Ratio { middle: estimate.ratio, low, high }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "{:.3} ({:.3}–{:.3})", self.middle, self.low, self.high)
    }
}

/// Nanoseconds for an operation, by the clock and by CPU time; the latter hardly depends on other
/// users of the machine.
fn measure(who: Who, case: Case, path: &Path) -> (f64, f64) {
    match who {
        Who::Ours => ours(case, path),
        Who::Bare => bare(case, path),
        Who::Fio => fio(case, path, false),
        Who::FioQuick => fio(case, path, true),
    }
}

fn ours(case: Case, path: &Path) -> (f64, f64) {
    let (file, places) = (case.open(path), blocks::shuffled(BLOCKS, case.operations()));
    let direction = if case.write { Direction::Write { generation: 0, sync_every: 0 } } else { Direction::Read };
    let (engine, depth) = match case.calls {
        Calls::Plain => (Engine::Plain, 1),
        Calls::Ring(depth) => (Engine::IoUring, depth),
    };
    let job = Job { engine, threads: 1, depth, block: BLOCK, direction, places: &places, due: None };
    let mut workers = Workers::new(job).expect("io_uring is there");
    let begun = Begun::now();
    let logs = workers.work(&file, || Ok(())).expect("it works");
    let took = begun.each(places.len());
    workers.sum(&logs).expect("all operations were done");
    took
}

/// The same calls with the same bytes, and nothing else.
fn bare(case: Case, path: &Path) -> (f64, f64) {
    let (file, places) = (case.open(path), blocks::shuffled(BLOCKS, case.operations()));
    match case.calls {
        Calls::Plain => bare_plain(&file, &places, case.write),
        Calls::Ring(depth) => bare_ring(&file, &places, case.write, depth),
    }
}

fn bare_plain(file: &File, places: &[u32], write: bool) -> (f64, f64) {
    let mut supply = Supply::new(BLOCK, 1);
    let mut buffer = AlignedBuffer::new(supply.bytes());
    blocks::fill(&mut buffer, 0);
    let begun = Begun::now();
    for place in places {
        let offset = u64::from(*place) * BLOCK as u64;
        if write {
            let at = supply.turn();
            // What ours marks as well: otherwise other data would be written, and no later read
            // could be checked.
            blocks::stamp(&mut buffer[at..at + BLOCK], offset, 0);
            file.write_all_at(&buffer[at..at + BLOCK], offset).expect("it is written");
        } else {
            file.read_exact_at(&mut buffer[..BLOCK], offset).expect("it is read");
        }
    }
    begun.each(places.len())
}

fn bare_ring(file: &File, places: &[u32], write: bool, depth: usize) -> (f64, f64) {
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(depth as u32)
        .or_else(|_| IoUring::new(depth as u32))
        .expect("io_uring is there");
    let mut supplies: Vec<Supply> = (0..depth).map(|_| Supply::new(BLOCK, depth)).collect();
    let mut buffers: Vec<AlignedBuffer> = supplies.iter().map(|supply| AlignedBuffer::new(supply.bytes())).collect();
    (0..).zip(&mut buffers).for_each(|(number, buffer)| blocks::fill(buffer, number));
    let descriptor = types::Fd(file.as_raw_fd());
    let mut idle: Vec<usize> = (0..depth).collect();
    let mut left = places.iter();
    let begun = Begun::now();
    loop {
        while let Some(slot) = idle.pop() {
            let Some(place) = left.next() else { break };
            let offset = u64::from(*place) * BLOCK as u64;
            let entry = if write {
                let at = supplies[slot].turn();
                blocks::stamp(&mut buffers[slot][at..at + BLOCK], offset, 0);
                opcode::Write::new(descriptor, buffers[slot][at..].as_ptr(), BLOCK as u32).offset(offset).build()
            } else {
                opcode::Read::new(descriptor, buffers[slot].as_mut_ptr(), BLOCK as u32).offset(offset).build()
            };
            // SAFETY: the buffers live until the loop has ended, which is when nothing is in
            // flight; a slot's bytes are left alone until its request has ended.
            unsafe { ring.submission().push(&entry.user_data(slot as u64)) }.expect("as many entries as slots");
        }
        // A slot that was taken when nothing was left is one less to wait for.
        ring.submit().expect("it is submitted");
        if ring.completion().is_empty() {
            ring.submit_and_wait(1).expect("something ends");
        }
        for entry in ring.completion() {
            assert_eq!(entry.result(), BLOCK as i32);
            idle.push(entry.user_data() as usize);
        }
        if left.len() == 0 {
            break;
        }
    }
    drain(&mut ring);
    begun.each(places.len())
}

/// Waits for what is still in flight: a no-operation that the ring begins only after all others
/// ends last.
fn drain(ring: &mut IoUring) {
    let last = opcode::Nop::new().build().flags(io_uring::squeue::Flags::IO_DRAIN).user_data(u64::MAX);
    // SAFETY: it has no memory.
    unsafe { ring.submission().push(&last) }.expect("there is room");
    loop {
        ring.submit_and_wait(1).expect("it is submitted");
        if ring.completion().any(|entry| entry.user_data() == u64::MAX) {
            return;
        }
    }
}

fn fio(case: Case, path: &Path, quick: bool) -> (f64, f64) {
    let (engine, depth) = match case.calls {
        Calls::Plain => ("psync", 1),
        Calls::Ring(depth) => ("io_uring", depth),
    };
    let direction = if case.write { "write" } else { "read" };
    let mut command = Command::new("fio");
    command.arg(format!("--filename={}", text(path))).arg(format!("--rw=rand{direction}"));
    command.arg(format!("--size={}", u64::from(BLOCKS) * BLOCK as u64));
    command.arg(format!("--io_size={}", case.operations() * BLOCK));
    command.arg(format!("--ioengine={engine}")).arg(format!("--iodepth={depth}"));
    command.args([format!("--direct={}", u8::from(case.direct)), format!("--gtod_reduce={}", u8::from(quick))]);
    command.args(["--name=x", "--bs=4k", "--thread=1", "--invalidate=0", "--eta=never", "--output-format=json"]);
    let output = command.output().expect("fio starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let moved = &told["jobs"][0][direction];
    let number = |key: &str| moved[key].as_f64().expect("a number");
    assert_eq!(number("total_ios") as usize, case.operations());
    let ns = number("runtime") * 1e6 / number("total_ios");
    let share = |key: &str| told["jobs"][0][key].as_f64().expect("a share in percent") / 100.0;
    (ns, ns * (share("usr_cpu") + share("sys_cpu")))
}

/// The clock and the processor time of this process.
struct Begun(Instant, u64);

impl Begun {
    /// After a rest, which fio's threads have too. A thread that was busy until then is moved away
    /// from what completes its requests, and takes twice as long for tens of milliseconds.
    fn now() -> Begun {
        std::thread::sleep(REST);
        Begun(Instant::now(), cpu_ns())
    }

    /// Times for each of `operations` operations since the start.
    fn each(self, operations: usize) -> (f64, f64) {
        let each = |ns: u64| ns as f64 / operations as f64;
        (each(self.0.elapsed().as_nanos() as u64), each(cpu_ns() - self.1))
    }
}

fn cpu_ns() -> u64 {
    let usage = pickfs_system::sys::process::own_usage();
    usage.user_ns + usage.system_ns
}

/// Nanoseconds of [`Latencies::lap`], in a loop of nothing else.
fn lap_ns() -> f64 {
    const LAPS: u32 = 1_000_000;
    let one = |_| {
        let mut latencies = Latencies::new();
        let begun = Instant::now();
        latencies.start();
        (0..LAPS).for_each(|_| latencies.lap());
        begun.elapsed().as_nanos() as f64 / f64::from(LAPS)
    };
    median(&(0..ROUNDS).map(one).collect::<Vec<_>>())
}

/// Where the files lie.
struct Place {
    folder: PathBuf,
    mounted: bool,
    /// Holds the mount, or the files themselves; goes last.
    _outer: tempfile::TempDir,
}

impl Place {
    fn new() -> Result<Place, String> {
        let given = std::env::args().skip(1).find(|word| !word.starts_with('-'));
        if let Some(folder) = given {
            let outer = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
            return Ok(Place { folder: outer.path().into(), mounted: false, _outer: outer });
        }
        if !rustix::process::geteuid().is_root() {
            return Err("not root; name a folder with `-- DIR`".into());
        }
        let outer = tempfile::tempdir_in("/dev/shm").map_err(|error| error.to_string())?;
        let (image, folder) = (outer.path().join("image"), outer.path().join("mount"));
        File::create(&image).and_then(|file| file.set_len(2 << 30)).map_err(|error| error.to_string())?;
        std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
        run("mke2fs", &["-t", "ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", &text(&image)]);
        run("mount", &["-o", "loop", &text(&image), &text(&folder)]);
        Ok(Place { folder, mounted: true, _outer: outer })
    }

    /// One for each kind, as direct writes throw the cache of theirs away; written, and read once.
    fn file(&self, write: bool, direct: bool) -> PathBuf {
        let path = self.folder.join(format!("{}-{}", if write { "write" } else { "read" }, u8::from(direct)));
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path).expect("a file");
        let mut run = vec![0; 1 << 20];
        blocks::fill(&mut run, 0);
        for offset in (0..u64::from(BLOCKS) * BLOCK as u64).step_by(run.len()) {
            blocks::stamp(&mut run, offset, 0);
            file.write_all_at(&run, offset).expect("it is written");
        }
        file.sync_all().expect("it is durable");
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.mounted {
            run("umount", &[&text(&self.folder)]);
        }
    }
}

fn median(values: &[f64]) -> f64 {
    pickfs_stats::median(values).expect("values")
}

fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status().expect("the program starts");
    assert!(status.success(), "{program} {words:?}");
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
