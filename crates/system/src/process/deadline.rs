//! The time limit of a cell.
//!
//! When it passes, the cell's processes are killed, so that whatever waits for them goes on and
//! finds the reason here.

use super::CELL_MARK;
use anyhow::{Result, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How often it kills what is still there once the time is over.
const AGAIN: Duration = Duration::from_millis(20);

/// Kills the cell's processes when its time is over, until dropped. Until then its thread sleeps:
/// what is timed meanwhile shares a processor with it.
pub struct Deadline {
    passed: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    begun: Instant,
    /// Nanoseconds from the beginning.
    limit: Arc<AtomicU64>,
    thread: Thread,
}

impl Deadline {
    pub fn start(cell: &str, limit_ns: u64) -> Deadline {
        let (passed, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let limit = Arc::new(AtomicU64::new(if limit_ns == 0 { u64::MAX } else { limit_ns }));
        let (begun, mark) = (Instant::now(), format!("{CELL_MARK}={cell}"));
        let seen = (passed.clone(), over.clone(), limit.clone());
        let thread = std::thread::spawn(move || {
            let (passed, over, limit) = seen;
            while !over.load(Ordering::Relaxed) {
                let left = Duration::from_nanos(limit.load(Ordering::Relaxed)).saturating_sub(begun.elapsed());
                if left.is_zero() {
                    passed.store(true, Ordering::Relaxed);
                    // Nothing to do about an error here: the host's own limit is the next line.
                    let _ = super::kill_marked(&mark);
                }
                std::thread::park_timeout(left.max(AGAIN));
            }
        });
        Deadline { passed, over, begun, limit, thread: thread.thread().clone() }
    }

    /// How long it is until then.
    pub fn left(&self) -> Duration {
        Duration::from_nanos(self.limit.load(Ordering::Relaxed)).saturating_sub(self.begun.elapsed())
    }

    /// Not later than so long from now: what was allowed for ageing is not for the work.
    pub fn at_most(&self, left_ns: u64) {
        let then = (self.begun.elapsed().as_nanos() as u64).saturating_add(left_ns);
        self.limit.fetch_min(then, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// The reason to give instead of the one that killing made, if the time is over.
    pub fn check(&self) -> Result<()> {
        if self.passed.load(Ordering::Relaxed) {
            let limit = self.limit.load(Ordering::Relaxed) as f64;
            bail!("the time limit of {} passed", crate::units::show_duration(limit));
        }
        Ok(())
    }

    /// Fails when the work shall stop, or its time is over: to be asked now and then by our own
    /// loops, also by their threads.
    pub fn limits(&self) -> impl Fn() -> Result<()> + Sync + Copy + use<'_> {
        move || {
            super::check_stop()?;
            self.check()
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_can_come_nearer_and_not_go_away() {
        let deadline = Deadline::start("no such cell", 3_600_000_000_000);
        deadline.at_most(7_200_000_000_000);
        assert!((3590..=3600).contains(&deadline.left().as_secs()));
        deadline.at_most(60_000_000_000);
        assert!((50..=60).contains(&deadline.left().as_secs()));
        deadline.check().unwrap();
        deadline.at_most(0);
        std::thread::sleep(Duration::from_millis(300));
        assert!(deadline.check().is_err());
    }
}
