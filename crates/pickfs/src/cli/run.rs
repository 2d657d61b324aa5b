//! `pickfs run`: measure, then say the verdict.

use super::after::{give_back, show};
use super::busy::{self, Choice};
use super::programs::{self, Source};
use super::{
    Exit, FAILED, Outcome, REFUSED, STOPPED, Verb, audit, choices, confirm, forewarn, how_long, journals, on_hosts,
    on_slurm, plan_source, report, why,
};
use anyhow::Result;
use pickfs_core::journal::{Folded, StopReason, fold_file, typed};
use pickfs_core::plan::{Plan, PlanArgs, fixed_flag_names, flag_names};
use pickfs_core::protocol::Erasure;
use pickfs_host::executor;
use pickfs_host::fleet::Slurm;
use pickfs_host::run::{self, Finish, Lines, Progress, StopChange, Trust, tell};
use pickfs_system::units::parse_duration;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure: a plan file, or targets named on the command line
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    #[command(flatten)]
    plan: PlanArgs,
    /// Where to write the journal
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Take up a run that was stopped or killed
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = fixed_flag_names().chain(["plan", "executor", "journal"]))]
    resume: Option<PathBuf>,
    /// Do the plan of a journal again, as a new run; it may be packed, by xz or `pickfs share`
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = flag_names().chain(["plan", "resume", "executor"]))]
    again: Option<PathBuf>,
    /// With --resume: go on this long, such as 30min, also where there is a decision
    #[arg(long, value_name = "TIME", requires = "resume", conflicts_with = "budget")]
    more: Option<String>,
    /// With --resume or --again: a journal that this user did not begin here, such as a copy; read
    /// it first
    #[arg(long, conflicts_with = "host")]
    trust: bool,
    /// Agree to erase the device with this serial number (or name, where it has none)
    #[arg(long, value_name = "SERIAL")]
    erase: Vec<String>,
    /// Agree to the programs that the plan runs on this machine (`pickfs plan` shows them), and to
    /// fetch what a guest is made of
    #[arg(long)]
    yes: bool,
    /// At the end, explain the differences, as `pickfs why` does: that takes as long as a few more
    /// rounds
    #[arg(long, conflicts_with_all = ["host", "slurm"])]
    why: bool,
    /// How to show what goes on: for people (a large terminal is filled), as plain lines, or as
    /// JSON, an object a line on standard error
    #[arg(long, value_name = "HOW", default_value = "people", conflicts_with = "host")]
    progress: Shown,
    /// The journal is fetched by another machine, which makes the report
    #[arg(long, hide = true)]
    fetched: bool,
    #[command(flatten)]
    hosts: on_hosts::Hosts,
    #[command(flatten)]
    to_slurm: on_slurm::ToSlurm,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum Shown {
    #[default]
    People,
    Lines,
    Json,
}

