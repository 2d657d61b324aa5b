//! What a model gives, found out by driving it on a clock that is only counted: no disk and no
//! guest is needed.

use super::parameters::{Disk, at, last_zone};
use anyhow::Result;
use pickfs_system::sys::disk_model::{Asked, Count, DiskModel, Operation};
use std::collections::HashSet;

/// Sectors of 4 KiB and of 1 MiB.
pub(crate) const PAGE: u64 = 8;
pub(crate) const CHUNK: u64 = 2048;
/// Requests of a measurement.
const MANY: usize = 4000;

/// Figures that data sheets and benchmarks give.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpeeds {
    /// Bytes a second, in 1 MiB reads, one after the other: at the beginning, in the middle, at the
    /// end.
    pub sequential_reads: [f64; 3],
    /// Bytes a second, in 1 MiB writes, eight at a time, after a GiB.
    pub sequential_writes: f64,
    /// 4 KiB random reads, one and 32 at a time.
    pub random_reads: [Loop; 2],
    /// 4 KiB random writes, one at a time, into the cache.
    pub random_write: Loop,
    /// Nanoseconds of a FLUSH after this number of random 4 KiB writes.
    pub flushes: [(u64, f64); 4],
    /// Nanoseconds of a random seek; none without an arm.
    pub average_seek_ns: Option<f64>,
    /// For flash whose spare is known: random writes for long, by how full the drive is.
    pub used: Vec<Used>,
}

/// 4 KiB random writes, 32 at a time, for long, on a drive of which a share is full and stays so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Used {
    pub filled: f64,
    /// Bytes that flash programs for a byte that the host writes.
    pub write_amplification: f64,
    pub requests_a_second: f64,
}

/// Requests that were answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loop {
    pub requests_a_second: f64,
    pub mean_ns: f64,
    pub p99_ns: f64,
}

pub fn speeds_of(disk: &Disk) -> Result<ModelSpeeds> {
    let words = disk.words(0, 0)?;
    let sectors = words[at("SECTORS")];
    let fresh = || DiskModel::start(&words).map(Clock::new).map_err(|_| anyhow::anyhow!("no such disk"));
    let rate =
        |done: RequestTimes, each: u64| done.times.len() as f64 * (each * 512) as f64 / done.took_ns as f64 * 1e9;
    let mut sequential_reads = [0.0; 3];
    // Half of a small disk.
    let count = (sectors / 2 / CHUNK).clamp(1, 500);
    for (found, start) in sequential_reads.iter_mut().zip([0, sectors / 2, sectors.saturating_sub(count * CHUNK)]) {
        *found = rate(fresh()?.closed(1, count as usize, chunks(Operation::Read, start, sectors)), CHUNK);
    }
    let mut ahead = chunks(Operation::Write, 0, sectors);
    let mut clock = fresh()?;
    // More than a disk takes at a time wait before it.
    let most = words[at("DEPTH")] as usize;
    clock.closed(8.min(most), 1024, &mut ahead);
    let sequential_writes = rate(clock.closed(8.min(most), 512, &mut ahead), CHUNK);
    Ok(ModelSpeeds {
        sequential_reads,
        sequential_writes,
        random_reads: [random_reads(disk, sectors, 1, MANY, 1)?, random_reads(disk, sectors, 32, MANY, 1)?],
        random_write: few_writes(fresh()?, sectors),
        flushes: flushes(&fresh, sectors)?,
        average_seek_ns: disk.kind.has_arm().then(|| average_seek(&fresh().expect("it was one").disk, &words)),
        used: if disk.can_be_used() {
            [0.5, 0.9, 1.0].into_iter().filter_map(|filled| used(disk, filled).transpose()).collect::<Result<_>>()?
        } else {
            Vec::new()
        },
    })
}

/// On a drive of 1 GiB; a larger one has more blocks, and the same share of them is spare. None
/// where erase blocks are too large for one of that size, as in a model that was fitted with many
/// dies.
fn used(disk: &Disk, filled: f64) -> Result<Option<Used>> {
    const SECTORS: u64 = 1 << 21;
    const MANY: usize = 64 << 10;
    let Ok(words) = disk.used(0, SECTORS, 0.0) else { return Ok(None) };
    let mut clock = Clock::new(DiskModel::start(&words).map_err(|_| anyhow::anyhow!("no such disk"))?);
    let depth = 32.min(words[at("DEPTH")] as usize);
    let full = (SECTORS as f64 * filled) as u64 / CHUNK;
    clock.closed(1, full as usize, chunks(Operation::Write, 0, full * CHUNK));
    let (mut random, pages) = (Random(4), full * CHUNK / PAGE);
    let mut write = || asked(Operation::Write, random.below(pages) * PAGE, PAGE);
    // Until garbage collection is steady.
    clock.closed(depth, 2 * pages as usize, &mut write);
    let counts = |clock: &Clock| [Count::Written, Count::Copied].map(|which| clock.disk.count(which));
    let before = counts(&clock);
    let took = clock.closed(depth, MANY, &mut write).took_ns;
    let [written, copied] = counts(&clock);
    Ok(Some(Used {
        filled,
        write_amplification: 1.0 + (copied - before[1]) as f64 / (written - before[0]) as f64,
        requests_a_second: MANY as f64 / took as f64 * 1e9,
    }))
}

