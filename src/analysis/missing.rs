//! What is missing, what is in doubt and what was in effect: planned cells without results, flags, provenance and
//! the ledger.

use super::model::*;
use crate::analysis::{self as decide, Observed, ObservedWork};
use crate::journal::{Folded, FoldedCell, Ledger, Outcome};
use crate::plan::Plan;
use crate::units;
use crate::wording::text::{counted, plain};
use std::collections::BTreeMap;

/// Facts about the machine that open a report, if they are known.
const MACHINE: [&str; 6] = ["cpu", "memory", "kernel", "drive", "backing", "executor"];

pub fn facts(facts: &BTreeMap<String, String>) -> Vec<Fact> {
    facts.iter().map(|(name, value)| Fact { name: plain(name), value: plain(value) }).collect()
}

pub fn machine(folded: &Folded) -> String {
    let known = MACHINE.iter().filter_map(|name| folded.host.get(*name).map(|value| (name, plain(value))));
    let shown = known.map(|(name, value)| match *name {
        "memory" | "kernel" => format!("{name} {value}"),
        _ => value,
    });
    shown.collect::<Vec<_>>().join(" · ")
}

pub fn targets(folded: &Folded, plan: &Plan, observed: &Observed) -> Vec<TargetInfo> {
    let mut cells: Vec<Vec<&FoldedCell>> = vec![Vec::new(); observed.targets.len()];
    for work in &observed.works {
        for (target, by_round) in work.cells.iter().enumerate() {
            cells[target].extend(by_round.values());
        }
    }
    debug_assert!(cells.iter().map(Vec::len).sum::<usize>() <= folded.cells.len());
    let names = observed.targets.iter().zip(&cells);
    let planned = |name: &str| plan.targets.iter().find(|target| target.name == name);
    names.map(|(name, cells)| target(name, planned(name), cells)).collect()
}

fn target(name: &str, planned: Option<&crate::plan::Target>, cells: &[&FoldedCell]) -> TargetInfo {
    let done = || cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done));
    let mut weakened: Vec<String> = done().flat_map(|cell| &cell.provenance.weakened).map(|w| plain(w)).collect();
    weakened.sort();
    weakened.dedup();
    let last = done().max_by_key(|cell| cell.round);
    TargetInfo {
        name: plain(name),
        duplicate: planned.is_some_and(|target| target.duplicate),
        note: if weakened.is_empty() { String::new() } else { format!("weaker durability: {}", weakened.join(", ")) },
        weakened,
        mount: in_effect(cells, "mount"),
        mkfs: in_effect(cells, "mkfs"),
        aged: aged(last),
        facts: last.map(|cell| facts(&cell.provenance.facts)).unwrap_or_default(),
    }
}

/// What ageing did to the last finished cell, and how its files lay then.
fn aged(last: Option<&&FoldedCell>) -> String {
    let fact = |name: &str| last.and_then(|cell| cell.provenance.facts.get(name));
    let Some(by) = fact("aged by") else { return String::new() };
    let named = [("layout", "aged layout"), ("used", "aged space used"), ("free", "aged free space")];
    let more = named.iter().filter_map(|(word, name)| Some(format!("; {word} {}", plain(fact(name)?))));
    plain(by) + &more.collect::<String>()
}

/// A fact of the last finished cell, and a warning if an earlier one differs.
fn in_effect(cells: &[&FoldedCell], name: &str) -> String {
    let done = cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done));
    let mut values: Vec<&String> = done.filter_map(|cell| cell.provenance.facts.get(name)).collect();
    let Some(last) = values.pop() else { return String::new() };
    let differs = if values.iter().any(|value| *value != last) { " (not the same in all rounds)" } else { "" };
    plain(last) + differs
}

/// Every planned cell that did not finish, grouped by target and cause.
pub fn holes(folded: &Folded, plan: &Plan, observed: &Observed, targets: &[TargetInfo]) -> Vec<Hole> {
    let planned = decide::rounds_planned(plan, folded) as usize;
    observed.works.iter().flat_map(|work| holes_of(plan, planned, observed, work, targets)).collect()
}

fn holes_of(
    plan: &Plan,
    planned: usize,
    observed: &Observed,
    work: &ObservedWork,
    targets: &[TargetInfo],
) -> Vec<Hole> {
    let of = planned.max(work.rounds.len());
    // A round in which nothing ended was not reached: said once, not for every target.
    let mut holes = Vec::new();
    if work.rounds.len() < of {
        holes.push(hole(None, work, HoleKind::NotRun, "", of - work.rounds.len(), of));
    }
    for target in 0..targets.len() {
        let mut groups: BTreeMap<(HoleKind, String), usize> = BTreeMap::new();
        for round in work.rounds.iter().filter(|round| observed.is_asked(target, **round)) {
            if let Some(cause) = cause(work.cells[target].get(round).copied()) {
                *groups.entry(cause).or_default() += 1;
            }
        }
        let found = groups.into_iter().map(|((kind, why), rounds)| hole(Some(target), work, kind, &why, rounds, of));
        holes.extend(found);
    }
    let several = plan.works.len() > 1;
    holes.iter_mut().for_each(|hole| hole.sentence = sentence(hole, targets, work.rounds.len(), several));
    holes
}

