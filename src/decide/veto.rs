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
    /// Nothing that it ever did counts: more rounds would be as empty.
    pub fn is_without_results(&self) -> bool {
        matches!(self, Veto::Unfinished { rounds: 0, .. })
    }

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

pub(super) fn weakened(works: &Works, target: usize) -> Option<Veto> {
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

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::super::{Combine, observe, score};
    use super::*;

    /// What is against `b`.
    fn against_b(made: &MadeUp) -> Vec<Veto> {
        let observed = observe(&made.folded, &made.plan);
        let works: Vec<&ObservedWork> = observed.works.iter().collect();
        let scores = score(&made.plan, &observed, "time_ns", Combine::Sum);
        vetoes(&made.plan, &observed, &works, &scores).remove(1)
    }

    fn four_rounds() -> MadeUp {
        let mut made = MadeUp::new(&["a", "b"]);
        (1..=4).for_each(|round| ["a", "b"].into_iter().for_each(|name| made.done(name, round, 1e9)));
        made
    }

    #[test]
    fn nothing_is_against_who_did_all_that_was_asked() {
        assert_eq!(against_b(&four_rounds()), []);
    }

    #[test]
    fn weakened_durability_in_any_round_counts_unless_the_plan_ranks_it() {
        let mut made = four_rounds();
        made.found("b", 2, None, &["nobarrier"]);
        made.found("b", 3, None, &["nobarrier", "async"]);
        assert_eq!(against_b(&made), [Veto::Weakened(vec!["async".into(), "nobarrier".into()])]);
        made.plan.rank_weakened = true;
        assert_eq!(against_b(&made), []);
    }

    #[test]
    fn one_failure_is_enough() {
        let mut made = four_rounds();
        made.cell("b", 5, Outcome::Failed("full".into()), &[]);
        assert_eq!(against_b(&made), [Veto::Failed { cells: 1, of: 5, why: "full".into() }]);
    }

    #[test]
    fn a_feature_must_be_known_in_every_round() {
        let mut made = four_rounds();
        made.plan.verdict.require = vec!["checksums".into()];
        let lacks = [Veto::Lacks("checksums".into())];
        assert_eq!(against_b(&made), lacks, "nobody knows");
        made.found("b", 1, Some("journal checksums"), &[]);
        assert_eq!(against_b(&made), []);
        made.found("b", 2, Some("journal metadata-checksums"), &[]);
        assert_eq!(against_b(&made), lacks, "not in the second round");
    }

    /// The median of three rounds is 2; the largest of the phases counts where none is named.
    #[test]
    fn limits_hold_for_the_median_of_every_phase_that_they_name() {
        let cases =
            [(None, 2.0, None), (None, 1.9, Some(2.0)), (Some("stat"), 1.9, None), (Some("stat"), 0.9, Some(1.0))];
        for (phase, at_most, wanted) in cases {
            let mut made = MadeUp::new(&["a", "b"]);
            for (round, value) in [(1, 1.0), (2, 2.0), (3, 9.0)] {
                let samples = [("read", "time_ns", 1e9), ("read", "p99_ns", value), ("stat", "p99_ns", 1.0)];
                ["a", "b"].into_iter().for_each(|name| made.cell(name, round, Outcome::Done, &samples));
            }
            let limit = Limit { phase: phase.map(String::from), metric: "p99_ns".into(), at_most };
            made.plan.verdict.limits = vec![limit.clone()];
            let wanted: Vec<Veto> = wanted.map(|median| Veto::OverLimit { limit, median }).into_iter().collect();
            assert_eq!(against_b(&made), wanted, "{phase:?} at most {at_most}");
        }
    }

    #[test]
    fn half_of_the_rounds_that_were_asked_for_are_enough() {
        let mut made = four_rounds();
        (5..=8).for_each(|round| made.done("a", round, 1e9));
        assert_eq!(against_b(&made), []);
        made.done("a", 9, 1e9);
        assert_eq!(against_b(&made), [Veto::Unfinished { rounds: 4, of: 9 }]);
        made.leaves("b", 8);
        assert_eq!(against_b(&made), [], "it was not asked for the ninth");
    }

    #[test]
    fn who_has_no_time_at_all_has_not_finished() {
        let mut made = MadeUp::new(&["a", "b"]);
        made.done("a", 1, 1e9);
        made.plan.verdict.require = vec!["checksums".into()];
        assert_eq!(against_b(&made), [Veto::Unfinished { rounds: 0, of: 1 }], "nor is anything known of it");
    }

    #[test]
    fn only_what_no_round_can_change_is_final() {
        let limit = Limit::default();
        let cases = [
            (Veto::Weakened(vec![]), true),
            (Veto::Failed { cells: 1, of: 8, why: String::new() }, true),
            (Veto::Lacks(String::new()), true),
            (Veto::OverLimit { limit, median: 1.0 }, false),
            (Veto::Unfinished { rounds: 1, of: 8 }, false),
        ];
        for (veto, is_final) in cases {
            assert_eq!(veto.is_final(), is_final, "{veto:?}");
        }
    }
}
