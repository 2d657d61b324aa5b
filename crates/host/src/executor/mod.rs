//! Machines that cells can run on, one file or folder an executor.
//!
//! An executor owns its machine: how the agent there is reached, what it must be given, and which
//! of its questions are answered. It must not know what a cell measures, and nothing of workloads,
//! file systems or reports: all machines take the same path, and a crash or a hang costs one cell.
//!
//! Must not know: `analysis`, `import`, `render`, `run`, `wording`.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts agents and guests, and limits them")]

mod local;
pub mod sampled;
pub mod sim;
pub mod vm;

use anyhow::Result;
use pickfs_core::journal::Provenance;
use pickfs_core::plan::{Objection, Plan, Setting, Settings, Target};
use pickfs_core::protocol::{Answer, Bundle, CellsRun, Connection, Exit, Request, Say};
use pickfs_system::need::Need;
use pickfs_system::process::{RUN_MARK, own_program};
use std::path::PathBuf;
use std::time::Duration;

/// Every executor, sorted by name.
pub const ALL: &[&dyn Executor] = &[&local::Local, &sim::SIM, &vm::Vm];

/// Gives machines to run cells on.
pub trait Executor: Sync {
    fn name(&self) -> &'static str;
    /// One sentence for `pickfs list executors`.
    fn about(&self) -> &'static str;
    /// What a plan and its targets can say of the machine that does the work.
    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    /// The machine for the cells of a plan, or for undoing them. Nothing is started yet.
    fn machine(&self, plan: &Plan) -> Box<dyn Machine>;

    /// What stands against such settings of a target's machine.
    fn objections(&self, _settings: &Settings) -> Vec<Objection> {
        Vec::new()
    }

    /// For each disk of a target, in their order, whether its zones must be written in order.
    /// Empty: no disk's.
    fn host_managed(&self, _target: &Target) -> Vec<bool> {
        Vec::new()
    }

    /// What the disks of a target are called on its machine, in their order. None where they keep
    /// their names.
    fn disk_names(&self, _disks: usize) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Programs and kernel are brought along, so what this machine lacks is no reason to skip a
    /// target.
    fn brings_its_own(&self) -> bool {
        false
    }

    /// About how many seconds a cell takes in addition to its work.
    fn seconds(&self) -> u64 {
        0
    }

    /// Its times are those of a model, and not of this machine.
    fn simulates(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// One line of `pickfs doctor` on what its machines are like here; nothing is started to find
    /// out.
    fn condition(&self) -> Option<String> {
        None
    }
}

/// A machine that cells can run on. They are reached one at a time.
pub trait Machine {
    /// Where its cells run, seen from the machine that prepares them.
    fn cells(&self) -> CellsRun {
        CellsRun::Here
    }

    /// Reaches an agent that does the request. An error fails the cell.
    fn reach(&mut self, request: Request) -> Result<ContactOutcome>;

    /// Takes what preparing has put together for machines elsewhere; what is found out goes into
    /// the journal. `say` shows a line to the user.
    fn furnish(&mut self, _bundle: Bundle, _say: &mut dyn FnMut(&str)) -> Result<Provenance> {
        Ok(Provenance::default())
    }

    /// Cells that it will be asked to reach, in this order, if nothing comes between: it may start
    /// them before.
    fn expect(&mut self, _requests: Vec<Request>) {}

    /// The date of its clock, for what a cell did not live to say; none where that is the host's
    /// clock.
    fn date(&self) -> Option<&'static str> {
        None
    }

    /// Has time while an agent says nothing.
    fn meanwhile(&mut self) {}

    /// Sees all that an agent says before it is acted on, and may add what the machine alone knows.
    fn overhear(&mut self, _said: &mut Say) {}

    /// Answers a question of its agent. An error only when the run is to stop.
    fn answer(&mut self, _said: Say) -> Result<Answer> {
        Ok(Answer::Unsupported)
    }

    /// Adds what the machine knows of why its agent ended before its job did.
    fn explain(&mut self, why: String, _exit: &Exit) -> Failure {
        Failure::Final(why)
    }
}

/// What came of reaching an agent.
pub enum ContactOutcome {
    Agent(Box<Contact>),
    /// This machine cannot be had, for these reasons: the cell is skipped.
    Nowhere(Vec<String>),
}

/// Why a job failed that its agent did not end.
#[derive(Debug, PartialEq)]
pub enum Failure {
    Final(String),
    /// Nothing had begun: the machine is to be reached once more.
    Again,
    /// The host ended the machine, which says nothing of its job: the same once more, if it was not
    /// so before.
    Killed(String),
}

/// An agent that can be spoken to.
pub struct Contact {
    pub connection: Connection,
    /// As this agent is to get it.
    pub request: Request,
    pub patience: Patience,
    pub lifetime: Lifetime,
}

impl Contact {
    /// An agent on a machine that was there before, by this machine's clock.
    pub fn lasting(connection: Connection, request: Request) -> Contact {
        Contact { connection, request, patience: Patience::default(), lifetime: Lifetime::Permanent }
    }
}

/// Whether a machine outlives its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Steps are journaled, and undone whatever happens; the host's clock is the agent's.
    Permanent,
    /// The machine is made for the job and goes with it: its steps need no undoing, and its clock
    /// must go as the host's.
    PerJob,
    /// The same, with its own clock that no other clock is compared with.
    PerJobVirtualClock,
}

impl Lifetime {
    /// The machine goes with its job.
    pub(crate) fn is_disposable(self) -> bool {
        self != Lifetime::Permanent
    }
}

/// How long an agent may stay silent, by stretch.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From its start to its first word; counted in the cell's limit if none.
    pub first_word: Option<Duration>,
    /// From there until its cell begins; counted in the cell's limit if none.
    pub ready: Option<Duration>,
    /// To tear down after its own deadline, before it is killed.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { first_word: None, ready: None, grace: Duration::from_secs(10) }
    }
}

/// An agent on this machine.
pub(crate) fn agent_here(run: &str) -> Result<Connection> {
    Connection::open(own_program().arg("agent").env(RUN_MARK, run))
}

/// The executor of that name.
pub fn find(executors: &[&'static dyn Executor], name: &str) -> Option<&'static dyn Executor> {
    executors.iter().copied().find(|executor| executor.name() == name)
}

/// Whether the executor of this name makes its machines itself; false of an unknown one.
pub fn brings_its_own(name: &str) -> bool {
    find(ALL, name).is_some_and(|executor| executor.brings_its_own())
}

/// Whether cells of the executor of this name have a simulated clock; false of an unknown one.
pub fn simulates(name: &str) -> bool {
    find(ALL, name).is_some_and(|executor| executor.simulates())
}
