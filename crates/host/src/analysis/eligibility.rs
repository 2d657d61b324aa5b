//! Vetoes come first: what keeps a target out of the verdict, whatever its times.

use super::series::{Observed, ObservedWork, Rounds};
use pickfs_core::journal::{FoldedCell, Outcome};
use pickfs_core::plan::{Limit, Plan};
use pickfs_stats::ALPHA;

/// The error of both sides of an interval that a look holds a limit against: looks are so much
/// alike that a target that keeps it is sent away in no more than 5 %, by all of them together
/// (crates/pickfs/tests/deep/constants.rs).
const BOTH_SIDES: f64 = 0.2 * ALPHA;

/// One reason why a target takes no part in the verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Veto {
    /// Options in effect that promise less durability than the others do.
    Weakened(Vec<String>),
    /// `cells` of its `of` cells failed; `why` is the cause of the first.
    Failed { cells: usize, of: usize, why: String },
    /// Number of power cuts after which something was missing or damaged that was synced, or what a
    /// program had acknowledged; the name of the work where there are several.
    BrokenPromises { cuts: u64, of: u64, is_acknowledged: bool, work: Option<String> },
    /// It is not known to have this feature.
    Lacks(String),
    /// The largest that it takes, in bytes, is less than the plan requires, or not known.
    Small { what: String, largest: Option<u64>, wanted: u64 },
    /// The median is above what the plan allows; `sure` where its whole interval is.
    OverLimit { limit: Limit, median: f64, sure: bool },
    /// So few of the rounds that it took part in have finished.
    Unfinished { rounds: usize, of: usize },
    /// Only `rounds` rounds have a time, too few for a comparison with the others.
    TooFew { rounds: usize },
}

impl Veto {
    /// It will not go away with more rounds, or hardly ever: the target may leave.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Veto::Weakened(_)
            | Veto::Failed { .. }
            | Veto::BrokenPromises { .. }
            | Veto::Lacks(_)
            | Veto::Small { .. } => true,
            Veto::OverLimit { sure, .. } => *sure,
            Veto::Unfinished { rounds, of } => is_seldom(*rounds, *of),
            Veto::TooFew { .. } => false,
        }
    }
}

/// Fewer than would come of a target that finishes every second round: the sign test.
fn is_seldom(rounds: usize, of: usize) -> bool {
    pickfs_stats::sign_k(of, BOTH_SIDES).is_some_and(|(k, _)| rounds < k)
}

/// The works that a verdict is about.
type Works<'a> = [&'a ObservedWork<'a>];

/// For every observed target all that is against it in a verdict on these works. `scores` is what
/// the verdict would be made from.
pub(crate) fn vetoes(plan: &Plan, observed: &Observed, works: &Works, scores: &[Rounds]) -> Vec<Vec<Veto>> {
    let asked = |target| observed.asked(target);
    (0..scores.len()).map(|target| of_target(plan, works, target, &scores[target], asked(target))).collect()
}