impl Shown {
    pub(crate) fn progress(self) -> Box<dyn Progress> {
        match self {
            Shown::People => run::for_people(),
            Shown::Lines => Box::new(run::Lines::default()),
            Shown::Json => run::for_programs(),
        }
    }
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["sudo pickfs run", "ext4, xfs and btrfs in this folder, three minutes"],
        ["sudo pickfs run --fs ext4,xfs --source ~/src --budget 1h", "your own files, for an hour"],
        ["sudo pickfs run --fs btrfs,btrfs:lzo,btrfs:zstd:1", "is compression worth it?"],
        ["pickfs run --sim hdd-7200,nvme --fs ext4,xfs", "on simulated disks, without root or a disk"],
        ["pickfs run --on ~ --on /mnt/usb", "two existing folders, without root"],
        ["sudo pickfs run PLAN.toml --erase SERIAL", "a plan that erases a disk"],
        ["sudo pickfs run --resume RUN.jsonl", "go on with a run that was stopped"],
        ["pickfs run PLAN.toml --host root@m1,root@m2", "on other machines, by ssh; then what holds on all"],
        ["pickfs run --fs ext4,xfs --on /srv --host root@m1", "without a plan file; paths are those of m1"],
        ["pickfs run PLAN.toml --slurm=disks", "as a job of Slurm that has a machine for itself"],
    ];
    fn run(&self) -> Outcome {
        if self.trust && self.resume.is_none() && self.again.is_none() {
            return Err(Exit::usage("--trust is about a journal: give one with --resume or --again"));
        }
        if !self.agreed_elsewhere()? {
            return Ok(REFUSED);
        }
        if !self.hosts.host.is_empty() {
            return on_hosts::run(&self.hosts, &self.for_hosts()?);
        }
        if let Some(slurm) = self.to_slurm.slurm()? {
            return self.on_slurm(slurm);
        }
        let mut progress = self.progress.progress();
        let progress = progress.as_mut();
        if let Some(journal) = &self.resume {
            let (trust, stop_change) = (self.trust(), self.stop_change()?);
            let journal = &journals::named(journal)?;
            return match self.agreed_again(journal)? {
                Some(agreed) => {
                    run::count_stop_requests()?;
                    let resumed = run::resume(journal, &agreed, trust, stop_change, executor::ALL, progress);
                    self.report_end(
                        journal,
                        resumed.map_err(|error| match error.downcast::<run::UnfitStop>() {
                            Ok(wrong) => Exit::usage(wrong.to_string()),
                            Err(error) => error,
                        })?,
                    )
                }
                None => Ok(REFUSED),
            };
        }
        if let Some(old) = &self.again {
            let journal = self.journal.clone().unwrap_or_else(|| journals::fresh(""));
            let old = journals::named(old)?;
            let plan = match audit::unpacked(&old)? {
                Some((packed, _)) => run::packed_plan(&packed, &old, self.trust())?,
                None => run::plan(&old, self.trust())?,
            };
            return self.measure(&plan, &Source::Own, &journal, progress);
        }
        match self.plan.flags.texts("sim") {
            [] | [_] => {
                let journal = self.journal.clone().unwrap_or_else(|| journals::fresh(""));
                let (plan, source) = plan_source::read_with_source(&self.plan)?;
                self.measure(&plan, &source, &journal, progress)
            }
            disks => self.simulate(disks, progress),
        }
    }
}

impl Arguments {
    /// A run of the plan that these words make.
    pub(crate) fn of_plan(plan: PlanArgs, journal: Option<PathBuf>, yes: bool, progress: Shown) -> Arguments {
        Arguments { plan, journal, yes, progress, ..Arguments::default() }
    }

    /// What other machines do is agreed to here: no question of theirs reaches the user.
    fn agreed_elsewhere(&self) -> Result<bool> {
        let is_elsewhere = !self.hosts.host.is_empty() || self.to_slurm.slurm.is_some();
        let (mut plan, source) = match self.plan.plan.as_deref() {
            _ if !is_elsewhere => return Ok(true),
            Some(path) => plan_source::unchecked(path)?,
            None => (plan_source::unchecked_flags(&self.plan.flags)?, Source::Own),
        };
        plan.executor = self.plan.executor.clone().unwrap_or(plan.executor);
        programs::agreed_elsewhere(&plan, &source, self.yes)
    }

    /// The same on a model of the disk at hand.
    fn simulated(&self) -> Arguments {
        let mut flags = self.plan.flags.clone();
        let folder = flags.text("on").unwrap_or(".").to_string();
        flags.remove("on");
        flags.set("sim", [plan_source::model_like(Path::new(&folder))]);
        let plan = PlanArgs { flags, executor: None, ..self.plan.clone() };
        Arguments { why: self.why, ..Arguments::of_plan(plan, self.journal.clone(), self.yes, self.progress) }
    }

    /// A run for each disk, and then a table of what is best on which.
    fn simulate(&self, disks: &[String], progress: &mut dyn Progress) -> Outcome {
        if self.journal.is_some() {
            return Err(Exit::usage("--journal names one file; with several disks leave it out"));
        }
        let (mut journals, mut ended) = (Vec::new(), 0);
        for disk in disks.iter().map(|disk| pickfs_disks::whole_name(disk)) {
            tell(&format!("simulating {disk}"));
            let mut flags = self.plan.flags.clone();
            flags.set("sim", [&disk]);
            let name: String = disk.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            let journal = journals::fresh(&format!("-{name}"));
            let plan = plan_source::read(&PlanArgs { flags, ..self.plan.clone() })?;
            match self.measure(&plan, &Source::Own, &journal, progress)? {
                STOPPED => return Ok(STOPPED),
                code => ended = ended.max(code),
            }
            journals.push(journal);
        }
        choices::print(&journals)?;
        Ok(ended)
    }

