//! The ratio of two sets of rounds that were not measured together, such as those of two runs:
//! nothing pairs them.
//!
//! Of all differences between a logarithm of one side and one of the other, the median estimates
//! the shift (Hodges & Lehmann 1963), and the K-th from either end bound it: the inversion of the
//! Wilcoxon-Mann-Whitney test (Hollander & Wolfe 1999, sections 4.2 and 4.3; Mann & Whitney 1947
//! for the chances). It takes both sides to scatter alike; what a whole run has for itself (its
//! day, its boot, where its files came to lie) is in the ratio and not in the interval.

use super::moments::{mean_of, variance};
use super::paired::{Estimate, Method};
use super::signed_rank::at_rank;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Counting exactly takes the product of both numbers squared; above this many in all, the normal
/// approximation is right to a few of thousands of differences.
const MOST_COUNTED: usize = 120;

/// Estimates the ratio from the logarithms of both sides' values, at `confidence` (0.95 for 95 %).
///
/// Where there are too few for the exact interval (below 4 and 4 at 95 %), Welch's t interval from
/// 3 and 3 on, which is preliminary; below, none. `None` for no values, and where one is not
/// finite.
pub fn unpaired_ratio(first: &[f64], second: &[f64], confidence: f64) -> Option<Estimate> {
    let mut all = first.iter().chain(second);
    if first.is_empty() || second.is_empty() || all.any(|log| !log.is_finite()) {
        return None;
    }
    let mut differences: Vec<f64> = first.iter().flat_map(|a| second.iter().map(move |b| a - b)).collect();
    let count = differences.len();
    let above = differences.iter().filter(|d| **d > 0.0).count() as f64 / count as f64;
    let exact = rank_sum_k(first.len(), second.len(), 1.0 - confidence).map(|(k, level)| {
        let bounds = (at_rank(&mut differences, k - 1), at_rank(&mut differences, count - k));
        (bounds, Method::RankSum, level)
    });
    let found = exact.or_else(|| welch(first, second, confidence).map(|bounds| (bounds, Method::LogT, confidence)));
    let centre = (at_rank(&mut differences, (count - 1) / 2) + at_rank(&mut differences, count / 2)) / 2.0;
    Some(Estimate {
        ratio: centre.exp(),
        interval: found.map(|((low, high), ..)| (low.exp(), high.exp())),
        method: found.map_or(Method::Anecdote, |(_, method, _)| method),
        level: found.map_or(0.0, |(.., level)| level),
        n: first.len().min(second.len()),
        share_above: above,
    })
}

/// One-sided p-value that `first` lies above `second` by no more than `shift`, all logarithms. Ties
/// count for that, so that the value is never too small.
pub fn rank_sum_above(first: &[f64], second: &[f64], shift: f64) -> f64 {
    let above = first.iter().map(|a| second.iter().filter(|b| a - **b > shift).count()).sum::<usize>();
    // P(U >= u) is P(U <= all - u).
    at_most(first.len(), second.len(), first.len() * second.len() - above)
}

/// Which of the p-values `p` to believe, so that any of them is false in a share `alpha` of all
/// times at most: Holm 1979.
pub fn holm(p: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut believed = vec![false; p.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if p[at].is_nan() || p[at] > alpha / (p.len() - rank) as f64 {
            break;
        }
        believed[at] = true;
    }
    believed
}

/// Rank K of the bounds among all differences, and the exact level of the interval, at a two-sided
/// error of at most `alpha`. `None` where there are too few values for any such K.
pub(crate) fn rank_sum_k(n: usize, m: usize, alpha: f64) -> Option<(usize, f64)> {
    if n + m > MOST_COUNTED {
        let (ranks, k) = approximation(n, m).map(|ranks| (ranks, ranks.inverse_cdf(alpha / 2.0) + 0.5))?;
        return (k >= 1.0).then(|| (k as usize, 1.0 - 2.0 * ranks.cdf(k.floor() - 0.5)));
    }
    let mut tail = 0.0;
    let mut best = None;
    for (index, chance) in chances(n, m).into_iter().enumerate() {
        tail += chance;
        if tail > alpha / 2.0 {
            break;
        }
        best = Some((index + 1, 1.0 - 2.0 * tail));
    }
    best
}

