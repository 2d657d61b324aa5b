//! Measures a disk and fits a model to it. [`measure`] asks the disk, [`fitted`] computes, [`real`]
//! is a block device; a model on its virtual clock is measured in the same way, which is how the
//! tests know that its parameters are found again. It must not know its callers, nor where the
//! model's file goes.

mod figures;
mod fit;
mod flash;
mod hard_disk;
mod real;

pub use figures::{Round, pooled};
pub use fit::{About, FittedModel, fitted};

pub use real::RealDrive;

use super::parameters::Kind;
use super::virtual_clock::{CHUNK, Loop, PAGE, Random, RequestTimes, asked};
use anyhow::{Result, ensure};
use figures::{Writes, median};
use pickfs_system::sys::disk_model::{Asked, Operation};

/// Something that answers requests.
pub trait Drive {
    /// Size in sectors of 512 bytes.
    fn sectors(&self) -> u64;
    /// All of the requests, `depth` of them at a time.
    fn answer(&mut self, depth: usize, requests: &[Asked]) -> Result<RequestTimes>;
}

/// What is asked of the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    pub kind: Kind,
    /// Commands that the disk takes at a time.
    pub depth: usize,
    /// Write to the disk: everything on it is lost.
    pub scratch: bool,
}

/// Each figure is measured once a round.
pub(crate) const ROUNDS: usize = 5;
/// Places of sequential reads, as shares of the sectors.
const PLACES: usize = 17;
/// Reads of 1 MiB at each place, after some that are not counted.
const CHUNKS: usize = 12;
const UNCOUNTED: usize = 4;
/// Reads of one place over and over.
const SAME: usize = 100;
/// Reads that each lie before the last one.
const BACKWARDS: usize = 60;
/// Seeks of each distance in a round.
const SEEKS: usize = 40;
/// Shares of the full stroke.
const DISTANCES: [f64; 16] =
    [2e-5, 1e-4, 5e-4, 2e-3, 5e-3, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 0.95];
/// What is written at most in sequence, and how much of it is timed together.
const MOST_WRITTEN: u64 = 64 << 30;
const TIMED_TOGETHER: u64 = 256 << 20;
/// Longest time of writing in sequence, in nanoseconds.
const LONGEST_WRITING: u64 = 60_000_000_000;
/// Random writes between two flushes.
const UNSAVED: [usize; 4] = [0, 1, 32, 256];
const FLUSHES: usize = 12;
/// Those of flash after one write, which show how its flushes are distributed.
const MANY_FLUSHES: usize = 200;
/// Sectors that a seek passes at least: what lies nearer may have been read ahead.
const NEAREST: f64 = 32768.0;

/// Measures all rounds; `say` gets a line before each part that takes seconds.
pub fn measure(drive: &mut dyn Drive, wish: Wish, say: &mut dyn FnMut(String)) -> Result<Vec<Round>> {
    ensure!(drive.sectors() >= 64 * CHUNK, "a disk of less than 64 MiB is too small to be measured");
    let mut asking = Asking { area: drive.sectors(), drive, random: Random(1), wish };
    let mut written = Vec::new();
    if wish.scratch {
        say("writing in sequence, at most a minute".to_string());
        written = asking.sustained()?;
        // Flash answers for blocks without data before it has read anything.
        if wish.kind == Kind::Flash {
            asking.area =
                written.iter().map(|(before, _)| (before + TIMED_TOGETHER) / 512).max().unwrap_or(asking.area);
        }
    }
    let mut rounds = Vec::new();
    for number in 1..=ROUNDS {
        say(format!("round {number} of {ROUNDS}"));
        let mut round = asking.round()?;
        if let Some(writes) = &mut round.writes {
            writes.sustained = std::mem::take(&mut written);
        }
        rounds.push(round);
    }
    Ok(rounds)
}

struct Asking<'a> {
    drive: &'a mut dyn Drive,
    random: Random,
    wish: Wish,
    /// The first sectors of the disk, which are read and written.
    area: u64,
}

