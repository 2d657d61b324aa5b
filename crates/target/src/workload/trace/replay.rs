//! Plays a trace: a thread for each lane, which waits where the order wants it, thinks as long as
//! the program did, and calls.

use super::replay_dir::{CallOutcome, ReplayDir};
use super::schedule::{Schedule, Step, Wait};
use anyhow::{Result, anyhow};
use pickfs_system::sys::clock::{Clock, use_processor};
use pickfs_system::sys::thread_pool::ThreadPool;
use pickfs_trace::{Class, Kind, Op};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Times to think are added up to this: shorter ones cannot be played exactly.
const LEAST_TO_THINK: i64 = 10_000;
/// The replay's own work between two calls takes no longer; where it does, another program had the
/// processor.
const MOST_OWN: u64 = 2_000;

/// How a trace is played.
pub(crate) struct Replay<'a> {
    pub replay_dir: &'a ReplayDir<'a>,
    pub order: &'a Schedule,
    /// Times to think, as a multiple of the recorded ones.
    pub think: f64,
    /// For tests of the order: threads sleep now and then, by this seed.
    pub delays: Option<u64>,
    lanes: Vec<Lane>,
    stop: AtomicBool,
}

/// How far a lane has come.
struct Lane {
    done: AtomicU32,
    /// The least number of steps that another lane waits for; `u32::MAX` where none waits.
    awaited: AtomicU32,
    lock: Mutex<()>,
    moved: Condvar,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane { done: 0.into(), awaited: u32::MAX.into(), lock: Mutex::default(), moved: Condvar::new() }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Class and nanoseconds of each call.
    pub took: Vec<(Class, u64)>,
    pub bytes: u64,
    /// Calls that ended another way than in the recording: with another error, or with none.
    pub differing: u64,
    /// The first of them, in words.
    pub first: Option<(u32, String)>,
    /// Calls that moved another number of bytes.
    pub other_lengths: u64,
    /// Calls that the target does not have, and what programs do then was done.
    pub replaced: u64,
    /// Calls that failed in the recording because its file system or its user could not do them.
    pub left_out: u64,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(replay_dir: &'a ReplayDir<'a>, order: &'a Schedule, think: f64) -> Replay<'a> {
        let lanes = order.lanes.iter().map(|_| Lane::default()).collect();
        Replay { replay_dir, order, think, delays: None, lanes, stop: AtomicBool::new(false) }
    }

    /// All of it, on a pool of as many threads as there are lanes.
    pub(crate) fn play(&self, pool: &mut ThreadPool, limits: impl Fn() -> Result<()> + Sync) -> Result<Outcome> {
        let played = pool.each(0..self.order.lanes.len(), |lane| {
            let mut stops = StopOthers { replay: self, armed: true };
            let result = self.lane(lane, &limits);
            stops.armed = result.is_err();
            result
        });
        let played = played.map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            anyhow!("a thread of the replay failed: {}", text.unwrap_or("no reason given"))
        })?;
        let mut all = Outcome::default();
        for outcome in played {
            all.add(outcome?);
        }
        Ok(all)
    }

    fn lane(&self, lane: usize, limits: impl Fn() -> Result<()>) -> Result<Outcome> {
        let (steps, own) = (&self.order.lanes[lane], &self.lanes[lane]);
        let mut outcome = Outcome { took: Vec::with_capacity(steps.len()), ..Outcome::default() };
        let (mut buffer, clock) = (vec![0; 64 << 10], Clock::of_machine());
        let waited_for = self.lanes.len() > 1;
        // Below 0 where the replay's own work between calls took longer than the program's.
        let (mut to_think, mut idle_from) = (0, clock.now());
        for (number, step) in (1u32..).zip(steps) {
            if self.wait(step, &limits)? {
                idle_from = clock.now();
            }
            if number % 4096 == 0 {
                limits()?;
            }
            if let Some(seed) = self.delays {
                std::thread::sleep(delay(seed, step.op));
            }
            let op = &self.replay_dir.trace.ops[step.op as usize];
            let mut begun = clock.now();
            if self.think > 0.0 {
                let spent = clock.nanoseconds(begun.saturating_sub(idle_from)).min(MOST_OWN);
                to_think += (op.think_ns as f64 * self.think) as i64 - spent as i64;
                if to_think >= LEAST_TO_THINK {
                    to_think -= self.think(to_think as u64, &limits)? as i64;
                    begun = clock.now();
                }
            }
            idle_from = begun;
            if is_call(op.kind) && !was_impossible(op) {
                let done = self.replay_dir.call(step.op, op, &mut buffer);
                idle_from = clock.now();
                outcome.took.push((op.kind.class(), clock.nanoseconds(idle_from.saturating_sub(begun))));
                outcome.compare(step.op, op, &done);
            } else {
                outcome.left_out += u64::from(is_call(op.kind));
            }
            if waited_for {
                own.advance(number);
            }
        }
        Ok(outcome)
    }

    /// In pieces, as it may be asked to stop. Returns how long it was, which is a little more.
    fn think(&self, ns: u64, limits: impl Fn() -> Result<()>) -> Result<u64> {
        const PIECE: u64 = 100_000_000;
        let mut thought = 0;
        while thought + PIECE < ns {
            thought += use_processor(PIECE);
            limits()?;
        }
        Ok(thought + use_processor(ns.saturating_sub(thought)))
    }

    /// True if it had to wait.
    fn wait(&self, step: &Step, limits: impl Fn() -> Result<()>) -> Result<bool> {
        let waits = &self.order.waits[step.waits.start as usize..step.waits.end as usize];
        waits.iter().try_fold(false, |waited, wait| Ok(self.wait_for(wait, &limits)? || waited))
    }

    fn wait_for(&self, wait: &Wait, limits: impl Fn() -> Result<()>) -> Result<bool> {
        const SPINS: u32 = 200;
        let lane = &self.lanes[wait.lane as usize];
        let is_there = || lane.done.load(SeqCst) >= wait.steps;
        for spin in 0..SPINS {
            if is_there() {
                return Ok(spin > 0);
            }
            std::hint::spin_loop();
        }
        let mut held = lane.lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            lane.awaited.fetch_min(wait.steps, SeqCst);
            if is_there() {
                return Ok(true);
            }
            if self.stop.load(SeqCst) {
                return Err(anyhow!("another thread of the replay stopped"));
            }
            limits()?;
            let waited = lane.moved.wait_timeout(held, Duration::from_millis(100));
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Where one thread fails, whether with an error or a panic, the others do not wait for it.
struct StopOthers<'a> {
    replay: &'a Replay<'a>,
    armed: bool,
}

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.replay.stop.store(true, SeqCst);
        }
    }
}

