//! Requests, questions and answers: a line of JSON each.

use crate::journal::{Record, StepTaken};
use crate::plan::{Cell, Chosen, HostSettings, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where process 1 of a guest leaves what it adds to the facts of a cell.
pub const GUEST_FACTS: &str = "/run/pickfs-facts.json";
/// Where a guest has the programs that it was started with. No other machine has this folder.
pub const GUEST_PROGRAMS: &str = "/pickfs";

/// The id of every run inside a simulated machine: a run's own would move addresses, and with them
/// times.
pub const SIMULATED_RUN: &str = "simulated";

/// The one line on an agent's stdin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The run's id: part of every name that the run leaves on a machine.
    pub run: String,
    pub job: Job,
    /// The questions of the agent that its machine answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Question>,
    /// The most microseconds that an idle processor may take to wake up, as long as the job lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_latency_us: Option<u32>,
    /// For an agent on a machine that was made for this one job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
}

impl Request {
    pub fn new(run: &str, job: Job) -> Request {
        Request { run: run.into(), job, answers: Vec::new(), cpu_latency_us: None, arrival: None }
    }
}

/// What an agent finds on a machine that was made for its job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// The disks of the target; none where its backing is that machine's own.
    pub disks: Vec<PathBuf>,
    /// The tar archive with what was staged, as a device of that machine.
    pub archive: Option<PathBuf>,
    /// The device with the tree that the work brings from another disk.
    pub tree: Option<PathBuf>,
    /// The plan's settings: they are made anew on each machine.
    pub host: HostSettings,
    /// Where that machine records what the target's disk is given, as a device of it.
    #[serde(default)]
    pub recording: Option<PathBuf>,
    /// Its clock counts instructions: a reading is the same each time, and the processor always as
    /// fast.
    #[serde(default)]
    pub is_simulated: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Once per run: backings made, sources staged. The rest depends on where the cells run.
    Prepare {
        plan: Box<Plan>,
        cells: CellsRun,
    },
    Cell(Box<Cell>),
    /// Done like any cell, and its results dropped: memory, programs and disk are no longer new for
    /// the cells that count.
    WarmUp(Box<Cell>),
    /// Cells of one target, one a work: its stack is built, written to and taken down. The agent
    /// reports how each would end.
    Try(Vec<Cell>),
    /// Take steps back, last first; processes of the run are killed before.
    Undo {
        steps: Vec<StepTaken>,
        /// Those of the plan: settings of the disks that they name are written back, and those of
        /// no other disk.
        backings: Vec<Chosen>,
    },
    /// What this machine has against settings of a plan. Nothing is changed.
    Check(Vec<Check>),
}

/// Where cells run, seen from the machine that prepares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellsRun {
    /// On the same machine: host settings are fixed and raw speeds measured once.
    Here,
    /// On separate machines: what they need is put into a [`Bundle`]; nothing here is set or
    /// mounted.
    Elsewhere,
}

/// Settings that a machine is asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    Backing(Chosen),
    Workload(Chosen),
}

/// What a machine says to settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Every reason against them, each with what to do.
    pub reasons: Vec<String>,
    /// What would be erased.
    pub erases: Vec<Erasure>,
}

/// A device that loses its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Erasure {
    pub path: PathBuf,
    /// What the user must give to agree: its serial number, or its name where it has none.
    pub identity: String,
    /// Where the path leads, without links.
    pub node: PathBuf,
    /// Never that of another device, as long as the machine runs.
    pub instance: String,
}

/// What a separate machine must be given to run cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    /// The run's folder in memory on the machine that prepared; it goes with the run.
    pub folder: PathBuf,
    /// A tar archive of what was staged.
    pub archive: Option<PathBuf>,
    /// Sources of kernel modules that are known: what of the packages is to be compiled.
    pub module_sources: Vec<ModuleSource>,
    /// Of every file system and layer that is known, whatever the plan has: what another target
    /// needs must not change what a cell finds in its machine.
    pub modules: Vec<ModulesOf>,
    /// By the names of the plan's targets.
    pub targets: BTreeMap<String, TargetBundle>,
    /// By the names of the plan's works.
    pub works: BTreeMap<String, WorkBundle>,
}

/// Kernel modules, as modprobe names them, which are of use where the Debian packages are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModulesOf {
    pub packages: Vec<String>,
    pub modules: Vec<String>,
}

