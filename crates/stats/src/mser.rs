//! Where a series of one value a second becomes steady, and what it is from there on.
//!
//! MSER-5 (White, Cobb & Spratt 2000): of all cuts in the first half, the one that leaves the tail
//! whose mean has the least estimated variance, over averages of five seconds. Rules on slope or
//! range are content with the plateau of an SLC cache in every run, and report three times the
//! truth; this one looks at the whole series and finds the cliff. A least variance at the last cut
//! allowed means that the series was still on its way: it was never steady.
//!
//! For work of a fixed size nothing is cut: the total time is what was asked for.

use super::moments::mean_of;

/// Seconds averaged before anything else, so that fast noise does not decide: the 5 of MSER-5.
const BATCH: usize = 5;

/// If series are steady throughout, one in seven is refused at 50 s, 3 % at 100 s, 0.2 % at 200 s,
/// none of a thousand at 300 s (simulated, with the noise of the tests below): few averages hardly
/// show the variance.
const FEWEST_BATCHES: usize = 20;

/// Halves of the retained part that differ by less, in natural logarithm, are taken for the same.
const HALVES_ALIKE: f64 = 0.05;

/// The steady part of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// What was cut off at the start.
    pub cut_seconds: usize,
    /// Mean of the rest, in the unit of the series.
    pub mean: f64,
    /// False: the best cut is the last one allowed, at half of the series, so it was never seen to
    /// be steady. The mean is then no result: measure for longer, or show the series.
    pub reached: bool,
    /// Absolute value of ln(mean of the second half / mean of the first) of the rest, where above
    /// 0.05; infinite where one half is 0.
    pub halves_differ: Option<f64>,
}

/// The steady part of `series`, one value a second, none below 0, any unit.
///
/// `None` for fewer than 100 seconds, and where a value is below 0 or not finite.
pub fn mser5(series: &[f64]) -> Option<Steady> {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean_of).collect();
    if batches.len() < FEWEST_BATCHES || series.iter().any(|value| !value.is_finite() || *value < 0.0) {
        return None;
    }
    let bound = batches.len() / 2;
    let cut = (0..=bound).min_by(|a, b| spread(&batches[*a..]).total_cmp(&spread(&batches[*b..])))?;
    let kept = &series[cut * BATCH..];
    Some(Steady {
        cut_seconds: cut * BATCH,
        mean: mean_of(kept),
        reached: cut < bound,
        halves_differ: halves_differ(kept),
    })
}

/// Variance over length: the square of the standard error that the mean would have if batches were
/// independent.
fn spread(batches: &[f64]) -> f64 {
    let centre = mean_of(batches);
    let squares: f64 = batches.iter().map(|batch| (batch - centre).powi(2)).sum();
    squares / (batches.len() as f64).powi(2)
}

