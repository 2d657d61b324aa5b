//! The differences of all pairs of targets up to one look, and the bounds of each.
//!
//! Up to seven rounds the bounds are Student's, with variances that borrow from those of the other
//! pairs (Smyth 2004): signed ranks of so few rounds can show nothing at such levels. Later they
//! are signed-rank bounds wherever there are rounds enough for one, as outliers do not carry those
//! away. Rounds that resemble the round before count for less: all bounds widen by the factor by
//! which an autocorrelation of the first order widens a mean.
//!
//! Which target has a second copy must decide nothing, and another copy is another sample of the
//! noise. So from eight rounds on the copy changes a bound only by what it surely shows: that it
//! differs from its target, or that rounds depend on one another. Before that its variance is
//! borrowed too, as two targets have no other pair to borrow from.

use super::autocorrelation::{Autocorrelation, MIN_Z_PAIR, MIN_Z_POOLED, autocorrelation};
use super::looks::Look;
use super::moments::{mean_of, variance};
use super::signed_rank::{centre_and_interval, signed_rank_k};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::HashMap;

/// The fewest rounds with a bound.
pub const FEWEST: usize = 3;
/// The fewest rounds for signed ranks.
pub(super) const RANKS_FROM: usize = 8;
/// As many degrees of freedom are borrowed from the other pairs at most: of targets whose noise
/// differs by a factor of ten, more than this misjudges the noisy ones.
pub(super) const BORROWED: f64 = 4.0;
/// What each of Student's bound and that by ranks has of the chance of both: they fail together
/// more often than not.
const SHARED: f64 = 0.7;
/// Fewer rounds than this show that they depend on one another, but not how much.
pub(super) const FEW: usize = 20;
/// The autocorrelation of all targets together, and its standard errors, from which on the looks so
/// far are forgotten: six rounds in a row say little more than one then, and the looks that could
/// not see it have counted them as six.
const DEPENDENT: (f64, f64) = (0.35, 2.5);

/// All that takes part in the comparisons of a run.
#[derive(Clone, Copy, Debug)]
pub struct Comparisons<'a> {
    /// Logarithms of times by target and round, NaN where there is none. The first `candidates` may
    /// be the best, the others only show the noise.
    pub logs: &'a [Vec<f64>],
    pub candidates: usize,
    /// Comparisons that share the chance of error: one less than the targets that may be best.
    pub comparisons: usize,
    /// A target and its own second copy.
    pub twins: Option<(usize, usize)>,
    /// By target and round, where a value is missing for a reason that its size may be; empty for
    /// nowhere.
    pub lacking: &'a [Vec<bool>],
    /// By how much a coarse clock may have moved each difference; 0 of a fine one.
    pub tick: f64,
}

/// The differences of all pairs up to one look.
pub(crate) struct Pairs {
    rounds: usize,
    /// The differences of every pair, the first index below the second.
    pub differences: Vec<((usize, usize), Vec<f64>)>,
    /// The mean variance of the pairs that have all rounds, and how many series those are.
    variance: f64,
    complete: usize,
    /// What all bounds are widened for, 0 to 1.
    pub autocorrelation: f64,
    /// There is some, and rounds are too few to say how much.
    pub doubted: bool,
    /// So much of it is seen that earlier looks are forgotten.
    pub dependent: bool,
    /// By target and another one: rounds that it lacks, and that may lack because they were slow.
    lacking: Vec<Vec<usize>>,
}

/// More than the logarithm of any ratio of times.
const BEYOND: f64 = 1e3;

