//! How long cells take on this machine, by its earlier runs: for what is said before the next run
//! of the same work.
//!
//! The state folder has a small file of seconds for each target with its work. One that is lost or
//! wrong makes what is said poorer, and nothing else.

use super::state::State;
use crate::executor;
use pickfs_core::journal::{Folded, FoldedCell, Outcome};
use pickfs_core::plan::{Plan, Target, Work, recipe};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

const FOLDER: &str = "paces";

/// What a run takes here, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// One round of all targets and works.
    pub round: f64,
    /// Before the first cell and after the last one.
    pub around: f64,
}

impl Pace {
    /// `None` where this machine has not done each of the plan's works on such a backing.
    pub fn known(plan: &Plan) -> Option<Pace> {
        let state = State::find(FOLDER).ok()??;
        let read = |name: &str| String::from_utf8(state.read(name)?.0).ok()?.trim().parse::<f64>().ok();
        pace(plan, &|name| read(name).filter(|seconds| seconds.is_finite() && *seconds >= 0.0))
    }
}

/// Keeps what a run took that was done at one go; nothing where that cannot be written.
pub(super) fn keep(plan: &Plan, folded: &Folded, took: Duration) {
    let Ok(state) = State::create(FOLDER) else { return };
    let is_clocked = !executor::brings_its_own(&plan.executor);
    for (name, seconds) in seconds(plan, folded, took.as_secs_f64(), is_clocked) {
        let Ok(mut file) = state.made_file(&name) else { continue };
        // What is lost is learnt again by the next run.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{seconds:.3}"));
    }
}

fn pace(plan: &Plan, known: &dyn Fn(&str) -> Option<f64>) -> Option<Pace> {
    let all = plan.works.iter().flat_map(|work| plan.targets.iter().map(move |target| (target, work)));
    let mut each = all.map(|(target, work)| {
        // Another file system on the same backing is nearer than what a workload says of itself.
        known(&of_cell(plan, target, work)).or_else(|| known(&of_cell(plan, &alike(target), work)))
    });
    let round = each.try_fold(0.0, |sum, seconds| Some(sum + seconds?))?;
    Some(Pace { round, around: known(&of_all(plan)).unwrap_or(0.0) })
}

/// By the name of its file. Where cells run in parallel, the time of a cell is its share of the
/// clock's, and where they have clocks of their own, in guests, not `is_clocked`.
fn seconds(plan: &Plan, folded: &Folded, took: f64, is_clocked: bool) -> BTreeMap<String, f64> {
    let total = |cells: &[&FoldedCell]| cells.iter().map(|cell| cell.ledger.total_ns() as f64 / 1e9).sum::<f64>();
    let in_cells = total(&folded.cells.iter().collect::<Vec<_>>());
    if in_cells <= 0.0 {
        return BTreeMap::new();
    }
    let beside = folded.ledger.total_ns() as f64 / 1e9;
    let around = if is_clocked && took > in_cells { took - in_cells } else { beside.min(took) };
    let stretch = (took - around) / in_cells;
    let mut found = BTreeMap::from([(of_all(plan), around)]);
    let mut keep = |name: String, cells: Vec<&FoldedCell>| {
        if !cells.is_empty() {
            found.insert(name, stretch * total(&cells) / cells.len() as f64);
        }
    };
    for work in &plan.works {
        let done = || folded.cells.iter().filter(|cell| cell.work == work.name && cell.outcome == Some(Outcome::Done));
        for target in &plan.targets {
            keep(of_cell(plan, target, work), done().filter(|cell| cell.target == target.name).collect());
            let is_alike = |name: &str| plan.targets.iter().any(|one| one.name == name && alike(one) == alike(target));
            keep(of_cell(plan, &alike(target), work), done().filter(|cell| is_alike(&cell.target)).collect());
        }
    }
    found
}

