//! The set of targets not shown to be slower than the best.
//!
//! A target leaves when some other one is faster, whatever by, with the whole paired interval above 1. The true best
//! leaves only by a false alarm of one of its k-1 comparisons, so testing each at alpha/(k-1) keeps the chance of
//! losing it below alpha, however the comparisons depend on one another (Bonferroni). The set is therefore wide rather
//! than wrong: naming the lowest mean of three runs names a target that is not the best in 15 to 40 % of cases.

use super::judge::{Band, Finding, judge};
use super::paired::{Method, paired_ratio};

/// Who may be the best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestSet {
    /// Indices of the targets not shown to be slower than another, ascending; one member is the winner.
    pub members: Vec<usize>,
    /// True: the chance of having thrown out the true best is at most one minus the confidence, over all comparisons
    /// together. False: there were too few rounds for that, and every comparison was made at the plain confidence.
    pub corrected: bool,
    /// True: there are several members, and every two of them are equivalent within the threshold.
    pub tie: bool,
}

/// The best set of `times[target][round]`, any positive unit, lower is better; every target has the same rounds.
/// `confidence` is 0.95 for 95 %; the band decides only on `tie`.
///
/// With fewer than three rounds there is no interval and nobody leaves.
pub fn best_set(times: &[Vec<f64>], confidence: f64, band: impl Into<Band>) -> BestSet {
    let rounds = times.iter().map(Vec::len).min().unwrap_or(0);
    let strict = corrected_confidence(times.len(), confidence);
    let corrected = attains(rounds, strict);
    let used = if corrected { strict } else { confidence };
    let members = undominated(times, used);
    let tie = all_equivalent(times, &members, confidence, band.into());
    BestSet { members, corrected, tie }
}

/// The two-sided confidence of one comparison among `targets` whose one-sided error is alpha/(k-1); at most alpha/2, so
/// that two targets are held to the very interval that their own comparison shows.
fn corrected_confidence(targets: usize, confidence: f64) -> f64 {
    let one_sided = (1.0 - confidence) / targets.saturating_sub(1).max(2) as f64;
    1.0 - 2.0 * one_sided
}

/// True where that many rounds give a signed-rank interval of that confidence.
fn attains(rounds: usize, confidence: f64) -> bool {
    let any_rounds = vec![0.0; rounds];
    paired_ratio(&any_rounds, confidence).is_some_and(|estimate| estimate.method == Method::SignedRank)
}

/// Everybody, should each be slower than another in a circle: ranks of three or more targets can do that.
fn undominated(times: &[Vec<f64>], confidence: f64) -> Vec<usize> {
    let everybody = 0..times.len();
    let slower_than_any = |i: &usize| everybody.clone().any(|j| *i != j && slower(&times[*i], &times[j], confidence));
    let members: Vec<usize> = everybody.clone().filter(|i| !slower_than_any(i)).collect();
    if members.is_empty() { everybody.collect() } else { members }
}

/// True where the whole interval of first over second is above 1.
fn slower(first: &[f64], second: &[f64], confidence: f64) -> bool {
    let interval = paired_ratio(&log_ratios(first, second), confidence).and_then(|estimate| estimate.interval);
    interval.is_some_and(|(low, _)| low > 1.0)
}

/// No correction here: a claim that holds only if every one of its tests holds needs none (Berger 1982).
fn all_equivalent(times: &[Vec<f64>], members: &[usize], confidence: f64, band: Band) -> bool {
    let pairs = members.iter().enumerate().flat_map(|(at, i)| members[at + 1..].iter().map(move |j| (*i, *j)));
    let tied = |(i, j): (usize, usize)| {
        let estimate = paired_ratio(&log_ratios(&times[i], &times[j]), confidence);
        estimate.is_some_and(|estimate| judge(&estimate, band) == Finding::Tie)
    };
    members.len() > 1 && pairs.into_iter().all(tied)
}

