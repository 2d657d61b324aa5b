//! `pickfs agent` (hidden): the target side.

use super::{FAILED, Outcome, Verb};
use std::process::ExitCode;

/// The target side, started by an executor
#[derive(clap::Args)]
pub struct Arguments {
    /// Have cells done in virtual machines
    #[arg(long)]
    in_guests: bool,
    /// In a machine that was booted from a target: tell the host that it is ready, and switch it off
    #[arg(long, conflicts_with = "in_guests")]
    tell_ready: bool,
}

impl Verb for Arguments {
    fn run(&self) -> Outcome {
        Ok(if main(self) == ExitCode::SUCCESS { 0 } else { FAILED })
    }
}

fn main(arguments: &Arguments) -> ExitCode {
    match arguments {
        Arguments { tell_ready: true, .. } => crate::executor::vm::tell_ready(),
        Arguments { in_guests: true, .. } => crate::executor::vm::relay(),
        _ => crate::agent::main(None),
    }
}
