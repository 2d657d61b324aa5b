//! How many repeats inside one file system are worth their time.
//!
//! A repeat is cheap and a fresh file system is dear, but repeats average out only what varies from
//! run to run, never how this file system happened to be laid out. Kalibera & Jones 2013 weigh the
//! two variances against the two costs. Repeats never count as rounds: treating ten runs on one
//! file system as ten observations gives intervals that hold the truth in 11 % of cases where 95 %
//! was promised.

use super::moments::mean_of;

/// Most repeats that are sensible to run; where rounds do not differ at all, there is no other
/// bound.
const MOST_REPEATS: f64 = 100.0;

/// Where the noise comes from, and what follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeats {
    /// Variance of the repeats within one round, T1^2, in squared logarithms: 0.0001 is a standard
    /// deviation of 1 %.
    pub within: f64,
    /// Variance between rounds beyond what their repeats explain, T2^2; 0 where the estimate falls
    /// below.
    pub between: f64,
    /// Repeats in each round that give the narrowest interval for the time spent: 1 to 100.
    pub repeats: u32,
}

/// From natural logarithms of what was measured, `logs[round][repeat]`, and what one more repeat
/// and one more round without its repeats cost, in any one unit.
///
/// `None` for fewer than two rounds, a round without values, no round with two, a value that is not
/// finite, or a cost below 0 (for a repeat: 0). A pilot of five rounds with three repeats is enough
/// to choose by.
pub fn best_repeats(logs: &[Vec<f64>], cost_of_repeat: f64, cost_of_round: f64) -> Option<Repeats> {
    if !(cost_of_repeat > 0.0 && cost_of_round >= 0.0) {
        return None;
    }
    let (within, between) = variances(logs)?;
    let gain = cost_of_round / cost_of_repeat * within;
    // Nothing to average out, or nothing saved by it; 0 / 0 would be no number.
    let worth = if gain == 0.0 { 1.0 } else { (gain / between).sqrt().ceil() };
    let repeats = worth.clamp(1.0, MOST_REPEATS) as u32;
    Some(Repeats { within, between, repeats })
}

/// Variance within rounds, and between them by the corrected form of the paper's equation: that of
/// the rounds' means less the share of the repeats in it. With unequal numbers of repeats that
/// share is the mean of their reciprocals.
fn variances(logs: &[Vec<f64>]) -> Option<(f64, f64)> {
    let values: usize = logs.iter().map(Vec::len).sum();
    let usable = logs.len() >= 2 && logs.iter().all(|round| !round.is_empty()) && values > logs.len();
    if !usable || logs.iter().flatten().any(|value| !value.is_finite()) {
        return None;
    }
    let within = logs.iter().map(|round| squares(round)).sum::<f64>() / (values - logs.len()) as f64;
    let means: Vec<f64> = logs.iter().map(|round| mean_of(round)).collect();
    let of_means = squares(&means) / (means.len() - 1) as f64;
    let shares: Vec<f64> = logs.iter().map(|round| 1.0 / round.len() as f64).collect();
    Some((within, (of_means - within * mean_of(&shares)).max(0.0)))
}

