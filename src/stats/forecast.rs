//! How many more rounds it will take until the pick is good enough, as a range.

use super::looks::{ALPHA, LOOKS};
use super::regret::Standing;
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{ContinuousCDF, Normal};

const DRAWS: usize = 200;
/// More rounds than this nobody runs.
const MOST: u32 = 10_000;

/// The rounds in all after which the least bound of a regret will be below `goal`, a natural logarithm: one case in ten
/// has come so far by the first number, nine in ten by the second; `None` for a number above ten thousand. `None`
/// altogether where no two candidates have bounds.
///
/// The truth is unknown, so every draw has another one: the mean of n rounds moves on to that of m like a random walk of
/// variance s²(1/n - 1/m), which is what a normal mean without prior knowledge predicts (Geisser 1993). Widths shrink
/// with the square root of the number of rounds.
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
    quantile: f64,
}

impl Walk {
    fn new(found: &Standing, rounds: u32, comparisons: usize) -> Option<Walk> {
        let members = found.members();
        let pairs = |i: usize| members.iter().copied().filter(move |j| *j != i);
        let half = |i: usize, j: usize| (found.above[i][j] + found.above[j][i]) / 2.0;
        let mean_half = |i: &usize| pairs(*i).map(|j| half(*i, j)).sum::<f64>() / (members.len() - 1).max(1) as f64;
        let quantile = -Normal::standard().inverse_cdf(ALPHA / 5.0 / comparisons.max(1) as f64);
        // The difference of two has twice the variance of one.
        let scale = f64::from(rounds).sqrt() / quantile / 2f64.sqrt();
        let deviations: Vec<f64> = members.iter().map(|i| mean_half(i) * scale).collect();
        let first = *members.first()?;
        let mean = |i: &usize| if *i == first { 0.0 } else { (found.above[*i][first] - found.above[first][*i]) / 2.0 };
        let is_known = members.len() > 1 && deviations.iter().all(|deviation| deviation.is_finite());
        is_known.then(|| Walk { means: members.iter().map(mean).collect(), deviations, quantile })
    }

    fn end(&self, rounds: u32, goal: f64, random: &mut Xoshiro256PlusPlus) -> u32 {
        let (mut means, mut at) = (self.means.clone(), rounds);
        while at <= MOST {
            let next = LOOKS.into_iter().find(|look| *look > at).unwrap_or(at + at.div_ceil(3));
            let step = (1.0 / f64::from(at) - 1.0 / f64::from(next)).sqrt();
            for (mean, deviation) in means.iter_mut().zip(&self.deviations) {
                let normal: f64 = StandardNormal.sample(random);
                *mean += deviation * step * normal;
            }
            at = next;
            if self.least_bound(&means, at) < goal {
                return at;
            }
        }
        u32::MAX
    }

    fn least_bound(&self, means: &[f64], rounds: u32) -> f64 {
        let wide = |i: usize, j: usize| self.quantile * self.deviations[i].hypot(self.deviations[j]);
        let above = |i: usize, j: usize| means[i] - means[j] + wide(i, j) / f64::from(rounds).sqrt();
        let all = 0..means.len();
        let bound = |i: usize| all.clone().filter(|j| *j != i).map(|j| above(i, j)).fold(0.0, f64::max);
        all.clone().map(bound).fold(f64::INFINITY, f64::min)
    }
}
