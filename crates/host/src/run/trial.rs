//! Before the first round: every target is built, written to and taken down once, so that what
//! cannot work is said once and costs no cell of a round; then one cell is thrown away, as the
//! first one of a run is slow: memory of a virtual machine is new to its host, programs and modules
//! are not yet loaded.
//!
//! Not in guests, where each trial would be a boot, and not before a single round, which finds out
//! the same.

use super::pace::Pace;
use super::progress::{Progress, Silent};
use super::rounds::open_rounds;
use super::supervise::{JobEnd, Supervisor};
use anyhow::{Result, bail};
use pickfs_core::journal::*;
use pickfs_core::plan::{Cell, Plan, Stop, Target, cell_id, order};
use pickfs_core::protocol::{CellsRun, Job};
use pickfs_system::units::show_duration;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Enough to touch memory, programs and disk; longer works are cut off.
const WARM_UP: Duration = Duration::from_secs(10);

/// False where the run was stopped on request.
pub(crate) fn all(supervisor: &mut Supervisor, progress: &mut dyn Progress) -> Result<bool> {
    let plan = supervisor.plan();
    let (asked_for, begun) = (plan.reference.clone(), Instant::now());
    if supervisor.cells_run() == CellsRun::Elsewhere || plan.stop.most_rounds() == 1 {
        return Ok(true);
    }
    for target in plan.targets.iter().filter(|target| !target.duplicate) {
        if is_known(supervisor.folded(), &target.name) {
            continue;
        }
        progress.say(&format!("trying {}", target.name));
        let cells = cells_of(&plan, target);
        let Some(outcomes) = outcomes_of_two(&cells, supervisor, progress)? else { return Ok(false) };
        for (cell, outcome) in cells.iter().zip(&outcomes).filter(|(_, outcome)| **outcome != Outcome::Done) {
            let (target, work) = (cell.target.name.clone(), cell.work.name.clone());
            supervisor.take(Record::Unfit(Unfit { target, work, outcome: outcome.clone() }))?;
        }
        say_left_out(&cells, &outcomes, progress);
    }
    end_unfit(supervisor)?;
    let plan = supervisor.plan();
    if plan.reference != asked_for {
        progress.remark(&format!("the reference is {} now", plan.reference));
    }
    let mut fit = order(&plan, 1);
    fit.retain(|cell| !supervisor.folded().is_left_out(&cell.target, &cell.work.name));
    let Some(cell) = fit.first() else { bail!("nothing can be measured: every target was left out") };
    let Some(took) = warm_up(cell, supervisor, progress)? else { return Ok(false) };
    // A cell that was cut off says nothing, nor does one of several works about the others, nor one
    // that was neither aged nor filled.
    let is_alike = fit.iter().all(|cell| cell.target.age.is_none() && cell.target.fill.is_none());
    if is_alike && took < WARM_UP && plan.works.len() == 1 && Pace::known(&plan).is_none() {
        let rounds: Vec<usize> = open_rounds(&plan, supervisor.folded()).iter().map(Vec::len).collect();
        if let Some(cells) = rounds.iter().max() {
            let times = [*cells, rounds.iter().sum()].map(|cells| took.as_secs_f64() * cells as f64);
            progress.remark(&from_now(&plan.stop, times, begun.elapsed().as_secs_f64()));
        }
    }
    Ok(true)
}

/// By a warm-up: a first run of its work has nothing better. Times are in seconds: of a round, of
/// all that are to come, and how much of the budget is `used`.
fn from_now(stop: &Stop, [round, most]: [f64; 2], used: f64) -> String {
    let (at_most, latest) = match stop.budget_ns {
        Some(budget_ns) => ("at most ", most.min((budget_ns as f64 / 1e9 - used).max(0.0) + round)),
        None if stop.rounds.is_none() => ("at most ", most),
        None => ("", most),
    };
    let [round, latest] = [round, latest].map(|seconds| show_duration(seconds * 1e9));
    format!("by the warm-up a round takes about {round}, and the run {at_most}about {latest} from now")
}

/// It was tried, or measured, in an earlier session.
fn is_known(folded: &Folded, target: &str) -> bool {
    let is_measured = folded.cells.iter().any(|cell| cell.target == target && cell.outcome.is_some());
    is_measured || folded.unfit.keys().any(|(name, _)| name == target)
}

/// One for each work.
fn cells_of(plan: &Plan, target: &Target) -> Vec<Cell> {
    let own = order(plan, 1).into_iter().filter(|cell| cell.target.name == target.name);
    let mut cells: Vec<Cell> = own.map(as_warm_up).collect();
    cells.sort_by_key(|cell| plan.works.iter().position(|work| work.name == cell.work.name));
    cells
}