fn hole(target: Option<usize>, work: &ObservedWork, kind: HoleKind, why: &str, rounds: usize, of: usize) -> Hole {
    let (work, why) = (plain(work.name), why.to_string());
    Hole { target, work, kind, why, rounds, of, sentence: String::new() }
}

fn cause(cell: Option<&FoldedCell>) -> Option<(HoleKind, String)> {
    match cell.map(|cell| &cell.outcome) {
        Some(Some(Outcome::Done)) => None,
        Some(Some(Outcome::Failed(why))) => Some((HoleKind::Failed, plain(why))),
        Some(Some(Outcome::Skipped(why))) => Some((HoleKind::Skipped, plain(&why.join("; ")))),
        Some(None) => Some((HoleKind::CutOff, String::new())),
        None => Some((HoleKind::NotRun, String::new())),
    }
}

fn sentence(hole: &Hole, targets: &[TargetInfo], reached: usize, several_works: bool) -> String {
    let work = if several_works { format!(" ({})", hole.work) } else { String::new() };
    let Some(target) = hole.target else {
        return format!("{} of {} planned rounds{work} not run", hole.rounds, hole.of);
    };
    let often = match hole.rounds {
        all if all == reached => "in every round".to_string(),
        some => format!("in {some} of {}", counted(reached, "round")),
    };
    let colon = if hole.why.is_empty() { "" } else { ": " };
    format!("{}{work}: {} {often}{colon}{}", targets[target].name, hole.kind.word(), hole.why)
}

impl HoleKind {
    pub fn word(self) -> &'static str {
        match self {
            HoleKind::Failed => "failed",
            HoleKind::Skipped => "skipped",
            HoleKind::CutOff => "begun and cut off",
            HoleKind::NotRun => "not run",
        }
    }
}

/// Why a target has no figure: its commonest hole.
pub fn absent(holes: &[Hole], work: &str, target: usize) -> Absent {
    let of_target = holes.iter().filter(|hole| hole.target == Some(target) && hole.work == work);
    let Some(hole) = of_target.max_by_key(|hole| hole.rounds) else {
        return Absent { word: "not measured", why: "not measured".to_string() };
    };
    let word = hole.kind.word();
    Absent { word, why: if hole.why.is_empty() { word.to_string() } else { format!("{word}: {}", hole.why) } }
}

pub fn flags(folded: &Folded, observed: &Observed, targets: &[TargetInfo]) -> Vec<FlagGroup> {
    let mut groups: BTreeMap<(String, String, Option<usize>), (usize, String)> = BTreeMap::new();
    let of_run = folded.flags.iter().map(|flag| (None, flag));
    let of_cells = observed.works.iter().flat_map(|work| {
        (0..targets.len()).flat_map(move |target| work.flags(target).map(move |flag| (Some(target), flag)))
    });
    for (target, flag) in of_run.chain(of_cells) {
        let group = groups.entry((plain(&flag.flag), plain(&flag.phase), target));
        group.or_insert_with(|| (0, plain(&flag.why))).0 += 1;
    }
    groups.into_iter().map(|(key, (count, example))| flag_group(key, count, example, targets)).collect()
}

fn flag_group(
    (flag, phase, target): (String, String, Option<usize>),
    count: usize,
    example: String,
    targets: &[TargetInfo],
) -> FlagGroup {
    let whose = target.map_or("the run", |target| &targets[target].name);
    let place = if phase.is_empty() { whose.to_string() } else { format!("{whose}, {phase}") };
    let often = if count > 1 { format!("{count} times, such as ") } else { String::new() };
    let sentence = format!("{flag} ({place}): {often}{example}");
    FlagGroup { flag, phase, target, count, example, sentence }
}

pub fn ledger(folded: &Folded) -> LedgerShares {
    let mut sum = Ledger::default();
    folded.cells.iter().map(|cell| &cell.ledger).chain([&folded.ledger]).for_each(|ledger| sum.add(ledger));
    let total_ns = sum.total_ns();
    if total_ns == 0 {
        return LedgerShares::default();
    }
    let part = |name, ns: u64| {
        let share = ns as f64 / total_ns as f64;
        LedgerPart { name, ns, share, shown: format!("{:.0} %", share * 100.0) }
    };
    let mut parts = vec![
        part("phases", sum.phases_ns),
        part("set-up", sum.setup_ns),
        part("ageing", sum.ageing_ns),
        part("settling", sum.settle_ns),
        part("checks", sum.checks_ns),
        part("teardown", sum.teardown_ns),
    ];
    parts.retain(|part| part.name != "ageing" || part.ns > 0); // most runs have none
    let sentence = format!("{} of {} was inside phases", parts[0].shown, units::show_duration(total_ns as f64));
    LedgerShares { total_ns, sentence, parts }
}
