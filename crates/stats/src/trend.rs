//! One series described: its middle, its spread, and whether it drifted.

use statrs::distribution::{ContinuousCDF, Normal};

/// The median, in the unit of `values`; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which a share `p` (0 to 1) of the values lies, linear between neighbours: type 7
/// of Hyndman & Fan 1996, the default of R and NumPy. `None` for no values, or where `p` is no
/// share.
fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if values.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = p * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    Some(below + (above - below) * position.fract())
}

/// Largest minus smallest over the median: 0.1 is 10 %. `None` for no values, or where the median
/// is zero.
pub fn relative_range(values: &[f64]) -> Option<f64> {
    let middle = median(values).filter(|m| *m != 0.0)?;
    Some((quantile(values, 1.0)? - quantile(values, 0.0)?) / middle.abs())
}

/// True where a series in the order of time has a trend: the two-sided test of Mann 1945 and
/// Kendall 1975 at p < 0.01. Six values is the fewest that can show one.
///
/// Verdicts stay valid, as pairs within a round cancel drift; absolute numbers do not. Exact
/// without equal values and up to 60 of them; else by the normal approximation, corrected for ties
/// and continuity.
pub fn drifts(series: &[f64]) -> bool {
    let score = rises_minus_falls(series);
    let ties = tie_sizes(series);
    let exact = series.len() <= 60 && ties.iter().all(|size| *size == 1);
    let p = if exact { exact_p(series.len(), score) } else { normal_p(series.len(), score, &ties) };
    p < 0.01
}

/// Kendall's S: the number of rising pairs minus the number of falling ones.
fn rises_minus_falls(series: &[f64]) -> i64 {
    let sign = |a: f64, b: f64| i64::from(b > a) - i64::from(b < a);
    series.iter().enumerate().flat_map(|(i, a)| series[i + 1..].iter().map(move |b| sign(*a, *b))).sum()
}

/// How many times each distinct value occurs.
fn tie_sizes(series: &[f64]) -> Vec<usize> {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

/// P(|S| >= |score|) over all orders of `n` distinct values.
fn exact_p(n: usize, score: i64) -> f64 {
    let pairs = (n * n.saturating_sub(1) / 2) as i64;
    let falls_of_a_rise_so_strong = ((pairs - score.abs()) / 2) as usize;
    let tail: f64 = inversions(n).iter().take(falls_of_a_rise_so_strong + 1).sum();
    (2.0 * tail).min(1.0)
}

/// P(number of falling pairs = i) over all orders of `n` distinct values: the k-th value falls
/// below 0..k-1 of those before it with equal chances.
fn inversions(n: usize) -> Vec<f64> {
    let mut chances = vec![1.0];
    for k in 2..=n {
        let mut next = vec![0.0; chances.len() + k - 1];
        for (falls, chance) in chances.iter().enumerate() {
            next[falls..falls + k].iter_mut().for_each(|sum| *sum += chance / k as f64);
        }
        chances = next;
    }
    chances
}

fn normal_p(n: usize, score: i64, ties: &[usize]) -> f64 {
    let term = |n: usize| (n * n.saturating_sub(1) * (2 * n + 5)) as f64;
    let variance = (term(n) - ties.iter().map(|size| term(*size)).sum::<f64>()) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (score.abs() as f64 - 1.0).max(0.0) / variance.sqrt();
    2.0 * Normal::standard().sf(z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::Noise;

    #[test]
    fn quantiles_are_those_of_r_and_numpy() {
        let cases: [(&[f64], f64, Option<f64>); 8] = [
            (&[], 0.5, None),
            (&[1.0], 1.1, None),
            (&[3.0], 0.9, Some(3.0)),
            (&[4.0, 1.0, 3.0, 2.0], 0.5, Some(2.5)),
            (&[4.0, 1.0, 3.0, 2.0], 0.25, Some(1.75)),
            (&[4.0, 1.0, 3.0, 2.0], 0.0, Some(1.0)),
            (&[4.0, 1.0, 3.0, 2.0], 1.0, Some(4.0)),
            (&[10.0, 20.0, 30.0, 40.0, 50.0], 0.6, Some(34.0)),
        ];
        for (values, p, wanted) in cases {
            assert_eq!(quantile(values, p), wanted, "{p} of {values:?}");
        }
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    }

    #[test]
    fn ranges_are_relative_to_the_median() {
        let cases: [(&[f64], Option<f64>); 4] =
            [(&[], None), (&[1.0, -1.0], None), (&[8.0, 10.0, 13.0], Some(0.5)), (&[-8.0, -10.0, -13.0], Some(0.5))];
        for (values, wanted) in cases {
            assert_eq!(relative_range(values), wanted, "{values:?}");
        }
    }

    /// Two-sided exact p: Kendall 1975, appendix table 1 (one-sided there).
    #[test]
    fn chances_of_a_trend_are_the_published_ones() {
        for (n, score, wanted) in [(4, 6, 2.0 / 24.0), (5, 10, 2.0 / 120.0), (6, 13, 12.0 / 720.0), (10, 45, 5.5e-7)] {
            let got = exact_p(n, score);
            assert!((got - wanted).abs() < 1e-3 * wanted + 2e-9, "n = {n}, S = {score}: {got}, not {wanted}");
        }
        assert_eq!((exact_p(0, 0), exact_p(1, 0), exact_p(3, 1)), (1.0, 1.0, 1.0));
    }

    #[test]
    fn the_approximation_is_near_the_exact() {
        let (exact, normal) = (exact_p(40, 250), normal_p(40, 250, &[1; 40]));
        assert!((exact / normal - 1.0).abs() < 0.15, "{exact} and {normal}");
    }

    /// Four values, three times each, all in order: S = 54, variance (12·11·29 - 4·3·2·11) / 18
    /// = 198.
    #[test]
    fn ties_narrow_the_scatter_of_the_score() {
        let got = normal_p(12, 54, &[3, 3, 3, 3]);
        assert!((got - 1.6552e-04).abs() < 1e-8, "{got}");
    }

    #[test]
    fn trends_are_found_and_their_absence_too() {
        let cases: [(&str, &[f64], bool); 9] = [
            ("empty", &[], false),
            ("five up", &[1.0, 2.0, 3.0, 4.0, 5.0], false),
            ("six up", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], true),
            ("six down", &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0], true),
            ("eight with one slip", &[1.0, 2.0, 4.0, 3.0, 5.0, 6.0, 7.0, 8.0], true),
            ("constant", &[2.0; 20], false),
            ("steps up", &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0], true),
            ("up and down", &[1.0, 2.0, 3.0, 4.0, 5.0, 5.5, 4.5, 3.5, 2.5, 1.5], false),
            ("outlier", &[1.0, 1.1, 0.9, 9.0, 1.05, 0.95, 1.02, 0.97], false),
        ];
        for (name, series, wanted) in cases {
            assert_eq!(drifts(series), wanted, "{name}");
        }
        let long: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(drifts(&long));
    }

    /// At most 1 % of 2000 series without a trend, plus three standard errors; and not never.
    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        let mut noise = Noise::new(4);
        let mut alarm = || drifts(&(0..12).map(|_| noise.t2()).collect::<Vec<f64>>());
        let share = (0..2000).filter(|_| alarm()).count() as f64 / 2000.0;
        assert!(share > 0.002 && share < 0.01 + 3.0 * (0.01f64 * 0.99 / 2000.0).sqrt(), "{share}");
    }
}
