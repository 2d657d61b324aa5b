//! What a store keeps of a run's times, to follow them over runs: on kernel after kernel, or day
//! after day.

use super::Model;
use super::between_runs::likeness;
use super::model::Panel;
use pickfs_core::journal::Run;
use pickfs_stats::{LevelShift, Reading, SeriesContext, level_shifts, mean, standard_deviation};
use serde::{Deserialize, Serialize};

/// The time that a target takes for the whole of a work, in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Level {
    pub target: String,
    /// Nanoseconds, the geometric mean of the rounds.
    pub ns: f64,
    /// The standard deviation of a round, of the natural logarithm.
    pub deviation: f64,
    pub rounds: usize,
    /// The same for all levels that make a series.
    pub alike: String,
    /// No day and no other program moves it.
    pub simulated: bool,
}

/// What runs of the same are taken to differ by, as `pickfs compare` takes it.
const RUN_SCATTER: f64 = 0.03;
/// Smaller changes are not marked.
const LEAST: f64 = 0.01;
/// The chance of a mark in a series without a change.
const ALPHA: f64 = 0.01;

/// The level of each target that has two rounds of this work.
pub(crate) fn levels(run: &Run, model: &Model, work: &str, simulated: bool) -> Vec<Level> {
    let report = model.reports().find(|report| report.name == work);
    let Some(panel) = report.and_then(|report| report.phases.first()) else { return Vec::new() };
    (0..model.targets.len()).filter_map(|target| level(run, model, (panel, work), target, simulated)).collect()
}

fn level(run: &Run, model: &Model, (panel, work): (&Panel, &str), target: usize, simulated: bool) -> Option<Level> {
    let row = panel.rows.iter().find(|row| row.target == target && panel.metric == "time_ns")?;
    let logs: Vec<f64> =
        row.series.points.iter().map(|point| point.median.ln()).filter(|log| log.is_finite()).collect();
    let name = &model.targets[target].name;
    Some(Level {
        target: name.clone(),
        ns: mean(&logs)?.exp(),
        deviation: standard_deviation(&logs)?,
        rounds: logs.len(),
        alike: likeness(run, name, work)?,
        simulated,
    })
}

/// Where a series of levels changes.
pub(crate) fn shifts(series: &[&Level]) -> Vec<LevelShift> {
    let readings: Vec<Reading> =
        series.iter().map(|one| Reading { value: one.ns.ln(), deviation: one.deviation, rounds: one.rounds }).collect();
    let simulated = series.iter().all(|one| one.simulated);
    let run_scatter = (!simulated).then_some(RUN_SCATTER);
    level_shifts(&readings, &SeriesContext { run_scatter, least: LEAST, alpha: ALPHA })
}
