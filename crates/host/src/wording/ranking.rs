//! Many runs in one table: for each disk, host and kernel, and each work, which target is best,
//! second, third and worst.
//!
//! Places are those of each run's verdict: the pick with what may be as good, then what is slower
//! than it. Disks are named by their class and model, without the run's own figures, so that runs
//! on one disk share a name.

use super::text::{plain, ratio};
use crate::analysis::{DiskClass, Level, MeasuredDisk, Model, VerdictKind, WorkReport};
use pickfs_stats::Finding;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Class of the disk, and its model where it has one.
    pub disk: String,
    /// Processor, memory, kernel and drive, as the run reports them.
    pub machine: String,
    pub work: String,
    /// From the best to the worst; empty where there is no verdict.
    pub places: Vec<Place>,
    /// One sentence.
    pub verdict: String,
    /// The best of each file system, where any has several targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best_of_each: Vec<BestOfEach>,
    /// What a store keeps of each target's time, to follow it over runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
}

/// The pick and what may be as good; or targets that are slower than the pick, than each of the
/// places between, and are not shown to differ. What left before that was settled has no place: the
/// sentence names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    pub names: Vec<String>,
    /// False: not shown to differ, which is less than being the same.
    pub tie: bool,
    /// The first of them against the first of the best: "×1.23 (1.15–1.30)"; empty for the best.
    pub against: String,
}

/// A row of [`Champions::rows_shown`](crate::analysis::Champions).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestOfEach {
    pub filesystem: String,
    pub best: String,
    pub how_sure: String,
    pub time: String,
}

/// A ranking for each work of each run, in the order given.
pub fn ranking(models: &[Model]) -> Vec<Choice> {
    models.iter().flat_map(of_run).collect()
}

fn of_run(model: &Model) -> Vec<Choice> {
    let disk = disk(model);
    let choice = |work: &WorkReport| Choice {
        disk: disk.clone(),
        machine: model.machine().clone(),
        work: work.name.clone(),
        places: places(model, work),
        verdict: plain(&work.headline(model)),
        best_of_each: best_of_each(model, work),
        levels: Vec::new(),
    };
    model.reports().map(choice).collect()
}

fn best_of_each(model: &Model, work: &WorkReport) -> Vec<BestOfEach> {
    let of_work = model.champions.iter().filter(|champions| champions.of == work.name);
    let rows = of_work.flat_map(|champions| champions.rows_shown(model));
    rows.map(|[filesystem, best, how_sure, time]| BestOfEach { filesystem, best, how_sure, time }).collect()
}

/// Every backing that was looked at before all cells; named where there are several.
fn disk(model: &Model) -> String {
    let simulated: BTreeSet<&str> = model
        .targets
        .iter()
        .flat_map(|target| &target.facts)
        .filter(|fact| fact.name == "simulated disk")
        .map(|fact| fact.value.as_str())
        .collect();
    if !simulated.is_empty() {
        return format!("simulated {}", simulated.into_iter().collect::<Vec<_>>().join(" and "));
    }
    let described = |disk: &MeasuredDisk| match disk.model.as_str() {
        "" => words(disk.class).to_string(),
        model => format!("{} ({model})", words(disk.class)),
    };
    match &model.measured_disks[..] {
        [] => words(DiskClass::Unknown).to_string(),
        [one] => described(one),
        several => {
            several.iter().map(|one| format!("{} on {}", one.backing, described(one))).collect::<Vec<_>>().join("; ")
        }
    }
}

fn words(class: DiskClass) -> &'static str {
    match class {
        DiskClass::Memory => "memory",
        DiskClass::AsFastAsMemory => "as fast as memory",
        DiskClass::Seeking => "a disk that seeks",
        DiskClass::Sata => "flash, no faster than SATA",
        DiskClass::FasterThanSata => "flash, faster than SATA",
        DiskClass::Unknown => "a disk of unknown speed",
    }
}

