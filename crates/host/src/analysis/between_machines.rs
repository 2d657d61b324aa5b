//! One plan on several machines: what holds on all of them.
//!
//! Machines are the observations. Within each machine two targets are compared as its own report
//! compares them, paired by round; no round of one machine is ever paired with one of another.
//! These ratios are then combined with random effects. A target is picked only if it is good enough
//! on average over machines like these, and no machine clearly contradicts.

use super::Model;
use super::work::WorkReport;
use pickfs_stats::{OnMachine, RandomEffects};

/// A work on all machines.
#[derive(Debug)]
pub(crate) struct AcrossMachines {
    pub work: String,
    /// In the order of their first run.
    pub machines: Vec<String>,
    /// What all are compared with in the table.
    pub reference: String,
    /// Targets that every machine can rank, but the reference.
    pub rows: Vec<AcrossRow>,
    /// Ranked on some machines, and not on all.
    pub left_out: Vec<String>,
    pub verdict: AcrossVerdict,
}

/// A target over the reference. Effects are natural logarithms of ratios.
#[derive(Debug)]
pub struct AcrossRow {
    pub target: String,
    pub over_all: RandomEffects,
    /// By machine: effect, and half the width of its 95 % interval.
    pub each: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AcrossVerdict {
    /// By how much slower than the best it is at most on average, as a share.
    Pick { target: String, at_most: f64 },
    /// `target` is best on average; `other` is clearly faster on some machines, by index, and
    /// clearly slower on others.
    Differs { target: String, other: String, faster_on: Vec<usize>, slower_on: Vec<usize> },
    /// None is shown to be good enough; the best on average, and by how much slower than the best
    /// it may be.
    Unresolved { target: String, at_most: f64 },
    /// Best on average so far; an interval needs [`stats::FEWEST_MACHINES`].
    TooFewMachines { target: String },
    /// Fewer than two targets are ranked on all machines.
    Nothing,
}

/// Chance of error of all comparisons with the best together.
const ALPHA: f64 = 0.05;

/// Each work that all runs have; runs of one machine share its name, and count as one machine.
pub(crate) fn between_machines(runs: &[(String, &Model)]) -> Vec<AcrossMachines> {
    let Some((_, first)) = runs.first() else { return Vec::new() };
    first.reports().filter_map(|work| across(&work.name, runs)).collect()
}

/// A run's report of the work.
struct OfRun<'a> {
    machine: usize,
    model: &'a Model,
    work: &'a WorkReport,
}

impl OfRun<'_> {
    fn ranked(&self) -> Vec<&str> {
        self.work.ranked.iter().map(|at| self.model.targets[*at].name.as_str()).collect()
    }

    /// The first over the second; `None` without an interval.
    fn effect(&self, target: &str, other: &str) -> Option<OnMachine> {
        let place = |name: &str| self.model.targets.iter().position(|target| target.name == name && !target.duplicate);
        let (target, other) = (place(target)?, place(other)?);
        let found = self.work.phases.first()?.pairs.get(target, other)?;
        Some(OnMachine { effect: found.estimate.ratio.ln(), variance: found.variance? })
    }
}

/// All runs of one work, and what their machines are called.
struct Fleet<'a> {
    machines: Vec<String>,
    runs: Vec<OfRun<'a>>,
}

impl Fleet<'_> {
    /// By machine; `None` where one of them has no interval.
    fn effects(&self, target: &str, other: &str) -> Option<Vec<OnMachine>> {
        (0..self.machines.len())
            .map(|machine| {
                let runs = self.runs.iter().filter(|run| run.machine == machine);
                one_machine(&runs.map(|run| run.effect(target, other)).collect::<Option<Vec<_>>>()?)
            })
            .collect()
    }
}

/// Several runs of a machine: their mean, with what they differ by where that is more than their
/// errors.
fn one_machine(runs: &[OnMachine]) -> Option<OnMachine> {
    let n = runs.len() as f64;
    let effects: Vec<f64> = runs.iter().map(|run| run.effect).collect();
    let errors = runs.iter().map(|run| run.variance).sum::<f64>() / n;
    let scatter = pickfs_stats::standard_deviation(&effects).map_or(0.0, |deviation| deviation * deviation);
    Some(OnMachine { effect: pickfs_stats::mean(&effects)?, variance: errors.max(scatter) / n })
}

