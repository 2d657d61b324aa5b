//! `pickfs run`: measure, then say the verdict.

#![expect(clippy::disallowed_methods, reason = "names a journal by its time")]

use super::{Exit, FAILED, Outcome, REFUSED, Verb, confirm, plan_source, report};
use crate::executor;
use crate::journal::{Enough, fold_file};
use crate::plan::{Plan, PlanArgs, flag_names};
use crate::run::{self, Finish, Owner, Plain, tell};
use anyhow::{Context, Result};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Measure: a plan file, or targets named on the command line
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    plan: PlanArgs,
    /// Where to write the journal
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Take up a run that was stopped or killed
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = flag_names().chain(["plan", "executor", "journal"]))]
    resume: Option<PathBuf>,
    /// Take up a journal that belongs to another user; read it first
    #[arg(long, requires = "resume")]
    any_owner: bool,
    /// Agree to erase the device with this serial number (or name, where it has none)
    #[arg(long, value_name = "SERIAL")]
    erase: Vec<String>,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["sudo pickfs run", "ext4, xfs and btrfs in this folder, three minutes"],
        ["sudo pickfs run --fs ext4,xfs --source ~/src --budget 1h", "your own files, for an hour"],
        ["sudo pickfs run --fs btrfs,btrfs:lzo,btrfs:zstd:1", "is compression worth it?"],
        ["pickfs run --on ~ --on /mnt/usb", "two folders as they are, without root"],
        ["sudo pickfs run PLAN.toml --erase SERIAL", "a plan that erases a disk"],
        ["sudo pickfs run --resume RUN.jsonl", "go on with a run that was stopped"],
    ];
    fn run(&self) -> Outcome {
        let mut progress = Plain::new(std::io::stderr().is_terminal());
        if let Some(journal) = &self.resume {
            let owner = if self.any_owner { Owner::Any } else { Owner::Own };
            return match agreed_again(journal, owner, &self.erase)? {
                true => {
                    run::count_stop_requests()?;
                    told(journal, run::resume(journal, owner, executor::ALL, &mut progress)?)
                }
                false => Ok(REFUSED),
            };
        }
        let plan = plan_source::read(&self.plan)?;
        if !confirm::confirmed(&plan, &self.erase)? {
            return Ok(REFUSED);
        }
        let journal = self.journal.clone().unwrap_or_else(default_journal);
        if let Some(complaint) = lies_under_test(&journal, &plan)? {
            return Err(Exit::usage(complaint));
        }
        // Until here nothing is touched, and Ctrl-C may end us: at a question it would else go unheard.
        run::count_stop_requests()?;
        told(&journal, run::begin(&plan, executor::ALL, &journal, &mut progress)?)
    }
}

/// A device may have changed hands since the run was begun.
fn agreed_again(journal: &Path, owner: Owner, erase: &[String]) -> Result<bool> {
    let plan = fold_file(journal)?.run.context("the journal has no run record")?.plan;
    if confirm::erasures(&plan)?.is_empty() {
        return Ok(true);
    }
    // What the dead run left mounted on the device is no reason to refuse it.
    run::clean(journal, owner, executor::ALL, &mut Plain::new(false))?;
    Ok(confirm::still_free(&plan)? && confirm::confirmed(&plan, erase)?)
}

fn told(journal: &Path, finish: Finish) -> Outcome {
    let folded = fold_file(journal)?;
    let shown = journal.display();
    match finish {
        Finish::Enough(Enough::Budget) => {
            tell(&format!("the budget is used up; `pickfs run --resume {shown}` goes on"));
        }
        Finish::Enough(Enough::Hopeless) => {
            tell(&format!("`pickfs run --resume {shown}` goes on to the next look all the same"));
        }
        Finish::Enough(_) => {}
        Finish::Stopped => tell(&format!("stopped; `pickfs run --resume {shown}` goes on")),
    }
    report::print(&folded, journal, "text")?;
    match report::write_page(&folded, journal) {
        Ok(page) => tell(&format!("with charts: {}", page.display())),
        // What was measured is in the journal all the same.
        Err(error) => tell(&format!("no page with charts: {error:#}; `pickfs report {shown} --format html` makes one")),
    }
    let failed = folded.cells.iter().any(|cell| matches!(cell.outcome, Some(crate::journal::Outcome::Failed(_))));
    Ok(if failed || finish == Finish::Stopped { FAILED } else { 0 })
}

/// `pickfs-runs/2026-01-31-12-00-00.jsonl` in the current directory.
fn default_journal() -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d-%H-%M-%S");
    let folder = Path::new("pickfs-runs");
    let first = folder.join(format!("{now}.jsonl"));
    let others = (2..).map(|n| folder.join(format!("{now}-{n}.jsonl")));
    std::iter::once(first).chain(others).find(|path| !path.exists()).unwrap_or_default()
}

/// A journal never lies in a directory that is measured.
fn lies_under_test(journal: &Path, plan: &Plan) -> Result<Option<String>> {
    let journal = std::path::absolute(journal)?;
    let folder = journal.parent().unwrap_or(&journal);
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let on_directory = plan.targets.iter().filter(|target| target.backing.name == "directory");
    let hit = on_directory
        .filter_map(|target| target.backing.settings.path("path"))
        .find(|path| folder.starts_with(path.canonicalize().unwrap_or_else(|_| path.clone())));
    Ok(hit.map(|path| {
        format!(
            "the journal {} would lie in {}, which is measured; give --journal FILE elsewhere",
            journal.display(),
            path.display()
        )
    }))
}