/// P(U <= u), where U counts the pairs of which the first is above the second.
fn at_most(n: usize, m: usize, u: usize) -> f64 {
    if n + m > MOST_COUNTED {
        return approximation(n, m).map_or(1.0, |ranks| ranks.cdf(u as f64 + 0.5));
    }
    chances(n, m).into_iter().take(u + 1).sum::<f64>().min(1.0)
}

/// Mean nm/2 and variance nm(n+m+1)/12; half a step is the continuity correction.
fn approximation(n: usize, m: usize) -> Option<Normal> {
    let (n, m) = (n as f64, m as f64);
    Normal::new(n * m / 2.0, (n * m * (n + m + 1.0) / 12.0).sqrt()).ok()
}

/// P(U = u) for every u, where all orders are alike. The largest of all is of the first side in n
/// of n + m cases, and then above all m of the second.
fn chances(n: usize, m: usize) -> Vec<f64> {
    // By how many of the first side there are, for none of the second.
    let mut by_first: Vec<Vec<f64>> = vec![vec![1.0]; n + 1];
    for second in 1..=m {
        for first in 1..=n {
            let mut now = vec![0.0; first * second + 1];
            let share = first as f64 / (first + second) as f64;
            by_first[first - 1].iter().enumerate().for_each(|(u, chance)| now[u + second] += share * chance);
            by_first[first].iter().enumerate().for_each(|(u, chance)| now[u] += (1.0 - share) * chance);
            by_first[first] = now;
        }
    }
    by_first.pop().unwrap_or_default()
}

