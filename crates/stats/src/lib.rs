//! What numbers say: estimates with error bars, findings in fixed words, the set of best targets,
//! and descriptions of one series.
//!
//! Pure functions of slices: the same numbers in, the same answer out, whatever unit they were
//! measured in. This room must not know journals, plans, units or printing, and it reads neither
//! files nor clocks. One observation is one round; what is compared is the logarithm of the ratio
//! of two targets within the same round, which cancels whatever the round did to both (drift, a
//! warm room, a fuller disk) and makes "5 % slower" and "5 % faster" mirror images.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod autocorrelation;
mod change_point;
mod dip_test;
mod forecast;
mod judge;
mod level_shift;
mod looks;
mod moments;
mod mser;
mod multiple_testing;
mod observation;
mod order_statistics;
mod paired;
mod pairs;
mod pareto;
mod random_effects;
mod rank_sum;
mod rare_events;
mod regret;
mod repeats;
mod run_shift;
mod sensitivity;
mod signed_rank;
mod sums;
mod ticks;
mod trend;
pub mod tuning;

pub use change_point::changes_at;
pub use dip_test::{Mode, modes};
pub use forecast::{USUAL_BOUNDS, USUAL_BOUNDS_AFTER, rounds_to_go};
pub use judge::{Finding, judge};
pub use level_shift::{LevelShift, Reading, SeriesContext, level_shifts};
pub use looks::{ALPHA, FIRST_LOOK, LAST_LOOK, Look, Schedule};
pub use moments::{mean, standard_deviation};
pub use mser::{Steady, mser5};
pub use multiple_testing::{fisher_exact, signed_rank_p, too_many_apart};
pub use observation::one_observation;
pub use order_statistics::{order_statistic_interval, rests_on_symmetry, sign_k};
pub use paired::{Estimate, Method, paired_ratio};
pub use pairs::{Comparisons, FEWEST as FEWEST_ROUNDS};
pub use pareto::{Ratios, front};
pub use random_effects::{
    FEWEST as FEWEST_MACHINES, Measured as OnMachine, RandomEffects, random_effects, variance_of,
};
pub use rank_sum::{holm, rank_sum_above, unpaired_ratio};
pub use rare_events::largest_share;
pub use regret::{Standing as Regret, standing as regret, upper_bounds};
pub use repeats::{Repeats, best_repeats};
pub use run_shift::{RunContext, RunScatter, Runs, drift_factor, run_scatter};
pub use sensitivity::{PartTimes, influences, sensitivity};
pub use signed_rank::signed_rank_k;
pub use sums::{Sums, ratio_of_sums};
pub use ticks::tick;
pub use trend::{drifts, median, relative_range};

/// A number that describes a series of finite values, in their unit; it never decides anything.
/// Formats for programs show each.
pub struct Statistic {
    pub name: &'static str,
    /// `None` where so few values have none.
    pub of: fn(&[f64]) -> Option<f64>,
}

pub const STATISTICS: &[Statistic] = &[moments::MEAN, moments::STANDARD_DEVIATION];
