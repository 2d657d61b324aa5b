//! The check behind each rule: what a journal shows.

use super::recompute::{decisions, differences};
use super::{Evidence, Finding};
use crate::analysis::{is_busy, is_simulated};
use crate::run::cells_of_rounds;
use crate::wording::text::escaped;
use pickfs_core::journal::{FlagKind, Folded, FoldedCell, Outcome, Record, links};
use pickfs_core::plan::{Cell, OtherProcessors, expand};
use std::collections::{BTreeMap, BTreeSet};

const NO_PYTHON: &str = "there is no python3 to compute it anew (apt-get install python3)";
/// A ledger is read around the phases, and each clock has its grain.
const GRAIN_NS: f64 = 2e6;
const GRAIN: f64 = 1.01;
/// Mount options, and properties of ZFS, by which what was synced may be lost.
const UNSAFE: [&str; 6] =
    ["nobarrier", "barrier=0", "barrier=none", "sync=disabled", "fsync_mode=nobarrier", "checkpoint=disable"];

pub(super) fn whole(of: &Evidence) -> Finding {
    let unreadable = of.records.iter().filter(|(_, record)| record.is_none()).map(|(line, _)| *line);
    let mut broken: Vec<String> = unreadable.map(|line| format!("line {line} is no record")).collect();
    if !matches!(of.records.first(), Some((_, Some(Record::Run(_))))) {
        broken.push("the first line is not the run's".to_string());
    }
    let runs = of.each(|record| matches!(record, Record::Run(_))).skip(1);
    broken.extend(runs.map(|(line, _)| format!("line {line} begins another run")));
    Finding::broken(broken)
}

pub(super) fn chain(of: &Evidence) -> Finding {
    let found = links(of.journal);
    if found.number == 0 {
        return Finding::Open(vec!["there is no chain: an earlier version wrote the journal".to_string()]);
    }
    let first = found.broken.first();
    let broken = first.map(|line| format!("something above line {line} was changed"));
    let unlinked = found.unlinked.iter().map(|line| format!("no link follows line {line}"));
    Finding::broken(broken.into_iter().chain(unlinked).collect())
}

pub(super) fn version(of: &Evidence) -> Finding {
    let of_run = of.folded.run.as_ref().map_or("", |run| run.pickfs.as_str());
    // What is imported was measured by no version.
    let others = links(of.journal).versions.into_iter().filter(|(version, _)| version != of_run && !of.is_imported());
    Finding::broken(others.map(|(version, line)| format!("line {line} is of {version}, not {of_run}")).collect())
}

pub(super) fn own(of: &Evidence) -> Finding {
    let imported = of.folded.run.as_ref().map_or("", |run| run.imported.as_str());
    match imported {
        "" => Finding::Kept,
        from => Finding::Open(vec![format!("imported from {from}: order, caches and settings are not known")]),
    }
}

/// Earlier versions hashed other fields: then no id fits at all. `pickfs share` counts cells in
/// place of their ids.
pub(super) fn cells(of: &Evidence) -> Finding {
    let known: BTreeMap<String, (u32, String, String)> =
        expand(of.plan).into_iter().map(|cell| (cell.id, (cell.round, cell.target.name, cell.work.name))).collect();
    let (mut fitting, mut broken, mut other) = (0, Vec::new(), Vec::new());
    for (line, record) in of.each(|_| true) {
        let Record::Begin(begin) = record else { continue };
        if of.speeds.contains(&begin.cell) || of.is_imported() {
            continue;
        }
        let place = format!("line {line}: {}, {}, round {}", begin.target, begin.work, begin.round);
        let is_planned = of.names.contains(&begin.target) && of.plan.works.iter().any(|work| work.name == begin.work);
        match known.get(&begin.cell) {
            Some((round, target, work)) if (*round, target, work) == (begin.round, &begin.target, &begin.work) => {
                fitting += 1;
            }
            None if is_planned && (is_counted(&begin.cell) || of.copies.contains(&begin.target)) => {}
            None if is_planned => other.push(place),
            _ => broken.push(place),
        }
    }
    match fitting {
        0 if broken.is_empty() && links(of.journal).number == 0 => Finding::open(other),
        _ => Finding::broken([broken, other].concat()),
    }
}

fn is_counted(id: &str) -> bool {
    id.len() == 16 && id.starts_with("00000000")
}

/// A round of a high number would have all before it gone through.
fn beyond_the_plan(of: &Evidence) -> Option<Finding> {
    let (last, most) = (of.last_round(), of.plan.stop.most_rounds());
    let found = || Finding::Broken(vec![format!("round {last} has begun, and the plan has {most}")]);
    (!of.is_imported() && last > most).then(found)
}

