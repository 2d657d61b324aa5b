//! What workloads are made of: phases, the timer, programs, servers, latencies, cache states.
//!
//! The stage owns the clock, the caches, the sync and the probes, so that no workload can forget
//! them. It must not know which workload plays on it, how the stack was built, nor what a number
//! means.
//!
//! Must not know: `workload`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "owns the clock, and starts what workloads run"
)]

mod account;
mod boot_phase;
mod built_stack;
pub(crate) mod caches;
mod cell_stage;
mod cold_proof;
mod latencies;
mod mount_phase;
pub(crate) mod open_loop;
pub(crate) mod phase;
mod phase_result;
mod power_cut;
mod program;
mod run_phase;
mod sampler;
mod served;
mod server;
pub(crate) mod settle;
mod steady_state;
mod timed;
mod virtual_disk;

pub(crate) use account::{Account, Spent};
pub use boot_phase::objections as boot_objections;
pub(crate) use built_stack::Layers;
pub use built_stack::{BuiltStack, WORK};
pub(crate) use cell_stage::{Script, SnapshotPrograms, Stage, UpkeepPrograms};
pub(crate) use cold_proof::SMALLEST_INODE;
pub use latencies::Latencies;
pub(crate) use open_loop::{Periodic, PeriodicLog};
pub(crate) use phase::{Phase, TimedUntil};
pub(crate) use phase_result::PhaseTimer;
pub(crate) use power_cut::{Cut, Outcomes, PowerCuts, Recovered, Stamp, objections as cut_objections};
pub(crate) use program::Program;
pub(crate) use served::served;
pub(crate) use server::Server;

pub(crate) use steady_state::SHORTEST_TIME;
pub(crate) use timed::{AfterPhase, Doubt, Part, Printed, Timed};
pub(crate) use virtual_disk::{DiskImage, OpenDisk};

/// For work by the character: workloads do not import `sys`.
pub(crate) use pickfs_system::sys::stdio::Stream;
