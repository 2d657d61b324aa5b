//! What host and agent say to each other: one request on the agent's stdin, then journal records on its stdout, some of
//! which wait for an [`Answer`].
//!
//! This room must not know how an agent is reached, what a cell measures, or who undoes what.
//!
//! Must not know: `agent`, `analysis`, `executor`, `render`, `run`, `stack`, `stage`, `workload`.

mod link;

pub use link::Link;

use crate::journal::{Record, StepTaken};
use crate::plan::{Cell, HostSettings, Plan};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The one line on an agent's stdin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The run's id: part of every name that the run leaves on a machine.
    pub run: String,
    pub job: Job,
    /// For an agent that has a machine of its own for this one job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestPart>,
}

/// What an agent in a guest finds there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestPart {
    /// The disk with what was staged on the host, as the guest sees it.
    pub data: Option<PathBuf>,
    /// The disk that the work brings its tree from.
    #[serde(default)]
    pub other_disk: Option<PathBuf>,
    /// The plan's: in a guest they are set for each cell.
    pub host: HostSettings,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Once per run: backings made, sources staged, host settings fixed, the drive's raw speed taken.
    Prepare(Box<Plan>),
    Cell(Box<Cell>),
    /// Take steps back, last first; processes of the run are killed before.
    Undo(Vec<StepTaken>),
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Say {
    /// For the journal; no answer.
    Tell(Record),
    /// For the journal, and the agent goes on when it is written.
    Ask(Record),
    /// Not for the journal: the host of a guest is to drop what it has cached of the guest's disks, and the agent goes
    /// on when it has.
    Forget,
    /// Not for the journal: the host of a guest is to boot another machine from the guest's disks, of which nothing is
    /// mounted until it has answered.
    Boot(Box<Boot>),
}

/// What a machine is booted for, and how it finds its root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// As the kernel asks for it: `fs-ext4`.
    pub module: String,
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

/// How a boot went. Times are the booted kernel's own monotonic clock, which counts from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booted {
    /// Process 1 began.
    pub kernel_ns: u64,
    /// The modules of bus and file system were loaded.
    pub modules_ns: u64,
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
    /// What the emulator itself had read from block devices by then; none where the host does not tell.
    pub host_read_bytes: Option<u64>,
    /// What the host had in its memory of the disks before, though it was to drop it.
    pub cached_bytes: u64,
    /// From the start of the emulator until it was ready, by the host's clock.
    pub host_ns: u64,
}

/// The host's answer to what waits for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Written,
    /// What the guest's reads would still find in the host's memory.
    Forgot {
        cached_bytes: u64,
    },
    /// With the reason.
    Kept(String),
    Booted(Box<Booted>),
    /// With the reason.
    NotBooted(String),
}
