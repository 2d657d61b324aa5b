//! Series -> figures, comparisons and the pick of one work.

use super::comparison::Pairing;
use super::model::*;
use super::plain::plain;
use super::{device_rates, diagnostics, latency_curves, missing, points, secondary};
use crate::analysis::{self as decide, Combine, Conclusion, Observed, ObservedWork, Race, Rounds, Veto, Yardstick};
use crate::journal::FlagKind;
use crate::metric;
use crate::plan::{Limit, Plan};
use crate::stats::{self, Level};
use crate::units::Unit;

/// The panel of all phases together.
pub const WHOLE_JOB: &str = "whole job";

/// What every panel of a work shares.
pub struct Context<'a> {
    pub targets: &'a [TargetInfo],
    pub holes: &'a [Hole],
    pub work: &'a str,
    pub reference: Option<usize>,
    /// The reference's second copy, if the reference is the one that it copies.
    pub duplicate: Option<usize>,
    pub ranked: &'a [usize],
    pub rounds: usize,
    /// Of these, for each target, those after it had left the race: nothing is missing there.
    pub unasked: Vec<usize>,
    /// How sure the comparisons are.
    pub level: Level,
    /// Why nothing is judged by time.
    pub refused: Option<DiffersFromItself>,
}

/// What a panel shows, and how it is judged.
pub struct Quantity {
    pub name: String,
    pub phase: String,
    pub metric: String,
    /// `None`: shown, not compared.
    pub wanted: Option<f64>,
}

/// What all works of a run share.
pub struct Case<'a> {
    pub plan: &'a Plan,
    pub observed: &'a Observed<'a>,
    pub targets: &'a [TargetInfo],
    pub holes: &'a [Hole],
    pub level: Level,
    /// Why no verdict is given on anything.
    pub refused: Option<DiffersFromItself>,
}

pub fn work(case: &Case, observed: &ObservedWork) -> WorkReport {
    let whole = observed.over_phases("time_ns", Combine::Sum);
    let vetoes = decide::vetoes(case.plan, case.observed, &[observed], &whole);
    let ranked = ranked(case, &vetoes);
    let name = plain(observed.name);
    let context = case.context(&name, &whole, &ranked, observed.rounds.len());
    let mut phases = panels(case, &context, observed, &whole);
    diagnostics::mark_chance(&mut phases);
    let mut verdict = phases.first().map_or_else(nothing, |panel| verdict(panel, &ranked));
    verdict.notes.extend(notes(case, &[observed], context.reference, &ranked, &vetoes));
    let beside = secondary::tables(observed, &context);
    WorkReport {
        is_overall: false,
        reference: context.reference,
        duplicate: context.duplicate,
        rounds: context.rounds,
        verdict,
        phases,
        costs: secondary::costs(&beside, &context),
        beside,
        compression: secondary::compression(observed, case.targets),
        latencies: latency_curves::latencies(observed, case.targets),
        rates: device_rates::rates(observed, case.targets),
        name: name.clone(),
        ranked: ranked.clone(),
    }
}

fn nothing() -> Verdict {
    Verdict { kind: VerdictKind::Nothing, best: Vec::new(), notes: Vec::new() }
}

/// From the panel of all the work that it is about.
pub fn verdict(panel: &Panel, ranked: &[usize]) -> Verdict {
    let measured = panel.rows.iter().filter(|row| row.figure.is_some()).count();
    let Some(best) = panel.best.as_ref().filter(|_| panel.refused.is_none() && measured > 1) else {
        let kind = match measured {
            _ if panel.refused.is_some() => VerdictKind::Refused,
            0 => VerdictKind::Nothing,
            1 => VerdictKind::Single,
            _ if ranked.len() < 2 => VerdictKind::Nothing,
            _ => VerdictKind::TooFewRounds,
        };
        return Verdict { kind, ..nothing() };
    };
    let kind = match best.conclusion {
        Conclusion::Pick => VerdictKind::Pick,
        Conclusion::WithinNoise => VerdictKind::Refused,
        Conclusion::Tie => VerdictKind::Tie,
        Conclusion::Unresolved => VerdictKind::Unresolved,
    };
    Verdict { kind, best: best.members.clone(), notes: best.gone.iter().copied().map(Note::Eliminated).collect() }
}

