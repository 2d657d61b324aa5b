//! How much a pick rests on the weights that were given to the parts of the work.
//!
//! Users do not know the weights of their work to the percent. So weights are drawn again and again
//! around the given ones, and the result is the share of draws in which each target comes out best.
//! Times are not known exactly either: with every draw of the weights the rounds are drawn anew, or
//! chance would show as a preference.

use super::paired::Estimate;
use rand_core::SeedableRng;
use rand_distr::{Distribution, Exp1, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{ContinuousCDF, Normal};

/// How close the drawn weights stay: a weight of one half is drawn with a standard deviation of
/// 0.11, of one tenth with 0.065.
const CONCENTRATION: f64 = 20.0;

/// What is known of the times of each target in each part.
#[derive(Clone, Copy, Debug)]
pub struct PartTimes<'a> {
    /// By target and part: the centre of the natural logarithm of the time.
    pub log_times: &'a [Vec<f64>],
    /// By target, part and round, see [`influences`]; all have the same number of rounds, or there
    /// is none.
    pub noise: &'a [Vec<Vec<f64>>],
}

/// By how much each round draws the centre of these logarithms of ratios to its side, so that
/// rounds drawn anew with random weights (Rubin 1981) move it by its standard error. That of ranks
/// is bounded (Huber & Ronchetti 2009), as the Hodges-Lehmann estimate is: one outlier moves
/// little. Nought for a round without a value.
pub fn influences(log_ratios: &[f64], found: &Estimate) -> Vec<f64> {
    let sorted = {
        let mut known: Vec<f64> = log_ratios.iter().copied().filter(|log| log.is_finite()).collect();
        known.sort_by(f64::total_cmp);
        known
    };
    let n = sorted.len() as f64;
    let quantile = || Normal::standard().inverse_cdf((1.0 + found.level) / 2.0);
    let error = found.half_width().map_or(0.0, |half| half / quantile());
    if sorted.len() < 2 {
        return vec![0.0; log_ratios.len()];
    }
    // Ranks over n + 1 have the variance (n-1) / 12(n+1), a mean with random weights that over n
    // + 1.
    let scale = error * (n + 1.0) * (12.0 / (n - 1.0)).sqrt();
    let rank = |log: f64| {
        let (below, up_to) = (sorted.partition_point(|other| *other < log), sorted.partition_point(|o| *o <= log));
        (below + up_to + 1) as f64 / 2.0
    };
    let influence = |log: &f64| if log.is_finite() { scale * (rank(*log) / (n + 1.0) - 0.5) } else { 0.0 };
    log_ratios.iter().map(influence).collect()
}

/// The share of draws, 0 to 1, in which each target is best; they sum to 1. Targets that are best
/// together share a draw.
///
/// `weights[part]` are 0 or more, and only their ratios count. Each draw is from the Dirichlet
/// distribution with 20 times the weights (in sum 20), made from gamma variates; a part of weight 0
/// keeps it. The score, lower being better, is the sum over the parts of weight times
///
/// * without `costs`: the logarithm of the time: weights are importance, and no unit or reference
///   matters;
/// * with `costs`: the time over the mean of all targets' times in that part: weights are the
///   parts' shares of the whole time of an average target.
///
/// All 0 where there are no draws, no weight above 0, or weights that are no numbers. A target
/// whose score is no number (a part that is not known, among those with a weight) is never best.
/// The same seed draws the same weights.
pub fn sensitivity(known: &PartTimes, weights: &[f64], draws: usize, seed: u64, costs: bool) -> Vec<f64> {
    let mut shares = vec![0.0; known.log_times.len()];
    let values = if costs { relative_times(known.log_times) } else { known.log_times.to_vec() };
    let rounds = known.noise.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let Some(gammas) = gammas(weights) else { return shares };
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..draws {
        let drawn: Vec<(usize, f64)> =
            gammas.iter().map(|(part, gamma)| (*part, gamma.sample(&mut generator))).collect();
        let rounds: Vec<f64> = (0..rounds).map(|_| Exp1.sample(&mut generator)).collect();
        let moved = |target: usize, part: usize, value: f64| {
            let by = known.noise.get(target).and_then(|parts| parts.get(part)).map_or(0.0, |own| shift(own, &rounds));
            if costs { value * by.exp() } else { value + by }
        };
        let of = |(target, values): (usize, &Vec<f64>)| score(values, &drawn, |part, value| moved(target, part, value));
        let scores: Vec<f64> = values.iter().enumerate().map(of).collect();
        let best = winners(&scores);
        best.iter().for_each(|target| shares[*target] += 1.0 / (best.len() * draws) as f64);
    }
    shares
}

