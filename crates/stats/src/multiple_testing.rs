//! Many comparisons at once: how many false alarms are too many, and the exact tests
//! that give them.
//!
//! P-values order and flag tables that explore; a verdict never rests on one.

use super::signed_rank::{MOST_COUNTED, chances_of_sums};
use statrs::distribution::{Binomial, ContinuousCDF, Discrete, DiscreteCDF, Hypergeometric, Normal};

/// Share of intervals at 95 % that leave out the truth where all is well.
const LEAVES_OUT: f64 = 0.05;

/// Compares the same thing with itself `of` times, each by an interval at 95 %. True if `apart`
/// intervals without the ratio 1 occur by chance in fewer than 1 % of sound environments: more than
/// the 99 % quantile of a binomial distribution, as if the comparisons were independent.
pub fn too_many_apart(apart: usize, of: usize) -> bool {
    let Ok(sound) = Binomial::new(LEAVES_OUT, of as u64) else { return false };
    apart > 0 && sound.cdf(apart as u64 - 1) >= 0.99
}

/// Two-sided p-value of Wilcoxon's signed-rank test that the logarithms of ratios scatter about 0.
///
/// Exact up to 100 rounds, also with equal values, which share the average of their ranks, and with
/// zeros, which take the lowest ranks and then neither side (Pratt 1959); above, the normal
/// approximation with continuity correction. Without ties and zeros it is below 1 minus the level
/// of an interval if and only if that interval leaves out 0. `None` for no rounds, and where a
/// value is not finite.
pub fn signed_rank_p(log_ratios: &[f64]) -> Option<f64> {
    if log_ratios.is_empty() || log_ratios.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let ranks: Vec<usize> = log_ratios.iter().map(|d| doubled_rank(log_ratios, *d)).collect();
    let signed = ranks.iter().copied().zip(log_ratios).filter(|(_, d)| **d != 0.0);
    let (above, below): (Vec<_>, Vec<_>) = signed.partition(|(_, d)| **d > 0.0);
    let sum = |side: &[(usize, &f64)]| side.iter().map(|(rank, _)| rank).sum::<usize>();
    let smaller = sum(&above).min(sum(&below));
    let ranks: Vec<usize> = above.iter().chain(&below).map(|(rank, _)| *rank).collect();
    // The normal approximation is good to a hundredth of a p-value near 0.05 there.
    let tail = if ranks.len() > MOST_COUNTED {
        normal_tail(&ranks, smaller)
    } else {
        chances_of_sums(&ranks, smaller).iter().sum()
    };
    Some((2.0 * tail).min(1.0))
}

/// Twice the rank of the magnitude of `value`, so that the average of tied ranks is a whole number.
fn doubled_rank(values: &[f64], value: f64) -> usize {
    let below = values.iter().filter(|other| other.abs() < value.abs()).count();
    let equal = values.iter().filter(|other| other.abs() == value.abs()).count();
    2 * below + equal + 1
}

/// Each rank, or nothing: the sum has half of them as its mean and a quarter of their squares as
/// its variance. The smaller sum is never above the mean; one doubled rank is half a step of the
/// sum without ties.
fn normal_tail(ranks: &[usize], most: usize) -> f64 {
    let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
    let deviation = (ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0).sqrt();
    Normal::standard().cdf((most as f64 + 1.0 - mean) / deviation)
}

