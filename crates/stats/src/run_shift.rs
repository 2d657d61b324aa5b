//! How far the times of a new run lie above those of earlier runs, with what runs differ by and
//! what drifts within them.
//!
//! Of one earlier run only the rounds are known: the interval is that of the rank sum, of these two
//! runs alone, and decides nothing. The scatter between several runs of the same says what a run
//! has for itself (its day, its boot, where files came to lie): the interval is Student's for one
//! more observation of such a series (Hahn 1970). Rounds that resemble those before them count for
//! less. Rounds of two simulations that had the same seeds are paired, and nothing comes between
//! them but what was changed.

use super::autocorrelation::widening;
use super::moments::{mean_of, variance};
use super::multiple_testing::signed_rank_p;
use super::paired::{Estimate, Method, paired_ratio};
use super::rank_sum::{rank_sum_above, unpaired_ratio};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Natural logarithms of one time, by round.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    pub new: Vec<f64>,
    pub old: Vec<Vec<f64>>,
    /// New over old, by round, for one earlier run whose rounds are the same but for what was
    /// changed. Empty otherwise.
    pub pairs: Vec<f64>,
}

/// What is known apart from the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunContext {
    /// The factor by which drift within runs widens intervals, at least 1.
    pub drift: f64,
    /// What whole runs of the same differ by; `None` where nothing shows it.
    pub scatter: Option<RunScatter>,
}

/// What whole runs of the same differ by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunScatter {
    /// Standard deviation of the runs' centres, logarithms.
    pub deviation: f64,
    /// One less than the runs that show it; infinite where it is known otherwise.
    pub freedom: f64,
}

/// The factor by which drift within runs widens intervals, at least 1: from all series of each run,
/// as a run drifts as a whole.
pub fn drift_factor(runs: &[Vec<Vec<f64>>]) -> f64 {
    runs.iter().map(|series| widening(series)).fold(1.0, f64::max)
}

/// From the rounds of earlier runs, by time and run; variances are pooled over times. `None` for
/// fewer than two runs.
pub fn run_scatter(times: &[Vec<Vec<f64>>]) -> Option<RunScatter> {
    let variances: Vec<f64> = times.iter().filter_map(|runs| variance(&centres(runs)?)).collect();
    // A day moves all times alike, so more times show no more days.
    let runs = times.iter().map(Vec::len).min()?;
    let deviation = (variances.iter().sum::<f64>() / variances.len() as f64).sqrt();
    (!variances.is_empty()).then_some(RunScatter { deviation, freedom: runs as f64 - 1.0 })
}

impl Runs {
    /// New over old at `confidence`, two-sided. `None` where a run has no value, or one that is not
    /// finite.
    pub fn ratio(&self, beside: &RunContext, confidence: f64) -> Option<Estimate> {
        match self.old.as_slice() {
            [_] if !self.pairs.is_empty() => paired_ratio(&self.pairs, confidence),
            [old] => {
                let of_rounds = wider(unpaired_ratio(&self.new, old, confidence)?, beside.drift);
                let Some(scatter) = beside.scatter else { return Some(of_rounds) };
                let of_runs =
                    self.of_several(beside.drift, scatter, confidence).filter(|_| of_rounds.interval.is_some());
                Some(of_runs.map_or(of_rounds.clone(), |found| Estimate { method: of_rounds.method, ..found }))
            }
            _ => self.of_several(beside.drift, beside.scatter?, confidence),
        }
    }

    fn of_several(&self, drift: f64, scatter: RunScatter, confidence: f64) -> Option<Estimate> {
        let (shift, error) = (self.shift()?, self.error(drift, scatter.deviation)?);
        let half = scatter.student()?.inverse_cdf((1.0 + confidence) / 2.0) * error;
        let all: usize = self.old.iter().map(Vec::len).sum();
        let above = self.new.iter().flat_map(|a| self.old.iter().flatten().map(move |b| a > b)).filter(|above| *above);
        Some(Estimate {
            ratio: shift.exp(),
            interval: Some(((shift - half).exp(), (shift + half).exp())),
            method: Method::RankSum,
            level: confidence,
            n: self.new.len().min(self.old.iter().map(Vec::len).min()?),
            share_above: above.count() as f64 / (self.new.len() * all) as f64,
        })
    }

    /// One-sided p-value that the new run is above the earlier ones by no more than `by`, a natural
    /// logarithm.
    pub fn p_above(&self, by: f64, beside: &RunContext) -> f64 {
        let found = match self.old.as_slice() {
            [_] if !self.pairs.is_empty() => signed_rank_above(&self.pairs, by),
            [old] => self.p_of_one(old, by, beside),
            _ => beside.scatter.and_then(|scatter| self.student_p(by, beside.drift, scatter)),
        };
        found.filter(|p| p.is_finite()).unwrap_or(1.0)
    }

