//! `pickfs agent` (hidden): the target side.

use super::{FAILED, Outcome, Verb};
use std::process::ExitCode;

/// The target side, started by an executor
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// In a machine that was booted from a target: report to the host that it is ready, and switch
    /// it off
    #[arg(long)]
    tell_ready: bool,
}

impl Verb for Arguments {
    fn run(&self) -> Outcome {
        if !self.tell_ready {
            return Ok(pickfs_target::agent::main());
        }
        Ok(if pickfs_host::executor::vm::tell_ready() == ExitCode::SUCCESS { 0 } else { FAILED })
    }
}
