//! When a run whose number of rounds is not fixed may look at its results, and how sure each look must be.
//!
//! Looking again and again until something shows finds differences that are not there: an interval for 95 % that is
//! looked at after every round until it is narrow covers the truth in 80 to 96 %. So there are few looks, their
//! intervals are made for 97 % and reported as 95 % (which is what they cover in simulations, docs/statistics.md), and
//! the race divides its chance of error among all looks (Bonferroni).

/// Rounds after which a run looks. Growing by about a third: fewer looks cost fewer chances of a false alarm, and no
/// decision comes more than a third too late.
pub const LOOKS: [u32; 6] = [8, 11, 15, 20, 28, 40];

/// The chance that a race may lose a target that is truly best.
pub const ALPHA: f64 = 0.05;

/// What intervals are reported as.
pub const CONFIDENCE: f64 = 0.95;

/// What intervals are made for where results decide when to stop.
pub const INTERNAL: f64 = 0.97;

/// How sure one look is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The chance that this look throws a true best out of the race, over all comparisons together.
    pub alpha: f64,
    /// Of the interval of one pair, 0 to 1.
    pub confidence: f64,
}

impl Level {
    /// Of the one look at the end of a fixed number of rounds.
    pub const ONLY: Level = Level { alpha: ALPHA, confidence: CONFIDENCE };

    /// Of one look of several.
    pub fn one_of_several(round: u32) -> Level {
        Level { alpha: ALPHA / LOOKS.len() as f64, confidence: confidence_at(round) }
    }

    /// Of a look that nothing in the results has called for, and after which there is none: a budget of time that is
    /// used up. It may spend what the looks before it have left.
    pub fn last(round: u32) -> Level {
        let before = LOOKS.iter().filter(|look| **look < round).count();
        Level { alpha: ALPHA * (1.0 - before as f64 / LOOKS.len() as f64), confidence: confidence_at(round) }
    }
}

/// Before the first look, nothing in the results can have stopped the run.
fn confidence_at(round: u32) -> f64 {
    if round < LOOKS[0] { CONFIDENCE } else { INTERNAL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_looks_together_spend_alpha() {
        let spent: f64 = LOOKS.iter().map(|round| Level::one_of_several(*round).alpha).sum();
        assert!((spent - ALPHA).abs() < 1e-12);
        for (round, looks_before) in [(3, 0.0), (8, 0.0), (9, 1.0), (11, 1.0), (28, 4.0), (40, 5.0)] {
            let spent = looks_before * ALPHA / 6.0 + Level::last(round).alpha;
            assert!((spent - ALPHA).abs() < 1e-12, "round {round}");
        }
    }

    #[test]
    fn intervals_are_wider_once_results_may_stop_the_run() {
        let confidence = |round| [Level::one_of_several(round), Level::last(round)].map(|level| level.confidence);
        assert_eq!((confidence(7), confidence(8)), ([0.95; 2], [0.97; 2]));
    }
}
