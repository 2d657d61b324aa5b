//! `pickfs tune`: which options of a file system are worth it for a work, and which make no
//! difference.
//!
//! A tuning is up to five ordinary runs in one folder, each with its own journal. What the next one
//! measures follows from the journals alone, so a tuning that was cut goes on where it was.

use super::purpose;
use super::run::Shown;
use super::tuned::{self, Study, tuned};
use super::{
    Exit, Outcome, REFUSED, STOPPED, Verb, after, busy, confirm, journals, plan_source, plan_source::NS_OF_MINUTE,
    programs, report, there,
};
use anyhow::{Context, Result};
use pickfs_core::journal::typed;
use pickfs_core::plan::{Plan, PlanArgs, PlanFlags, flag_names};
use pickfs_host::executor;
use pickfs_host::render::Document;
use pickfs_host::run::{self, Finish, Progress, StopChange, Trust, tell};
use pickfs_stats::tuning::Next;
use pickfs_system::units::{parse_share, show_duration};
use std::path::{Path, PathBuf};

/// Of a tuning that was given none, where the machine's time is what it takes.
const USUAL_BUDGET_NS: u64 = 30 * NS_OF_MINUTE;

/// Flags of aims that a tuning chooses itself.
const AIMS: [&str; 2] = ["rounds", "precision"];

/// Find the options of a file system that are worth it for a work, and the ones that make no
/// difference
#[derive(clap::Args)]
#[command(mut_args(|argument| {
    let hidden = AIMS.contains(&argument.get_id().as_str());
    argument.hide(hidden)
}))]
pub(crate) struct Arguments {
    /// What the file system is for, such as laptop or postgres (`pickfs for` lists all) [default: a
    /// tree]
    #[arg(value_name = "WHAT")]
    purpose: Option<String>,
    /// Options to try, such as atime,commit (`pickfs list options FS`) [default: all of the file
    /// system itself]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    options: Vec<String>,
    /// Try what weakens durability or checksums too
    #[arg(long)]
    weaken: bool,
    /// The smallest difference in time worth acting on
    #[arg(long, value_name = "SHARE", default_value = "3%")]
    margin: String,
    /// Folder for the journals
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Go on with the tuning of this folder, or print its answer again
    #[arg(long, value_name = "DIR", conflicts_with_all = flag_names().chain(["purpose", "options", "weaken", "margin", "folder", "executor"]))]
    resume: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: PlanFlags,
    /// How to reach the machine that does the work (`pickfs list executors`)
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Agree to erase the device with this serial number (or name, where it has none)
    #[arg(long, value_name = "SERIAL")]
    erase: Vec<String>,
    /// Agree to the programs that the work runs on this machine, and to fetch what a guest is made
    /// of
    #[arg(long)]
    yes: bool,
    /// How to show what goes on: for people, as plain lines, or as JSON, an object a line on
    /// standard error
    #[arg(long, value_name = "HOW", default_value = "people")]
    progress: Shown,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["sudo pickfs tune --fs btrfs --source ~/src", "all options of btrfs, for your own files"],
        ["sudo pickfs tune --fs ext4 --options atime,commit", "these two alone"],
        ["pickfs tune postgres --fs xfs --sim nvme", "for a common purpose, on a simulated disk"],
        ["sudo pickfs tune --resume FOLDER", "go on with one that was stopped; or its answer again"],
    ];

    fn run(&self) -> Outcome {
        let (study, folder) = match &self.resume {
            Some(folder) => (Study::of_folder(there(folder)?)?, folder.clone()),
            None => self.begun()?,
        };
        let mut progress = self.progress.progress();
        match self.measured(&study, &folder, progress.as_mut())? {
            None => {}
            Some(code) => return Ok(code),
        }
        let format = if self.json { "json" } else { "text" };
        report::show(format, Document::Tunings(&[tuned(&study, &folder)?]), None).map(|()| 0)
    }
}

