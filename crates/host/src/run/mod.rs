//! The host side: order, resume, time limits, the journal.
//!
//! It must not know what a workload does or how a file system is made; it sends requests, writes
//! down what comes back, and sees to it that every step is taken back.
//!
//! Must not know: `render`.

#![expect(clippy::disallowed_methods, reason = "limits agents, and writes down when things happened")]

mod active;
mod boot_state;
mod guard;
mod live;
mod pace;
mod parts;
mod progress;
mod rehearse;
mod rounds;
mod state;
mod supervise;
mod trial;
mod trust;
mod turn;

pub use active::Active;
pub use guard::again as taken_up_again;
pub use pace::Pace;
pub use parts::{CellJobs, Part, begin_parts, can_be_parted, part, parts, resume_parts};
#[cfg(test)]
use progress::Silent;
pub use progress::{Lines, Progress, for_people, for_programs, is_for_programs, tell};
pub use rehearse::{BoundAfter, Forecast, forecast, rehearse};
pub use rounds::{cells_of_rounds, checked_end};
pub use state::State;
pub use supervise::count_stop_requests;
pub use trust::{Remains, Trust, packed_plan, plan, remains};

use crate::executor::{self, Executor};
use anyhow::{Context, Result, bail};
use live::LiveJournal;
use pickfs_core::journal::*;
use pickfs_core::plan::{Cell, Plan, Stop, Turn};
use pickfs_core::protocol::{Check, Checked, Erasure, Job};
use pickfs_system::process::Interrupted;
use pickfs_system::visible::visible_lines;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use supervise::{JobEnd, Supervisor};

/// The executors that a plan may name.
pub(crate) type Executors<'e> = &'e [&'static dyn Executor];

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Enough rounds, and why.
    Enough(StopReason),
    /// Stopped on request; `--resume` takes it up.
    Stopped,
}

/// Begins a run: writes the plan into a new journal and goes through its cells. Only devices that
/// the user agreed to are erased.
pub fn begin(
    plan: &Plan,
    agreed: &[Erasure],
    executors: Executors,
    journal: &Path,
    progress: &mut dyn Progress,
) -> Result<Finish> {
    run_session(new_run(plan, executors, journal)?, agreed, progress)
}

/// A run that explains another one: no later command takes it up, nor reads its journal unless this
/// fails.
pub fn aside(plan: &Plan, executors: Executors, journal: &Path, progress: &mut dyn Progress) -> Result<Finish> {
    let session = new_run(plan, executors, journal)?;
    let path = session.journal.path().to_path_buf();
    let id = session.journal.folded().run.as_ref().map(|run| run.id.clone()).unwrap_or_default();
    let finish = run_session(session, &[], progress);
    if finish.is_err() && Active::entry(&id).is_some_and(|entry| entry.exists()) {
        return finish.with_context(|| NotUndone(path));
    }
    trust::forget(&id);
    finish
}

/// The journal of a run aside, which `pickfs clean` needs.
#[derive(Debug)]
pub struct NotUndone(PathBuf);

impl std::fmt::Display for NotUndone {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "not all was undone; `pickfs clean` does that, by {}", self.0.display())
    }
}

/// With the plan in a new journal.
fn new_run<'e>(plan: &Plan, executors: Executors<'e>, journal: &Path) -> Result<Session<'e>> {
    let id = format!("{:012x}", fresh_id());
    let active = Active::register(&id, journal)?;
    let noted = |journal: Journal| trust::note(&id, &journal).map(|()| journal);
    let mut journal = match Journal::create(journal).and_then(noted) {
        Ok(journal) => LiveJournal::new(journal, Folded::default()),
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
    match journal.write(Record::Run(Box::new(run))) {
        Ok(()) => Ok(Session { executors, active, more: None, journal }),
        Err(error) => {
            active.done();
            Err(error)
        }
    }
}

/// What can be changed of a resumed run; `None` leaves it unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StopChange {
    /// Exactly this number in all.
    pub rounds: Option<u32>,
    pub precision: Option<f64>,
    pub budget: Option<Duration>,
    /// Goes on so long, also where there is a decision.
    pub more: Option<Duration>,
}

/// An aim that does not fit the run: a wrong command, and no failure of the run.
#[derive(Debug)]
pub struct UnfitStop(String);