    /// The larger of two: by ranks, and by what runs differ by.
    fn p_of_one(&self, old: &[f64], by: f64, beside: &RunContext) -> Option<f64> {
        let normal = Normal::standard();
        let by_ranks = normal.sf(normal.inverse_cdf(1.0 - rank_sum_above(&self.new, old, by)) / beside.drift);
        Some(by_ranks.max(self.student_p(by, beside.drift, beside.scatter?)?))
    }

    fn student_p(&self, by: f64, drift: f64, scatter: RunScatter) -> Option<f64> {
        let error = self.error(drift, scatter.deviation)?;
        Some(scatter.student()?.sf((self.shift()? - by) / error))
    }

    fn shift(&self) -> Option<f64> {
        Some(centre(&self.new)? - mean_of(&centres(&self.old)?))
    }

    /// Standard error of the new run less the mean of the others: at least what their rounds leave
    /// open.
    fn error(&self, drift: f64, scatter: f64) -> Option<f64> {
        let of_rounds = |logs: &Vec<f64>| Some(variance(logs)? / logs.len() as f64);
        let runs = self.old.len() as f64;
        let old = self.old.iter().map(of_rounds).sum::<Option<f64>>()?;
        let within = drift * (of_rounds(&self.new)? + old / runs.powi(2)).sqrt();
        Some((scatter * (1.0 + 1.0 / runs).sqrt()).max(within))
    }
}

impl RunScatter {
    /// With a million degrees of freedom it is the normal distribution.
    fn student(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.freedom.min(1e6)).ok()
    }
}

/// One-sided, and no less than 1/2 where the pairs rather lie below.
fn signed_rank_above(pairs: &[f64], by: f64) -> Option<f64> {
    let beyond: Vec<f64> = pairs.iter().map(|pair| pair - by).collect();
    let two_sided = signed_rank_p(&beyond)?;
    Some(if centre(&beyond)? > 0.0 { two_sided / 2.0 } else { 1.0 - two_sided / 2.0 })
}

fn wider(found: Estimate, by: f64) -> Estimate {
    let around = |bound: f64| found.ratio * (bound / found.ratio).powf(by);
    Estimate { interval: found.interval.map(|(low, high)| (around(low), around(high))), ..found }
}

fn centres(runs: &[Vec<f64>]) -> Option<Vec<f64>> {
    runs.iter().map(|logs| centre(logs)).collect()
}

