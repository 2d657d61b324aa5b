//! Reads and writes of one file, as databases and virtual machines do them: in order and at random,
//! by plain system calls or through io_uring, as fast as they go or at a fixed rate.
//!
//! A closed loop is a fixed piece of work, judged by its time. An open loop offers operations at a
//! rate that is the same for every target, so that its time says nothing: it is judged by the 99th
//! percentile of the latency, counted from when each operation was to begin.

pub mod blocks;
pub mod engine;
mod params;

use super::{Description, Workload, described};
use crate::stage::Doubt;
use crate::stage::open_loop::OpenLoopLog;
use crate::stage::phase::*;
use crate::stage::{Stage, Timed};
use anyhow::{Context, Result};
use engine::{Direction, Job, Workers};
use params::{Given, IoParams};
use pickfs_core::journal::FlagKind;
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::units::show_duration;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(crate) struct Io;

/// A loop that is itself so late has not offered its rate.
const LATE_NS: u64 = 1_000_000;
/// Times its schedule: a target that took longer has not kept the rate.
const LONGER: f64 = 1.05;

impl Workload for Io {
    fn description(&self) -> &'static Description {
        described!("io.toml", Given::ROWS)
    }

    fn phases(&self, settings: &Settings) -> Vec<Phase> {
        let names = params::phases(&Given::of(settings));
        self.description().phases.iter().filter(|phase| names.iter().any(|name| *name == phase.name)).cloned().collect()
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        Some(Given::of(settings).size)
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        params::objections(settings)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let given = Given::of(settings);
        let work = Work { params: IoParams::of(&given), path: stage.root().join("file") };
        let chosen = params::phases(&given);
        let plays = |name: &str| chosen.iter().any(|chosen| chosen == name);
        if plays("sequential-write") {
            work.write_in_order(stage)?;
        } else {
            stage.lay_out("writing the file", |stage| stage.check("writing", || work.lay_out()))?;
        }
        if plays("sequential-read") {
            work.read_in_order(stage)?;
        }
        if plays("random-read") {
            work.read_at_random(stage)?;
        }
        if plays("random-write") {
            work.write_at_random(stage)?;
        }
        Ok(())
    }
}

/// The file, and what is to be done with it.
struct Work {
    params: IoParams,
    path: PathBuf,
}

const FIRST: Direction = Direction::Write { generation: 0, sync_every: 0 };

impl Work {
    fn write_in_order(&self, stage: &mut Stage) -> Result<()> {
        let order = blocks::in_order(self.params.runs());
        let workers = Workers::new(self.job(self.params.run, FIRST, &order))?;
        self.play(stage, "sequential-write", workers, self.params.size, 0)?;
        stage.check("verifying what was written", || self.verify(&[]))
    }

    fn read_in_order(&self, stage: &mut Stage) -> Result<()> {
        let order = blocks::in_order(self.params.runs());
        for _ in stage.repeats() {
            let workers = Workers::new(self.job(self.params.run, Direction::Read, &order))?;
            self.play(stage, "sequential-read", workers, self.params.size, self.params.size)?;
        }
        Ok(())
    }

    fn read_at_random(&self, stage: &mut Stage) -> Result<()> {
        let places = self.at_random();
        let due = self.params.due();
        for _ in stage.repeats() {
            let job = self.job(self.params.block, Direction::Read, &places);
            let workers = Workers::new(Job { due: due.as_deref(), ..job })?;
            let least_read = places.len().min(self.params.blocks() as usize) as u64 * self.params.block as u64;
            self.play(stage, "random-read", workers, self.bytes_of(&places), least_read)?;
        }
        Ok(())
    }

    fn write_at_random(&self, stage: &mut Stage) -> Result<()> {
        let places = self.at_random();
        let due = self.params.due();
        let direction = Direction::Write { generation: 1, sync_every: self.params.fsync };
        let job = self.job(self.params.block, direction, &places);
        let workers = Workers::new(Job { due: due.as_deref(), ..job })?;
        self.play(stage, "random-write", workers, self.bytes_of(&places), 0)?;
        stage.check("verifying what was written", || self.verify(&places))
    }

    fn at_random(&self) -> Vec<u32> {
        blocks::shuffled(self.params.blocks(), self.params.operations)
    }

    fn bytes_of(&self, places: &[u32]) -> u64 {
        places.len() as u64 * self.params.block as u64
    }

