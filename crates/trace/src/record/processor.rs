//! Keeps a thread that stops in quick succession on the recorder's own processor.
//!
//! A thread that stops wakes the recorder, and the recorder wakes the thread. Between two
//! processors a stop takes 12 to 19 µs of the thread's processor time, on one 2 to 3 (25 November
//! 2026, a virtual machine), and the kernel takes another processor as long as one is idle. A
//! program that starts makes a hundred stops and more, so that most of what it seems to think would
//! be stops.
//!
//! A thread is free again once it has run for a millisecond without a stop, before it asks on which
//! processors it may run, and before a call that is recorded: of two threads that share a processor
//! with the recorder, one may do its call long before it is seen, and the calls of both are taken
//! to be in the other order (2 of 6 runs of a test of the order failed, and none without).

use pickfs_system::sys::clock::monotonic;
use pickfs_system::sys::ptrace;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::collections::HashSet;
use std::time::Duration;

/// Stops that come no later than this after the last one are quick; nanoseconds.
const QUICK: u64 = 200_000;
/// This many quick stops of one thread in a row, and it is held.
const MANY: u32 = 3;
/// How often it is looked whether the thread runs without stops.
const TICK: Duration = Duration::from_millis(1);

/// How quickly each thread stops, and which ones are held.
#[derive(Default)]
pub(crate) struct Processor {
    pace: Pace,
    held: Option<PinnedThread>,
    /// They may have asked where they run, and so are not held any more.
    barred: HashSet<i32>,
}

/// A thread on the recorder's processor.
struct PinnedThread {
    tid: i32,
    /// Where it might run before, and where the recorder might.
    its: CpuSet,
    own: CpuSet,
}

/// Stops of one thread in a row.
#[derive(Default)]
struct Pace {
    tid: i32,
    went_on: u64,
    quick: u32,
}

impl Pace {
    /// True if that is to be held.
    fn stops(&mut self, tid: i32, now: u64) -> bool {
        let again = self.tid == tid && now.saturating_sub(self.went_on) <= QUICK;
        self.tid = tid;
        self.quick = if again { self.quick + 1 } else { 0 };
        self.quick >= MANY
    }

    fn on_resume(&mut self, tid: i32, now: u64) {
        if self.tid == tid {
            self.went_on = now;
        }
    }
}

impl Processor {
    /// A thread has stopped at a call that is not recorded, or at one that is: then it is let go
    /// of.
    pub(crate) fn stops(&mut self, tid: i32, is_recorded: bool) {
        let is_held = self.holds(tid);
        if is_recorded {
            self.pace.quick = 0;
            if is_held {
                self.let_go();
            }
            return;
        }
        if self.pace.stops(tid, monotonic()) && !is_held && !self.barred.contains(&tid) {
            self.let_go();
            self.hold(tid);
        }
    }

    pub(crate) fn on_resume(&mut self, tid: i32) {
        self.pace.on_resume(tid, monotonic());
    }

    /// A child may run where its parent may.
    pub(crate) fn started(&self, parent: i32, child: i32) {
        if let Some(held) = self.held.as_ref().filter(|held| held.tid == parent) {
            let _ = sched_setaffinity(Pid::from_raw(child), &held.its);
        }
    }

    pub(crate) fn ended(&mut self, tid: i32) {
        self.barred.remove(&tid);
        if self.holds(tid) {
            self.let_go();
        }
    }

    pub(crate) fn tick(&mut self) {
        let since = monotonic().saturating_sub(self.pace.went_on);
        if self.held.as_ref().is_some_and(|held| held.tid != self.pace.tid) || since > TICK.as_nanos() as u64 {
            self.let_go();
        }
    }

    /// The thread is about to ask where threads may run, or to say it.
    pub(crate) fn asks(&mut self, tid: i32) {
        self.let_go();
        self.barred.insert(tid);
    }

    /// It is on the recorder's processor.
    pub(crate) fn holds(&self, tid: i32) -> bool {
        self.held.as_ref().is_some_and(|held| held.tid == tid)
    }

    fn hold(&mut self, tid: i32) {
        let here = sched_getcpu();
        let (Ok(own), Ok(its)) = (sched_getaffinity(None), sched_getaffinity(Pid::from_raw(tid))) else { return };
        if own.count() < 2 || !its.is_set(here) {
            return;
        }
        let mut one = CpuSet::new();
        one.set(here);
        if sched_setaffinity(None, &one).is_err() {
            return;
        }
        // Where the thread refuses, as a setuid program does, the recorder is let go of again.
        let _ = sched_setaffinity(Pid::from_raw(tid), &one);
        let _ = ptrace::tick(TICK);
        self.held = Some(PinnedThread { tid, its, own });
    }

    fn let_go(&mut self) {
        if let Some(PinnedThread { tid, its, own }) = self.held.take() {
            let _ = sched_setaffinity(Pid::from_raw(tid), &its);
            let _ = sched_setaffinity(None, &own);
            let _ = ptrace::tick(Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_stops_of_one_thread_in_a_row_hold_it() {
        let holds = |stops: &[(i32, u64)]| {
            let (mut pace, mut now) = (Pace::default(), 0);
            let mut held = false;
            for (tid, after) in stops {
                now += after;
                held = pace.stops(*tid, now);
                pace.on_resume(*tid, now);
            }
            held
        };
        assert!(holds(&[(7, 1), (7, 5_000), (7, 5_000), (7, QUICK)]));
        assert!(!holds(&[(7, 1), (7, 5_000), (7, 5_000), (7, QUICK + 1)]), "the last comes late");
        assert!(!holds(&[(7, 1), (7, 5_000), (8, 5_000), (7, 5_000), (7, 5_000)]), "another thread stops between");
        assert!(holds(&[(8, 1), (7, 5_000), (7, 900_000), (7, 1), (7, 1), (7, 1)]));
    }

    #[test]
    fn a_thread_that_asked_where_it_runs_is_never_held_again() {
        let mut processor = Processor::default();
        processor.asks(7);
        processor.stops(7, true);
        for _ in 0..9 {
            processor.stops(7, false);
            processor.on_resume(7);
        }
        assert!(processor.barred.contains(&7) && processor.held.is_none());
        processor.ended(7);
        assert!(processor.barred.is_empty(), "its number may be another thread's next");
    }
}
