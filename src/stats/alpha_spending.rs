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
const CONFIDENCE: f64 = 0.95;

/// What intervals are made for where results decide when to stop.
const INTERNAL: f64 = 0.97;

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

    /// Of one look of several, in a race of so many targets; without any right to beat somebody where that would take
    /// more rounds than there are.
    pub fn one_of_several(round: u32, targets: usize) -> Level {
        let looks = telling_looks(targets);
        let alpha = if round < looks[0] { 0.0 } else { ALPHA / looks.len() as f64 };
        Level { alpha, confidence: confidence_at(round) }
    }

    /// Of a look that nothing in the results has called for, and after which there is none: a budget of time that is
    /// used up. It may spend what the looks before it have left.
    pub fn last(round: u32, targets: usize) -> Level {
        let looks = telling_looks(targets);
        let before = looks.iter().filter(|look| **look < round).count();
        Level { alpha: ALPHA * (1.0 - before as f64 / looks.len() as f64), confidence: confidence_at(round) }
    }

    /// The chance of error of one comparison of a race; at most half of alpha, so that of two equals neither is named in
    /// more than alpha.
    pub fn one_sided(self, targets: usize) -> f64 {
        self.alpha / targets.saturating_sub(1).max(2) as f64
    }
}

/// The looks of a race of so many targets at which anybody can be beaten at all: the signed-rank test of n rounds finds
/// nothing less likely than 2^-n. Only these share alpha.
fn telling_looks(targets: usize) -> &'static [u32] {
    let can_beat = |first: &usize| {
        let level = Level { alpha: ALPHA / (LOOKS.len() - first) as f64, confidence: INTERNAL };
        0.5f64.powi(LOOKS[*first] as i32) <= level.one_sided(targets)
    };
    let first = (0..LOOKS.len()).find(can_beat).unwrap_or(LOOKS.len() - 1);
    &LOOKS[first..]
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
        for targets in [1, 2, 3, 4, 8, 20, 200] {
            let spent: f64 = LOOKS.iter().map(|round| Level::one_of_several(*round, targets).alpha).sum();
            assert!((spent - ALPHA).abs() < 1e-12, "{targets} targets");
        }
        for (round, looks_before) in [(3, 0.0), (8, 0.0), (9, 1.0), (11, 1.0), (28, 4.0), (40, 5.0)] {
            let spent = looks_before * ALPHA / 6.0 + Level::last(round, 2).alpha;
            assert!((spent - ALPHA).abs() < 1e-12, "round {round}");
        }
    }

    /// With alpha shared among six looks, eight rounds can beat one of three targets; one of four takes nine rounds.
    #[test]
    fn looks_that_can_beat_nobody_spend_nothing() {
        for (targets, first) in [(2, 8), (3, 8), (4, 11), (8, 11), (20, 11), (22, 15), (300, 15), (500, 20)] {
            assert_eq!(telling_looks(targets)[0], first, "{targets} targets");
            let level = Level::one_of_several(first, targets);
            assert!(super::super::signed_rank_k(first as usize, 2.0 * level.one_sided(targets)).is_some());
        }
        assert_eq!((Level::one_of_several(8, 8).alpha, Level::last(8, 8).alpha), (0.0, ALPHA));
    }

    #[test]
    fn intervals_are_wider_once_results_may_stop_the_run() {
        let confidence = |round| [Level::one_of_several(round, 2), Level::last(round, 2)].map(|level| level.confidence);
        assert_eq!((confidence(7), confidence(8)), ([0.95; 2], [0.97; 2]));
    }
}
