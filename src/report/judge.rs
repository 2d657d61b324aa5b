//! Series -> figures, comparisons and the pick of one work.

use super::collect::{Combine, ObservedWork, Rounds};
use super::model::*;
use super::words::plain;
use super::{holes, verdict, words};
use crate::plan::Plan;
use crate::stats::{self, Estimate};
use crate::units::Unit;

/// What intervals are meant to cover.
pub const CONFIDENCE: f64 = 0.95;

/// The smallest relative difference worth acting on in what is measured beside the time.
pub const SPACE_THRESHOLD: f64 = 0.02;
pub const CPU_THRESHOLD: f64 = 0.05;

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
    /// Why nothing is judged by time.
    pub refused: Option<String>,
}

/// What a panel shows, and how it is judged.
pub struct Quantity {
    pub name: String,
    pub phase: String,
    pub metric: String,
    pub better: Better,
    /// `None`: shown, not compared.
    pub wanted: Option<f64>,
}

pub fn work(plan: &Plan, observed: &ObservedWork, targets: &[TargetInfo], holes: &[Hole]) -> WorkReport {
    let names = observed.phases();
    let whole = observed.over_phases("time_ns", Combine::Sum);
    let reference = reference(plan, &whole, targets);
    let planned = targets.iter().position(|target| target.name == plain(&plan.reference)).unwrap_or(0);
    let duplicate = targets.iter().position(|t| t.duplicate).filter(|_| reference == Some(planned));
    let ranked = ranked(plan, &whole, targets);
    let (name, rounds) = (plain(observed.name), observed.rounds.len());
    let refused = None;
    let mut context = Context { targets, holes, work: &name, reference, duplicate, ranked: &ranked, rounds, refused };
    context.refused = refusal(plan, &context, observed, &names);
    let phases = panels(plan, &context, observed, &names, &whole);
    let (verdict, noise) = match phases.first() {
        Some(panel) => (verdict::verdict(panel, &context), verdict::noise_floor(panel, &context)),
        None => (verdict::nothing(), String::new()),
    };
    let sentences = phases.iter().filter(|p| !p.phase.is_empty()).map(|p| verdict::phase(p, &context)).collect();
    let (trade_offs, beside, compression) = Default::default();
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
        noise,
    };
    report.verdict.notes.extend(verdict::not_ranked(plan, &report, targets, &whole));
    report
}

/// The plan's reference if it has results, else the first target that has: a failed reference must not take all
/// comparisons with it.
fn reference(plan: &Plan, whole: &[Rounds], targets: &[TargetInfo]) -> Option<usize> {
    let has = |at: &usize| !whole[*at].is_empty() && !targets[*at].duplicate;
    let planned = targets.iter().position(|target| target.name == plain(&plan.reference));
    let sound = (0..targets.len()).filter(has).find(|&at| targets[at].weakened.is_empty());
    planned.or((!targets.is_empty()).then_some(0)).filter(has).or(sound).or((0..targets.len()).find(has))
}

/// Looks at the reference and its duplicate in every phase.
fn refusal(plan: &Plan, context: &Context, observed: &ObservedWork, names: &[&str]) -> Option<String> {
    let (reference, duplicate) = context.reference.zip(context.duplicate)?;
    let noise = |name: &&str| {
        let times = observed.in_phase(name, "time_ns");
        compare(&times[duplicate], &times[reference])
    };
    let duplicates: Vec<Estimate> = names.iter().filter_map(noise).collect();
    let away = stats::noise_verdict(&duplicates, plan.stop.threshold)?;
    Some(words::refused(away, &context.targets[reference].name))
}

