//! The ratio of two targets from their rounds, with its interval.
//!
//! From six rounds on: the Hodges-Lehmann estimate and the exact signed-rank interval of the log
//! ratios. Student's interval covers too little when the two sides' noise has different shapes, and
//! is many times wider with a few outliers; a bootstrap of the median covers too little at any n we
//! can afford. With fewer rounds Student's is all there is, so it is given and called preliminary.

use super::moments::{mean_of, variance};
use super::random_effects::variance_of;
use super::signed_rank::{centre_and_interval, signed_rank_k};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// How an estimate was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Hodges-Lehmann estimate, exact signed-rank interval.
    SignedRank,
    /// For rounds without pairs: Hodges-Lehmann shift, exact rank-sum interval.
    RankSum,
    /// Mean and Student's t interval of the log ratios: preliminary. For three to five rounds, and
    /// for the few more that are still too few for a signed-rank interval at a high level (6 at 97
    /// or 98.4 %, 7 at 99 %).
    LogT,
    /// Fewer than three rounds: no interval.
    Anecdote,
}

/// A ratio and how well it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// First over second: 1.05 is "the first takes 5 % more".
    pub ratio: f64,
    /// Lower and upper bound of the ratio.
    pub interval: Option<(f64, f64)>,
    pub method: Method,
    /// The interval's level, 0 to 1; exact for [`Method::SignedRank`], so at least what was asked
    /// for. 0 where there is no interval.
    pub level: f64,
    /// Rounds.
    pub n: usize,
    /// Share of the rounds, 0 to 1, in which the first was above the second.
    pub share_above: f64,
}

impl Estimate {
    /// Half the width of the interval of the ratio's natural logarithm: 0.02 is about 2 % to either
    /// side.
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|(low, high)| (high.ln() - low.ln()) / 2.0)
    }

    /// Variance of the ratio's logarithm, by the interval of these rounds alone; `None` without
    /// one.
    pub fn variance(&self) -> Option<f64> {
        Some(variance_of(self.half_width()?, self.level))
    }

    /// The same comparison seen from the other side: a round with equal values is above on both.
    pub fn swapped(&self) -> Estimate {
        let interval = self.interval.map(|(low, high)| (1.0 / high, 1.0 / low));
        Estimate { ratio: 1.0 / self.ratio, interval, share_above: 1.0 - self.share_above, ..self.clone() }
    }
}

/// Estimates the ratio from one `ln(first / second)` per round, at `confidence` (0.95 for 95 %).
///
/// `None` for no rounds, and where a value is not finite (a time of zero): a round is never left
/// out for its value.
pub fn paired_ratio(log_ratios: &[f64], confidence: f64) -> Option<Estimate> {
    if log_ratios.is_empty() || log_ratios.iter().any(|d| !d.is_finite()) {
        return None;
    }
    signed_rank(log_ratios, confidence).or_else(|| log_t(log_ratios, confidence)).or_else(|| Some(anecdote(log_ratios)))
}

/// `None` where there are too few rounds.
fn signed_rank(log_ratios: &[f64], confidence: f64) -> Option<Estimate> {
    if log_ratios.len() < 6 {
        return None;
    }
    let (k, level) = signed_rank_k(log_ratios.len(), 1.0 - confidence)?;
    let (centre, interval) = centre_and_interval(log_ratios, k)?;
    Some(estimate(log_ratios, centre, Some(interval), Method::SignedRank, level))
}

/// `None` where there are too few rounds.
fn log_t(log_ratios: &[f64], confidence: f64) -> Option<Estimate> {
    let n = log_ratios.len() as f64;
    if n < 3.0 {
        return None;
    }
    let centre = mean_of(log_ratios);
    let variance = variance(log_ratios)?;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf((1.0 + confidence) / 2.0);
    let half = t * (variance / n).sqrt();
    Some(estimate(log_ratios, centre, Some((centre - half, centre + half)), Method::LogT, confidence))
}

fn anecdote(log_ratios: &[f64]) -> Estimate {
    estimate(log_ratios, mean_of(log_ratios), None, Method::Anecdote, 0.0)
}