fn of_target(plan: &Plan, works: &Works, target: usize, score: &Rounds, asked: usize) -> Vec<Veto> {
    let mut found = Vec::new();
    if !plan.rank_weakened {
        found.extend(weakened(works, target));
    }
    found.extend(failed(works, target));
    found.extend(works.iter().filter_map(|work| {
        let (cuts, of) = broken_promises(work, target);
        let is_acknowledged = !work.series(target, TRANSACTIONS, "time_ns").is_empty();
        let name = (works.len() > 1).then(|| work.name.to_string());
        (cuts > 0).then_some(Veto::BrokenPromises { cuts, of, is_acknowledged, work: name })
    }));
    if !score.is_empty() {
        found.extend(plan.verdict.require.iter().filter(|name| !has(works, target, name)).cloned().map(Veto::Lacks));
        found.extend(plan.verdict.holds.iter().filter_map(|(what, wanted)| small(works, target, what, *wanted)));
    }
    found.extend(plan.verdict.limits.iter().filter_map(|limit| over_limit(works, target, limit)));
    // An eliminated target is complete if it has the rounds up to its elimination.
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

/// The phase in which power cuts are counted.
pub(super) const RECOVERY: &str = "recovery";
/// That of the work whose promises are a program's.
pub(super) const TRANSACTIONS: &str = "transactions";

/// Power cuts of all rounds at which what was promised was not there, and all at which anything was
/// promised.
pub(super) fn broken_promises(work: &ObservedWork, target: usize) -> (u64, u64) {
    let count = |metric: &str| work.series(target, RECOVERY, metric).iter().map(|(_, cuts)| *cuts as u64).sum();
    (count("broken_promise_cuts"), count("done_promise_cuts"))
}

/// One failure is enough: what stops early is failed, not fast, and a file system that fails the
/// work now and then is no pick.
fn failed(works: &Works, target: usize) -> Option<Veto> {
    let ended = cells(works, target).filter(|cell| cell.outcome.is_some()).count();
    let causes = cells(works, target).filter_map(|cell| match &cell.outcome {
        Some(Outcome::Failed(why)) => Some(why),
        _ => None,
    });
    let causes: Vec<&String> = causes.collect();
    Some(Veto::Failed { cells: causes.len(), of: ended, why: (*causes.first()?).clone() })
}

/// The feature is in what the agent found; an unknown feature counts as missing.
fn has(works: &Works, target: usize, feature: &str) -> bool {
    let lists: Vec<&String> = done(works, target).filter_map(|cell| cell.provenance.facts.get("features")).collect();
    !lists.is_empty() && lists.iter().all(|list| list.split_whitespace().any(|word| word == feature))
}

/// What was the least in any of its cells counts.
fn small(works: &Works, target: usize, what: &str, wanted: u64) -> Option<Veto> {
    let all: Vec<Option<u64>> = done(works, target).map(|cell| cell.provenance.largest.get(what).copied()).collect();
    // None is less than any number.
    let largest = all.into_iter().min().flatten();
    largest.is_none_or(|bytes| bytes < wanted).then(|| Veto::Small { what: what.into(), largest, wanted })
}

/// The largest of the medians of works and phases is what counts: a limit is kept everywhere or not
/// at all.
fn over_limit(works: &Works, target: usize, limit: &Limit) -> Option<Veto> {
    let all: Vec<Vec<f64>> = works.iter().flat_map(|work| limited(work, target, limit)).collect();
    let median = all.iter().filter_map(|values| pickfs_stats::median(values)).max_by(f64::total_cmp)?;
    let is_above = |values: &Vec<f64>| {
        let interval = pickfs_stats::order_statistic_interval(values, 1.0 - BOTH_SIDES);
        interval.is_some_and(|(low, _)| low > limit.at_most)
    };
    (median > limit.at_most).then(|| Veto::OverLimit { limit: limit.clone(), median, sure: all.iter().any(is_above) })
}

/// The values by round of every phase that a limit is about.
fn limited(work: &ObservedWork, target: usize, limit: &Limit) -> Vec<Vec<f64>> {
    let wanted = |phase: &str| limit.phase.as_deref().is_none_or(|only| only == phase);
    let pairs = work.measured().into_iter().filter(|(phase, metric)| *metric == limit.metric && wanted(phase));
    let series = pairs.map(|(phase, metric)| work.series(target, phase, metric));
    series.map(|rounds| rounds.into_iter().map(|(_, value)| value).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::composite::score;
    use super::super::made_up::MadeUp;
    use super::super::series::observe;
    use super::*;
    use pickfs_core::metric::Combine;

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

    #[test]
    fn what_is_too_small_or_not_known_in_any_round_does_not_hold() {
        let mut made = four_rounds();
        made.plan.verdict.holds = [("file".to_string(), 4 << 40)].into();
        let small = |largest| vec![Veto::Small { what: "file".into(), largest, wanted: 4 << 40 }];
        assert_eq!(against_b(&made), small(None), "nobody knows");
        (1..=4).for_each(|round| made.takes("b", round, "file", 4 << 40));
        assert_eq!(against_b(&made), []);
        made.takes("b", 3, "file", (4 << 40) - 1);
        assert_eq!(against_b(&made), small(Some((4 << 40) - 1)));
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
            let wanted: Vec<Veto> =
                wanted.map(|median| Veto::OverLimit { limit, median, sure: false }).into_iter().collect();
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

    /// All of eight rounds above it, or seven of eight.
    #[test]
    fn who_is_above_a_limit_in_every_round_is_surely_over_it() {
        for (last, wanted) in [(3.0, true), (1.0, false)] {
            let mut made = MadeUp::new(&["a", "b"]);
            made.plan.verdict.limits = vec![Limit { phase: None, metric: "space_grown_bytes".into(), at_most: 2.0 }];
            for round in 1..=8 {
                let space = if round == 8 { last } else { 3.0 };
                let samples = [("read", "time_ns", 1e9), ("read", "space_grown_bytes", space)];
                made.cell("b", round, Outcome::Done, &samples);
            }
            let found = against_b(&made);
            assert!(matches!(found[..], [Veto::OverLimit { sure, .. }] if sure == wanted), "{found:?}");
        }
    }

    #[test]
    fn only_what_no_round_can_change_is_final() {
        let limit = Limit::default();
        let cases = [
            (Veto::Weakened(vec![]), true),
            (Veto::Failed { cells: 1, of: 8, why: String::new() }, true),
            (Veto::Lacks(String::new()), true),
            (Veto::Small { what: String::new(), largest: None, wanted: 1 }, true),
            (Veto::OverLimit { limit: limit.clone(), median: 1.0, sure: false }, false),
            (Veto::OverLimit { limit, median: 1.0, sure: true }, true),
            (Veto::Unfinished { rounds: 0, of: 6 }, false),
            (Veto::Unfinished { rounds: 0, of: 8 }, true),
            (Veto::Unfinished { rounds: 1, of: 8 }, false),
            (Veto::Unfinished { rounds: 1, of: 11 }, false),
            (Veto::Unfinished { rounds: 1, of: 12 }, true),
            (Veto::Unfinished { rounds: 3, of: 15 }, false),
        ];
        for (veto, is_final) in cases {
            assert_eq!(veto.is_final(), is_final, "{veto:?}");
        }
    }
}
