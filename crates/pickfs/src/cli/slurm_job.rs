//! `pickfs slurm-job` (hidden): what a batch script says, on the machine that Slurm has chosen.

use super::{Outcome, Verb};
use pickfs_host::fleet;
use std::path::PathBuf;

/// The job of `pickfs run --slurm`: the interpreter of its batch script
#[derive(clap::Args)]
pub(crate) struct Arguments {
    script: PathBuf,
}

impl Verb for Arguments {
    fn run(&self) -> Outcome {
        fleet::job(&self.script)
    }
}
