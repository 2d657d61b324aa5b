//! A run whose cells are done elsewhere, each by a separate pickfs with its own journal: only where
//! cells cannot disturb each other. Here they are put together, in the order of the run, as if one
//! machine had done them.

use super::live::LiveJournal;
use super::rounds::{self, Doer};
use super::supervise::Supervisor;
use super::{
    Executors, Finish, Limits, Progress, Session, StopChange, Trust, find_executor, new_run, one_cell, reopen, trust,
};
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::*;
use pickfs_core::plan::{Cell, Plan, at_other_speeds, order};
use pickfs_system::process::Interrupted;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What came of a cell elsewhere.
pub enum Part {
    /// The journal that has it.
    Journal(PathBuf),
    /// It could not be had, for this reason.
    Failed(String),
    /// On request.
    Stopped,
}

/// Has cells done elsewhere.
pub trait CellJobs {
    /// These cells of the plan, as it is now, will be asked for, in this order, and may be begun; a
    /// cell may be named again.
    fn expect(&mut self, plan: &Plan, cells: &[Cell]) -> Result<()>;
    /// Waits for a cell.
    fn wait(&mut self, cell: &Cell) -> Result<Part>;
}

/// Whether cells of the plan cannot disturb each other, so that each may be done by itself.
pub fn can_be_parted(plan: &Plan, executors: Executors) -> bool {
    find_executor(executors, plan).is_ok_and(|executor| executor.simulates())
}

/// Begins a run of parts.
pub fn begin_parts(
    plan: &Plan,
    executors: Executors,
    journal: &Path,
    parts: &mut dyn CellJobs,
    progress: &mut dyn Progress,
) -> Result<Finish> {
    collect(new_run(plan, executors, journal)?, parts, progress)
}

/// Takes a run of parts up again.
pub fn resume_parts(
    journal: &Path,
    trust: Trust,
    stop_change: StopChange,
    executors: Executors,
    parts: &mut dyn CellJobs,
    progress: &mut dyn Progress,
) -> Result<Finish> {
    collect(reopen(journal, trust, stop_change, executors)?, parts, progress)
}

fn collect(session: Session, parts: &mut dyn CellJobs, progress: &mut dyn Progress) -> Result<Finish> {
    let Session { executors, active, more, journal } = session;
    let folded = journal.folded();
    let run = trust::supported_run(folded)?;
    ensure!(can_be_parted(&run.plan, executors), "only cells of a simulation can be done each by itself");
    let (planned, ended) = rounds::up_to_next_look(&run.plan, folded);
    progress.begin(&run, journal.path(), planned, ended);
    let over = rounds::checked_end(&run.plan, folded).filter(|_| more.is_none());
    let finish = match over {
        Some(end) => Finish::Enough(end),
        None => {
            let limits = Limits::new(more);
            let mut collector = CellCollector { journal, parts, limits, expected: BTreeSet::new() };
            rounds::to_the_end(&mut collector, progress)?
        }
    };
    progress.end(Some(finish));
    active.done();
    Ok(finish)
}

struct CellCollector<'a> {
    journal: LiveJournal,
    parts: &'a mut dyn CellJobs,
    limits: Limits,
    /// Cells that have been asked for.
    expected: BTreeSet<String>,
}

impl CellCollector<'_> {
    /// All up to the next interim analysis, of later rounds too: none of them can change any other.
    fn ask_ahead(&mut self, cell: &Cell) -> Result<()> {
        if self.expected.contains(&cell.id) {
            return Ok(());
        }
        let plan = self.plan();
        let coming = rounds::coming(&plan, self.folded());
        let checks = rounds::unchecked(&plan, self.folded()).into_iter().map(|(_, cell)| cell).collect();
        // Alone where it is beyond the end of the run, on request.
        let groups = [coming, checks, vec![cell.clone()]];
        let is_its = |group: &Vec<Cell>| group.iter().any(|one| one.id == cell.id);
        let coming = groups.into_iter().find(is_its).unwrap_or_default();
        self.expected.extend(coming.iter().map(|cell| cell.id.clone()));
        self.parts.expect(&plan, &coming)
    }

    fn take_in(&mut self, cell: &Cell, path: &Path) -> Result<()> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let read = |line: &str| serde_json::from_str::<Record>(line).with_context(|| format!("{shown} is damaged"));
        let records = text.lines().map(read).collect::<Result<Vec<Record>>>()?;
        let plan = self.plan();
        let is_ours = |record: &Record| matches!(record, Record::Run(run) if run.plan.seed == plan.seed);
        ensure!(
            records.first().is_some_and(is_ours),
            "{shown} is of another run: remove it, then take the run up again"
        );
        let is_machine = |record: &Record| matches!(record, Record::Provenance(found) if found.cell.is_empty());
        let is_first = self.folded().host.is_empty();
        let wanted = |record: &Record| record.cell() == Some(&cell.id) || (is_first && is_machine(record));
        records.into_iter().filter(wanted).try_for_each(|record| self.note(record))
    }

    fn outcome_of(&self, cell: &Cell) -> Option<Outcome> {
        self.folded().find_cell(&cell.id)?.outcome.clone()
    }
}

