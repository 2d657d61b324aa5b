//! The one verdict over all works of a plan, and how much it rests on the weights.

use super::by_round::{by_round, compare, sums};
use super::composite::{named_parts, part};
use super::model::*;
use super::panel::{ReportInput, time_panel};
use super::plain::plain;
use super::series::ObservedWork;
use super::setting::Data;
use super::work::{self, WorkReport};
use pickfs_core::metric::Combine;
use pickfs_core::plan::VerdictTerm;
use pickfs_stats::Sums;
use std::collections::BTreeSet;

/// What the whole of several works is called.
pub(crate) const ALL_WORK: &str = "all work";

/// Draws of weights about those of the plan.
const DRAWS: usize = 10_000;
/// A verdict that holds in at least this share of the draws is robust.
const ROBUST: f64 = 0.9;

/// One verdict over all that the plan names.
#[derive(Debug)]
pub struct Overall {
    /// Works or phases and their weights.
    pub parts: Vec<(String, f64)>,
    pub combined: Combined,
    /// Where times add: what all rounds of each ranked target add up to, over those of the
    /// reference.
    pub sums: Vec<(usize, Sums)>,
    /// `None` where there is one part, or nothing to rank.
    pub robustness: Option<Robustness>,
    /// As of one work whose only phase is all of it.
    pub work: WorkReport,
}

/// `None` where one work alone, taken whole, is the verdict already.
pub(crate) fn overall(case: &ReportInput) -> Option<Overall> {
    let (analysis, judgement) = (case.analysis, &case.analysis.verdict);
    let has_own_units = |work: &ObservedWork| !work.judged.headlines.is_empty();
    if analysis.is_of_whole_work() || analysis.observed.works.iter().any(has_own_units) {
        return None;
    }
    let works = analysis.works_of_verdict();
    let rounds = works.iter().map(|work| work.rounds.len()).max().unwrap_or(0);
    let context = case.context(ALL_WORK, judgement, rounds);
    let panel = time_panel(ALL_WORK, "", &judgement.values, &judgement.contest, &context);
    let mut verdict = work::verdict(&panel, &judgement.ranked);
    verdict.notes.extend(work::notes(case, &works, judgement));
    let (costs, beside, compression, latencies, rates) = Default::default();
    let parts = named_parts(analysis.plan, &analysis.observed);
    let combined = match analysis.plan.verdict.parts.is_empty() {
        true => Combined::Alike,
        false if analysis.plan.verdict.has_counts() => Combined::Added,
        false => Combined::Weighted,
    };
    Some(Overall {
        robustness: robustness(case, &parts, &verdict),
        parts: parts.iter().map(|part| (name(part), part.amount)).collect(),
        sums: if combined == Combined::Added { all_sums(case) } else { Vec::new() },
        combined,
        work: WorkReport {
            name: ALL_WORK.to_string(),
            is_overall: true,
            is_foreign: false,
            phases: vec![panel],
            reference: judgement.reference,
            duplicate: judgement.duplicate,
            rounds,
            verdict,
            data: Data::default(),
            costs,
            beside,
            compression,
            durability: Vec::new(),
            latencies,
            rates,
            ranked: judgement.ranked.clone(),
        },
    })
}

fn all_sums(case: &ReportInput) -> Vec<(usize, Sums)> {
    let judgement = &case.analysis.verdict;
    let Some(reference) = judgement.reference else { return Vec::new() };
    let others = judgement.ranked.iter().copied().filter(|at| *at != reference);
    others.filter_map(|at| Some((at, sums(&judgement.values[at], &judgement.values[reference])?))).collect()
}

fn name(part: &VerdictTerm) -> String {
    part.phase.as_ref().map_or(plain(&part.work), |phase| plain(&[&part.work, " ", phase].concat()))
}

/// Weights are never known to the percent: does the verdict stand when they are drawn about those
/// of the plan?
fn robustness(case: &ReportInput, parts: &[VerdictTerm], verdict: &Verdict) -> Option<Robustness> {
    let (plan, ranked) = (case.analysis.plan, &case.analysis.verdict.ranked);
    let judged = matches!(verdict.kind, VerdictKind::Pick | VerdictKind::Tie | VerdictKind::Unresolved);
    if parts.len() < 2 || ranked.len() < 2 || !judged {
        return None;
    }
    let (centres, noise) = centres(case, parts)?;
    let weights = weights(case, parts, &centres);
    let known = pickfs_stats::PartTimes { log_times: &centres, noise: &noise };
    let shares = pickfs_stats::sensitivity(&known, &weights, DRAWS, plan.seed, plan.verdict.has_counts());
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

/// By ranked target and part.
type ByPart<T> = Vec<Vec<T>>;

/// The natural logarithm of the time of each part, by ranked target: the reference's median, and
/// the ratio to it, which is paired by round; and by how much each round draws it to its side.
fn centres(case: &ReportInput, parts: &[VerdictTerm]) -> Option<(ByPart<f64>, ByPart<Vec<f64>>)> {
    let (analysis, ranked) = (case.analysis, &case.analysis.verdict.ranked);
    let reference = analysis.verdict.reference?;
    // A journal may name any round: no more are gone through than there are.
    let rounds: BTreeSet<u32> = analysis.observed.works.iter().flat_map(|work| work.rounds.iter().copied()).collect();
    let rounds: Vec<u32> = rounds.into_iter().collect();
    let mut by_target = vec![Vec::new(); ranked.len()];
    let mut noise = vec![Vec::new(); ranked.len()];
    for named in parts {
        let series = part(named, &analysis.observed, "time_ns", Combine::Sum);
        let own: Vec<f64> = series[reference].iter().map(|(_, value)| *value).collect();
        let base = pickfs_stats::median(&own)?.ln();
        for ((centres, noise), target) in by_target.iter_mut().zip(&mut noise).zip(ranked) {
            let found = compare(&series[*target], &series[reference], analysis.confidence)?;
            centres.push(base + found.ratio.ln());
            noise.push(pickfs_stats::influences(&by_round(&series[*target], &series[reference], &rounds), &found));
        }
    }
    Some((by_target, noise))
}

/// The plan's weights; of costs the share of the time that each part has on the mean target.
fn weights(case: &ReportInput, parts: &[VerdictTerm], centres: &[Vec<f64>]) -> Vec<f64> {
    let mean = |at: usize| centres.iter().map(|target| target[at].exp()).sum::<f64>() / centres.len() as f64;
    let cost = |at: usize| if case.analysis.plan.verdict.has_counts() { mean(at) } else { 1.0 };
    parts.iter().enumerate().map(|(at, part)| part.amount * cost(at)).collect()
}
