//! A run compared with earlier ones, in words and numbers: what `pickfs compare` prints.
//! Regressions come first, then facts of the machines that differ.

use super::text::{self as words, plain};
use crate::analysis::{self, Accepted, Change, Changes, Difference, Doubt, Field, Gate, Measured, OnlyIn, Part};
use pickfs_core::journal::{Folded, Outcome, Run, VERSION};
use pickfs_core::plan::OtherProcessors;
use pickfs_stats::Finding;
use pickfs_system::units::show_duration;
use std::collections::BTreeMap;

/// A comparison of two runs, ready to be printed.
#[derive(Debug)]
pub struct RunComparison {
    pub gate: Gate,
    /// What it comes to, in words.
    pub headline: String,
    /// What the intervals hold, and what they do not.
    pub caveat: String,
    pub threshold: f64,
    /// By how much slower any whole job is at most, as a share; `None` where it is not known.
    pub at_most: Option<f64>,
    /// Earlier runs.
    pub runs: usize,
    pub rows: Vec<TimeChange>,
    /// Targets and works that only one run has.
    pub missing: Vec<String>,
    /// Settings in effect that differ.
    pub facts: Vec<FactChange>,
}

#[derive(Debug)]
pub struct TimeChange {
    pub target: String,
    pub work: String,
    /// "whole job", or the phase.
    pub phase: String,
    /// Medians with their units; "no value" where there is none.
    pub old: String,
    pub new: String,
    /// "1.23 (1.18–1.28)".
    pub ratio: String,
    /// "slower", "faster", "no slower", "open".
    pub says: &'static str,
    pub change: Change,
}

#[derive(Debug, PartialEq)]
pub struct FactChange {
    pub name: String,
    pub old: String,
    pub new: String,
}

/// What is in the intervals in addition to the scatter of rounds.
fn caveat(found: &Changes) -> String {
    if found.paired {
        return "Both runs are simulated, so each round is held against the same round of the other run, which differs by \
                nothing but what was changed. The intervals are over the seeds of the rounds, and --scatter does not count."
            .into();
    }
    let drift = match found.beside.drift {
        drift if drift > 1.05 => format!(" Drift within the runs makes all intervals {drift:.1} times as wide."),
        _ => String::new(),
    };
    let scatter = match found.beside.scatter {
        Some(scatter) => {
            let by = words::percent(scatter.deviation.exp_m1());
            let runs = match (found.runs, found.history) {
                _ if scatter.freedom.is_infinite() => "runs of one plan differ by (--scatter)".to_string(),
                (1, others) => format!("{} on this kernel differ by", words::counted(others + 1, "earlier run")),
                (runs, _) => format!("the {runs} earlier runs differ by"),
            };
            format!("The intervals hold what {runs}, a standard deviation of {by}.")
        }
        None => "Each side is one run: effects of a whole run (its day, its boot) are in the ratios and not in their intervals, \
                 which are of the rounds of these two runs alone."
            .into(),
    };
    format!("{scatter}{drift}")
}

/// Why nothing is concluded, and what to do.
fn doubted(doubt: &Doubt) -> String {
    match doubt {
        Doubt::OneRun => {
            "Inconclusive: with one earlier run it is not known how far two runs of the same differ here. On other \
                          days run the old plan a few more times (`pickfs run PLAN`), then `pickfs compare OLD1 \
                          OLD2 OLD3 NEW`; or give --scatter, if you know it."
                .into()
        }
        Doubt::Unreliable { is_new, reference, why } => {
            let run = if *is_new { "the new run" } else { "an earlier run" };
            let why = super::warnings::unreliable(why, reference);
            format!("Inconclusive: of {run}, {why}. Close other programs and make that run again.")
        }
    }
}

/// "works.tree.files: 100 in the old run, 200 in the new one", for all that must be alike and is
/// not.
pub fn differences(old: (&Run, &Folded), new: (&Run, &Folded)) -> Vec<String> {
    let field = |field: &Field| match field {
        Field::Plan(field) => plain(field),
        Field::Data { target, work, phase, metric } => plain(&format!("data of {target}, {work}, {phase}: {metric}")),
    };
    let line = |found: &Difference| {
        let (old, new) = (plain(&found.old), plain(&found.new));
        format!("{}: {old} in the old run, {new} in the new one", field(&found.field))
    };
    analysis::differences(old, new).iter().map(line).collect()
}

/// "target ext4: only in the old run".
fn missing(found: &OnlyIn) -> String {
    let part = if found.part == Part::Target { "target" } else { "work" };
    format!("{part} {}: only in the {} run", plain(&found.name), if found.old { "old" } else { "new" })
}

/// Compares a run with one or several earlier ones, of which the last is closest.
pub fn comparison(old: &[Measured], history: &[Measured], new: Measured, accepted: Accepted) -> RunComparison {
    let found = analysis::changes(old, history, new, accepted);
    let caveat = caveat(&found);
    let (gate, threshold, at_most, runs) = (found.gate, found.threshold, found.at_most, found.runs);
    let missing = found.missing.iter().map(missing).collect();
    let rows: Vec<TimeChange> = found.changes.into_iter().map(row).collect();
    let facts = old.last().map(|(_, old)| fact_changes(old, new.1)).unwrap_or_default();
    let doubted = found.doubt.as_ref().map(doubted);
    let headline = doubted.unwrap_or_else(|| headline((gate, at_most), &rows, threshold));
    RunComparison { gate, headline, caveat, threshold, at_most, runs, missing, facts, rows }
}

