//! Signals and the agent's own deadline.
//!
//! SIGTERM (from the host's first Ctrl-C, or because the host died) asks to finish the step and undo. At the deadline
//! the cell's processes are killed, so that whatever waits for them goes on and finds the reason here.

use super::{CELL_MARK, Interrupted};
use crate::sys::process;
use anyhow::{Result, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);

/// From now on SIGTERM and SIGINT only set a flag, and the death of the host is a SIGTERM. Orphans of
/// the workload stay our descendants.
pub fn obey_signals() -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGINT] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        STOP.store(true, Ordering::Relaxed);
    });
    process::die_with_parent(process::Signal::TERM)?;
    process::adopt_orphans()?;
    Ok(())
}

/// Asked to stop?
pub fn check_stop() -> Result<()> {
    if STOP.load(Ordering::Relaxed) { bail!(Interrupted) } else { Ok(()) }
}

/// Kills the cell's processes when its time is over, until dropped.
pub struct Deadline {
    passed: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    begun: Instant,
    limit: Duration,
}

impl Deadline {
    pub fn start(cell: &str, limit_ns: u64) -> Deadline {
        let deadline = Deadline {
            passed: Arc::default(),
            over: Arc::default(),
            begun: Instant::now(),
            limit: Duration::from_nanos(if limit_ns == 0 { u64::MAX } else { limit_ns }),
        };
        let (passed, over, limit) = (deadline.passed.clone(), deadline.over.clone(), deadline.limit);
        let mark = format!("{CELL_MARK}={cell}");
        let begun = deadline.begun;
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if begun.elapsed() >= limit {
                    passed.store(true, Ordering::Relaxed);
                    // Nothing to do about an error here: the host's own limit is the next line.
                    let _ = process::kill_marked(&mark, &[]);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        deadline
    }

    /// How long it is until then.
    pub fn left(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }

    /// The reason to give instead of the one that killing made, if the time is over.
    pub fn check(&self) -> Result<()> {
        if self.passed.load(Ordering::Relaxed) {
            bail!("the time limit of {} passed", crate::units::show_duration(self.limit.as_nanos() as f64));
        }
        Ok(())
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