/// One gamma distribution for each part that has a weight: divided by their sum, such variates are
/// Dirichlet. As the sum is the same for all targets, the division is left out.
fn gammas(weights: &[f64]) -> Option<Vec<(usize, Gamma<f64>)>> {
    let sum: f64 = weights.iter().sum();
    let weighty = weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
    let gammas = weighty.map(|(part, weight)| Some((part, Gamma::new(CONCENTRATION * weight / sum, 1.0).ok()?)));
    gammas.collect::<Option<Vec<_>>>().filter(|gammas| !gammas.is_empty())
}

/// Times over the mean time of the targets in each part, those left out that are not known.
fn relative_times(log_times: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mean = |part: usize| {
        let known: Vec<f64> =
            log_times.iter().filter_map(|t| t.get(part)).map(|log| log.exp()).filter(|t| t.is_finite()).collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    let relative = |target: &Vec<f64>| target.iter().enumerate().map(|(part, log)| log.exp() / mean(part)).collect();
    log_times.iter().map(relative).collect()
}

fn score(values: &[f64], drawn: &[(usize, f64)], moved: impl Fn(usize, f64) -> f64) -> f64 {
    let value = |part: usize| values.get(part).map_or(f64::NAN, |value| moved(part, *value));
    drawn.iter().map(|(part, weight)| weight * value(*part)).sum()
}

/// Shift of a centre by these weights of rounds; 0 where all weigh alike, as influences sum to 0.
fn shift(influences: &[f64], weights: &[f64]) -> f64 {
    let all: f64 = weights.iter().sum();
    let sum: f64 = influences.iter().zip(weights).map(|(influence, weight)| influence * weight).sum();
    if all > 0.0 { sum / all } else { 0.0 }
}

/// Those with the least score that is a number.
fn winners(scores: &[f64]) -> Vec<usize> {
    let least = scores.iter().copied().filter(|score| score.is_finite()).fold(f64::INFINITY, f64::min);
    (0..scores.len()).filter(|target| scores[*target].is_finite() && scores[*target] == least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paired_ratio;
    use statrs::distribution::Beta;

    fn logs(times: &[&[f64]]) -> Vec<Vec<f64>> {
        times.iter().map(|target| target.iter().map(|time| time.ln()).collect()).collect()
    }

    fn sure(log_times: &[Vec<f64>]) -> PartTimes<'_> {
        PartTimes { log_times, noise: &[] }
    }

    /// Two equals, of which one has the least time by a fifth of its standard error: without noise
    /// it is always best, with noise in Phi(0.2) of the draws.
    #[test]
    fn rounds_are_drawn_with_the_weights() {
        let logs: Vec<f64> = (0..20).map(|round| f64::from(round % 7) - 3.0).collect();
        let found = paired_ratio(&logs, 0.95).expect("twenty rounds");
        let error =
            found.half_width().expect("an interval") / Normal::standard().inverse_cdf((1.0 + found.level) / 2.0);
        let (times, none) = (vec![vec![0.0], vec![0.2 * error]], vec![vec![0.0; 20]]);
        let noise = vec![none, vec![influences(&logs, &found)]];
        let share =
            |noise: &[Vec<Vec<f64>>]| sensitivity(&PartTimes { log_times: &times, noise }, &[1.0], 40_000, 4, false)[0];
        let wanted = Normal::standard().cdf(0.2);
        assert!(share(&[]) > 0.999_999 && (share(&noise) - wanted).abs() < 0.01, "{} and {wanted}", share(&noise));
    }

    /// Each target's share within 0.01; 0.01 is four standard errors of 40 000 draws.
    fn near(got: &[f64], wanted: &[f64]) -> bool {
        got.len() == wanted.len() && got.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 0.01)
    }

    /// A name, the logarithms of the times, the weights, and the shares.
    type Case<'a> = (&'static str, Vec<Vec<f64>>, &'a [f64], &'a [f64]);

    #[test]
    fn shares_of_known_targets() {
        let (one, two, mixed): (&[f64], &[f64], &[f64]) = (&[1.0, 1.0], &[2.0, 2.0], &[1.0, 4.0]);
        let cases: [Case; 7] = [
            ("nobody", vec![], &[0.5, 0.5], &[]),
            ("alone", logs(&[one]), &[0.5, 0.5], &[1.0]),
            ("better in all", logs(&[two, one]), &[0.5, 0.5], &[0.0, 1.0]),
            ("twins", logs(&[one, two, one]), &[0.5, 0.5], &[0.5, 0.0, 0.5]),
            ("no weight for the worse part", logs(&[mixed, two]), &[1.0, 0.0], &[1.0, 0.0]),
            ("not known", vec![vec![0.0, f64::NAN], vec![1.0, 1.0], vec![0.0]], &[0.5, 0.5], &[0.0, 1.0, 0.0]),
            ("not known where nothing weighs", vec![vec![0.0, f64::NAN], vec![1.0, 1.0]], &[1.0, 0.0], &[1.0, 0.0]),
        ];
        for (name, times, weights, wanted) in cases {
            for costs in [false, true] {
                let got = sensitivity(&sure(&times), weights, 1000, 1, costs);
                assert!(near(&got, wanted), "{name}, costs {costs}: {got:?}");
            }
        }
    }

    #[test]
    fn without_weights_or_draws_nobody_is_best() {
        let times = logs(&[&[1.0, 1.0], &[2.0, 2.0]]);
        for (weights, draws) in [([0.0, 0.0], 10), ([-1.0, 2.0], 10), ([f64::NAN, 1.0], 10), ([0.5, 0.5], 0)] {
            assert_eq!(sensitivity(&sure(&times), &weights, draws, 1, false), [0.0, 0.0], "{weights:?}, {draws} draws");
        }
    }

    /// With two parts, the first one's weight u is drawn from Beta(20u, 20(1-u)). By logarithms the
    /// first target, twice as fast in part one and slower by 8 in part two, wins where u ln 2 >
    /// (1-u) ln 8, that is u > 3/4. As costs, over the means 1.5 and 4.5, where u / 1.5 > (1-u) 7 /
    /// 4.5, that is u > 0.7.
    #[test]
    fn shares_are_those_of_the_beta_distribution() {
        let times = logs(&[&[1.0, 8.0], &[2.0, 1.0]]);
        for (u, edge, costs) in
            [(0.5, 0.75, false), (0.7, 0.75, false), (0.9, 0.75, false), (0.5, 0.7, true), (0.8, 0.7, true)]
        {
            let wins = Beta::new(20.0 * u, 20.0 * (1.0 - u)).expect("shapes").sf(edge);
            let got = sensitivity(&sure(&times), &[u, 1.0 - u], 40_000, 2, costs);
            assert!(near(&got, &[wins, 1.0 - wins]), "{u}: {got:?}, not {wins}");
        }
    }

    #[test]
    fn the_seed_alone_decides_and_scales_do_not_matter() {
        let times = logs(&[&[1.0, 8.0], &[2.0, 1.0]]);
        let in_ns = logs(&[&[1e9, 8e9], &[2e9, 1e9]]);
        for costs in [false, true] {
            let shares =
                |times: &[Vec<f64>], weights: &[f64], seed| sensitivity(&sure(times), weights, 1000, seed, costs);
            let first = shares(&times, &[0.7, 0.3], 3);
            assert_eq!(first, shares(&times, &[0.7, 0.3], 3));
            assert_eq!(first, shares(&times, &[7.0, 3.0], 3), "weights need not sum to 1");
            assert!(near(&first, &shares(&in_ns, &[0.7, 0.3], 3)), "another unit");
            assert_ne!(first, shares(&times, &[0.7, 0.3], 4));
        }
    }
}
