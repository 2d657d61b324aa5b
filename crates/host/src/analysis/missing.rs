//! What is missing, what is in doubt and what was in effect: planned cells without results, flags,
//! provenance and the ledger.

use super::model::*;
use super::plain::plain;
use super::series::{Observed, ObservedWork};
use super::stopping::rounds_planned;
use pickfs_core::journal::{Folded, FoldedCell, Ledger, Outcome};
use pickfs_core::plan::Plan;
use std::collections::BTreeMap;

pub(crate) fn facts(facts: &BTreeMap<String, String>) -> Vec<Fact> {
    facts.iter().map(|(name, value)| Fact { name: plain(name), value: plain(value) }).collect()
}

pub(crate) fn targets(folded: &Folded, plan: &Plan, observed: &Observed) -> Vec<TargetInfo> {
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

fn target(name: &str, planned: Option<&pickfs_core::plan::Target>, cells: &[&FoldedCell]) -> TargetInfo {
    let done = || cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done));
    let mut weakened: Vec<String> = done().flat_map(|cell| &cell.provenance.weakened).map(|w| plain(w)).collect();
    weakened.sort();
    weakened.dedup();
    let last = done().max_by_key(|cell| cell.round);
    TargetInfo {
        name: plain(name),
        planned: planned.cloned(),
        duplicate: planned.is_some_and(|target| target.duplicate),
        weakened,
        mount: in_effect(cells, "mount"),
        mkfs: in_effect(cells, "mkfs"),
        ageing: ageing(last),
        facts: last.map(|cell| facts(&cell.provenance.facts)).unwrap_or_default(),
        hardware: last.map(|cell| cell.provenance.hardware().into_owned()).unwrap_or_default(),
    }
}

/// What ageing did to the last finished cell, and how its files lay then.
fn ageing(last: Option<&&FoldedCell>) -> Vec<Fact> {
    let fact = |name: &str| last.and_then(|cell| cell.provenance.facts.get(name));
    if fact("aged by").is_none() {
        return Vec::new();
    }
    let named =
        [("by", "aged by"), ("layout", "aged layout"), ("used", "aged space used"), ("free", "aged free space")];
    let known = named.into_iter().filter_map(|(name, full)| Some((name, fact(full)?)));
    known.map(|(name, value)| Fact { name: name.to_string(), value: plain(value) }).collect()
}

/// A fact of the last finished cell, and whether an earlier one differs.
fn in_effect(cells: &[&FoldedCell], name: &str) -> ReadBack {
    let done = cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done));
    let mut values: Vec<&String> = done.filter_map(|cell| cell.provenance.facts.get(name)).collect();
    let Some(last) = values.pop() else { return ReadBack::default() };
    ReadBack { value: plain(last), varies: values.iter().any(|value| *value != last) }
}

/// Every planned cell that did not finish, grouped by target and cause.
pub(crate) fn holes(folded: &Folded, plan: &Plan, observed: &Observed, targets: &[TargetInfo]) -> Vec<Hole> {
    let planned = rounds_planned(plan, folded) as usize;
    // One that was left out has no cells in later rounds: its reason is said, once.
    let is_left_out = |target: usize, work: &ObservedWork| {
        let planned = plan.targets.iter().find(|planned| planned.name == observed.targets[target]);
        planned.is_some_and(|planned| folded.is_left_out(planned, work.name))
    };
    observed.works.iter().flat_map(|work| holes_of(planned, observed, work, targets, &is_left_out)).collect()
}

fn holes_of(
    planned: usize,
    observed: &Observed,
    work: &ObservedWork,
    targets: &[TargetInfo],
    is_left_out: &dyn Fn(usize, &ObservedWork) -> bool,
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
            let cell = work.cells[target].get(round).copied();
            if cell.is_none() && is_left_out(target, work) {
                continue;
            }
            if let Some(cause) = cause(cell) {
                *groups.entry(cause).or_default() += 1;
            }
        }
        let found = groups.into_iter().map(|((kind, why), rounds)| hole(Some(target), work, kind, &why, rounds, of));
        holes.extend(found);
    }
    holes
}

fn hole(target: Option<usize>, work: &ObservedWork, kind: HoleKind, why: &str, rounds: usize, of: usize) -> Hole {
    let (reached, work, why) = (work.rounds.len(), plain(work.name), why.to_string());
    Hole { target, work, kind, why, rounds, of, reached }
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

/// Why a target has no figure: its commonest hole.
pub(crate) fn absent(holes: &[Hole], work: &str, target: usize) -> Absent {
    let of_target = holes.iter().filter(|hole| hole.target == Some(target) && hole.work == work);
    let commonest = of_target.max_by_key(|hole| hole.rounds);
    commonest.map_or(Absent::NotMeasured, |hole| Absent::Because(hole.kind, hole.why.clone()))
}

pub(crate) fn flags(folded: &Folded, observed: &Observed, targets: &[TargetInfo]) -> Vec<FlagGroup> {
    let mut groups: BTreeMap<(String, String, Option<usize>), (usize, String)> = BTreeMap::new();
    let of_run = folded.flags.iter().map(|flag| (None, flag));
    let of_cells = observed.works.iter().flat_map(|work| {
        (0..targets.len()).flat_map(move |target| work.flags(target).map(move |flag| (Some(target), flag)))
    });
    for (target, flag) in of_run.chain(of_cells) {
        let group = groups.entry((plain(&flag.flag), plain(&flag.phase), target));
        group.or_insert_with(|| (0, plain(&flag.why))).0 += 1;
    }
    let group = |((flag, phase, target), (count, example))| FlagGroup { flag, phase, target, count, example };
    groups.into_iter().map(group).collect()
}

pub(crate) fn ledger(folded: &Folded) -> LedgerShares {
    let mut sum = Ledger::default();
    folded.cells.iter().map(|cell| &cell.ledger).chain([&folded.ledger]).for_each(|ledger| sum.add(ledger));
    let total_ns = sum.total_ns();
    if total_ns == 0 {
        return LedgerShares::default();
    }
    let part = |name, ns: u64| LedgerPart { name, ns, share: ns as f64 / total_ns as f64 };
    let mut parts = vec![
        part("phases", sum.phases_ns),
        part("set-up", sum.setup_ns),
        part("ageing", sum.ageing_ns),
        part("settling", sum.settle_ns),
        part("checks", sum.checks_ns),
        part("teardown", sum.teardown_ns),
    ];
    parts.retain(|part| part.name != "ageing" || part.ns > 0); // most runs have none
    LedgerShares { total_ns, parts }
}
