//! What the processor waited for, as the driver of simulated disks counts it (`waits.c` of the
//! executor `sim`).

use super::table::{LAYER, owner};
use anyhow::{Context, Result, ensure};
use pickfs_system::sys::disk_model::{PARTS, Part};
use std::collections::BTreeMap;

/// Of one kind of request; idle time is that which its ends have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Wait {
    pub requests: u64,
    pub bytes: u64,
    /// From when each came to its end, added up.
    pub took_ns: u64,
    pub idle_ns: u64,
    /// How often the processor was woken.
    pub wakes: u64,
    /// Idle time of each part of the model's.
    pub parts_ns: [u64; PARTS],
}

/// By kind, as the driver names it.
pub(crate) type Waits = BTreeMap<String, Wait>;

/// Of "3:500000", half a millisecond of a seek, which is number 3 of [`Part`].
fn part(word: &str) -> Option<(usize, u64)> {
    let (at, ns) = word.split_once(':')?;
    let at = at.parse().ok().filter(|at| *at < PARTS)?;
    Some((at, ns.parse().ok()?))
}

impl Wait {
    /// Of "12 49152 980000 700000 11 3:500000 4:200000".
    fn parse(numbers: &str) -> Option<Wait> {
        let words: Vec<&str> = numbers.split(' ').collect();
        let (counts, parts) = words.split_at_checked(5)?;
        let counts: Option<Vec<u64>> = counts.iter().map(|number| number.parse().ok()).collect();
        let [requests, bytes, took_ns, idle_ns, wakes] = counts?[..] else { return None };
        let mut wait = Wait { requests, bytes, took_ns, idle_ns, wakes, ..Wait::default() };
        for word in parts {
            let (at, ns) = part(word)?;
            wait.parts_ns[at] = ns;
        }
        Some(wait)
    }

    /// Number by number.
    fn with(&self, other: &Wait, number: impl Fn(u64, u64) -> u64) -> Wait {
        Wait {
            requests: number(self.requests, other.requests),
            bytes: number(self.bytes, other.bytes),
            took_ns: number(self.took_ns, other.took_ns),
            idle_ns: number(self.idle_ns, other.idle_ns),
            wakes: number(self.wakes, other.wakes),
            parts_ns: std::array::from_fn(|at| number(self.parts_ns[at], other.parts_ns[at])),
        }
    }

    /// What each part that has some of the idle time has of it. None where no request that was
    /// waited for took any time.
    pub(crate) fn shares(&self) -> Vec<(Part, f64)> {
        let whole = self.parts_ns.iter().sum::<u64>() as f64;
        let parts = Part::ALL.into_iter().zip(self.parts_ns).filter(|(_, ns)| *ns > 0);
        parts.map(|(part, ns)| (part, ns as f64 / whole)).collect()
    }
}

/// Of lines "RM 12 49152 980000 700000 11 3:500000 4:200000".
fn parse(text: &str) -> Result<Waits> {
    let read = |line: &str| {
        let (kind, numbers) = line.split_once(' ')?;
        Some((kind.to_string(), Wait::parse(numbers)?))
    };
    // What is cut may still read as numbers.
    ensure!(text.is_empty() || text.ends_with('\n'), "what the disk's driver shows of waits is cut off");
    let mut all = Waits::new();
    for line in text.lines() {
        let (kind, wait) = read(line).with_context(|| format!("`{line}` is no line of the disk's driver"))?;
        let sum = all.entry(kind).or_default();
        // Several places in one function are a line each.
        *sum = sum.with(&wait, |one, other| one + other);
    }
    Ok(all)
}

/// What came between two readings.
pub(crate) fn between(before: &str, after: &str) -> Result<Waits> {
    let before = parse(before)?;
    let since = |(kind, now): (String, Wait)| {
        let old = before.get(&kind).copied().unwrap_or_default();
        let wait = now.with(&old, u64::saturating_sub);
        (wait != Wait::default()).then_some((kind, wait))
    };
    Ok(parse(after)?.into_iter().filter_map(since).collect())
}

