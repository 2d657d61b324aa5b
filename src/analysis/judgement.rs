//! What a run and a report judge alike, computed once: what all are compared with, who may be picked, the noise floor
//! and the race.

use super::composite::{score, works_of_verdict};
use super::eligibility::{Veto, vetoes, weakened};
use super::elimination::{Race, Yardstick, compare, race, race_as_run};
use super::model::DiffersFromItself;
use super::plain::plain;
use super::series::{Observed, ObservedWork, Rounds};
use crate::journal::Folded;
use crate::metric::Combine;
use crate::plan::Plan;
use crate::stats::{self, Band, Estimate, Level};

/// All that an interim analysis decides by and a report shows; nothing in it changes once it is made.
pub struct Analysis<'a> {
    pub plan: &'a Plan,
    pub folded: &'a Folded,
    pub observed: Observed<'a>,
    /// How sure the comparisons are.
    pub level: Level,
    /// Places of the reference and its second copy, where both are observed.
    pub twins: Option<(usize, usize)>,
    /// The second copy over the reference, for each phase of each work.
    pub against_itself: Vec<Estimate>,
    /// Why no verdict is given on any time: the reference surely differs from its second copy, in the median over all
    /// phases of all works.
    pub refused: Option<DiffersFromItself>,
    /// On all that the plan's verdict is about.
    pub verdict: Judgement,
}

/// A verdict on some works.
pub struct Judgement {
    /// One value a round for every target.
    pub values: Vec<Rounds>,
    /// By target.
    pub vetoes: Vec<Vec<Veto>>,
    /// Targets that may be picked.
    pub ranked: Vec<usize>,
    /// The plan's reference, or what stands in for it.
    pub reference: Option<usize>,
    /// The second copy of that reference.
    pub duplicate: Option<usize>,
    pub contest: Contest,
}

/// One quantity of all targets: which differences can be seen and matter, and who may be the best.
#[derive(Clone)]
pub struct Contest {
    /// The reference against its second copy.
    pub noise: Option<Estimate>,
    pub band: Band,
    pub race: Option<Race>,
}

impl<'a> Analysis<'a> {
    pub fn of(plan: &'a Plan, folded: &'a Folded, observed: Observed<'a>, level: Level) -> Analysis<'a> {
        let twins = twins(plan, &observed);
        let against_itself = against_itself(&observed, twins, level.confidence);
        let by = stats::noise_verdict(&against_itself, plan.stop.threshold);
        let name = |place: usize| plain(observed.targets[place]);
        let refused = by.zip(twins).map(|(by, (reference, _))| DiffersFromItself { reference: name(reference), by });
        let values = score(plan, &observed, "time_ns", Combine::Sum);
        // The race that the run goes by: a target that was beaten in it stays beaten.
        let as_run = |values: &[Rounds], ranked: &[usize], by| race_as_run(&observed, values, ranked, by);
        let verdict = judge((plan, &observed), level, &works_of_verdict(plan, &observed), values, as_run);
        Analysis { plan, folded, level, twins, against_itself, refused, verdict, observed }
    }

    /// One work alone, taken whole, is the verdict.
    pub fn is_of_whole_work(&self) -> bool {
        self.observed.works.len() < 2 && self.plan.verdict.parts.is_empty()
    }

    /// The works that the verdict is about: one that counts nothing keeps nobody out either.
    pub fn works_of_verdict(&self) -> Vec<&ObservedWork<'_>> {
        works_of_verdict(self.plan, &self.observed)
    }

    /// On one work of several.
    pub fn on_work(&self, work: &ObservedWork) -> Judgement {
        let values = work.over_phases("time_ns", Combine::Sum);
        judge((self.plan, &self.observed), self.level, &[work], values, race)
    }
}

fn judge(
    (plan, observed): (&Plan, &Observed),
    level: Level,
    works: &[&ObservedWork],
    values: Vec<Rounds>,
    race: impl Fn(&[Rounds], &[usize], Yardstick) -> Option<Race>,
) -> Judgement {
    let vetoes = vetoes(plan, observed, works, &values);
    let ranked = (0..vetoes.len()).filter(|at| !is_copy(plan, observed, *at) && vetoes[*at].is_empty()).collect();
    let reference = reference(plan, observed, &values);
    let twins = twins(plan, observed).filter(|(original, _)| reference == Some(*original));
    let duplicate = twins.map(|(_, duplicate)| duplicate);
    let contest = Contest { noise: None, band: Band::from(0.0), race: None };
    let mut judgement = Judgement { values, vetoes, ranked, reference, duplicate, contest };
    judgement.contest = judgement.contest_of(&judgement.values, plan.stop.threshold, level, race);
    judgement
}

impl Judgement {
    /// On another quantity of the same targets; `threshold` is the relative difference that matters.
    pub fn contest_of(
        &self,
        series: &[Rounds],
        threshold: f64,
        level: Level,
        race: impl Fn(&[Rounds], &[usize], Yardstick) -> Option<Race>,
    ) -> Contest {
        let twins = self.reference.zip(self.duplicate);
        let noise = twins.and_then(|(own, copy)| compare(&series[copy], &series[own], level.confidence));
        let band = Band::new(threshold, noise.as_ref());
        Contest { race: race(series, &self.ranked, Yardstick { level, band }), noise, band }
    }
}

fn against_itself(observed: &Observed, twins: Option<(usize, usize)>, confidence: f64) -> Vec<Estimate> {
    let Some((reference, duplicate)) = twins else { return Vec::new() };
    let of_phase = |work: &ObservedWork, phase: &str| {
        let times = |target| work.series(target, phase, "time_ns");
        compare(&times(duplicate), &times(reference), confidence)
    };
    observed.works.iter().flat_map(|work| work.phases().into_iter().filter_map(|phase| of_phase(work, phase))).collect()
}

/// What all are compared with: the plan's reference if it has results, else the first target that has, if any of full
/// durability: a failed reference must not take all comparisons with it.
fn reference(plan: &Plan, observed: &Observed, values: &[Rounds]) -> Option<usize> {
    let works: Vec<&ObservedWork> = observed.works.iter().collect();
    let has = |at: &usize| !values[*at].is_empty() && !is_copy(plan, observed, *at);
    let planned = observed.targets.iter().position(|target| *target == plan.reference);
    let all = || (0..observed.targets.len()).filter(has);
    let sound = || all().find(|at| weakened(&works, *at).is_none());
    planned.or((!observed.targets.is_empty()).then_some(0)).filter(has).or_else(sound).or_else(|| all().next())
}

fn is_copy(plan: &Plan, observed: &Observed, at: usize) -> bool {
    plan.targets.iter().any(|target| target.duplicate && target.name == observed.targets[at])
}

/// Where the reference and its second copy are among the observed targets, if they are.
fn twins(plan: &Plan, observed: &Observed) -> Option<(usize, usize)> {
    let place = |name: &str| observed.targets.iter().position(|target| *target == name);
    let duplicate = plan.targets.iter().find(|target| target.duplicate)?;
    // A plan that names no reference means its first target.
    let reference = if plan.reference.is_empty() { Some(0) } else { place(&plan.reference) };
    Some((reference?, place(&duplicate.name)?))
}
