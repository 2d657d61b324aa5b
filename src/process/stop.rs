//! Requests to stop, by signal. SIGTERM comes from the host's first Ctrl-C, or because the host died: the step that runs
//! is finished, and all steps are undone.

use crate::sys::process;
use anyhow::{Result, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Stopped on request; carried through `anyhow` and told from a failure by its type.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "stopped on request")
    }
}

impl std::error::Error for Interrupted {}

static STOP: AtomicBool = AtomicBool::new(false);

/// As [`stop_on_signals`], and the death of the host is a SIGTERM. Orphans of the workload stay our descendants.
pub fn obey_signals() -> Result<()> {
    stop_on_signals()?;
    process::die_with_parent(process::Signal::TERM)?;
    process::adopt_orphans()?;
    Ok(())
}

/// From now on SIGTERM and SIGINT only set a flag, for [`check_stop`].
pub fn stop_on_signals() -> Result<()> {
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
    Ok(())
}

/// Asked to stop?
pub fn check_stop() -> Result<()> {
    if STOP.load(Ordering::Relaxed) { bail!(Interrupted) } else { Ok(()) }
}