/// Who may be picked: durable like the others, and in at least half of the rounds, because the pick is made from
/// the rounds that all ranked targets share.
fn ranked(plan: &Plan, whole: &[Rounds], targets: &[TargetInfo]) -> Vec<usize> {
    let most = whole.iter().map(Vec::len).max().unwrap_or(0);
    let durable = |at: &usize| plan.rank_weakened || targets[*at].weakened.is_empty();
    let often = |at: &usize| !whole[*at].is_empty() && whole[*at].len() * 2 >= most;
    (0..targets.len()).filter(|at| !targets[*at].duplicate).filter(durable).filter(often).collect()
}

fn panels(plan: &Plan, context: &Context, observed: &ObservedWork, names: &[&str], whole: &[Rounds]) -> Vec<Panel> {
    let quantity = |name: &str, phase: &str| Quantity {
        name: plain(name),
        phase: plain(phase),
        metric: "time_ns".to_string(),
        better: Better::Less,
        wanted: Some(plan.stop.threshold),
    };
    let mut panels = Vec::new();
    if names.len() > 1 {
        panels.push(panel(quantity("whole job", ""), whole, context));
    }
    panels.extend(names.iter().map(|name| panel(quantity(name, name), &observed.in_phase(name, "time_ns"), context)));
    for panel in &mut panels {
        mark_unproven(panel, observed);
        let judged = panel.refused.is_none() && context.ranked.len() > 1;
        let series = if panel.phase.is_empty() { whole } else { &observed.in_phase(&panel.phase, "time_ns") };
        panel.best = judged.then(|| best(series, context.ranked, panel.band)).flatten();
    }
    panels
}

fn mark_unproven(panel: &mut Panel, observed: &ObservedWork) {
    for row in &mut panel.rows {
        row.unproven_cache = observed.flags(row.target).any(|flag| {
            flag.flag == "not-cold" && (panel.phase.is_empty() || flag.phase.is_empty() || flag.phase == panel.phase)
        });
    }
}

