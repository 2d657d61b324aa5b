//! Whether a series in the order of time stepped from one level to another, and where.
//!
//! A trend test sees a slow drift; a disk that filled its cache or a machine that was moved to
//! another clock steps. Verdicts stay valid, as pairs within a round cancel the step; absolute
//! numbers do not.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Number of shuffled orders: with it, p = 0.01 is known to a tenth of itself.
const SHUFFLES: usize = 9999;

/// A step is claimed where at most this many of the shuffled series are as far apart: p < 0.01,
/// with the series itself counted as one of the orders (Phipson & Smyth 2010).
const AS_FAR_APART: usize = 98;

/// The index of the first value after the change; `None` where no change is shown at p < 0.01,
/// which takes ten values, and where a value is not finite.
///
/// The statistic of Pettitt 1979: the largest difference, over all places to cut, between the
/// numbers of falling and rising pairs across the cut. Its p-value comes from shuffled series,
/// always the same ones. Pettitt's approximation 2 exp(-6 K^2 / (n^3 + n^2)) is no use here: it
/// cannot fall below 0.01 before the 16th value, and by simulation it calls 0.1 % of the series of
/// 20 and 0.3 % of those of 40 steady values changed where 1 % was asked for.
pub fn changes_at(series: &[f64]) -> Option<usize> {
    if series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ranks = centred_ranks(series);
    let (cut, found) = farthest(&ranks)?;
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut as_far = 0;
    for _ in 0..SHUFFLES {
        shuffle(&mut ranks, &mut generator);
        as_far += usize::from(farthest(&ranks).is_some_and(|(_, apart)| apart >= found));
        if as_far > AS_FAR_APART {
            return None;
        }
    }
    Some(cut)
}

/// Twice each value's rank, less n+1: the values above minus the values below that it has; equal
/// values share a rank.
fn centred_ranks(series: &[f64]) -> Vec<i64> {
    series.iter().map(|x: &f64| series.iter().map(|y| i64::from(y < x) - i64::from(y > x)).sum()).collect()
}

/// The first place to cut with the largest |U|, and that |U|. Pairs on the same side of the cut
/// cancel in the sum.
fn farthest(ranks: &[i64]) -> Option<(usize, i64)> {
    let sums = ranks.iter().scan(0i64, |sum, rank| {
        *sum += rank;
        Some(sum.abs())
    });
    let cuts = (1..ranks.len()).zip(sums);
    cuts.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// Fisher & Yates; the remainder of 64 random bits is uneven by less than one part in 10^15.
fn shuffle(ranks: &mut [i64], generator: &mut Xoshiro256PlusPlus) {
    for last in (1..ranks.len()).rev() {
        ranks.swap(last, (generator.next_u64() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::{Noise, replications, share_error};

    #[test]
    fn steps_are_found_where_they_are() {
        let step = |before: usize, after: usize| [vec![1.0; before], vec![2.0; after]].concat();
        let cases: [(&str, Vec<f64>, Option<usize>); 9] = [
            ("empty", vec![], None),
            ("one", vec![1.0], None),
            ("nine, five up", step(4, 5), None),
            ("ten, five up", step(5, 5), Some(5)),
            ("a third", step(10, 20), Some(10)),
            ("constant", vec![3.0; 40], None),
            ("down", step(9, 9).into_iter().map(|x| -x).collect(), Some(9)),
            ("one outlier", [vec![1.0; 15], vec![9.0], vec![1.0; 15]].concat(), None),
            ("no number", [step(9, 9), vec![f64::NAN]].concat(), None),
        ];
        for (name, series, wanted) in cases {
            assert_eq!(changes_at(&series), wanted, "{name}");
        }
    }

    /// U by its definition, all pairs across the cut.
    #[test]
    fn sums_of_ranks_are_pettitts_statistic() {
        let mut noise = Noise::new(8);
        let series: Vec<f64> = (0..17).map(|_| (3.0 * noise.normal()).round()).collect();
        let sign = |a: f64, b: f64| i64::from(a > b) - i64::from(a < b);
        let across = |cut: usize| {
            let (before, after) = series.split_at(cut);
            before.iter().flat_map(|a| after.iter().map(move |b| sign(*a, *b))).sum::<i64>().abs()
        };
        let largest = (1..17).map(across).max();
        assert_eq!(farthest(&centred_ranks(&series)).map(|(_, apart)| apart), largest);
    }

    /// At most 1 % and four standard errors, and not never.
    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        let count = replications(2000, 20_000);
        for n in [10, 15, 20, 40] {
            let mut noise = Noise::new(n);
            let mut alarm = || changes_at(&(0..n).map(|_| noise.t2()).collect::<Vec<f64>>()).is_some();
            let share = (0..count).filter(|_| alarm()).count() as f64 / count as f64;
            assert!(share > 0.002 && share < 0.01 + 4.0 * share_error(0.01, count), "n = {n}: {share}");
        }
    }

    /// A step of three standard deviations in the middle of twenty values is found nearly always,
    /// where it is.
    #[test]
    fn clear_steps_are_found() {
        let mut noise = Noise::new(12);
        let mut found = || {
            let series: Vec<f64> = (0..20).map(|i| noise.normal() + if i < 10 { 0.0 } else { 3.0 }).collect();
            changes_at(&series).is_some_and(|at| at.abs_diff(10) <= 1)
        };
        let share = (0..200).filter(|_| found()).count() as f64 / 200.0;
        assert!(share > 0.9, "{share}");
    }
}