pub(super) fn dropped(of: &Evidence) -> Finding {
    if let Some(found) = beyond_the_plan(of) {
        return found;
    }
    let last = of.cells().filter(|cell| cell.outcome.is_some()).map(|cell| cell.round).max().unwrap_or(0);
    // A run that is stopped in its last round has begun no other cell, and no look ends it.
    let is_over = of.folded.looks.last().is_some_and(|look| look.end.is_some() && look.round >= last);
    let mut ended: BTreeMap<(&str, &str, u32), bool> = BTreeMap::new();
    for cell in of.cells() {
        *ended.entry((&cell.target, &cell.work, cell.round)).or_default() |= cell.outcome.is_some();
    }
    let (mut broken, mut open) = (Vec::new(), Vec::new());
    let planned = cells_of_rounds(of.plan, of.folded).take(if of.is_imported() { 0 } else { last as usize });
    for cell in planned.flatten() {
        // A copy of what stands in for the reference has another name than in the rounds before.
        let is_replaced = cell.target.duplicate && of.copies.len() > 1;
        if is_replaced || of.folded.is_left_out(&cell.target, &cell.work.name) {
            continue;
        }
        let place = format!("{}, {}, round {}", cell.target.name, cell.work.name, cell.round);
        match ended.get(&(cell.target.name.as_str(), cell.work.name.as_str(), cell.round)) {
            Some(true) => {}
            // Simulated cells run side by side, and not round by round.
            _ if (cell.round == last || is_simulated(of.folded)) && !is_over => {
                open.push(format!("{place} is not done yet"));
            }
            Some(false) => broken.push(format!("{place} has no end")),
            None => broken.push(format!("{place} is missing")),
        }
    }
    if broken.is_empty() { Finding::open(open) } else { Finding::broken(broken) }
}

pub(super) fn chosen(of: &Evidence) -> Finding {
    let mut ended = BTreeSet::new();
    let (mut broken, mut open) = (Vec::new(), Vec::new());
    for (line, record) in of.each(|_| true) {
        match record {
            Record::Begin(begin) if ended.contains(&begin.cell) => {
                broken.push(format!("line {line}: {} of round {} began again", begin.target, begin.round));
            }
            Record::End(end) if !ended.insert(end.cell.clone()) => {
                broken.push(format!("line {line} ends a cell a second time"));
            }
            Record::Aim(_) => open.push(format!("line {line} changes what ends the run")),
            _ => {}
        }
    }
    if broken.is_empty() { Finding::open(open) } else { Finding::broken(broken) }
}

/// Earlier versions drew orders in another way, so one that is not this version's may still be
/// random; one that is the same in all rounds is not.
pub(super) fn order(of: &Evidence) -> Finding {
    if is_simulated(of.folded) || of.is_imported() {
        return Finding::Kept;
    }
    if let Some(found) = beyond_the_plan(of) {
        return found;
    }
    let begun = |round: u32| {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for (_, record) in of.each(|record| matches!(record, Record::Begin(begin) if begin.round == round)) {
            let Record::Begin(begin) = record else { continue };
            let names = (begin.target.as_str(), begin.work.as_str());
            // What cannot be done here is skipped before the first cell.
            if of.folded.unfit.contains_key(&(begin.target.clone(), begin.work.clone())) {
                continue;
            }
            if !of.speeds.contains(&begin.cell) && !found.contains(&names) {
                found.push(names);
            }
        }
        found
    };
    let rounds: Vec<Vec<_>> = cells_of_rounds(of.plan, of.folded).take(of.last_round() as usize).collect();
    let names: Vec<Vec<(&str, &str)>> = (1..=of.last_round()).map(begun).collect();
    let is_other = |(found, cells): (&Vec<(&str, &str)>, &Vec<Cell>)| {
        let planned = cells.iter().map(|cell| (cell.target.name.as_str(), cell.work.name.as_str()));
        !planned.filter(|names| found.contains(names)).eq(found.iter().copied())
    };
    let other: Vec<String> = (1..)
        .zip(names.iter().zip(&rounds))
        .filter(|(_, both)| is_other(*both))
        .map(|(round, _): (u32, _)| format!("round {round}"))
        .collect();
    let is_fixed = names.len() > 2 && names[0].len() > 1 && names.windows(2).all(|two| two[0] == two[1]);
    match (other.is_empty(), is_fixed) {
        (false, true) => Finding::Broken(vec!["all rounds have the same order".to_string()]),
        // A link shows which version drew the order.
        (false, false) if links(of.journal).number > 0 => {
            Finding::Broken(vec![format!("not by the seed: {}", other.join(", "))])
        }
        (false, false) => Finding::Open(vec![format!("not by this version's seed: {}", other.join(", "))]),
        (true, _) => Finding::Kept,
    }
}