fn log_ratios(first: &[f64], second: &[f64]) -> Vec<f64> {
    first.iter().zip(second).map(|(a, b)| a.ln() - b.ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::noise::Noise;

    /// Times about `level` with 1 % noise; rounds differ by up to 50 %, alike for all.
    fn race(levels: &[f64], rounds: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut noise = Noise::new(seed);
        let shared: Vec<f64> = (0..rounds).map(|_| 1.0 + noise.uniform() / 2.0).collect();
        let mut times = |level: &f64| shared.iter().map(|s| level * s * (0.01 * noise.normal()).exp()).collect();
        levels.iter().map(&mut times).collect()
    }

    fn set(members: &[usize], corrected: bool, tie: bool) -> BestSet {
        BestSet { members: members.to_vec(), corrected, tie }
    }

    #[test]
    fn sets_of_known_races() {
        let cases: [(&str, &[f64], usize, BestSet); 8] = [
            ("nobody", &[], 0, set(&[], false, false)),
            ("alone", &[1.0], 8, set(&[0], true, false)),
            ("two rounds", &[1.0, 9.0], 2, set(&[0, 1], false, false)),
            ("preliminary", &[1.0, 9.0], 3, set(&[0], false, false)),
            ("clear winner", &[1.2, 1.0, 1.4], 8, set(&[1], true, false)),
            ("tie of two", &[1.0, 1.5, 1.0], 12, set(&[0, 2], true, true)),
            ("too few to correct", &[1.0, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8], 6, set(&[0], false, false)),
            ("enough to correct", &[1.0, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8], 9, set(&[0], true, false)),
        ];
        for (name, levels, rounds, wanted) in cases {
            assert_eq!(best_set(&race(levels, rounds, 5), 0.95, 0.03), wanted, "{name}");
        }
    }

    /// 4 % ± 2.5 % at 95 %, but ± 4.8 % at the level for seven rivals, which three rounds do not bear.
    #[test]
    fn too_few_rounds_are_compared_at_the_plain_confidence() {
        let slow = [0.03f64, 0.04, 0.05].map(f64::exp).to_vec();
        let mut times = vec![vec![1.0; 3]; 7];
        times.push(slow);
        assert_eq!(best_set(&times, 0.95, 0.03), set(&[0, 1, 2, 3, 4, 5, 6], false, true));
    }

    #[test]
    fn equals_are_no_tie_within_less_than_their_noise() {
        let times = race(&[1.0, 1.0], 12, 5);
        let ties = [0.0001, 0.03].map(|threshold| best_set(&times, 0.95, threshold).tie);
        assert_eq!(ties, [false, true]);
    }

    #[test]
    fn neither_the_order_of_targets_nor_the_unit_matters() {
        let times = race(&[1.0, 1.005, 1.02, 1.3], 11, 9);
        let names = |set: BestSet, order: &[usize]| {
            let mut names: Vec<usize> = set.members.iter().map(|i| order[*i]).collect();
            names.sort();
            (names, set.corrected, set.tie)
        };
        let wanted = names(best_set(&times, 0.95, 0.03), &[0, 1, 2, 3]);
        for order in [[3, 2, 1, 0], [1, 3, 0, 2]] {
            let scaled = |i: &usize| times[*i].iter().map(|t| t * 1e9).collect();
            let shuffled: Vec<Vec<f64>> = order.iter().map(scaled).collect();
            assert_eq!(names(best_set(&shuffled, 0.95, 0.03), &order), wanted);
        }
    }

    /// One-sided error in all of alpha, divided by k-1; never above the alpha/2 of a plain interval.
    #[test]
    fn the_correction_divides_by_the_rivals() {
        for (targets, wanted) in [(1, 0.95), (2, 0.95), (3, 0.95), (5, 0.975), (11, 0.99)] {
            assert!((corrected_confidence(targets, 0.95) - wanted).abs() < 1e-12, "{targets} targets");
        }
    }

    /// The true best of eight, five of them alike, is lost in at most 5 % of 400 races plus three standard errors.
    #[test]
    fn the_true_best_is_seldom_lost() {
        let lost = |seed: &u64| {
            let times = race(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.02, 1.05, 1.1], 10, *seed);
            !best_set(&times, 0.95, 0.03).members.contains(&0)
        };
        let share = (0..400).filter(lost).count() as f64 / 400.0;
        assert!(share <= 0.05 + 3.0 * (0.05f64 * 0.95 / 400.0).sqrt(), "lost in {share}");
    }

    /// In each third of the rounds another one comes first, so that each is slower than the next. A confidence of one
    /// half, as at 95 % it would take 450 rounds to show.
    #[test]
    fn a_circle_loses_nobody() {
        let turns = [[1.0, 2.0, 4.0], [4.0, 1.0, 2.0], [2.0, 4.0, 1.0]];
        let of = |target: usize| (0..60).map(|round| turns[round % 3][target]).collect();
        let times: Vec<Vec<f64>> = (0..3).map(of).collect();
        assert!((0..3).all(|i| slower(&times[i], &times[(i + 1) % 3], 0.5)), "not a circle");
        assert_eq!(undominated(&times, 0.5), [0, 1, 2]);
    }
}
