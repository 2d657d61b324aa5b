//! `pickfs run`: measure, then say the verdict.

#![expect(clippy::disallowed_methods, reason = "names a journal by its time")]

use super::{Exit, FAILED, Outcome, REFUSED, STOPPED, Verb, choices, confirm, plan_source, report, there};
use crate::executor;
use crate::journal::{Enough, fold_file};
use crate::plan::{PlanArgs, PlanFlags, flag_names};
use crate::run::{self, Aims, Finish, Lines, Owner, Progress, tell};
use crate::sys::process::behind_sudo;
use crate::units::{parse_duration, parse_share};
use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure: a plan file, or targets named on the command line
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    plan: PlanArgs,
    /// Where to write the journal
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Take up a run that was stopped or killed
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = fixed_names())]
    resume: Option<PathBuf>,
    /// With --resume: go on this long, such as 30min, also where there is a decision
    #[arg(long, value_name = "TIME", requires = "resume", conflicts_with = "budget")]
    more: Option<String>,
    /// Take up a journal that belongs to another user; read it first
    #[arg(long, requires = "resume")]
    any_owner: bool,
    /// Agree to erase the device with this serial number (or name, where it has none)
    #[arg(long, value_name = "SERIAL")]
    erase: Vec<String>,
    /// How to show what goes on: for people, or as JSON, an object a line on standard error
    #[arg(long, value_name = "HOW", default_value = "people")]
    progress: Shown,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Shown {
    People,
    Json,
}

impl Shown {
    fn progress(self) -> Box<dyn Progress> {
        match self {
            Shown::People => run::for_people(),
            Shown::Json => run::for_programs(),
        }
    }
}

/// What cannot change in a run that is taken up.
fn fixed_names() -> impl Iterator<Item = &'static str> {
    let may_change = |name: &&str| ["budget", "precision", "rounds"].contains(name);
    flag_names().filter(move |name| !may_change(name)).chain(["plan", "executor", "journal"])
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["sudo pickfs run", "ext4, xfs and btrfs in this folder, three minutes"],
        ["sudo pickfs run --fs ext4,xfs --source ~/src --budget 1h", "your own files, for an hour"],
        ["sudo pickfs run --fs btrfs,btrfs:lzo,btrfs:zstd:1", "is compression worth it?"],
        ["pickfs run --sim hdd-7200,nvme --fs ext4,xfs", "on simulated disks, without root or a disk"],
        ["pickfs run --on ~ --on /mnt/usb", "two folders as they are, without root"],
        ["sudo pickfs run PLAN.toml --erase SERIAL", "a plan that erases a disk"],
        ["sudo pickfs run --resume RUN.jsonl", "go on with a run that was stopped"],
    ];
    fn run(&self) -> Outcome {
        let mut progress = self.progress.progress();
        let progress = progress.as_mut();
        if let Some(journal) = &self.resume {
            let (owner, aims) = (if self.any_owner { Owner::Any } else { Owner::Own }, self.aims()?);
            return match agreed_again(there(journal)?, owner, &self.erase)? {
                true => {
                    run::count_stop_requests()?;
                    told(journal, run::resume(journal, owner, aims, executor::ALL, progress)?)
                }
                false => Ok(REFUSED),
            };
        }
        match self.plan.flags.sim.as_slice() {
            [] | [_] => {
                let journal = self.journal.clone().unwrap_or_else(|| default_journal(""));
                self.measure(&self.plan, &journal, progress)
            }
            disks => self.simulate(disks, progress),
        }
    }
}

impl Arguments {
    /// A run for each disk, and then a table of what is best on which.
    fn simulate(&self, disks: &[String], progress: &mut dyn Progress) -> Outcome {
        if self.journal.is_some() {
            return Err(Exit::usage("--journal names one file; with several disks leave it out"));
        }
        let (mut journals, mut ended) = (Vec::new(), 0);
        for disk in disks.iter().map(|disk| executor::sim::whole_name(disk)) {
            tell(&format!("simulating {disk}"));
            let flags = PlanFlags { sim: vec![disk.clone()], ..self.plan.flags.clone() };
            let name: String = disk.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            let journal = default_journal(&format!("-{name}"));
            match self.measure(&PlanArgs { flags, ..self.plan.clone() }, &journal, progress)? {
                STOPPED => return Ok(STOPPED),
                code => ended = ended.max(code),
            }
            journals.push(journal);
        }
        choices::print(&journals)?;
        Ok(ended)
    }

