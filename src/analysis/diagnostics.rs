//! Whether the machine was steady enough for what is said: the reference against its second copy, drifts and jumps,
//! several modes, and how many of many comparisons may be chance. Doubts are told; no value is ever dropped.

use super::model::*;
use super::work::Case;
use crate::analysis::{self as decide, Combine, ObservedWork};
use crate::journal::Outcome;
use crate::stats::{self, Estimate, Method};
use crate::units::Unit;
use crate::wording::text::{counted, listed, percent, plain};

/// Of all comparisons that are said to differ, so many may be chance.
const FALSE_DISCOVERIES: f64 = 0.05;
/// A reference that ranges over more than this is no fixed point.
const WIDE_RANGE: f64 = 0.10;

/// Doubts about the whole environment, from all phases of all works.
pub fn warnings(case: &Case) -> Vec<String> {
    let twins = decide::against_itself(case.plan, case.observed, case.level.confidence);
    let reference =
        decide::twins(case.plan, case.observed).map_or("", |(reference, _)| case.observed.targets[reference]);
    let name = plain(reference);
    let doubts = [luck_spent(&twins, &name), loud(&twins, case.plan.stop.threshold)];
    doubts.into_iter().flatten().chain(uneven_failures(case)).collect()
}

/// Failures that fall on one target are what it does; failures that fall on all alike are the machine's.
fn uneven_failures(case: &Case) -> Vec<String> {
    let counts: Vec<(u64, u64)> = (0..case.targets.len()).map(|target| failed_and_done(case, target)).collect();
    let (failed, done) = counts.iter().fold((0, 0), |(failed, done), own| (failed + own.0, done + own.1));
    let told = |(target, (own_failed, own_done)): (usize, &(u64, u64))| {
        let others = (failed - own_failed, done - own_done);
        let p = stats::fisher_exact(*own_failed, *own_done, others.0, others.1);
        let more_often = own_failed * (others.0 + others.1) > others.0 * (own_failed + own_done);
        (p < 0.05 && more_often).then(|| {
            format!(
                "{} failed in {own_failed} of {}, the others in {} of {}: no accident, but a result",
                case.targets[target].name,
                counted((own_failed + own_done) as usize, "cell"),
                others.0,
                others.0 + others.1
            )
        })
    };
    counts.iter().enumerate().filter_map(told).collect()
}

fn failed_and_done(case: &Case, target: usize) -> (u64, u64) {
    let cells = case.observed.works.iter().flat_map(|work| work.cells[target].values());
    cells.fold((0, 0), |(failed, done), cell| match cell.outcome {
        Some(Outcome::Failed(_)) => (failed + 1, done),
        Some(Outcome::Done) => (failed, done + 1),
        _ => (failed, done),
    })
}

/// Of two same things, one comparison in twenty is apart by luck; many more are no luck.
fn luck_spent(twins: &[Estimate], name: &str) -> Option<String> {
    let intervals: Vec<(f64, f64)> = twins.iter().filter_map(|estimate| estimate.interval).collect();
    let apart = intervals.iter().filter(|(low, high)| *low > 1.0 || *high < 1.0).count();
    stats::too_many_apart(apart, intervals.len()).then(|| {
        format!(
            "environment not trustworthy: {name} differs from its own second copy in {apart} of {}, where luck \
             explains one in twenty",
            counted(intervals.len(), "phase")
        )
    })
}

/// The noise floor is the half-width of the comparison of two same things, in the median over the phases.
fn loud(twins: &[Estimate], wanted: f64) -> Option<String> {
    let halves: Vec<f64> = twins.iter().filter_map(Estimate::half_width).collect();
    let floor = stats::median(&halves)?;
    (floor > wanted.ln_1p()).then(|| {
        format!(
            "the noise floor, ±{} in the median over the phases, is above the {} that matter: ties cannot be shown, and \
             only differences beyond the noise are told",
            percent(floor.exp_m1()),
            percent(wanted)
        )
    })
}

/// Marks the comparisons of a work's phases that do not stand when all of them are made at once (Benjamini & Hochberg):
/// those with the reference, and those with each target that a reader may take for it.
pub fn mark_chance(report: &mut WorkReport) {
    let targets = report.phases.iter().flat_map(|panel| &panel.rows).map(|row| row.others.len()).max().unwrap_or(0);
    mark_family(report, |row| row.against.as_mut());
    (0..targets).for_each(|other| mark_family(report, |row| row.others.get_mut(other)?.as_mut()));
}

fn mark_family(report: &mut WorkReport, of: impl Fn(&mut Row) -> Option<&mut Comparison>) {
    let panels = report.phases.iter_mut().filter(|panel| !panel.phase.is_empty());
    let mut compared: Vec<&mut Comparison> = panels.flat_map(|panel| &mut panel.rows).filter_map(of).collect();
    let chances: Vec<f64> = compared.iter().map(|comparison| comparison.p.unwrap_or(1.0)).collect();
    let stand = stats::benjamini_hochberg(&chances, FALSE_DISCOVERIES);
    for (comparison, stands) in compared.iter_mut().zip(stand) {
        // What is preliminary is called so already: so few rounds allow no small p-value.
        comparison.may_be_chance = comparison.tells() && comparison.estimate.method == Method::SignedRank && !stands;
    }
}

/// Pairs cancel what a round does to all its targets, so verdicts stand; absolute numbers may not.
pub fn drift(report: &WorkReport, observed: &ObservedWork, targets: &[TargetInfo]) -> Option<String> {
    let reference = report.reference?;
    let times: Vec<f64> = whole(observed, reference);
    let found = if stats::drifts(&times) {
        "drifted over the rounds".to_string()
    } else if let Some(at) = stats::changes_at(&times) {
        format!("changed from one level to another after round {at}")
    } else {
        let range = stats::relative_range(&times).filter(|range| times.len() >= 3 && *range > WIDE_RANGE)?;
        format!("ranges over {} of its median", percent(range))
    };
    let (work, name) = (&report.name, &targets[reference].name);
    Some(format!("{work}: {name} {found}; comparisons are paired and stand, absolute times may not"))
}

fn whole(observed: &ObservedWork, target: usize) -> Vec<f64> {
    observed.over_phases("time_ns", Combine::Sum)[target].iter().map(|(_, value)| *value).collect()
}

/// Two modes are two answers, and a median between them would be none. In logarithms, as times are compared by ratio.
pub fn modes(report: &WorkReport, observed: &ObservedWork, targets: &[TargetInfo]) -> Vec<String> {
    let shown = |target: &usize| !targets[*target].duplicate;
    let of = |target: usize| {
        let logs: Vec<f64> = whole(observed, target).iter().map(|time| time.ln()).collect();
        let each: Vec<String> = stats::modes(&logs)?
            .iter()
            .map(|mode| {
                format!("{} in {} of the rounds", Unit::Nanoseconds.show(mode.centre.exp()), percent(mode.share))
            })
            .collect();
        let (work, name) = (&report.name, &targets[target].name);
        Some(format!("{work}: {name} has several modes, {}; its median says little", listed(&each)))
    };
    (0..targets.len()).filter(shown).filter_map(of).collect()
}
