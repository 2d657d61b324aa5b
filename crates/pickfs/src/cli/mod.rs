//! The command line, one file a verb. The only room that knows every other: it hands plug-ins to
//! the plan as data, plans to the run, journals to the report. It must not know how anything is
//! measured or computed.

mod after;
mod agent;
mod apply;
mod ask;
mod audit;
mod busy;
pub mod catalogue;
mod choices;
mod clean;
mod compare;
mod completions;
mod confirm;
mod cpu_speed;
mod disk;
mod doctor;
mod far;
mod for_what;
mod forecast;
mod forewarn;
mod gate;
mod guest;
mod help;
mod history;
mod how_long;
mod import;
mod init;
mod journals;
mod list;
mod on_hosts;
mod on_slurm;
mod options;
mod plan;
mod plan_source;
mod predict;
mod programs;
mod purpose;
mod push;
mod query;
mod record;
mod report;
mod run;
mod scan;
mod share;
mod shares;
mod sim;
mod site;
mod slurm_job;
mod trace;
mod tune;
mod tuned;
mod why;

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, ColorChoice, Command, value_parser};
use pickfs_core::journal::NoJournal;
use pickfs_host::wording::text::lines;
use pickfs_system::process::Interrupted;
use pickfs_system::visible::visible_lines;
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

/// Exit codes: 0 done, 1 error or failed cells, 2 usage, 3 something is slower than before, 4 that
/// is not excluded, 5 refused as unsafe, 130 stopped on request.
pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const REGRESSION: u8 = 3;
pub(crate) const INCONCLUSIVE: u8 = 4;
pub(crate) const REFUSED: u8 = 5;
pub(crate) const STOPPED: u8 = 130;

/// The arguments of a verb and what it does. The comment of the type that has them is the verb's
/// line in the help.
trait Verb: clap::Args {
    /// True where nothing is lost if it ends when the reader of its output does (`pickfs list |
    /// head`).
    const ONLY_PRINTS: bool = false;
    /// Commands that people want, each with what it does, as lines of a table.
    const EXAMPLES: &[[&str; 2]] = &[];
    fn run(&self) -> Outcome;
}

/// What a verb ends in: an exit code, or an error that is printed with all its causes.
type Outcome = anyhow::Result<u8>;

/// A row of [`VERBS`].
struct Entry {
    name: &'static str,
    hidden: bool,
    only_prints: bool,
    arguments: fn(Command) -> Command,
    examples: &'static [[&'static str; 2]],
    run: fn(&ArgMatches) -> Outcome,
}

const fn verb<V: Verb>(name: &'static str) -> Entry {
    Entry {
        name,
        hidden: false,
        only_prints: V::ONLY_PRINTS,
        arguments: V::augment_args,
        examples: V::EXAMPLES,
        run: |matches| V::from_arg_matches(matches).unwrap_or_else(|error| error.exit()).run(),
    }
}

/// In the order of the help: from the first that a user needs to the last.
const VERBS: &[Entry] = &[
    verb::<run::Arguments>("run"),
    verb::<for_what::Arguments>("for"),
    verb::<tune::Arguments>("tune"),
    verb::<init::Arguments>("init"),
    verb::<plan::Arguments>("plan"),
    verb::<report::Arguments>("report"),
    verb::<apply::Arguments>("apply"),
    verb::<choices::Arguments>("choices"),
    verb::<history::Arguments>("history"),
    verb::<compare::Arguments>("compare"),
    verb::<why::Arguments>("why"),
    verb::<share::Arguments>("share"),
    verb::<audit::Arguments>("audit"),
    verb::<push::Arguments>("push"),
    verb::<ask::Arguments>("ask"),
    verb::<query::Arguments>("query"),
    verb::<site::Arguments>("site"),
    verb::<import::Arguments>("import"),
    verb::<list::Arguments>("list"),
    verb::<doctor::Arguments>("doctor"),
    verb::<record::Arguments>("record"),
    verb::<trace::Arguments>("trace"),
    verb::<scan::Arguments>("scan"),
    verb::<guest::Arguments>("guest"),
    verb::<disk::Arguments>("disk"),
    verb::<sim::Arguments>("sim"),
    verb::<clean::Arguments>("clean"),
    verb::<completions::Arguments>("completions"),
    verb::<help::Arguments>("help"),
    Entry { hidden: true, ..verb::<agent::Arguments>("agent") },
    Entry { hidden: true, ..verb::<far::Arguments>("far") },
    Entry { hidden: true, ..verb::<slurm_job::Arguments>(pickfs_host::fleet::VERB) },
];

/// An error that is printed as it stands and ends with its own exit code; all others end with
/// [`FAILED`].
#[derive(Debug)]
struct Exit {
    code: u8,
    text: String,
}