impl Pairs {
    /// An eliminated target shows no noise either: some go on after that, for the others to be held
    /// against, and which of them do must not matter.
    pub(crate) fn new(of: &Comparisons, rounds: usize, eliminated: &[Option<usize>]) -> Pairs {
        let is_in = |at: usize| eliminated.get(at).is_none_or(Option::is_none);
        let logs: Vec<&[f64]> = of.logs.iter().map(|row| &row[..rounds.min(row.len())]).collect();
        let all = (0..logs.len()).flat_map(|i| (i + 1..logs.len()).map(move |j| (i, j)));
        let pairs: Vec<_> = all.map(|(i, j)| ((i, j), differences(logs[i], logs[j]))).collect();
        let is_complete =
            |at: &usize| is_in(*at) && logs[*at].len() == rounds && logs[*at].iter().all(|value| value.is_finite());
        let is_full = |((i, j), pair): &&((usize, usize), Vec<f64>)| {
            is_in(*i) && is_in(*j) && pair.len() == rounds && rounds >= FEWEST
        };
        let variances: Vec<f64> = pairs.iter().filter(is_full).filter_map(|(_, pair)| variance(pair)).collect();
        let pooled = |count: usize| {
            Autocorrelation::pooled(&(0..count).filter(is_complete).map(|at| logs[at]).collect::<Vec<_>>())
        };
        let all = pooled(logs.len());
        let found = if rounds < RANKS_FROM { all } else { pooled(of.candidates) };
        let lacks = |i: usize, j: usize| {
            let rounds = of.lacking.get(i).into_iter().flatten().zip(logs[j]);
            rounds.filter(|(lacks, other)| **lacks && other.is_finite()).count()
        };
        Pairs {
            lacking: (0..logs.len()).map(|i: usize| (0..logs.len()).map(|j| lacks(i, j)).collect()).collect(),
            rounds,
            variance: variances.iter().sum::<f64>() / variances.len().max(1) as f64,
            complete: (0..logs.len()).filter(is_complete).count(),
            autocorrelation: found.at_least(MIN_Z_POOLED).max(all.at_least(DEPENDENT.1)),
            doubted: rounds < FEW && found.at_least(MIN_Z_POOLED) > 0.0,
            dependent: all.at_least(DEPENDENT.1) > DEPENDENT.0,
            differences: pairs,
        }
    }

    /// Lower bound, centre and upper bound; each bound at its one-sided level.
    pub(crate) fn bounds(&self, pair: &[f64], critical: &mut Critical) -> Option<(f64, f64, f64)> {
        let wider = self.wider(pair);
        let wide = |(low, centre, high): (f64, f64, f64)| {
            (centre - (centre - low) * wider, centre, centre + (high - centre) * wider)
        };
        let Some(part) = &mut critical.shared else {
            return ranked(pair, critical).or_else(|| self.moderated(pair, critical)).map(wide);
        };
        // Where there are no ranks at its part of the level, Student's bound has all of it.
        let Some(ranks) = ranked(pair, part).map(wide) else { return self.moderated(pair, critical).map(wide) };
        let student = wide(self.moderated(pair, part)?);
        Some((ranks.0.max(student.0), ranks.1, ranks.2.min(student.2)))
    }

    fn wider(&self, pair: &[f64]) -> f64 {
        let own = Autocorrelation::new(autocorrelation(pair), pair.len(), 1.0).at_least(MIN_Z_PAIR);
        let correlation = self.autocorrelation.max(if pair.len() >= 6 { own } else { 0.0 });
        ((1.0 + correlation) / (1.0 - correlation)).sqrt()
    }

    /// The upper bounds of a pair's difference and of its negative. Each round that is missing, and
    /// may be so because it was slow, counts as slower than all others; rounds too few for signed
    /// ranks have no bound then.
    pub(crate) fn upper_bounds(
        &self,
        ((i, j), pair): (&(usize, usize), &[f64]),
        critical: &mut Critical,
    ) -> Option<(f64, f64)> {
        let (low, _, high) = self.bounds(pair, critical)?;
        let mut upper = |known: f64, lacking: usize, sign: f64| match lacking {
            0 => known,
            lacking => {
                let all: Vec<f64> = pair.iter().map(|value| sign * value).chain(vec![BEYOND; lacking]).collect();
                let found = ranked(&all, critical).filter(|(_, _, high)| *high < BEYOND / 4.0);
                let bound = found.map(|(_, centre, high)| centre + (high - centre) * self.wider(pair));
                bound.map_or(f64::INFINITY, |bound| bound.max(known))
            }
        };
        Some((upper(high, self.lacking[*i][*j], 1.0), upper(-low, self.lacking[*j][*i], -1.0)))
    }

