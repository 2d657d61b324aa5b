//! An interval of the median that assumes nothing but independent rounds: between two order
//! statistics.
//!
//! How many values lie below the median is a matter of fair coins, whatever the shape of the noise
//! (Thompson 1936; the inversion of the sign test). It is the widest interval we have, so it is for
//! where the signed-rank interval's symmetry is in doubt: the two sides' noise clearly has
//! different shapes.

use super::moments::mean_of;
use super::signed_rank::at_rank;
use statrs::distribution::{Binomial, DiscreteCDF};

/// Rank K of the bounds and the exact level (0 to 1) of the interval from the K-th smallest to the
/// K-th largest of `n` values at a two-sided error of at most `alpha`. `None` where `n` is too
/// small for any such K: below 6 at 95 %.
pub fn sign_k(n: usize, alpha: f64) -> Option<(usize, f64)> {
    let heads = Binomial::new(0.5, n as u64).ok()?;
    // The distribution function comes from a continued fraction, right to about 1e-14.
    let allowed = alpha / 2.0 + 1e-12;
    let k = (1..=n / 2).take_while(|k| heads.cdf(*k as u64 - 1) <= allowed).last()?;
    Some((k, 1.0 - 2.0 * heads.cdf(k as u64 - 1)))
}

/// Lower and upper bound of the median, in the unit of `values`, at a level of at least
/// `confidence` (0.95 for 95 %).
///
/// `None` for too few values (see [`sign_k`]), and where one is not finite.
pub fn order_statistic_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let (k, _) = sign_k(values.len(), 1.0 - confidence)?;
    let mut values = values.to_vec();
    let last = values.len() - k;
    let finite = values.iter().all(|value| value.is_finite());
    finite.then(|| (at_rank(&mut values, k - 1), at_rank(&mut values, last)))
}

/// True where the signed-rank interval leaves 0 out only because it takes the scatter for
/// symmetric: the scatter is clearly skewed (beyond 2.6 standard errors of normal noise, about 1
/// %), and the interval that assumes nothing holds 0.
pub fn rests_on_symmetry(log_ratios: &[f64], confidence: f64) -> bool {
    let holds_nought =
        order_statistic_interval(log_ratios, confidence).is_none_or(|(low, high)| low <= 0.0 && high >= 0.0);
    holds_nought && skewness_in_errors(log_ratios).is_some_and(|errors| errors.abs() > 2.6)
}

/// The third standardised moment over its standard error for normal values, sqrt(6(n-2) /
/// ((n+1)(n+3))) (D'Agostino 1970); `None` for fewer than eight values or where all are equal.
fn skewness_in_errors(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = mean_of(values);
    let moment = |power| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / n;
    let error = (6.0 * (n - 2.0) / ((n + 1.0) * (n + 3.0))).sqrt();
    (values.len() >= 8 && moment(2) > 0.0).then(|| moment(3) / moment(2).powf(1.5) / error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::{Noise, PAIRS, replications, share_error};

    /// n; K and the level in percent at 95 %.
    #[test]
    fn ranks_and_levels_are_the_published_ones() {
        let known = [
            (5, None),
            (6, Some((1, 96.88))),
            (8, Some((1, 99.22))),
            (10, Some((2, 97.85))),
            (11, Some((2, 98.83))),
            (15, Some((4, 96.48))),
            (20, Some((6, 95.86))),
            (28, Some((9, 96.43))),
            (40, Some((14, 96.15))),
        ];
        for (n, wanted) in known {
            let got = sign_k(n, 0.05);
            let near = got
                .zip(wanted)
                .is_some_and(|(got, wanted)| got.0 == wanted.0 && (100.0 * got.1 - wanted.1).abs() < 0.0051);
            assert!(near || got == wanted, "n = {n}: {got:?}, not {wanted:?}");
        }
        assert_eq!([0, 1].map(|n| sign_k(n, 0.05)), [None, None]);
    }

    /// For many values the ranks are those of the normal approximation: (n - z sqrt(n)) / 2,
    /// rounded.
    #[test]
    fn ranks_of_many_values_are_near_the_normal_ones() {
        for n in [100usize, 1000, 10_000] {
            let near = (n as f64 - 1.96 * (n as f64).sqrt()) / 2.0;
            let (k, level) = sign_k(n, 0.05).expect("many values");
            assert!((k as f64 - near).abs() <= 1.0 && (0.95..0.97).contains(&level), "{n}: {k}, {near}, {level}");
        }
    }

    #[test]
    fn a_level_asked_for_exactly_is_given() {
        let level = |found: Option<(usize, f64)>| found.map(|(k, level)| (k, (level * 1e9).round() / 1e9));
        assert_eq!(level(sign_k(6, 1.0 - 0.96875)), Some((1, 0.96875)));
    }

    #[test]
    fn intervals_of_known_values() {
        let ten: Vec<f64> = [7, 3, 9, 1, 5, 10, 2, 8, 4, 6].map(f64::from).to_vec();
        let no_number = [1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN];
        let cases = [
            (&[][..], 0.95, None),
            (&ten[..5], 0.95, None),
            (&ten[..6], 0.95, Some((1.0, 10.0))),
            (&ten, 0.95, Some((2.0, 9.0))),
            (&ten, 0.99, Some((1.0, 10.0))),
            (&no_number, 0.95, None),
        ];
        for (values, confidence, wanted) in cases {
            assert_eq!(order_statistic_interval(values, confidence), wanted, "{values:?} at {confidence}");
        }
    }

    /// No noise is too skewed: the share that holds the median of unlike noise is the exact level,
    /// within four standard errors. The median is that of a million draws.
    #[test]
    fn unlike_noise_keeps_the_level() {
        let unlike = PAIRS[8];
        let mut noise = Noise::new(6);
        let mut draws = |count: usize| (0..count).map(|_| unlike.draw(&mut noise)).collect::<Vec<f64>>();
        let median = at_rank(&mut draws(1_000_000), 500_000);
        let count = replications(1000, 20_000);
        let mut holds = || {
            let (low, high) = order_statistic_interval(&draws(15), 0.95).expect("15 are enough");
            low <= median && median <= high
        };
        let share = (0..count).filter(|_| holds()).count() as f64 / count as f64;
        assert!((share - 0.9648).abs() < 4.0 * share_error(0.9648, count), "{share}");
    }

    /// Nine rounds a little above nought and six far below: ranks call that a difference, coins do
    /// not.
    #[test]
    fn what_rests_on_symmetry_is_told() {
        let skewed = |sign: f64| (0..20).map(|i| sign * if i < 12 { 0.1 * f64::from(i * i) } else { -0.01 }).collect();
        let cases: [(&str, Vec<f64>, bool); 5] = [
            ("skewed", skewed(1.0), true),
            ("skewed the other way", skewed(-1.0), true),
            ("skewed, but all above", (0..20).map(|i| 0.01 + f64::from(i * i)).collect(), false),
            ("symmetric", (-10..10).map(f64::from).collect(), false),
            ("too few", vec![0.0, 0.0, 0.0, 0.0, 9.0], false),
        ];
        for (name, values, wanted) in cases {
            assert_eq!(rests_on_symmetry(&values, 0.95), wanted, "{name}");
        }
        assert_eq!(skewness_in_errors(&[1.0; 9]), None);
        // 0, 0, 0, 0, 0, 0, 0, 1: skewness 6/sqrt(7) = 2.2678, standard error sqrt(36/99) = 0.6030.
        let found = skewness_in_errors(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
        assert!((found - 2.267_786_8 / 0.603_022_7).abs() < 1e-6, "{found}");
    }
}
