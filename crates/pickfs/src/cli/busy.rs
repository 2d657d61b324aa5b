//! Whether others use the machine, before a run: what was measured meanwhile has to be thrown away,
//! or done again.

#![expect(clippy::disallowed_methods, reason = "measures what others use now")]

use super::report;
use anyhow::Result;
use pickfs_host::executor;
use pickfs_host::run::{is_for_programs, tell};
use pickfs_host::wording::text::{counted, wrapped};
use procfs::Current;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal};
use std::time::{Duration, Instant};

/// Below this load, in runnable programs for each processor, nothing is looked at.
const QUIET_LOAD: f32 = 0.25;
/// Of one processor: what a machine with nothing to do uses is less.
const MOST_OF_OTHERS: f64 = 0.1;
const LOOK: Duration = Duration::from_millis(300);
/// From one look to the next, while a user waits.
const PAUSE: Duration = Duration::from_secs(5);
const SHOWN: usize = 3;
/// A terminal need not have a user: a run that was begun by a script goes on.
const ANSWER: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// What a user wants to do about it.
#[derive(Debug, PartialEq)]
pub(crate) enum Choice {
    GoOn,
    Simulate,
}

/// Another program, and the share of one processor that it uses.
#[derive(Clone, Debug, PartialEq)]
struct BusyProcess {
    name: String,
    process: i32,
    share: f64,
}

/// Says that the machine is busy, where it is. On a terminal asks what to do, and waits where that
/// is wanted.
pub(crate) fn before_run(executor: &str, may_simulate: bool) -> Result<Choice> {
    if executor::simulates(executor) {
        return Ok(Choice::GoOn);
    }
    let Some(said) = look() else { return Ok(Choice::GoOn) };
    let may_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !is_for_programs();
    if !may_ask {
        tell(&format!("note: {said}"));
        return Ok(Choice::GoOn);
    }
    eprintln!("{}", wrapped("", &format!("note: {said}"), report::width()));
    let simulate = if may_simulate { ", s: simulate" } else { "" };
    let seconds = ANSWER.tv_sec;
    eprint!("Enter: go on, w: wait until it is quiet{simulate}, Ctrl-C: leave (goes on in {seconds} s) ");
    let mut line = String::new();
    let stdin = std::io::stdin();
    match rustix::event::poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&ANSWER)) {
        Ok(0) => eprintln!(),
        _ => drop(stdin.lock().read_line(&mut line)?),
    }
    match line.trim() {
        "w" => wait(),
        "s" if may_simulate => return Ok(Choice::Simulate),
        _ => {}
    }
    Ok(Choice::GoOn)
}

fn wait() {
    let begun = Instant::now();
    while let Some(said) = look() {
        tell(&format!("waiting for {} s: {said}", begun.elapsed().as_secs()));
        std::thread::sleep(PAUSE);
    }
}

/// A sentence, where others use more than they may.
fn look() -> Option<String> {
    let load = procfs::LoadAverage::current().ok()?.one;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if load / (processors as f32) < QUIET_LOAD {
        return None;
    }
    let (begun, before) = (Instant::now(), ticks());
    std::thread::sleep(LOOK);
    let (after, elapsed) = (ticks(), begun.elapsed().as_secs_f64());
    in_words(load, processors, others(&before, &after, elapsed * procfs::ticks_per_second() as f64))
}

type Ticks = BTreeMap<i32, (String, u64)>;

/// Of the processor, by process; without our own.
fn ticks() -> Ticks {
    let own = std::process::id() as i32;
    let all = procfs::process::all_processes().into_iter().flatten().flatten().filter(|process| process.pid != own);
    let stats = all.filter_map(|process| process.stat().ok());
    stats.map(|stat| (stat.pid, (stat.comm, stat.utime + stat.stime))).collect()
}

/// What each used of one processor in between, in this many ticks; the most first.
fn others(before: &Ticks, after: &Ticks, between: f64) -> Vec<BusyProcess> {
    let used = |(process, (name, now)): (&i32, &(String, u64))| {
        let (_, then) = before.get(process)?;
        let share = now.saturating_sub(*then) as f64 / between;
        (share > 0.0).then(|| BusyProcess { name: name.clone(), process: *process, share })
    };
    let mut others: Vec<BusyProcess> = after.iter().filter_map(used).collect();
    others.sort_by(|a, b| b.share.total_cmp(&a.share));
    others
}

fn in_words(load: f32, processors: usize, others: Vec<BusyProcess>) -> Option<String> {
    let all: f64 = others.iter().map(|other| other.share).sum();
    if all < MOST_OF_OTHERS {
        return None;
    }
    let shown = others.iter().take(SHOWN);
    let shown = shown.map(|other| format!("{} (process {}) {:.0} %", other.name, other.process, other.share * 100.0));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let on = counted(processors, "processor");
    Some(format!(
        "this machine is busy, load {load:.1} on {on}; other programs use {:.0} % of one: {shown}; it takes more rounds, and \
         small differences cannot be seen",
        all * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks_of(rows: &[(i32, &str, u64)]) -> Ticks {
        rows.iter().map(|(process, name, ticks)| (*process, (name.to_string(), *ticks))).collect()
    }

    #[test]
    fn the_three_that_use_most_are_named() {
        let before =
            ticks_of(&[(1, "init", 5), (2, "rustc", 100), (3, "cc", 7), (4, "ld", 1), (5, "gone", 9), (7, "sh", 0)]);
        let after =
            ticks_of(&[(1, "init", 5), (2, "rustc", 128), (3, "cc", 22), (4, "ld", 4), (6, "new", 50), (7, "sh", 1)]);
        let found = others(&before, &after, 30.0);
        let said = in_words(3.24, 2, found.clone()).expect("it is busy");
        assert!(said.contains("load 3.2 on 2 processors; other programs use 157 % of one: "), "{said}");
        assert!(said.contains("rustc (process 2) 93 %, cc (process 3) 50 %, ld (process 4) 10 %; "), "{said}");
        assert!(!said.contains("sh (") && found.len() == 4, "{said}");
        assert_eq!(in_words(3.0, 2, others(&before, &before, 30.0)), None, "what waits for a disk alone uses none");
        assert_eq!(in_words(3.0, 2, found[3..].to_vec()), None);
    }

    /// This test is a separate program to itself, whose ticks do not count.
    #[test]
    fn we_are_none_of_the_others() {
        let own = std::process::id() as i32;
        let found = ticks();
        assert!(!found.is_empty() && !found.contains_key(&own));
    }
}
