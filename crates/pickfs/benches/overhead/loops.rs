//! Our loops and bare ones, thread by thread.

use pickfs_system::sys::file::AlignedBuffer;
use pickfs_target::stage::Latencies;
use pickfs_target::workload::io::blocks::{self, Supply};
use pickfs_target::workload::io::engine::{Direction, Engine, Job, Workers};
use pickfs_target::workload::small_files::engine::{self as files, Batch, Names};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const THREADS: [usize; 3] = [1, 4, 16];
const PAIRS: usize = 31;
const LIMIT: f64 = 1.03;
const BLOCK: usize = 4096;
const BLOCKS: u32 = 16_384;
const FILES: usize = 8192;
const WRITE: Direction = Direction::Write { generation: 0, sync_every: 0 };

/// Nanoseconds: the median and the 99th percentile of single operations, and all of the time.
type Seen = [f64; 3];
const SHOWN: [&str; 3] = ["p50", "p99", "total"];

/// Runs one of the loops in a folder with a number of threads.
type Loop = fn(&Path, usize) -> Seen;

/// What is surely slower.
pub fn compare() -> Vec<String> {
    let memory = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    let pairs: [(&str, Loop, Loop); 3] = [
        ("write 4 KiB", |at, threads| ours(at, threads, WRITE), |at, threads| bare(at, threads, WRITE)),
        (
            "read 4 KiB",
            |at, threads| ours(at, threads, Direction::Read),
            |at, threads| bare(at, threads, Direction::Read),
        ),
        ("create a file", ours_create, bare_create),
    ];
    println!("ours / bare loop, {PAIRS} pairs by turns: ratio (95 % interval), medians in ns\n");
    pairs
        .into_iter()
        .flat_map(|(name, ours, bare)| {
            THREADS.into_iter().flat_map(|threads| row(memory.path(), name, threads, ours, bare)).collect::<Vec<_>>()
        })
        .collect()
}

fn row(at: &Path, name: &str, threads: usize, ours: Loop, bare: Loop) -> Vec<String> {
    let mut seen: [Vec<Seen>; 2] = Default::default();
    for round in 0..=PAIRS {
        for turn in 0..2 {
            let who = (turn + round) % 2;
            let came = [ours, bare][who](at, threads);
            // The first pair brings everything into caches.
            if round > 0 {
                seen[who].push(came);
            }
        }
    }
    let mut slower = Vec::new();
    print!("{name:<14}{threads:>3} threads");
    for (which, shown) in SHOWN.iter().enumerate() {
        let [ours, bare] = [&seen[0], &seen[1]].map(|all| all.iter().map(|one| one[which]).collect::<Vec<f64>>());
        let logs: Vec<f64> = ours.iter().zip(&bare).map(|(ours, bare)| (ours / bare).ln()).collect();
        let estimate = pickfs_stats::paired_ratio(&logs, 0.95).expect("pairs");
        let (low, high) = estimate.interval.expect("enough pairs");
        let [ours, bare] = [ours, bare].map(|all| pickfs_stats::median(&all).expect("pairs"));
        print!("   {shown} {:.3} ({low:.3}–{high:.3}) {ours:.0} / {bare:.0}", estimate.ratio);
        if low > LIMIT {
            slower.push(format!(
                "{name}, {threads} threads: {shown} is {:.3} ({low:.3}–{high:.3}) of the bare loop's",
                estimate.ratio
            ));
        }
    }
    println!();
    slower
}

fn seen(total: f64, latencies: &Latencies) -> Seen {
    [latencies.quantile(0.5) as f64, latencies.quantile(0.99) as f64, total]
}

fn file(at: &Path) -> File {
    let file =
        File::options().read(true).write(true).create(true).truncate(false).open(at.join("file")).expect("a file");
    file.set_len(u64::from(BLOCKS) * BLOCK as u64).expect("its size");
    file
}

fn ours(at: &Path, threads: usize, direction: Direction) -> Seen {
    let (file, places) = (file(at), blocks::shuffled(BLOCKS, BLOCKS as usize));
    let job = Job { engine: Engine::Plain, threads, depth: 1, block: BLOCK, direction, places: &places, due: None };
    let mut workers = Workers::new(job).expect("workers");
    let begun = Instant::now();
    let logs = workers.work(&file, || Ok(())).expect("it works");
    let total = begun.elapsed().as_nanos() as f64;
    seen(total, &workers.sum(&logs).expect("all was done").latencies)
}