/// The interval of the difference of means with unequal variances (Welch 1947); `None` below three
/// of either.
fn welch(first: &[f64], second: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let (n, m) = (first.len() as f64, second.len() as f64);
    if n < 3.0 || m < 3.0 {
        return None;
    }
    let (a, b) = (mean_of(first), mean_of(second));
    let (var_a, var_b) = (variance(first)? / n, variance(second)? / m);
    let variance = var_a + var_b;
    let freedom = variance.powi(2) / (var_a.powi(2) / (n - 1.0) + var_b.powi(2) / (m - 1.0));
    let freedom = if freedom.is_finite() { freedom } else { n + m - 2.0 };
    let half = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf((1.0 + confidence) / 2.0) * variance.sqrt();
    Some((a - b - half, a - b + half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::{Noise, PAIRS, replications, share_error};

    /// Table J in Hollander & Wolfe: P(U <= u) for small sides, and by counting orders.
    #[test]
    fn chances_are_the_counted_ones() {
        for ((n, m, u), wanted) in [
            ((3, 3, 0), 1.0 / 20.0),
            ((4, 4, 0), 1.0 / 70.0),
            ((4, 4, 1), 2.0 / 70.0),
            ((5, 5, 2), 4.0 / 252.0),
            ((1, 9, 4), 0.5),
            ((2, 3, 6), 1.0),
        ] {
            assert!((at_most(n, m, u) - wanted).abs() < 1e-12, "{n} {m} {u}");
        }
        let all: f64 = chances(40, 40).iter().sum();
        assert!((all - 1.0).abs() < 1e-9);
    }

    /// K as tables of the Mann-Whitney test have it at 5 %: its critical value and one.
    #[test]
    fn ranks_are_the_published_ones() {
        for (n, m, k) in [(4, 4, 1), (5, 5, 3), (6, 6, 6), (8, 8, 14), (10, 10, 24), (20, 20, 128), (5, 8, 7)] {
            assert_eq!(rank_sum_k(n, m, 0.05).map(|(k, _)| k), Some(k), "{n} {m}");
        }
        assert_eq!(rank_sum_k(3, 3, 0.05), None);
        let near = approximation(60, 60).unwrap().inverse_cdf(0.025) + 0.5;
        assert!((near.floor() - rank_sum_k(60, 60, 0.05).unwrap().0 as f64).abs() <= 3.0);
    }

    #[test]
    fn the_method_follows_from_the_number_of_values() {
        let values = [0.1, 0.2, 0.35, 0.4, 0.55];
        for (n, m, method) in
            [(1, 5, Method::Anecdote), (3, 3, Method::LogT), (4, 4, Method::RankSum), (3, 5, Method::RankSum)]
        {
            let found = unpaired_ratio(&values[..n], &values[..m], 0.95).unwrap();
            assert_eq!((found.method, found.interval.is_some()), (method, method != Method::Anecdote), "{n} {m}");
        }
        assert!(unpaired_ratio(&[], &values, 0.95).is_none() && unpaired_ratio(&[f64::NAN], &values, 0.95).is_none());
        let same = unpaired_ratio(&[0.5; 6], &[0.5; 6], 0.95).unwrap();
        assert_eq!((same.ratio, same.interval), (1.0, Some((1.0, 1.0))));
    }

    /// Intervals hold a shift of 5 % as often as they promise, under every noise of one shape on
    /// both sides.
    #[test]
    fn intervals_cover_what_they_promise() {
        let count = replications(1000, 10_000);
        for (index, pair) in PAIRS[..8].iter().enumerate() {
            for (n, m) in [(5, 5), (8, 8), (8, 20)] {
                let mut noise = Noise::new(40 + index as u64);
                let level = rank_sum_k(n, m, 0.05).unwrap().1;
                let mut holds = || {
                    let first: Vec<f64> = (0..n).map(|_| 0.05 + pair.first.draw(&mut noise)).collect();
                    let second: Vec<f64> = (0..m).map(|_| pair.first.draw(&mut noise)).collect();
                    let (low, high) = unpaired_ratio(&first, &second, 0.95).unwrap().interval.unwrap();
                    (low..=high).contains(&0.05f64.exp())
                };
                let share = (0..count).filter(|_| holds()).count() as f64 / count as f64;
                assert!((share - level).abs() < 4.0 * share_error(level, count), "{} {n} {m}: {share}", pair.name);
            }
        }
    }

    /// In at most 5 % of trials, one of twenty comparisons of the same with itself is believed.
    #[test]
    fn false_alarms_of_many_comparisons_are_as_rare_as_promised() {
        let (mut noise, count) = (Noise::new(50), replications(1000, 10_000));
        let mut alarm = || {
            let mut side = || (0..10).map(|_| noise.normal()).collect::<Vec<f64>>();
            let p: Vec<f64> = (0..20).map(|_| rank_sum_above(&side(), &side(), 0.0)).collect();
            holm(&p, 0.05).contains(&true)
        };
        let share = (0..count).filter(|_| alarm()).count() as f64 / count as f64;
        assert!(share < 0.05 + 4.0 * share_error(0.05, count), "{share}");
    }

    #[test]
    fn p_values_step_down() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005], 0.05), [true, false, false, true]);
        assert_eq!(holm(&[0.2, f64::NAN], 0.05), [false, false]);
        assert_eq!(holm(&[], 0.05), Vec::<bool>::new());
        let (old, new) = ([0.0, 0.01, 0.02, 0.03, 0.04], [0.2, 0.21, 0.22, 0.23, 0.24]);
        assert!((rank_sum_above(&new, &old, 0.1) - 1.0 / 252.0).abs() < 1e-12);
        assert!(rank_sum_above(&new, &old, 0.2) > 0.1 && rank_sum_above(&old, &new, 0.0) > 1.0 - 1e-9);
    }
}