    /// Student's bounds, whose variance is drawn up towards the mean of all pairs: each borrowed
    /// degree of freedom weighs like its own ones. It is never drawn down: that would misjudge one
    /// that is noisier than the others.
    fn moderated(&self, pair: &[f64], critical: &mut Critical) -> Option<(f64, f64, f64)> {
        if pair.len() < FEWEST {
            return None;
        }
        let own = (pair.len() - 1) as f64;
        let series = self.complete.saturating_sub(2) as f64;
        let borrowed = (series * self.rounds.saturating_sub(1) as f64).min(critical.borrows);
        let own_variance = variance(pair)?;
        let others = self.variance.max(own_variance);
        let variance = (borrowed * others + own * own_variance) / (borrowed + own);
        let half = critical.student(borrowed + own) * (variance / pair.len() as f64).sqrt();
        Some((mean_of(pair) - half, mean_of(pair), mean_of(pair) + half))
    }
}

fn ranked(pair: &[f64], critical: &mut Critical) -> Option<(f64, f64, f64)> {
    let (centre, (low, high)) = centre_and_interval(pair, critical.rank(pair.len())?)?;
    Some((low, centre, high))
}

/// Critical values at one level, each computed once.
pub(crate) struct Critical {
    one_sided: f64,
    /// Values at the part of the level that ranks and Student's bounds have each, where they share
    /// it.
    shared: Option<Box<Critical>>,
    /// Degrees of freedom that Student's bounds borrow at most.
    borrows: f64,
    ranks: HashMap<usize, Option<usize>>,
    student: HashMap<u64, f64>,
}

impl Critical {
    pub(crate) fn new(one_sided: f64) -> Critical {
        Critical { one_sided, shared: None, borrows: BORROWED, ranks: HashMap::new(), student: HashMap::new() }
    }

    /// The critical value of the bound of each of `comparisons` comparisons at an interim analysis.
    pub(crate) fn of(look: &Look, comparisons: usize) -> Critical {
        let one_sided = look.one_sided(comparisons);
        if !look.is_alone {
            return Critical::new(one_sided);
        }
        let half = Critical { borrows: 0.0, ..Critical::new(one_sided * SHARED) };
        Critical { borrows: 0.0, shared: Some(Box::new(half)), ..Critical::new(one_sided) }
    }

    fn rank(&mut self, rounds: usize) -> Option<usize> {
        let both = 2.0 * self.one_sided;
        let k = || signed_rank_k(rounds, both).map(|(k, _)| k).filter(|_| rounds >= RANKS_FROM);
        *self.ranks.entry(rounds).or_insert_with(k)
    }

    fn student(&mut self, freedom: f64) -> f64 {
        let quantile = || StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| -t.inverse_cdf(self.one_sided));
        *self.student.entry(freedom.to_bits()).or_insert_with(quantile)
    }
}

/// The differences in the rounds that both have.
fn differences(first: &[f64], second: &[f64]) -> Vec<f64> {
    first.iter().zip(second).map(|(a, b)| a - b).filter(|difference| difference.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::regret::standing;
    use super::*;
    use pickfs_test_support::noise::Noise;

    /// The median bound of the best of equal targets after this many rounds of the same times.
    fn bound(targets: usize, rounds: usize) -> f64 {
        let bound = |seed: u64| {
            let mut noise = Noise::new(seed);
            let mut row = || (0..8).map(|_| 0.05 * noise.normal()).collect::<Vec<f64>>();
            let logs: Vec<Vec<f64>> = (0..targets).map(|_| row()).collect();
            let of = Comparisons {
                logs: &logs,
                candidates: targets,
                comparisons: targets - 1,
                twins: None,
                lacking: &[],
                tick: 0.0,
            };
            let found = standing(&of, &[Look::only(rounds as u32)]);
            found.regret.iter().copied().fold(f64::INFINITY, f64::min)
        };
        super::super::median(&(0..60).map(bound).collect::<Vec<f64>>()).expect("runs")
    }

    #[test]
    fn more_rounds_are_known_no_less_well() {
        for targets in [2, 5, 10, 20] {
            let [six, eight] = [6, 8].map(|rounds| bound(targets, rounds));
            assert!(eight < six, "{targets} targets: {six} after 6 rounds, {eight} after 8");
        }
    }
}