/// A Debian package with the source of kernel modules, which DKMS compiles for one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModuleSource {
    pub package: String,
    /// The package with the programs that are made of the same source.
    pub tools: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetBundle {
    /// Files and devices that are its disks, in order; none where its backing cannot be taken
    /// elsewhere.
    pub disks: Option<Vec<PathBuf>>,
    /// Debian packages with the programs that build its stack.
    pub packages: Vec<String>,
    /// The Debian package with the source of its kernel module, where the kernel brings none.
    pub module_source: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkBundle {
    /// Debian packages with its programs.
    pub packages: Vec<String>,
    /// An image with the tree that it brings from another disk.
    pub tree: Option<PathBuf>,
    /// Bytes of room for all that its disk is given, where that is to be recorded.
    #[serde(default)]
    pub recording: Option<u64>,
}

/// What the agent asks of the machine that it runs on, from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    ForgetCache,
    Boot,
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Say {
    /// For the journal; no answer.
    Tell(Record),
    /// For the journal, and the agent goes on when it is written.
    Ask(Record),
    /// A phase of the cell gets ready: progress for the user.
    Phase(String),
    /// What happens before any cell: progress for the user.
    Doing(String),
    /// The clock of a phase has stopped: for no journal.
    Clock(Box<PhaseClock>),
    /// The host is to drop what it has cached of the machine's disks; the agent goes on when it
    /// has.
    ForgetCache,
    /// The host is to boot another machine from the same disks, of which nothing is mounted until
    /// it has answered.
    Boot(Box<Boot>),
    /// The end of preparing for machines elsewhere.
    Prepared(Box<Bundle>),
    /// The end of a check, in the order of the questions.
    Checked(Vec<Checked>),
}

/// What the clock of a phase showed, and what the processor had waited for by then (docs/why.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseClock {
    pub phase: String,
    /// The phase is timed until all is durable, else until the work returned.
    pub until_durable: bool,
    pub returned_ns: u64,
    /// What the sync took beyond that.
    pub sync_ns: u64,
    /// What of the sync is not counted, as it takes as long when there is nothing to do.
    pub uncounted_ns: u64,
    /// As the driver of simulated disks shows them: before the work, when it had returned, and when
    /// all was durable.
    pub waits: [String; 3],
    /// When the work and its sync began, by the monotonic clock; of machines whose clock is the
    /// host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at_ns: Option<[u64; 2]>,
}

/// What a machine is booted for, and how it finds its root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// Of layers, and of the file system, as the kernel asks for it: `fs-ext4`.
    pub modules: Vec<String>,
    /// From the lowest layer up.
    pub layers: Vec<OpenLayer>,
    /// The program that mounts the file system, with its arguments.
    pub mount: Vec<String>,
    pub mount_point: PathBuf,
    /// Below the mount point: what becomes the root.
    pub folder: String,
    /// The system is ready when systemd has reached this unit.
    pub ready: String,
    /// From the start of the machine until it is ready.
    pub limit_ns: u64,
}

/// A program that opens what a layer has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLayer {
    /// The program, with its arguments.
    pub words: Vec<String>,
    /// What it reads from its standard input.
    pub key: Vec<u8>,
}

/// How a boot went. Times are the booted kernel's own monotonic clock, which counts from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booted {
    /// Process 1 began.
    pub kernel_ns: u64,
    /// The modules of bus, layers and file system were loaded.
    pub modules_ns: u64,
    /// The layers were opened.
    pub opened_ns: u64,
    /// The file system was mounted.
    pub mounted_ns: u64,
    /// systemd began.
    pub init_ns: u64,
    pub ready_ns: u64,
    /// Of the disks, until it was ready.
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// What failed of the system's units.
    pub failed: Vec<String>,
    /// What the emulator itself had read from block devices by then; none where the host does not
    /// tell.
    pub host_read_bytes: Option<u64>,
    /// What the host had in its memory of the disks before, though it was to drop it.
    pub cached_bytes: u64,
    /// From the start of the emulator until it was ready, by the host's clock.
    pub host_ns: u64,
}

/// What the host says after the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// No answer: the agent finishes its step, undoes what it has built, and ends.
    Stop,
    Written,
    /// The machine does not answer such a question.
    Unsupported,
    /// What the machine's reads would still find in the host's memory.
    Forgot {
        cached_bytes: u64,
    },
    /// With the reason.
    Kept(String),
    Booted(Box<Booted>),
    /// With the reason.
    NotBooted(String),
}
