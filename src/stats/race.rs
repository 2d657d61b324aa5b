//! The race: which targets are not shown to be slower than another, and whether those that are left are the same.
//!
//! A target is beaten when some other one is faster, whatever by, with the whole one-sided interval of the paired
//! rounds above 1. The true best is beaten only by a false alarm in one of its k-1 comparisons at one of the looks, so
//! testing each at alpha/(k-1), where the looks share 5 % as alpha, keeps the chance of losing it below 5 %, however
//! the comparisons depend on one another (Bonferroni). The set is therefore wide rather than wrong: naming the lowest
//! mean of three runs names a target that is not the best in 15 to 40 % of cases.

use super::alpha_spending::Level;
use super::judge::{Band, Finding, judge};
use super::paired::{Estimate, Method, paired_ratio};
use super::signed_rank::signed_rank_k;
use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::HashMap;

/// How the targets of a race stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Indices of the targets not shown to be slower than another, ascending; one member is the winner.
    pub members: Vec<usize>,
    /// For each target one that beats it, if any does.
    pub beaten_by: Vec<Option<usize>>,
    /// True: the chance of having thrown out the true best is as promised, over all comparisons together. False: there
    /// were too few rounds for that, and every comparison was made at the plain confidence.
    pub corrected: bool,
    /// True: there are several members, and every two of them are equivalent within the threshold.
    pub tie: bool,
}

/// Where the targets stand, by `logs[target][round]`: logarithms of times in any unit, lower is better, NaN where there
/// is none. Two targets are compared over the rounds that both have, so one that has left the race keeps what it has.
/// The band decides only on `tie`.
///
/// With fewer than three rounds there is no interval and nobody is beaten.
pub fn standing(logs: &[Vec<f64>], level: Level, band: impl Into<Band>) -> Standing {
    let one_sided = level.one_sided(logs.len());
    let corrected = signed_rank_k(most_rounds(logs), 2.0 * one_sided).is_some();
    let mut ranks = Ranks::new(if corrected { 2.0 * one_sided } else { 1.0 - level.confidence });
    let beaten_by = if corrected {
        beaten(logs, |pair| beats(pair, &mut ranks))
    } else {
        beaten(logs, |pair| above_one(pair, level.confidence))
    };
    let members: Vec<usize> = (0..logs.len()).filter(|at| beaten_by[*at].is_none()).collect();
    let tie = all_equivalent(logs, &members, level.confidence, band.into());
    Standing { members, beaten_by, corrected, tie }
}

fn most_rounds(logs: &[Vec<f64>]) -> usize {
    logs.iter().map(|rounds| rounds.iter().filter(|value| value.is_finite()).count()).max().unwrap_or(0)
}

/// For each target one that beats it; nobody where each is beaten in a circle, which ranks of three targets can do.
/// `slower` is asked of the differences of a pair.
fn beaten(logs: &[Vec<f64>], mut slower: impl FnMut(&mut [f64]) -> bool) -> Vec<Option<usize>> {
    let mut fastest_first: Vec<usize> = (0..logs.len()).collect();
    let means: Vec<f64> = logs.iter().map(|rounds| mean(rounds)).collect();
    fastest_first.sort_by(|a, b| means[*a].total_cmp(&means[*b]));
    let mut pair = Vec::new();
    let mut beats = |i: usize, j: usize| {
        differences(&logs[i], &logs[j], &mut pair);
        i != j && slower(&mut pair)
    };
    let found = (0..logs.len()).map(|i| fastest_first.iter().copied().find(|j| beats(i, *j)));
    let beaten: Vec<Option<usize>> = found.collect();
    if beaten.iter().all(Option::is_some) { vec![None; logs.len()] } else { beaten }
}

fn mean(values: &[f64]) -> f64 {
    let (sum, count) = values.iter().filter(|v| v.is_finite()).fold((0.0, 0), |(sum, count), v| (sum + v, count + 1));
    sum / f64::from(count)
}

/// Differences of the rounds that both have.
fn differences(first: &[f64], second: &[f64], into: &mut Vec<f64>) {
    into.clear();
    into.extend(first.iter().zip(second).map(|(a, b)| a - b).filter(|d| d.is_finite()));
}

/// Rank K by number of rounds, each counted out once.
struct Ranks {
    alpha: f64,
    known: HashMap<usize, Option<usize>>,
}

impl Ranks {
    fn new(alpha: f64) -> Ranks {
        Ranks { alpha, known: HashMap::new() }
    }