impl Lane {
    /// Wakes other lanes only at a step that one of them waits for: a shell waits for the whole of
    /// its program, and to wake it at every call takes more time than the call. A lane registers
    /// what it awaits before it looks at `done`, and this function stores `done` before it looks at
    /// `awaited`. So at least one of both sees the other. True if it woke others.
    fn advance(&self, steps: u32) -> bool {
        self.done.store(steps, SeqCst);
        if self.awaited.load(SeqCst) > steps {
            return false;
        }
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Lanes that must wait further register again when they wake up.
        self.awaited.store(u32::MAX, SeqCst);
        drop(held);
        self.moved.notify_all();
        true
    }
}

/// Mostly none, at times up to two milliseconds.
fn delay(seed: u64, op: u32) -> Duration {
    let mixed = (seed << 32 | u64::from(op)).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32;
    if mixed % 8 == 0 { Duration::from_micros(mixed / 8 % 2000) } else { Duration::ZERO }
}

fn is_call(kind: Kind) -> bool {
    kind.class() != Class::Thread
}

/// The file system of the recording did not have the call, its user might not make it, or it was
/// interrupted: the program then did something else, which follows.
fn was_impossible(op: &Op) -> bool {
    const IMPOSSIBLE: [Errno; 9] = [
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::NOTTY,
        Errno::XDEV,
        Errno::ACCESS,
        Errno::PERM,
        Errno::ROFS,
        Errno::INTR,
        Errno::FAULT,
    ];
    op.failed() && IMPOSSIBLE.iter().any(|error| i64::from(error.raw_os_error()) == -op.result)
}

impl Outcome {
    fn compare(&mut self, number: u32, op: &Op, done: &CallOutcome) {
        self.replaced += u64::from(done.replaced);
        let found = match done.result {
            Ok(bytes) => bytes.min(i64::MAX as u64) as i64,
            Err(error) => -i64::from(error.raw_os_error()),
        };
        if op.kind.moves_bytes() && found >= 0 {
            self.bytes += found as u64;
        }
        if found.min(0) != op.result.min(0) {
            self.differing += 1;
            let words =
                || format!("{} ended with {} and not with {}", op.kind.name(), ending(found), ending(op.result));
            self.first.get_or_insert_with(|| (number, words()));
        } else if op.kind.moves_bytes() && found >= 0 && found != op.result {
            self.other_lengths += 1;
        }
    }

    fn add(&mut self, other: Outcome) {
        self.took.extend(other.took);
        self.bytes += other.bytes;
        self.differing += other.differing;
        self.other_lengths += other.other_lengths;
        self.replaced += other.replaced;
        self.left_out += other.left_out;
        self.first = [self.first.take(), other.first].into_iter().flatten().min_by_key(|(number, _)| *number);
    }
}

fn ending(result: i64) -> String {
    if result >= 0 { "success".into() } else { std::io::Error::from_raw_os_error(-result as i32).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_wakes_others_only_at_steps_that_they_wait_for() {
        let lane = Lane::default();
        assert!(!lane.advance(1), "no lane waits");
        lane.awaited.fetch_min(4, SeqCst);
        assert_eq!([2, 3, 4, 5].map(|step| lane.advance(step)), [false, false, true, false]);
    }
}
