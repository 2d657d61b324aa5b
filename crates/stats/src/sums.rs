//! The ratio of two sums, for costs that add: a rare slow round counts in a sum and hardly in a
//! typical round.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// What all rounds of one target add up to, over those of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sums {
    /// First over second: 1.05 is "the first takes 5 % more in all".
    pub ratio: f64,
    /// At 95 %; `None` for fewer than three rounds.
    pub interval: Option<(f64, f64)>,
    pub rounds: usize,
}

impl Sums {
    /// The largest ratio that these rounds leave open; infinite where they are too few. What
    /// happened in none of them is not in it.
    pub fn most(&self) -> f64 {
        self.interval.map_or(f64::INFINITY, |(_, high)| high)
    }

    /// The first costs more than the second, by more than this share or surely.
    pub fn matters(&self, threshold: f64) -> bool {
        self.ratio > 1.0 + threshold || self.interval.is_some_and(|(low, _)| low > 1.0)
    }
}

/// From the values of the same rounds. The interval is Student's for the ratio of two means, by
/// linearisation (Cochran 1977, section 6.3): for sums of heavy tails it is too narrow, as no slow
/// round may have come yet.
///
/// `None` without rounds, and where a value is not above 0 or not finite.
pub fn ratio_of_sums(first: &[f64], second: &[f64]) -> Option<Sums> {
    let rounds = first.len();
    let is_sound = |values: &[f64]| values.iter().all(|value| *value > 0.0 && value.is_finite());
    if rounds == 0 || rounds != second.len() || !is_sound(first) || !is_sound(second) {
        return None;
    }
    let (n, all) = (rounds as f64, second.iter().sum::<f64>());
    let ratio = first.iter().sum::<f64>() / all;
    let squares: f64 = first.iter().zip(second).map(|(a, b)| (a - ratio * b).powi(2)).sum();
    let half = || {
        let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
        Some(t * (squares / (n - 1.0) / n).sqrt() / (all / n))
    };
    let interval = (rounds > 2).then(half).flatten().map(|half| ((ratio - half).max(0.0), ratio + half));
    Some(Sums { ratio, interval, rounds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::Noise;

    #[test]
    fn sums_are_those_of_the_rounds() {
        let found = ratio_of_sums(&[1.0, 2.0, 9.0], &[2.0, 2.0, 2.0]).expect("three rounds");
        assert_eq!((found.ratio, found.rounds), (2.0, 3));
        // t(0.975, 2) = 4.302653; residuals -3, -2, 5 of 2: sd sqrt(38 / 2), over sqrt(3) and a
        // mean of 2.
        let half = 4.302_653 * 19f64.sqrt() / 3f64.sqrt() / 2.0;
        let (low, high) = found.interval.expect("three rounds");
        assert!(low == 0.0 && (high - 2.0 - half).abs() < 1e-5, "{found:?}");
        assert_eq!(ratio_of_sums(&[1.0, 1.0], &[2.0, 2.0]).and_then(|sums| sums.interval), None);
        for (first, second) in [(&[][..], &[][..]), (&[1.0], &[1.0, 1.0]), (&[0.0], &[1.0]), (&[1.0], &[f64::NAN])] {
            assert_eq!(ratio_of_sums(first, second), None);
        }
    }

    /// Ratio, interval, rounds, whether it matters at 3 %, and the most that is left open.
    #[test]
    fn more_is_left_open_than_matters() {
        let cases = [
            (1.04, Some((0.9, 1.18)), 29, true, 1.18),
            (1.02, Some((1.01, 1.03)), 29, true, 1.03),
            (0.99, Some((0.94, 1.04)), 29, false, 1.04),
            (0.99, None, 2, false, f64::INFINITY),
        ];
        for (ratio, interval, rounds, does, most) in cases {
            let sums = Sums { ratio, interval, rounds };
            assert_eq!((sums.matters(0.03), sums.most()), (does, most), "{sums:?}");
        }
    }

    /// 95 % of the intervals hold the truth, within 3.5 standard errors of 2000 trials.
    #[test]
    fn intervals_of_sums_cover() {
        let mut noise = Noise::new(51);
        let mut covers = || {
            let mut times = |level: f64| (0..20).map(|_| level * (0.1 * noise.normal()).exp()).collect::<Vec<f64>>();
            let (low, high) = ratio_of_sums(&times(1.05), &times(1.0))?.interval?;
            Some(low <= 1.05 && 1.05 <= high)
        };
        let covered = (0..2000).filter(|_| covers() == Some(true)).count() as f64 / 2000.0;
        assert!((covered - 0.95).abs() < 3.5 * (0.95f64 * 0.05 / 2000.0).sqrt(), "{covered}");
    }
}
