//! `pickfs far` (hidden): a run or a store on this machine, for a user on another.

use super::{Outcome, STOPPED, Verb};
use anyhow::Context;
use pickfs_host::executor;
use pickfs_host::fleet;
use pickfs_host::run::{self, Lines};
use pickfs_host::store::{Limits, Store};
use pickfs_system::process::Interrupted;
use std::path::{Path, PathBuf};

/// The far side of `pickfs run --host` and of `pickfs push HOST:FOLDER`
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Subcommand,
}

#[derive(clap::Subcommand)]
enum Subcommand {
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
    /// Take the journal on standard input, which has this SHA-256, into a store
    Take { store: PathBuf, sha256: String },
    /// Do one cell of a plan into its own journal
    Part { plan: PathBuf, cell: String, journal: PathBuf },
}

impl Verb for Arguments {
    fn run(&self) -> Outcome {
        match &self.what {
            Subcommand::Hello => fleet::hello(),
            Subcommand::Start { name } => fleet::start(name)?,
            Subcommand::Keep { name, words } => fleet::keep(name, words)?,
            Subcommand::Follow { name, journal, messages } => fleet::follow(name, *journal, *messages)?,
            Subcommand::Stop { name, time } => fleet::stop(name, *time)?,
            Subcommand::Take { store, sha256 } => fleet::answer(&take(store, sha256))?,
            Subcommand::Part { plan, cell, journal } => return part(plan, cell, journal),
        }
        Ok(0)
    }
}

fn take(store: &Path, sha256: &str) -> fleet::Answer {
    let taken = Store::open_or_make(store)
        .and_then(|store| store.take(&mut std::io::stdin().lock(), Some(sha256), Limits::default()));
    match taken {
        Ok(taken) if taken.is_new => fleet::Answer::New,
        Ok(_) => fleet::Answer::Known,
        Err(error) => fleet::Answer::Refused(format!("{error:#}")),
    }
}

/// Its journal says how the cell ended.
fn part(plan: &Path, cell: &str, journal: &Path) -> Outcome {
    let shown = plan.display();
    let text = std::fs::read_to_string(plan).with_context(|| format!("cannot read {shown}"))?;
    let plan = serde_json::from_str(&text).with_context(|| format!("{shown} is no plan"))?;
    run::count_stop_requests()?;
    match run::part(&plan, cell, executor::ALL, journal, &mut Lines::default()) {
        Ok(_) => Ok(0),
        Err(error) if error.is::<Interrupted>() => Ok(STOPPED),
        Err(error) => Err(error),
    }
}