/// A file for all targets that differ in nothing but their names, such as the reference and its
/// copy.
fn of_cell(plan: &Plan, target: &Target, work: &Work) -> String {
    let target = Target { name: String::new(), duplicate: false, ..target.clone() };
    named(&(&plan.executor, plan.jobs, target, &work.workload, work.repeats))
}

/// What is around the cells: most of it brings what the works work on.
fn of_all(plan: &Plan) -> String {
    let works: Vec<_> = plan.works.iter().map(|work| &work.workload).collect();
    named(&(&plan.executor, plan.targets.first().map(alike), works))
}

/// Any file system in the same place.
fn alike(target: &Target) -> Target {
    let Target { backing, layers, machine, age, fill, .. } = target.clone();
    Target { backing, layers, machine, age, fill, ..Target::default() }
}

fn named(what: &impl serde::Serialize) -> String {
    recipe::digest(&serde_json::to_string(what).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::journal::{Begin, End, Ledger, Record};
    use pickfs_core::plan::Chosen;

    fn plan(targets: &[&str], works: &[&str]) -> Plan {
        let target = |fs: &&str| Target { name: fs.to_string(), fs: Some(fs.to_string()), ..Target::default() };
        let workload = |name: &&str| Chosen { name: name.to_string(), ..Chosen::default() };
        let work = |name: &&str| Work { name: name.to_string(), workload: workload(name), ..Work::default() };
        Plan {
            targets: targets.iter().map(target).collect(),
            works: works.iter().map(work).collect(),
            ..Plan::default()
        }
    }

    /// Two rounds of a tree: 4 s on ext4, 8 s on xfs, and 3 s around them.
    fn folded() -> Folded {
        let mut folded = Folded::default();
        let ledger = |cell: &str, seconds: u64| Ledger {
            cell: cell.into(),
            setup_ns: seconds * 1_000_000_000,
            ..Ledger::default()
        };
        for (round, target, seconds) in [(1, "ext4", 4), (1, "xfs", 8), (2, "xfs", 8), (2, "ext4", 4)] {
            let cell = format!("{target}-{round}");
            let (target, work, at) = (target.to_string(), "tree".to_string(), String::new());
            folded.take(Record::Begin(Begin { cell: cell.clone(), round, target, work, at: at.clone() }));
            folded.take(Record::Ledger(ledger(&cell, seconds)));
            folded.take(Record::End(End { cell, outcome: Outcome::Done, at }));
        }
        folded.take(Record::Ledger(ledger("run", 3)));
        folded
    }

    #[test]
    fn a_run_takes_what_the_last_one_took() {
        let ran = plan(&["ext4", "xfs"], &["tree"]);
        let expected_by = |took: f64, plan: &Plan, is_clocked: bool| {
            let kept = seconds(&ran, &folded(), took, is_clocked);
            pace(plan, &|name| kept.get(name).copied())
        };
        let expected = |took: f64, plan: &Plan| expected_by(took, plan, true);
        let known = |took: f64, plan: &Plan| expected(took, plan).map(|pace| [pace.round, pace.around]);
        assert_eq!(known(27.0, &ran), Some([12.0, 3.0]));
        assert_eq!(known(27.0, &plan(&["xfs"], &["tree"])), Some([8.0, 3.0]));
        assert_eq!(known(27.0, &plan(&["btrfs"], &["tree"])), Some([6.0, 3.0]), "the mean of the others");
        assert_eq!(known(27.0, &plan(&["ext4"], &["tree", "io"])), None);
        // Each boots a machine, of which its own clock knows nothing.
        let in_guests = expected_by(243.0, &ran, false).map(|pace| [pace.round, pace.around]);
        assert_eq!(in_guests, Some([120.0, 3.0]));
        // Two at once.
        assert_eq!(known(15.0, &ran), Some([6.0, 3.0]));
        let mut elsewhere = ran.clone();
        elsewhere.targets[0].backing.name = "memory".into();
        assert_eq!(known(27.0, &elsewhere), None);
    }
}
