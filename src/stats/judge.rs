//! What an interval says, in one of a few fixed findings. This is the only place that decides.
//!
//! The whole interval is held against the band [1/(1+δ), 1+δ] of ratios too small to matter. An interval inside the
//! band is a tie: two one-sided tests at 2.5 % each for a 95 % interval (Schuirmann 1987). δ, the practical threshold,
//! is at least what two copies of the same target can differ by.

use super::median;
use super::paired::{Estimate, Method};

/// What an interval of a ratio (first over second) says. Whether higher is better, the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The whole interval is above the band: higher by more than the threshold.
    Higher,
    /// The whole interval is below the band.
    Lower,
    /// The whole interval is inside the band: no difference that matters.
    Tie,
    /// Above 1, by how much is open: it may not matter.
    ProbablyHigher,
    /// Below 1, by how much is open: it may not matter.
    ProbablyLower,
    /// The interval holds 1 and reaches out of the band. `rounds` is about how many in total (more than there are)
    /// would narrow it to the band's width; `None` where that is beyond 10 000, or the interval is preliminary.
    Unresolved { rounds: Option<u32> },
    /// No interval yet.
    TooFewRounds,
}

/// More rounds than this nobody runs.
pub(super) const ABSURD: f64 = 10_000.0;

/// Half-widths of the noise floor that make the band.
const NOISE_IN_BAND: f64 = 1.5;

/// Differences that do not matter: as wide as was wanted, or as wide as the noise makes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The smallest relative difference worth acting on; 0.03 for 3 %.
    pub wanted: f64,
    /// δ: what was wanted, or what the noise floor allows, whichever is larger.
    pub threshold: f64,
}

impl Band {
    /// One and a half times the half-width of the comparison of the reference with its hidden duplicate is as little
    /// as can be told from nothing.
    pub fn new(wanted: f64, duplicate: Option<&Estimate>) -> Band {
        let noise_floor = duplicate.and_then(Estimate::half_width).map_or(0.0, |half| (NOISE_IN_BAND * half).exp_m1());
        Band { wanted, threshold: wanted.max(noise_floor) }
    }

    /// A noise floor above the wanted threshold proves no tie: "the same within 50 %" is no answer to who asked for
    /// 3 %.
    pub fn proves_ties(self) -> bool {
        self.noise() <= self.wanted.ln_1p() * (1.0 + 1e-9)
    }

    /// The noise floor: the half-width, of the logarithm of a ratio, with which two copies of one target are known. At
    /// most this, where the noise is too little to widen the band.
    fn noise(self) -> f64 {
        self.threshold.ln_1p() / NOISE_IN_BAND
    }
}

impl From<f64> for Band {
    fn from(wanted: f64) -> Band {
        Band { wanted, threshold: wanted }
    }
}

/// Holds the interval against the band. What a preliminary estimate ([`Method::LogT`](super::Method::LogT)) says is
/// found alike; the caller labels it.
pub fn judge(estimate: &Estimate, band: impl Into<Band>) -> Finding {
    let band = band.into();
    let threshold = band.threshold;
    let Some((low, high)) = estimate.interval else { return Finding::TooFewRounds };
    let (floor, ceiling) = (1.0 / (1.0 + threshold), 1.0 + threshold);
    match () {
        () if low > ceiling => Finding::Higher,
        () if high < floor => Finding::Lower,
        () if low >= floor && high <= ceiling && band.proves_ties() => Finding::Tie,
        () if low > 1.0 => Finding::ProbablyHigher,
        () if high < 1.0 => Finding::ProbablyLower,
        () => Finding::Unresolved { rounds: rounds_needed(estimate, band.wanted) },
    }
}

