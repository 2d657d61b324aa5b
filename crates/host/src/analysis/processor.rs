//! Whether the pick of a simulation depends on its processors: the same cells on processors that
//! are half and twice as fast, on one alone, and on twice as many.

use super::composite::score;
use super::judgement::Analysis;
use super::plain::plain;
use super::series::{Rounds, at_round, observe_at};
use pickfs_core::metric::Combine;
use pickfs_core::plan::{OtherProcessors, at_other_speeds};
use pickfs_stats::median;

/// The pick on other processors.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherSpeed {
    pub processors: OtherProcessors,
    pub pick: PickCheck,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PickCheck {
    /// No target is faster than the pick by more than matters.
    Yes,
    /// This target is, by this share.
    No { faster: String, by: f64 },
    /// Cells are missing.
    Unknown,
}

/// None where the plan asks for no check, or none has been made yet.
pub(crate) fn other_speeds(analysis: &Analysis) -> Option<Vec<OtherSpeed>> {
    let plan = analysis.plan;
    let race = analysis.verdict.contest.race.as_ref().filter(|_| plan.other_speeds)?;
    let has_begun =
        |other: &OtherProcessors| analysis.folded.cells.iter().any(|cell| analysis.folded.processors(cell) == *other);
    let mut others: Vec<OtherProcessors> = at_other_speeds(plan).into_iter().map(|(other, _)| other).collect();
    others.dedup();
    let of = |processors| OtherSpeed { processors, pick: held(analysis, race.pick, processors) };
    let found: Vec<OtherSpeed> = others.into_iter().filter(has_begun).map(of).collect();
    (!found.is_empty()).then_some(found)
}

/// How much a target gains on the pick by the other processor is seen in one round, against the
/// same round on the plan's; it is added to what all rounds say of the two.
fn held(analysis: &Analysis, pick: usize, processors: OtherProcessors) -> PickCheck {
    let there = observe_at(analysis.folded, analysis.plan, processors);
    let there = score(analysis.plan, &there, "time_ns", Combine::Sum);
    let here = &analysis.verdict.values;
    let others = analysis.verdict.ranked.iter().copied().filter(|target| *target != pick);
    let ahead = |target: usize| {
        let (all, one) = (ahead_of(here, target, pick), ahead_of(&there, target, pick));
        let gain = one.first().and_then(|(round, log)| Some(log - at_round(&all, *round)?));
        let usual = median(&all.iter().map(|(_, log)| *log).collect::<Vec<_>>());
        Some((target, (usual? + gain?).exp_m1()))
    };
    let Some(found) = others.map(ahead).collect::<Option<Vec<(usize, f64)>>>() else { return PickCheck::Unknown };
    let first = found.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match first.filter(|(_, by)| *by > analysis.plan.stop.threshold) {
        Some((target, by)) => PickCheck::No { faster: plain(analysis.observed.targets[target]), by },
        None => PickCheck::Yes,
    }
}