fn bare(at: &Path, threads: usize, direction: Direction) -> Seen {
    let (file, places) = (&file(at), blocks::shuffled(BLOCKS, BLOCKS as usize));
    let loops = places.chunks(places.len().div_ceil(threads)).map(|places| {
        let mut supply = Supply::new(BLOCK, threads);
        let mut buffer = AlignedBuffer::new(if direction == Direction::Read { BLOCK } else { supply.bytes() });
        blocks::fill(&mut buffer, 0);
        let mut places = places.iter();
        // What ours marks and looks at as well: else other bytes would be written, and none of
        // those read be touched.
        move || {
            let Some(place) = places.next() else { return false };
            let offset = u64::from(*place) * BLOCK as u64;
            if direction == Direction::Read {
                file.read_exact_at(&mut buffer, offset).expect("it is read");
                blocks::generation(&buffer, offset).expect("what was written");
            } else {
                let at = supply.turn();
                blocks::stamp(&mut buffer[at..at + BLOCK], offset, 0);
                file.write_all_at(&buffer[at..at + BLOCK], offset).expect("it is written");
            }
            true
        }
    });
    together(loops.collect(), BLOCKS as usize)
}

fn ours_create(at: &Path, threads: usize) -> Seen {
    let names = Names::in_order(FILES, threads);
    let (place, steps) = (at.join("ours"), names.steps());
    let batch = Batch::make(&place, threads).expect("a batch");
    let mut workers = files::Workers::new(threads).expect("threads");
    let begun = Instant::now();
    workers
        .work(&steps, |steps, own| batch.each("create", steps, own, |folder, name| files::create(folder, name, &[])))
        .expect("files");
    let total = begun.elapsed().as_nanos() as f64;
    std::fs::remove_dir_all(place).expect("it goes");
    seen(total, &workers.latencies())
}

fn bare_create(at: &Path, threads: usize) -> Seen {
    let names = Names::in_order(FILES, threads);
    let (place, steps) = (at.join("bare"), names.steps());
    let batch = &Batch::make(&place, threads).expect("a batch");
    let loops = steps.chunks(FILES.div_ceil(threads)).map(|steps| {
        let mut steps = steps.iter();
        move || {
            let Some((folder, name)) = steps.next() else { return false };
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            drop(rustix::fs::openat(batch.folder(*folder), *name, flags, Mode::RUSR | Mode::WUSR).expect("a file"));
            true
        }
    });
    let seen = together(loops.collect(), FILES);
    std::fs::remove_dir_all(place).expect("it goes");
    seen
}

/// Threads that wait for each other, and a look at the clock before and after each operation;
/// `false` ends a loop.
fn together(loops: Vec<impl FnMut() -> bool + Send>, operations: usize) -> Seen {
    let (begin, end) = (&Barrier::new(loops.len()), &Barrier::new(loops.len()));
    let mut loops = loops.into_iter();
    let own = loops.next().expect("a loop");
    let (total, mut times) = std::thread::scope(|scope| {
        let others: Vec<_> = loops.map(|one| scope.spawn(move || time(one, begin, end, operations).1)).collect();
        std::thread::sleep(Duration::from_millis(2)); // all are at the barrier by then
        let (total, mut times) = time(own, begin, end, operations);
        others.into_iter().for_each(|thread| times.extend(thread.join().expect("it works")));
        (total, times)
    });
    times.sort_unstable();
    assert_eq!(times.len(), operations);
    let exact = |share: f64| times[(share * operations as f64).ceil() as usize - 1] as f64;
    [exact(0.5), exact(0.99), total]
}

/// Nanoseconds of all, and of each operation.
fn time(mut one: impl FnMut() -> bool, begin: &Barrier, end: &Barrier, operations: usize) -> (f64, Vec<u64>) {
    let mut times = Vec::with_capacity(operations);
    let begun = Instant::now();
    begin.wait();
    let mut last = Instant::now();
    while one() {
        let now = Instant::now();
        times.push((now - last).as_nanos() as u64);
        last = now;
    }
    end.wait();
    (begun.elapsed().as_nanos() as f64, times)
}
