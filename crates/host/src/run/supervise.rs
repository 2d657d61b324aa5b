//! One agent at a time: request, records, time limits, requests to stop, and undoing if it dies.

use super::boot_state::BootState;
use super::guard::Guard;
use super::live::LiveJournal;
use super::progress::{Progress, Silent, tell};
use crate::analysis::plain::plain;
use crate::executor::{Contact, ContactOutcome, Executor, Failure, Lifetime, Machine, Patience};
use anyhow::{Context, Result, bail};
use pickfs_core::journal::*;
use pickfs_core::plan::{Cell, Plan};
use pickfs_core::protocol::clock::ClockPair;
use pickfs_core::protocol::{
    Answer, Bundle, CellsRun, Check, Checked, Erasure, Exit, Heard, INTERRUPTED, Job, Request, Say, Session,
};
use pickfs_system::process::{Interrupted, count_signals, end_requested, stop_requests};
use pickfs_system::sys::process;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// For the end of a machine that has closed its pipe, or is to go with its job.
const ENDING: Duration = Duration::from_secs(2);

/// Counts Ctrl-C, SIGTERM and closings of the terminal: one ends the step and undoes, two undo now.
pub fn count_stop_requests() -> Result<()> {
    let hangup = (!hangups_ignored()).then_some(libc::SIGHUP);
    let signals: Vec<i32> = [libc::SIGINT, libc::SIGTERM].into_iter().chain(hangup).collect();
    count_signals(&signals, |time| match time {
        1 => tell("\nstopping: finishing the step, then undoing; Ctrl-C again undoes now"),
        _ => tell("\nundoing now"),
    })
}

/// Nothing more is to be begun.
pub(crate) fn stop_requested() -> bool {
    end_requested()
}

/// Under nohup the run is to outlive its terminal.
fn hangups_ignored() -> bool {
    let status = procfs::process::Process::myself().and_then(|me| me.status());
    status.is_ok_and(|status| status.sigign & (1 << (libc::SIGHUP - 1)) != 0)
}

/// How a job ended.
#[derive(Debug, PartialEq)]
pub(crate) enum JobEnd {
    Well,
    /// On request; everything it had built is undone.
    Stopped,
    /// The machine for it cannot be had, for these reasons.
    Skipped(Vec<String>),
    /// Killed, crashed or gave up, with the reason; everything it had built is undone by us.
    Dead(String),
}

pub(crate) struct Supervisor {
    run: String,
    machine: Box<dyn Machine>,
    journal: LiveJournal,
    guard: Guard,
}

impl Supervisor {
    pub(crate) fn new(run: &Run, executor: &dyn Executor, journal: LiveJournal) -> Supervisor {
        let (run, machine) = (run.id.clone(), executor.machine(&run.plan));
        Supervisor { run, machine, journal, guard: Guard::default() }
    }

    /// What the user agreed to erase, before any cell.
    pub(crate) fn may_erase(&mut self, agreed: &[Erasure]) -> Result<()> {
        let plan = self.plan();
        self.guard = Guard::new(&plan, agreed, &mut |questions| ask(&mut *self.machine, questions))?;
        Ok(())
    }

    /// The cell as it may be done, or why not.
    fn passed(&mut self, cell: &Cell) -> Result<Result<Cell, String>> {
        let plan = self.plan();
        let passed = self.guard.passed(cell, &plan, &mut |questions| ask(&mut *self.machine, questions))?;
        Ok(passed.map_err(|refused| format!("nothing was written to it: {}", refused.join("; "))))
    }

    pub(crate) fn folded(&self) -> &Folded {
        self.journal.folded()
    }

    /// The plan with the changes so far; the reference may be another than was asked for.
    pub(crate) fn plan(&self) -> Plan {
        self.folded().run.as_ref().map(|run| run.plan.clone()).unwrap_or_default()
    }

    pub(crate) fn cells_run(&self) -> CellsRun {
        self.machine.cells()
    }

    pub(crate) fn outcome_of(&self, cell: &str) -> Option<Outcome> {
        self.folded().find_cell(cell)?.outcome.clone()
    }

