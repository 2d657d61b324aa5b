//! `pickfs compare`: what has changed since earlier runs of the same targets, and an exit code for
//! a gate.

use super::journals::{self, Between};
use super::{Exit, INCONCLUSIVE, Outcome, REGRESSION, Verb, report as reporting};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use pickfs_core::journal::{Folded, fold_file};
use pickfs_host::analysis::{self, Accepted, Changes, Gate, Measured, changes_on_machines, is_history};
use pickfs_host::render::{self, Document, Kind};
use pickfs_host::wording::between_runs::{self, RunComparison};
use pickfs_host::wording::machines::{self, machine_name};
use pickfs_system::units::parse_share;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Compare a run with earlier ones of the same targets: another kernel, tool, machine or day
///
/// Exit code 3: a whole job is slower by clearly more than the threshold; 4: that is not excluded;
/// 2: not comparable.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Journals of the runs before: several show what runs differ by from day to day; @2 is the
    /// second newest, STORE@2 that of a store
    #[arg(required = true, num_args = 1..)]
    old: Vec<PathBuf>,
    /// Journal of the run now; @last is the newest in ./pickfs-runs, STORE@last that of a store
    new: PathBuf,
    /// Of journals of several machines, compare on each its newest run with its earlier ones, and
    /// say what holds on all (journals, folders or stores, in any order)
    #[arg(long, value_name = "WHAT")]
    between: Option<Between>,
    /// The smallest slowdown that matters
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = above_nothing)]
    threshold: f64,
    /// How much runs of one plan differ here, as a standard deviation, if you know it and there is
    /// one earlier run. Else other runs of the same plan, kernel and machine in OLD's folder show
    /// it
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    scatter: Option<f64>,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(render::names(Kind::Comparison)))]
    format: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What runs of one machine are taken to differ by where machines are compared, each by one run
/// before and one after: machines are the observations.
const SCATTER_ON_MACHINES: f64 = 0.03;

/// Journals that are looked through for runs like the one before.
const MOST_HISTORY: usize = 30;

fn above_nothing(text: &str) -> Result<f64, String> {
    let share = parse_share(text).and_then(|share| if share > 0.0 { Ok(share) } else { Err("not above 0".into()) });
    share.map_err(|why| format!("{why}; give one like --threshold 5%"))
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        [
            "pickfs compare mon.jsonl tue.jsonl wed.jsonl now.jsonl",
            "what became slower or faster; exit code 3 if slower",
        ],
        ["pickfs compare @2 @last", "the last two runs in ./pickfs-runs; older ones show what runs differ by"],
        ["pickfs compare before.jsonl after.jsonl --scatter 1%", "where you know that runs of one plan differ by 1 %"],
        ["pickfs compare before.jsonl after.jsonl --threshold 10%", "only changes above 10 % count"],
        ["pickfs compare before/ after/ --between machines", "what changed on all machines, each with its own runs"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        if let Some(Between::Machines) = self.between {
            return self.between_machines();
        }
        let folded =
            self.old.iter().map(|journal| fold_file(&journals::named(journal)?)).collect::<Result<Vec<Folded>>>()?;
        let old = folded.iter().zip(&self.old).map(|(folded, journal)| with_run(folded, journal));
        let (old, new) = (old.collect::<Result<Vec<Measured>>>()?, fold_file(&journals::named(&self.new)?)?);
        let new = with_run(&new, &self.new)?;
        for (one, journal) in old.iter().zip(&self.old) {
            refuse(&between_runs::differences(*one, new), journal)?;
        }
        let others = self.history(&old, new)?;
        let others: Vec<Measured> = others.iter().filter_map(|folded| Some((folded.run.as_ref()?, folded))).collect();
        let runs = between_runs::comparison(&old, &others, new, self.accepted());
        print(&runs, self)?;
        Ok(code(runs.gate))
    }
}

fn code(gate: Gate) -> u8 {
    match gate {
        Gate::Fine => 0,
        Gate::Regression => REGRESSION,
        Gate::Inconclusive => INCONCLUSIVE,
    }
}

