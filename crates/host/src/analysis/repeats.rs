//! Where repeats belong: whether a phase is worth repeating on one file system, from a run that
//! did.

use super::series::{Observed, ObservedWork};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};
use pickfs_stats::Repeats;

/// What repeats of one phase of one work are worth, in the median over the targets.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatsAdvice {
    pub work: String,
    pub phase: String,
    pub found: Repeats,
}

/// For every phase that was repeated in at least three rounds; nothing for runs without repeats.
pub fn repeats_advice(folded: &Folded, observed: &Observed) -> Vec<RepeatsAdvice> {
    let of_work = |work: &ObservedWork| {
        let phases = work.phases().into_iter();
        phases.filter_map(|phase| of_phase(folded, work, phase)).collect::<Vec<_>>()
    };
    observed.works.iter().flat_map(of_work).collect()
}

fn of_phase(folded: &Folded, work: &ObservedWork, phase: &str) -> Option<RepeatsAdvice> {
    let nested: Vec<Nested> = (0..work.cells.len()).filter_map(|target| nested(folded, work, target, phase)).collect();
    let found = nested.iter().filter_map(|own| {
        let logs = without_what_all_share(own, &nested);
        pickfs_stats::best_repeats(&logs, own.cost_of_repeat, own.cost_of_round)
    });
    let mut found: Vec<Repeats> = found.collect();
    found.sort_by_key(|found| found.repeats);
    let middle = *found.get(found.len() / 2)?;
    Some(RepeatsAdvice { work: work.name.to_string(), phase: phase.to_string(), found: middle })
}

/// One target's repeats.
struct Nested {
    /// Logarithms of times, by round.
    logs: Vec<(u32, Vec<f64>)>,
    /// Nanoseconds, in the mean.
    cost_of_repeat: f64,
    /// Without its repeats.
    cost_of_round: f64,
}

fn nested(folded: &Folded, work: &ObservedWork, target: usize, phase: &str) -> Option<Nested> {
    let done = work.cells[target].values().filter(|cell| cell.outcome == Some(Outcome::Done));
    let rounds: Vec<(&FoldedCell, Vec<f64>)> = done.map(|cell| (*cell, times(folded, cell, phase))).collect();
    let repeated: Vec<&(&FoldedCell, Vec<f64>)> = rounds.iter().filter(|(_, times)| times.len() > 1).collect();
    if repeated.len() < 3 {
        return None;
    }
    let mean = |cost: &dyn Fn(&FoldedCell, &[f64]) -> f64| {
        repeated.iter().map(|(cell, times)| cost(cell, times)).sum::<f64>() / repeated.len() as f64
    };
    let cost_of_repeat = mean(&|cell, times| repeat_ns(folded, cell, times));
    let repeats_ns = |cell: &FoldedCell, times: &[f64]| times.len() as f64 * repeat_ns(folded, cell, times);
    let cost_of_round = mean(&|cell, times| (cell.ledger.total_ns() as f64 - repeats_ns(cell, times)).max(0.0));
    let logs = repeated.iter().map(|(cell, times)| (cell.round, times.iter().map(|time| time.ln()).collect()));
    Some(Nested { logs: logs.collect(), cost_of_repeat, cost_of_round })
}

fn times(folded: &Folded, cell: &FoldedCell, phase: &str) -> Vec<f64> {
    let own = folded.samples(cell).filter(|(of, metric, _)| *of == phase && *metric == "time_ns");
    own.map(|(.., value)| value).filter(|value| *value > 0.0).collect()
}

/// A repeat takes its time, and its share of the waiting that the cell did around its phases.
fn repeat_ns(folded: &Folded, cell: &FoldedCell, times: &[f64]) -> f64 {
    let played = folded.samples(cell).filter(|(_, metric, _)| *metric == "time_ns").count().max(1);
    times.iter().sum::<f64>() / times.len() as f64 + cell.ledger.settle_ns as f64 / played as f64
}

/// Comparisons are paired: what a round does to all its targets is no scatter between rounds. Of
/// several targets each is part of the mean that is taken off, which makes the rest smaller by the
/// root of (n - 1) / n. Where no round has another target, nothing is known to be shared; else
/// rounds without another one are left out.
fn without_what_all_share(own: &Nested, all: &[Nested]) -> Vec<Vec<f64>> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let in_round = |of: &Nested, round: u32| of.logs.iter().find(|(at, _)| *at == round).map(|(_, logs)| mean(logs));
    let means = |round: u32| all.iter().filter_map(|of| in_round(of, round)).collect::<Vec<f64>>();
    if own.logs.iter().all(|(round, _)| means(*round).len() < 2) {
        return own.logs.iter().map(|(_, logs)| logs.clone()).collect();
    }
    let centred = |(round, logs): &(u32, Vec<f64>)| {
        let means = means(*round);
        let (count, middle) = (means.len() as f64, mean(logs));
        let between = (middle - mean(&means)) * (count / (count - 1.0)).sqrt();
        (means.len() > 1).then(|| logs.iter().map(|log| log - middle + between).collect())
    };
    own.logs.iter().filter_map(centred).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of two repeats around these values.
    fn target(rounds: &[f64]) -> Nested {
        let logs = (1..).zip(rounds).map(|(round, value)| (round, vec![value - 0.01, value + 0.01])).collect();
        Nested { logs, cost_of_repeat: 1.0, cost_of_round: 10.0 }
    }

    #[test]
    fn rounds_of_one_target_differ_by_all_that_they_differ_by() {
        let alone = target(&[0.0, 0.1, -0.1]);
        let found = without_what_all_share(&alone, std::slice::from_ref(&alone));
        assert_eq!(found, alone.logs.iter().map(|(_, logs)| logs.clone()).collect::<Vec<_>>());
    }

    /// Each differs from the mean of both by half of their difference, and its variance is half of
    /// that of the difference. The third round has one of them alone.
    #[test]
    fn of_two_targets_what_they_share_goes() {
        let both = [target(&[0.5, 0.7, 0.9]), target(&[0.5, 0.5])];
        let found = without_what_all_share(&both[0], &both);
        let half = 0.2 / 2.0_f64.sqrt();
        let wanted = [[-0.01, 0.01], [half - 0.01, half + 0.01]];
        assert_eq!(found.len(), 2);
        assert!(found.iter().flatten().zip(wanted.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }
}