/// Letters of operations and flags, in the order of the driver's.
const OPERATIONS: &str = "RWFD";
const FLAGS: &str = "FASM";
/// What no request has ended, and whose place is unknown.
const TIMER: &str = "a timer";
/// Layers below the file system held a request back.
pub(crate) const LAYER_TIMER: &str = "a timer of layers below the file system";

const GRACE_PERIOD: &str = "a grace period of RCU";

/// "timer:FUNCTION:MODULE" as an owner.
fn sleeper(kind: &str) -> String {
    let mut words = kind.split(':').skip(1);
    let (Some(function), Some(module)) = (words.next(), words.next()) else { return TIMER.into() };
    timer(function, module)
}

/// Functions of the scheduler that a task calls to wait for a disk, for another task, and for a
/// time; a wait for a task has a limit of time, too.
const FOR_DISK: [&str; 2] = ["io_schedule", "wait_for_completion_io"];
const FOR_TASK: [&str; 1] = ["wait_for_completion"];
const FOR_TIME: [&str; 3] = ["schedule_timeout", "schedule_hrtimeout", "do_nanosleep"];
/// It goes on as soon as a processor is free.
const PREEMPTED: [&str; 4] = ["preempt_schedule", "__cond_resched", "exit_to_user_mode", "irqentry_exit"];

/// What a task waits for that left a processor in such functions of the scheduler, called by a
/// function of a module. None if it could go on.
pub(crate) fn slept(scheduler: &[&str], function: &str, module: &str) -> Option<String> {
    let is_by = |of: &[&str]| scheduler.iter().any(|name| of.iter().any(|prefix| name.starts_with(prefix)));
    let is_of_rcu = timer(function, module) == GRACE_PERIOD;
    let in_function = || format!("in {} ({function})", owner(function, module));
    match () {
        _ if is_by(&PREEMPTED) || PREEMPTED.iter().any(|prefix| function.starts_with(prefix)) => None,
        _ if is_by(&FOR_DISK) => Some(format!("the disk {}", in_function())),
        _ if is_of_rcu || (is_by(&FOR_TIME) && !is_by(&FOR_TASK)) => Some(timer(function, module)),
        _ => Some(format!("another task {}", in_function())),
    }
}

fn timer(function: &str, module: &str) -> String {
    match function {
        _ if owner(function, module) == LAYER => LAYER_TIMER.into(),
        _ if !module.is_empty() => format!("{TIMER} in {} ({function})", owner(function, module)),
        "hrtimer_nanosleep" | "do_nanosleep" | "common_nsleep" => "a sleep of the program".into(),
        _ if function.contains("rcu_") || function.contains("_rcu") => GRACE_PERIOD.into(),
        _ => format!("{TIMER} in {function}"),
    }
}

/// Whether a timer has ended the wait.
pub(crate) fn is_timer(owner: &str) -> bool {
    owner.starts_with(TIMER) || owner.starts_with("a sleep of") || owner == GRACE_PERIOD
}

/// Kinds that have these words; none for a timer.
pub(crate) fn kinds(words_of: &str) -> Vec<String> {
    let flags = |set: usize| FLAGS.chars().enumerate().filter(move |(at, _)| set >> at & 1 == 1).map(|(_, flag)| flag);
    let kind =
        |operation: char| (0..1 << FLAGS.len()).map(move |set| [operation].into_iter().chain(flags(set)).collect());
    OPERATIONS.chars().flat_map(kind).filter(|kind: &String| words(kind) == words_of).collect()
}

