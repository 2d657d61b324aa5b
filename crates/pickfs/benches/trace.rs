//! The replay of traces as an instrument.
//!
//! 1. As fast as possible, compared with a bare loop of the same calls, by turns in memory. Less
//!    than 90 % of its calls in a second fail the bench.
//! 2. A million operations of sixteen threads, read and put in order: more than 2 s fails the
//!    bench.

use pickfs_system::units::show_duration;
use pickfs_target::workload::trace::{InFolder, threads};
use pickfs_trace::{Header, Kind, Numbering, Op, Trace, Writer};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

const FILES: u32 = 5000;
const LENGTH: u64 = 4096;
/// What a replay's writes are cut from.
const DATA: usize = 2 << 20;
const ROUNDS: usize = 42;
const LEAST_SPEED: f64 = 0.9;
const MOST_NS: f64 = 2e9;

fn main() -> ExitCode {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    let trace = files(1, FILES);
    let (mut bare, mut replayed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let [first, second] = ["a", "b"].map(|name| folder.path().join(format!("{name}{round}")));
        [&first, &second].into_iter().for_each(|folder| std::fs::create_dir(folder).expect("a folder"));
        let mut ready = InFolder::new(&first, &trace).expect("a replay");
        let mut replay = || {
            replayed.push(timed(|| {
                let outcome = ready.play(0.0, None).expect("a replay");
                assert_eq!(outcome.differing, 0, "{:?}", outcome.first);
            }))
        };
        // Whichever is second finds the kernel's own memory in the caches.
        let is_first = round % 2 == 0;
        if is_first {
            replay();
        }
        bare.push(loop_of_calls(&second, &trace));
        if !is_first {
            replay();
        }
    }
    let (bare, replayed) = (median(bare), median(replayed));
    let speed = bare / replayed;
    println!(
        "as fast as possible: {} calls in {}, a bare loop {}: {:.0} % of its speed",
        trace.ops.len(),
        shown(replayed),
        shown(bare),
        100.0 * speed
    );
    let compiled = million();
    let met = speed >= LEAST_SPEED && compiled <= MOST_NS;
    println!("{}", if met { "met" } else { "NOT MET" });
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Nanoseconds to put a million operations in order.
fn million() -> f64 {
    let many = files(16, 1_000_000 / 6 / 16 + 1);
    let mut writer = Writer::default();
    many.ops.iter().for_each(|op| writer.push(*op));
    let bytes = writer.finish(&many.header, &many.paths, &many.tree).expect("a trace");
    let read = timed(|| drop(pickfs_trace::read(&bytes).expect("a trace")));
    let ordered = timed(|| assert_eq!(threads(&many), 16));
    println!("{} operations: read in {}, put in order in {}", many.ops.len(), shown(read), shown(ordered));
    ordered
}

/// Threads that take turns, each of which makes, writes, reads, looks at, closes and removes `each`
/// files.
fn files(threads: u32, each: u32) -> Trace {
    let mut numbering = Numbering::default();
    let root = numbering.root(0);
    let mut ops = Vec::new();
    for number in 0..each {
        let first = 1 + number * threads;
        let op = |thread: u32, kind| Op { thread, object: first + thread, ..Op::new(kind) };
        let paths: Vec<u32> = (0..threads)
            .map(|thread| numbering.below(root, format!("f{number}.{thread}").as_bytes()).expect("a path"))
            .collect();
        let mut all = |make: &dyn Fn(u32) -> Op| {
            for thread in 0..threads {
                ops.push(Op { began: ops.len() as u32, ..make(thread) });
            }
        };
        let path = |thread: u32| paths[thread as usize];
        all(&|thread| Op {
            path: path(thread),
            flags: (libc::O_CREAT | libc::O_RDWR) as u64,
            ..op(thread, Kind::Open)
        });
        all(&|thread| Op { length: LENGTH, result: LENGTH as i64, ..op(thread, Kind::Write) });
        all(&|thread| Op { length: LENGTH, result: LENGTH as i64, ..op(thread, Kind::ReadAt) });
        all(&|thread| Op { path: path(thread), object: 0, ..op(thread, Kind::Stat) });
        all(&|thread| op(thread, Kind::Close));
        all(&|thread| Op { path: path(thread), object: 0, ..op(thread, Kind::Unlink) });
    }
    let tree = vec![pickfs_trace::Entry { path: root, what: pickfs_trace::EntryKind::Directory }];
    let header = Header { schema: pickfs_trace::SCHEMA, roots: 1, threads, ..Header::default() };
    Trace { header, paths: numbering.paths, tree, ops }
}

/// Nanoseconds of the same calls with nothing around them. What is written comes from as many bytes
/// as in a replay: with the same page each time it would be in the nearest cache, as a program's
/// own data seldom are.
fn loop_of_calls(folder: &Path, trace: &Trace) -> f64 {
    std::fs::create_dir(folder.join("top0")).expect("a folder");
    let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("a folder");
    let names: Vec<std::ffi::CString> = (1..=trace.paths.len() as u32)
        .map(|path| std::ffi::CString::new(trace.paths.text(path)).expect("a name"))
        .collect();
    let (mut buffer, mut file) = (vec![1; LENGTH as usize], None);
    let data = vec![1; DATA];
    let begun = Instant::now();
    for (number, op) in trace.ops.iter().enumerate() {
        let name = || &names[op.path as usize - 1];
        let open = || file.as_ref().expect("an open file");
        match op.kind {
            Kind::Open => {
                file = rustix::fs::openat(
                    &folder,
                    name(),
                    OFlags::from_bits_retain(op.flags as u32) | OFlags::CLOEXEC,
                    Mode::from_raw_mode(0o644),
                )
                .ok()
            }
            Kind::Write => {
                let at = number.wrapping_mul(0x9E37_79B9) % (DATA - LENGTH as usize);
                assert_eq!(rustix::io::write(open(), &data[at..at + LENGTH as usize]), Ok(LENGTH as usize));
            }
            Kind::ReadAt => assert_eq!(rustix::io::pread(open(), &mut buffer[..], 0), Ok(LENGTH as usize)),
            Kind::Stat => drop(rustix::fs::statat(&folder, name(), AtFlags::empty()).expect("a file")),
            Kind::Close => drop(file.take()),
            _ => rustix::fs::unlinkat(&folder, name(), AtFlags::empty()).expect("a file"),
        }
    }
    begun.elapsed().as_nanos() as f64
}

fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_nanos() as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn shown(ns: f64) -> String {
    show_duration(ns)
}
