//! The one verdict over all works of a plan, and how much it rests on the weights.

use super::model::*;
use super::plain::plain;
use super::work::{self, Case, Quantity};
use crate::analysis::{self as decide, Combine, Rounds};
use crate::plan::VerdictTerm;
use crate::stats;

/// What the whole of several works is called.
pub const ALL_WORK: &str = "all work";

/// Draws of weights about those of the plan.
const DRAWS: usize = 10_000;
/// A verdict that stands in so many of them is robust.
const ROBUST: f64 = 0.9;

/// `None` where one work alone, taken whole, is the verdict already.
pub fn overall(case: &Case) -> Option<Overall> {
    if case.races_on_whole_work() {
        return None;
    }
    let values = decide::score(case.plan, case.observed, "time_ns", Combine::Sum);
    let works = decide::works_of_verdict(case.plan, case.observed);
    let vetoes = decide::vetoes(case.plan, case.observed, &works, &values);
    let ranked = work::ranked(case, &vetoes);
    let rounds = works.iter().map(|work| work.rounds.len()).max().unwrap_or(0);
    let context = case.context(ALL_WORK, &values, &ranked, rounds);
    let panel = work::judged_panel(quantity(case), &values, &context, Some(case.observed));
    let mut verdict = work::verdict(&panel, &ranked);
    verdict.notes.extend(work::notes(case, &works, context.reference, &ranked, &vetoes));
    let robustness = robustness(case, &values, &verdict, &ranked, context.reference);
    let (reference, duplicate) = (context.reference, context.duplicate);
    let (costs, beside, compression, latencies, rates) = Default::default();
    let parts = decide::named_parts(case.plan, case.observed);
    let combined = match case.plan.verdict.parts.is_empty() {
        true => Combined::Alike,
        false if case.plan.verdict.has_counts() => Combined::Added,
        false => Combined::Weighted,
    };
    let work = WorkReport {
        name: ALL_WORK.to_string(),
        is_overall: true,
        phases: vec![panel],
        reference,
        duplicate,
        rounds,
        verdict,
        costs,
        beside,
        compression,
        latencies,
        rates,
        ranked: ranked.clone(),
    };
    let parts = parts.iter().map(|part| (name(part), part.amount)).collect();
    Some(Overall { parts, combined, robustness, work })
}

fn quantity(case: &Case) -> Quantity {
    Quantity {
        name: ALL_WORK.to_string(),
        phase: String::new(),
        metric: "time_ns".to_string(),
        wanted: Some(case.plan.stop.threshold),
    }
}

fn name(part: &VerdictTerm) -> String {
    part.phase.as_ref().map_or(plain(&part.work), |phase| plain(&[&part.work, " ", phase].concat()))
}

/// Weights are never known to the percent: does the verdict stand when they are drawn about those of the plan?
fn robustness(
    case: &Case,
    values: &[Rounds],
    verdict: &Verdict,
    ranked: &[usize],
    reference: Option<usize>,
) -> Option<Robustness> {
    let parts = decide::named_parts(case.plan, case.observed);
    let judged = matches!(verdict.kind, VerdictKind::Pick | VerdictKind::Tie | VerdictKind::Unresolved);
    let reference = reference.filter(|_| parts.len() > 1 && ranked.len() > 1 && judged)?;
    let centres = centres(case, &parts, ranked, reference)?;
    let weights = weights(case, &parts, &centres);
    debug_assert!(ranked.iter().all(|target| !values[*target].is_empty()));
    let shares = stats::sensitivity(&centres, &weights, DRAWS, case.plan.seed, case.plan.verdict.has_counts());
    let shares: Vec<(usize, f64)> = ranked.iter().copied().zip(shares).filter(|(_, share)| *share > 0.0).collect();
    let stands: f64 = shares
        .iter()
        .filter(|(target, _)| verdict.best.contains(target))
        .map(|(_, share)| share)
        .fold(0.0, |all, share| all + share);
    if shares.is_empty() {
        return None;
    }
    let names_all = verdict.best.len() == ranked.len();
    Some(Robustness { robust: stands >= ROBUST, shares, stands, draws: DRAWS, names_all })
}

/// The natural logarithm of the time of each part, by ranked target: the reference's median, and the ratio to it, which
/// is paired by round.
fn centres(case: &Case, parts: &[VerdictTerm], ranked: &[usize], reference: usize) -> Option<Vec<Vec<f64>>> {
    let mut by_target = vec![Vec::new(); ranked.len()];
    for part in parts {
        let series = decide::part(part, case.observed, "time_ns", Combine::Sum);
        let own: Vec<f64> = series[reference].iter().map(|(_, value)| *value).collect();
        let base = stats::median(&own)?.ln();
        for (centres, target) in by_target.iter_mut().zip(ranked) {
            let found = decide::compare(&series[*target], &series[reference], case.level.confidence)?;
            centres.push(base + found.ratio.ln());
        }
    }
    Some(by_target)
}

/// Weights as they are; of costs the share of the time that each part has on the mean target.
fn weights(case: &Case, parts: &[VerdictTerm], centres: &[Vec<f64>]) -> Vec<f64> {
    let mean = |at: usize| centres.iter().map(|target| target[at].exp()).sum::<f64>() / centres.len() as f64;
    let cost = |at: usize| if case.plan.verdict.has_counts() { mean(at) } else { 1.0 };
    parts.iter().enumerate().map(|(at, part)| part.amount * cost(at)).collect()
}