/// Reads of 4 KiB, at a queue depth, within `within` sectors from the disk's first on; none twice,
/// as long as half of them are left.
pub fn random_reads(disk: &Disk, within: u64, depth: usize, count: usize, seed: u64) -> Result<Loop> {
    let words = disk.words(0, 0)?;
    let model = DiskModel::start(&words).map_err(|_| anyhow::anyhow!("no such disk"))?;
    let (mut random, most) = (Random(seed), words[at("DEPTH")] as usize);
    let (pages, mut taken) = (within / PAGE, HashSet::new());
    let mut next = || loop {
        let page = random.below(pages);
        if taken.insert(page) || taken.len() as u64 > pages / 2 {
            return asked(Operation::Read, page * PAGE, PAGE);
        }
    };
    Ok(Clock::new(model).closed(depth.min(most), count, &mut next).shown())
}

/// As many as any cache holds.
fn few_writes(mut clock: Clock, sectors: u64) -> Loop {
    let mut random = Random(2);
    clock.closed(1, 200, || asked(Operation::Write, random.below(sectors / PAGE) * PAGE, PAGE)).shown()
}

fn flushes(fresh: &dyn Fn() -> Result<Clock>, sectors: u64) -> Result<[(u64, f64); 4]> {
    let mut found = [(0, 0.0), (1, 0.0), (32, 0.0), (256, 0.0)];
    for (writes, took) in &mut found {
        let (mut clock, mut random) = (fresh()?, Random(3));
        const TURNS: u64 = 40;
        for _ in 0..TURNS {
            let writes = *writes as usize;
            clock.closed(1, writes, || asked(Operation::Write, random.below(sectors / PAGE) * PAGE, PAGE));
            *took += clock.closed(1, 1, || asked(Operation::Flush, 0, 0)).took_ns as f64 / TURNS as f64;
            // Not at the same angle each time.
            clock.now += random.below(1 << 24);
        }
    }
    Ok(found)
}

/// Over distances between two random places of the disk.
fn average_seek(model: &DiskModel, words: &[u64]) -> f64 {
    let zone = &words[last_zone(words)..];
    let cylinders = zone[1] + (words[at("SECTORS")] - zone[0]) / (zone[2] * words[at("HEADS")]);
    let share = |step: u64| (step as f64 + 0.5) / 1000.0;
    // The distance of two random places on a line has the density 2 (1 - x).
    let seek = |step: u64| model.seek_ns((share(step) * cylinders as f64) as u64) as f64 * 2.0 * (1.0 - share(step));
    (0..1000).map(seek).sum::<f64>() / 1000.0
}

pub(crate) fn asked(operation: Operation, first: u64, sectors: u64) -> Asked {
    Asked { operation, forced: false, first, sectors }
}

/// One MiB behind the other, and from the disk's end to its beginning.
fn chunks(operation: Operation, first: u64, sectors: u64) -> impl FnMut() -> Asked {
    let mut next = first;
    move || {
        next = if next + CHUNK <= sectors { next + CHUNK } else { CHUNK };
        asked(operation, next - CHUNK, CHUNK)
    }
}

/// Splitmix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }
}

/// A model with its clock.
pub(crate) struct Clock {
    pub disk: DiskModel,
    pub now: u64,
}

/// Times of requests, in the order of their ends.
pub struct RequestTimes {
    pub times: Vec<u64>,
    pub took_ns: u64,
}

impl Clock {
    pub(crate) fn new(disk: DiskModel) -> Clock {
        Clock { disk, now: 0 }
    }

    /// A number of requests at a queue depth: the next one comes when one is answered.
    pub(crate) fn closed(&mut self, depth: usize, count: usize, mut next: impl FnMut() -> Asked) -> RequestTimes {
        let (begun, mut times) = (self.now, Vec::with_capacity(count));
        let mut since = vec![0; depth];
        let mut sent = 0;
        for (tag, at) in since.iter_mut().enumerate().take(count) {
            (*at, sent) = (self.now, sent + 1);
            self.disk.submit(tag, &next(), self.now);
        }
        while times.len() < count {
            let Some((tag, when)) = self.disk.done() else {
                self.now = self.disk.next_event().expect("requests are under way").max(self.now);
                self.disk.wake(self.now);
                continue;
            };
            times.push(when - since[tag]);
            if sent < count {
                (since[tag], sent) = (self.now, sent + 1);
                self.disk.submit(tag, &next(), self.now);
            }
        }
        RequestTimes { times, took_ns: (self.now - begun).max(1) }
    }
}

impl RequestTimes {
    pub(crate) fn shown(mut self) -> Loop {
        self.times.sort_unstable();
        let count = self.times.len();
        Loop {
            requests_a_second: count as f64 / self.took_ns as f64 * 1e9,
            mean_ns: self.times.iter().sum::<u64>() as f64 / count as f64,
            p99_ns: self.times[(count * 99 / 100).min(count - 1)] as f64,
        }
    }
}

#[cfg(test)]
mod tests;