    fn of(&mut self, rounds: usize) -> Option<usize> {
        let alpha = self.alpha;
        *self.known.entry(rounds).or_insert_with(|| signed_rank_k(rounds, alpha).map(|(k, _)| k))
    }
}

/// True where the lower bound of the signed-rank interval is above nought: fewer than K averages of pairs are not.
fn beats(pair: &mut [f64], ranks: &mut Ranks) -> bool {
    let Some(k) = ranks.of(pair.len()) else { return false };
    // So many averages are not above nought whatever the others are: spares most of the sorting and counting.
    let below = count(pair, |d| d <= 0.0);
    below * (below + 1) / 2 < k && averages_at_most(sorted(pair), 0.0) < k
}

fn count(pair: &[f64], holds: impl Fn(f64) -> bool) -> usize {
    pair.iter().filter(|d| holds(**d)).count()
}

fn sorted(pair: &mut [f64]) -> &[f64] {
    pair.sort_unstable_by(f64::total_cmp);
    pair
}

/// How many of the averages of all pairs (each value with itself included) are at most `limit`.
fn averages_at_most(sorted: &[f64], limit: f64) -> usize {
    let mut count = 0;
    let mut end = sorted.len();
    for (at, value) in sorted.iter().enumerate() {
        while end > at && (value + sorted[end - 1]) / 2.0 > limit {
            end -= 1;
        }
        if end <= at {
            break;
        }
        count += end - at;
    }
    count
}

/// True where the whole plain interval of first over second is above 1.
fn above_one(pair: &[f64], confidence: f64) -> bool {
    let interval = paired_ratio(pair, confidence).and_then(|estimate| estimate.interval);
    interval.is_some_and(|(low, _)| low > 1.0)
}

/// No correction here: a claim that holds only if every one of its tests holds needs none (Berger 1982).
fn all_equivalent(logs: &[Vec<f64>], members: &[usize], confidence: f64, band: Band) -> bool {
    if !band.proves_ties() {
        return false;
    }
    let mut ties = Ties::new(confidence, band);
    let mut pairs = members.iter().enumerate().flat_map(|(at, i)| members[at + 1..].iter().map(move |j| (*i, *j)));
    members.len() > 1 && pairs.all(|(i, j)| ties.hold(&logs[i], &logs[j]))
}

/// Tells ties at one confidence within one band; quick where there are many pairs.
pub struct Ties {
    confidence: f64,
    band: Band,
    ranks: Ranks,
    pair: Vec<f64>,
}

impl Ties {
    pub fn new(confidence: f64, band: Band) -> Ties {
        Ties { confidence, band, ranks: Ranks::new(1.0 - confidence), pair: Vec::new() }
    }

    /// True where two targets, by their aligned logarithms, are the same within the band.
    pub fn hold(&mut self, first: &[f64], second: &[f64]) -> bool {
        differences(first, second, &mut self.pair);
        self.band.proves_ties() && is_tie(&mut self.pair, self.confidence, self.band, &mut self.ranks)
    }
}

/// As [`judge`] finds, without sorting all averages of pairs where ranks will do.
fn is_tie(pair: &mut [f64], confidence: f64, band: Band, ranks: &mut Ranks) -> bool {
    let Some(k) = ranks.of(pair.len()).filter(|_| pair.len() >= 6) else {
        return paired_ratio(pair, confidence).is_some_and(|found| judge(&found, band) == Finding::Tie);
    };
    let edge = band.threshold.ln_1p();
    let floor = -edge - f64::EPSILON;
    // An average is out of the band only if one of its two is: with few of them there is nothing to sort.
    let few = |out: usize| out * pair.len() < k;
    if few(count(pair, |d| d <= floor)) && few(count(pair, |d| d > edge)) {
        return true;
    }
    let all = pair.len() * (pair.len() + 1) / 2;
    let pair = sorted(pair);
    // The K-th average from below is not under the band, the K-th from above not over it.
    averages_at_most(pair, floor) < k && all - averages_at_most(pair, edge) < k
}