impl std::fmt::Display for UnfitStop {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnfitStop {}

impl StopChange {
    fn change(self, stop: Stop, rounds_begun: u32) -> Result<Stop> {
        let budget_ns = self.budget.map(|time: Duration| time.as_nanos() as u64).or(stop.budget_ns);
        Ok(match (self.rounds, self.precision) {
            (Some(rounds), _) if rounds < rounds_begun => {
                let why = format!("--rounds {rounds}: round {rounds_begun} has begun; give {rounds_begun} or more");
                return Err(UnfitStop(why).into());
            }
            (Some(rounds), _) => Stop { rounds: Some(rounds), precision: None, budget_ns, ..stop },
            (None, Some(precision)) => {
                let stop = Stop { rounds: None, precision: Some(precision), budget_ns, ..stop };
                let most = stop.most_rounds();
                if most < rounds_begun {
                    let why = format!("--precision ends after {most} rounds, and round {rounds_begun} has begun");
                    return Err(UnfitStop(why).into());
                }
                stop
            }
            (None, None) => Stop { budget_ns, ..stop },
        })
    }
}

/// Takes a run up again: leftovers undone, then the cells that have not ended.
pub fn resume(
    journal: &Path,
    agreed: &[Erasure],
    trust: Trust,
    stop_change: StopChange,
    executors: Executors,
    progress: &mut dyn Progress,
) -> Result<Finish> {
    run_session(reopen(journal, trust, stop_change, executors)?, agreed, progress)
}

fn reopen<'e>(journal: &Path, trust: Trust, stop_change: StopChange, executors: Executors<'e>) -> Result<Session<'e>> {
    let (file, folded) = trust::open(journal, trust)?;
    let run = trust::sound(&folded, file.path())?;
    let begun = folded.cells.iter().map(|cell| cell.round).max().unwrap_or(0);
    let stop = stop_change.change(run.plan.stop, begun)?;
    let all_done = folded.looks.last().is_some_and(|look| look.round >= stop.most_rounds());
    if stop_change.more.is_some() && all_done {
        bail!("all {} rounds are done; --rounds N gives the run more", stop.most_rounds());
    }
    let active = Active::register(&run.id, file.path())?;
    // One that was trusted on request is of a run of ours from now on.
    trust::note(&run.id, &file)?;
    let mut journal = LiveJournal::new(file, folded);
    if stop != run.plan.stop {
        journal.write(Record::Aim(stop))?;
    }
    Ok(Session { executors, active, more: stop_change.more, journal })
}

/// Undoes what a dead run left; the journal keeps what was measured. A run under way is refused,
/// and that of another journal waited for: it would see its settings change under its hands.
pub fn clean(journal: &Path, trust: Trust, executors: Executors, progress: &mut dyn Progress) -> Result<usize> {
    let (journal, folded) = trust::open(journal, trust)?;
    let _turn = turn::take(journal.path(), Turn::Alone, progress);
    if supervise::stop_requested() {
        bail!(Interrupted);
    }
    undo_dead(LiveJournal::new(journal, folded), executors)
}

/// What dead runs left in force would be measured, saved as the machine's own and put back for
/// good.
fn undo_dead_runs(own: &str, executors: Executors, progress: &mut dyn Progress) {
    let all = Active::list().unwrap_or_default();
    for (run, journal) in all.into_iter().filter(|(run, _)| run != own) {
        // A run under way waits for us; `pickfs clean` reports one whose journal is gone, or was
        // replaced by that of another user.
        let Ok((journal, folded)) = trust::open(&journal, Trust::Own) else { continue };
        match undo_dead(LiveJournal::new(journal, folded), executors) {
            Ok(0) => {}
            Ok(_) => progress.remark(&format!("undid what the dead run {run} had left")),
            Err(error) => progress.remark(&visible_lines(&format!("the dead run {run} is not undone: {error:#}"))),
        }
    }
}

fn undo_dead(journal: LiveJournal, executors: Executors) -> Result<usize> {
    let run = trust::supported_run(journal.folded())?;
    let executor = find_executor(executors, &run.plan)?;
    let (left, path) = (journal.folded().leftovers.len(), journal.path().to_path_buf());
    let mut supervisor = Supervisor::new(&run, executor, journal);
    supervisor.undo_dead()?;
    trust::all_steps_were_read(supervisor.folded(), &path)?;
    Active::forget(&run.id);
    Ok(left)
}

/// What one sitting of a run has.
struct Session<'e> {
    executors: Executors<'e>,
    active: Active,
    more: Option<Duration>,
    journal: LiveJournal,
}

fn run_session(session: Session, agreed: &[Erasure], progress: &mut dyn Progress) -> Result<Finish> {
    let Session { executors, active, more, journal } = session;
    let done = journal.folded();
    let run = trust::supported_run(done)?;
    let simulates = find_executor(executors, &run.plan).is_ok_and(|executor| executor.simulates());
    let path = journal.path().to_path_buf();
    let by_default = if simulates { Turn::Shared } else { Turn::Alone };
    let _turn = turn::take(journal.path(), run.plan.turn.unwrap_or(by_default), progress);
    let had_leftovers = !done.leftovers.is_empty() || !done.lost_steps.is_empty();
    if supervise::stop_requested() {
        if !had_leftovers {
            active.done();
        }
        return Ok(Finish::Stopped);
    }
    let (begun, is_new) = (Instant::now(), done.cells.is_empty());
    undo_dead_runs(&run.id, executors, progress);
    let (planned, ended) = rounds::up_to_next_look(&run.plan, done);
    progress.begin(&run, journal.path(), planned, ended);
    let over = rounds::checked_end(&run.plan, done).filter(|_| more.is_none());
    let mut supervisor = Supervisor::new(&run, find_executor(executors, &run.plan)?, journal);
    if had_leftovers {
        supervisor.undo()?;
        trust::all_steps_were_read(supervisor.folded(), &path)?;
    }
    if let Some(end) = over {
        active.done();
        let finish = Finish::Enough(end);
        progress.end(Some(finish));
        return Ok(finish);
    }
    let finish = supervisor.may_erase(agreed).and_then(|()| measure(&run, &mut supervisor, more, progress));
    progress.end(finish.as_ref().ok().copied());
    let undone = supervisor.undo();
    if undone.is_ok() {
        active.done();
    }
    let finish = finish?;
    if is_new {
        pace::keep(&run.plan, supervisor.folded(), begun.elapsed());
    }
    undone?;
    Ok(finish)
}