    fn job<'a>(&self, block: usize, direction: Direction, places: &'a [u32]) -> Job<'a> {
        let IoParams { engine, threads, depth, .. } = self.params;
        Job { engine, threads, depth, block, direction, places, due: None }
    }

    /// The file is opened inside of the phase, as nothing may be open when the file system is
    /// unmounted for a cold start.
    fn play(&self, stage: &mut Stage, phase: &str, mut workers: Workers, bytes: u64, least_read: u64) -> Result<()> {
        let work = |p: &mut Timed| {
            let may_go_on = p.limits();
            let logs = p.own(|| workers.work(&open(&self.path, self.params.direct)?, may_go_on))?;
            Ok((workers, logs))
        };
        stage.phase_then(phase, work, |p, (workers, logs)| {
            let log = workers.sum(&logs)?;
            p.reads_at_least(least_read);
            match workers.schedule_ns() {
                // It counts no bytes either: they would be divided by its time, which is a latency.
                Some(schedule) => told_by_latency(p, &log, schedule),
                None => p.handled(bytes, 1),
            }
            if log.syncs.count() > 0 {
                p.latencies("sync", log.syncs);
            }
            p.latencies("latency", log.latencies);
            Ok(())
        })
    }

    /// By plain writes through the page cache, whatever the phases use.
    fn lay_out(&self) -> Result<()> {
        let (run, file) = (self.params.run, open(&self.path, false)?);
        let mut buffer = vec![0; run.max(1 << 20)];
        blocks::fill(&mut buffer, 0);
        for number in 0..self.params.runs() {
            let offset = u64::from(number) * run as u64;
            blocks::stamp(&mut buffer[..run], offset, 0);
            file.write_all_at(&buffer[..run], offset)?;
        }
        Ok(())
    }

    fn verify(&self, written: &[u32]) -> Result<()> {
        blocks::verify(&File::open(&self.path)?, self.params.block, self.params.blocks(), written)
    }
}

/// What an open loop is judged by, and whether it kept its own schedule.
fn told_by_latency(p: &mut Timed, log: &OpenLoopLog, schedule_ns: u64) {
    let (lag, count) = (log.lag.quantile(0.99), log.latencies.count());
    p.took(log.latencies.quantile(0.99) as f64);
    p.say("done_per_second", count as f64 / (log.ended.max(1) as f64 / 1e9));
    p.say("generator_late_ns", lag as f64);
    p.say("late_start_share", log.waited as f64 / count as f64);
    doubts(log, schedule_ns).into_iter().for_each(|(flag, why)| p.doubt(flag, why));
}

/// Flags with their reasons.
fn doubts(log: &OpenLoopLog, schedule_ns: u64) -> Vec<Doubt> {
    let (lag, mut found) = (log.lag.quantile(0.99), Vec::new());
    if lag > LATE_NS {
        let lag = show_duration(lag as f64);
        let why = format!("one operation in a hundred began more than {lag} late, and not for the target");
        found.push((FlagKind::GeneratorLate, why));
    }
    let (ended, schedule) = (log.ended as f64, schedule_ns as f64);
    if ended > schedule * LONGER {
        let (ended, schedule) = (show_duration(ended), show_duration(schedule));
        let why = format!("operations of {schedule} took {ended}, so that latencies show how long a queue grew");
        found.push((FlagKind::RateNotKept, why));
    }
    found
}

/// For reading and writing; made if it is not there.
fn open(path: &Path, direct: bool) -> Result<File> {
    let opened = if direct {
        pickfs_system::sys::file::open_direct(path, true)
    } else {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
    };
    let remedy = if direct { "; where direct I/O is refused, leave `direct` out" } else { "" };
    opened.with_context(|| format!("cannot open {}{remedy}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_schedule_did_not_get_is_found_out() {
        const SECOND: u64 = 1_000_000_000;
        for (lag, ended, flags) in [
            (LATE_NS / 2, SECOND, &[][..]),
            (0, SECOND + SECOND / 25, &[]),
            (0, SECOND + SECOND / 15, &[FlagKind::RateNotKept]),
            (LATE_NS * 2, SECOND, &[FlagKind::GeneratorLate]),
            (LATE_NS * 2, SECOND * 2, &[FlagKind::GeneratorLate, FlagKind::RateNotKept]),
        ] {
            let mut log = OpenLoopLog { ended, ..OpenLoopLog::default() };
            log.lag.record(lag);
            let found: Vec<FlagKind> = doubts(&log, SECOND).into_iter().map(|(flag, _)| flag).collect();
            assert_eq!(found, flags, "{lag} {ended}");
        }
    }
}
