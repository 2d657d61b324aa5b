//! `pickfs agent` (hidden): the target side.

use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Arguments {
    /// Have cells done in virtual machines
    #[arg(long)]
    in_guests: bool,
}

pub fn main(arguments: &Arguments) -> ExitCode {
    if arguments.in_guests { crate::guest::relay() } else { crate::agent::main(None) }
}
