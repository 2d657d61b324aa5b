//! Vetoes come first: what keeps a target out of the verdict, whatever its times.

use super::collect::{Observed, ObservedWork, Rounds};
use crate::journal::{FoldedCell, Outcome};
use crate::plan::{Limit, Plan};
use crate::stats::median;

/// One reason why a target takes no part in the verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Veto {
    /// Options in effect that promise less durability than the others do.
    Weakened(Vec<String>),
    /// So many of its cells failed, with one cause.
    Failed { cells: usize, of: usize, why: String },
    /// It is not known to have this feature.
    Lacks(String),
    /// The median is above what the plan allows.
    OverLimit { limit: Limit, median: f64 },
    /// So few of the rounds that it took part in have finished.
    Unfinished { rounds: usize, of: usize },
}

impl Veto {
    /// It will not go away with more rounds: the target may leave.
    pub fn is_final(&self) -> bool {
        !matches!(self, Veto::OverLimit { .. } | Veto::Unfinished { .. })
    }
}

/// The works that a verdict is about.
type Works<'a> = [&'a ObservedWork<'a>];

/// For every observed target all that is against it in a verdict on these works. `scores` is what the verdict would be
/// made from.
pub fn vetoes(plan: &Plan, observed: &Observed, works: &Works, scores: &[Rounds]) -> Vec<Vec<Veto>> {
    let asked = |target| observed.asked(target);
    (0..scores.len()).map(|target| of_target(plan, works, target, &scores[target], asked(target))).collect()
}

fn of_target(plan: &Plan, works: &Works, target: usize, score: &Rounds, asked: usize) -> Vec<Veto> {
    let mut found = Vec::new();
    if !plan.rank_weakened {
        found.extend(weakened(works, target));
    }
    found.extend(failed(works, target));
    if !score.is_empty() {
        found.extend(plan.verdict.require.iter().filter(|name| !has(works, target, name)).cloned().map(Veto::Lacks));
    }
    found.extend(plan.verdict.limits.iter().filter_map(|limit| over_limit(works, target, limit)));
    // A target that left the race was there for all that it was asked for.
    if score.is_empty() || score.len() * 2 < asked {
        found.push(Veto::Unfinished { rounds: score.len(), of: asked });
    }
    found
}

fn cells<'a>(works: &'a Works, target: usize) -> impl Iterator<Item = &'a FoldedCell> {
    works.iter().flat_map(move |work| work.cells[target].values().copied())
}

fn done<'a>(works: &'a Works, target: usize) -> impl Iterator<Item = &'a FoldedCell> {
    cells(works, target).filter(|cell| cell.outcome == Some(Outcome::Done))
}

fn weakened(works: &Works, target: usize) -> Option<Veto> {
    let mut options: Vec<String> =
        done(works, target).flat_map(|cell| cell.provenance.weakened.iter().cloned()).collect();
    options.sort();
    options.dedup();
    (!options.is_empty()).then_some(Veto::Weakened(options))
}

/// One failure is enough: what stops early is failed, not fast, and a file system that fails the work now and then is no
/// pick.
fn failed(works: &Works, target: usize) -> Option<Veto> {
    let ended = cells(works, target).filter(|cell| cell.outcome.is_some()).count();
    let causes = cells(works, target).filter_map(|cell| match &cell.outcome {
        Some(Outcome::Failed(why)) => Some(why),
        _ => None,
    });
    let causes: Vec<&String> = causes.collect();
    Some(Veto::Failed { cells: causes.len(), of: ended, why: (*causes.first()?).clone() })
}

/// As the agent has found it; what nobody knows of is not there.
fn has(works: &Works, target: usize, feature: &str) -> bool {
    let lists: Vec<&String> = done(works, target).filter_map(|cell| cell.provenance.facts.get("features")).collect();
    !lists.is_empty() && lists.iter().all(|list| list.split_whitespace().any(|word| word == feature))
}

/// The largest of the medians of works and phases is what counts: a limit is kept everywhere or not at all.
fn over_limit(works: &Works, target: usize, limit: &Limit) -> Option<Veto> {
    let medians = works.iter().flat_map(|work| medians(work, target, limit));
    let median = medians.fold(None, |most: Option<f64>, m| Some(most.map_or(m, |most| most.max(m))))?;
    (median > limit.at_most).then(|| Veto::OverLimit { limit: limit.clone(), median })
}

fn medians(work: &ObservedWork, target: usize, limit: &Limit) -> Vec<f64> {
    let wanted = |phase: &str| limit.phase.as_deref().is_none_or(|only| only == phase);
    let pairs = work.measured().into_iter().filter(|(phase, metric)| *metric == limit.metric && wanted(phase));
    let series = pairs.map(|(phase, metric)| work.series(target, phase, metric));
    series.filter_map(|rounds| median(&rounds.iter().map(|(_, value)| *value).collect::<Vec<_>>())).collect()
}
