//! One work: its verdict, its panels, and which targets are not ranked in it and why.

use super::device_rates::{self, DeviceRates};
use super::durability::{self, Durability};
use super::judgement::Judgement;
use super::latency_curves::{self, LatencyCurves};
use super::model::*;
use super::panel::{PanelSpec, ReportInput, WorkContext, mark_unproven, nonzero, panel, phase_panel, time_panel};
use super::plain::plain;
use super::points;
use super::secondary;
use super::series::ObservedWork;
use super::setting::{self, Data};
use pickfs_core::journal::{HELD_BACK, Outcome};
use pickfs_core::metric::{self, Better, MEAN_RUN_NS, Metric};
use pickfs_core::plan::{Headline, Limit};

#[derive(Debug, Default)]
pub struct WorkReport {
    pub name: String,
    /// All works of the plan together.
    pub is_overall: bool,
    /// What ratios are against: the plan's reference, or another target if that one has no results.
    pub reference: Option<usize>,
    /// The reference's second copy, which gives the noise floor.
    pub duplicate: Option<usize>,
    /// Rounds of which any cell has ended.
    pub rounds: usize,
    /// Targets that take part in the pick.
    pub ranked: Vec<usize>,
    pub verdict: Verdict,
    /// What the work left on a target.
    pub data: Data,
    /// Another program measured it: `phases` are the figures that it shows first, in its own units.
    pub is_foreign: bool,
    /// Times: the whole job first, then each phase; a job of one phase has that phase alone.
    pub phases: Vec<Panel>,
    /// What the time is paid with, against the reference: of each target that clearly differs in
    /// space, CPU or writes.
    pub costs: Vec<TradeOff>,
    /// What was measured apart from the time.
    pub beside: Vec<Table>,
    pub compression: Vec<Compression>,
    /// What power cuts have taken, where power was cut.
    pub durability: Vec<Durability>,
    /// Latencies of every phase and operation that the journal has them for.
    pub latencies: Vec<LatencyCurves>,
    /// Rates in every phase that was long enough to see the device at work.
    pub rates: Vec<DeviceRates>,
}

impl WorkReport {
    /// What the time is paid with, "space" and "CPU": of each the first panel over all phases.
    pub(crate) fn cost_panels(&self) -> impl Iterator<Item = (&'static str, &Panel)> {
        let panels = || self.beside.iter().flat_map(|table| &table.panels).filter(|panel| panel.phase.is_empty());
        let of = move |metrics: Vec<&'static Metric>| {
            let found = metrics.iter().find_map(|metric| panels().find(|panel| panel.metric == metric.name))?;
            Some((metrics[0].criterion, found))
        };
        let is_cost = |metrics: &Vec<&Metric>| ["space", "CPU"].contains(&metrics[0].criterion);
        metric::criteria().into_iter().filter(is_cost).filter_map(of)
    }

    /// Leaves what was measured in one phase.
    pub fn keep_phase(&mut self, phase: &str) {
        let is_it = |panel: &Panel| panel.phase == phase || (panel.phase.is_empty() && panel.name == phase);
        self.phases.retain(is_it);
        self.beside.iter_mut().for_each(|table| table.panels.retain(is_it));
        self.beside.retain(|table| !table.panels.is_empty());
        self.latencies.retain(|found| found.phase == phase);
        self.rates.retain(|found| found.phase == phase);
        self.costs.clear();
    }
}

pub(crate) fn work(case: &ReportInput, observed: &ObservedWork) -> WorkReport {
    let analysis = case.analysis;
    let own = (!analysis.is_of_whole_work()).then(|| analysis.on_work(observed));
    let judgement = own.as_ref().unwrap_or(&analysis.verdict);
    let name = plain(observed.name);
    let context = case.context(&name, judgement, observed.rounds.len());
    let phases = panels(&context, observed);
    let mut verdict = phases.first().map_or_else(nothing, |panel| verdict(panel, &judgement.ranked));
    verdict.notes.extend(notes(case, &[observed], judgement));
    let is_foreign = !observed.judged.headlines.is_empty();
    // Phases without a unit in common have no verdict.
    if is_foreign && phases.len() > 1 && verdict.kind != VerdictKind::Single {
        (verdict.kind, verdict.best) = (VerdictKind::Nothing, Vec::new());
    }
    let phases = if is_foreign { headlines(&context, observed, phases) } else { phases };
    verdict.notes.extend(held_back(case, observed));
    let beside = secondary::tables(observed, &context);
    WorkReport {
        is_overall: false,
        is_foreign,
        reference: judgement.reference,
        duplicate: judgement.duplicate,
        rounds: context.rounds,
        data: setting::data(case.analysis.plan, observed),
        verdict,
        phases,
        costs: secondary::costs(&beside, case.targets),
        beside,
        compression: secondary::compression(observed, case.targets),
        durability: durability::durability(observed, case.targets),
        latencies: latency_curves::latencies(observed, case.targets),
        rates: device_rates::rates(observed, case.targets),
        ranked: judgement.ranked.clone(),
        name,
    }
}

