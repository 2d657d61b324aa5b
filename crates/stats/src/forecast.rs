//! How many more rounds it will take until the pick is good enough, as a range, and what rounds buy
//! before any are run.

use super::looks::{LAST_LOOK, Look, Schedule};
use super::pairs::{BORROWED, Comparisons, FEW, RANKS_FROM};
use super::regret::{Standing, standing};
use rand_core::SeedableRng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

const DRAWS: usize = 200;
/// More rounds than this no plan may ask for.
const MOST: u32 = 1000;
/// The one-sided level of bounds that show the noise of most rounds and not of outliers.
const USUAL: f64 = 0.1;
/// That of bounds in whose middle the centre is.
const MIDDLE: f64 = 0.4;

/// Rounds after which [`USUAL_BOUNDS`] says something.
pub const USUAL_BOUNDS_AFTER: [u32; 3] = [8, 20, 40];
/// By the number of targets, the bound of the pick of equals after those rounds, as a logarithm in
/// units of the scatter of paired differences: the middle of simulated runs (docs/statistics.md has
/// them by noise).
pub const USUAL_BOUNDS: [(usize, [f64; 3]); 4] =
    [(2, [0.77, 0.36, 0.24]), (5, [1.12, 0.64, 0.41]), (10, [1.36, 0.77, 0.49]), (20, [1.58, 0.89, 0.56])];

/// Total number of rounds after which the least bound of a regret will be below `goal`, a natural
/// logarithm: in one case of ten by the first number, in nine of ten by the second; `None` for a
/// number above a thousand. `None` altogether where no two candidates have bounds. Up to 40 rounds
/// these are interim analyses; a longer run has its own plan, with the whole chance of error for
/// the one judgement at its end.
///
/// The truth is unknown, so every draw has another one: the mean of n rounds moves to that of m
/// like a random walk of variance s²(1/n - 1/m), which is what a normal mean without prior
/// knowledge predicts (Geisser 1993), and s is drawn from what that number of rounds reveals of it.
/// crates/pickfs/tests/deep/forecasts.rs compares the range with real outcomes.
pub fn rounds_to_go(
    of: &Comparisons,
    found: &Standing,
    (schedule, rounds): (Schedule, u32),
    goal: f64,
) -> Option<[Option<u32>; 2]> {
    let walk = Walk::new(of, found, (schedule, rounds))?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut ends: Vec<u32> = (0..DRAWS).map(|_| walk.end(goal, &mut random)).collect();
    ends.sort_unstable();
    Some([DRAWS / 10, DRAWS * 9 / 10].map(|at| Some(ends[at]).filter(|end| *end <= MOST)))
}

/// The members of a race, and how they may move on from where they are.
struct Walk {
    members: Vec<usize>,
    /// The first less the second, for all pairs of candidates.
    centres: Vec<Vec<f64>>,
    /// The deviation of one round of each member.
    deviations: Vec<f64>,
    /// The looks to come, with the upper bounds of all differences if the centres stayed.
    looks: Vec<(u32, Vec<Vec<f64>>)>,
    rounds: u32,
    /// Degrees of freedom of the deviations.
    freedom: f64,
}

