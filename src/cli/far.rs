//! `pickfs far` (hidden): a run on this machine, of a user who is on another.

use super::{Outcome, Verb};
use crate::fleet;

/// The far side of `pickfs run --host`
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Say that it is there
    Hello,
    /// Begin the run of an order on standard input
    Start { name: String },
    /// Do a run, and note its end
    Keep {
        name: String,
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Print what a run adds to its journal and to its messages, from these bytes on
    Follow { name: String, journal: u64, messages: u64 },
    /// Stop a run
    Stop { name: String, time: u32 },
}

impl Verb for Arguments {
    fn run(&self) -> Outcome {
        match &self.what {
            What::Hello => fleet::hello(),
            What::Start { name } => fleet::start(name)?,
            What::Keep { name, words } => fleet::keep(name, words)?,
            What::Follow { name, journal, messages } => fleet::follow(name, *journal, *messages)?,
            What::Stop { name, time } => fleet::stop(name, *time)?,
        }
        Ok(0)
    }
}