impl Doer for CellCollector<'_> {
    fn cell(&mut self, cell: &Cell, _: &mut dyn Progress) -> Result<Option<Outcome>> {
        self.ask_ahead(cell)?;
        let why = match self.parts.wait(cell)? {
            Part::Stopped => return Ok(None),
            Part::Failed(why) => why,
            Part::Journal(path) => {
                self.take_in(cell, &path)?;
                if let Some(outcome) = self.outcome_of(cell) {
                    return Ok(Some(outcome));
                }
                format!("{} does not record how the cell ended", path.display())
            }
        };
        let at = self.now();
        self.note(Record::Begin(Begin::of(cell, at.clone())))?;
        let outcome = Outcome::Failed(why);
        self.note(Record::End(End { cell: cell.id.clone(), outcome: outcome.clone(), at }))?;
        Ok(Some(outcome))
    }

    fn folded(&self) -> &Folded {
        self.journal.folded()
    }

    fn note(&mut self, record: Record) -> Result<()> {
        self.journal.write(record)
    }

    fn limits(&self) -> Option<&Limits> {
        Some(&self.limits)
    }
}

/// Does one cell of a plan into its own journal.
pub fn part(
    plan: &Plan,
    cell: &str,
    executors: Executors,
    journal: &Path,
    progress: &mut dyn Progress,
) -> Result<Outcome> {
    let cells = (1..=plan.stop.most_rounds()).flat_map(|round| order(plan, round));
    let checks = at_other_speeds(plan).into_iter().map(|(_, cell)| cell);
    let found = cells.chain(checks).find(|one| one.id == cell);
    let found = found.with_context(|| format!("the plan has no cell `{}`", cell.escape_debug()))?;
    let ended = parts(plan, &[found], executors, journal, progress)?;
    ended.into_iter().next().context("a cell without an end")
}

/// Does cells of a plan into a journal, several at once as its executor can, and returns how each
/// ended. Takes no turn among the runs of the machine: a simulation measures nothing of it, and
/// each other part would wait.
pub fn parts(
    plan: &Plan,
    cells: &[Cell],
    executors: Executors,
    journal: &Path,
    progress: &mut dyn Progress,
) -> Result<Vec<Outcome>> {
    ensure!(can_be_parted(plan, executors), "only cells of a simulation can be done each by itself");
    let Session { executors, active, journal, .. } = new_run(plan, executors, journal)?;
    let run = trust::supported_run(journal.folded())?;
    let mut supervisor = Supervisor::new(&run, find_executor(executors, plan)?, journal);
    let outcomes = prepared_and_done(plan, cells, &mut supervisor, progress);
    supervisor.undo()?;
    active.done();
    // There may be thousands, and none is taken up again.
    trust::forget(&run.id);
    outcomes
}

fn prepared_and_done(
    plan: &Plan,
    cells: &[Cell],
    supervisor: &mut Supervisor,
    progress: &mut dyn Progress,
) -> Result<Vec<Outcome>> {
    if !supervisor.prepare(plan, progress)? {
        bail!(Interrupted);
    }
    supervisor.expect(cells);
    cells.iter().map(|cell| one_cell(cell, supervisor, progress)?.context(Interrupted)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Silent;
    use pickfs_core::plan::{Stop, Target, Work};

    /// Other machines, whose every cell is done.
    struct Elsewhere {
        folder: PathBuf,
        run: Record,
        /// What was asked for at a time.
        asked: Vec<usize>,
    }

    impl CellJobs for Elsewhere {
        fn expect(&mut self, _plan: &Plan, cells: &[Cell]) -> Result<()> {
            self.asked.push(cells.len());
            Ok(())
        }

        fn wait(&mut self, cell: &Cell) -> Result<Part> {
            let begin = Record::Begin(Begin::of(cell, String::new()));
            let (cell, outcome, at) = (cell.id.clone(), Outcome::Done, String::new());
            let path = self.folder.join(&cell);
            let mut journal = Journal::create(&path)?;
            [&self.run, &begin, &Record::End(End { cell, outcome, at })]
                .into_iter()
                .try_for_each(|r| journal.append(r))?;
            Ok(Part::Journal(path))
        }
    }

    #[test]
    fn a_verdict_is_checked_on_other_processors_elsewhere_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = |name: &str| Target { name: name.into(), ..Target::default() };
        let stop = Stop { rounds: Some(3), ..Stop::default() };
        let (targets, works) = (vec![target("a"), target("b")], vec![Work::default()]);
        let plan = Plan { targets, works, stop, other_speeds: true, ..Plan::default() };
        let run = Record::Run(Box::new(Run { plan: plan.clone(), ..Run::default() }));
        let mut folded = Folded::default();
        folded.take(run.clone());
        let mut elsewhere = Elsewhere { folder: folder.path().into(), run, asked: Vec::new() };
        let journal = Journal::create(&folder.path().join("whole")).expect("a journal");
        let (parts, limits) = (&mut elsewhere, Limits::new(None));
        let mut collector =
            CellCollector { journal: LiveJournal::new(journal, folded), parts, limits, expected: BTreeSet::new() };
        let ended = rounds::measure(&mut collector, &mut Silent).expect("all rounds are done");
        let checked = |collector: &CellCollector| rounds::checked_end(&plan, collector.folded());
        assert_eq!((ended, checked(&collector)), (Some(StopReason::Rounds), None), "to be taken up again");
        let finish = rounds::to_the_end(&mut collector, &mut Silent).expect("all is done");
        assert_eq!(finish, Finish::Enough(StopReason::Rounds));
        assert_eq!(checked(&collector), Some(StopReason::Rounds));
        let speeds: Vec<f64> =
            collector.folded().cells.iter().map(|cell| collector.folded().processors(cell).times).collect();
        assert_eq!([0.5, 1.0, 2.0].map(|times| speeds.iter().filter(|speed| **speed == times).count()), [2, 6, 2]);
        // All rounds and all checks at once.
        assert_eq!(elsewhere.asked, [10]);
    }
}
