//! One agent at a time: request in, records out, time limit, signals, and the undoing when it dies.

use super::progress::tell;
use crate::executor::Executor;
use crate::journal::*;
use crate::plan::Cell;
use crate::protocol::{Answer, Job, Request, Say};
use crate::sys::process;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Ctrl-C so far: once finishes the step and undoes, twice undoes now.
static STOPS: AtomicUsize = AtomicUsize::new(0);

/// How long an agent may take to tear down after its own deadline, before the host kills it.
const GRACE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(50);
/// The agent's exit code when it was asked to stop and has undone everything.
const INTERRUPTED: i32 = 130;

/// From now on Ctrl-C (and SIGTERM, and the terminal's closing) is counted instead of killing us.
pub fn stop_requests() -> Result<()> {
    let wanted = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    let mut signals =
        signal_hook::iterator::Signals::new(wanted.into_iter().filter(|&s| s != libc::SIGHUP || !hangups_ignored()))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            match STOPS.fetch_add(1, Ordering::Relaxed) {
                0 => tell("\nstopping: finishing the step, then undoing; Ctrl-C again undoes now"),
                _ => tell("\nundoing now"),
            }
        }
    });
    Ok(())
}

/// Has anybody asked us to stop?
pub fn stop_requested() -> bool {
    STOPS.load(Ordering::Relaxed) > 0
}

/// Under nohup the run is to outlive its terminal.
fn hangups_ignored() -> bool {
    let status = procfs::process::Process::myself().and_then(|me| me.status());
    status.is_ok_and(|status| status.sigign & (1 << (libc::SIGHUP - 1)) != 0)
}

/// How an agent ended.
#[derive(Debug, PartialEq)]
pub enum Ended {
    Well,
    /// On request; everything it had built is undone.
    Stopped,
    /// Killed, crashed or gave up, with the reason; everything it had built is undone by us.
    Dead(String),
}

pub struct Supervisor {
    run: String,
    executor: &'static dyn Executor,
    journal: Journal,
    /// All that the journal says, of earlier sessions too.
    folded: Folded,
}

/// An agent under way.
struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    words: std::thread::JoinHandle<String>,
}

impl Supervisor {
    pub fn new(run: &str, executor: &'static dyn Executor, journal: Journal, folded: Folded) -> Supervisor {
        Supervisor { run: run.into(), executor, journal, folded }
    }

    pub fn folded(&self) -> &Folded {
        &self.folded
    }

    pub fn outcome_of(&self, cell: &str) -> Option<Outcome> {
        self.folded.find_cell(cell)?.outcome.clone()
    }

    /// Writes down that a cell has failed which could not say so itself.
    pub fn fail(&mut self, cell: &Cell, why: &str) -> Result<Outcome> {
        let outcome = Outcome::Failed(why.to_string());
        let at = jiff::Timestamp::now().to_string();
        if self.folded.find_cell(&cell.id).is_none() {
            self.take(Record::Begin(Begin::of(cell, at.clone())))?;
        }
        self.take(Record::End(End { cell: cell.id.clone(), outcome: outcome.clone(), at }))?;
        Ok(outcome)
    }

    /// Has one job done by an agent of its own, and undoes its steps if it dies. `limit` is the agent's own deadline.
    pub fn job(&mut self, job: Job, limit: Option<Duration>) -> Result<Ended> {
        let scope = match &job {
            Job::Cell(cell) => cell.id.clone(),
            _ => "run".to_string(),
        };
        if stop_requested() {
            return Ok(Ended::Stopped);
        }
        let ended = self.attend(job, limit)?;
        let left = self.leftovers(&scope);
        if scope != "run" && (matches!(ended, Ended::Dead(_)) || !left.is_empty()) {
            self.undo_steps(left)?;
        }
        Ok(ended)
    }

    /// Undoes everything that is left of the run.
    pub fn undo(&mut self) -> Result<()> {
        self.undo_steps(self.folded.leftovers.clone())
    }

    fn leftovers(&self, scope: &str) -> Vec<StepTaken> {
        self.folded.leftovers.iter().filter(|step| step.scope == scope || step.scope == "raw-speed").cloned().collect()
    }

    /// Always sent, also with no step left: processes of the run are killed by it.
    fn undo_steps(&mut self, steps: Vec<StepTaken>) -> Result<()> {
        let begun = Instant::now();
        let mut agent = self.start(&Request { run: self.run.clone(), job: Job::Undo(steps), guest: None })?;
        let ended = self.listen(&mut agent, None, false)?;
        let teardown_ns = begun.elapsed().as_nanos() as u64;
        self.take(Record::Ledger(Ledger { teardown_ns, ..Ledger::default() }))?;
        match self.farewell(agent, ended)? {
            Ended::Well => Ok(()),
            Ended::Stopped => bail!("the undoing was stopped; run `pickfs clean`"),
            Ended::Dead(why) => bail!("{why}; see what holds it, then run `pickfs clean`"),
        }
    }