/// About how many rounds in all (at least one more than there are) would decide between two targets of a race of so many
/// `targets`: show one of them to be slower at the race's level, or the two to be the same. `None` where the interval is
/// preliminary, or where no number that anyone runs would do.
///
/// Widths shrink with the square root of the number of rounds; the estimate stands for the truth.
pub fn rounds_to_decide(estimate: &Estimate, level: Level, targets: usize, band: Band) -> Option<u32> {
    if estimate.method != Method::SignedRank {
        return None;
    }
    let (half, away) = (estimate.half_width()?, estimate.ratio.ln().abs());
    let normal = Normal::standard();
    let quantile = |one_sided: f64| -normal.inverse_cdf(one_sided);
    let wider = quantile(level.one_sided(targets)) / quantile((1.0 - level.confidence) / 2.0);
    let to_beat = half * wider / away;
    let to_tie = half / (band.wanted.ln_1p() - away).max(0.0);
    let rounds = (estimate.n as f64 * to_beat.min(to_tie).powi(2)).ceil().max(estimate.n as f64 + 1.0);
    (rounds <= super::judge::ABSURD).then_some(rounds as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::noise::Noise;

    /// Of `times[target][round]`.
    fn logs(times: &[Vec<f64>]) -> Vec<Vec<f64>> {
        times.iter().map(|rounds| rounds.iter().map(|time| time.ln()).collect()).collect()
    }

    /// Times about `level` with 1 % noise; rounds differ by up to 50 %, alike for all.
    fn race(levels: &[f64], rounds: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut noise = Noise::new(seed);
        let shared: Vec<f64> = (0..rounds).map(|_| 1.0 + noise.uniform() / 2.0).collect();
        let mut times = |level: &f64| shared.iter().map(|s| level * s * (0.01 * noise.normal()).exp()).collect();
        levels.iter().map(&mut times).collect()
    }

    fn set(times: &[Vec<f64>], threshold: f64) -> (Vec<usize>, bool, bool) {
        let found = standing(&logs(times), Level::ONLY, threshold);
        (found.members, found.corrected, found.tie)
    }

    /// Members, corrected, tie.
    type Known<'a> = (&'a [usize], bool, bool);

    #[test]
    fn sets_of_known_races() {
        let cases: [(&str, &[f64], usize, Known); 9] = [
            ("nobody", &[], 0, (&[], false, false)),
            ("alone", &[1.0], 8, (&[0], true, false)),
            ("two rounds", &[1.0, 9.0], 2, (&[0, 1], false, false)),
            ("preliminary", &[1.0, 9.0], 3, (&[0], false, false)),
            ("clear winner", &[1.2, 1.0, 1.4], 8, (&[1], true, false)),
            ("tie of two", &[1.0, 1.5, 1.0], 12, (&[0, 2], true, true)),
            ("too few to correct", &[1.0, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8], 6, (&[0], false, false)),
            ("enough to correct", &[1.0, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8], 9, (&[0], true, false)),
            ("two in six", &[1.0, 1.5], 6, (&[0], true, false)),
        ];
        for (name, levels, rounds, (members, corrected, tie)) in cases {
            assert_eq!(set(&race(levels, rounds, 5), 0.03), (members.to_vec(), corrected, tie), "{name}");
        }
    }

    /// 4 % ± 2.5 % at 95 %, but ± 4.8 % at the level for seven rivals, which three rounds do not bear.
    #[test]
    fn too_few_rounds_are_compared_at_the_plain_confidence() {
        let slow = [0.03f64, 0.04, 0.05].map(f64::exp).to_vec();
        let mut times = vec![vec![1.0; 3]; 7];
        times.push(slow);
        assert_eq!(set(&times, 0.03), (vec![0, 1, 2, 3, 4, 5, 6], false, true));
    }

    #[test]
    fn equals_are_no_tie_within_less_than_their_noise() {
        let times = race(&[1.0, 1.0], 12, 5);
        assert_eq!([0.0001, 0.03].map(|threshold| set(&times, threshold).2), [false, true]);
    }

    /// What left after eleven rounds is compared over eleven; what is not there at all beats nobody.
    #[test]
    fn pairs_are_compared_over_the_rounds_that_both_have() {
        let mut found = logs(&race(&[1.0, 1.005, 1.1, 0.5], 20, 3));
        found[2][11..].fill(f64::NAN);
        found[3].fill(f64::NAN);
        let stood = standing(&found, Level::ONLY, 0.03);
        assert_eq!((stood.beaten_by[2].is_some(), stood.members), (true, vec![0, 1, 3]));
    }

    #[test]
    fn neither_the_order_of_targets_nor_the_unit_matters() {
        let times = race(&[1.0, 1.005, 1.02, 1.3], 11, 9);
        let names = |(members, corrected, tie): (Vec<usize>, bool, bool), order: &[usize]| {
            let mut names: Vec<usize> = members.iter().map(|i| order[*i]).collect();
            names.sort();
            (names, corrected, tie)
        };
        let wanted = names(set(&times, 0.03), &[0, 1, 2, 3]);
        for order in [[3, 2, 1, 0], [1, 3, 0, 2]] {
            let scaled = |i: &usize| times[*i].iter().map(|t| t * 1e9).collect();
            let shuffled: Vec<Vec<f64>> = order.iter().map(scaled).collect();
            assert_eq!(names(set(&shuffled, 0.03), &order), wanted);
        }
    }

    /// The counts must say what the sorted list of all averages says, also among equal values.
    #[test]
    fn counts_agree_with_the_interval() {
        let mut noise = Noise::new(8);
        for n in 1..30 {
            let mut pair: Vec<f64> = (0..n).map(|_| (noise.normal() * 4.0).round() / 100.0 + 0.01).collect();
            pair.sort_by(f64::total_cmp);
            for limit in [-0.02, 0.0, 0.005, 0.03] {
                let all = pair.iter().enumerate().flat_map(|(i, a)| pair[i..].iter().map(move |b| (a + b) / 2.0));
                assert_eq!(averages_at_most(&pair, limit), all.filter(|average| *average <= limit).count(), "{pair:?}");
            }
            for confidence in [0.9, 0.97] {
                let low = paired_ratio(&pair, confidence).filter(|e| e.method == Method::SignedRank);
                let above = low.and_then(|e| e.interval).is_some_and(|(low, _)| low > 1.0);
                assert!(n < 6 || beats(&mut pair, &mut Ranks::new(1.0 - confidence)) == above, "{pair:?}");
                let band = Band::from(0.03);
                let tie = paired_ratio(&pair, confidence).is_some_and(|e| judge(&e, band) == Finding::Tie);
                assert_eq!(
                    is_tie(&mut pair.clone(), confidence, band, &mut Ranks::new(1.0 - confidence)),
                    tie,
                    "{pair:?}"
                );
            }
        }
    }

    /// The true best of eight, five of them alike, is lost in at most 5 % of 400 races plus three standard errors.
    #[test]
    fn the_true_best_is_seldom_lost() {
        let lost = |seed: &u64| {
            let times = race(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.02, 1.05, 1.1], 10, *seed);
            !set(&times, 0.03).0.contains(&0)
        };
        let share = (0..400).filter(lost).count() as f64 / 400.0;
        assert!(share <= 0.05 + 3.0 * (0.05f64 * 0.95 / 400.0).sqrt(), "lost in {share}");
    }

    /// In each third of the rounds another one comes first, so that each is slower than the next. An alpha of one
    /// half, as at 5 % it would take 450 rounds to show.
    #[test]
    fn a_circle_loses_nobody() {
        let turns = [[1.0, 2.0, 4.0], [4.0, 1.0, 2.0], [2.0, 4.0, 1.0]];
        let of = |target: usize| (0..60).map(|round| turns[round % 3][target]).collect();
        let times: Vec<Vec<f64>> = (0..3).map(of).collect();
        let level = Level { alpha: 0.5, confidence: 0.5 };
        for i in 0..3 {
            let two = [times[i].clone(), times[(i + 1) % 3].clone()];
            assert_eq!(standing(&logs(&two), level, 0.03).members, [1], "not a circle");
        }
        assert_eq!(standing(&logs(&times), level, 0.03).members, [0, 1, 2]);
    }

    #[test]
    fn rounds_to_decide_grow_with_the_noise_and_shrink_with_the_difference() {
        let of = |ratio: f64, half: f64| {
            let interval = Some(((ratio.ln() - half).exp(), (ratio.ln() + half).exp()));
            let estimate =
                Estimate { ratio, interval, method: Method::SignedRank, level: 0.97, n: 8, share_above: 0.5 };
            rounds_to_decide(&estimate, Level::one_of_several(8, 2), 2, Band::from(0.03))
        };
        // Equal: the half-width must shrink to ln 1.03.
        assert_eq!(of(1.0, 0.02956 * 2.0), Some(33));
        assert_eq!(of(1.0, 0.001), Some(9));
        // 10 % away: the race's interval, 1.216 times as wide, must shrink to ln 1.1.
        assert_eq!(of(1.1, 0.09531 * 2.0), Some(48));
        assert_eq!(of(1.0, 9.0), None);
    }
}