fn row(change: Change) -> TimeChange {
    let shown = |ns: Option<f64>| ns.map_or("no value".to_string(), show_duration);
    let high = change.estimate.as_ref().and_then(|estimate| estimate.interval).map(|(_, high)| high);
    TimeChange {
        target: plain(&change.target),
        work: plain(&change.work),
        phase: plain(change.phase.as_deref().unwrap_or(crate::analysis::WHOLE_JOB)),
        old: shown(change.old),
        new: shown(change.new),
        ratio: change.estimate.as_ref().map_or(String::new(), words::ratio),
        says: match () {
            () if change.is_regression || !change.decides && change.finding == Some(Finding::Higher) => "slower",
            () if change.is_fine && high.is_some_and(|high| high < 1.0) => "faster",
            () if !change.decides && change.finding == Some(Finding::Lower) => "faster",
            () if !change.decides && change.finding == Some(Finding::Tie) => "no slower",
            () if change.is_fine => "no slower",
            () => "open",
        },
        change,
    }
}

/// One question: how much slower is any whole job at most?
fn headline((gate, at_most): (Gate, Option<f64>), rows: &[TimeChange], threshold: f64) -> String {
    let beyond = words::percent(threshold);
    let decisive: Vec<&TimeChange> = rows.iter().filter(|row| row.change.decides).collect();
    let compared = words::counted(decisive.len(), "whole job");
    let bound = match at_most {
        Some(most) if most <= 0.0 => Some("No whole job is slower than before (95 %)".to_string()),
        Some(most) => Some(format!("At most {} slower than before (95 %)", words::percent_up(most))),
        None => None,
    };
    match (gate, bound) {
        (Gate::Regression, _) => {
            let slower: Vec<&&TimeChange> = decisive.iter().filter(|row| row.change.is_regression).collect();
            let most = slower.first().map(|row| format!(" The most: {}.", sentence(row))).unwrap_or_default();
            let are = if slower.len() == 1 { "is" } else { "are" };
            format!("{} of {compared} {are} slower by clearly more than {beyond}.{most}", slower.len())
        }
        (Gate::Fine, Some(bound)) => format!("{bound}: {compared} compared, and up to {beyond} is accepted."),
        (_, Some(bound)) => format!(
            "Inconclusive. {bound}: {compared} compared, and up to {beyond} is accepted. More rounds, or more earlier runs, \
             would narrow it."
        ),
        (_, None) => {
            let open = decisive.iter().filter(|row| row.change.at_most.is_none()).count();
            format!(
                "Inconclusive: one of the runs has too few rounds for a bound on {open} of {compared}. Each run needs 4 rounds, \
                 simulated runs 6."
            )
        }
    }
}

impl TimeChange {
    /// "ext4, tree, write".
    pub(crate) fn name(&self) -> String {
        format!("{}, {}, {}", self.target, self.work, self.phase)
    }
}

impl FactChange {
    /// "kernel: 6.1 → 6.12".
    pub(crate) fn sentence(&self) -> String {
        format!("{}: {} → {}", self.name, self.old, self.new)
    }
}

/// "ext4, tree, write takes 23 % more time than before (18–28 %)".
fn sentence(row: &TimeChange) -> String {
    let name = row.name();
    let Some(estimate) = &row.change.estimate else { return name };
    let (amount, range) = words::difference(estimate);
    let than = if amount.ends_with("the") { "time of before" } else { "time than before" };
    format!("{name} takes {amount} {than} ({range})")
}

/// Facts of the machine, and the versions and settings in effect of every target, that are not the
/// same.
fn fact_changes(old: &Folded, new: &Folded) -> Vec<FactChange> {
    let (old, new) = (facts(old), facts(new));
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    let shown = |facts: &BTreeMap<String, String>, name: &String| facts.get(name).cloned().unwrap_or("unknown".into());
    // A guest that one run did not need is no change of the other.
    let is_guest_of_one =
        |name: &str| name.starts_with("guest ") && (!old.contains_key(name) || !new.contains_key(name));
    let differ = names.filter(|name| old.get(*name) != new.get(*name) && !is_guest_of_one(name));
    differ.map(|name| FactChange { name: name.clone(), old: shown(&old, name), new: shown(&new, name) }).collect()
}

/// What is measured anew each time is no setting.
fn facts(folded: &Folded) -> BTreeMap<String, String> {
    let host = folded.host.iter().filter(|(name, _)| !name.contains(" raw "));
    let mut facts: BTreeMap<String, String> =
        host.map(|(name, value)| (plain(name), without_number(&plain(value)))).collect();
    for cell in folded
        .cells
        .iter()
        .filter(|cell| cell.outcome == Some(Outcome::Done) && folded.processors(cell) == OtherProcessors::NONE)
    {
        for (name, value) in cell.provenance.facts.iter().filter(|(name, _)| is_setting(name)) {
            // What it is mounted from has another number each time.
            let value =
                if name == "mount" { value.split_once(' ').map_or(value.as_str(), |(_, rest)| rest) } else { value };
            facts.insert(plain(&format!("{}: {name}", cell.target)), plain(value));
        }
    }
    facts
}

/// A loop device has another number each time.
fn without_number(value: &str) -> String {
    let number = |word: &str| word.strip_prefix("loop").is_some_and(|rest| rest.parse::<u32>().is_ok());
    value.split(' ').map(|word| if number(word) { "loop" } else { word }).collect::<Vec<_>>().join(" ")
}

/// True for facts of a cell that are settings.
fn is_setting(name: &str) -> bool {
    matches!(name, "mount" | "features") || [VERSION, "queue ", "vm."].iter().any(|begin| name.starts_with(begin))
}