fn across(work: &str, runs: &[(String, &Model)]) -> Option<AcrossMachines> {
    let mut fleet = Fleet { machines: Vec::new(), runs: Vec::new() };
    for (name, model) in runs {
        let report = model.reports().find(|report| report.name == work)?;
        let known = fleet.machines.iter().position(|machine| machine == name);
        let machine = known.unwrap_or_else(|| {
            fleet.machines.push(name.clone());
            fleet.machines.len() - 1
        });
        fleet.runs.push(OfRun { machine, model, work: report });
    }
    let first = fleet.runs.first()?;
    let planned: Vec<&str> =
        first.model.targets.iter().filter(|one| !one.duplicate).map(|one| one.name.as_str()).collect();
    let ranked = |target: &&str| fleet.runs.iter().all(|run| run.ranked().contains(target));
    let mut targets: Vec<&str> = planned.iter().copied().filter(|target| ranked(target)).collect();
    let own = first.work.reference.map(|at| first.model.targets[at].name.as_str());
    let reference = own.filter(|name| targets.contains(name)).or(targets.first().copied()).unwrap_or_default();
    // Without an interval on some machine there is nothing to combine.
    targets.retain(|target| *target == reference || fleet.effects(target, reference).is_some());
    let somewhere = |target: &&str| fleet.runs.iter().any(|run| run.ranked().contains(target));
    let left_out = planned.iter().filter(|one| !targets.contains(one) && somewhere(one)).map(|one| one.to_string());
    let threshold = first.work.phases.first().map_or(0.0, |panel| panel.threshold);
    Some(AcrossMachines {
        work: work.to_string(),
        reference: reference.to_string(),
        rows: targets.iter().filter(|one| **one != reference).filter_map(|one| row(&fleet, one, reference)).collect(),
        left_out: left_out.collect(),
        verdict: verdict(&fleet, &targets, threshold),
        machines: fleet.machines.clone(),
    })
}

fn row(fleet: &Fleet, target: &str, reference: &str) -> Option<AcrossRow> {
    let effects = fleet.effects(target, reference)?;
    let each = effects.iter().map(|one| (one.effect, half_width(one))).collect();
    Some(AcrossRow { target: target.to_string(), over_all: pickfs_stats::random_effects(&effects, 1.0 - ALPHA)?, each })
}

/// Half width of the 95 % interval of a machine.
pub(crate) fn half_width(one: &OnMachine) -> f64 {
    1.96 * one.variance.sqrt()
}

fn verdict(fleet: &Fleet, targets: &[&str], threshold: f64) -> AcrossVerdict {
    if targets.len() < 2 {
        return AcrossVerdict::Nothing;
    }
    let mean = |target: &str| {
        let others = targets.iter().filter(|other| **other != target).filter_map(|other| fleet.effects(target, other));
        others.filter_map(|effects| pickfs_stats::random_effects(&effects, 0.95)).map(|found| found.mean).sum::<f64>()
    };
    let best = targets.iter().min_by(|a, b| mean(a).total_cmp(&mean(b))).copied().unwrap_or_default();
    let others: Vec<(&str, Vec<OnMachine>)> = targets
        .iter()
        .filter(|other| **other != best)
        .filter_map(|other| Some((*other, fleet.effects(best, other)?)))
        .collect();
    let target = best.to_string();
    if let Some((other, faster_on, slower_on)) =
        others.iter().find_map(|(other, effects)| contradiction(effects, threshold).map(|(a, b)| (other, a, b)))
    {
        return AcrossVerdict::Differs { target, other: other.to_string(), faster_on, slower_on };
    }
    // Bonferroni: the bound holds against all of them together; one-sided.
    let level = 1.0 - 2.0 * ALPHA / others.len().max(1) as f64;
    let highs =
        others.iter().map(|(_, effects)| pickfs_stats::random_effects(effects, level)?.interval.map(|(_, high)| high));
    let Some(highs) = highs.collect::<Option<Vec<f64>>>() else { return AcrossVerdict::TooFewMachines { target } };
    let at_most = highs.into_iter().fold(0.0, f64::max).exp_m1();
    if at_most <= threshold && others.len() + 1 == targets.len() {
        AcrossVerdict::Pick { target, at_most }
    } else {
        AcrossVerdict::Unresolved { target, at_most }
    }
}

/// Machines on which the first is clearly slower by more than matters, and those on which it is
/// clearly faster; `None` unless there are both. The other is faster on the first ones.
pub(crate) fn contradiction(effects: &[OnMachine], threshold: f64) -> Option<(Vec<usize>, Vec<usize>)> {
    let margin = threshold.ln_1p();
    let where_ = |sign: f64| -> Vec<usize> {
        let clear = |one: &OnMachine| sign * one.effect > margin && sign * one.effect > half_width(one);
        effects.iter().enumerate().filter(|(_, one)| clear(one)).map(|(at, _)| at).collect()
    };
    let (slower, faster) = (where_(1.0), where_(-1.0));
    (!slower.is_empty() && !faster.is_empty()).then_some((slower, faster))
}
