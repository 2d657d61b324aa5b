//! The one verdict over all works of a plan, and how much it rests on the weights.

use super::model::*;
use super::points;
use super::work::{self, Case, Quantity};
use crate::analysis::{self as decide, Combine, Rounds};
use crate::plan::VerdictTerm;
use crate::stats;
use crate::wording::headline as verdict;
use crate::wording::text::{listed, percent, plain};

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
    let mut panel = work::judged_panel(quantity(case), &values, &context);
    work::race_as_run(case, std::slice::from_mut(&mut panel), &values, &context);
    for row in &mut panel.rows {
        row.series = points::series(&values[row.target]);
    }
    let mut verdict = verdict::verdict(&panel, &context);
    if verdict.kind == VerdictKind::Nothing && panel.rows.iter().all(|row| row.figure.is_none()) {
        verdict.headline = "No verdict over all work: no target has finished all of it in any round.".to_string();
    }
    verdict.notes.extend(verdict::not_ranked(case, &works, context.reference, &ranked, &vetoes));
    let robustness = robustness(case, &values, &verdict, &ranked, context.reference);
    let noise = verdict::noise_floor(&panel, &context);
    let reference = context.reference;
    let (sentences, trade_offs, beside, compression, latencies, rates) = Default::default();
    let work = WorkReport {
        name: ALL_WORK.to_string(),
        reference,
        rounds,
        ranked,
        verdict,
        phases: vec![panel],
        sentences,
        trade_offs,
        beside,
        compression,
        latencies,
        rates,
        noise,
    };
    Some(Overall { made_of: made_of(case), robustness, work })
}

fn quantity(case: &Case) -> Quantity {
    Quantity {
        name: ALL_WORK.to_string(),
        phase: String::new(),
        metric: "time_ns".to_string(),
        wanted: Some(case.plan.stop.threshold),
    }
}

/// "10 × tree and 1 × mail: their times add", "tree counts 2, mail counts 1: geometric mean of the times".
fn made_of(case: &Case) -> String {
    let parts = decide::named_parts(case.plan, case.observed);
    if case.plan.verdict.parts.is_empty() {
        return format!("every one of {} works counts alike: geometric mean of their times", parts.len());
    }
    let costs = case.plan.verdict.has_counts();
    let shown = |part: &VerdictTerm| match costs {
        true => format!("{} × {}", part.amount, name(part)),
        false => format!("{} counts {}", name(part), part.amount),
    };
    let how = if costs { "their times add" } else { "geometric mean of the times" };
    format!("{}: {how}", listed(&parts.iter().map(shown).collect::<Vec<_>>()))
}

fn name(part: &VerdictTerm) -> String {
    part.phase.as_ref().map_or(plain(&part.work), |phase| plain(&format!("{} {phase}", part.work)))
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
    let each: Vec<String> =
        shares.iter().map(|(target, share)| format!("{} {}", case.targets[*target].name, percent(*share))).collect();
    let robust = stands >= ROBUST;
    let drawn = format!("with weights drawn {DRAWS} times about these");
    // Where all are named, no weights could name another.
    let sentence = match (verdict.best.len() == ranked.len(), robust) {
        (true, _) => format!("{drawn}, the least time is that of: {}", each.join(", ")),
        (false, true) => format!("robust: {drawn}, the best is among those named in {}", percent(stands)),
        (false, false) => {
            let share = percent(stands);
            format!("not robust: {drawn}, the best is among those named in {share}; best in: {}", each.join(", "))
        }
    };
    Some(Robustness { robust, shares, sentence })
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
