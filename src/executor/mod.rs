//! How an agent is reached, one file an executor: each is little more than a command that reaches `pickfs agent`.
//!
//! An executor must not know what a cell measures, and nothing of workloads, file systems or reports: near and far
//! take the same path, and a crash or a hang costs one cell.
//!
//! Must not know: `analysis`, `cli`, `import`, `render`, `run`, `wording`.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts agents and guests, and limits them")]

mod local;
pub mod vm;

use crate::need::Need;
use crate::plan::Setting;
use anyhow::Result;
use std::ffi::OsString;
use std::time::Duration;

/// Every executor, sorted by name.
pub const ALL: &[&dyn Executor] = &[&local::Local, &vm::Vm];

/// Something that reaches an agent.
pub trait Executor: Sync {
    fn name(&self) -> &'static str;
    /// One sentence for `pickfs list executors`.
    fn about(&self) -> &'static str;
    /// What a plan and its targets can tell it of the machine that does the work.
    fn settings(&self) -> &'static [Setting] {
        &[]
    }
    /// The program and its arguments; its stdin and stdout are the agent's.
    fn command(&self) -> Result<Vec<OsString>>;

    /// How much longer than its cell may take an agent can go unanswered: what it takes to be reached, and to see that
    /// the other end is dead.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Programs and kernel are brought along, so what this machine lacks is no reason to skip a target.
    fn brings_its_own(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }
}

/// The executor of that name.
pub fn find(name: &str) -> Option<&'static dyn Executor> {
    ALL.iter().copied().find(|executor| executor.name() == name)
}
