//! What an interval says, in one of a few fixed findings. This is the only place that decides.
//!
//! The whole interval is held against the band [1/(1+δ), 1+δ] of ratios too small to matter. An
//! interval inside the band is a tie: two one-sided tests at 2.5 % each for a 95 % interval
//! (Schuirmann 1987). δ is the smallest relative difference worth acting on: what noise hides, the
//! interval's width says already.

use super::paired::Estimate;

/// What an interval of a ratio (first over second) says. Whether higher is better, the caller
/// knows.
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
    /// The interval holds 1 and reaches out of the band.
    Unresolved,
    /// No interval yet.
    TooFewRounds,
}

impl Finding {
    /// The same seen from the other side.
    pub fn swapped(self) -> Finding {
        match self {
            Finding::Higher => Finding::Lower,
            Finding::Lower => Finding::Higher,
            Finding::ProbablyHigher => Finding::ProbablyLower,
            Finding::ProbablyLower => Finding::ProbablyHigher,
            same => same,
        }
    }
}

/// Holds the interval against the band of this `threshold`, 0.03 for 3 %. What a preliminary
/// estimate ([`Method::LogT`](super::Method::LogT)) says is found alike; the caller labels it.
pub fn judge(estimate: &Estimate, threshold: f64) -> Finding {
    let Some((low, high)) = estimate.interval else { return Finding::TooFewRounds };
    let (floor, ceiling) = (1.0 / (1.0 + threshold), 1.0 + threshold);
    match () {
        () if low > ceiling => Finding::Higher,
        () if high < floor => Finding::Lower,
        () if low >= floor && high <= ceiling => Finding::Tie,
        () if low > 1.0 => Finding::ProbablyHigher,
        () if high < 1.0 => Finding::ProbablyLower,
        () => Finding::Unresolved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, paired_ratio};

    fn estimate(low: f64, high: f64) -> Estimate {
        let ratio = (low * high).sqrt();
        let interval = Some((low, high));
        Estimate { ratio, interval, method: Method::SignedRank, level: 0.95, n: 8, share_above: 0.5 }
    }

    /// Interval, and what it says at a threshold of 3 %.
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
        (0.95, 1.05, Finding::Unresolved),
        (0.97, 1.50, Finding::Unresolved),
        (0.999, 1.035, Finding::Unresolved),
        (1.0, 1.04, Finding::Unresolved),
        (0.1, 10.0, Finding::Unresolved),
    ];

    #[test]
    fn every_interval_has_its_finding_and_its_mirror_image() {
        for (low, high, wanted) in CASES {
            let seen = estimate(*low, *high);
            assert_eq!(judge(&seen, 0.03), *wanted, "{low} to {high}");
            // The edges themselves are at the mercy of rounding.
            if *high != 1.03 {
                assert_eq!(judge(&seen.swapped(), 0.03), wanted.swapped(), "mirror of {low} to {high}");
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
        assert_eq!(judge(&estimate(0.99, 1.01), 0.0), Finding::Unresolved);
    }
}
