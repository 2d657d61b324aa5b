//! What the processor waited for, as the driver of simulated disks counts it (`waits.c` of the executor `sim`).

use super::table::{LAYER, owner};
use anyhow::{Context, Result};
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
}

/// By kind, as the driver names it.
pub(crate) type Waits = BTreeMap<String, Wait>;

/// Of lines "RM 12 49152 980000 700000 11".
fn parse(text: &str) -> Result<Waits> {
    let read = |line: &str| {
        let (kind, numbers) = line.split_once(' ')?;
        let numbers: Option<Vec<u64>> = numbers.split(' ').map(|number| number.parse().ok()).collect();
        let [requests, bytes, took_ns, idle_ns, wakes] = numbers?[..] else { return None };
        Some((kind.to_string(), Wait { requests, bytes, took_ns, idle_ns, wakes }))
    };
    let mut all = Waits::new();
    for line in text.lines() {
        let (kind, wait) = read(line).with_context(|| format!("`{line}` is no line of the disk's driver"))?;
        let sum = all.entry(kind).or_default();
        // Several places in one function are a line each.
        *sum = Wait {
            requests: sum.requests + wait.requests,
            bytes: sum.bytes + wait.bytes,
            took_ns: sum.took_ns + wait.took_ns,
            idle_ns: sum.idle_ns + wait.idle_ns,
            wakes: sum.wakes + wait.wakes,
        };
    }
    Ok(all)
}

/// What came between two readings.
pub(crate) fn between(before: &str, after: &str) -> Result<Waits> {
    let before = parse(before)?;
    let since = |(kind, now): (String, Wait)| {
        let old = before.get(&kind).copied().unwrap_or_default();
        let wait = Wait {
            requests: now.requests.saturating_sub(old.requests),
            bytes: now.bytes.saturating_sub(old.bytes),
            took_ns: now.took_ns.saturating_sub(old.took_ns),
            idle_ns: now.idle_ns.saturating_sub(old.idle_ns),
            wakes: now.wakes.saturating_sub(old.wakes),
        };
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

/// "timer:FUNCTION:MODULE" as an owner.
fn sleeper(kind: &str) -> String {
    let mut words = kind.split(':').skip(1);
    let (Some(function), Some(module)) = (words.next(), words.next()) else { return TIMER.into() };
    match function {
        _ if owner(function, module) == LAYER => LAYER_TIMER.into(),
        _ if !module.is_empty() => format!("{TIMER} in {} ({function})", owner(function, module)),
        "hrtimer_nanosleep" | "do_nanosleep" | "common_nsleep" => "a sleep of the program".into(),
        _ if function.contains("rcu_") || function.contains("_rcu") => "a grace period of RCU".into(),
        _ => format!("{TIMER} in {function}"),
    }
}

/// Whether a timer has ended the wait.
pub(crate) fn is_timer(owner: &str) -> bool {
    owner.starts_with(TIMER) || owner.starts_with("a sleep of") || owner.starts_with("a grace period of")
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
        let reads = Wait { requests: 3, bytes: 40, took_ns: 60, idle_ns: 40, wakes: 2 };
        assert_eq!((found.len(), found["R"]), (3, reads), "of a kind that did not change nothing is said");
        assert_eq!((found["WSM"].requests, found["timer"].idle_ns), (1, 9));
        let places = "timer:a:b 0 0 0 5 1\ntimer:a:b 0 0 0 7 2\n";
        assert_eq!(
            between("timer:a:b 0 0 0 5 1\n", places).expect("lines")["timer:a:b"].idle_ns,
            7,
            "two places in a function"
        );
        assert!(between("", "R 1\n").is_err());
        assert_eq!(between("", "").expect("nothing"), Waits::new());
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