impl Exit {
    /// The command line asks for what cannot be.
    fn usage(text: impl std::fmt::Display) -> anyhow::Error {
        Exit { code: USAGE, text: visible_lines(&format!("pickfs: {text}\n")) }.into()
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Exit {}

/// A file or folder that the command line names must be there.
fn there(path: &Path) -> anyhow::Result<&Path> {
    if path.exists() { Ok(path) } else { Err(Exit::usage(format!("there is no file or folder {}", path.display()))) }
}

/// A sentence that goes before another one; empty where no word is near.
fn did_you_mean(before: &str, near: Option<&str>) -> String {
    near.map(|near| format!("did you mean `{before}{near}`? ")).unwrap_or_default()
}

fn command() -> Command {
    let about = "Which file system, with which options, for this work on this disk? Measured, with error bars";
    let command = Command::new("pickfs").version(env!("CARGO_PKG_VERSION")).about(about);
    let command = command.subcommand_required(true).arg_required_else_help(true).disable_help_subcommand(true);
    let verb = |verb: &Entry| {
        let examples = examples(verb.examples);
        let examples = if examples.is_empty() { examples } else { format!("Examples:\n{examples}") };
        (verb.arguments)(Command::new(verb.name)).hide(verb.hidden).after_help(examples)
    };
    let command = command.after_help(format!("Most people want one of:\n{}", examples(MOST_WANTED)));
    let color = Arg::new("color").long("color").global(true).value_name("WHEN").default_value("auto");
    let color = color.value_parser(value_parser!(ColorChoice)).hide_short_help(true);
    let color = color.display_order(998).help("Colours and bold text: where a terminal shows them, always, or never");
    command.subcommands(VERBS.iter().map(verb)).arg(color)
}

/// What a stranger can type at once.
const MOST_WANTED: &[[&str; 2]] = &[
    ["pickfs for postgres", "an answer at once; `pickfs for` lists what there is"],
    ["sudo pickfs run", "compare ext4, xfs and btrfs in this folder, three minutes"],
    ["sudo pickfs run --fs ext4,xfs,btrfs --source DIR", "the same with your own files"],
    ["pickfs run --on DIR --on DIR", "compare two existing folders, without root"],
    ["pickfs init", "five questions, then a plan to keep"],
    ["pickfs help", "all verbs and topics"],
];

/// A command with what it does to its right, or below where it is long.
fn examples(rows: &[[&str; 2]]) -> String {
    const WIDTH: usize = 40;
    let below = " ".repeat(WIDTH + 4);
    let line = |[command, about]: &[&str; 2]| {
        let about = lines(about, 80 - below.len()).join(&format!("\n{below}"));
        match command.len() {
            ..=WIDTH => format!("  {command:WIDTH$}  {about}\n"),
            _ => format!("  {command}\n{below}{about}\n"),
        }
    };
    rows.iter().map(line).collect()
}

/// What `--color` says, for all that is printed; without it `NO_COLOR` and the terminal decide.
fn choose_colors(matches: &ArgMatches) {
    match matches.get_one::<ColorChoice>("color") {
        Some(ColorChoice::Always) => anstream::ColorChoice::Always.write_global(),
        Some(ColorChoice::Never) => anstream::ColorChoice::Never.write_global(),
        Some(ColorChoice::Auto) | None => {}
    }
}

/// A verb whose output cannot be written fails like any other, after what it has begun is taken
/// back: `println!` has no other way to say so than a panic. Where the reader has seen enough, it
/// ends without a word, with the code that the signal gives others.
fn with_output(run: impl FnOnce() -> Outcome) -> Outcome {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if unwritten(info.payload()).is_none() {
            usual(info);
        }
    }));
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| match unwritten(&*payload) {
        Some(why) if why.starts_with("Broken pipe") => Ok(READER_LEFT),
        Some(why) => Err(anyhow!("cannot write the output: {why}")),
        None => panic::resume_unwind(payload),
    })
}

/// 128 and SIGPIPE, as shells print it of a program that the signal ended.
const READER_LEFT: u8 = 141;

/// Why, of a panic of `println!`.
fn unwritten(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<String>()?.strip_prefix("failed printing to stdout: ")
}

/// With the verb that was meant, where clap finds none: `rnu` is one slip from `run`.
fn with_verb(mut error: clap::Error) -> clap::Error {
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => return error,
    };
    let verbs = VERBS.iter().filter(|verb| !verb.hidden).map(|verb| verb.name);
    if let (None, Some(near)) = (error.get(ContextKind::SuggestedSubcommand), pickfs_core::plan::nearest(&word, verbs))
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near.to_string()]));
    }
    error
}

fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<Interrupted>() {
        STOPPED
    } else if error.is::<NoJournal>() {
        USAGE
    } else {
        FAILED
    }
}

pub fn main() -> ExitCode {
    // Process 1 has no command line of ours: the kernel started it.
    if std::process::id() == 1 {
        return pickfs_host::executor::vm::init();
    }
    // Started from the kernel's link to its file, it would be `exe` in lists of processes.
    let _ = rustix::thread::set_name(c"pickfs");
    let matches = command().try_get_matches().unwrap_or_else(|error| with_verb(error).exit());
    choose_colors(&matches);
    let (name, matches) = matches.subcommand().expect("clap requires a verb");
    let verb = VERBS.iter().find(|verb| verb.name == name).expect("clap knows these alone");
    if verb.only_prints {
        pickfs_system::sys::process::end_with_reader();
    }
    match with_output(|| (verb.run)(matches)) {
        Ok(code) => code.into(),
        Err(error) => match error.downcast_ref::<Exit>() {
            Some(exit) => {
                if pickfs_host::run::is_for_programs() {
                    pickfs_host::run::tell(&exit.text)
                } else {
                    anstream::eprint!("{exit}")
                }
                exit.code.into()
            }
            None => {
                // It may quote what a stranger wrote.
                pickfs_host::run::tell(&visible_lines(&format!("pickfs: {error:#}")));
                code_of(&error).into()
            }
        },
    }
}