/// Who is measured and not ranked, and why. Limits are held against `works`.
pub fn notes(
    case: &Case,
    works: &[&ObservedWork],
    reference: Option<usize>,
    ranked: &[usize],
    vetoes: &[Vec<Veto>],
) -> Vec<Note> {
    let (plan, targets) = (case.plan, case.targets);
    let out = (0..targets.len()).filter(|at| !targets[*at].duplicate && !ranked.contains(at));
    let mut notes: Vec<Note> = out.map(|at| Note::NotRanked(at, vetoes[at].clone())).collect();
    let planned = plain(&plan.reference);
    if reference.is_some_and(|at| !planned.is_empty() && targets[at].name != planned) {
        notes.push(Note::ReferenceReplaced(planned));
    }
    let without_effect = plan.verdict.limits.iter().filter(|limit| !is_measured(works, limit));
    notes.extend(without_effect.cloned().map(Note::LimitWithoutEffect));
    if plan.rank_weakened && targets.iter().any(|target| !target.weakened.is_empty()) {
        notes.push(Note::WeakenedAreRanked);
    }
    notes
}

fn is_measured(works: &[&ObservedWork], limit: &Limit) -> bool {
    let wanted = |(phase, metric): (&str, &str)| {
        metric == limit.metric && limit.phase.as_deref().is_none_or(|only| only == phase)
    };
    works.iter().any(|work| work.measured().into_iter().any(wanted))
}

impl<'a> Case<'a> {
    /// One work alone, taken whole, is the verdict.
    pub fn races_on_whole_work(&self) -> bool {
        self.observed.works.len() < 2 && self.plan.verdict.parts.is_empty()
    }

    /// `values` is what the verdict is made from, `name` the work that it is about.
    pub fn context(&self, name: &'a str, values: &[Rounds], ranked: &'a [usize], rounds: usize) -> Context<'a> {
        let reference = decide::reference(self.plan, self.observed, values);
        let twins = decide::twins(self.plan, self.observed).filter(|(original, _)| reference == Some(*original));
        Context {
            targets: self.targets,
            holes: self.holes,
            work: name,
            reference,
            duplicate: twins.map(|(_, duplicate)| duplicate),
            ranked,
            rounds,
            unasked: self.observed.unasked(),
            level: self.level,
            refused: self.refused.clone(),
        }
    }
}

/// Looks at the reference and its duplicate in every phase of every work.
pub fn refusal(plan: &Plan, observed: &Observed, level: Level) -> Option<DiffersFromItself> {
    let by = decide::differs_from_itself(plan, observed, level.confidence)?;
    let (reference, _) = decide::twins(plan, observed)?;
    Some(DiffersFromItself { reference: plain(observed.targets[reference]), by })
}

/// Who may be picked.
pub fn ranked(case: &Case, vetoes: &[Vec<Veto>]) -> Vec<usize> {
    (0..vetoes.len()).filter(|at| !case.targets[*at].duplicate && vetoes[*at].is_empty()).collect()
}

fn panels(case: &Case, context: &Context, observed: &ObservedWork, whole: &[Rounds]) -> Vec<Panel> {
    let names = observed.phases();
    let time = |name: &str, phase: &str| Quantity {
        name: plain(name),
        phase: plain(phase),
        metric: "time_ns".to_string(),
        wanted: Some(case.plan.stop.threshold),
    };
    let several = names.len() > 1;
    // What the run itself has looked at comes first: a target that was beaten there stays beaten.
    let raced = |is_first: bool| (is_first && case.races_on_whole_work()).then_some(case.observed);
    let job = several.then(|| judged_panel(time(WHOLE_JOB, ""), whole, context, raced(true)));
    let of_phase = |(at, name): (usize, &&str)| {
        judged_panel(time(name, name), &observed.in_phase(name, "time_ns"), context, raced(at == 0 && !several))
    };
    let mut panels: Vec<Panel> = job.into_iter().chain(names.iter().enumerate().map(of_phase)).collect();
    panels.iter_mut().for_each(|panel| mark_unproven(panel, observed));
    panels
}