    /// Writes down how a cell ended which could not say so itself.
    pub(crate) fn end_cell(&mut self, cell: &Cell, outcome: Outcome) -> Result<Outcome> {
        let at = self.machine.date().map_or_else(|| jiff::Timestamp::now().to_string(), String::from);
        if self.folded().find_cell(&cell.id).is_none() {
            self.take(Record::Begin(Begin::of(cell, at.clone())))?;
        }
        self.take(Record::End(End { cell: cell.id.clone(), outcome: outcome.clone(), at }))?;
        Ok(outcome)
    }

    /// Makes ready what all cells of the run need, here and on their machines. False: stopped on
    /// request.
    pub(crate) fn prepare(&mut self, plan: &Plan, progress: &mut dyn Progress) -> Result<bool> {
        if stop_requested() {
            return Ok(false);
        }
        let job = Job::Prepare { plan: Box::new(plan.clone()), cells: self.machine.cells() };
        let (ended, messages) = self.attend(job, None, true, progress)?;
        let ended = match (ended, messages.bundle) {
            (JobEnd::Well, Some(bundle)) => self.furnish(bundle)?,
            (ended, _) => ended,
        };
        match ended {
            JobEnd::Well => Ok(true),
            JobEnd::Stopped => Ok(false),
            JobEnd::Skipped(reasons) => bail!("cannot prepare the run: {}", reasons.join("; ")),
            JobEnd::Dead(why) => bail!("cannot prepare the run: {why}"),
        }
    }

    fn furnish(&mut self, bundle: Bundle) -> Result<JobEnd> {
        match self.machine.furnish(bundle, &mut |text| tell(text)) {
            Ok(provenance) if provenance == Provenance::default() => Ok(JobEnd::Well),
            Ok(provenance) => self.take(Record::Provenance(provenance)).map(|()| JobEnd::Well),
            Err(error) if error.is::<Interrupted>() => Ok(JobEnd::Stopped),
            Err(error) => Ok(JobEnd::Dead(format!("{error:#}"))),
        }
    }

    /// Has a cell done by an agent, which has the cell's limit, and undoes its steps if it dies.
    pub(crate) fn cell(
        &mut self,
        cell: &Cell,
        job: fn(Box<Cell>) -> Job,
        progress: &mut dyn Progress,
    ) -> Result<JobEnd> {
        if stop_requested() {
            return Ok(JobEnd::Stopped);
        }
        let cell = match self.passed(cell)? {
            Ok(cell) => cell,
            Err(why) => return Ok(JobEnd::Dead(why)),
        };
        let (limit, job) = (Duration::from_nanos(cell.limit_ns), job(Box::new(cell.clone())));
        let (ended, _) = self.attend(job, Some(limit), true, progress)?;
        self.undo_what_is_left(&cell.id, ended)
    }

    /// Announces to the machine which cells come next.
    pub(crate) fn expect(&mut self, cells: &[Cell]) {
        let request = |cell: &Cell| Request::new(&self.run, Job::Cell(Box::new(cell.clone())));
        self.machine.expect(cells.iter().map(request).collect());
    }

    /// Has the target of these cells, one a work, built and taken down; no journal has the ends.
    pub(crate) fn try_out(&mut self, cells: Vec<Cell>) -> Result<(JobEnd, Vec<End>)> {
        let Some(first) = cells.first().filter(|_| !stop_requested()) else { return Ok((JobEnd::Stopped, Vec::new())) };
        let (id, limit) = (first.id.clone(), Duration::from_nanos(first.limit_ns));
        let target = match self.passed(first)? {
            Ok(cell) => cell.target,
            Err(why) => return Ok((JobEnd::Dead(why), Vec::new())),
        };
        let cells = cells.into_iter().map(|cell| Cell { target: target.clone(), ..cell }).collect();
        let (ended, messages) = self.attend(Job::Try(cells), Some(limit), true, &mut Silent)?;
        Ok((self.undo_what_is_left(&id, ended)?, messages.ends))
    }