/// From logarithms to ratios.
fn estimate(log_ratios: &[f64], centre: f64, interval: Option<(f64, f64)>, method: Method, level: f64) -> Estimate {
    let n = log_ratios.len();
    let above = log_ratios.iter().filter(|d| **d > 0.0).count();
    let interval = interval.map(|(low, high)| (low.exp(), high.exp()));
    Estimate { ratio: centre.exp(), interval, method, level, n, share_above: above as f64 / n as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::Noise;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    fn same(a: &Estimate, b: &Estimate) -> bool {
        let bounds = |e: &Estimate| e.interval.map_or(vec![], |(low, high)| vec![low, high]);
        let numbers = |e: &Estimate| [bounds(e), vec![e.ratio, e.level, e.share_above]].concat();
        let all_close = numbers(a).iter().zip(numbers(b)).all(|(x, y)| close(*x, y));
        all_close && (a.method, a.n, numbers(a).len()) == (b.method, b.n, numbers(b).len())
    }

    #[test]
    fn the_method_follows_from_the_number_of_rounds() {
        let rounds: Vec<f64> = (0..12).map(|i| 0.01 * f64::from(i * i % 7)).collect();
        let cases = [
            (1, 0.95, Method::Anecdote, 0.0),
            (2, 0.95, Method::Anecdote, 0.0),
            (3, 0.95, Method::LogT, 0.95),
            (5, 0.80, Method::LogT, 0.80),
            (6, 0.95, Method::SignedRank, 0.96875),
            (6, 0.97, Method::LogT, 0.97),
            (7, 0.97, Method::SignedRank, 0.984375),
            (8, 0.99, Method::SignedRank, 0.9921875),
        ];
        for (n, confidence, method, level) in cases {
            let got = paired_ratio(&rounds[..n], confidence).expect("rounds are finite");
            assert_eq!((got.method, got.level, got.n), (method, level, n), "n = {n} at {confidence}");
            assert_eq!(got.interval.is_some(), method != Method::Anecdote);
        }
    }

    #[test]
    fn nothing_and_nonsense_give_no_estimate() {
        for rounds in [&[][..], &[0.1, f64::NAN, 0.2], &[f64::INFINITY]] {
            assert_eq!(paired_ratio(rounds, 0.95), None);
        }
    }

    /// t(0.975, 2) = 4.302653 for mean 0.02 and standard deviation 0.01.
    #[test]
    fn three_rounds_give_students_interval() {
        let got = paired_ratio(&[0.01, 0.02, 0.03], 0.95).expect("three rounds");
        let half = 4.302653 * 0.01 / 3f64.sqrt();
        assert!((got.half_width().expect("an interval") - half).abs() < 1e-7);
        assert!(close(got.ratio, 0.02f64.exp()) && got.share_above == 1.0);
    }

    #[test]
    fn equal_rounds_give_a_ratio_of_one() {
        let got = paired_ratio(&[0.0; 8], 0.95).expect("eight rounds");
        assert_eq!((got.ratio, got.interval, got.share_above), (1.0, Some((1.0, 1.0)), 0.0));
    }

    fn logs(first: &[f64], second: &[f64]) -> Vec<f64> {
        first.iter().zip(second).map(|(a, b)| a.ln() - b.ln()).collect()
    }

    #[test]
    fn sides_mirror_and_units_cancel() {
        let mut noise = Noise::new(7);
        for n in [1, 2, 3, 5, 6, 9, 20] {
            let mut times = || (0..n).map(|_| 3.0 + noise.normal().abs()).collect::<Vec<f64>>();
            let (a, b) = (times(), times());
            let scaled = |times: &[f64]| times.iter().map(|t| t * 1e9).collect::<Vec<f64>>();
            let ab = paired_ratio(&logs(&a, &b), 0.95).expect("finite");
            let ba = paired_ratio(&logs(&b, &a), 0.95).expect("finite");
            let in_ns = paired_ratio(&logs(&scaled(&a), &scaled(&b)), 0.95).expect("finite");
            assert!(same(&ab.swapped(), &ba), "n = {n}: {ab:?} and {ba:?} do not mirror");
            assert!(same(&ab, &in_ns), "n = {n}: {ab:?} became {in_ns:?} in another unit");
        }
    }

    /// The share of 2000 intervals that hold the truth, a ratio of 1.05.
    fn coverage(n: usize, mut draw: impl FnMut() -> f64) -> f64 {
        let truth = 1.05f64;
        let mut holds = || {
            let rounds: Vec<f64> = (0..n).map(|_| truth.ln() + draw()).collect();
            let found = paired_ratio(&rounds, 0.95).and_then(|estimate| estimate.interval);
            found.is_some_and(|(low, high)| low <= truth && truth <= high)
        };
        (0..2000).filter(|_| holds()).count() as f64 / 2000.0
    }

    /// Exactly 96.09 % for eight rounds of symmetric noise, 95 % for five of normal noise; 3.5
    /// standard errors of 2000 trials to either side.
    #[test]
    fn intervals_cover_what_they_promise() {
        let (mut normal, mut heavy, mut few) = (Noise::new(1), Noise::new(2), Noise::new(3));
        let cases = [
            ("normal, 8 rounds", 0.9609, coverage(8, || 0.01 * (normal.normal() - normal.normal()))),
            ("t with 2 degrees, 8 rounds", 0.9609, coverage(8, || 0.01 * (heavy.t2() - heavy.t2()))),
            ("normal, 5 rounds", 0.95, coverage(5, || 0.01 * few.normal())),
        ];
        for (name, promised, got) in cases {
            let error: f64 = promised * (1.0 - promised) / 2000.0;
            assert!((got - promised).abs() < 3.5 * error.sqrt(), "{name}: covered {got}, not {promised}");
        }
    }
}
