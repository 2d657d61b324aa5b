//! Where the level of a series of runs changes. Each value has a known error, and series may be
//! short.
//!
//! The statistic is the largest, over all places to cut, of the difference between the weighted
//! means of both sides over its standard error: the likelihood ratio of one change of the mean
//! (Hawkins 1977). Its p-value is at most the sum over all cuts (Bonferroni, which is close in
//! short series: Worsley 1982). Both parts are then searched alike (binary segmentation: Vostrikova
//! 1981). A test by permutation, as `changes_at` makes, needs ten values: series of kernels have
//! four.

use super::trend::median;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A value of the series: a natural logarithm of a time, the mean of a run's rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub value: f64,
    /// The standard deviation of a round.
    pub deviation: f64,
    pub rounds: usize,
}

/// A change of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelShift {
    /// The index of the first value after it.
    pub at: usize,
    /// The level after it less the one before, and the 95 % interval of that.
    pub size: f64,
    pub interval: (f64, f64),
}

/// What is known of a series apart from its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesContext {
    /// The standard deviation by which whole runs of the same differ, at least; `None` where
    /// nothing but the rounds' own scatter moves them.
    pub run_scatter: Option<f64>,
    /// Changes that may be as small as this are not claimed.
    pub least: f64,
    /// The chance of a false claim in a series without a change.
    pub alpha: f64,
}

/// From this many values on, their differences say what runs differ by.
const SHOW_SCATTER: usize = 8;

/// Rounds of a simulation may be the same to the last digit; times are whole nanoseconds.
const LEAST_VARIANCE: f64 = 1e-12;

/// In the order of the series; nothing where a value is not finite, or no run has two rounds.
pub fn level_shifts(series: &[Reading], known: &SeriesContext) -> Vec<LevelShift> {
    let Some(search) = Search::new(series, known) else { return Vec::new() };
    let mut cuts = Vec::new();
    search.split(0, series.len(), &mut cuts);
    cuts.sort_unstable();
    let ends: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([series.len()]).collect();
    let shift = |ends: &[usize]| {
        let (size, error) = search.across(ends[0], ends[1], ends[2]);
        let half = search.student.inverse_cdf(0.975) * error;
        LevelShift { at: ends[1], size, interval: (size - half, size + half) }
    };
    ends.windows(3).map(shift).collect()
}

struct Search<'a> {
    known: &'a SeriesContext,
    /// Sums of weights, and of weighted values, of all before each place.
    sums: Vec<(f64, f64)>,
    student: StudentsT,
}

