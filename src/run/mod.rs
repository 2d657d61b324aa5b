//! The host side: order, resume, time limits, the journal.
//!
//! It must not know what a workload does or how a file system is made; it sends requests, writes down what comes
//! back, and sees to it that every step is taken back.
//!
//! Must not know: `agent`, `cli`, `probe`, `render`, `stack`, `stage`, `workload`.

#![expect(clippy::disallowed_methods, reason = "limits agents, and writes down when things happened")]

mod active;
mod progress;
mod rehearse;
mod rounds;
mod supervise;
mod turn;

pub use active::Active;
pub use progress::{Plain, Progress, tell};
pub use rehearse::{Forecast, forecast, rehearse};
pub use supervise::count_stop_requests;

use crate::executor::{self, Executor};
use crate::journal::*;
use crate::plan::{Cell, Plan};
use crate::protocol::{Check, Checked};
use crate::sys::process;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::{Duration, Instant};
use supervise::{Ended, Supervisor};

/// The executors that a plan may name.
pub type Executors<'e> = &'e [&'static dyn Executor];

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Enough rounds, and why.
    Enough(Enough),
    /// Stopped on request; `--resume` takes it up.
    Stopped,
}

/// Begins a run: writes the plan into a new journal and goes through its cells.
pub fn begin(plan: &Plan, executors: Executors, journal: &Path, progress: &mut dyn Progress) -> Result<Finish> {
    let id = format!("{:012x}", fresh_id());
    let active = Active::register(&id, journal)?;
    let mut journal = match Journal::create(journal) {
        Ok(journal) => journal,
        Err(error) => {
            active.done();
            return Err(error);
        }
    };
    let run = Run {
        schema: SCHEMA,
        pickfs: env!("CARGO_PKG_VERSION").into(),
        id,
        started: jiff::Timestamp::now().to_string(),
        plan: plan.clone(),
        imported: String::new(),
    };
    journal.append(&Record::Run(Box::new(run.clone())))?;
    go(run, executors, journal, Folded::default(), active, progress)
}

/// Whose journals are acted on: what they say is done with our rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Own,
    /// The user has read it and says so.
    Any,
}

impl Owner {
    fn open(self, journal: &Path) -> Result<(Journal, Folded)> {
        Journal::reopen(journal, |owner| self == Owner::Any || process::trusts(owner))
    }
}

/// Takes a run up again: leftovers undone, then the cells that have not ended.
pub fn resume(journal: &Path, owner: Owner, executors: Executors, progress: &mut dyn Progress) -> Result<Finish> {
    let (journal, folded) = owner.open(journal)?;
    let run = understood(&folded)?;
    if let Some(absurdity) = run.plan.absurdity() {
        bail!("the plan in {} has {absurdity}, which no plan can have; begin a new run", journal.path().display());
    }
    let active = Active::register(&run.id, journal.path())?;
    go(run, executors, journal, folded, active, progress)
}

/// Undoes what a dead run left; the journal keeps what was measured. A run under way is refused, and that of another
/// journal waited for: it would see its settings change under its hands.
pub fn clean(journal: &Path, owner: Owner, executors: Executors, progress: &mut dyn Progress) -> Result<usize> {
    let (journal, folded) = owner.open(journal)?;
    let _turn = turn::take(progress);
    if supervise::stop_requested() {
        bail!("stopped before anything was undone; run `pickfs clean` again");
    }
    undo_dead(journal, executors, folded)
}

/// What dead runs left in force would be measured, saved as the machine's own and put back for good.
fn undo_dead_runs(own: &str, executors: Executors, progress: &mut dyn Progress) {
    for (run, journal) in Active::list().into_iter().filter(|(run, _)| run != own) {
        // One that is under way waits for us; one whose journal is gone is told by `pickfs clean`, as one that another user
        // has put in its place.
        let Ok((journal, folded)) = Owner::Own.open(&journal) else { continue };
        match undo_dead(journal, executors, folded) {
            Ok(_) => progress.say(&format!("undid what the dead run {run} had left")),
            Err(error) => progress.say(&format!("the dead run {run} is not undone: {error:#}")),
        }
    }
}

fn undo_dead(journal: Journal, executors: Executors, folded: Folded) -> Result<usize> {
    let run = understood(&folded)?;
    let executor = find_executor(executors, &run.plan)?;
    let left = folded.leftovers.len();
    Supervisor::new(&run, executor, journal, folded).undo()?;
    Active::forget(&run.id);
    Ok(left)
}

/// The run of a journal that we may act on: all its steps can be read, and its name is one that we give.
fn understood(folded: &Folded) -> Result<Run> {
    let run = folded.run.clone().context("the journal has no run record")?;
    if run.schema > SCHEMA {
        bail!("the journal is of schema {}, this pickfs knows {SCHEMA}; take a newer pickfs", run.schema);
    }
    if !run.imported.is_empty() {
        bail!("the journal holds results of {}: there is nothing to take up or to undo", run.imported.escape_debug());
    }
    // It becomes part of paths.
    if run.id.is_empty() || !run.id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        bail!("`{}` is not the name of a run; the journal is damaged or not a journal", run.id.escape_debug());
    }
    Ok(run)
}