fn centre(logs: &[f64]) -> Option<f64> {
    Some(paired_ratio(logs, 0.95)?.ratio.ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::Noise;

    fn rounds(noise: &mut Noise, level: f64) -> Vec<f64> {
        (0..8).map(|_| level + 0.02 * noise.normal()).collect()
    }

    fn beside(drift: f64, scatter: Option<RunScatter>) -> RunContext {
        RunContext { drift, scatter }
    }

    fn known(deviation: f64) -> Option<RunScatter> {
        Some(RunScatter { deviation, freedom: f64::INFINITY })
    }

    /// Three runs that differ by nothing but a known shift: t(0.975, 2) = 4.302653 for one more of
    /// a series with a standard deviation of 0.02.
    #[test]
    fn several_runs_have_students_interval_for_one_more() {
        let runs =
            Runs { new: vec![0.1; 6], old: vec![vec![-0.02; 6], vec![0.0; 6], vec![0.02; 6]], ..Runs::default() };
        let scatter = run_scatter(std::slice::from_ref(&runs.old));
        assert!(scatter.is_some_and(|found| (found.deviation - 0.02).abs() < 1e-12 && found.freedom == 2.0));
        let found = runs.ratio(&beside(1.0, scatter), 0.95).expect("values");
        let half = 4.302_653 * 0.02 * (4f64 / 3.0).sqrt();
        let (low, high) = found.interval.expect("three runs");
        assert!((low.ln() - 0.1 + half).abs() < 1e-6 && (high.ln() - 0.1 - half).abs() < 1e-6, "{found:?}");
        let p = runs.p_above(0.1 - half, &beside(1.0, scatter));
        assert!((p - 0.025).abs() < 1e-6, "{p}");
        assert_eq!((found.share_above, found.n), (1.0, 6));
    }

    /// One earlier run has the interval of the rank sum, wider by drift, and no p-value; where it
    /// is known what runs differ by, both are of that.
    #[test]
    fn drift_widens_what_one_run_says() {
        let mut noise = Noise::new(61);
        let runs = Runs { new: rounds(&mut noise, 0.03), old: vec![rounds(&mut noise, 0.0)], ..Runs::default() };
        let [steady, drifting] = [1.0, 2.0].map(|drift| runs.ratio(&beside(drift, None), 0.95).expect("values"));
        let bounds = |found: &Estimate| found.interval.expect("an interval");
        let plain = unpaired_ratio(&runs.new, &runs.old[0], 0.95).expect("values");
        assert!((bounds(&steady).0 - bounds(&plain).0).abs() < 1e-12 && steady.ratio == plain.ratio);
        let widths = [&steady, &drifting].map(|found| found.half_width().expect("an interval"));
        assert!((widths[1] / widths[0] - 2.0).abs() < 1e-9 && steady.ratio == drifting.ratio);
        let p = |beside: RunContext| runs.p_above(0.0, &beside);
        assert!(p(beside(2.0, known(0.0))) > p(beside(1.0, known(0.0))) && p(beside(1.0, None)) == 1.0);
        assert!(p(beside(1.0, known(0.0))) >= rank_sum_above(&runs.new, &runs.old[0], 0.0) - 1e-9);
        let shift = runs.shift().expect("a shift");
        let by_hand = Normal::standard().sf(shift / (0.03 * 2f64.sqrt()));
        let found = p(beside(1.0, known(0.03)));
        assert!((found - by_hand).abs() < 1e-5 && found > p(beside(1.0, known(0.0))), "{found}, {shift}");
        let (low, high) = bounds(&runs.ratio(&beside(1.0, known(0.03)), 0.95).expect("values"));
        assert!((high.ln() - low.ln() - 2.0 * 1.959_964 * 0.03 * 2f64.sqrt()).abs() < 1e-5, "{low} {high}");
        let shifts: Vec<f64> = (0..200)
            .map(|_| Runs { new: rounds(&mut noise, 0.03), old: vec![rounds(&mut noise, 0.0)], ..Runs::default() })
            .filter_map(|runs| runs.shift())
            .collect();
        assert!((mean_of(&shifts) - 0.03).abs() < 0.003, "{}", mean_of(&shifts));
    }

    /// Eight rounds that differ by 10 % from each other, each half a percent slower than before:
    /// pairs show it, and nothing else does. All of 2^8 signs are as likely, so the smallest
    /// p-value is 1/256.
    #[test]
    fn rounds_of_the_same_seeds_are_paired() {
        let mut noise = Noise::new(63);
        let old: Vec<f64> = (0..8).map(|_| 0.1 * noise.normal()).collect();
        let pairs: Vec<f64> = (0..8).map(|round| 0.005 + 0.0001 * f64::from(round)).collect();
        let new = old.iter().zip(&pairs).map(|(old, pair)| old + pair).collect();
        let paired = Runs { new, old: vec![old], pairs };
        let apart = Runs { pairs: Vec::new(), ..paired.clone() };
        let assumed = beside(1.0, known(0.03));
        let bounds = |runs: &Runs| runs.ratio(&assumed, 0.95).and_then(|found| found.interval).expect("an interval");
        let (low, high) = bounds(&paired);
        assert!(low > 1.005 && high < 1.006 && bounds(&apart).0 < 0.99, "{low} {high}");
        let p = |runs: &Runs, by: f64| runs.p_above(by, &assumed);
        assert!((p(&paired, 0.004) - 1.0 / 256.0).abs() < 1e-12 && p(&apart, 0.004) > 0.2);
        assert!(p(&paired, 0.006) > 0.99);
    }

    #[test]
    fn runs_that_wander_are_found_to_and_steady_ones_are_not() {
        let mut noise = Noise::new(62);
        let mut run = |kept: f64| {
            let mut at = 0.0;
            let mut next = || {
                at = kept * at + 0.02 * noise.normal();
                at
            };
            vec![(0..40).map(|_| next()).collect::<Vec<f64>>()]
        };
        assert!(drift_factor(&[run(0.95)]) > 2.0);
        let steady = (0..50).map(|_| drift_factor(&[run(0.0)])).sum::<f64>() / 50.0;
        assert!((1.0..1.15).contains(&steady), "{steady}");
    }

    #[test]
    fn nothing_and_nonsense_say_nothing() {
        let some = vec![0.0, 0.1, 0.2];
        for (new, old) in [(vec![], vec![some.clone()]), (some.clone(), vec![vec![]]), (some, vec![])] {
            let runs = Runs { new, old, ..Runs::default() };
            assert!(runs.ratio(&beside(1.0, None), 0.95).is_none() && runs.p_above(0.0, &beside(1.0, None)) == 1.0);
        }
    }
}
