//! `pickfs completions`: what a shell needs to complete pickfs' words.

use super::catalogue::catalogue;
use super::{Outcome, Verb, command, help, list, purpose};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use pickfs_target::workload;
use pickfs_trace::shipped;
use pickfs_trees::profile::builtin;

/// Print a shell's completions
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shell; put what is printed where it looks for completions, such as
    /// /usr/share/bash-completion/completions/pickfs
    shell: Shell,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] =
        &[["pickfs completions bash > ~/.local/share/bash-completion/completions/pickfs", "for bash"]];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let mut command = with_values(command());
        // Into memory first: it panics where it cannot write.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "pickfs", &mut script);
        print!("{}", String::from_utf8_lossy(&script));
        Ok(0)
    }
}

/// A shell offers the values that it is given here; the parser itself takes more, such as variants
/// with options.
fn with_values(command: Command) -> Command {
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_string()).collect();
    let verbs = verbs.into_iter();
    let command = verbs.fold(command, |command, verb| command.mut_subcommand(verb, |verb| verb.mut_args(offered)));
    let listed: Vec<&'static str> = list::names().into_iter().map(|name| &*name.leak()).collect();
    command.mut_subcommand("list", |list| {
        list.mut_arg("name", |name| name.value_parser(PossibleValuesParser::new(listed)))
    })
}

fn offered(argument: Arg) -> Arg {
    let catalogue = catalogue();
    let names = |entries: &[pickfs_core::plan::Entry]| entries.iter().map(|entry| entry.name).collect();
    let values: Vec<&'static str> = match argument.get_id().as_str() {
        "fs" => {
            let variants = |fs: &pickfs_core::plan::FilesystemEntry| {
                // The program ends with what it prints here.
                let variants = fs.variants.iter().map(|variant| &*format!("{}:{variant}", fs.name).leak());
                [fs.name].into_iter().chain(variants).collect::<Vec<_>>()
            };
            catalogue.filesystems.iter().flat_map(variants).collect()
        }
        "workload" => workload::for_users().map(|workload| workload.name()).collect(),
        "disk" | "sim" => pickfs_disks::ALL.iter().map(|model| model.name).collect(),
        "trace" => shipped::ALL.iter().map(|trace| trace.name).collect(),
        "purpose" => purpose::names().collect(),
        "topic" => help::names().collect(),
        "executor" => names(&catalogue.executors),
        "like" => builtin::ALL.iter().map(|profile| profile.name).collect(),
        "require" => catalogue.features.clone(),
        "plan" | "job" | "journal" | "journals" | "words" | "old" | "new" | "resume" => {
            return argument.value_hint(ValueHint::FilePath);
        }
        _ => return argument,
    };
    argument.value_parser(PossibleValuesParser::new(values))
}