/// Two-sided p-value of Fisher's exact test that `a` of `a + b` and `c` of `c + d` are the same
/// share: the chance of all tables with the same sums that are no likelier than this one. 1 where a
/// sum is 0.
pub fn fisher_exact(a: u64, b: u64, c: u64, d: u64) -> f64 {
    let Ok(tables) = Hypergeometric::new(a + b + c + d, a + c, a + b) else { return 1.0 };
    // Equal chances come out unequal by rounding.
    let seen = tables.pmf(a) * (1.0 + 1e-7);
    let first_cells = (a + c).saturating_sub(c + d)..=(a + b).min(a + c);
    first_cells.map(|cell| tables.pmf(cell)).filter(|chance| *chance <= seen).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed_rank::{centre_and_interval, signed_rank_k};
    use pickfs_test_support::noise::{Noise, PAIRS, replications, share_error};

    /// The 99 % quantiles of Binomial(m, 0.05): of 1, 10, 20, 100 and 1000 comparisons 1, 3, 4, 11
    /// and 67.
    #[test]
    fn so_many_false_alarms_are_too_many() {
        for (of, most) in [(0, 0), (1, 1), (10, 3), (20, 4), (100, 11), (1000, 67)] {
            let found = [most, most + 1].map(|apart| too_many_apart(apart, of));
            assert_eq!(found, [false, true], "of {of}");
        }
    }

    /// Depression factors of Hollander & Wolfe 1999, example 3.1 (one-sided 0.020 there, here twice
    /// that); the others by counting all signs.
    #[test]
    fn p_values_of_known_rounds() {
        let depression = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];
        let cases: [(&[f64], Option<f64>); 9] = [
            (&[], None),
            (&[0.1, f64::NAN], None),
            (&[0.0, 0.0], Some(1.0)),
            (&[0.1], Some(1.0)),
            (&depression, Some(20.0 / 512.0)),
            (&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], Some(2.0 / 64.0)),
            (&[0.2, 0.2, 0.2, 0.2], Some(2.0 / 16.0)),
            (&[0.0, 0.2, 0.2, 0.2, 0.2], Some(2.0 / 16.0)),
            (&[-0.1, 0.1, 0.2], Some(0.75)),
        ];
        for (rounds, wanted) in cases {
            let got = signed_rank_p(rounds);
            let near = got.zip(wanted).is_some_and(|(got, wanted)| (got - wanted).abs() < 1e-12);
            assert!(near || got == wanted, "{rounds:?}: {got:?}, not {wanted:?}");
        }
    }

    #[test]
    fn p_values_and_intervals_agree() {
        let mut noise = Noise::new(14);
        for case in 0..400 {
            let n = 6 + case % 25;
            let rounds: Vec<f64> = (0..n).map(|_| 0.5 + noise.normal()).collect();
            let (k, level) = signed_rank_k(n, 0.05).expect("six and more");
            let (_, (low, high)) = centre_and_interval(&rounds, k).expect("as above");
            let p = signed_rank_p(&rounds).expect("finite");
            assert_eq!(p <= 1.0 - level + 1e-12, low > 0.0 || high < 0.0, "{rounds:?}: {p}");
        }
    }

    #[test]
    fn the_approximation_joins_the_exact_p_values() {
        let ranks: Vec<usize> = (1..=100).map(|rank| 2 * rank).collect();
        for sum in [3700, 3956, 4500, 5000] {
            let (exact, near) = (chances_of_sums(&ranks, sum).iter().sum::<f64>(), normal_tail(&ranks, sum));
            assert!((near / exact - 1.0).abs() < 0.05 && (near - exact).abs() < 1e-3, "{sum}: {exact} and {near}");
        }
        let many: Vec<f64> = (1..=300).map(|i| if i % 3 == 0 { -f64::from(i) } else { f64::from(i) }).collect();
        assert!(signed_rank_p(&many).is_some_and(|p| p < 1e-6));
    }

    /// Twelve rounds: p <= 5 % in at most 5 % of trials, under every symmetric noise; also rounded
    /// to ties and zeros.
    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        let count = replications(1000, 10_000);
        for (pair, step) in PAIRS[..8].iter().flat_map(|pair| [(pair, 1e-9), (pair, 0.01)]) {
            let mut noise = Noise::new(15);
            let mut rounds = || (0..12).map(|_| (pair.draw(&mut noise) / step).round() * step).collect::<Vec<f64>>();
            let alarms = (0..count).filter(|_| signed_rank_p(&rounds()).expect("finite") <= 0.05).count();
            let share = alarms as f64 / count as f64;
            assert!(share < 0.05 + 4.0 * share_error(0.05, count), "{} by {step}: {share}", pair.name);
        }
    }

    /// The lady tasting tea (Fisher 1935), and tables worked by hand.
    #[test]
    fn tables_of_known_chance() {
        let cases = [
            ([0, 0, 0, 0], 1.0),
            ([0, 10, 0, 10], 1.0),
            ([3, 1, 1, 3], 34.0 / 70.0),
            ([4, 0, 0, 4], 2.0 / 70.0),
            ([1, 9, 11, 3], 0.002_759_456),
            ([0, 8, 5, 3], 0.025_641_026),
        ];
        for ([a, b, c, d], wanted) in cases {
            for got in [fisher_exact(a, b, c, d), fisher_exact(c, d, a, b), fisher_exact(b, a, d, c)] {
                assert!((got - wanted).abs() < 1e-8, "{a} {b} {c} {d}: {got}, not {wanted}");
            }
        }
    }
}