/// What another program shows first. The times that rates were made into decide the best where
/// there is one phase, and are not shown: seconds a GiB and seconds a thousand files have no sum
/// and no reader.
fn headlines(context: &WorkContext, observed: &ObservedWork, times: Vec<Panel>) -> Vec<Panel> {
    let threshold = context.case.analysis.plan.stop.threshold;
    let panel_of = |shown: &Headline| {
        let name = if shown.quantity().is_some() { &shown.phase } else { &shown.name };
        let quantity = PanelSpec {
            name: plain(name),
            quantity: shown.quantity().map(plain),
            phase: plain(&shown.phase),
            metric: plain(&shown.metric),
            wanted: (metric::better(&shown.metric) != Better::Neither).then_some(threshold),
        };
        let mut panel = nonzero(panel(quantity, &observed.in_phase(&shown.phase, &shown.metric), context))?;
        // The mean of runs whose times are known: each of them is shown.
        if shown.metric == MEAN_RUN_NS {
            panel.rows.iter_mut().for_each(|row| row.series = runs(observed, row.target, &shown.phase));
        }
        Some(panel)
    };
    let mut panels: Vec<Panel> = observed.judged.headlines.iter().filter_map(panel_of).collect();
    if let ([judged], Some(first)) = (times.as_slice(), panels.first_mut()) {
        (first.race, first.noise, first.pairs) = (judged.race.clone(), judged.noise.clone(), judged.pairs.clone());
    }
    panels
}

fn runs(observed: &ObservedWork, target: usize, phase: &str) -> points::Series {
    let values = observed.every_value(target, phase, "time_ns");
    points::series(&(1..).zip(values).collect())
}

/// By the last finished copy to each target.
fn held_back(case: &ReportInput, observed: &ObservedWork) -> Vec<Note> {
    let found = |at: usize| {
        let done = observed.cells[at].values().rev().filter(|cell| cell.outcome == Some(Outcome::Done));
        let why = done.filter_map(|cell| cell.provenance.facts.get(HELD_BACK)).next()?;
        Some(Note::HeldBack(at, plain(why)))
    };
    (0..case.targets.len()).filter(|at| !case.targets[*at].duplicate).filter_map(found).collect()
}

fn nothing() -> Verdict {
    Verdict { kind: VerdictKind::Nothing, best: Vec::new(), notes: Vec::new() }
}

/// From the panel of all the work that it is about.
pub(crate) fn verdict(panel: &Panel, ranked: &[usize]) -> Verdict {
    let measured = panel.rows.iter().filter(|row| row.figure.is_some()).count();
    let Some(race) = panel.race.as_ref().filter(|_| measured > 1) else {
        let kind = match measured {
            0 => VerdictKind::Nothing,
            1 => VerdictKind::Single,
            _ if ranked.len() < 2 => VerdictKind::Nothing,
            _ => VerdictKind::TooFewRounds,
        };
        return Verdict { kind, ..nothing() };
    };
    let (good, pick) = (race.good(), vec![race.pick]);
    let (kind, best) = match good.len() {
        0 => (VerdictKind::Unresolved, race.may_be_best().collect()),
        1 => (VerdictKind::Pick, pick),
        _ => (VerdictKind::Tie, good),
    };
    Verdict { kind, best, notes: Vec::new() }
}

/// Targets that are measured and not ranked, and why. Limits are held against `works`.
pub(crate) fn notes(case: &ReportInput, works: &[&ObservedWork], judgement: &Judgement) -> Vec<Note> {
    let (plan, targets) = (case.analysis.plan, case.targets);
    let out = (0..targets.len()).filter(|at| !targets[*at].duplicate && !judgement.ranked.contains(at));
    let mut notes: Vec<Note> = out.map(|at| Note::NotRanked(at, judgement.vetoes[at].clone())).collect();
    let planned = plain(&plan.reference);
    if judgement.reference.is_some_and(|at| !planned.is_empty() && targets[at].name != planned) {
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

/// The whole job first, which is the only phase where there is one alone.
fn panels(context: &WorkContext, observed: &ObservedWork) -> Vec<Panel> {
    let names = observed.phases();
    let Judgement { values, contest, .. } = context.judgement;
    let mut panels: Vec<Panel> = match names[..] {
        [only] => vec![time_panel(only, only, values, contest, context)],
        [] => Vec::new(),
        _ if observed.judged.name.is_empty() => vec![time_panel(WHOLE_JOB, "", values, contest, context)],
        _ => vec![time_panel(&observed.judged.name, "", values, contest, context)],
    };
    if names.len() > 1 {
        panels.extend(names.iter().map(|name| phase_panel(name, observed, context)));
    }
    panels.iter_mut().for_each(|panel| mark_unproven(panel, observed));
    panels
}