    fn undo_what_is_left(&mut self, scope: &str, ended: JobEnd) -> Result<JobEnd> {
        let left = self.leftovers(scope);
        // A machine elsewhere goes with its cell: its steps need no undoing.
        let is_here = self.machine.cells() == CellsRun::Here;
        if (is_here && matches!(ended, JobEnd::Dead(_))) || !left.is_empty() {
            self.undo_steps(left, false)?;
        }
        Ok(ended)
    }

    /// Undoes everything that is left of the run.
    pub(crate) fn undo(&mut self) -> Result<()> {
        self.undo_steps(self.folded().leftovers.iter().cloned().collect(), false)
    }

    /// The same of a run that is dead, where a request to stop ends it at once: the remaining steps
    /// are still in the journal.
    pub(crate) fn undo_dead(&mut self) -> Result<()> {
        self.undo_steps(self.folded().leftovers.iter().cloned().collect(), true)
    }

    fn leftovers(&self, scope: &str) -> Vec<StepTaken> {
        self.folded()
            .leftovers
            .iter()
            .filter(|step| *step.scope == *scope || step.scope == Scope::RawSpeed)
            .cloned()
            .collect()
    }

    /// Always sent, also with no step left: processes of the run are killed by it.
    fn undo_steps(&mut self, steps: Vec<StepTaken>, stoppable: bool) -> Result<()> {
        let begun = Instant::now();
        let backings = self.plan().targets.into_iter().map(|target| target.backing).collect();
        let (ended, messages) = self.attend(Job::Undo { steps, backings }, None, stoppable, &mut Silent)?;
        if ended == JobEnd::Well {
            messages.words.lines().for_each(tell);
        }
        let teardown_ns = begun.elapsed().as_nanos() as u64;
        self.take(Record::Ledger(Ledger { teardown_ns, ..Ledger::default() }))?;
        match ended {
            JobEnd::Well => Ok(()),
            JobEnd::Stopped => bail!("the undoing was stopped; run `pickfs clean`"),
            JobEnd::Skipped(reasons) => bail!("{}; run `pickfs clean`", reasons.join("; ")),
            JobEnd::Dead(why) => bail!("{why}; see what holds it, then run `pickfs clean`"),
        }
    }

    pub(crate) fn take(&mut self, record: Record) -> Result<()> {
        self.journal.write(record)
    }

    /// Has a job done, on a machine that is reached again where nothing had begun.
    fn attend(
        &mut self,
        job: Job,
        limit: Option<Duration>,
        stoppable: bool,
        progress: &mut dyn Progress,
    ) -> Result<(JobEnd, SideMessages)> {
        let cell = if let Job::Cell(cell) | Job::WarmUp(cell) = &job { cell.id.clone() } else { String::new() };
        let counts = !matches!(&job, Job::Try(_) | Job::WarmUp(_));
        let mut kills: Vec<String> = Vec::new();
        // Undoing needs no processor awake, and must not fail for want of one.
        let plan = self.folded().run.as_ref().map(|run| &run.plan).filter(|_| !matches!(&job, Job::Undo { .. }));
        let cpu_latency_us = plan.and_then(|plan| plan.host.cpu_latency_us);
        loop {
            let request = Request { cpu_latency_us, ..Request::new(&self.run, job.clone()) };
            let contact = match self.machine.reach(request) {
                Ok(ContactOutcome::Agent(contact)) => *contact,
                Ok(ContactOutcome::Nowhere(reasons)) => return Ok((JobEnd::Skipped(reasons), SideMessages::default())),
                Err(error) if error.is::<Interrupted>() => return Ok((JobEnd::Stopped, SideMessages::default())),
                Err(error) => return Ok((self.gone(format!("{error:#}"), stoppable), SideMessages::default())),
            };
            let at_once = matches!(&job, Job::Undo { .. });
            let mut attended = Attended { counts, at_once, ..Attended::start(contact, &cell, limit, stoppable)? };
            let listened = attended.listen(self, progress);
            let Attended { session, lifetime, ended, over, mut messages, .. } = attended;
            let exit = session.end((lifetime.is_disposable() || over).then_some(ENDING))?;
            messages.words = exit.errors.chars().filter(|letter| *letter == '\n' || !letter.is_control()).collect();
            listened?;
            let why = match ended.unwrap_or_else(|| judge(&exit, lifetime, over)) {
                JobEnd::Dead(why) => why,
                JobEnd::Well => return self.note_kills(&cell, counts, &kills).map(|()| (JobEnd::Well, messages)),
                ended => return Ok((ended, messages)),
            };
            match self.machine.explain(why, &exit) {
                Failure::Again => {}
                Failure::Final(why) => return Ok((self.gone(why, stoppable), messages)),
                Failure::Killed(why) if stop_requested() => return Ok((self.gone(why, stoppable), messages)),
                Failure::Killed(why) => kills.push(why),
            }
            if kills.len() >= KILLS {
                return Ok((JobEnd::Dead(killed(&kills) + REMEDY), messages));
            }
            if let Some(why) = kills.last() {
                tell(&format!("the machine was killed, and its cell begins again: {}", plain(why)));
            }
        }
    }