fn places(model: &Model, work: &WorkReport) -> Vec<Place> {
    let judged = matches!(work.verdict.kind, VerdictKind::Pick | VerdictKind::Tie | VerdictKind::Unresolved);
    let (Some(panel), true) = (work.phases.first(), judged) else { return Vec::new() };
    let Some(race) = &panel.race else { return Vec::new() };
    let name = |at: usize| model.targets[at].name.clone();
    let against = |at: usize| panel.pairs.get(at, race.pick).map(|found| found.estimate);
    // A verdict that several are good enough says so of those.
    let are_good = |at: usize, other: usize| {
        work.verdict.kind == VerdictKind::Tie && [at, other].iter().all(|one| work.verdict.best.contains(one))
    };
    let is_tie = |at: usize, other: usize| are_good(at, other) || panel.pairs.finding(at, other) == Some(Finding::Tie);
    let place = |members: &[usize]| Place {
        names: members.iter().map(|at| name(*at)).collect(),
        tie: members.len() > 1 && members[1..].iter().all(|at| is_tie(*at, members[0])),
        against: against(members[0]).map(|found| format!("×{}", ratio(&found))).unwrap_or_default(),
    };
    let mut slower = race.slower.clone();
    let behind = |at: usize| against(at).map_or(f64::INFINITY, |found| found.ratio);
    slower.sort_by(|a, b| behind(*a).total_cmp(&behind(*b)));
    let best = race.may_be_best().collect();
    // Each pair once: of many targets none is known before it is asked for.
    let pairs = slower.iter().flat_map(|at| slower.iter().map(move |one| (*at, *one)));
    let behind: BTreeSet<(usize, usize)> =
        pairs.filter(|(at, one)| panel.pairs.finding(*at, *one) == Some(Finding::Higher)).collect();
    let places = std::iter::once(best).chain(apart(&slower, |at, one| behind.contains(&(at, one))));
    places.map(|members: Vec<usize>| place(&members)).collect()
}

/// Splits an order where each that follows is behind each before: what is not shown to differ
/// shares a place.
fn apart(order: &[usize], is_behind: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (at, target) in order.iter().enumerate() {
        let splits = order[at..].iter().all(|later| order[..at].iter().all(|one| is_behind(*later, *one)));
        match places.last_mut().filter(|_| !splits) {
            Some(place) => place.push(*target),
            None => places.push(vec![*target]),
        }
    }
    places
}

/// "xfs = ext4 ×1.12 (1.05–1.20)", "xfs or ext4".
fn place_name(place: &Place) -> String {
    let names = if place.tie { place.names.join(" = ") } else { place.names.join(" or ") };
    format!("{names} {}", place.against).trim_end().to_string()
}

pub(crate) const COLUMNS: [&str; 6] = ["disk", "work", "best", "2nd", "3rd", "worst"];

/// The last place is the worst, wherever it comes; what lies between the third and the worst is
/// left out.
pub(crate) fn cells(choice: &Choice) -> [String; 6] {
    let (last, others) = match choice.places.as_slice() {
        [] | [_] => (None, &choice.places[..]),
        [others @ .., last] => (Some(last), others),
    };
    let place = |at: usize| others.get(at).map(place_name).unwrap_or_default();
    let best = if choice.places.is_empty() { "no verdict".to_string() } else { place(0) };
    let worst = last.map(place_name).unwrap_or_default();
    [choice.disk.clone(), choice.work.clone(), best, place(1), place(2), worst]
}

/// "On flash, no faster than SATA (...), tree: ..."
pub fn sentence(choice: &Choice) -> String {
    let machine = if choice.machine.is_empty() { String::new() } else { format!(" [{}]", choice.machine) };
    format!("{}{machine}, {}: {}", choice.disk, choice.work, choice.verdict)
}

/// What the signs in [`cells`] mean.
pub(crate) const LEGEND: &str = "= the same; or: cannot be distinguished; × time relative to the first of the best";

/// Headings of [`best_cells`].
pub(crate) const BEST_COLUMNS: [&str; 6] = ["disk", "work", "file system", "best of it", "how sure", "time"];

/// What the times in [`best_cells`] are.
pub(crate) const BEST_LEGEND: &str =
    "× time relative to the first; the intervals of a run hold together in 95 % of runs";

/// A row for each file system of each choice that has several targets of one.
pub(crate) fn best_cells(choices: &[Choice]) -> Vec<[String; 6]> {
    let row = |choice: &Choice, best: &BestOfEach| {
        [&choice.disk, &choice.work, &best.filesystem, &best.best, &best.how_sure, &best.time].map(String::clone)
    };
    choices.iter().flat_map(|choice| choice.best_of_each.iter().map(move |best| row(choice, best))).collect()
}
