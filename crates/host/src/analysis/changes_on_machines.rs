//! What has changed between earlier and later runs, on several machines: what holds on all of them.
//!
//! On each machine its own later run is compared with its own earlier ones, as `changes` does; no
//! run of one machine is ever compared with one of another. What each machine shows is then
//! combined with random effects, and machines are the observations.

use super::between_machines::{AcrossRow, contradiction, half_width};
use super::between_runs::{Change, Changes, Doubt, Gate};
use pickfs_stats::{OnMachine, random_effects, variance_of};

/// A later run over earlier ones, on several machines.
#[derive(Debug)]
pub struct ChangesOnMachines {
    pub machines: Vec<String>,
    /// Those of which a run is unreliable.
    pub doubted: Vec<String>,
    /// A row for each whole job that all machines have.
    pub rows: Vec<ChangeOnMachines>,
    /// Target and work that some machine has no interval for.
    pub left_out: Vec<(String, String)>,
    /// The share that matters.
    pub threshold: f64,
    pub gate: Gate,
}

#[derive(Debug)]
pub struct ChangeOnMachines {
    pub work: String,
    /// The target, later over earlier.
    pub row: AcrossRow,
    /// Slower by more than the threshold on average over machines like these, with all rows
    /// compared at once.
    pub is_regression: bool,
    /// By how much slower it is at most on average, as a share, at 95 %; `None` below three
    /// machines.
    pub at_most: Option<f64>,
    /// Machines, by index, on which it is clearly slower by more than the threshold, and on which
    /// clearly faster; `None` unless there are both.
    pub differs: Option<(Vec<usize>, Vec<usize>)>,
}

const ALPHA: f64 = 0.05;

/// `assumed` is the standard deviation by which two runs of the same differ, where one earlier run
/// cannot show it.
pub fn changes_on_machines(found: &[(String, Changes)], assumed: f64) -> ChangesOnMachines {
    let first = found.first().map(|(_, changes)| changes);
    let threshold = first.map_or(0.0, |changes| changes.threshold);
    let asked: Vec<&Change> = first.iter().flat_map(|changes| &changes.changes).filter(|one| one.decides).collect();
    let effects = |asked: &Change| -> Option<Vec<OnMachine>> {
        found.iter().map(|(_, changes)| effect(changes, asked, assumed)).collect()
    };
    let (there, missing): (Vec<_>, Vec<_>) =
        asked.iter().map(|one| (*one, effects(one))).partition(|(_, effects)| effects.is_some());
    let compared = there.len();
    let rows: Vec<ChangeOnMachines> =
        there.into_iter().filter_map(|(asked, effects)| row(asked, &effects?, threshold, compared)).collect();
    let left_out: Vec<(String, String)> =
        missing.into_iter().map(|(one, _)| (one.target.clone(), one.work.clone())).collect();
    let is_fine = |row: &ChangeOnMachines| row.differs.is_none() && row.at_most.is_some_and(|most| most <= threshold);
    let is_doubted = |changes: &Changes| matches!(changes.doubt, Some(Doubt::Unreliable { .. }));
    let doubted: Vec<String> =
        found.iter().filter(|(_, changes)| is_doubted(changes)).map(|(name, _)| name.clone()).collect();
    let gate = match () {
        () if !doubted.is_empty() => Gate::Inconclusive,
        () if rows.iter().any(|row| row.is_regression) => Gate::Regression,
        () if !rows.is_empty() && left_out.is_empty() && rows.iter().all(is_fine) => Gate::Fine,
        () => Gate::Inconclusive,
    };
    ChangesOnMachines {
        machines: found.iter().map(|(name, _)| name.clone()).collect(),
        doubted,
        rows,
        left_out,
        threshold,
        gate,
    }
}

/// The effect on one machine; `None` without an interval.
fn effect(changes: &Changes, asked: &Change, assumed: f64) -> Option<OnMachine> {
    let is_meant = |one: &&Change| (&one.target, &one.work, &one.phase) == (&asked.target, &asked.work, &asked.phase);
    let estimate = changes.changes.iter().find(is_meant)?.estimate.as_ref()?;
    // Where it is known what runs differ by the interval holds it, and simulations of one seed do
    // not differ.
    let is_unknown = changes.beside.scatter.is_none() && !changes.paired;
    let runs = if is_unknown { 2.0 * assumed.powi(2) } else { 0.0 };
    let variance = variance_of(estimate.half_width()?, estimate.level) + runs;
    Some(OnMachine { effect: estimate.ratio.ln(), variance })
}

fn row(asked: &Change, effects: &[OnMachine], threshold: f64, compared: usize) -> Option<ChangeOnMachines> {
    let margin = threshold.ln_1p();
    let differs = contradiction(effects, threshold);
    // One-sided: Bonferroni for a claim of any; all must agree that nothing is worse, which needs
    // no correction.
    let lowest = random_effects(effects, 1.0 - 2.0 * ALPHA / compared as f64)?.interval.map(|(low, _)| low);
    let highest = random_effects(effects, 1.0 - 2.0 * ALPHA)?.interval.map(|(_, high)| high);
    let each = effects.iter().map(|one| (one.effect, half_width(one))).collect();
    Some(ChangeOnMachines {
        work: asked.work.clone(),
        row: AcrossRow { target: asked.target.clone(), over_all: random_effects(effects, 1.0 - ALPHA)?, each },
        is_regression: differs.is_none() && lowest.is_some_and(|low| low > margin),
        at_most: highest.map(f64::exp_m1),
        differs,
    })
}