impl Walk {
    /// A bound of m rounds by ranks is a quantile of the means of two rounds, and so is one of n
    /// rounds at a laxer level: the same where the normal quantile is the square root of n/m times
    /// as large. Thus rounds that are like those so far, with their outliers, are all that is
    /// assumed; for Student's bounds it is the law of the square root.
    fn new(of: &Comparisons, found: &Standing, (schedule, rounds): (Schedule, u32)) -> Option<Walk> {
        let members = found.members();
        let above = |level: f64| standing(of, &[Look::at_level(rounds, level, of.comparisons)]).above;
        let to_come = std::iter::successors(Some(rounds), |at| {
            // By steps of an eighth: no forecast is better than that.
            Some(schedule.next(at + at.div_ceil(8) - 1).unwrap_or(if *at < LAST_LOOK {
                LAST_LOOK
            } else {
                at + at.div_ceil(6)
            }))
        });
        let at_look = |look: u32| {
            let then = quantile(look, level_at(schedule, look, of.comparisons));
            (look, above(level(rounds, then * (f64::from(rounds) / f64::from(look)).sqrt())))
        };
        let waits = |look: &u32| found.waits && (*look as usize) < FEW;
        let looks = to_come.skip(1).skip_while(waits).take_while(|look| *look <= MOST).map(at_look).collect();
        let usual = above(USUAL);
        // The difference of two has twice the variance of one.
        let scale = f64::from(rounds).sqrt() / quantile(rounds, USUAL) / 2f64.sqrt();
        let others = (members.len() - 1).max(1) as f64;
        let deviation = |i: &usize| {
            let halves = members.iter().filter(|j| *j != i).map(|j| (usual[*i][*j] + usual[*j][*i]) / 2.0);
            halves.sum::<f64>() / others * scale
        };
        let deviations: Vec<f64> = members.iter().map(deviation).collect();
        let is_known = members.len() > 1 && deviations.iter().all(|deviation| deviation.is_finite());
        let middle = above(MIDDLE);
        let all = 0..of.candidates;
        let centre = |i: usize, j: usize| (middle[i][j] - middle[j][i]) / 2.0;
        let centres = all.clone().map(|i| all.clone().map(|j| centre(i, j)).collect()).collect();
        let freedom = f64::from(rounds.saturating_sub(1).max(1)) * others;
        is_known.then_some(Walk { members, centres, deviations, looks, rounds, freedom })
    }

    fn end(&self, goal: f64, random: &mut Xoshiro256PlusPlus) -> u32 {
        let noise = ChiSquared::new(self.freedom).map_or(1.0, |drawn| (self.freedom / drawn.sample(random)).sqrt());
        let (mut moved, mut at) = (vec![0.0; self.members.len()], self.rounds);
        for (next, above) in &self.looks {
            let step = (1.0 / f64::from(at) - 1.0 / f64::from(*next)).sqrt();
            for (moved, deviation) in moved.iter_mut().zip(&self.deviations) {
                let normal: f64 = StandardNormal.sample(random);
                *moved += noise * deviation * step * normal;
            }
            at = *next;
            if self.least_bound(&moved, noise, above) < goal {
                return at;
            }
        }
        u32::MAX
    }

    fn least_bound(&self, moved: &[f64], noise: f64, above: &[Vec<f64>]) -> f64 {
        let all = || self.members.iter().zip(moved);
        let bound = |(i, by_i): (&usize, &f64)| {
            let rivals = all().filter(|(j, _)| *j != i);
            let over = rivals.map(|(j, by_j)| {
                let centre = self.centres[*i][*j];
                centre + by_i - by_j + noise * (above[*i][*j] - centre)
            });
            over.fold(0.0, f64::max)
        };
        all().map(bound).fold(f64::INFINITY, f64::min)
    }
}

/// The chance of each bound of a look after these rounds; that of the only one after the last of a
/// run with looks.
fn level_at(schedule: Schedule, rounds: u32, comparisons: usize) -> f64 {
    let look = schedule.spent(&[rounds]).first().copied();
    look.unwrap_or(Look::only(rounds)).one_sided(comparisons)
}

/// The quantile of a one-sided bound at this level: Student's where the rounds are too few for
/// ranks.
fn quantile(rounds: u32, level: f64) -> f64 {
    if rounds as usize >= RANKS_FROM {
        -Normal::standard().inverse_cdf(level)
    } else {
        -student(rounds).inverse_cdf(level)
    }
}

/// The level of a one-sided bound with this quantile.
fn level(rounds: u32, quantile: f64) -> f64 {
    if rounds as usize >= RANKS_FROM { Normal::standard().sf(quantile) } else { student(rounds).sf(quantile) }
}

fn student(rounds: u32) -> StudentsT {
    let freedom = f64::from(rounds.saturating_sub(1)) + BORROWED;
    StudentsT::new(0.0, 1.0, freedom).expect("the freedom is above zero")
}