pub(super) fn clock(of: &Evidence) -> Finding {
    let mut broken = Vec::new();
    for cell in of.cells().filter(|cell| cell.outcome == Some(Outcome::Done)) {
        let times = of.folded.samples(cell).filter(|(_, metric, _)| *metric == "time_ns").map(|(.., value)| value);
        let (all, ledger) = (times.sum::<f64>(), cell.ledger.phases_ns as f64);
        if !of.is_imported() && ledger > 0.0 && all > ledger * GRAIN + GRAIN_NS {
            let place = place(cell);
            broken.push(format!("{place}: phases of {all:.0} ns in {ledger:.0} ns"));
        }
    }
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    for (line, record) in of.each(|_| true) {
        match record {
            Record::Begin(begin) => drop(begun.insert(&begin.cell, &begin.at)),
            Record::End(end) if begun.get(end.cell.as_str()).is_some_and(|at| !end.at.is_empty() && **at > *end.at) => {
                broken.push(format!("line {line}: a cell ends before it begins"));
            }
            _ => {}
        }
    }
    Finding::broken(broken)
}

pub(super) fn reference(of: &Evidence) -> Finding {
    if is_simulated(of.folded) || of.plan.targets.len() < 2 {
        return Finding::Kept;
    }
    let copy = of.plan.targets.iter().find(|target| target.duplicate);
    let is_done = |name: &str| of.cells().any(|cell| cell.target == name && cell.outcome == Some(Outcome::Done));
    match copy {
        Some(copy) if is_done(&copy.name) => Finding::Kept,
        Some(_) if of.copies.iter().any(|name| is_done(name)) => Finding::Kept,
        Some(copy) => Finding::Open(vec![format!("{} has no results", copy.name)]),
        None => Finding::Open(vec!["the plan has no second copy of the reference".to_string()]),
    }
}

pub(super) fn durability(of: &Evidence) -> Finding {
    if of.plan.rank_weakened {
        return Finding::Open(vec!["the plan ranks targets with weakened durability".to_string()]);
    }
    let hidden = |cell: &&FoldedCell| {
        let words = |fact: &String| fact.split([',', ' ', '(', ')', '\n']).any(|word| UNSAFE.contains(&word));
        cell.provenance.weakened.is_empty() && cell.provenance.facts.get("mount").is_some_and(words)
    };
    Finding::broken(
        of.cells().filter(hidden).map(|cell| format!("{} is not marked as weakened", place(cell))).collect(),
    )
}

pub(super) fn read_back(of: &Evidence) -> Finding {
    let done = || of.cells().filter(|cell| cell.outcome == Some(Outcome::Done));
    let lacks = done().filter(|cell| !cell.provenance.facts.contains_key("mount"));
    let mismatches = of.each(|record| matches!(record, Record::Provenance(found) if !found.mismatches.is_empty()));
    let broken: Vec<String> =
        mismatches.map(|(line, _)| format!("line {line} has another stack than the plan")).collect();
    match lacks.count() {
        _ if !broken.is_empty() => Finding::Broken(broken),
        0 => Finding::Kept,
        count => Finding::Open(vec![format!("{count} of {} cells do not show their mount", done().count())]),
    }
}

pub(super) fn cold(of: &Evidence) -> Finding {
    let done = of.cells().filter(|cell| cell.outcome == Some(Outcome::Done));
    let doubts = done.flat_map(|cell| cell.flags.iter().map(move |flag| (cell, flag)));
    let doubts = doubts.filter(|(_, flag)| FlagKind::voids_cold_proof(&flag.flag));
    Finding::open(doubts.map(|(cell, flag)| format!("{}: {} {}", place(cell), flag.phase, flag.flag)).collect())
}

pub(super) fn quiet(of: &Evidence) -> Finding {
    match is_busy(of.plan, of.folded) {
        Some((phases, all)) => Finding::Open(vec![format!("others used the machine in {phases} of {all} phases")]),
        None => Finding::Kept,
    }
}

pub(super) fn seed(of: &Evidence) -> Finding {
    let mut seeds: BTreeMap<u32, BTreeSet<&String>> = BTreeMap::new();
    for cell in of.cells() {
        seeds.entry(cell.round).or_default().extend(cell.provenance.facts.get("seed"));
    }
    let several = seeds.iter().filter(|(_, of_round)| of_round.len() > 1);
    let mut broken: Vec<String> = several.map(|(round, _)| format!("round {round} has several seeds")).collect();
    let all: BTreeSet<&String> = seeds.values().flatten().copied().collect();
    if all.len() < seeds.values().filter(|of_round| !of_round.is_empty()).count() {
        broken.push("two rounds have the same seed".to_string());
    }
    Finding::broken(broken)
}

pub(super) fn software(of: &Evidence) -> Finding {
    let names = ["kernel", "kernel version", "microcode", "system", "architecture", "simulated by"];
    of.constant(|name| names.contains(&name) || name.starts_with("version "))
}