/// With those that may be the best in it: `as_run` by what counts in the elimination of a run, else by all rounds.
pub fn judged_panel(what: Quantity, series: &[Rounds], context: &Context, as_run: Option<&Observed>) -> Panel {
    let mut panel = panel(what, series, context);
    if panel.refused.is_none() && context.ranked.len() > 1 {
        let by = Yardstick { level: context.level, band: panel.band };
        let race = match as_run {
            Some(observed) => decide::race_as_run(observed, series, context.ranked, by),
            None => decide::race(series, context.ranked, by),
        };
        panel.best = race.map(best);
    }
    panel
}

fn mark_unproven(panel: &mut Panel, observed: &ObservedWork) {
    for row in &mut panel.rows {
        row.unproven_cache = observed.flags(row.target).any(|flag| {
            let here = panel.phase.is_empty() || flag.phase.is_empty() || flag.phase == panel.phase;
            here && FlagKind::voids_cold_proof(&flag.flag)
        });
    }
}

/// One quantity for every target, compared with the reference round by round.
pub fn panel(what: Quantity, series: &[Rounds], context: &Context) -> Panel {
    let wanted = what.wanted.unwrap_or(0.0);
    let is_time = what.metric == "time_ns";
    let unjudged = Pairing { series, context, metric: &what.metric, band: stats::Band::from(wanted), judged: false };
    let itself = context.reference.zip(context.duplicate).filter(|_| what.wanted.is_some());
    let noise = itself.and_then(|(reference, duplicate)| unjudged.estimate(duplicate, reference));
    let band = stats::Band::new(wanted, noise.as_ref());
    let refused = context.refused.clone().filter(|_| what.wanted.is_some() && is_time);
    let judged = what.wanted.is_some() && refused.is_none();
    let unit = Unit::of_metric(&what.metric);
    let pairing = Pairing { band, judged, ..unjudged };
    let each = if what.wanted.is_some() { pairing.each_with_each() } else { Vec::new() };
    let row = |target: usize| {
        let figure = figure(&series[target], unit, context.rounds.saturating_sub(context.unasked[target]));
        let others = each.get(target).cloned().unwrap_or_default();
        let reference = context.reference.filter(|_| what.wanted.is_some());
        let against = reference.and_then(|reference| match others.get(reference) {
            Some(judged) => judged.clone(),
            None => pairing.comparison(target, reference),
        });
        let lacking = || missing::absent(context.holes, context.work, target);
        let absent = if figure.is_none() { lacking() } else { Absent::Present };
        let series = if is_time { points::series(&series[target]) } else { Series::default() };
        Row { target, figure, against, others, absent, series, unproven_cache: false }
    };
    let shown_targets = (0..context.targets.len()).filter(|&target| !context.targets[target].duplicate);
    Panel {
        rows: shown_targets.map(row).collect(),
        name: what.name,
        phase: what.phase,
        unit,
        better: metric::better(&what.metric),
        metric: what.metric,
        band,
        noise,
        refused,
        best: None,
    }
}

fn figure(series: &Rounds, unit: Unit, reached: usize) -> Option<Figure> {
    let values: Vec<f64> = series.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).collect();
    let median = stats::median(&values)?;
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let rounds = values.len();
    Some(Figure { median, low, high, unit, rounds, missing: reached.saturating_sub(rounds) })
}

fn best(race: Race) -> Best {
    Best {
        more_rounds: race.most_needed.map(|needed| needed.saturating_sub(race.rounds as u32).max(1)),
        conclusion: race.conclusion,
        members: race.members,
        gone: race.gone,
        corrected: race.corrected,
        rounds: race.rounds,
    }
}