/// Logarithms of the pick's time over the target's, by round.
fn ahead_of(values: &[Rounds], target: usize, pick: usize) -> Rounds {
    let (Some(of_target), Some(of_pick)) = (values.get(target), values.get(pick)) else { return Vec::new() };
    let log = |(round, value): &(u32, f64)| Some((*round, (value / at_round(of_target, *round)?).ln()));
    of_pick.iter().filter_map(log).filter(|(_, log)| log.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::super::series::observe;
    use super::*;
    use pickfs_core::journal::{Begin, End, Outcome, Record, Sample, Speed};
    use pickfs_core::plan::PROCESSORS;
    use pickfs_stats::Look;

    const fn at(times: f64, processors: Option<u64>) -> OtherProcessors {
        OtherProcessors { times, processors }
    }

    const HALF: OtherProcessors = at(0.5, None);
    const TWICE: OtherProcessors = at(2.0, None);

    /// Eight rounds of a and b, and what they take in the first round on other processors.
    fn found(here: [f64; 2], others: &[(OtherProcessors, &[f64])]) -> Option<Vec<OtherSpeed>> {
        let mut made = MadeUp::new(&["a", "b"]);
        made.plan.other_speeds = true;
        for round in 1..=8 {
            // What a round does to all alike.
            let by = 1.0 + f64::from(round) / 100.0;
            made.done("a", round, here[0] * by);
            made.done("b", round, here[1] * by);
        }
        for target in &mut made.plan.targets {
            target.machine.0.insert(PROCESSORS.into(), 8.into());
        }
        for (processors, values) in others {
            for (target, value) in ["a", "b"].into_iter().zip(*values) {
                let cell = format!("{target} at {processors:?}");
                let (target, work) = (target.to_string(), "read".to_string());
                made.folded.take(Record::Speed(Speed { cell: cell.clone(), processors: *processors }));
                made.folded.take(Record::Begin(Begin {
                    cell: cell.clone(),
                    round: 1,
                    target,
                    work,
                    at: String::new(),
                }));
                let (phase, metric) = ("read".to_string(), "time_ns".to_string());
                made.folded.take(Record::Sample(Sample { cell: cell.clone(), phase, metric, value: *value }));
                made.folded.take(Record::End(End { cell, outcome: Outcome::Done, at: String::new() }));
            }
        }
        let observed = observe(&made.folded, &made.plan);
        assert_eq!(observed.targets.len(), 2);
        other_speeds(&Analysis::of(&made.plan, &made.folded, observed, vec![Look::only(8)]))
    }

    #[test]
    fn a_pick_that_holds_is_told_from_one_that_changes() {
        let of = |processors: OtherProcessors, pick: PickCheck| OtherSpeed { processors, pick };
        // a is picked; half as fast, it loses.
        let changes = found([100.0, 120.0], &[(HALF, &[200.0, 180.0]), (TWICE, &[60.0, 70.0])]).expect("a check");
        let PickCheck::No { faster, by } = &changes[0].pick else { panic!("{changes:?}") };
        assert_eq!((faster.as_str(), changes[0].processors), ("b", HALF));
        assert!((by - (200.0 / 180.0 - 1.0)).abs() < 1e-9, "{by}");
        assert_eq!(changes[1], of(TWICE, PickCheck::Yes));
        // By less than matters.
        let same = found([100.0, 120.0], &[(HALF, &[200.0, 198.0]), (TWICE, &[60.0, 70.0])]).expect("a check");
        assert_eq!(same, [of(HALF, PickCheck::Yes), of(TWICE, PickCheck::Yes)]);
        let cut = found([100.0, 120.0], &[(HALF, &[200.0, 180.0]), (TWICE, &[60.0])]).expect("a check");
        assert_eq!(cut[1], of(TWICE, PickCheck::Unknown));
        assert_eq!(found([100.0, 120.0], &[]), None);
        // On one processor, where its workers take their turns, a loses.
        let alone = found([100.0, 120.0], &[(at(1.0, Some(1)), &[250.0, 200.0]), (at(1.0, Some(16)), &[90.0, 110.0])]);
        let alone = alone.expect("a check");
        assert!(matches!(&alone[0].pick, PickCheck::No { faster, .. } if faster == "b"), "{alone:?}");
        assert_eq!(alone[1], of(at(1.0, Some(16)), PickCheck::Yes));
    }

    /// Cells of the check are in no other result.
    #[test]
    fn other_processors_move_no_figure_of_the_plans() {
        let mut made = MadeUp::new(&["a"]);
        made.done("a", 1, 5.0);
        made.folded.take(Record::Speed(Speed { cell: "a2".into(), processors: HALF }));
        made.done("a", 2, 9.0);
        let observed = observe(&made.folded, &made.plan);
        assert_eq!(observed.works[0].series(0, "read", "time_ns"), [(1, 5.0)]);
    }
}