pub(super) fn settings(of: &Evidence) -> Finding {
    let names = ["cpu latency limit", "governor", "idle driver", "turbo off", "preemption", "kernel words"];
    of.constant(|name| names.contains(&name) || ["dirty_", "queue ", "vm."].iter().any(|begin| name.starts_with(begin)))
}

pub(super) fn drive(of: &Evidence) -> Finding {
    let names = ["cpu", "cpus", "memory", "machine", "sectors", "simulated disk", "simulated processor"];
    let is_drive = |name: &str| [" device", " disk below", "firmware"].iter().any(|end| name.ends_with(end));
    of.constant(|name| names.contains(&name) || is_drive(name))
}

pub(super) fn stop(of: &Evidence) -> Finding {
    if of.has_ended() || of.is_imported() {
        Finding::Kept
    } else {
        Finding::Open(vec!["the run was cut off: no look ends it".to_string()])
    }
}

fn place(cell: &FoldedCell) -> String {
    format!("{}, {}, round {}", cell.target, cell.work, cell.round)
}

pub(super) fn verdict(of: &Evidence) -> Finding {
    match &of.beside.anew {
        Some(anew) => Finding::broken(differences(&of.beside.report, anew)),
        None => Finding::Open(vec![NO_PYTHON.to_string()]),
    }
}

/// Looks of earlier versions decided by other rules, and only a link shows which version made one.
pub(super) fn looks(of: &Evidence) -> Finding {
    let Some(anew) = &of.beside.anew else { return Finding::Open(vec![NO_PYTHON.to_string()]) };
    let found = decisions(&of.beside.report["looks"], &anew["looks"]);
    if links(of.journal).number > 0 { Finding::broken(found) } else { Finding::open(found) }
}

/// Another version may lay out a page in another way, and says the same.
pub(super) fn page(of: &Evidence) -> Finding {
    match &of.beside.page {
        Some(page) if page.shown != page.made => {
            let lacks = page.sentences.iter().filter(|sentence| !page.shown.contains(&escaped(sentence)));
            let broken: Vec<String> = lacks.map(|sentence| format!("it lacks the sentence: {sentence}")).collect();
            let differs =
                || Finding::Open(vec!["it is not the page that this version makes of the journal".to_string()]);
            if broken.is_empty() { differs() } else { Finding::Broken(broken) }
        }
        Some(_) => Finding::Kept,
        None => Finding::NotAsked,
    }
}

/// Another program, or another guest, has other instructions, and so may have other times.
pub(super) fn again(of: &Evidence) -> Finding {
    let Some(again) = of.beside.again.as_ref().filter(|_| is_simulated(of.folded)) else { return Finding::NotAsked };
    let times = |folded: &Folded, cell: &FoldedCell| -> Vec<(String, f64)> {
        let samples = folded.samples(cell).filter(|(_, metric, _)| *metric == "time_ns");
        samples.map(|(phase, _, value)| (phase.to_string(), value)).collect()
    };
    // Ids are counted in what was shared.
    let names = |cell: &FoldedCell| (cell.target.clone(), cell.work.clone(), cell.round);
    let others = again.cells.iter().filter(|cell| again.processors(cell) == OtherProcessors::NONE);
    let others: BTreeMap<_, _> = others.map(|cell| (names(cell), cell)).collect();
    let (mut otherwise, mut missing) = (Vec::new(), Vec::new());
    for cell in of.cells().filter(|cell| cell.outcome == Some(Outcome::Done)) {
        match others.get(&names(cell)) {
            Some(other) if other.outcome == cell.outcome && times(again, other) == times(of.folded, cell) => {}
            Some(other) if other.outcome.is_some() => otherwise.push(format!("{} came out otherwise", place(cell))),
            _ => missing.push(format!("{} was not done again", place(cell))),
        }
    }
    match made_by_others(of.folded, again) {
        _ if otherwise.is_empty() => Finding::open(missing),
        others if others.is_empty() => Finding::Broken(otherwise),
        others => Finding::Open([others, otherwise].concat()),
    }
}

/// What the times of a simulation depend on, apart from its plan, where it is not known to be the
/// same.
fn made_by_others(first: &Folded, again: &Folded) -> Vec<String> {
    let guests = first.host.keys().filter(|name| name.starts_with("guest ")).map(String::as_str);
    let fact = |folded: &Folded, name: &str| folded.host.get(name).cloned().unwrap_or("not known".to_string());
    let differs = |name: &str| {
        let (first, again) = (fact(first, name), fact(again, name));
        (first != again || first == "not known").then(|| format!("{name}: {first}; again: {again}"))
    };
    guests.chain(["simulated by"]).filter_map(differs).collect()
}
