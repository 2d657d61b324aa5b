//! Many works, one value: what the one verdict is made from.
//!
//! Where the plan says how often each work is done, costs add: the value of a round is the time
//! that all of it takes. Where it says how much each matters, or nothing, the value is the weighted
//! geometric mean of the times: its logarithm is the weighted sum of logarithms, so neither a
//! reference nor a unit can turn the order around. Every round holds every target and work, so what
//! holds for one work's times holds for these values.

use super::series::{Observed, ObservedWork, Rounds, at_round};
use pickfs_core::metric::Combine;
use pickfs_core::plan::{Plan, VerdictTerm};

/// One value a round for every target, in nanoseconds or whatever the metric is in: less is better
/// where it is for the metric. A round that lacks a part does not count.
pub(crate) fn score(plan: &Plan, observed: &Observed, metric: &str, how: Combine) -> Vec<Rounds> {
    combined(plan, observed, &named_parts(plan, observed), metric, how)
}

/// The same of what is known of whole works only, such as space: phases share their work's value.
pub(crate) fn score_of_works(plan: &Plan, observed: &Observed, metric: &str, how: Combine) -> Vec<Rounds> {
    let mut works: Vec<VerdictTerm> = Vec::new();
    for named in named_parts(plan, observed) {
        match works.iter_mut().find(|part| part.work == named.work) {
            _ if metric == "time_ns" => works.push(named),
            Some(part) => part.amount = part.amount.max(named.amount),
            None => works.push(VerdictTerm { phase: None, ..named }),
        }
    }
    combined(plan, observed, &works, metric, how)
}

fn combined(plan: &Plan, observed: &Observed, parts: &[VerdictTerm], metric: &str, how: Combine) -> Vec<Rounds> {
    let series: Vec<(f64, Vec<Rounds>)> =
        parts.iter().map(|named| (named.amount, part(named, observed, metric, how))).collect();
    let of_target = |target: usize| {
        let own: Vec<(f64, &Rounds)> = series.iter().map(|(amount, targets)| (*amount, &targets[target])).collect();
        if plan.verdict.has_counts() { added(&own) } else { mean(&own) }
    };
    (0..observed.targets.len()).map(of_target).collect()
}

/// The works that the verdict is about: a work outside the verdict excludes no target either.
pub(crate) fn works_of_verdict<'a>(plan: &Plan, observed: &'a Observed<'a>) -> Vec<&'a ObservedWork<'a>> {
    let parts = &plan.verdict.parts;
    let counts = |work: &&ObservedWork| parts.is_empty() || parts.iter().any(|part| part.work == work.name);
    observed.works.iter().filter(counts).collect()
}

/// The parts of the verdict: those of the plan, or every work alike.
pub(crate) fn named_parts(plan: &Plan, observed: &Observed) -> Vec<VerdictTerm> {
    if !plan.verdict.parts.is_empty() {
        return plan.verdict.parts.clone();
    }
    let alike = |work: &str| VerdictTerm { work: work.to_string(), phase: None, amount: 1.0 };
    observed.works.iter().map(|work| alike(work.name)).collect()
}

/// The values of one part for every target.
pub(crate) fn part(part: &VerdictTerm, observed: &Observed, metric: &str, how: Combine) -> Vec<Rounds> {
    let found = observed.works.iter().find(|work| work.name == part.work);
    match (found, &part.phase) {
        (None, _) => vec![Rounds::new(); observed.targets.len()],
        (Some(work), None) => work.over_phases(metric, how),
        (Some(work), Some(phase)) => work.in_phase(phase, metric),
    }
}

fn added(parts: &[(f64, &Rounds)]) -> Rounds {
    in_all(parts, |values| values.map(|(amount, value)| amount * value).sum())
}

fn mean(parts: &[(f64, &Rounds)]) -> Rounds {
    let all: f64 = parts.iter().map(|(amount, _)| amount).sum();
    in_all(parts, |values| values.map(|(amount, value)| amount / all * value.ln()).sum::<f64>().exp())
}

/// The rounds that every part has.
fn in_all(parts: &[(f64, &Rounds)], value: impl Fn(&mut dyn Iterator<Item = (f64, f64)>) -> f64) -> Rounds {
    let Some(((_, first), others)) = parts.split_first() else { return Rounds::new() };
    if others.is_empty() && parts[0].0 == 1.0 {
        return (*first).clone();
    }
    let of_round = |&(round, _): &(u32, f64)| {
        let all = parts.iter().map(|(amount, rounds)| Some((*amount, at_round(rounds, round)?)));
        let mut values = all.collect::<Option<Vec<_>>>()?.into_iter();
        Some((round, value(&mut values)))
    };
    first.iter().filter_map(of_round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(values: &[(u32, f64)]) -> Rounds {
        values.to_vec()
    }

    #[test]
    fn costs_add_and_weights_multiply() {
        let (a, b) = (rounds(&[(1, 2.0), (2, 3.0), (4, 1.0)]), rounds(&[(1, 8.0), (3, 5.0), (4, 16.0)]));
        assert_eq!(added(&[(10.0, &a), (1.0, &b)]), [(1, 28.0), (4, 26.0)]);
        let close = |got: Rounds, wanted: &[(u32, f64)]| {
            assert!(got.iter().zip(wanted).all(|(g, w)| g.0 == w.0 && (g.1 - w.1).abs() < 1e-12), "{got:?}");
        };
        close(mean(&[(1.0, &a), (1.0, &b)]), &[(1, 4.0), (4, 4.0)]);
        close(mean(&[(3.0, &a), (1.0, &b)]), &[(1, 2.0f64.powf(0.75) * 8.0f64.powf(0.25)), (4, 2.0)]);
    }

    /// Whatever each work's times are multiplied with (another unit, another reference), ratios of
    /// scores stay.
    #[test]
    fn no_unit_and_no_reference_turns_the_order_around() {
        let (a, b) = (rounds(&[(1, 2.0)]), rounds(&[(1, 8.0)]));
        let (c, d) = (rounds(&[(1, 3.0)]), rounds(&[(1, 5.0)]));
        let scaled = |series: &Rounds, by: f64| rounds(&[(1, series[0].1 * by)]);
        let ratio = |x: f64, y: f64| {
            let of = |a: &Rounds, b: &Rounds| mean(&[(1.0, &scaled(a, x)), (2.0, &scaled(b, y))])[0].1;
            of(&a, &b) / of(&c, &d)
        };
        assert!((ratio(1.0, 1.0) - ratio(1e9, 0.01)).abs() < 1e-12);
    }

    #[test]
    fn one_work_alone_is_its_own_score() {
        let a = rounds(&[(1, 2.0), (2, 0.0)]);
        assert_eq!((mean(&[(1.0, &a)]), added(&[(1.0, &a)])), (a.clone(), a));
        assert_eq!(added(&[]), []);
    }
}