    /// The records of the cell are those of its last try.
    fn note_kills(&mut self, cell: &str, counts: bool, kills: &[String]) -> Result<()> {
        if kills.is_empty() || cell.is_empty() || !counts {
            return Ok(());
        }
        let (cell, phase, flag) = (cell.to_string(), String::new(), FlagKind::MachineKilled.name().to_string());
        self.take(Record::Flag(Flag { cell, phase, flag, why: killed(kills) }))
    }

    /// A machine has ended by itself. A request to us to stop may reach its emulator too, as Slurm
    /// asks all processes of a job: then its end says nothing of the cell.
    fn gone(&self, why: String, stoppable: bool) -> JobEnd {
        if stoppable && stop_requested() && self.machine.cells() == CellsRun::Elsewhere {
            JobEnd::Stopped
        } else {
            JobEnd::Dead(why)
        }
    }
}

/// How often the host may end the machine of a cell, until no more is tried.
const KILLS: usize = 3;
/// Mostly memory was short.
const REMEDY: &str = "; free memory, or begin a run with fewer `jobs` or less `memory`";

/// "the host ended the machine 2 times, the last: ...".
fn killed(kills: &[String]) -> String {
    let times = if kills.len() == 1 { "once" } else { &format!("{} times, the last", kills.len()) };
    format!("the host ended the machine {times}: {}", kills.last().map_or("", String::as_str))
}

/// Asks the machine of a plan's cells about settings, before there is a run.
pub(crate) fn check(plan: &Plan, executor: &dyn Executor, questions: Vec<Check>) -> Result<Vec<Checked>> {
    ask(&mut *executor.machine(plan), questions)
}

fn ask(machine: &mut dyn Machine, questions: Vec<Check>) -> Result<Vec<Checked>> {
    let ContactOutcome::Agent(contact) = machine.reach(Request::new("", Job::Check(questions)))? else {
        bail!("the executor has no machine to ask")
    };
    let mut session = Session::start(contact.connection, &contact.request)?;
    loop {
        match session.hear()? {
            Heard::Line(line) => match serde_json::from_str(&line).context("the agent's answer cannot be read")? {
                Say::Checked(checked) => return Ok(checked),
                other => bail!("the agent sent {other:?} instead of the result of a check"),
            },
            Heard::Nothing => {}
            Heard::Closed => bail!("the agent ended before it had checked: {}", session.end(None)?.errors.trim()),
        }
    }
}

/// An agent that is being listened to.
struct Attended<'c> {
    session: Session,
    patience: Patience,
    lifetime: Lifetime,
    /// Empty for another job.
    cell: &'c str,
    limit: Option<Duration>,
    stoppable: bool,
    /// A request to stop ends it, and is not handed on.
    at_once: bool,
    state: BootState,
    /// How long the machine had waited for processors when that began.
    starved: Duration,
    /// When the cell began, by both clocks.
    begun: Option<ClockPair>,
    asked_to_stop: bool,
    /// Why we ended it.
    ended: Option<JobEnd>,
    /// The cell's end was said.
    over: bool,
    /// The journal gets all that is said, and not its steps alone.
    counts: bool,
    messages: SideMessages,
}