/// The sum of squared differences from the mean.
fn squares(values: &[f64]) -> f64 {
    let centre = mean_of(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::{Noise, replications, share_error};
    use statrs::distribution::{ContinuousCDF, StudentsT};

    /// Rounds that differ with standard deviation `layout`, and repeats in them with `run`.
    fn pilot(rounds: usize, repeats: usize, (layout, run): (f64, f64), noise: &mut Noise) -> Vec<Vec<f64>> {
        let mut round = |_| {
            let level = layout * noise.normal();
            (0..repeats).map(|_| level + run * noise.normal()).collect()
        };
        (0..rounds).map(&mut round).collect()
    }

    /// Means 2, 5 and 5 with variance 3; sums of squares within 2, 2 and 8, so 12 / 6 = 2; 3 - 2/3
    /// remains.
    #[test]
    fn variances_of_a_known_table() {
        let table = [vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0], vec![3.0, 5.0, 7.0]];
        let (within, between) = variances(&table).expect("balanced");
        assert!((within - 2.0).abs() < 1e-12 && (between - 7.0 / 3.0).abs() < 1e-12, "{within} {between}");
    }

    #[test]
    fn what_has_no_two_levels_is_none() {
        let cases: [&[Vec<f64>]; 6] = [
            &[],
            &[vec![1.0, 2.0]],
            &[vec![1.0], vec![2.0]],
            &[vec![1.0, 2.0], vec![]],
            &[vec![1.0, f64::NAN], vec![1.0, 2.0]],
            &[vec![f64::INFINITY, 1.0], vec![1.0]],
        ];
        for logs in cases {
            assert_eq!(best_repeats(logs, 1.0, 1.0), None, "{logs:?}");
        }
        let good = [vec![1.0, 2.0], vec![2.0, 4.0]];
        let costs = [(0.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (f64::NAN, 1.0), (1.0, f64::NAN), (1.0, 0.0)];
        let some = costs.map(|(repeat, round)| best_repeats(&good, repeat, round).is_some());
        assert_eq!(some, [false, false, false, false, false, true]);
    }

    /// Layout 5 %, run 1 %: a round is best spent on one repeat unless it costs more than 25. Run 5
    /// %, layout 1 %: five times the root of the ratio of costs. (Rounded up: within one, as the
    /// variances are estimates.)
    #[test]
    fn repeats_follow_from_variances_and_costs() {
        let (layout, run) = ((0.05, 0.01), (0.01, 0.05));
        let cases = [(layout, 1.0, 1), (layout, 20.0, 1), (layout, 50.0, 2), (run, 1.0, 5), (run, 9.0, 15)];
        for (noise, cost_of_round, wanted) in cases {
            let logs = pilot(4000, 3, noise, &mut Noise::new(2));
            let found = best_repeats(&logs, 1.0, cost_of_round).expect("balanced");
            let near = |got: f64, sd: f64| (got / sd.powi(2) - 1.0).abs() < 0.6;
            assert!(found.repeats == wanted || found.repeats == wanted + 1 && wanted > 2, "{noise:?}: {found:?}");
            assert!(near(found.between, noise.0) && near(found.within, noise.1), "{noise:?}: {found:?}");
        }
    }

    /// Alike rounds ask for as many repeats as there may be, equal values for one.
    #[test]
    fn the_ends_are_bounded() {
        let repeats = |logs: &[Vec<f64>]| best_repeats(logs, 1.0, 10.0).map(|found| found.repeats);
        assert_eq!(repeats(&[vec![1.0, 2.0], vec![2.0, 1.0], vec![1.0, 2.0]]), Some(100));
        assert_eq!(repeats(&[vec![1.0, 1.0], vec![1.0, 1.0]]), Some(1));
        assert_eq!(repeats(&[vec![1.0, 1.0], vec![2.0, 2.0]]), Some(1));
        let free_rounds = best_repeats(&[vec![1.0, 2.0], vec![2.0, 1.0]], 1.0, 0.0);
        assert_eq!(free_rounds.map(|found| found.repeats), Some(1));
    }

    /// The mean of the estimates over many pilots of five rounds, some with fewer repeats, is the
    /// truth: 4 % of it.
    #[test]
    fn unequal_rounds_do_not_bias_the_variances() {
        let (mut noise, count) = (Noise::new(21), replications(4000, 40_000));
        let mut sums = (0.0, 0.0);
        for _ in 0..count {
            let mut logs = pilot(5, 3, (0.05, 0.03), &mut noise);
            logs[0].truncate(1);
            logs[1].truncate(2);
            let (within, between) = variances(&logs).expect("nearly balanced");
            sums = (sums.0 + within / count as f64, sums.1 + between / count as f64);
        }
        let off = (sums.0 / 9e-4 - 1.0, sums.1 / 25e-4 - 1.0);
        assert!(off.0.abs() < 0.04 && off.1.abs() < 0.04, "{off:?}");
    }

    /// The share of Student's 95 % intervals of these values that hold the truth, 0.
    fn coverage(values: impl Fn(Vec<Vec<f64>>) -> Vec<f64>, rounds: usize, count: usize) -> f64 {
        let mut noise = Noise::new(31);
        let mut holds = || {
            let values = values(pilot(rounds, 10 / rounds, (0.05, 0.01), &mut noise));
            let n = values.len() as f64;
            let t = StudentsT::new(0.0, 1.0, n - 1.0).expect("degrees").inverse_cdf(0.975);
            mean_of(&values).abs() <= t * (squares(&values) / (n - 1.0) / n).sqrt()
        };
        (0..count).filter(|_| holds()).count() as f64 / count as f64
    }

    /// Ten runs as ten observations, whatever file system they were on, and the means of the
    /// rounds: 11 %, 45 % and 80 % against 95 %. One percentage point and four standard errors.
    #[test]
    fn repeats_are_no_rounds() {
        let count = replications(1000, 20_000);
        let off = |got: f64, wanted: f64| (got - wanted).abs() > 0.01 + 4.0 * share_error(wanted, count);
        for (rounds, wanted) in [(1, 0.11), (2, 0.45), (5, 0.80), (10, 0.95)] {
            let pooled = coverage(|logs| logs.concat(), rounds, count);
            assert!(!off(pooled, wanted), "{rounds} rounds: {pooled}, not {wanted}");
            let by_round = |logs: Vec<Vec<f64>>| logs.iter().map(|round| mean_of(round)).collect();
            assert!(rounds == 1 || !off(coverage(by_round, rounds, count), 0.95), "{rounds} rounds by means");
        }
    }
}
