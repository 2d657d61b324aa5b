//! What the rounds so far say, and whether to go on: who may take part in the verdict, one value a round for every
//! target, the race between them, and the looks that end a run.
//!
//! Asked by the run after each look and by reports at the end, so that the two cannot tell different stories. It must
//! not know how cells are run, nor how anything is worded or printed; it reads neither files nor clocks. The same
//! journal in, the same decision out.
//!
//! Must not know: `agent`, `cli`, `executor`, `import`, `render`, `run`, `stack`, `stage`, `workload`.

mod best_per_filesystem;
mod between_runs;
pub mod comparison;
mod composite;
mod device_rates;
pub mod diagnostics;
mod eligibility;
mod elimination;
mod history;
mod latency;
mod latency_curves;
#[cfg(test)]
mod made_up;
mod missing;
pub mod model;
mod overall;
pub mod plain;
mod points;
pub mod raw;
mod readback;
mod repeats;
mod secondary;
mod series;
mod stopping;
mod tradeoffs;
pub mod work;

pub use between_runs::{Change, Changes, Difference, Gate, changes, differences};
pub use composite::{named_parts, part, score, score_of_works, works_of_verdict};
pub use eligibility::{Veto, vetoes};
pub use elimination::{Conclusion, Race, Yardstick, compare, p_value, race, race_as_run, rests_on_symmetry};
pub use model::*;
pub use raw::{Raw, RawCell, RawFlag, RawSample, Times};
pub use repeats::{RepeatsAdvice, repeats_advice};
pub use series::{Observed, ObservedWork, Rounds, observe};
pub use stopping::{level, look, rounds_planned};

pub use crate::metric::{Better, Combine};
use crate::plan::Plan;
use crate::stats::{self, Estimate};

/// Some where the reference surely differs from its second copy, in the median over all phases of all works: then no
/// verdict can be trusted. The value is the median relative difference.
pub fn differs_from_itself(plan: &Plan, observed: &Observed, confidence: f64) -> Option<f64> {
    stats::noise_verdict(&against_itself(plan, observed, confidence), plan.stop.threshold)
}

/// The second copy over the reference, for each phase of each work.
pub fn against_itself(plan: &Plan, observed: &Observed, confidence: f64) -> Vec<Estimate> {
    let Some((reference, duplicate)) = twins(plan, observed) else { return Vec::new() };
    let of_phase = |work: &ObservedWork, phase: &str| {
        let times = |target| work.series(target, phase, "time_ns");
        compare(&times(duplicate), &times(reference), confidence)
    };
    observed.works.iter().flat_map(|work| work.phases().into_iter().filter_map(|phase| of_phase(work, phase))).collect()
}

/// What all are compared with: the plan's reference if it has results, else the first target that has, if any of full
/// durability: a failed reference must not take all comparisons with it.
pub fn reference(plan: &Plan, observed: &Observed, values: &[Rounds]) -> Option<usize> {
    let works: Vec<&ObservedWork> = observed.works.iter().collect();
    let is_copy = |at: usize| plan.targets.iter().any(|target| target.duplicate && target.name == observed.targets[at]);
    let has = |at: &usize| !values[*at].is_empty() && !is_copy(*at);
    let planned = observed.targets.iter().position(|target| *target == plan.reference);
    let all = || (0..observed.targets.len()).filter(has);
    let sound = || all().find(|at| eligibility::weakened(&works, *at).is_none());
    planned.or((!observed.targets.is_empty()).then_some(0)).filter(has).or_else(sound).or_else(|| all().next())
}

/// Where the reference and its second copy are among the observed targets, if they are.
pub fn twins(plan: &Plan, observed: &Observed) -> Option<(usize, usize)> {
    let place = |name: &str| observed.targets.iter().position(|target| *target == name);
    let duplicate = plan.targets.iter().find(|target| target.duplicate)?;
    // A plan that names no reference means its first target.
    let reference = if plan.reference.is_empty() { Some(0) } else { place(&plan.reference) };
    Some((reference?, place(&duplicate.name)?))
}
