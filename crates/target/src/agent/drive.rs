//! The raw speed of a backing, once a run, to compare results with: what `hdparm -tT` calls
//! buffered and cached reads, 4 KiB random reads, and 4 KiB writes each made durable. Five readings
//! of at most a tenth of a second each, of which the fastest counts, as others can only slow a disk
//! down: an orientation, not a verdict.

use crate::stage::caches;
use anyhow::{Context, Result};
use pickfs_core::journal::RawSpeed;
use pickfs_system::sys::{block, file};
use pickfs_system::units::{show_bytes, show_duration};
use rand_core::{Rng, SeedableRng};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often and how long something is read.
#[derive(Clone, Copy)]
pub(crate) struct Readings {
    number: usize,
    /// No longer than this, unless there is only one.
    most: Duration,
}

impl Readings {
    fn want_more(self, turns: u64, elapsed: Duration) -> bool {
        match self.number {
            1 => turns < LEAST_TURNS || elapsed < self.most,
            _ => elapsed < self.most && (turns < LEAST_TURNS || elapsed < ENOUGH),
        }
    }
}

pub(crate) const USUAL: Readings = Readings { number: 5, most: Duration::from_millis(100) };
/// Where each reading is the same.
pub(crate) const ONE: Readings = Readings { number: 1, most: Duration::from_millis(20) };
/// A reading of a fast disk needs no more than this, and what a clock and a scheduler do to it is
/// small.
const ENOUGH: Duration = Duration::from_millis(25);
/// Least number of reads: on a rotating disk, fewer would measure its angle.
const LEAST_TURNS: u64 = 16;
const CHUNK: usize = 2 << 20;
const PAGE: usize = 4096;

/// With facts that say the same in words.
type Speed = (RawSpeed, [(&'static str, String); 4]);

/// Speed of a device that will be formatted: its first blocks are overwritten.
pub(crate) fn device_speed(device: &Path, readings: Readings) -> Result<Speed> {
    block::flush_buffers(device).ok();
    // The image was just written, and is still in memory.
    caches::drop_below(device)?;
    let bytes = block::size_of_device(device)?;
    all(device, bytes, 0, readings)
}

/// Speed of a directory on an existing file system, by a file that is removed again.
pub(crate) fn directory_speed(directory: &Path, readings: Readings) -> Result<Speed> {
    const BYTES: u64 = 64 << 20;
    let path = directory.join("raw-speed");
    let mut random = generator();
    let mut content = vec![0; BYTES as usize];
    random.fill_bytes(&mut content);
    let measured = std::fs::write(&path, &content).context("cannot write a file for the raw speed").and_then(|()| {
        File::open(&path)?.sync_all()?;
        file::drop_file_cache(&path)?;
        all(&path, BYTES, 0, readings)
    });
    std::fs::remove_file(&path).ok();
    measured
}

fn all(path: &Path, bytes: u64, from: u64, readings: Readings) -> Result<Speed> {
    let cached = File::open(path)?;
    let buffered = per_second(sequential(&cached, from, bytes, readings)?);
    let again = per_second(repeated(&cached, readings)?);
    let direct = file::open_direct(path, false);
    let (reads, mode) = match &direct {
        Ok(direct) => (random_reads(direct, bytes, readings)?, "direct"),
        Err(_) => (random_reads(&cached, bytes, readings)?, "through the page cache"),
    };
    let (read, write) = (each(reads), each(durable_writes(&OpenOptions::new().write(true).open(path)?, readings)?));
    let speed = RawSpeed {
        buffered_bytes_per_second: Some(buffered),
        cached_bytes_per_second: Some(again),
        random_read_ns: Some(read),
        durable_write_ns: Some(write),
    };
    let facts = [
        ("raw buffered reads", format!("{}/s", show_bytes(buffered))),
        ("raw cached reads", format!("{}/s", show_bytes(again))),
        ("raw 4 KiB random read", format!("{} each, one at a time, {mode}", show_duration(read))),
        ("raw 4 KiB write and flush", format!("{} each", show_duration(write))),
    ];
    Ok((speed, facts))
}

/// What was done in what time.
type Done = (u64, Duration);

/// The fastest of some readings; one ends early where there is nothing left to do.
fn repeat(readings: Readings, mut work: impl FnMut(u64) -> Result<u64>) -> Result<Done> {
    let (mut turn, mut best) = (0, None::<Done>);
    for _ in 0..readings.number {
        let (begun, first, mut total) = (Instant::now(), turn, 0);
        while readings.want_more(turn - first, begun.elapsed()) {
            match work(turn)? {
                0 => break,
                done => total += done,
            }
            turn += 1;
        }
        let reading = (total, begun.elapsed());
        best = best.filter(|best| per_second(*best) >= per_second(reading)).or(Some(reading));
    }
    best.context("no reading")
}

fn per_second((total, time): Done) -> f64 {
    total as f64 / time.as_secs_f64()
}

fn sequential(file: &File, from: u64, bytes: u64, readings: Readings) -> Result<Done> {
    let mut buffer = vec![0; CHUNK];
    repeat(readings, |turn| {
        let at = from + turn * CHUNK as u64;
        if at + CHUNK as u64 > bytes { Ok(0) } else { Ok(file.read_at(&mut buffer, at)? as u64) }
    })
}

fn repeated(file: &File, readings: Readings) -> Result<Done> {
    let mut buffer = vec![0; CHUNK];
    repeat(readings, |_| Ok(file.read_at(&mut buffer, 0)? as u64))
}

fn random_reads(file: &File, bytes: u64, readings: Readings) -> Result<Done> {
    let mut random = generator();
    let mut buffer = file::AlignedBuffer::new(PAGE);
    let pages = (bytes / PAGE as u64).max(1);
    repeat(readings, |_| {
        file.read_exact_at(buffer.as_mut(), random.next_u64() % pages * PAGE as u64).map(|()| 1).map_err(Into::into)
    })
}

fn durable_writes(file: &File, readings: Readings) -> Result<Done> {
    let mut page = vec![0; PAGE];
    generator().fill_bytes(&mut page);
    repeat(readings, |turn| {
        file.write_all_at(&page, turn % 256 * PAGE as u64)?;
        file.sync_data()?;
        Ok(1)
    })
}

fn generator() -> rand_xoshiro::Xoshiro256PlusPlus {
    rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(4096)
}

/// Nanoseconds.
fn each((count, time): Done) -> f64 {
    time.as_nanos() as f64 / count.max(1) as f64
}
