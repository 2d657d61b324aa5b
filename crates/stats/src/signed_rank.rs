//! The exact signed-rank interval and its centre, from the averages of all pairs of observations.
//!
//! For n differences that scatter symmetrically about a shift, the M = n(n+1)/2 averages of pairs
//! (each observation with itself included; Walsh 1949) have the shift in their middle: their median
//! estimates it (Hodges & Lehmann 1963), and the K-th from either end bound it (Tukey's inversion
//! of Wilcoxon's test, in Hollander & Wolfe 1999, section 3.3). Up to 29 % of outliers do not carry
//! the estimate away.

use statrs::distribution::{ContinuousCDF, Normal};
use std::sync::OnceLock;

/// Counting exactly costs the cube of the number of observations; above this, the normal
/// approximation of the sum of ranks is right to a few ranks among thousands.
pub(super) const MOST_COUNTED: usize = 100;

/// Rank K of the bounds and the exact level (0 to 1) of the interval from the K-th smallest to the
/// K-th largest of the averages of pairs, for `n` observations at a two-sided error of at most
/// `alpha`. `None` where `n` is too small for any such K.
pub fn signed_rank_k(n: usize, alpha: f64) -> Option<(usize, f64)> {
    if n > MOST_COUNTED { approximate_k(n, alpha) } else { exact_k(n, alpha) }
}

/// The sum of ranks has mean n(n+1)/4 and variance n(n+1)(2n+1)/24; half a rank is the continuity
/// correction.
fn approximate_k(n: usize, alpha: f64) -> Option<(usize, f64)> {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (mean * (2.0 * n + 1.0) / 6.0).sqrt();
    let ranks = Normal::new(mean, deviation).ok()?;
    let k = (ranks.inverse_cdf(alpha / 2.0) + 0.5).floor();
    (k >= 1.0).then(|| (k as usize, 1.0 - 2.0 * ranks.cdf(k - 0.5)))
}

fn exact_k(n: usize, alpha: f64) -> Option<(usize, f64)> {
    // Counted once: a run asks for the same again at each of its looks.
    static TAILS: [OnceLock<Vec<f64>>; MOST_COUNTED + 1] = [const { OnceLock::new() }; MOST_COUNTED + 1];
    let tails = TAILS[n].get_or_init(|| tails(n));
    let k = tails.partition_point(|tail| *tail <= alpha / 2.0);
    Some((k, 1.0 - 2.0 * tails[k.checked_sub(1)?]))
}

/// P(W+ <= w) for w from 0 to the middle.
fn tails(n: usize) -> Vec<f64> {
    let ranks: Vec<usize> = (1..=n).collect();
    let chances = chances_of_sums(&ranks, n * (n + 1) / 4).into_iter();
    chances.scan(0.0, |tail, chance| Some(std::mem::replace(tail, *tail + chance) + chance)).collect()
}

/// P(W+ = w) for w from 0 to `most`, where W+ is the sum of the ranks that a fair coin chose.
pub(super) fn chances_of_sums(ranks: &[usize], most: usize) -> Vec<f64> {
    let mut chances = vec![0.0; most + 1];
    chances[0] = 1.0;
    for rank in ranks {
        for sum in (0..=most).rev() {
            let chosen = if sum >= *rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = (chances[sum] + chosen) / 2.0;
        }
    }
    chances
}

/// The averages of all pairs, each observation with itself included, in no order.
fn pair_averages(values: &[f64]) -> Vec<f64> {
    values.iter().enumerate().flat_map(|(i, a)| values[i..].iter().map(move |b| (a + b) / 2.0)).collect()
}

/// The value at a place of the sorted order, without sorting all.
pub(super) fn at_rank(averages: &mut [f64], place: usize) -> f64 {
    *averages.select_nth_unstable_by(place, f64::total_cmp).1
}