fn measure(
    run: &Run,
    supervisor: &mut Supervisor,
    more: Option<Duration>,
    progress: &mut dyn Progress,
) -> Result<Finish> {
    progress.say("preparing");
    if !supervisor.prepare(&run.plan, progress)? {
        return Ok(Finish::Stopped);
    }
    let limits = Limits::new(more);
    limits.end(&run.plan).into_iter().for_each(|end| progress.begins_rounds_until(end));
    if !trial::all(supervisor, progress)? {
        return Ok(Finish::Stopped);
    }
    let mut agents = Agents { supervisor, limits };
    rounds::to_the_end(&mut agents, progress)
}

/// How long a session may take.
struct Limits {
    begun: Instant,
    /// As long it goes on, also where the run could end.
    more: Option<Duration>,
}

impl Limits {
    fn new(more: Option<Duration>) -> Limits {
        Limits { begun: Instant::now(), more }
    }

    /// None where only results end the session.
    fn end(&self, plan: &Plan) -> Option<Instant> {
        self.begun.checked_add(self.more.or(plan.stop.budget_ns.map(Duration::from_nanos))?)
    }

    fn are_used(&self, plan: &Plan) -> bool {
        self.end(plan).is_some_and(|end| Instant::now() > end)
    }

    fn go_on(&self) -> bool {
        self.more.is_some_and(|more| self.begun.elapsed() <= more)
    }
}

/// Has cells done by agents.
struct Agents<'a> {
    supervisor: &'a mut Supervisor,
    limits: Limits,
}

impl rounds::Doer for Agents<'_> {
    fn cell(&mut self, cell: &Cell, progress: &mut dyn Progress) -> Result<Option<Outcome>> {
        one_cell(cell, self.supervisor, progress)
    }

    fn expect(&mut self, cells: &[Cell]) {
        self.supervisor.expect(cells);
    }

    fn folded(&self) -> &Folded {
        self.supervisor.folded()
    }

    fn note(&mut self, record: Record) -> Result<()> {
        self.supervisor.take(record)
    }

    fn limits(&self) -> Option<&Limits> {
        Some(&self.limits)
    }
}

/// `None`: stopped on request, the cell counts as not run.
fn one_cell(cell: &Cell, supervisor: &mut Supervisor, progress: &mut dyn Progress) -> Result<Option<Outcome>> {
    let ended = supervisor.cell(cell, Job::Cell, progress)?;
    match (ended, supervisor.outcome_of(&cell.id)) {
        (_, Some(outcome)) => Ok(Some(outcome)),
        (JobEnd::Stopped, None) => Ok(None),
        (JobEnd::Skipped(reasons), None) => supervisor.end_cell(cell, Outcome::Skipped(reasons)).map(Some),
        (JobEnd::Dead(why), None) => supervisor.end_cell(cell, Outcome::Failed(why)).map(Some),
        (JobEnd::Well, None) => {
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
    use pickfs_core::plan::{Stop, VerdictSpec, VerdictTerm};

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
            let run = Run { id: "e1aaaaaaaaaa".into(), plan, ..Run::default() };
            Journal::create(&path).unwrap().append(&Record::Run(Box::new(run))).unwrap();
            let refused = resume(&path, &[], Trust::Any, StopChange::default(), executor::ALL, &mut Silent)
                .expect_err("no plan is like that")
                .to_string();
            assert!(refused.contains("which no plan can have"), "{refused}");
        }
        assert_eq!(Plan::default().out_of_range(), None);
    }

    #[test]
    fn no_run_gets_an_end_that_it_has_passed() {
        let (stop, precise) = (Stop::default(), StopChange { precision: Some(0.02), ..StopChange::default() });
        let more = StopChange { rounds: Some(60), ..StopChange::default() };
        for (change, begun, is_fit) in [(precise, 40, true), (precise, 41, false), (more, 60, true), (more, 61, false)]
        {
            assert_eq!(change.change(stop, begun).is_ok(), is_fit, "{begun}");
        }
    }
}
