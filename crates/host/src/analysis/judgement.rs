//! What a run and a report judge alike, computed once: what all are compared with, which targets
//! may be picked, the noise floor and the race.

use super::by_round::{Rules, compare};
use super::composite::{score, works_of_verdict};
use super::eligibility::{Veto, vetoes, weakened};
use super::elimination::{Race, Standing};
use super::judged_pairs::{Evidence, JudgedPairs};
use super::series::{Observed, ObservedWork, Rounds, TIME_WITHOUT_WORKERS};
use super::yardstick::{Unreliable, unreliable};
use pickfs_core::journal::Folded;
use pickfs_core::metric::Combine;
use pickfs_core::plan::Plan;
use pickfs_stats::{Estimate, Look};

/// What intervals are reported as.
const CONFIDENCE: f64 = 0.95;
/// What intervals are made for where a precision ends the run: reported as 95 %, and they cover at
/// least 94 % in simulations (docs/statistics.md).
const FOR_PRECISION: f64 = 0.97;
/// The same where a decision does: it may come after three rounds, and comes when the times so far
/// are far apart. This is the highest level that seven rounds have by ranks.
const FOR_DECISION: f64 = 0.984;

/// The time, and the same without the kernel's workers.
pub(crate) const TIMES: [&str; 2] = ["time_ns", TIME_WITHOUT_WORKERS];

/// As a logarithm, 50 %.
const BROKEN: f64 = 0.405;

/// All that an interim analysis decides by and a report shows; nothing in it changes once it is
/// made.
pub(crate) struct Analysis<'a> {
    pub plan: &'a Plan,
    pub folded: &'a Folded,
    pub observed: Observed<'a>,
    /// What the looks so far have to spend.
    pub looks: Vec<Look>,
    /// How sure the interval of one pair is, 0 to 1.
    pub confidence: f64,
    /// Places of the reference and its second copy, where both are observed.
    pub twins: Option<(usize, usize)>,
    /// Why no difference is called clear.
    pub unreliable: Option<Unreliable>,
    /// On all that the plan's verdict is about.
    pub verdict: Judgement,
}

/// A verdict on some works.
pub(crate) struct Judgement {
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
    pub rules: Rules,
    pub contest: Contest,
}

/// One quantity of all targets: how noisy it is, and which may be the best.
#[derive(Clone, Default)]
pub(crate) struct Contest {
    /// The reference against its second copy.
    pub noise: Option<Estimate>,
    pub race: Option<Race>,
    pub pairs: JudgedPairs,
}

impl<'a> Analysis<'a> {
    pub(crate) fn of(plan: &'a Plan, folded: &'a Folded, observed: Observed<'a>, looks: Vec<Look>) -> Analysis<'a> {
        let confidence = confidence(plan);
        let twins = twins(plan, &observed);
        let values = TIMES.map(|metric| score(plan, &observed, metric, Combine::Sum));
        let works = works_of_verdict(plan, &observed);
        let unreliable = reliability(plan, &observed);
        let known = (&looks[..], confidence, unreliable.is_some());
        let verdict = judge((plan, &observed), known, (&works, false), values);
        Analysis { plan, folded, looks, confidence, twins, unreliable, verdict, observed }
    }

    /// One work alone, taken whole, is the verdict.
    pub(crate) fn is_of_whole_work(&self) -> bool {
        self.observed.works.len() < 2 && self.plan.verdict.parts.is_empty()
    }

    /// The works that the verdict is about: a work outside the verdict excludes no target either.
    pub(crate) fn works_of_verdict(&self) -> Vec<&ObservedWork<'_>> {
        works_of_verdict(self.plan, &self.observed)
    }

    /// On one work of several.
    pub(crate) fn on_work(&self, work: &ObservedWork) -> Judgement {
        let values = TIMES.map(|metric| work.over_phases(metric, Combine::Sum));
        let known = (&self.looks[..], self.confidence, self.unreliable.is_some());
        judge((self.plan, &self.observed), known, (&[work], true), values)
    }
}

