//! Measures what the start of a program takes more of processor time because it is recorded: the
//! loading of the library, and its stops, of which the dynamic linker makes a hundred.
//!
//! A program that does nothing is started some times in each of three ways: watched without stops
//! at calls, the same with the library, and recorded. That happens in its own process, since a
//! process has one timer, and each recorder needs one.

use super::preload::Preload;
use super::scope::Scope;
use super::start_cost::Start;
use super::starter::{TIMES, UNFILTERED, started};
use super::stop_cost::median;
use super::threads::Life;
use super::tracer::Tracer;
use super::world::Live;
use anyhow::{Result, ensure};
use pickfs_system::sys::process::{Signal, die_with_parent};
use std::io::Write;
use std::process::Command;

const PROGRAM: &str = "true";
const STARTS: u32 = 30;

/// Measures it and prints it: two numbers.
pub fn print(starter: impl Fn() -> Command) -> Result<()> {
    die_with_parent(Signal::KILL)?;
    let alone = lives(starter(), None, false)?;
    let loaded = lives(starter(), Preload::new(None)?, false)?;
    let recorded = lives(starter(), Preload::new(None)?, true)?;
    let Start { load_ns, stop_ns } = start(&alone, &loaded, &recorded)?;
    // The process that asked for it may be gone.
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

/// Lives of the program that does nothing, one for each start.
fn lives(mut starter: Command, preload: Option<Preload>, stops_at_calls: bool) -> Result<Vec<Life>> {
    // Nothing here uses files below it.
    let mut scope = Scope::new(&[std::env::temp_dir()])?;
    starter.env(TIMES, STARTS.to_string());
    if !stops_at_calls {
        starter.env(UNFILTERED, "1");
    }
    let pid = started(starter, &[PROGRAM.to_string()], preload.as_ref())?;
    let live = Live::new();
    let mut tracer = Tracer::new(&mut scope, &live, pid, preload);
    tracer.program.begin();
    let exit = tracer.run()?;
    ensure!(exit.success(), "what starts it failed");
    // That is the last to end.
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
}