impl Asking<'_> {
    fn round(&mut self) -> Result<Round> {
        let sequential = (0..PLACES).map(|place| self.sequential(place)).collect::<Result<Vec<_>>>()?;
        let is_disk = self.wish.kind == Kind::HardDisk;
        let seeks = if is_disk {
            let lengths = hard_disk::Lengths::of(&sequential);
            let far = DISTANCES.into_iter().filter(|share| share * self.area as f64 > NEAREST);
            far.collect::<Vec<_>>().into_iter().map(|share| self.seeks(share, lengths)).collect::<Result<Vec<_>>>()?
        } else {
            Vec::new()
        };
        let depths: &[usize] = if is_disk { &[1, 32] } else { &[1, 4, 32, 128] };
        let most = self.wish.depth;
        let depths = depths.iter().filter(|depth| **depth <= most);
        Ok(Round {
            deep: self.deep()?,
            same_place: self.same_place()?,
            random: depths.map(|depth| Ok((*depth, self.random_reads(*depth)?))).collect::<Result<_>>()?,
            backwards: if is_disk { Some(self.backwards()?) } else { None },
            writes: if self.wish.scratch { Some(self.writes()?) } else { None },
            sequential,
            seeks,
        })
    }

    fn sequential(&mut self, place: usize) -> Result<(f64, f64)> {
        let all = (UNCOUNTED + CHUNKS) as u64 * CHUNK;
        let room = self.area.saturating_sub(all);
        let first = room / (PLACES - 1) as u64 * place as u64 / PAGE * PAGE;
        let chunks: Vec<Asked> =
            in_sequence(Operation::Read, first, (UNCOUNTED + CHUNKS).min((self.area / CHUNK) as usize));
        self.drive.answer(1, &chunks[..UNCOUNTED])?;
        let counted = &chunks[UNCOUNTED..];
        let rate = rate(&self.drive.answer(1, counted)?, CHUNK);
        Ok(((first + all / 2) as f64 / self.drive.sectors() as f64, rate))
    }

    fn deep(&mut self) -> Result<f64> {
        let count = (self.area / CHUNK).min(256);
        let first = self.random.below((self.area / CHUNK - count).max(1)) * CHUNK;
        Ok(rate(&self.drive.answer(8, &in_sequence(Operation::Read, first, count as usize))?, CHUNK))
    }

    fn same_place(&mut self) -> Result<f64> {
        let one = asked(Operation::Read, self.page(), PAGE);
        Ok(median(self.drive.answer(1, &[one; SAME])?.times[1..].iter().map(|ns| *ns as f64).collect()))
    }

    /// A hundred turns of a hard disk at least, and seconds of no disk.
    fn random_reads(&mut self, depth: usize) -> Result<Loop> {
        let count = if self.wish.kind == Kind::HardDisk { 200 * if depth > 1 { 3 } else { 1 } } else { 4000 };
        let requests: Vec<Asked> = (0..count).map(|_| asked(Operation::Read, self.page(), PAGE)).collect();
        Ok(self.drive.answer(depth, &requests)?.shown())
    }

    /// Each read ends a turn after the last one, less the 4 KiB between their ends.
    fn backwards(&mut self) -> Result<f64> {
        let first = self.random.below(64) * CHUNK;
        let pages = (0..=BACKWARDS as u64).rev().map(|page| asked(Operation::Read, first + page * PAGE, PAGE));
        let times = self.drive.answer(1, &pages.collect::<Vec<_>>())?.times;
        Ok(median(times[1..].iter().map(|ns| *ns as f64).collect()))
    }

    /// From any cylinder to one that is this share of the stroke away; the platter is at any angle.
    fn seeks(&mut self, share: f64, lengths: hard_disk::Lengths) -> Result<(f64, usize, f64)> {
        let mut shortest = f64::INFINITY;
        for _ in 0..SEEKS {
            let from = self.random.below(1 << 32) as f64 / (1u64 << 32) as f64 * (1.0 - share);
            let there = [from, from + share].map(|cylinder| lengths.sectors_before(cylinder));
            let backwards = self.random.below(2) == 1;
            let there = if backwards { [there[1], there[0]] } else { there };
            let pages = self.area / PAGE;
            // At another angle each time.
            let page = |share: f64, off: u64| ((share * pages as f64) as u64 + off).min(pages - 1) * PAGE;
            let off = [self.random.below(64), self.random.below(64)];
            self.drive.answer(1, &[asked(Operation::Read, page(there[0], off[0]), PAGE)])?;
            let took = self.drive.answer(1, &[asked(Operation::Read, page(there[1], off[1]), PAGE)])?.times[0];
            shortest = shortest.min(took as f64);
        }
        Ok((share, SEEKS, shortest))
    }

    fn writes(&mut self) -> Result<Writes> {
        let random: Vec<Asked> = (0..200).map(|_| asked(Operation::Write, self.page(), PAGE)).collect();
        let random = Some(self.drive.answer(1, &random)?.shown());
        let flush = asked(Operation::Flush, 0, 0);
        self.drive.answer(1, &[flush])?;
        let mut flushes = Vec::new();
        for unsaved in UNSAVED {
            let mut took = Vec::new();
            let is_for_all = unsaved == 1 && self.wish.kind == Kind::Flash;
            for _ in 0..if is_for_all { MANY_FLUSHES } else { FLUSHES } {
                let writes: Vec<Asked> = (0..unsaved).map(|_| asked(Operation::Write, self.page(), PAGE)).collect();
                self.drive.answer(1, &writes)?;
                took.push(self.drive.answer(1, &[flush])?.times[0] as f64);
            }
            flushes.push((unsaved, took));
        }
        Ok(Writes { random, flushes, sustained: Vec::new() })
    }

    fn sustained(&mut self) -> Result<Vec<(u64, f64)>> {
        let together = TIMED_TOGETHER / 512;
        let most = (self.area / together).min(MOST_WRITTEN / TIMED_TOGETHER);
        let (mut found, mut took) = (Vec::new(), 0);
        for part in 0..most {
            let chunks = in_sequence(Operation::Write, part * together, (together / CHUNK) as usize);
            let done = self.drive.answer(8, &chunks)?;
            took += done.took_ns;
            found.push((part * TIMED_TOGETHER, rate(&done, CHUNK)));
            if took > LONGEST_WRITING {
                break;
            }
        }
        Ok(found)
    }

    fn page(&mut self) -> u64 {
        self.random.below(self.area / PAGE) * PAGE
    }
}

fn in_sequence(operation: Operation, first: u64, count: usize) -> Vec<Asked> {
    (0..count as u64).map(|number| asked(operation, first + number * CHUNK, CHUNK)).collect()
}

/// Bytes a second.
fn rate(done: &RequestTimes, each: u64) -> f64 {
    done.times.len() as f64 * (each * 512) as f64 / done.took_ns as f64 * 1e9
}

#[cfg(test)]
mod tests;
