//! `pickfs scan`: what a tree is like, and what file systems would store for it.

use super::Outcome;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// Directory to look at
    dir: PathBuf,
    /// Say what btrfs and zfs would store for it, by codec, instead of printing a profile
    #[arg(long)]
    predict: bool,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn main(arguments: &Arguments) -> Outcome {
    let options = crate::data::walk::Options { seed: 1, ..Default::default() };
    if arguments.predict {
        return super::predict::main(&arguments.dir, &options, arguments.output.as_deref());
    }
    anyhow::bail!("not there yet")
}