/// Widths shrink with the square root of the number of rounds. At least one more than there are: an interval may be
/// narrow enough and still lie across the band's edge.
fn rounds_needed(estimate: &Estimate, wanted: f64) -> Option<u32> {
    // Student's factor for so few rounds is more than twice the one that later rounds will have.
    if estimate.method == Method::LogT {
        return None;
    }
    let shrink = estimate.half_width()? / wanted.ln_1p();
    let rounds = (estimate.n as f64 * shrink.powi(2)).ceil().max(estimate.n as f64 + 1.0);
    (rounds <= ABSURD).then_some(rounds as u32)
}

/// Some where verdicts must be refused: over all measures, the reference and its hidden duplicate, the same thing
/// twice, differ in the median by more than half of the band, each measure's band being as wide as its own noise
/// asks for. A difference whose interval holds 1 may be none: such noise widens the band and refuses nothing. The value
/// is the median relative difference. One measure alone refuses nothing: of two same things
/// measured often enough, some pair always lies apart. Too few rounds for an interval refuse nothing either: that they
/// are few is said already.
pub fn noise_verdict(duplicates: &[Estimate], wanted: f64) -> Option<f64> {
    let duplicates: Vec<&Estimate> = duplicates.iter().filter(|estimate| estimate.interval.is_some()).collect();
    let may_be_one = |estimate: &Estimate| estimate.interval.is_some_and(|(low, high)| low <= 1.0 && high >= 1.0);
    let apart = |estimate: &Estimate| if may_be_one(estimate) { 0.0 } else { estimate.ratio.ln().abs() };
    let shares =
        duplicates.iter().map(|estimate| apart(estimate) / Band::new(wanted, Some(estimate)).threshold.ln_1p());
    let refused = median(&shares.collect::<Vec<_>>())? > 0.5;
    let differences = duplicates.iter().map(|estimate| apart(estimate).exp_m1()).collect::<Vec<_>>();
    median(&differences).filter(|_| refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::paired_ratio;

    fn estimate(low: f64, high: f64) -> Estimate {
        let ratio = (low * high).sqrt();
        let interval = Some((low, high));
        Estimate { ratio, interval, method: Method::SignedRank, level: 0.95, n: 8, share_above: 0.5 }
    }

    fn mirrored(finding: Finding) -> Finding {
        match finding {
            Finding::Higher => Finding::Lower,
            Finding::Lower => Finding::Higher,
            Finding::ProbablyHigher => Finding::ProbablyLower,
            Finding::ProbablyLower => Finding::ProbablyHigher,
            same => same,
        }
    }

    const fn unresolved(rounds: u32) -> Finding {
        Finding::Unresolved { rounds: Some(rounds) }
    }

    /// Interval, and what it says at a threshold of 3 %. From 8 rounds: n' = 8 (w / ln 1.03)².
    const CASES: &[(f64, f64, Finding)] = &[
        (1.05, 1.10, Finding::Higher),
        (1.0301, 1.0302, Finding::Higher),
        (0.80, 0.90, Finding::Lower),
        (0.99, 1.02, Finding::Tie),
        (1.01, 1.02, Finding::Tie),
        (1.0, 1.0, Finding::Tie),
        (1.0 / 1.03, 1.0 + 0.03, Finding::Tie),
        (1.01, 1.05, Finding::ProbablyHigher),
        (1.02, 1.90, Finding::ProbablyHigher),
        (0.94, 0.99, Finding::ProbablyLower),
        (0.95, 1.05, unresolved(23)),
        (0.97, 1.50, unresolved(435)),
        (0.999, 1.035, unresolved(9)),
        (1.0, 1.04, unresolved(9)),
        (0.1, 10.0, Finding::Unresolved { rounds: None }),
    ];

    #[test]
    fn every_interval_has_its_finding_and_its_mirror_image() {
        for (low, high, wanted) in CASES {
            let seen = estimate(*low, *high);
            assert_eq!(judge(&seen, 0.03), *wanted, "{low} to {high}");
            // The edges themselves are at the mercy of rounding.
            if *high != 1.03 {
                assert_eq!(judge(&seen.swapped(), 0.03), mirrored(*wanted), "mirror of {low} to {high}");
            }
        }
    }

    #[test]
    fn no_interval_is_too_few_rounds() {
        let anecdote = paired_ratio(&[0.5, 0.5], 0.95).expect("two rounds");
        assert_eq!(judge(&anecdote, 0.03), Finding::TooFewRounds);
    }

    #[test]
    fn a_preliminary_estimate_is_judged_too() {
        let preliminary = paired_ratio(&[0.50, 0.51, 0.52], 0.95).expect("three rounds");
        assert_eq!((preliminary.method, judge(&preliminary, 0.03)), (Method::LogT, Finding::Higher));
    }

    #[test]
    fn no_number_of_rounds_proves_a_tie_within_nothing() {
        assert_eq!(judge(&estimate(0.99, 1.01), 0.0), Finding::Unresolved { rounds: None });
    }

    #[test]
    fn noise_raises_the_threshold_and_never_lowers_it() {
        let half_width = |w: f64| estimate((-w).exp(), w.exp());
        let cases = [(0.03, None, 0.03), (0.03, Some(0.01), 0.03), (0.03, Some(0.04), 0.06f64.exp() - 1.0)];
        for (wanted, noise, result) in cases {
            let got = Band::new(wanted, noise.map(half_width).as_ref()).threshold;
            assert!((got - result).abs() < 1e-12, "{wanted} with {noise:?}: {got}, not {result}");
        }
        let anecdote = paired_ratio(&[0.5], 0.95).expect("one round");
        assert_eq!(Band::new(0.03, Some(&anecdote)), Band::from(0.03));
    }

    #[test]
    fn a_preliminary_interval_projects_nothing() {
        let preliminary = Estimate { method: Method::LogT, n: 3, ..estimate(0.9, 1.2) };
        assert_eq!(judge(&preliminary, 0.03), Finding::Unresolved { rounds: None });
    }

    #[test]
    fn a_noise_floor_above_what_was_wanted_proves_no_tie() {
        let seen = estimate(0.98, 1.03);
        assert_eq!(judge(&seen, Band { wanted: 0.03, threshold: 0.044 }), Finding::Tie);
        assert!(matches!(judge(&seen, Band { wanted: 0.03, threshold: 0.046 }), Finding::Unresolved { .. }));
        assert_eq!(judge(&estimate(1.6, 1.7), Band { wanted: 0.03, threshold: 0.54 }), Finding::Higher);
    }

    #[test]
    fn a_duplicate_that_differs_by_half_the_threshold_refuses_verdicts() {
        for (ratio, refused) in [(1.0, false), (1.014, false), (1.016, true), (1.0 / 1.014, false), (0.98, true)] {
            assert_eq!(noise_verdict(&[estimate(ratio, ratio)], 0.03).is_some(), refused, "{ratio}");
        }
        // Noise that shows in the interval widens the band instead.
        assert_eq!(noise_verdict(&[estimate(0.95, 1.09)], 0.03), None);
        // One of three measures may lie apart by luck, two may not.
        let (same, apart) = (|| estimate(1.0, 1.0), || estimate(1.1, 1.1));
        assert_eq!(noise_verdict(&[same(), same(), apart()], 0.03), None);
        assert!(noise_verdict(&[same(), apart(), apart()], 0.03).is_some_and(|median| (median - 0.1).abs() < 1e-9));
        assert_eq!(noise_verdict(&[], 0.03), None);
        // A large difference may still be none while its interval holds 1, and so may one without an interval.
        assert_eq!(noise_verdict(&[estimate(0.97, 1.30)], 0.03), None);
        assert!(noise_verdict(&[estimate(1.01, 1.30)], 0.03).is_some());
        assert_eq!(noise_verdict(&[paired_ratio(&[0.5], 0.95).expect("one round")], 0.03), None);
    }
}