impl Arguments {
    fn begun(&self) -> Result<(Study, PathBuf)> {
        if let Some(flag) = AIMS.into_iter().find(|flag| self.flags.has(flag)) {
            return Err(Exit::usage(format!(
                "--{flag}: a tuning chooses its rounds by the noise that it finds; give --budget"
            )));
        }
        let ([fs], 0 | 1) = (self.flags.texts("fs"), self.flags.texts("sim").len()) else {
            return Err(Exit::usage("name one file system with --fs, and at most one disk with --sim"));
        };
        let margin = parse_share(&self.margin).map_err(|why| Exit::usage(format!("--margin: {why}")))?;
        if !(margin > 0.0 && margin < 1.0) {
            return Err(Exit::usage(format!("--margin: {} is not between 0 and 100 %", self.margin)));
        }
        let plan = Plan { rank_weakened: self.weaken, ..self.plan()? };
        let study = Study::new(plan, &self.options, self.weaken, margin).map_err(Exit::usage)?;
        let word = format!("-tune-{}", fs.split([':', ' ']).next().unwrap_or_default());
        let folder = self.folder.clone().unwrap_or_else(|| journals::fresh(&word).with_extension(""));
        let is_empty = |folder: &Path| folder.read_dir().is_ok_and(|mut entries| entries.next().is_none());
        if folder.exists() && !is_empty(&folder) {
            let (shown, word) = (folder.display(), typed(&folder));
            return Err(Exit::usage(format!(
                "{shown} is not an empty folder; `--resume {word}` goes on with its tuning"
            )));
        }
        Ok((study, folder))
    }

    fn plan(&self) -> Result<Plan> {
        let (flags, executor) = (&self.flags, self.executor.clone());
        let arguments = match &self.purpose {
            Some(word) => purpose::find(word)?.arguments(flags, executor),
            None => PlanArgs { flags: flags.clone(), executor, ..PlanArgs::default() },
        };
        let (mut plan, _) = plan_source::from_flags(&arguments)?;
        if !flags.has("budget") {
            // Without root it may be a simulation, whose rounds the host's time must not decide.
            plan.stop.budget_ns = (!executor::simulates(&plan.executor)).then_some(USUAL_BUDGET_NS);
        }
        Ok(plan)
    }

    fn may_fetch(&self, study: &Study) -> Result<bool> {
        let executor = self.executor.clone();
        let arguments = PlanArgs { flags: self.flags.clone(), executor, ..PlanArgs::default() };
        Ok(self.resume.is_some() || plan_source::may_fetch(&arguments, &study.base, self.yes)?)
    }

    /// Until nothing is left to measure; an exit code where it ends before.
    fn measured(&self, study: &Study, folder: &Path, progress: &mut dyn Progress) -> Result<Option<u8>> {
        let mut agreed = None;
        loop {
            let (journal, plan, stop_change) = match study.unfinished(folder)? {
                Some(journal) => (journal, None, StopChange::default()),
                None => match study.next(folder)? {
                    Next::Done(_) => return Ok(None),
                    Next::Measure { kind, configs, rounds } => {
                        let (journal, stop_change) =
                            (tuned::journal(folder, kind), StopChange { rounds, ..StopChange::default() });
                        (journal, Some(study.plan(kind, &configs, rounds)), stop_change)
                    }
                },
            };
            if agreed.is_none() {
                let is_agreed =
                    self.may_fetch(study)? && programs::agreed(&study.base, &programs::Source::Own, self.yes)?;
                let Some(erasures) = confirm::confirmed(&study.base, &self.erase)?.filter(|_| is_agreed) else {
                    return Ok(Some(REFUSED));
                };
                // Its stages are no plan of a simulation.
                busy::before_run(&study.base.executor, false)?;
                study.base.stop.budget_ns.into_iter().for_each(|share| {
                    let share = show_duration(share as f64);
                    tell(&format!(
                        "time: {share} of rounds in each of at most five stages, which first tries every configuration once"
                    ));
                });
                run::count_stop_requests()?;
                std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
                agreed = Some(erasures);
            }
            let erasures = agreed.as_deref().unwrap_or_default();
            let finish = match plan.filter(|_| !journal.exists()) {
                Some(plan) => {
                    tell(&plan.title);
                    run::begin(&plan, erasures, executor::ALL, &journal, progress)
                }
                None => run::resume(&journal, erasures, Trust::Own, stop_change, executor::ALL, progress),
            };
            [journal.as_path(), folder].into_iter().for_each(after::give_back);
            if finish? == Finish::Stopped {
                tell(&format!("stopped; `pickfs tune --resume {}` goes on", typed(folder)));
                return Ok(Some(STOPPED));
            }
        }
    }
}
