//! `pickfs completions`: what a shell needs to complete pickfs' words.

use super::{Outcome, Verb, command};
use clap_complete::Shell;

/// Print a shell's completions
#[derive(clap::Args)]
pub struct Arguments {
    /// The shell; put what is printed where it looks for completions, such as
    /// /usr/share/bash-completion/completions/pickfs
    shell: Shell,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] =
        &[["pickfs completions bash > ~/.local/share/bash-completion/completions/pickfs", "for bash"]];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let mut command = command();
        clap_complete::generate(self.shell, &mut command, "pickfs", &mut std::io::stdout());
        Ok(0)
    }
}
