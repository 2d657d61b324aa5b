//! The time limit of a cell.
//!
//! When it passes, the cell's processes are killed, so that whatever waits for them goes on and finds the reason here.

use super::CELL_MARK;
use anyhow::{Result, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Kills the cell's processes when its time is over, until dropped.
pub struct Deadline {
    passed: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    begun: Instant,
    /// Nanoseconds from the beginning.
    limit: Arc<AtomicU64>,
}

impl Deadline {
    pub fn start(cell: &str, limit_ns: u64) -> Deadline {
        let deadline = Deadline {
            passed: Arc::default(),
            over: Arc::default(),
            begun: Instant::now(),
            limit: Arc::new(AtomicU64::new(if limit_ns == 0 { u64::MAX } else { limit_ns })),
        };
        let (passed, over, limit) = (deadline.passed.clone(), deadline.over.clone(), deadline.limit.clone());
        let mark = format!("{CELL_MARK}={cell}");
        let begun = deadline.begun;
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if begun.elapsed() >= Duration::from_nanos(limit.load(Ordering::Relaxed)) {
                    passed.store(true, Ordering::Relaxed);
                    // Nothing to do about an error here: the host's own limit is the next line.
                    let _ = super::kill_marked(&mark, &[]);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        deadline
    }

    /// How long it is until then.
    pub fn left(&self) -> Duration {
        Duration::from_nanos(self.limit.load(Ordering::Relaxed)).saturating_sub(self.begun.elapsed())
    }

    /// Not later than so long from now: what was allowed for ageing is not for the work.
    pub fn at_most(&self, left_ns: u64) {
        let then = (self.begun.elapsed().as_nanos() as u64).saturating_add(left_ns);
        self.limit.fetch_min(then, Ordering::Relaxed);
    }

    /// The reason to give instead of the one that killing made, if the time is over.
    pub fn check(&self) -> Result<()> {
        if self.passed.load(Ordering::Relaxed) {
            let limit = self.limit.load(Ordering::Relaxed) as f64;
            bail!("the time limit of {} passed", crate::units::show_duration(limit));
        }
        Ok(())
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
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