/// The Hodges-Lehmann estimate of the centre, and the K-th smallest and K-th largest of the
/// averages of pairs, in the unit of `values`; `None` unless K is 1 or more and the two do not
/// cross. K comes from [`signed_rank_k`].
pub(super) fn centre_and_interval(values: &[f64], k: usize) -> Option<(f64, (f64, f64))> {
    let mut averages = pair_averages(values);
    let count = averages.len();
    if k < 1 || 2 * k > count + 1 {
        return None;
    }
    // The ends are looked for in the halves on either side of the middle: there are half a million
    // for a thousand rounds.
    let place = (count - 1) / 2;
    let (below, middle, above) = averages.select_nth_unstable_by(place, f64::total_cmp);
    let next = above.iter().copied().min_by(f64::total_cmp).filter(|_| count % 2 == 0);
    let low = if k - 1 < place { at_rank(below, k - 1) } else { *middle };
    let high = if count - k > place { at_rank(above, count - k - place - 1) } else { *middle };
    Some(((*middle + next.unwrap_or(*middle)) / 2.0, (low, high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n; then K and exact level in percent at 95, 97 and 99 %.
    type Row = (usize, [Option<(usize, f64)>; 3]);

    const KNOWN: &[Row] = &[
        (3, [None, None, None]),
        (5, [None, None, None]),
        (6, [Some((1, 96.88)), None, None]),
        (8, [Some((4, 96.09)), Some((3, 97.66)), Some((1, 99.22))]),
        (10, [Some((9, 95.12)), Some((7, 97.27)), Some((4, 99.02))]),
        (11, [Some((11, 95.80)), Some((9, 97.56)), Some((6, 99.02))]),
        (15, [Some((26, 95.21)), Some((22, 97.44)), Some((16, 99.16))]),
        (20, [Some((53, 95.16)), Some((48, 97.04)), Some((38, 99.06))]),
        (28, [Some((117, 95.23)), Some((109, 97.02)), Some((92, 99.05))]),
        (40, [Some((265, 95.02)), Some((250, 97.01)), Some((221, 99.02))]),
    ];

    #[test]
    fn ranks_and_levels_are_the_published_ones() {
        for (n, row) in KNOWN {
            for (confidence, wanted) in [0.95, 0.97, 0.99].into_iter().zip(row) {
                let percent = |(k, level): (usize, f64)| (k, (level * 1e4).round() / 1e2);
                assert_eq!(signed_rank_k(*n, 1.0 - confidence).map(percent), *wanted, "n = {n} at {confidence}");
            }
        }
    }

    #[test]
    fn the_approximation_joins_the_exact_ranks() {
        for (n, alpha) in [(60, 0.05), (80, 0.03), (100, 0.05), (100, 0.01)] {
            let (exact, level) = exact_k(n, alpha).unwrap();
            let (near, about) = approximate_k(n, alpha).unwrap();
            assert!(
                near.abs_diff(exact) * 200 <= exact && (level - about).abs() < 1e-3,
                "{n} {alpha}: {exact} {near} {level} {about}"
            );
        }
        assert!(signed_rank_k(1000, 0.05).is_some_and(|(k, level)| k > 200_000 && (level - 0.95).abs() < 1e-4));
    }

    /// Sums of ranks over all 2^n choices of signs, counted one by one.
    fn counted(n: usize, alpha: f64) -> Option<usize> {
        let sum = |signs: u32| (1..=n).filter(|rank| signs >> (rank - 1) & 1 == 1).sum::<usize>();
        let sums: Vec<usize> = (0..1u32 << n).map(sum).collect();
        let tail = |k: usize| sums.iter().filter(|sum| **sum < k).count() as f64 / sums.len() as f64;
        (1..=n * (n + 1) / 4).take_while(|k| tail(*k) <= alpha / 2.0).last()
    }

    #[test]
    fn ranks_are_those_of_counting_all_signs() {
        for n in 1..=12 {
            for alpha in [0.2, 0.1, 0.05, 0.03, 0.01, 0.05 / 7.0] {
                let k = signed_rank_k(n, alpha).map(|(k, _)| k);
                assert_eq!(k, counted(n, alpha), "n = {n}, alpha = {alpha}");
            }
        }
    }

    #[test]
    fn a_level_asked_for_exactly_is_given() {
        assert_eq!(signed_rank_k(6, 1.0 - 0.96875), Some((1, 0.96875)));
        assert_eq!(signed_rank_k(0, 0.05), None);
    }

    /// Changes of nine patients' depression factor: Hollander & Wolfe 1999, examples 3.1 to 3.4.
    const DEPRESSION: [f64; 9] = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];

    #[test]
    fn centres_are_the_known_ones() {
        let cases: [(&[f64], Option<f64>); 5] = [
            (&[], None),
            (&[7.0], Some(7.0)),
            (&[1.0, 2.0], Some(1.5)),
            (&[0.0, 1.0, 100.0], Some(25.5)),
            (&DEPRESSION, Some(-0.46)),
        ];
        for (values, wanted) in cases {
            let got = centre_and_interval(values, 1).map(|(centre, _)| centre);
            let near = got.zip(wanted).is_some_and(|(g, w)| (g - w).abs() < 1e-9);
            assert!(near || got == wanted, "{values:?}: {got:?}, not {wanted:?}");
        }
    }

    #[test]
    fn the_interval_is_the_known_one() {
        let (k, level) = signed_rank_k(9, 0.05).expect("nine observations allow 95 %");
        let (_, (low, high)) = centre_and_interval(&DEPRESSION, k).expect("as above");
        assert!((level - 0.961).abs() < 5e-4 && (low + 0.786).abs() < 1e-9 && (high + 0.010).abs() < 1e-9);
    }

    /// Looked up in all of them, sorted.
    #[test]
    fn every_rank_is_that_of_the_sorted_averages() {
        for n in 1..=9 {
            let mut sorted = pair_averages(&DEPRESSION[..n]);
            sorted.sort_by(f64::total_cmp);
            let count = sorted.len();
            let centre = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
            for k in 1..=count.div_ceil(2) {
                let wanted = Some((centre, (sorted[k - 1], sorted[count - k])));
                assert_eq!(centre_and_interval(&DEPRESSION[..n], k), wanted, "n = {n}, K = {k}");
            }
        }
    }

    #[test]
    fn bounds_that_cross_or_lie_outside_are_none() {
        let values = [1.0, 2.0];
        assert_eq!([0, 1, 2, 3].map(|k| centre_and_interval(&values, k).is_some()), [false, true, true, false]);
    }
}