/// With its own id: no cell of a round may be taken for it.
fn as_warm_up(cell: Cell) -> Cell {
    let cell = Cell { round: 0, ..cell };
    Cell { id: cell_id(&cell), ..cell }
}

/// A failure may be of the moment, such as a device that was still busy, and would cost the target
/// its whole run: only the second one counts.
fn outcomes_of_two(
    cells: &[Cell],
    supervisor: &mut Supervisor,
    progress: &mut dyn Progress,
) -> Result<Option<Vec<Outcome>>> {
    let found = outcomes(cells, supervisor)?;
    let failure = |outcome: &Outcome| if let Outcome::Failed(why) = outcome { Some(why.clone()) } else { None };
    let Some(why) = found.iter().flatten().find_map(failure) else { return Ok(found) };
    progress.remark(&format!("trying {} once more, after this failure: {why}", cells[0].target.name));
    outcomes(cells, supervisor)
}

/// In the order of the cells; `None` where the run was stopped.
fn outcomes(cells: &[Cell], supervisor: &mut Supervisor) -> Result<Option<Vec<Outcome>>> {
    let (ended, ends) = supervisor.try_out(cells.to_vec())?;
    let outcomes: BTreeMap<String, Outcome> = ends.into_iter().map(|end| (end.cell, end.outcome)).collect();
    let otherwise = match ended {
        JobEnd::Stopped => return Ok(None),
        JobEnd::Skipped(reasons) => Outcome::Skipped(reasons),
        JobEnd::Dead(why) => Outcome::Failed(why),
        JobEnd::Well => Outcome::Failed("the agent ended without a word of it".into()),
    };
    Ok(Some(cells.iter().map(|cell| outcomes.get(&cell.id).unwrap_or(&otherwise).clone()).collect()))
}

/// A line for each cause, with the works that it stands against unless those are all.
fn say_left_out(cells: &[Cell], outcomes: &[Outcome], progress: &mut dyn Progress) {
    let mut causes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (cell, outcome) in cells.iter().zip(outcomes) {
        let why = match outcome {
            Outcome::Done => continue,
            Outcome::Failed(why) => why.clone(),
            Outcome::Skipped(reasons) => reasons.join("; "),
        };
        causes.entry(why).or_default().push(&cell.work.name);
    }
    for (why, works) in causes {
        let of = if works.len() == cells.len() { String::new() } else { format!(" for {}", works.join(", ")) };
        progress.remark(&format!("left out: {}{of}: {why}", cells[0].target.name));
    }
}

/// What was left out has its cells in the first round, with the reason, and none later.
fn end_unfit(supervisor: &mut Supervisor) -> Result<()> {
    for cell in order(&supervisor.plan(), 1) {
        let unfit = supervisor.folded().unfit.get(&(cell.target.name.clone(), cell.work.name.clone())).cloned();
        match (unfit, supervisor.outcome_of(&cell.id)) {
            (Some(outcome), None) => drop(supervisor.end_cell(&cell, outcome)?),
            _ => continue,
        }
    }
    Ok(())
}

/// Fresh, however old its target is to be. A failure has no effect: a round will show it. How long
/// it took; `None` where the run was stopped.
fn warm_up(cell: &Cell, supervisor: &mut Supervisor, progress: &mut dyn Progress) -> Result<Option<Duration>> {
    let target = Target { age: None, fill: None, ..cell.target.clone() };
    let limit_ns = cell.limit_ns.min(WARM_UP.as_nanos() as u64);
    progress.say(&format!("warming up: a cell of {} that does not count", target.name));
    let begun = Instant::now();
    let ended = supervisor.cell(&as_warm_up(Cell { target, limit_ns, ..cell.clone() }), Job::WarmUp, &mut Silent)?;
    let fact = ("warm-up".to_string(), format!("a cell of {}, {}, before round 1", cell.target.name, cell.work.name));
    supervisor.take(Record::Provenance(Provenance { facts: [fact].into(), ..Provenance::default() }))?;
    Ok((ended != JobEnd::Stopped).then(|| begun.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_says_how_long_the_run_takes() {
        let by = "by the warm-up a round takes about 12.0 s, and the run";
        for (rounds, budget, words) in [
            (Some(10), None, "about 2.0 min from now"),
            (Some(10), Some(60), "at most about 65.0 s from now"),
            (None, Some(5), "at most about 12.0 s from now"),
            (None, None, "at most about 2.0 min from now"),
        ] {
            let budget_ns = budget.map(|seconds: u64| seconds * 1_000_000_000);
            let stop = Stop { rounds, budget_ns, ..Stop::default() };
            assert_eq!(from_now(&stop, [12.0, 120.0], 7.0), format!("{by} {words}"));
        }
    }
}
