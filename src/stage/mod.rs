//! What workloads are made of: phases, the timer, programs, servers, latencies, cache states.
//!
//! The stage owns the clock, the caches, the sync and the probes, so that no workload can forget them. It must not know
//! which workload plays on it, how the stack was built, nor what a number means.
//!
//! Must not know: `analysis`, `cli`, `executor`, `render`, `run`, `wording`, `workload`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "owns the clock, and starts what workloads run"
)]

mod account;
mod boot_phase;
mod built_stack;
pub mod caches;
mod cell_stage;
mod cold_proof;
mod latencies;
mod mount_phase;
pub mod open_loop;
pub mod phase;
mod phase_result;
mod power_cut;
mod program;
mod run_phase;
mod sampler;
mod server;
pub mod settle;
mod steady_state;
mod timed;

pub use account::{Account, Spent};
pub use boot_phase::objections as boot_objections;
pub use built_stack::{BuiltStack, Layers, WORK};
pub use cell_stage::{Script, SnapshotPrograms, Stage, UpkeepPrograms};
pub use cold_proof::SMALLEST_INODE;
pub use latencies::Latencies;
pub use open_loop::{Periodic, PeriodicLog};
pub use phase::{CacheState, ColdProof, Phase, TimedUntil};
pub use phase_result::Clocked;
pub use power_cut::{Cut, Outcomes, PowerCuts, Recovered, Stamp, objections as cut_objections};
pub use program::Program;
pub use server::Server;
pub use settle::Written;
pub use steady_state::SHORTEST_TIME;
pub use timed::{AfterPhase, Doubt, Part, Printed, Timed};

/// For work by the character: workloads do not import `sys`.
pub use crate::sys::stdio::Stream;
