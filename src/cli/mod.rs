//! The command line, one file a verb. The only room that knows every other: it hands plug-ins to the plan as data,
//! plans to the run, journals to the report. It must not know how anything is measured or computed.

mod agent;
mod catalogue;
mod choices;
mod clean;
mod compare;
mod completions;
mod confirm;
mod doctor;
mod forecast;
mod guest;
mod help;
mod import;
mod list;
mod machine;
mod plan;
mod predict;
mod report;
mod run;
mod scan;
mod wanted;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Exit codes: 0 done, 1 error or failed cells, 2 usage, 3 something is slower than before, 4 that is not excluded, 5
/// refused as unsafe.
pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
pub const REGRESSION: u8 = 3;
pub const INCONCLUSIVE: u8 = 4;
pub const REFUSED: u8 = 5;

/// Which file system, with which options, for this work on this disk? Measured, with error bars.
#[derive(Parser)]
#[command(name = "pickfs", version, arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Measure: a plan file, or targets named on the command line
    Run(run::Arguments),
    /// Show what a run would do: cells, order, what is destroyed, how long
    Plan(plan::Arguments),
    /// Judge a journal and print the verdict
    Report(report::Arguments),
    /// Put many runs into one table: for each disk and work the best, second, third and worst
    Choices(choices::Arguments),
    /// Compare two runs of the same targets: another kernel, tool, machine or day
    Compare(compare::Arguments),
    /// Read results of other programs (fio, bonnie++, pgbench, hyperfine, Phoronix) into a journal
    Import(import::Arguments),
    /// List what pickfs knows: fs, backings, workloads, probes, executors, formats, imports
    List(list::Arguments),
    /// Say what this machine can run, what is missing and how to get it
    Doctor,
    /// Say what a tree is like, without its names and content, or what file systems would store for it
    Scan(scan::Arguments),
    /// Show, make or remove the guests of `--executor vm`
    Guest(guest::Arguments),
    /// Undo what a killed run left behind
    Clean(clean::Arguments),
    /// Print a shell's completions
    Completions(completions::Arguments),
    /// Explain a verb or a topic, or print a manual page
    Help(help::Arguments),
    /// The target side, started by an executor
    #[command(hide = true)]
    Agent(agent::Arguments),
}

/// What a verb ends in: an exit code, or an error that is printed with all its causes.
type Outcome = anyhow::Result<u8>;

pub fn main() -> ExitCode {
    // Process 1 has no command line of ours: the kernel started it.
    if std::process::id() == 1 {
        return crate::executor::vm::init();
    }
    let cli = Cli::parse();
    if matches!(
        cli.verb,
        Verb::Plan(_)
            | Verb::Report(_)
            | Verb::Choices(_)
            | Verb::Compare(_)
            | Verb::List(_)
            | Verb::Scan(_)
            | Verb::Doctor
            | Verb::Completions(_)
            | Verb::Help(_)
    ) {
        crate::sys::process::end_with_reader();
    }
    let outcome = match cli.verb {
        Verb::Run(arguments) => run::main(&arguments),
        Verb::Plan(arguments) => plan::main(&arguments),
        Verb::Report(arguments) => report::main(&arguments),
        Verb::Choices(arguments) => choices::main(&arguments),
        Verb::Compare(arguments) => compare::main(&arguments),
        Verb::Import(arguments) => import::main(&arguments),
        Verb::List(arguments) => list::main(&arguments),
        Verb::Doctor => doctor::main(),
        Verb::Scan(arguments) => scan::main(&arguments),
        Verb::Guest(arguments) => guest::main(&arguments),
        Verb::Clean(arguments) => clean::main(&arguments),
        Verb::Completions(arguments) => completions::main(&arguments),
        Verb::Help(arguments) => help::main(&arguments),
        Verb::Agent(arguments) => return agent::main(&arguments),
    };
    match outcome {
        Ok(code) => code.into(),
        Err(error) => {
            crate::run::tell(&format!("pickfs: {error:#}"));
            FAILED.into()
        }
    }
}
