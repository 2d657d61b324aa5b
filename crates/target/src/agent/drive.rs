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
type Speed = (RawSpeed, Vec<(&'static str, String)>);

/// Speed of a device that will be formatted: its first blocks are overwritten.
pub(crate) fn device_speed(device: &Path, readings: Readings) -> Result<Speed> {
    block::flush_buffers(device).ok();
    // The image was just written, and is still in memory.
    caches::drop_below(device)?;
    let bytes = block::size_of_device(device)?;
    all(device, bytes, file::open_direct(device, false).ok(), readings)
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
        all(&path, BYTES, file::open_direct(&path, false).ok(), readings)
    });
    std::fs::remove_file(&path).ok();
    measured
}

/// Without `direct`, which passes by the page cache, random reads would be of pages that were just
/// brought there.
fn all(path: &Path, bytes: u64, direct: Option<File>, readings: Readings) -> Result<Speed> {
    let cached = File::open(path)?;
    let buffered = per_second(sequential(&cached, bytes, readings)?);
    let again = per_second(repeated(&cached, readings)?);
    let read = direct.map(|direct| random_reads(&direct, bytes, readings)).transpose()?.map(each);
    let write = each(durable_writes(&OpenOptions::new().write(true).open(path)?, readings)?);
    let speed = RawSpeed {
        buffered_bytes_per_second: Some(buffered),
        cached_bytes_per_second: Some(again),
        random_read_ns: read,
        durable_write_ns: Some(write),
    };
    let facts = [
        ("raw buffered reads", Some(format!("{}/s", show_bytes(buffered)))),
        ("raw cached reads", Some(format!("{}/s", show_bytes(again)))),
        ("raw 4 KiB random read", read.map(|ns| format!("{} each, one at a time, direct", show_duration(ns)))),
        ("raw 4 KiB write and flush", Some(format!("{} each", show_duration(write)))),
    ];
    Ok((speed, facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()))
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

fn sequential(file: &File, bytes: u64, readings: Readings) -> Result<Done> {
    let mut buffer = vec![0; CHUNK];
    repeat(readings, |turn| {
        let at = turn * CHUNK as u64;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_reads_are_not_of_the_page_cache() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![b'x'; 2 * CHUNK]).unwrap();
        for direct in [None, Some(File::open(&path).unwrap())] {
            let is_direct = direct.is_some();
            let (speed, facts) = all(&path, 2 * CHUNK as u64, direct, ONE).unwrap();
            let is_in_words = facts.iter().any(|(name, _)| *name == "raw 4 KiB random read");
            assert_eq!(
                (speed.random_read_ns.is_some(), is_in_words, facts.len()),
                (is_direct, is_direct, 3 + usize::from(is_direct))
            );
        }
    }
}