    fn measure(&self, plan: &PlanArgs, journal: &Path, progress: &mut dyn Progress) -> Outcome {
        let plan = plan_source::read(plan)?;
        if !confirm::confirmed(&plan, &self.erase)? {
            return Ok(REFUSED);
        }
        let made_folder = journal.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        // Until here nothing is touched, and Ctrl-C may end us: at a question it would else go unheard.
        run::count_stop_requests()?;
        let finish = run::begin(&plan, executor::ALL, journal, progress);
        made_folder.into_iter().for_each(give_back);
        told(journal, finish?)
    }

    fn aims(&self) -> Result<Aims> {
        let flags = &self.plan.flags;
        let wrong = |flag: &'static str| move |why: String| Exit::usage(format!("{flag}: {why}"));
        let time = |text: &Option<String>, flag| {
            let read = text.as_deref().map(parse_duration).transpose().map_err(wrong(flag))?;
            anyhow::Ok(read.map(Duration::from_nanos))
        };
        let precision = flags.precision.as_deref().map(parse_share).transpose().map_err(wrong("--precision"))?;
        if precision.is_some_and(|share| share <= 0.0) || flags.rounds == Some(0) {
            return Err(Exit::usage("--precision and --rounds must be more than 0"));
        }
        let (budget, more) = (time(&flags.budget, "--budget")?, time(&self.more, "--more")?);
        Ok(Aims { rounds: flags.rounds, precision, budget, more })
    }
}

/// What root made for the user behind sudo(8) is the user's, once no root acts on it any more. Only a file or folder of
/// root's own, under one name: what was put in its place, or linked there, stays as it is.
fn give_back(path: &Path) {
    let Some((user, group)) = behind_sudo() else { return };
    let opened = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let Ok((file, found)) = opened.and_then(|file| file.metadata().map(|found| (file, found))) else { return };
    if found.uid() == 0 && (found.is_dir() || (found.is_file() && found.nlink() == 1)) {
        // Not on a file system without owners.
        let _ = fchown(&file, Some(user), Some(group));
    }
}

/// A device may have changed hands since the run was begun.
fn agreed_again(journal: &Path, owner: Owner, erase: &[String]) -> Result<bool> {
    let run = fold_file(journal)?.run;
    let plan =
        run.with_context(|| format!("{} is no journal of a run; `pickfs history` lists them", journal.display()))?.plan;
    if confirm::erasures(&plan)?.is_empty() {
        return Ok(true);
    }
    // What the dead run left mounted on the device is no reason to refuse it.
    run::clean(journal, owner, executor::ALL, &mut Lines::default())?;
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
            tell(&format!("`pickfs run --resume {shown}` goes on to the next look even so"));
        }
        Finish::Enough(_) => {}
        Finish::Stopped => tell(&format!("stopped; `pickfs run --resume {shown}` goes on")),
    }
    report::print(&folded, journal, "text")?;
    match report::write_page(&folded, journal) {
        Ok(page) => {
            give_back(&page);
            tell(&format!("with charts: {}", page.display()));
        }
        // What was measured is in the journal all the same.
        Err(error) => tell(&format!("no page with charts: {error:#}; `pickfs report {shown} --format html` makes one")),
    }
    give_back(journal);
    let ended = |wanted: fn(&crate::journal::Outcome) -> bool| {
        folded.cells.iter().filter_map(|cell| cell.outcome.as_ref()).any(wanted)
    };
    use crate::journal::Outcome::{Done, Failed};
    let failed = ended(|outcome| matches!(outcome, Failed(_))) || !ended(|outcome| *outcome == Done);
    Ok(match finish {
        Finish::Stopped => STOPPED,
        Finish::Enough(_) if failed => FAILED,
        Finish::Enough(_) => 0,
    })
}

/// `pickfs-runs/2026-01-31-12-00-00.jsonl` in the current directory, with a word for what is special about it.
fn default_journal(word: &str) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d-%H-%M-%S");
    let folder = Path::new("pickfs-runs");
    let first = folder.join(format!("{now}{word}.jsonl"));
    let others = (2..).map(|n| folder.join(format!("{now}{word}-{n}.jsonl")));
    std::iter::once(first).chain(others).find(|path| !path.exists()).unwrap_or_default()
}