fn halves_differ(kept: &[f64]) -> Option<f64> {
    let (first, second) = kept.split_at(kept.len() / 2);
    Some((mean_of(second) / mean_of(first)).ln().abs()).filter(|apart| *apart > HALVES_ALIKE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_test_support::noise::{Noise, replications};

    /// What a series is at a second, without its noise.
    type Truth = fn(f64) -> f64;

    const FLAT: Truth = |_| 1.0;
    const DECAY: Truth = |t| 1.0 + (-t / 30.0).exp();
    const CLIFF: Truth = |t| if t < 100.0 { 3.0 } else { 1.0 };
    const SLOW: Truth = |t| 1.0 + (-t / 200.0).exp();
    const SAWTOOTH: Truth = |t| 1.07527 * if t % 30.0 < 3.0 { 0.3 } else { 1.0 };

    /// Noise of one second to the next with correlation 0.5 and standard deviation 0.05: 5.8 % in
    /// all.
    fn noisy(truth: Truth, seconds: usize, noise: &mut Noise) -> Vec<f64> {
        let mut error = 0.0;
        let mut second = |t: usize| {
            error = 0.5 * error + 0.05 * noise.normal();
            truth(t as f64) * (1.0 + error)
        };
        (0..seconds).map(&mut second).collect()
    }

    fn clean(truth: Truth, seconds: usize) -> Vec<f64> {
        (0..seconds).map(|t| truth(t as f64)).collect()
    }

    fn many(truth: Truth, seconds: usize, seed: u64) -> Vec<Steady> {
        let mut noise = Noise::new(seed);
        let one = |_| mser5(&noisy(truth, seconds, &mut noise)).expect("long enough");
        (0..replications(200, 1000)).map(one).collect()
    }

    fn share(found: &[Steady], is: impl Fn(&Steady) -> bool) -> f64 {
        found.iter().filter(|steady| is(steady)).count() as f64 / found.len() as f64
    }

    /// Bias of the mean in percent of the level that the series comes to, and the share never
    /// steady, in percent, from 1000 simulated series of 300 s each. One percentage point of bias;
    /// four standard errors of the share.
    #[test]
    fn bias_and_refusals_are_the_known_ones() {
        let known: [(&str, Truth, f64, Option<f64>); 5] = [
            ("flat", FLAT, 0.0, None),
            ("decay, 30 s", DECAY, 0.5, None),
            ("cliff at 100 s", CLIFF, 0.0, None),
            ("slow decay, 200 s", SLOW, 33.6, Some(55.0)),
            ("sawtooth, 30 s", SAWTOOTH, 0.6, None),
        ];
        for (name, truth, bias, refused) in known {
            let found = many(truth, 300, 9);
            let got = 100.0 * (found.iter().map(|steady| steady.mean).sum::<f64>() / found.len() as f64 - 1.0);
            let never = 100.0 * share(&found, |steady| !steady.reached);
            assert!((got - bias).abs() <= 1.0, "{name}: bias {got} %, not {bias} %");
            let error = 100.0 * pickfs_test_support::noise::share_error(0.55, found.len());
            assert!(refused.is_none_or(|wanted| (never - wanted).abs() <= 4.0 * error), "{name}: {never} % refused");
        }
    }

    #[test]
    fn the_plateau_of_a_cache_is_never_called_steady() {
        let found = many(CLIFF, 300, 10);
        assert!(found.iter().all(|steady| steady.cut_seconds >= 100 || !steady.reached));
    }

    #[test]
    fn steady_series_are_seldom_refused() {
        for (seconds, at_most) in [(100, 0.07), (300, 0.015)] {
            let found = many(FLAT, seconds, 11);
            let never = share(&found, |steady| !steady.reached);
            let differ = share(&found, |steady| steady.halves_differ.is_some());
            assert!(never <= at_most && differ <= at_most, "{seconds} s: {never} never steady, {differ} differ");
        }
    }

    #[test]
    fn what_is_too_short_or_no_number_is_none() {
        let with = |value: f64| [vec![1.0; 100], vec![value]].concat();
        let cases = [vec![], vec![1.0; 99], with(f64::NAN), with(f64::INFINITY), with(-1.0)];
        for series in cases {
            assert_eq!(mser5(&series), None, "{} values", series.len());
        }
    }

    fn steady(cut_seconds: usize, mean: f64, reached: bool, halves_differ: Option<f64>) -> Option<Steady> {
        Some(Steady { cut_seconds, mean, reached, halves_differ })
    }

    /// Without noise: each cut is where the level begins; the last second, no whole batch, counts
    /// for the mean alone.
    #[test]
    fn cuts_of_known_series() {
        let after = |seconds: f64| move |t: f64| if t < seconds { 4.0 } else { 2.0 };
        let cases = [
            ("constant", clean(FLAT, 101), steady(0, 1.0, true, None)),
            ("idle", vec![0.0; 100], steady(0, 0.0, true, None)),
            ("step at 30 s", (0..200).map(|t| after(30.0)(f64::from(t))).collect(), steady(30, 2.0, true, None)),
            (
                "step at the middle",
                (0..200).map(|t| after(100.0)(f64::from(t))).collect(),
                steady(100, 2.0, false, None),
            ),
        ];
        for (name, series, wanted) in cases {
            assert_eq!(mser5(&series), wanted, "{name}");
        }
    }

    /// A step behind the middle cannot be cut off; the halves of the rest show it.
    #[test]
    fn halves_that_differ_are_told() {
        let late: Vec<f64> = (0..200).map(|t| if t < 150 { 2.0 } else { 1.0 }).collect();
        let apart = mser5(&late).expect("long enough").halves_differ.expect("a step");
        assert!(apart > 0.2, "{apart}");
        let dies: Vec<f64> = (0..200).map(|t| if t < 100 { 1.0 } else { 0.0 }).collect();
        assert!(mser5(&dies).is_some_and(|found| found.cut_seconds == 100 && !found.reached));
    }
}
