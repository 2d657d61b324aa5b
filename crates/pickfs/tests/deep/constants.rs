//! The constants of the signed-rank interval, counted a second time by another route.
//!
//! The program adds up chances as floating-point numbers, in place. Here the choices of ranks are
//! counted as integers, by recursion on the largest rank: every count up to 2^40 is exact, and so
//! is its comparison with the error allowed.

use pickfs_stats::{ALPHA, LAST_LOOK, Schedule, sign_k, signed_rank_k};
use std::collections::HashMap;

use pickfs_test_support::noise;

/// Numbers of subsets of 1..=n with a sum of at most s: the partitions of 0..=s into distinct parts
/// of at most n.
#[derive(Default)]
struct Counts(HashMap<(u64, u64), u128>);

impl Counts {
    /// With a sum of exactly `sum`: those without `n`, and those with it.
    fn exactly(&mut self, n: u64, sum: u64) -> u128 {
        if n == 0 || sum > n * (n + 1) / 2 {
            return u128::from(sum == 0);
        }
        if let Some(known) = self.0.get(&(n, sum)) {
            return *known;
        }
        let without = self.exactly(n - 1, sum);
        let with = if sum >= n { self.exactly(n - 1, sum - n) } else { 0 };
        self.0.insert((n, sum), without + with);
        without + with
    }

    /// The largest K with P(W+ <= K-1) <= alpha/2, and 1 - 2 P(W+ <= K-1).
    fn k(&mut self, n: u64, alpha: f64) -> Option<(usize, f64)> {
        let all = (1u64 << n) as f64;
        let (mut tail, mut best) = (0u128, None);
        for sum in 0..=n * (n + 1) / 2 {
            tail += self.exactly(n, sum);
            if tail as f64 > alpha / 2.0 * all {
                break;
            }
            best = Some((sum as usize + 1, 1.0 - 2.0 * tail as f64 / all));
        }
        best
    }
}

/// Two-sided errors: what intervals are asked for, and what each comparison of a race with k
/// targets and six looks is.
fn errors() -> Vec<f64> {
    let races = [2, 3, 4, 5, 8, 12, 20].map(|targets| 2.0 * 0.05 / (6 * (targets - 1)) as f64);
    let single = races.map(|both_sides| both_sides / 2.0);
    [vec![0.2, 0.1, 0.05, 0.03, 0.01], races.to_vec(), single.to_vec()].concat()
}

#[test]
fn signed_ranks_are_those_of_whole_numbers() {
    let mut counts = Counts::default();
    for n in 1..=40 {
        for alpha in errors() {
            let (got, wanted) = (signed_rank_k(n as usize, alpha), counts.k(n, alpha));
            let same_level = got.zip(wanted).is_none_or(|((_, a), (_, b))| (a - b).abs() < 1e-12);
            let ranks = [got, wanted].map(|found| found.map(|(k, _)| k));
            assert!(ranks[0] == ranks[1] && same_level, "n = {n}, alpha = {alpha}: {got:?}, not {wanted:?}");
        }
    }
}

/// The fewest rounds in which one comparison of a race with six looks can reject anything.
#[test]
fn races_can_end_after_so_many_rounds() {
    let fewest = |targets: usize| {
        let both_sides = 2.0 * 0.05 / (6 * (targets - 1)) as f64;
        (1..100).find(|n| signed_rank_k(*n, both_sides).is_some())
    };
    assert_eq!([4, 8, 12, 20].map(fewest), [9, 10, 11, 12].map(Some));
}

/// Pascal's triangle, row by row, against the binomial distribution of a library.
#[test]
fn signs_are_those_of_whole_numbers() {
    let mut row = vec![1u128];
    for n in 1..=60usize {
        let sums = row.windows(2).map(|pair| pair[0] + pair[1]);
        row = std::iter::once(1).chain(sums).chain([1]).collect();
        for alpha in errors() {
            let allowed = alpha / 2.0 * (1u64 << n) as f64;
            let tail = |k: usize| row[..k].iter().sum::<u128>() as f64;
            let wanted = (1..=n / 2).take_while(|k| tail(*k) <= allowed).last();
            assert_eq!(sign_k(n, alpha).map(|(k, _)| k), wanted, "n = {n}, alpha = {alpha}");
        }
    }
}