/// A run of a machine, with the journal that it is in.
type OnMachine = (Folded, PathBuf);

impl Arguments {
    fn accepted(&self) -> Accepted {
        Accepted { threshold: self.threshold, scatter: self.scatter }
    }

    /// Runs in the folder of the one earlier run that show what runs of the same differ by.
    fn history(&self, old: &[Measured], new: Measured) -> Result<Vec<Folded>> {
        let ([one], [journal], None) = (old, &self.old[..], self.scatter) else { return Ok(Vec::new()) };
        let journal = journals::named(journal)?;
        let Some(folder) = journal.parent() else { return Ok(Vec::new()) };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let near = journals::newest_first(folder)?.into_iter().take(MOST_HISTORY);
        // One that cannot be read shows nothing.
        let folded = near.filter_map(|journal| fold_file(&journal).ok());
        let is_one = |other: &Folded| with_run(other, &journal).is_ok_and(|other| is_history(other, *one, new));
        Ok(folded.filter(is_one).collect())
    }

    fn between_machines(&self) -> Outcome {
        let words: Vec<PathBuf> = self.old.iter().chain([&self.new]).cloned().collect();
        let mut machines: BTreeMap<String, Vec<OnMachine>> = BTreeMap::new();
        for journal in journals::all(&words)? {
            let folded = fold_file(&journal)?;
            with_run(&folded, &journal)?;
            let model = analysis::model(&folded).with_context(|| format!("cannot judge {}", journal.display()))?;
            machines.entry(machine_name(&model)).or_default().push((folded, journal));
        }
        if machines.len() < 2 {
            return Err(Exit::usage("all these runs are of one machine: leave out --between".to_string()));
        }
        let changes = machines.into_iter().map(|(name, runs)| Ok((name.clone(), self.on_one(&name, runs)?)));
        let scatter = self.scatter.unwrap_or(SCATTER_ON_MACHINES);
        let found = changes_on_machines(&changes.collect::<Result<Vec<_>>>()?, scatter);
        let found_there = machines::changes_on_machines(&found);
        reporting::show(&self.format, Document::Machines(&found_there), self.output.as_deref())?;
        Ok(code(found.gate))
    }

    /// Its newest run against its others.
    fn on_one(&self, name: &str, mut runs: Vec<OnMachine>) -> Result<Changes> {
        let started = |folded: &Folded| folded.run.as_ref().map(|run| run.started.clone());
        runs.sort_by_key(|(folded, _)| started(folded));
        let all = runs.iter().map(|(folded, journal)| with_run(folded, journal)).collect::<Result<Vec<Measured>>>()?;
        let Some((new, old)) = all.split_last().filter(|(_, old)| !old.is_empty()) else {
            return Err(Exit::usage(format!("{name} has one run here, and nothing earlier to compare it with")));
        };
        for (one, (_, journal)) in old.iter().zip(&runs) {
            refuse(&between_runs::differences(*one, *new), journal)?;
        }
        Ok(analysis::changes(old, &[], *new, self.accepted()))
    }
}

pub(crate) fn refuse(differences: &[String], journal: &Path) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    let shown: String = differences.iter().map(|line| format!("  {line}\n")).collect();
    let remedy = "run the old plan again (`pickfs run PLAN`), or compare runs of one plan";
    Err(Exit::usage(format!("{} and the new run cannot be compared:\n{shown}{remedy}", journal.display())))
}

pub(crate) fn with_run<'a>(folded: &'a Folded, journal: &Path) -> Result<Measured<'a>> {
    let shown = journal.display();
    let run = folded.begun().with_context(|| shown.to_string())?;
    if let Some(words) = analysis::implausible(folded, &run.plan) {
        bail!("{shown} has {words}, which no run can have; it is damaged or not a journal");
    }
    Ok((run, folded))
}

fn print(runs: &RunComparison, arguments: &Arguments) -> Result<()> {
    reporting::show(&arguments.format, Document::Comparison(runs), arguments.output.as_deref())
}