/// One quantity for every target, compared with the reference round by round.
pub fn panel(what: Quantity, series: &[Rounds], context: &Context) -> Panel {
    let against = |target: usize| context.reference.and_then(|r| compare(&series[target], &series[r]));
    let noise = context.duplicate.filter(|_| what.wanted.is_some()).and_then(against);
    let wanted = what.wanted.unwrap_or(0.0);
    let band = stats::Band::new(wanted, noise.as_ref());
    let threshold = band.threshold;
    let refused = context.refused.clone().filter(|_| what.wanted.is_some() && what.metric == "time_ns");
    let judged = what.wanted.is_some() && refused.is_none();
    let unit = Unit::of_metric(&what.metric);
    let row = |target: usize| {
        let figure = figure(&series[target], unit, context.rounds);
        let compared = what.wanted.is_some() && context.reference != Some(target);
        let estimate = if compared { against(target) } else { None };
        let finding = |estimate: &Estimate| judged.then(|| stats::judge(estimate, band));
        let against = estimate.map(|e| words::comparison(finding(&e), e, &what.metric, threshold, context));
        let lacking = || holes::absent(context.holes, context.work, target);
        let absent = if figure.is_none() { lacking() } else { Absent::default() };
        Row { target, figure, against, absent, unproven_cache: false }
    };
    let shown_targets = (0..context.targets.len()).filter(|&target| !context.targets[target].duplicate);
    Panel {
        rows: shown_targets.map(row).collect(),
        name: what.name,
        phase: what.phase,
        metric: what.metric,
        unit,
        better: what.better,
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

/// Paired by round: only rounds that both have.
pub fn compare(of: &Rounds, reference: &Rounds) -> Option<Estimate> {
    let pairs = common(&[of, reference]);
    estimate(&pairs[0], &pairs[1])
}

/// The values of those rounds that all have, positive ones only: a ratio to nothing says nothing.
fn common(series: &[&Rounds]) -> Vec<Vec<f64>> {
    let mut at = vec![0; series.len()];
    let mut shared = vec![Vec::new(); series.len()];
    for &(round, _) in series[0] {
        for (at, series) in at.iter_mut().zip(series) {
            *at += series[*at..].partition_point(|(other, _)| *other < round);
        }
        let values: Vec<f64> = at.iter().zip(series).filter_map(|(at, s)| value_of(s.get(*at), round)).collect();
        if values.len() == series.len() {
            shared.iter_mut().zip(values).for_each(|(list, value)| list.push(value));
        }
    }
    shared
}

fn value_of(entry: Option<&(u32, f64)>, round: u32) -> Option<f64> {
    entry.filter(|(other, value)| *other == round && *value > 0.0 && value.is_finite()).map(|(_, value)| *value)
}

/// Who may be the best of those that are ranked; `None` if there are too few to compare, or too few rounds.
fn best(series: &[Rounds], ranked: &[usize], band: stats::Band) -> Option<Best> {
    let ranked: Vec<usize> = ranked.iter().copied().filter(|&target| !series[target].is_empty()).collect();
    let times = common(&ranked.iter().map(|&target| &series[target]).collect::<Vec<_>>());
    let rounds = times.first().map_or(0, Vec::len);
    if ranked.len() < 2 || rounds < 3 {
        return None;
    }
    let found = stats::best_set(&times, CONFIDENCE, band);
    let corrected = found.corrected;
    let (mut members, tie) = with_equals(found, &times, band);
    members.sort_by(|a, b| middle(&times[*a]).total_cmp(&middle(&times[*b])));
    let more_rounds = if tie { None } else { rounds_to_tell(&members, &times, band) };
    Some(Best { members: members.into_iter().map(|at| ranked[at]).collect(), tie, corrected, rounds, more_rounds })
}

fn middle(times: &[f64]) -> f64 {
    stats::median(times).unwrap_or(f64::INFINITY)
}

/// A target that is shown to be slower, but by less than the threshold, is no worse a pick: it ties.
fn with_equals(found: stats::BestSet, times: &[Vec<f64>], band: stats::Band) -> (Vec<usize>, bool) {
    let mut members = found.members;
    let settled = found.tie || members.len() == 1;
    if !settled {
        return (members, false);
    }
    let equal = |at: usize, to: usize| {
        estimate(&times[at], &times[to]).is_some_and(|e| stats::judge(&e, band) == stats::Finding::Tie)
    };
    let chosen = members.clone();
    let others = (0..times.len()).filter(|at| !chosen.contains(at));
    members.extend(others.filter(|&at| chosen.iter().all(|&to| equal(at, to))));
    let tie = members.len() > 1;
    (members, tie)
}

/// More rounds until the fastest candidate and each other one can be told apart.
fn rounds_to_tell(members: &[usize], times: &[Vec<f64>], band: stats::Band) -> Option<u32> {
    let (first, others) = members.split_first()?;
    let needed =
        others.iter().filter_map(|&other| match stats::judge(&estimate(&times[other], &times[*first])?, band) {
            stats::Finding::Unresolved { rounds } => Some(rounds?.saturating_sub(times[other].len() as u32)),
            _ => None,
        });
    needed.max()
}

fn estimate(of: &[f64], to: &[f64]) -> Option<Estimate> {
    let ratios: Vec<f64> = of.iter().zip(to).map(|(a, b)| a.ln() - b.ln()).collect();
    stats::paired_ratio(&ratios, CONFIDENCE)
}

/// Pairs cancel a drift, so verdicts stand; absolute numbers do not.
pub fn drift(report: &WorkReport, observed: &ObservedWork, targets: &[TargetInfo]) -> Option<String> {
    let reference = report.reference?;
    let whole = observed.over_phases("time_ns", Combine::Sum);
    let times: Vec<f64> = whole[reference].iter().map(|(_, value)| *value).collect();
    let (work, name) = (&report.name, &targets[reference].name);
    stats::drifts(&times).then(|| {
        format!("{work}: {name} drifted over the rounds; comparisons are paired and stand, absolute times may not")
    })
}
