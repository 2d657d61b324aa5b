//! `pickfs apply`: what an administrator would type to have what a run picked. It changes nothing
//! by itself.

use super::tuned;
use super::{Exit, Outcome, Verb, journals, report};
use anyhow::Result;
use pickfs_core::journal::fold_file;
use pickfs_host::wording::advice::{self, Advice};
use pickfs_host::wording::text::lines;
use pickfs_host::wording::tuning::Tuned;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Print the commands that make what a run or a tuning picked, with where that was measured
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Journal of a run, or folder of a tuning
    run: PathBuf,
    /// Print the commands and change nothing; there is no other way yet
    #[arg(long)]
    dry_run: bool,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs apply --dry-run RUN.jsonl", "commands for what the run picked"],
        ["pickfs apply --dry-run pickfs-runs/2026-11-26-21-00-00-tune-btrfs", "for what a tuning found"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        if !self.dry_run {
            return Err(Exit::usage(
                "apply changes nothing by itself yet: give --dry-run, read the lines, and paste those you want",
            ));
        }
        let text = match tuned::of_folder(&self.run)? {
            Some(tuned) => of_tuning(&tuned, &self.run),
            None => of_run(&journals::named(&self.run)?)?,
        };
        report::deliver(text.as_bytes(), None).map(|()| 0)
    }
}

fn of_run(journal: &Path) -> Result<String> {
    let model = report::model(&fold_file(journal)?, journal)?;
    let head = format!("run {} of {}, {}", model.run, model.started, journal.display());
    Ok(script(&head, model.advice().as_ref(), "it has no pick, or none that lines can make"))
}

fn of_tuning(tuned: &Tuned, folder: &Path) -> String {
    let head = format!("{}: {}", folder.display(), tuned.headline());
    script(&head, tuned.advice.as_ref(), "it found nothing better than the default")
}

/// Comments and commands. Those with a blank to fill in are for the user to choose from, so each
/// says when it is meant.
fn script(head: &str, advice: Option<&Advice>, otherwise: &str) -> String {
    let comment = |text: &str| lines(text, 98).iter().map(|line| format!("# {line}\n")).collect::<String>();
    let mut out = comment(&format!("From {head}"));
    let Some(advice) = advice else { return out + &comment(&format!("Nothing to do: {otherwise}.")) };
    out += &comment(&format!("To use {}:", advice.target));
    for step in &advice.steps {
        let is_command = !advice::IN_FILES.contains(&step.when);
        let _ = writeln!(out, "# {}:\n{}{}", step.when, if is_command { "" } else { "# " }, step.command);
    }
    advice.notes.iter().for_each(|note| out += &comment(note));
    out
}
