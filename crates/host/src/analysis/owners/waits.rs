//! What the processor waited for, as the driver of simulated disks counts it (`waits.c` of the executor `sim`).

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
    text.lines().map(|line| read(line).with_context(|| format!("`{line}` is no line of the disk's driver"))).collect()
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
/// What no request has ended.
pub(crate) const TIMER: &str = "a timer";

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
        _ if kind == "timer" => return TIMER.into(),
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
        ] {
            assert_eq!(words(kind), wanted, "{kind}");
            let found = kinds(wanted);
            assert!(found.iter().all(|kind| words(kind) == wanted), "{found:?}");
            assert_eq!(found.contains(&kind.to_string()), kind != "timer", "{kind}");
        }
    }
}