/// "metadata reads", "synchronous writes with FUA"; "a timer".
pub(crate) fn words(kind: &str) -> String {
    let (operation, flags) = kind.split_at(kind.len().min(1));
    let has = |flag: char| flags.contains(flag);
    let noun = match operation {
        _ if kind.starts_with("timer") => return sleeper(kind),
        "R" if has('A') => "read-ahead",
        "R" => "reads",
        "W" => "writes",
        "F" => "flushes",
        _ => "discards",
    };
    let sync = if has('S') { "synchronous " } else { "" };
    let metadata = if has('M') { "metadata " } else { "" };
    let forced = if has('F') { " with FUA" } else { "" };
    format!("{sync}{metadata}{noun}{forced}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_between_two_readings_is_their_difference() {
        let (before, after) =
            ("R 2 10 30 20 1\nF 1 0 5 5 1\n", "R 5 50 90 60 3\nF 1 0 5 5 1\nWSM 1 4 7 7 1\ntimer 0 0 0 9 2\n");
        let found = between(before, after).expect("lines");
        let reads = Wait { requests: 3, bytes: 40, took_ns: 60, idle_ns: 40, wakes: 2, ..Wait::default() };
        assert_eq!((found.len(), found["R"]), (3, reads), "of a kind that did not change nothing is said");
        assert_eq!((found["WSM"].requests, found["timer"].idle_ns), (1, 9));
        let places = "timer:a:b 0 0 0 5 1\ntimer:a:b 0 0 0 7 2\n";
        assert_eq!(
            between("timer:a:b 0 0 0 5 1\n", places).expect("lines")["timer:a:b"].idle_ns,
            7,
            "two places in a function"
        );
        let parts = between("R 1 8 9 9 1 3:7 4:2\n", "R 2 8 99 99 2 3:17 4:12 5:70\n").expect("parts")["R"];
        assert_eq!((parts.idle_ns, parts.shares()[2]), (90, (Part::Transfer, 70.0 / 90.0)));
        for line in ["R 1\n", "R 1 8 9 9 1 10:7\n", "R 1 8 9 9 1 3:\n", "R 1 8 9 9 1 s7\n", "R 1 8 9 9 1 3:7"] {
            assert!(between("", line).is_err(), "{line}");
        }
        assert_eq!(between("", "").expect("nothing"), Waits::new());
    }

    /// As long as a list of all kinds that there can be, each with all its parts.
    #[test]
    fn a_list_of_many_pages_is_read_whole() {
        let parts: String = (0..PARTS).map(|at| format!(" {at}:{}", u64::MAX / 100)).collect();
        let line = |number: u64| format!("timer:function_{number}:module {number} 1 1 {} 1{parts}\n", u64::MAX / 10);
        let text: String = (1..=64).map(line).collect();
        let found = between("", &text).expect("lines");
        assert!(text.len() > 4 * 4096, "{}", text.len());
        assert_eq!((found.len(), found["timer:function_64:module"].requests), (64, 64));
    }

    #[test]
    fn kinds_have_words() {
        for (kind, wanted) in [
            ("R", "reads"),
            ("RM", "metadata reads"),
            ("RAM", "metadata read-ahead"),
            ("W", "writes"),
            ("WFSM", "synchronous metadata writes with FUA"),
            ("F", "flushes"),
            ("D", "discards"),
            ("timer", "a timer"),
            ("timer:flush_space:btrfs", "a timer in space accounting (flush_space)"),
            ("timer:balance_dirty_pages:", "a timer in balance_dirty_pages"),
            ("timer:rcu_gp_fqs_loop:", "a grace period of RCU"),
            ("timer:hrtimer_nanosleep:", "a sleep of the program"),
            ("timer:handle_delayed_timer:dm_delay", LAYER_TIMER),
        ] {
            assert_eq!(words(kind), wanted, "{kind}");
            let found = kinds(wanted);
            assert!(found.iter().all(|kind| words(kind) == wanted), "{found:?}");
            assert_eq!(found.contains(&kind.to_string()), !kind.starts_with("timer"), "{kind}");
            assert_eq!(is_timer(wanted), kind.starts_with("timer"), "{kind}");
        }
    }
}