fn go(
    run: Run,
    executors: Executors,
    journal: Journal,
    done: Folded,
    active: Active,
    progress: &mut dyn Progress,
) -> Result<Finish> {
    let _turn = turn::take(progress);
    let had_leftovers = !done.leftovers.is_empty();
    if supervise::stop_requested() {
        if !had_leftovers {
            active.done();
        }
        return Ok(Finish::Stopped);
    }
    undo_dead_runs(&run.id, executors, progress);
    let (planned, ended) = rounds::up_to_next_look(&run.plan, &done);
    progress.begin(planned, ended);
    let over = done.looks.last().and_then(|look| look.end).filter(|end| end.is_final());
    let mut supervisor = Supervisor::new(&run, find_executor(executors, &run.plan)?, journal, done);
    if had_leftovers {
        supervisor.undo()?;
    }
    if let Some(end) = over {
        active.done();
        return Ok(Finish::Enough(end));
    }
    let finish = measure(&run, &mut supervisor, progress);
    progress.end();
    let undone = supervisor.undo();
    if undone.is_ok() {
        active.done();
    }
    let finish = finish?;
    undone?;
    Ok(finish)
}

fn measure(run: &Run, supervisor: &mut Supervisor, progress: &mut dyn Progress) -> Result<Finish> {
    progress.say("preparing: backings, sources, the drive's raw speed");
    match supervisor.prepare(&run.plan)? {
        Ended::Well => {}
        Ended::Stopped => return Ok(Finish::Stopped),
        Ended::Skipped(reasons) => bail!("cannot prepare the run: {}", reasons.join("; ")),
        Ended::Dead(why) => bail!("cannot prepare the run: {why}"),
    }
    let mut agents = Agents { supervisor, begun: Instant::now() };
    Ok(rounds::measure(&run.plan, &mut agents, progress)?.map_or(Finish::Stopped, Finish::Enough))
}

/// Has cells done by agents.
struct Agents<'a> {
    supervisor: &'a mut Supervisor,
    begun: Instant,
}

impl rounds::Doer for Agents<'_> {
    fn cell(&mut self, cell: &Cell) -> Result<Option<Outcome>> {
        one_cell(cell, self.supervisor)
    }

    fn folded(&self) -> &Folded {
        self.supervisor.folded()
    }

    fn note(&mut self, record: Record) -> Result<()> {
        self.supervisor.take(record)
    }

    fn budget_used(&self, plan: &Plan) -> bool {
        plan.stop.budget_ns.is_some_and(|budget| self.begun.elapsed() > Duration::from_nanos(budget))
    }

    fn now(&self) -> String {
        jiff::Timestamp::now().to_string()
    }
}

/// `None`: stopped on request, the cell counts as not run.
fn one_cell(cell: &Cell, supervisor: &mut Supervisor) -> Result<Option<Outcome>> {
    let ended = supervisor.cell(cell)?;
    match (ended, supervisor.outcome_of(&cell.id)) {
        (_, Some(outcome)) => Ok(Some(outcome)),
        (Ended::Stopped, None) => Ok(None),
        (Ended::Skipped(reasons), None) => supervisor.end_cell(cell, Outcome::Skipped(reasons)).map(Some),
        (Ended::Dead(why), None) => supervisor.end_cell(cell, Outcome::Failed(why)).map(Some),
        (Ended::Well, None) => {
            let why = "the agent ended without a word of how the cell did".into();
            supervisor.end_cell(cell, Outcome::Failed(why)).map(Some)
        }
    }
}

/// What the machine of a plan's cells has against settings, and what they would erase.
pub fn check(plan: &Plan, executors: Executors, questions: Vec<Check>) -> Result<Vec<Checked>> {
    supervise::check(plan, find_executor(executors, plan)?, questions)
}

fn find_executor(executors: Executors, plan: &Plan) -> Result<&'static dyn Executor> {
    executor::find(executors, &plan.executor)
        .with_context(|| format!("no executor `{}`; see pickfs list executors", plan.executor))
}

/// Unique among runs of this machine: the clock's nanoseconds and the process id, hashed.
fn fresh_id() -> u64 {
    let text = format!("{} {}", jiff::Timestamp::now().as_nanosecond(), std::process::id());
    xxhash_rust::xxh3::xxh3_64(text.as_bytes()) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Stop, VerdictSpec, VerdictTerm};

    struct Silent;

    impl Progress for Silent {}

    /// Before a state file is written, or a round counted.
    #[test]
    fn a_plan_that_nobody_could_have_read_is_not_taken_up() {
        let parts = |amount: f64| VerdictSpec {
            parts: vec![VerdictTerm { amount, ..VerdictTerm::default() }],
            ..VerdictSpec::default()
        };
        let with_rounds = |rounds| Plan { stop: Stop { rounds: Some(rounds), ..Stop::default() }, ..Plan::default() };
        let precise = Stop { precision: Some(-0.5), ..Stop::default() };
        let absurd = [
            with_rounds(0),
            with_rounds(u32::MAX),
            Plan { verdict: parts(0.0), ..Plan::default() },
            Plan { verdict: parts(-1.0), ..Plan::default() },
            Plan { verdict: parts(1e300), ..Plan::default() },
            Plan { stop: precise, ..Plan::default() },
            Plan { stop: Stop { threshold: 0.0, ..Stop::default() }, ..Plan::default() },
        ];
        let folder = tempfile::tempdir().unwrap();
        for (at, plan) in absurd.into_iter().enumerate() {
            let path = folder.path().join(format!("{at}.jsonl"));
            let run = Run { id: "r1".into(), plan, ..Run::default() };
            Journal::create(&path).unwrap().append(&Record::Run(Box::new(run))).unwrap();
            let refused =
                resume(&path, Owner::Own, executor::ALL, &mut Silent).expect_err("no plan is like that").to_string();
            assert!(refused.contains("which no plan can have"), "{refused}");
        }
        assert_eq!(Plan::default().absurdity(), None);
    }
}
