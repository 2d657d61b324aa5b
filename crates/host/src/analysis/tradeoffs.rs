//! What cannot be added up: time, tail, space, CPU and wear side by side, and the targets that no
//! other one beats all round (the Pareto front). The verdict is one point of it.

use super::by_round::compare;
use super::composite::score_of_works;
use super::model::*;
use super::panel::ReportInput;
use super::series::Rounds;
use pickfs_core::metric::{self, Metric};
use pickfs_stats::{Estimate, Ratios};

/// Every pair is compared in every criterion; with more targets than this the table is unreadable
/// too.
const MOST_TARGETS: usize = 30;

/// `None` where there are fewer than two targets, or fewer than two criteria, to trade against each
/// other.
pub(crate) fn criteria(case: &ReportInput) -> Option<Criteria> {
    let (plan, criteria) = (case.analysis.plan, metric::criteria());
    let (reference, shown) = (case.analysis.verdict.reference?, &case.analysis.verdict.ranked);
    let found: Vec<_> = criteria.iter().filter_map(|criterion| measured(case, criterion)).collect();
    if shown.len() < 2 || shown.len() > MOST_TARGETS || found.len() < 2 {
        return None;
    }
    let thresholds: Vec<f64> =
        found.iter().map(|(_, metric)| metric.matters(plan.stop.threshold).unwrap_or(0.0)).collect();
    let trades = trades(&found, shown, case);
    let front: Vec<usize> = pickfs_stats::front(&ratios(&trades, found.len()), &thresholds);
    let place = shown.iter().position(|target| *target == reference);
    let row = |(at, others): (usize, Vec<Vec<Option<Estimate>>>)| CriteriaRow {
        target: shown[at],
        on_front: front.contains(&at),
        cells: match place {
            Some(place) => others[place].clone(),
            None => found.iter().map(|measured| trade(measured, shown[at], reference, case)).collect(),
        },
        others,
    };
    Some(Criteria {
        names: found.iter().map(|(_, metric)| metric.criterion.to_string()).collect(),
        reference,
        rows: trades.into_iter().enumerate().map(row).collect(),
    })
}

/// Values of a criterion, and what they are.
type Measured = (Vec<Rounds>, &'static Metric);

/// `None` where no target has any.
fn measured(case: &ReportInput, criterion: &[&'static Metric]) -> Option<Measured> {
    let plan = case.analysis.plan;
    let of = |metric: &&Metric| score_of_works(plan, &case.analysis.observed, metric.name, metric.combine);
    let any = |series: &[Rounds]| series.iter().any(|rounds| rounds.iter().any(|(_, value)| *value > 0.0));
    criterion.iter().map(|metric| (of(metric), *metric)).find(|(series, _)| any(series))
}

/// By pair of targets, in each criterion.
fn trades(found: &[Measured], shown: &[usize], case: &ReportInput) -> Vec<Vec<Vec<Option<Estimate>>>> {
    let pair = |a: usize, b: usize| found.iter().map(|measured| trade(measured, a, b, case)).collect();
    shown.iter().map(|&a| shown.iter().map(|&b| pair(a, b)).collect()).collect()
}

/// A ratio; nothing where none can be made. Times are judged in the verdict already.
fn trade((series, metric): &Measured, target: usize, reference: usize, case: &ReportInput) -> Option<Estimate> {
    let judged = || case.analysis.verdict.contest.pairs.get(target, reference).map(|pair| pair.estimate);
    let own = || compare(&series[target], &series[reference], case.analysis.confidence);
    if target != reference && metric.name == "time_ns" { judged() } else { own() }
}

/// For each criterion by pair of targets.
fn ratios(trades: &[Vec<Vec<Option<Estimate>>>], criteria: usize) -> Vec<Ratios> {
    let of = |a: usize, b: usize, criterion: usize| {
        if a == b { None } else { trades[a][b][criterion].as_ref().and_then(|found| found.interval) }
    };
    let all = 0..trades.len();
    let one = |criterion: usize| all.clone().map(|a| all.clone().map(|b| of(a, b, criterion)).collect()).collect();
    (0..criteria).map(one).collect()
}
