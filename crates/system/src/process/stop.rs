//! Requests to stop: a signal, a word of the host, or the host's death. The step that runs is
//! finished, and all steps are undone.

use crate::sys::process;
use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Stopped on request; carried through `anyhow` and distinguished from a failure by its type.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "stopped on request")
    }
}

impl std::error::Error for Interrupted {}

static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// As [`stop_on_signals`], and the death of the host is a SIGTERM. Orphans of the workload stay our
/// descendants.
pub fn obey_signals() -> Result<()> {
    stop_on_signals()?;
    process::die_with_parent(process::Signal::TERM)?;
    process::adopt_orphans()?;
    Ok(())
}

/// From now on SIGTERM and SIGINT are only counted, for [`check_stop`].
pub fn stop_on_signals() -> Result<()> {
    count_signals(&[libc::SIGTERM, libc::SIGINT], |_| ())
}

/// From now on these signals are only counted. `heard` is called with the number of requests to
/// stop, from 1.
pub fn count_signals(signals: &[i32], heard: impl Fn(usize) + Send + 'static) -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::spawn(move || signals.forever().for_each(|_| heard(REQUESTS.fetch_add(1, Ordering::Relaxed) + 1)));
    Ok(())
}

/// As a signal does.
pub fn request_stop() {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
}

static END: AtomicBool = AtomicBool::new(false);

/// Asks for the end after what is under way, which is not disturbed.
pub fn request_end() {
    END.store(true, Ordering::Relaxed);
}

/// Whether the end was asked for, in either way.
pub fn end_requested() -> bool {
    END.load(Ordering::Relaxed) || stop_requests() > 0
}

/// How often this process was asked to stop.
pub fn stop_requests() -> usize {
    REQUESTS.load(Ordering::Relaxed)
}

/// Fails with [`Interrupted`] once this process was asked to stop.
pub fn check_stop() -> Result<()> {
    if stop_requests() > 0 { bail!(Interrupted) } else { Ok(()) }
}