impl<'a> Search<'a> {
    fn new(series: &[Reading], known: &'a SeriesContext) -> Option<Search<'a>> {
        if series.iter().any(|one| !one.value.is_finite() || !one.deviation.is_finite() || one.rounds == 0) {
            return None;
        }
        let freedom = |one: &Reading| (one.rounds - 1) as f64;
        let all: f64 = series.iter().map(freedom).sum();
        let student = StudentsT::new(0.0, 1.0, all).ok()?;
        // Few rounds of one run say little of their scatter; those of all runs say more.
        let of_round = series.iter().map(|one| freedom(one) * one.deviation.powi(2)).sum::<f64>() / all;
        let scatter = known.run_scatter.map_or(0.0, |least| least.max(shown_scatter(series, of_round)));
        let mut sums = vec![(0.0, 0.0)];
        for one in series {
            let weight = 1.0 / (of_round / one.rounds as f64 + scatter.powi(2)).max(LEAST_VARIANCE);
            let (weights, values) = sums[sums.len() - 1];
            sums.push((weights + weight, values + weight * one.value));
        }
        Some(Search { known, sums, student })
    }

    /// Cuts between `from` and `to` where that is shown to be right, and then each part.
    fn split(&self, from: usize, to: usize, cuts: &mut Vec<usize>) {
        let places = (from + 1..to).map(|cut| (cut, self.beyond(from, cut, to)));
        let Some((cut, most)) = places.max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        let chance = 2.0 * self.student.sf(most) * (to - from - 1) as f64;
        if chance < self.known.alpha {
            cuts.push(cut);
            self.split(from, cut, cuts);
            self.split(cut, to, cuts);
        }
    }

    /// By how many standard errors the difference is beyond what is not claimed.
    fn beyond(&self, from: usize, cut: usize, to: usize) -> f64 {
        let (size, error) = self.across(from, cut, to);
        (size.abs() - self.known.least).max(0.0) / error
    }

    /// The mean behind the cut less the one before it, and the standard error of that.
    fn across(&self, from: usize, cut: usize, to: usize) -> (f64, f64) {
        let part = |from: usize, to: usize| {
            let ((w0, x0), (w1, x1)) = (self.sums[from], self.sums[to]);
            ((x1 - x0) / (w1 - w0), 1.0 / (w1 - w0))
        };
        let ((before, a), (after, b)) = (part(from, cut), part(cut, to));
        (after - before, (a + b).sqrt())
    }
}

/// The standard deviation of runs, from the median of the differences of neighbours: few changes of
/// the level do not widen it.
fn shown_scatter(series: &[Reading], of_round: f64) -> f64 {
    if series.len() < SHOW_SCATTER {
        return 0.0;
    }
    let apart: Vec<f64> = series.windows(2).map(|pair| (pair[1].value - pair[0].value).abs()).collect();
    // 1.4826 is for normal values; a difference has the variance of both.
    let deviation = 1.4826 * median(&apart).unwrap_or(0.0) / 2f64.sqrt();
    let own = series.iter().map(|one| of_round / one.rounds as f64).sum::<f64>() / series.len() as f64;
    (deviation.powi(2) - own).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::{Noise, replications, share_error};

    const KNOWN: SeriesContext = SeriesContext { run_scatter: Some(0.03), least: 0.0, alpha: 0.01 };

    fn steady(levels: &[f64]) -> Vec<Reading> {
        levels.iter().map(|value| Reading { value: *value, deviation: 0.01, rounds: 5 }).collect()
    }

    fn found(series: &[Reading], known: SeriesContext) -> Vec<usize> {
        level_shifts(series, &known).iter().map(|shift| shift.at).collect()
    }

    #[test]
    fn shifts_are_found_where_they_are() {
        let none = SeriesContext { run_scatter: None, ..KNOWN };
        let cases: [(&str, &[f64], SeriesContext, &[usize]); 10] = [
            ("empty", &[], KNOWN, &[]),
            ("one", &[1.0], KNOWN, &[]),
            ("two alike", &[1.0, 1.0], KNOWN, &[]),
            ("two, less apart than days", &[1.0, 1.1], KNOWN, &[]),
            ("two simulated", &[1.0, 1.1], none, &[1]),
            ("two far apart", &[1.0, 1.4], KNOWN, &[1]),
            ("a step", &[1.0, 1.0, 1.0, 1.3, 1.3], KNOWN, &[3]),
            ("up and down", &[1.0, 1.0, 1.0, 1.4, 1.4, 1.4, 1.0, 1.0, 1.0], KNOWN, &[3, 6]),
            ("not beyond what matters", &[1.0, 1.0, 1.3, 1.3], SeriesContext { least: 0.3, ..KNOWN }, &[]),
            ("no number", &[1.0, f64::NAN, 2.0, 2.0], KNOWN, &[]),
        ];
        for (name, levels, known, wanted) in cases {
            assert_eq!(found(&steady(levels), known), wanted, "{name}");
        }
        let single = [1.0, 2.0].map(|value| Reading { value, deviation: 0.0, rounds: 1 });
        assert_eq!(found(&single, none), [0usize; 0], "a round each");
    }

    #[test]
    fn sizes_and_their_intervals() {
        let shift = level_shifts(&steady(&[1.0, 1.0, 1.2]), &SeriesContext { run_scatter: None, ..KNOWN })[0];
        // Twelve degrees of freedom: 2.179; error 0.01 sqrt(1/10 + 1/5).
        let half = 2.179 * 0.01 * 0.3f64.sqrt();
        assert!((shift.size - 0.2).abs() < 1e-9 && (shift.interval.0 - 0.2 + half).abs() < 1e-5, "{shift:?}");
    }

    /// Runs of five rounds that scatter by 2 %, with a step of this size in the middle; runs differ
    /// by `days` as well.
    fn drawn(noise: &mut Noise, runs: usize, days: f64, step: f64) -> Vec<Reading> {
        let run = |at: usize| {
            let level = days * noise.normal() + if at >= runs / 2 { step } else { 0.0 };
            let rounds: Vec<f64> = (0..5).map(|_| level + 0.02 * noise.normal()).collect();
            let deviation = crate::standard_deviation(&rounds).expect("of five");
            Reading { value: crate::mean(&rounds).expect("of five"), deviation, rounds: 5 }
        };
        (0..runs).map(run).collect()
    }

    /// The share of series in which something is claimed, and in which just the planted step is.
    fn shares(runs: usize, days: f64, step: f64, known: SeriesContext) -> (f64, f64, usize) {
        let count = replications(2000, 20_000);
        let mut noise = Noise::new((runs * 1000) as u64 + (days * 100.0) as u64);
        let all: Vec<Vec<usize>> = (0..count).map(|_| found(&drawn(&mut noise, runs, days, step), known)).collect();
        let share = |is: &dyn Fn(&Vec<usize>) -> bool| all.iter().filter(|cuts| is(cuts)).count() as f64 / count as f64;
        (share(&|cuts| !cuts.is_empty()), share(&|cuts| **cuts == [runs / 2]), count)
    }

    #[test]
    fn steady_series_are_rarely_called_changed() {
        let simulated = SeriesContext { run_scatter: None, ..KNOWN };
        for (runs, days, known) in [
            (2, 0.03, KNOWN),
            (4, 0.03, KNOWN),
            (10, 0.03, KNOWN),
            (40, 0.03, KNOWN),
            (4, 0.0, simulated),
            (20, 0.0, simulated),
        ] {
            let (claimed, _, count) = shares(runs, days, 0.0, known);
            println!("{runs} runs, {days}: {claimed}");
            assert!(claimed <= KNOWN.alpha + 3.0 * share_error(KNOWN.alpha, count), "{runs} runs: {claimed}");
        }
    }

    /// Where runs differ by three times what is taken for that, their own differences show it from
    /// eight runs on.
    #[test]
    fn scatter_that_is_not_known_is_found_out() {
        for (runs, most) in [(8, 0.08), (20, 0.08), (40, 0.08)] {
            let (claimed, _, _) = shares(runs, 0.09, 0.0, KNOWN);
            println!("{runs} runs: {claimed}");
            assert!(claimed <= most, "{runs} runs: {claimed}");
        }
    }

    #[test]
    fn steps_are_seen() {
        let simulated = SeriesContext { run_scatter: None, ..KNOWN };
        for (runs, days, step, known, least) in
            [(4, 0.0, 0.06, simulated, 0.9), (6, 0.03, 0.15, KNOWN, 0.9), (20, 0.03, 0.12, KNOWN, 0.9)]
        {
            let (_, hit, _) = shares(runs, days, step, known);
            println!("{runs} runs, {step}: {hit}");
            assert!(hit >= least, "{runs} runs: {hit}");
        }
    }
}