    fn measure(&self, plan: &Plan, source: &Source, journal: &Path, progress: &mut dyn Progress) -> Outcome {
        let may_fetch = self.again.is_some() || plan_source::may_fetch(&self.plan, plan, self.yes)?;
        if !may_fetch || !programs::agreed(plan, source, self.yes)? {
            return Ok(REFUSED);
        }
        let Some(agreed) = confirm::confirmed(plan, &self.erase)? else { return Ok(REFUSED) };
        // Flags say on which disk; a plan file has its own place.
        let may_simulate = self.plan.plan.is_none() && self.resume.is_none() && self.again.is_none();
        if busy::before_run(&plan.executor, may_simulate)? == Choice::Simulate {
            return self.simulated().run();
        }
        let made_folder = journal.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        how_long::before_run(plan).iter().for_each(|time| tell(time));
        forewarn::warnings(plan).iter().for_each(|warning| tell(&format!("note: {warning}")));
        // Until here nothing is touched, and Ctrl-C may end us: at a question it would else go
        // unheard.
        run::count_stop_requests()?;
        let finish = run::begin(plan, &agreed, executor::ALL, journal, progress);
        made_folder.into_iter().for_each(give_back);
        self.report_end(journal, finish?)
    }

    /// What is asked of other machines; they check all but what cannot be said of them.
    fn for_hosts(&self) -> Result<on_hosts::FarRequest<'_>> {
        let flag = if self.hosts.host.is_empty() { "--slurm" } else { "--host" };
        if self.again.is_some() {
            return Err(Exit::usage(format!(
                "--again does a plan again on this machine; give {flag} the plan's file or its options",
            )));
        }
        if self.plan.flags.texts("sim").len() > 1 {
            return Err(Exit::usage(format!("--sim takes one disk with {flag}; give a command for each")));
        }
        let mut flags = self.plan.flags.clone();
        if let Some(workload) = plan_source::workload_of(&flags)? {
            flags.set("workload", [workload]);
        }
        let flags = flags.words().map_err(Exit::usage)?;
        let more = self.more.iter().map(|time| format!("--more={time}"));
        let executor = self.plan.executor.iter().map(|name| format!("--executor={name}"));
        // The programs of a plan file were agreed to here.
        let agreed = (self.yes || self.plan.plan.is_some()).then(|| "--yes".to_string());
        let erase = self.erase.iter().map(|serial| format!("--erase={serial}"));
        Ok(on_hosts::FarRequest {
            plan: self.plan.plan.as_deref(),
            resume: self.resume.as_deref(),
            journal: self.journal.as_deref(),
            words: flags.into_iter().chain(more).chain(executor).chain(agreed).chain(erase).collect(),
        })
    }

    /// Cells of a simulation each by itself; all else is a run on one machine.
    fn on_slurm(&self, slurm: Slurm) -> Outcome {
        let wanted = self.for_hosts()?;
        let journal = self.resume.clone().or(self.journal.clone()).unwrap_or_else(|| journals::fresh("-slurm"));
        run::count_stop_requests()?;
        let is_of_parts = match &self.resume {
            Some(journal) => on_slurm::is_of_parts(journal),
            None => self.plan.flags.has("sim") || self.has_plan_of_parts(),
        };
        if is_of_parts {
            return self.of_parts(slurm, &journal);
        }
        let whole = match &self.resume {
            Some(_) => {
                let trust = self.trust.then(|| "--trust".to_string());
                let words = wanted.words.into_iter().chain(trust).collect();
                on_slurm::Whole { words, ..self.whole(&journal) }
            }
            None => {
                let plan = wanted.plan.map(std::path::absolute).transpose()?;
                let plan = plan.map(|plan| plan.display().to_string());
                let (words, begin) = wanted.words.into_iter().partition(|word| word.starts_with("--erase="));
                let begin: Vec<String> = begin;
                on_slurm::Whole { begin: Some(plan.into_iter().chain(begin).collect()), words, ..self.whole(&journal) }
            }
        };
        on_slurm::run_whole(&slurm, &whole)
    }

    fn whole<'a>(&'a self, journal: &'a Path) -> on_slurm::Whole<'a> {
        on_slurm::Whole { journal, begin: None, words: Vec::new(), local: &self.to_slurm.local_folder }
    }

    /// A plan file of a simulation. What is wrong with a plan is said on the machine that would do
    /// it.
    fn has_plan_of_parts(&self) -> bool {
        let names_executor = self.plan.executor.is_some();
        let plan = (self.plan.plan.is_some() || names_executor).then(|| plan_source::read(&self.plan).ok()).flatten();
        plan.is_some_and(|plan| run::can_be_parted(&plan, executor::ALL))
    }

    fn of_parts(&self, slurm: Slurm, journal: &Path) -> Outcome {
        let (local, mut progress) = (&self.to_slurm.local_folder, self.progress.progress());
        let (finish, cells) = if self.resume.is_some() {
            let (trust, plan) = (self.trust(), run::plan(journal, self.trust())?);
            let mut cells = on_slurm::Elements::new(slurm, journal, &plan, local)?;
            let stop_change = self.stop_change()?;
            (run::resume_parts(journal, trust, stop_change, executor::ALL, &mut cells, progress.as_mut())?, cells)
        } else {
            on_slurm::refuse_old(journal)?;
            let plan = plan_source::read(&self.plan)?;
            let mut cells = on_slurm::Elements::new(slurm, journal, &plan, local)?;
            (run::begin_parts(&plan, executor::ALL, journal, &mut cells, progress.as_mut())?, cells)
        };
        if finish != Finish::Stopped {
            cells.end();
        }
        self.report_end(journal, finish)
    }

    fn report_end(&self, journal: &Path, finish: Finish) -> Outcome {
        let folded = fold_file(journal)?;
        if !self.fetched {
            goes_on(journal, finish);
            if finish != Finish::Stopped || folded.has_results() {
                show(&folded, journal)?;
            }
            if self.why && finish != Finish::Stopped {
                self.explain(journal, &folded);
            }
        }
        give_back(journal);
        Ok(code(&folded, finish))
    }

    /// The run has ended well, also where it cannot be explained.
    fn explain(&self, journal: &Path, folded: &Folded) {
        let explained = why::explain(journal, self.trust);
        let page = explained.and_then(|_| report::write_page(&report::model(folded, journal)?, journal));
        match page {
            Ok(page) => give_back(&page),
            Err(error) => tell(&format!("the differences are not explained: {error:#}")),
        }
    }

    fn trust(&self) -> Trust {
        if self.trust { Trust::Any } else { Trust::Own }
    }

    /// A device may have changed hands since the run was begun. What may be erased; nothing where
    /// it is refused.
    fn agreed_again(&self, journal: &Path) -> Result<Option<Vec<Erasure>>> {
        let plan = run::plan(journal, self.trust())?;
        if !programs::agreed(&plan, &Source::Own, self.yes)? {
            return Ok(None);
        }
        if confirm::erasures(&plan)?.is_empty() {
            return Ok(Some(Vec::new()));
        }
        // What the dead run left mounted on the device is no reason to refuse it.
        run::clean(journal, self.trust(), executor::ALL, &mut Lines::default())?;
        if confirm::still_free(&plan)? { confirm::confirmed(&plan, &self.erase) } else { Ok(None) }
    }

    fn stop_change(&self) -> Result<StopChange> {
        let flags = &self.plan.flags;
        let stop = flags.stop().map_err(|complaints| plan_source::wrong_flags(flags, &complaints))?;
        let more = self.more.as_deref().map(parse_duration).transpose();
        let more = more.map_err(|why| Exit::usage(format!("--more: {why}")))?.map(Duration::from_nanos);
        let budget = stop.budget_ns.map(Duration::from_nanos);
        Ok(StopChange { rounds: stop.rounds, precision: stop.precision, budget, more })
    }
}

fn goes_on(journal: &Path, finish: Finish) {
    match finish {
        // The report has the command that goes on.
        Finish::Enough(StopReason::Budget) => tell("the budget is used up"),
        Finish::Enough(_) => {}
        Finish::Stopped => tell(&format!("stopped; `pickfs run --resume {}` goes on", typed(journal))),
    }
}

fn code(folded: &Folded, finish: Finish) -> u8 {
    let ended = |wanted: fn(&pickfs_core::journal::Outcome) -> bool| {
        folded.cells.iter().filter_map(|cell| cell.outcome.as_ref()).any(wanted)
    };
    use pickfs_core::journal::Outcome::{Done, Failed};
    let failed = ended(|outcome| matches!(outcome, Failed(_))) || !ended(|outcome| *outcome == Done);
    match finish {
        Finish::Stopped => STOPPED,
        Finish::Enough(_) if failed => FAILED,
        Finish::Enough(_) => 0,
    }
}
