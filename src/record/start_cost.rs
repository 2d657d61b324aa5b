//! What the start of a program takes more of processor time because it is recorded: the loading of the library, and its stops, of which
//! the dynamic linker makes a hundred.
//!
//! A program that does nothing is started some times in each of three ways: watched without stops at calls, the same with the library, and
//! recorded. That happens in a process of its own, since a process has one timer, and each recorder needs one.

use super::preload::Preload;
use super::program::Life;
use super::scope::Scope;
use super::stop_cost::median;
use super::tracer::Tracer;
use super::world::Live;
use super::{UNFILTERED, started};
use crate::sys::process::{Signal, die_with_parent, wait_with_usage};
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Starts the program `$0`, which does nothing.
const SCRIPT: &str = "i=0; while [ $i -lt 30 ]; do $0; i=$((i + 1)); done";
const PROGRAM: &str = "true";
/// Where fewer programs are started, it is not worth the quarter of a second of another processor that it takes.
const MANY: u32 = 24;

/// What a start takes more, in nanoseconds of processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The library, in all.
    pub load_ns: u64,
    /// Each stop.
    pub stop_ns: u64,
}

/// Found out beside the program, once it has started many others.
pub struct StartCost {
    /// What prints it.
    command: Option<Command>,
    loads: u32,
    found: Arc<OnceLock<Start>>,
    /// Processor time that this took.
    used_ns: Arc<AtomicU64>,
}

impl StartCost {
    pub fn new(command: Option<Command>) -> StartCost {
        StartCost { command, loads: 0, found: Arc::default(), used_ns: Arc::default() }
    }

    /// Nanoseconds of processor time that it took to find out: no time of the program's.
    pub fn used_ns(&self) -> u64 {
        self.used_ns.load(Relaxed)
    }

    /// The library was loaded once more. None as long as it is not known what that takes.
    pub fn loaded(&mut self) -> Option<Start> {
        self.loads += 1;
        if self.loads == MANY
            && let Some(command) = self.command.take()
        {
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

/// Measures it and prints it: two numbers.
pub fn print(starter: impl Fn() -> Command) -> Result<()> {
    die_with_parent(Signal::KILL)?;
    let alone = lives(starter(), None, false)?;
    let loaded = lives(starter(), Preload::new(None)?, false)?;
    let recorded = lives(starter(), Preload::new(None)?, true)?;
    let Start { load_ns, stop_ns } = start(&alone, &loaded, &recorded)?;
    // Who asked for it may be gone.
    let _ = writeln!(std::io::stdout(), "{load_ns} {stop_ns}");
    Ok(())
}

fn start(alone: &[Life], loaded: &[Life], recorded: &[Life]) -> Result<Start> {
    let cpu_ns = |lives: &[Life]| median(lives.iter().map(|life| life.cpu_ns).collect());
    let stops = |lives: &[Life]| median(lives.iter().map(|life| life.stops).collect());
    let more = stops(recorded).saturating_sub(stops(loaded));
    ensure!(more > 0, "the program that does nothing makes no calls");
    Ok(Start {
        load_ns: cpu_ns(loaded).saturating_sub(cpu_ns(alone)),
        stop_ns: cpu_ns(recorded).saturating_sub(cpu_ns(loaded)) / more,
    })
}

/// Of the program that does nothing, each time.
fn lives(mut starter: Command, preload: Option<Preload>, stops_at_calls: bool) -> Result<Vec<Life>> {
    let program = crate::need::find_program(PROGRAM).context("there is no program that does nothing")?;
    // Nothing here uses files below it.
    let mut scope = Scope::new(&[std::env::temp_dir()])?;
    if !stops_at_calls {
        starter.env(UNFILTERED, "1");
    }
    let words = ["sh", "-c", SCRIPT, &program.display().to_string()].map(String::from);
    let pid = started(starter, &words, preload.as_ref())?;
    let live = Live::new();
    let mut tracer = Tracer::new(&mut scope, &live, pid, preload);
    if !stops_at_calls {
        tracer.program.begin();
    }
    let exit = tracer.run()?;
    ensure!(exit.success(), "the shell that starts it failed");
    // The shell is the last to end.
    tracer.program.lives.pop();
    Ok(std::mem::take(&mut tracer.program.lives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_takes_what_the_library_and_the_stops_add() {
        let lives = |cpu_ns: [u64; 3], stops: u64| cpu_ns.map(|cpu_ns| Life { cpu_ns, stops });
        let found = start(&lives([500, 510, 900], 3), &lives([560, 570, 580], 3), &lives([1000, 970, 2000], 103));
        assert_eq!(found.expect("a start"), Start { load_ns: 60, stop_ns: 4 });
        assert!(start(&[], &[], &[]).is_err());
    }

    #[test]
    fn what_is_printed_is_what_is_read() {
        assert_eq!(parse("60000 5200\n"), Some(Start { load_ns: 60_000, stop_ns: 5200 }));
        assert_eq!((parse(""), parse("60000 many")), (None, None));
    }
}
