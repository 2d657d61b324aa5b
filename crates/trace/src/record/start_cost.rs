//! What the start of a program takes more of processor time because it is recorded, as another
//! process measures it while the program runs (`starts.rs`).

use pickfs_system::sys::process::wait_with_usage;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Where fewer programs are started, it is not worth the quarter of a second of another processor
/// that it takes.
const MANY: u32 = 24;

/// What a start takes more, in nanoseconds of processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The library, in all.
    pub load_ns: u64,
    /// Each stop.
    pub stop_ns: u64,
}

/// Measured while the program runs, once it has started many others.
pub(crate) struct StartCost {
    /// What prints it.
    command: Option<Command>,
    loads: u32,
    found: Arc<OnceLock<Start>>,
    /// Processor time that this took.
    used_ns: Arc<AtomicU64>,
}

impl StartCost {
    pub(crate) fn new(command: Option<Command>) -> StartCost {
        StartCost { command, loads: 0, found: Arc::default(), used_ns: Arc::default() }
    }

    /// Nanoseconds of processor time that it took to find out: no time of the program's.
    pub(crate) fn used_ns(&self) -> u64 {
        self.used_ns.load(Relaxed)
    }

    /// The library was loaded once more. `None` until the time that this takes is known.
    pub(crate) fn loaded(&mut self) -> Option<Start> {
        self.loads += 1;
        let command = if self.loads == MANY { self.command.take() } else { None };
        if let Some(command) = command {
            let (found, used_ns) = (self.found.clone(), self.used_ns.clone());
            std::thread::spawn(move || {
                if let Some((start, ns)) = asked(command) {
                    used_ns.store(ns, Relaxed);
                    let _ = found.set(start);
                }
            });
        }
        self.found.get().copied()
    }
}

/// With the processor time that it took.
fn asked(mut command: Command) -> Option<(Start, u64)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut text = String::new();
    let read = child.stdout.take().map(|mut out| out.read_to_string(&mut text));
    let (_, used) = wait_with_usage(child.id() as i32).ok()?;
    read?.ok()?;
    Some((parse(&text)?, used.user_ns + used.system_ns))
}

fn parse(text: &str) -> Option<Start> {
    let (load, stop) = text.trim().split_once(' ')?;
    Some(Start { load_ns: load.parse().ok()?, stop_ns: stop.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_is_read() {
        assert_eq!(parse("60000 5200\n"), Some(Start { load_ns: 60_000, stop_ns: 5200 }));
        assert_eq!((parse(""), parse("60000 many")), (None, None));
    }
}
