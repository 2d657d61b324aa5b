//! How many more rounds it will take until the pick is good enough, as a range, and what rounds buy before any are run.

use super::looks::{ALPHA, LOOKS, spent};
use super::regret::Standing;
use rand_core::SeedableRng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{ContinuousCDF, StudentsT};

const DRAWS: usize = 200;
/// More rounds than this no plan may ask for.
const MOST: u32 = 1000;
/// Degrees of freedom that a bound borrows from other pairs, as the early ones do.
const BORROWED: f64 = 4.0;

/// Rounds after which [`BOUGHT`] says something.
pub const BOUGHT_AFTER: [u32; 3] = [8, 20, 40];
/// By the number of targets, the bound of the pick of equals after those rounds, as a logarithm in units of the scatter of
/// paired differences: the middle of simulated runs (docs/statistics.md has them by noise).
pub const BOUGHT: [(usize, [f64; 3]); 4] =
    [(2, [0.77, 0.36, 0.24]), (5, [1.12, 0.64, 0.41]), (10, [1.36, 0.77, 0.49]), (20, [1.58, 0.89, 0.56])];

/// The rounds in all after which the least bound of a regret will be below `goal`, a natural logarithm: one case in ten
/// has come so far by the first number, nine in ten by the second; `None` for a number above a thousand. `None`
/// altogether where no two candidates have bounds. Up to 40 rounds these are looks; more have a plan of their own, with
/// all chance of error for the one judgement at its end.
///
/// The truth is unknown, so every draw has another one: the mean of n rounds moves on to that of m like a random walk of
/// variance s²(1/n - 1/m), which is what a normal mean without prior knowledge predicts (Geisser 1993), and s is drawn
/// from what so many rounds know of it. tests/forecasts.rs holds the range against what came.
pub fn rounds_to_go(found: &Standing, rounds: u32, comparisons: usize, goal: f64) -> Option<[Option<u32>; 2]> {
    let walk = Walk::new(found, rounds, comparisons)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut ends: Vec<u32> = (0..DRAWS).map(|_| walk.end(rounds, goal, &mut random)).collect();
    ends.sort_unstable();
    Some([DRAWS / 10, DRAWS * 9 / 10].map(|at| Some(ends[at]).filter(|end| *end <= MOST)))
}

/// The members of a race, by their means and the standard deviations of one round.
struct Walk {
    means: Vec<f64>,
    deviations: Vec<f64>,
    comparisons: f64,
    /// Of the deviations.
    freedom: f64,
}

impl Walk {
    fn new(found: &Standing, rounds: u32, comparisons: usize) -> Option<Walk> {
        let members = found.members();
        let pairs = |i: usize| members.iter().copied().filter(move |j| *j != i);
        let half = |i: usize, j: usize| (found.above[i][j] + found.above[j][i]) / 2.0;
        let mean_half = |i: &usize| pairs(*i).map(|j| half(*i, j)).sum::<f64>() / (members.len() - 1).max(1) as f64;
        let comparisons = comparisons.max(1) as f64;
        // The difference of two has twice the variance of one.
        let scale = f64::from(rounds).sqrt() / quantile(rounds, comparisons) / 2f64.sqrt();
        let deviations: Vec<f64> = members.iter().map(|i| mean_half(i) * scale).collect();
        let first = *members.first()?;
        let mean = |i: &usize| if *i == first { 0.0 } else { (found.above[*i][first] - found.above[first][*i]) / 2.0 };
        let is_known = members.len() > 1 && deviations.iter().all(|deviation| deviation.is_finite());
        let freedom = f64::from(rounds.saturating_sub(1).max(1)) * (members.len() - 1).max(1) as f64;
        is_known.then(|| Walk { means: members.iter().map(mean).collect(), deviations, comparisons, freedom })
    }

    fn end(&self, rounds: u32, goal: f64, random: &mut Xoshiro256PlusPlus) -> u32 {
        let noise = ChiSquared::new(self.freedom).map_or(1.0, |drawn| (self.freedom / drawn.sample(random)).sqrt());
        let (mut means, mut at) = (self.means.clone(), rounds);
        while at <= MOST {
            let next = LOOKS.into_iter().find(|look| *look > at).unwrap_or(at + at.div_ceil(6));
            let step = (1.0 / f64::from(at) - 1.0 / f64::from(next)).sqrt();
            for (mean, deviation) in means.iter_mut().zip(&self.deviations) {
                let normal: f64 = StandardNormal.sample(random);
                *mean += noise * deviation * step * normal;
            }
            at = next;
            if self.least_bound(&means, noise, at) < goal {
                return at;
            }
        }
        u32::MAX
    }

    fn least_bound(&self, means: &[f64], noise: f64, rounds: u32) -> f64 {
        let wide = noise * quantile(rounds, self.comparisons) / f64::from(rounds).sqrt();
        let above = |i: usize, j: usize| means[i] - means[j] + wide * self.deviations[i].hypot(self.deviations[j]);
        let all = 0..means.len();
        let bound = |i: usize| all.clone().filter(|j| *j != i).map(|j| above(i, j)).fold(0.0, f64::max);
        all.clone().map(bound).fold(f64::INFINITY, f64::min)
    }
}

/// Of a bound after so many rounds, by the share that its look spends.
fn quantile(rounds: u32, comparisons: f64) -> f64 {
    let last = LOOKS[LOOKS.len() - 1];
    let alpha = if rounds > last { ALPHA } else { spent(&[rounds]).first().map_or(ALPHA, |look| look.alpha) };
    let freedom = f64::from(rounds.saturating_sub(1)) + BORROWED;
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| -t.inverse_cdf(alpha / comparisons))
}
