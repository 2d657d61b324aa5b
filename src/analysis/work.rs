//! Series -> figures, comparisons and the pick of one work.

use super::comparison::Pairing;
use super::missing;
use super::model::*;
use crate::analysis::{self as decide, Combine, Observed, ObservedWork, Race, Rounds, Veto, Yardstick};
use crate::journal::FlagKind;
use crate::metric;
use crate::plan::Plan;
use crate::stats::{self, Level};
use crate::units::Unit;
use crate::wording::text::plain;
use crate::wording::{headline as verdict, text as words};

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
    pub refused: Option<String>,
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
    pub refused: Option<String>,
}

pub fn work(case: &Case, observed: &ObservedWork) -> WorkReport {
    let names = observed.phases();
    let whole = observed.over_phases("time_ns", Combine::Sum);
    let vetoes = decide::vetoes(case.plan, case.observed, &[observed], &whole);
    let ranked = ranked(case, &vetoes);
    let name = plain(observed.name);
    let context = case.context(&name, &whole, &ranked, observed.rounds.len());
    let mut phases = panels(case.plan, &context, observed, &names, &whole);
    if case.races_on_whole_work() {
        race_as_run(case, &mut phases, &whole, &context);
    }
    let (verdict, noise) = match phases.first() {
        Some(panel) => (verdict::verdict(panel, &context), verdict::noise_floor(panel, &context)),
        None => (verdict::nothing(), String::new()),
    };
    let sentences = phases.iter().filter(|p| !p.phase.is_empty()).map(|p| verdict::phase(p, &context)).collect();
    let (trade_offs, beside, compression, latencies, rates) = Default::default();
    let (reference, rounds) = (context.reference, context.rounds);
    let mut report = WorkReport {
        name,
        reference,
        rounds,
        ranked,
        verdict,
        phases,
        sentences,
        trade_offs,
        beside,
        compression,
        latencies,
        rates,
        noise,
    };
    let all: Vec<&ObservedWork> = case.observed.works.iter().collect();
    let notes = verdict::not_ranked(case, &all, report.reference, &report.ranked, &vetoes);
    report.verdict.notes.extend(notes);
    report
}

/// The panel that the run itself has looked at: a target that was beaten there stays beaten.
pub fn race_as_run(case: &Case, phases: &mut [Panel], whole: &[Rounds], context: &Context) {
    if let Some(panel) = phases.first_mut().filter(|panel| panel.best.is_some()) {
        let by = Yardstick { level: context.level, band: panel.band };
        panel.best = decide::race_as_run(case.observed, whole, context.ranked, by).map(told);
    }
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
pub fn refusal(plan: &Plan, observed: &Observed, level: Level) -> Option<String> {
    let away = decide::differs_from_itself(plan, observed, level.confidence)?;
    let (reference, _) = decide::twins(plan, observed)?;
    Some(words::refused(away, &plain(observed.targets[reference])))
}

/// Who may be picked.
pub fn ranked(case: &Case, vetoes: &[Vec<Veto>]) -> Vec<usize> {
    (0..vetoes.len()).filter(|at| !case.targets[*at].duplicate && vetoes[*at].is_empty()).collect()
}

fn panels(plan: &Plan, context: &Context, observed: &ObservedWork, names: &[&str], whole: &[Rounds]) -> Vec<Panel> {
    let quantity = |name: &str, phase: &str| Quantity {
        name: plain(name),
        phase: plain(phase),
        metric: "time_ns".to_string(),
        wanted: Some(plan.stop.threshold),
    };
    let mut panels = Vec::new();
    if names.len() > 1 {
        panels.push(judged_panel(quantity(WHOLE_JOB, ""), whole, context));
    }
    let of_phase = |name: &&str| judged_panel(quantity(name, name), &observed.in_phase(name, "time_ns"), context);
    panels.extend(names.iter().map(of_phase));
    panels.iter_mut().for_each(|panel| mark_unproven(panel, observed));
    panels
}

/// With those that may be the best in it.
pub fn judged_panel(what: Quantity, series: &[Rounds], context: &Context) -> Panel {
    let mut panel = panel(what, series, context);
    let judged = panel.refused.is_none() && context.ranked.len() > 1;
    panel.best = judged.then(|| best(series, context, panel.band)).flatten();
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
    let unjudged = Pairing { series, context, metric: &what.metric, band: stats::Band::from(wanted), judged: false };
    let itself = context.reference.zip(context.duplicate).filter(|_| what.wanted.is_some());
    let noise = itself.and_then(|(reference, duplicate)| unjudged.estimate(duplicate, reference));
    let band = stats::Band::new(wanted, noise.as_ref());
    let threshold = band.threshold;
    let refused = context.refused.clone().filter(|_| what.wanted.is_some() && what.metric == "time_ns");
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
        let absent = if figure.is_none() { lacking() } else { Absent::default() };
        Row { target, figure, against, others, absent, series: Series::default(), unproven_cache: false }
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
        threshold_shown: format!("±{}", words::percent(threshold)),
        noise: noise.map(|estimate| Noise { shown: words::half_width(&estimate), estimate }),
        refused,
        best: None,
    }
}

fn figure(series: &Rounds, unit: Unit, reached: usize) -> Option<Figure> {
    let values: Vec<f64> = series.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).collect();
    let median = stats::median(&values)?;
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let rounds = values.len();
    let missing = reached.saturating_sub(rounds);
    let lacking = if missing > 0 { format!(", {missing} missing") } else { String::new() };
    Some(Figure {
        median,
        low,
        high,
        rounds,
        missing,
        shown: unit.show(median),
        range: words::range(&unit.show(low), &unit.show(high)),
        rounds_shown: format!("{rounds}{lacking}"),
    })
}

/// Who may be the best of those that are ranked; `None` if there are too few to compare, or too few rounds.
pub fn best(series: &[Rounds], context: &Context, band: stats::Band) -> Option<Best> {
    decide::race(series, context.ranked, Yardstick { level: context.level, band }).map(told)
}

fn told(race: Race) -> Best {
    Best {
        more_rounds: race.most_needed.map(|needed| needed.saturating_sub(race.rounds as u32).max(1)),
        conclusion: race.conclusion,
        members: race.members,
        gone: race.gone,
        corrected: race.corrected,
        rounds: race.rounds,
    }
}