    fn attend(&mut self, job: Job, limit: Option<Duration>) -> Result<Ended> {
        let mut agent = self.start(&Request { run: self.run.clone(), job, guest: None })?;
        let ended = self.listen(&mut agent, limit, true)?;
        self.farewell(agent, ended)
    }

    fn start(&self, request: &Request) -> Result<Agent> {
        let words = self.executor.command()?;
        let (program, arguments) = words.split_first().context("the executor gave no command")?;
        let mut command = Command::new(program);
        command.args(arguments).env("PICKFS_RUN", &self.run).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
        let mut stdin = child.stdin.take().context("no pipe to the agent")?;
        let stdout = child.stdout.take().context("no pipe from the agent")?;
        let stderr = child.stderr.take().context("no pipe from the agent")?;
        let line = serde_json::to_string(request)? + "\n";
        // An agent that is dead already shows in its exit status.
        let _ = stdin.write_all(line.as_bytes());
        Ok(Agent { child, stdin: Some(stdin), lines: read_lines(stdout), words: read_words(stderr) })
    }

    /// Takes what the agent says until it ends. `Some` is why we killed it. When it cannot be taken (the journal's disk
    /// is full), the agent still takes down what it has built, and undoing goes on to its end.
    fn listen(&mut self, agent: &mut Agent, limit: Option<Duration>, stoppable: bool) -> Result<Option<Ended>> {
        let begun = Instant::now();
        let mut asked_to_stop = false;
        let mut killed = None;
        let mut deaf: Result<()> = Ok(());
        loop {
            match agent.lines.recv_timeout(TICK) {
                Ok(line) if deaf.is_ok() => {
                    deaf = self.hear(agent, &line);
                    if deaf.is_err() {
                        // Who waits for an answer sees that none will come.
                        agent.stdin = None;
                        process::kill(agent.child.id() as i32, process::Signal::TERM).ok();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return deaf.map(|()| killed),
                _ => {}
            }
            let stops = if stoppable { STOPS.load(Ordering::Relaxed) } else { 0 };
            if stops == 1 && !asked_to_stop {
                asked_to_stop = true;
                process::kill(agent.child.id() as i32, process::Signal::TERM).ok();
            }
            if killed.is_some() {
                continue;
            }
            if stops > 1 {
                killed = Some(Ended::Stopped);
                kill(agent);
            } else if limit.is_some_and(|limit| begun.elapsed() > limit + self.executor.patience() + GRACE) {
                let limit = crate::units::show_duration(limit.unwrap_or_default().as_nanos() as f64);
                killed =
                    Some(Ended::Dead(format!("the time limit of {limit} passed and the agent did not answer; killed")));
                kill(agent);
            }
        }
    }

    fn hear(&mut self, agent: &mut Agent, line: &str) -> Result<()> {
        let said: Say = serde_json::from_str(line).with_context(|| format!("the agent said `{line}`"))?;
        match said {
            Say::Tell(record) => self.take(record),
            Say::Forget | Say::Boot(_) => bail!("the agent asked for what only the host of a guest can do"),
            Say::Ask(record) => {
                self.take(record)?;
                let answer = serde_json::to_string(&Answer::Written)? + "\n";
                if let Some(stdin) = &mut agent.stdin {
                    // As above: a dead agent is seen by its exit.
                    let _ = stdin.write_all(answer.as_bytes());
                }
                Ok(())
            }
        }
    }

    /// Journal first, then our own picture of it.
    pub fn take(&mut self, record: Record) -> Result<()> {
        self.journal.append(&record)?;
        self.folded.take(record);
        Ok(())
    }

    fn farewell(&self, mut agent: Agent, killed: Option<Ended>) -> Result<Ended> {
        drop(agent.stdin.take());
        let status = agent.child.wait().context("cannot wait for the agent")?;
        // Children that the agent left in its group hold its pipes open.
        process::kill_group(agent.child.id() as i32).ok();
        let words = agent.words.join().unwrap_or_default();
        Ok(killed.unwrap_or_else(|| judge(status, &words)))
    }
}

fn judge(status: ExitStatus, words: &str) -> Ended {
    let words = words.trim();
    match (status.code(), status.signal()) {
        (Some(0), _) => Ended::Well,
        (Some(INTERRUPTED), _) => Ended::Stopped,
        (Some(1), _) if !words.is_empty() => Ended::Dead(words.to_string()),
        (_, Some(signal)) => {
            Ended::Dead(format!("the agent was killed by signal {signal} {words}").trim_end().to_string())
        }
        _ => Ended::Dead(format!("the agent ended with {status} {words}").trim_end().to_string()),
    }
}

fn kill(agent: &Agent) {
    process::kill_group(agent.child.id() as i32).ok();
}

/// Lines until the agent closes its end. A last line without an end is torn and dropped.
fn read_lines(stdout: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
            if send.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    lines
}

/// The last 4 KiB that the agent said on stderr.
fn read_words(mut stderr: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut words = Vec::new();
        let _ = stderr.read_to_end(&mut words);
        String::from_utf8_lossy(&words[words.len().saturating_sub(4096)..]).into_owned()
    })
}
