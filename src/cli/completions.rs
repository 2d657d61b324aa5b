//! `pickfs completions`: what a shell needs to complete pickfs' words.

use super::{Cli, Outcome};
use clap::CommandFactory;
use clap_complete::Shell;

#[derive(clap::Args)]
pub struct Arguments {
    /// The shell; put what is printed where it looks for completions, such as
    /// /usr/share/bash-completion/completions/pickfs
    shell: Shell,
}

pub fn main(arguments: &Arguments) -> Outcome {
    let mut command = Cli::command();
    clap_complete::generate(arguments.shell, &mut command, "pickfs", &mut std::io::stdout());
    Ok(0)
}