/// What an agent says that is for no journal.
#[derive(Default)]
struct SideMessages {
    bundle: Option<Bundle>,
    /// Ends of cells that are only tried.
    ends: Vec<End>,
    /// On its stderr.
    words: String,
}

impl<'c> Attended<'c> {
    fn start(contact: Contact, cell: &'c str, limit: Option<Duration>, stoppable: bool) -> Result<Attended<'c>> {
        Ok(Attended {
            session: Session::start(contact.connection, &contact.request)?,
            patience: contact.patience,
            lifetime: contact.lifetime,
            cell,
            limit,
            stoppable,
            at_once: false,
            state: BootState::Started(Instant::now()),
            starved: Duration::ZERO,
            begun: None,
            asked_to_stop: false,
            ended: None,
            over: false,
            counts: true,
            messages: SideMessages::default(),
        })
    }

    /// Takes what the agent says until it ends. When that cannot be taken (the journal's disk is
    /// full), the agent still takes down what it has built, and undoing goes on to its end.
    fn listen(&mut self, supervisor: &mut Supervisor, progress: &mut dyn Progress) -> Result<()> {
        let mut deaf: Result<()> = Ok(());
        loop {
            match self.session.hear() {
                Ok(Heard::Line(line)) if deaf.is_ok() && self.ended.is_none() => {
                    deaf = self.hear(&line, supervisor, progress);
                    if deaf.is_err() {
                        self.session.hang_up();
                    }
                }
                Ok(Heard::Closed) => return deaf,
                Ok(Heard::Nothing) => supervisor.machine.meanwhile(),
                Ok(_) => {}
                Err(error) => self.kill(JobEnd::Dead(format!("{error:#}"))),
            }
            if self.over && self.lifetime.is_disposable() {
                // Not asked first: nothing on it is needed any more.
                self.session.kill();
                return deaf;
            }
            self.look_at_clock();
        }
    }

    fn look_at_clock(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let stops = if self.stoppable { stop_requests() } else { 0 };
        if stops > 1 || (stops == 1 && (self.lifetime.is_disposable() || self.at_once)) {
            return self.kill(JobEnd::Stopped);
        }
        if stops == 1 && !self.asked_to_stop {
            self.asked_to_stop = true;
            // One that is dead already shows in how it ends.
            let _ = self.session.say(&Answer::Stop);
        }
        let all = self.session.elapsed();
        let starved = || self.waited_for_processor().saturating_sub(self.starved);
        if let Some(why) = self.state.overdue(Instant::now(), self.patience, self.limit, all, starved) {
            self.kill(JobEnd::Dead(why));
        }
    }

    fn waited_for_processor(&self) -> Duration {
        process::waited_for_processor(self.session.process_id() as i32)
    }

    fn kill(&mut self, why: JobEnd) {
        self.ended = Some(why);
        self.session.kill();
    }

    /// An error when the journal cannot be written.
    fn hear(&mut self, line: &str, supervisor: &mut Supervisor, progress: &mut dyn Progress) -> Result<()> {
        if let BootState::Started(_) = self.state {
            self.state = BootState::Spoken(Instant::now());
            self.starved = self.waited_for_processor();
        }
        let mut said: Say = match serde_json::from_str(line) {
            Ok(said) => said,
            Err(error) => {
                let shown: String = line.trim().chars().filter(|letter| !letter.is_control()).take(200).collect();
                self.kill(JobEnd::Dead(format!("the agent sent `{shown}`: {error}")));
                return Ok(());
            }
        };
        supervisor.machine.overhear(&mut said);
        match said {
            Say::Tell(record) => {
                show(&record, progress);
                self.take(record, supervisor)
            }
            Say::Ask(record) => self.take(record, supervisor).and_then(|()| self.session.say(&Answer::Written)),
            Say::Prepared(bundle) => {
                self.messages.bundle = Some(*bundle);
                Ok(())
            }
            Say::Doing(what) => {
                progress.say(&what);
                Ok(())
            }
            Say::Phase(phase) => {
                progress.phase(&plain(&phase));
                Ok(())
            }
            Say::Clock(_) => Ok(()),
            question => match supervisor.machine.answer(question) {
                Ok(answer) => self.session.say(&answer),
                Err(_) => {
                    self.kill(JobEnd::Stopped);
                    Ok(())
                }
            },
        }
    }

    fn take(&mut self, mut record: Record, supervisor: &mut Supervisor) -> Result<()> {
        if self.lifetime.is_disposable() && record.cell() != Some(self.cell) {
            // What was done to the machine goes with it.
            return Ok(());
        }
        if !self.counts && !matches!(record, Record::Step(_) | Record::Undone(_)) {
            self.messages.ends.extend(if let Record::End(end) = record { Some(end) } else { None });
            return Ok(());
        }
        match &mut record {
            Record::Begin(begin) => {
                self.state = BootState::Begun(Instant::now());
                self.begun = ClockPair::now(&begin.at);
            }
            Record::End(end) if end.cell == self.cell => {
                self.over = true;
                let drift = || self.begun?.drift(ClockPair::now(&end.at)?);
                if let (Lifetime::PerJob, Outcome::Done, Some(why)) = (self.lifetime, &end.outcome, drift()) {
                    end.outcome = Outcome::Failed(why);
                }
            }
            _ => {}
        }
        supervisor.take(record)
    }
}

/// Times are what a user waits for.
fn show(record: &Record, progress: &mut dyn Progress) {
    match record {
        Record::Sample(Sample { phase, metric, value, .. }) if metric == "time_ns" => {
            progress.phase_ended(&plain(phase), *value);
        }
        _ => {}
    }
}

/// How an agent ended that we did not end.
fn judge(exit: &Exit, lifetime: Lifetime, over: bool) -> JobEnd {
    let words = exit.errors.trim();
    let dead = |why: String| JobEnd::Dead(format!("{why} {words}").trim_end().to_string());
    match exit.status {
        _ if lifetime.is_disposable() && over => JobEnd::Well,
        _ if lifetime.is_disposable() => JobEnd::Dead("the machine ended before its cell did".into()),
        None => JobEnd::Dead("the agent did not end; killed".into()),
        Some(status) => match (status.code(), status.signal()) {
            (Some(0), _) => JobEnd::Well,
            (Some(code), _) if code == i32::from(INTERRUPTED) => JobEnd::Stopped,
            (Some(1), _) if !words.is_empty() => JobEnd::Dead(words.to_string()),
            (_, Some(signal)) => dead(format!("the agent was killed by signal {signal}")),
            _ => dead(format!("the agent ended with {status}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::protocol::Connection;
    use std::process::Command;

    /// One whose machine the host always ends.
    struct Short;

    impl Executor for Short {
        fn name(&self) -> &'static str {
            "short"
        }

        fn about(&self) -> &'static str {
            "a machine that the host ends"
        }

        fn machine(&self, _plan: &Plan) -> Box<dyn Machine> {
            Box::new(Short)
        }
    }

    impl Machine for Short {
        fn cells(&self) -> CellsRun {
            CellsRun::Elsewhere
        }

        fn reach(&mut self, request: Request) -> Result<ContactOutcome> {
            let connection = Connection::open(Command::new("sh").args(["-c", "read request"]))?;
            let lifetime = Lifetime::PerJob;
            Ok(ContactOutcome::Agent(Box::new(Contact { lifetime, ..Contact::lasting(connection, request) })))
        }

        fn explain(&mut self, _why: String, _exit: &Exit) -> Failure {
            Failure::Killed("no memory".into())
        }
    }

    /// It would be left out of all later rounds if it counted as skipped.
    #[test]
    fn a_cell_whose_machine_the_host_ends_has_failed_in_its_round_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::create(&folder.path().join("journal.jsonl")).expect("a journal");
        let mut supervisor = Supervisor::new(&Run::default(), &Short, LiveJournal::new(journal, Folded::default()));
        let cell = Cell { limit_ns: u64::MAX, ..Cell::default() };
        let ended = supervisor.cell(&cell, Job::Cell, &mut Silent).expect("an end");
        let JobEnd::Dead(why) = ended else { panic!("{ended:?}") };
        assert!(why.starts_with("the host ended the machine 3 times, the last: no memory; "), "{why}");
    }
}