/// The first round with looks by signed ranks.
const RANKS_FROM: u32 = 8;

/// The chance that any of the looks by signed ranks exceeds its bound, counted with random signs,
/// is at most what is meant for all of them, for one comparison and for up to fifty at once: four
/// fifths of all chance of error for the six of ten looks, three quarters for one after each round.
#[test]
fn looks_by_ranks_spend_their_share_together() {
    let count = noise::replications(40_000, 4_000_000);
    for (schedule, share) in [(Schedule::Ten, 0.8), (Schedule::EachRound, 0.75)] {
        let rounds: Vec<u32> = schedule.rounds().collect();
        let looks = schedule.spent(&rounds).into_iter().filter(|look| look.rounds >= RANKS_FROM);
        let looks: Vec<_> = looks.collect();
        let comparisons = [1, 2, 4, 9, 19, 49];
        let rank = |rounds: u32, one_sided: f64| signed_rank_k(rounds as usize, 2.0 * one_sided).map_or(0, |(k, _)| k);
        let bounds = comparisons.map(|many| {
            looks.iter().map(|look| (look.rounds, rank(look.rounds, look.one_sided(many)))).collect::<Vec<_>>()
        });
        let mut random = noise::Noise::new(77);
        let mut exceeded = [0u32; 6];
        for _ in 0..count {
            let sums = sums_below(&mut random);
            for (exceeded, bounds) in exceeded.iter_mut().zip(&bounds) {
                *exceeded += u32::from(bounds.iter().any(|(rounds, k)| sums[*rounds as usize] < *k));
            }
        }
        for (many, exceeded) in comparisons.iter().zip(exceeded) {
            let (found, meant) = (f64::from(exceeded) / count as f64, share * ALPHA / f64::from(*many as u32));
            println!("{schedule:?}, {many} comparisons: {:.3} of the chance of error", found / meant);
            assert!(
                found <= meant + 3.5 * noise::share_error(meant, count),
                "{many} comparisons: {found}, meant {meant}"
            );
        }
    }
}

/// After each round the sum of the ranks of those below nought, which is the number of means of two
/// that are.
fn sums_below(random: &mut noise::Noise) -> Vec<usize> {
    let mut differences: Vec<f64> = Vec::new();
    let mut sums = vec![0];
    for _ in 0..LAST_LOOK {
        differences.push(2.0 * random.uniform() - 1.0);
        let last = differences[differences.len() - 1];
        let below = differences.iter().filter(|other| **other + last < 0.0).count();
        sums.push(sums[sums.len() - 1] + below);
    }
    sums
}

/// A target that keeps a limit, in its true median, is found above it at any of the looks in no
/// more than 5 % of runs.
#[test]
fn looks_at_a_limit_share_one_chance_of_error() {
    let count = noise::replications(40_000, 1_000_000);
    let mut random = noise::Noise::new(78);
    let least: Vec<usize> = (0..=40).map(|rounds| sign_k(rounds, 0.2 * ALPHA).map_or(0, |(k, _)| k)).collect();
    let mut sent = 0;
    for _ in 0..count {
        let mut below = 0;
        let mut is_out = |rounds: &usize| {
            below += usize::from(random.uniform() <= 0.5);
            *rounds >= 3 && below < least[*rounds]
        };
        sent += usize::from((1..=40).filter(|rounds| is_out(rounds)).count() > 0);
    }
    let share = f64::from(sent as u32) / count as f64;
    println!("sent away though the limit is kept: {:.2} %", 100.0 * share);
    assert!(share <= ALPHA + 3.5 * noise::share_error(ALPHA, count), "{share}");
}