fn judge(
    (plan, observed): (&Plan, &Observed),
    (looks, confidence, is_unreliable): (&[Look], f64, bool),
    (works, is_part): (&[&ObservedWork], bool),
    [values, without_workers]: [Vec<Rounds>; 2],
) -> Judgement {
    let mut vetoes = vetoes(plan, observed, works, &values);
    let mut ranked: Vec<usize> =
        (0..vetoes.len()).filter(|at| !is_copy(plan, observed, *at) && vetoes[*at].is_empty()).collect();
    let reference = reference(plan, observed, &values);
    let twins = twins(plan, observed).filter(|(original, _)| reference == Some(*original));
    let duplicate = twins.map(|(_, duplicate)| duplicate);
    // As many as may ever be in the race, whatever is vetoed on the way.
    let planned = plan.targets.iter().filter(|target| !target.duplicate).count();
    let (comparisons, threshold) = (planned.saturating_sub(1).max(1), plan.stop.threshold);
    let parts = parts(plan, observed);
    let (whole_races, part_races) = if parts == 0 { (1, 1) } else { (2, 2 * parts) };
    let races = if is_part { part_races } else { whole_races };
    let adds = plan.verdict.has_counts();
    let (looks, schedule, left) = (looks.to_vec(), plan.looks, observed.left());
    let lacking = observed.lacking(works, &values);
    let rules = Rules {
        looks,
        schedule,
        comparisons,
        threshold,
        reference,
        duplicate,
        races,
        part_races,
        left,
        lacking,
        adds,
        has_foreign_clock: observed.has_foreign_clock,
        is_unreliable,
    };
    let contest = Contest::of([&values, &without_workers], &ranked, &rules, confidence);
    for at in contest.race.iter().flat_map(|race| race.too_few.iter().copied()) {
        vetoes[at].push(Veto::TooFew { rounds: values[at].iter().filter(|(_, value)| *value > 0.0).count() });
    }
    ranked.retain(|at| vetoes[*at].is_empty());
    Judgement { values, vetoes, ranked, reference, duplicate, rules, contest }
}

/// Races of works and phases that are shown with the verdict's. All that is called slower holds
/// together: half of the chance of error is the verdict's, these share the other half.
fn parts(plan: &Plan, observed: &Observed) -> usize {
    let of_work = |work: &ObservedWork| match work.phases().len() {
        0 | 1 => 1,
        phases => phases + 1,
    };
    let all: usize = observed.works.iter().map(of_work).sum();
    let is_whole_work = observed.works.len() < 2 && plan.verdict.parts.is_empty();
    all.saturating_sub(usize::from(is_whole_work))
}

impl Contest {
    fn of([series, without_workers]: [&[Rounds]; 2], ranked: &[usize], rules: &Rules, confidence: f64) -> Contest {
        let standing = Standing::new(series, ranked, rules);
        let twins = rules.reference.zip(rules.duplicate);
        let noise = twins.and_then(|(own, copy)| compare(&series[copy], &series[own], confidence));
        let unbounded = || vec![f64::INFINITY; series.len()];
        let regret = standing.as_ref().map_or_else(unbounded, |standing| standing.regret(series.len()));
        let (threshold, adds) = (rules.threshold, rules.adds);
        let floor = if rules.is_unreliable { f64::INFINITY } else { noise.as_ref().map_or(0.0, floor_of) };
        let (own, without_workers) = (series.to_vec(), without_workers.to_vec());
        let evidence = Evidence { series: own, without_workers, regret, confidence, threshold, floor, adds };
        let pairs = JudgedPairs::new(evidence, rules);
        let race = standing.map(|standing| standing.race(series, &pairs, rules));
        Contest { noise, race, pairs }
    }
}

impl Judgement {
    /// On the times of one phase, for the same targets: each of [`TIMES`].
    pub(crate) fn contest_of(&self, times: [&[Rounds]; 2], confidence: f64) -> Contest {
        let rules = Rules { races: self.rules.part_races, ..self.rules.clone() };
        Contest::of(times, &self.ranked, &rules, confidence)
    }
}

/// How far apart two targets that are the same may seem, as a logarithm. A copy that is a little
/// loud says nothing of two quiet targets; one that may be half as long again is no yardstick.
fn floor_of(noise: &Estimate) -> f64 {
    let floor = noise.interval.map_or(0.0, |(low, high)| low.ln().abs().max(high.ln().abs()));
    if floor >= BROKEN { floor } else { 0.0 }
}

/// Confidence of the interval of one pair.
pub(crate) fn confidence(plan: &Plan) -> f64 {
    match (plan.stop.rounds, plan.stop.precision) {
        (Some(_), _) => CONFIDENCE,
        (None, Some(_)) => FOR_PRECISION,
        (None, None) => FOR_DECISION,
    }
}

/// Why no difference of these rounds is called clear.
pub(crate) fn reliability(plan: &Plan, observed: &Observed) -> Option<Unreliable> {
    unreliable(observed, &against_itself(observed, twins(plan, observed), confidence(plan)))
}

/// The second copy over the reference, for each phase of each work.
fn against_itself(observed: &Observed, twins: Option<(usize, usize)>, confidence: f64) -> Vec<Estimate> {
    let Some((reference, duplicate)) = twins else { return Vec::new() };
    let of_phase = |work: &ObservedWork, phase: &str| {
        let times = |target| work.series(target, phase, "time_ns");
        compare(&times(duplicate), &times(reference), confidence)
    };
    observed.works.iter().flat_map(|work| work.phases().into_iter().filter_map(|phase| of_phase(work, phase))).collect()
}

/// What all are compared with: the plan's reference if it has results, else the first target that
/// has, if any of full durability: a failed reference must not take all comparisons with it.
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
