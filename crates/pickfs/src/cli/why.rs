//! `pickfs why`: what the difference between two targets of a simulated run is made of. Their cells of the first round are simulated
//! once more, and each instruction and each idle microsecond gets an owner. A run of this machine is explained by its simulation.

mod native;

use super::report::deliver;
use super::{Exit, FAILED, Outcome, Verb, journals};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use pickfs_core::journal::{Folded, Outcome as Ended, fold_file};
use pickfs_core::plan::{Cell, Plan, order};
use pickfs_host::analysis::{self, owners};
use pickfs_host::executor::Executor;
use pickfs_host::executor::sim::{Explanation, NAME, Processor, Sim};
use pickfs_host::run::{self, Lines, Trust, tell};
use pickfs_host::wording::why as words;
use pickfs_system::process::Interrupted;
use pickfs_system::sys::own_folder::OwnFolder;
use pickfs_system::visible::visible_lines;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Explain the difference between two targets of a run
///
/// Their cells of round 1 are simulated again, with the same results, while a plugin of QEMU's counts the instructions of each function.
/// A run without --sim is explained by a simulation of its plan, where the two agree.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Journal of a run; @last is the newest in ./pickfs-runs
    #[arg(default_value = "@last")]
    run: PathBuf,
    /// The target to be explained, and the one that it is compared with; by default each slower one with the best
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    between: Vec<String>,
    /// One phase alone; by default each, and all together
    #[arg(long)]
    phase: Option<String>,
    /// For a run without --sim: the model of a disk that it is simulated on; by default the nearest to the run's disk
    #[arg(long, value_name = "MODEL")]
    disk: Option<String>,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(["text", "json"]))]
    format: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write instructions by target, owner and function, as programs that draw flame graphs read them
    #[arg(long, value_name = "FILE")]
    stacks: Option<PathBuf>,
    /// A journal that this user did not begin here, such as a copy; read it first
    #[arg(long)]
    trust: bool,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs why", "the newest run: the best target against each slower one"],
        ["pickfs why RUN.jsonl --between btrfs,ext4 --phase write", "one pair, one phase"],
        ["pickfs why @last --stacks why.folded", "for flamegraph.pl, speedscope or the Firefox profiler"],
    ];

    fn run(&self) -> Outcome {
        let journal = journals::named(&self.run)?;
        let trust = if self.trust { Trust::Any } else { Trust::Own };
        let (plan, folded) = (run::plan(&journal, trust)?, fold_file(&journal)?);
        let pairs = self.pairs(&plan, &folded)?;
        let (plan, model) = self.to_be_simulated(plan, &folded)?;
        let of_run = OfRun { folded: &folded, model };
        run::count_stop_requests()?;
        match self.explained(&plan, &of_run, &pairs) {
            Err(error) if error.is::<Interrupted>() => Ok(super::STOPPED),
            ended => ended,
        }
    }
}

/// Names of two targets: the one to be explained, and the reference.
type Pair = [String; 2];

/// The run that is to be explained.
struct OfRun<'f> {
    folded: &'f Folded,
    /// The model that it is simulated on, where it was no simulation.
    model: Option<String>,
}

/// A cell that was simulated again.
struct Explained {
    target: String,
    work: String,
    phases: Vec<owners::Breakdown>,
    /// None where the run had no such cell.
    sameness: Option<Sameness>,
}

/// Whether the cell was the one of the run.
#[derive(Default)]
struct Sameness {
    same: usize,
    different: usize,
    same_disk: bool,
}

impl Arguments {
    /// One phase of two targets of a run of this user's, as JSON in a file.
    pub(super) fn of_pair(run: &Path, between: [String; 2], phase: &str, output: &Path) -> Arguments {
        Arguments {
            run: run.to_path_buf(),
            between: between.into(),
            phase: Some(phase.to_string()),
            disk: None,
            format: "json".into(),
            output: Some(output.to_path_buf()),
            stacks: None,
            trust: false,
        }
    }

    /// The plan of the simulation; with the model, where the run was none.
    fn to_be_simulated(&self, plan: Plan, folded: &Folded) -> Result<(Plan, Option<String>)> {
        if plan.executor == NAME {
            return match &self.disk {
                Some(_) => Err(Exit::usage("--disk is for runs without --sim: this one has its disk")),
                None => Ok((plan, None)),
            };
        }
        let given = self.disk.as_deref().map(pickfs_disks::whole_name);
        let model = given.unwrap_or_else(|| native::nearest_model(&plan, folded).to_string());
        if !model.contains('/') && pickfs_disks::find(&model).is_none() {
            return Err(Exit::usage(format!(
                "there is no model of a disk `{}`; `pickfs list disks` shows them",
                model.escape_debug()
            )));
        }
        Ok((native::simulated(&plan, &model)?, Some(model)))
    }

    fn pairs(&self, plan: &Plan, folded: &Folded) -> Result<Vec<Pair>> {
        let names: Vec<&str> = own_targets(plan).collect();
        match &self.between[..] {
            [] => default_pairs(plan, &names, folded),
            [one, other] if one != other => {
                let known = |given: &String| {
                    // As --fs spells it, too: "btrfs:zstd:1" is "btrfs zstd:1".
                    let is_it = |name: &&&str| **name == *given || name.replacen(' ', ":", 1) == *given;
                    let found = names.iter().find(is_it).map(|name| name.to_string());
                    let (given, names) = (given.escape_debug(), names.join(", "));
                    found.ok_or_else(|| Exit::usage(format!("the run has no target `{given}`; it has {names}")))
                };
                Ok(vec![[known(one)?, known(other)?]])
            }
            _ => Err(Exit::usage("--between takes two targets, such as --between btrfs,ext4")),
        }
    }

    fn explained(&self, plan: &Plan, of_run: &OfRun, pairs: &[Pair]) -> Outcome {
        let folder = Temporary::make()?;
        // Executors are for the whole program's life, and so is this one.
        let sim: &'static dyn Executor = Box::leak(Box::new(Sim::explaining(&folder.0)));
        let is_asked =
            |cell: &Cell| !cell.target.duplicate && pairs.iter().flatten().any(|name| *name == cell.target.name);
        let mut cells = Vec::new();
        for cell in order(plan, 1).iter().filter(|cell| is_asked(cell)) {
            tell(&visible_lines(&format!("simulating {} ({}) again", cell.target.name, cell.work.name)));
            cells.push(explained(plan, cell, of_run, sim, &folder.0)?);
        }
        if let Some(file) = &self.stacks {
            deliver(self.stacks_of(&cells).as_bytes(), Some(file))?;
        }
        let (text, is_found) = self.written(plan, of_run, &cells, pairs)?;
        deliver(text.as_bytes(), self.output.as_deref())?;
        Ok(if is_found { 0 } else { FAILED })
    }

    fn is_wanted(&self, phase: &owners::Breakdown) -> bool {
        self.phase.as_ref().is_none_or(|wanted| *wanted == phase.phase)
    }

    fn stacks_of(&self, cells: &[Explained]) -> String {
        let lines = |cell: &Explained| {
            let all = owners::Breakdown::sum(cell.phases.iter().filter(|phase| self.is_wanted(phase)));
            all.stacks().lines().map(|line| format!("{};{line}\n", cell.target.replace(';', ","))).collect::<String>()
        };
        cells.iter().map(lines).collect()
    }

    /// Whether anything could be compared, too.
    fn written(&self, plan: &Plan, of_run: &OfRun, cells: &[Explained], pairs: &[Pair]) -> Result<(String, bool)> {
        // Sentences first: they are what is asked for.
        let (mut sentences, mut tables, mut found) = (String::new(), String::new(), Vec::new());
        for work in &plan.works {
            for [target, reference] in pairs {
                let of = |name: &String| cells.iter().find(|cell| cell.target == *name && cell.work == work.name);
                let (Some(one), Some(other)) = (of(target), of(reference)) else { continue };
                for difference in &self.differences(one, other) {
                    let shown = Shown::of(plan, of_run, &work.name, [target, reference], difference, one);
                    sentences.push_str(&shown.sentences);
                    tables.push_str(&shown.table);
                    found.push(shown.json);
                }
            }
        }
        if let (true, Some(phase)) = (found.is_empty(), &self.phase) {
            bail!("no phase `{}` was explained; `pickfs report` shows the phases", phase.escape_debug());
        }
        let sameness: Vec<String> = cells.iter().filter_map(said_of_sameness).collect();
        let mut text = format!("{sentences}\n{tables}");
        text.extend(sameness.iter().map(|line| format!("{line}\n")));
        let is_found = !found.is_empty();
        if self.format == "json" {
            let cells: Vec<Value> = cells.iter().map(cell_in_json).collect();
            text = serde_json::to_string_pretty(&json!({ "differences": found, "cells": cells }))? + "\n";
        }
        Ok((visible_lines(&text), is_found))
    }

    /// All phases together, where there are several, and then each.
    fn differences(&self, one: &Explained, other: &Explained) -> Vec<owners::Difference> {
        let both =
            one.phases.iter().filter(|phase| self.is_wanted(phase)).filter_map(|phase| {
                Some((phase, other.phases.iter().find(|reference| reference.phase == phase.phase)?))
            });
        let both: Vec<(&owners::Breakdown, &owners::Breakdown)> = both.collect();
        let whole = (both.len() > 1).then(|| {
            let [one, other] = [
                owners::Breakdown::sum(both.iter().map(|(one, _)| *one)),
                owners::Breakdown::sum(both.iter().map(|(_, other)| *other)),
            ];
            owners::between(&one, &other)
        });
        whole.into_iter().chain(both.iter().map(|(one, other)| owners::between(one, other))).flatten().collect()
    }
}

fn own_targets(plan: &Plan) -> impl Iterator<Item = &str> {
    plan.targets.iter().filter(|target| !target.duplicate).map(|target| target.name.as_str())
}

/// The best target of the verdict against each other one. Of several, and where there is none, the one with the least time.
fn default_pairs(plan: &Plan, names: &[&str], folded: &Folded) -> Result<Vec<Pair>> {
    let model = analysis::model(folded)?;
    let work = model.overall.as_ref().map(|overall| &overall.work).or(model.works.first());
    let verdict = work.map(|work| work.verdict.best.as_slice()).unwrap_or_default();
    let best = verdict.iter().filter_map(|at| Some(model.targets.get(*at)?.name.as_str()));
    let best: Vec<&str> = best.filter(|name| names.contains(name)).collect();
    let time =
        |name: &&&str| plan.works.iter().map(|work| native::all_time(folded, &work.name, name)).sum::<Option<f64>>();
    let among = if best.is_empty() { names } else { &best };
    let measured = among.iter().filter(|name| time(name).is_some());
    let best = measured.min_by(|one, other| time(one).unwrap_or(f64::MAX).total_cmp(&time(other).unwrap_or(f64::MAX)));
    let best = *best.context("no target of the run was measured in all its works")?;
    let others: Vec<Pair> =
        names.iter().filter(|name| **name != best).map(|name| [name.to_string(), best.to_string()]).collect();
    if others.is_empty() {
        return Err(Exit::usage("the run has one target, and nothing to compare it with"));
    }
    Ok(others)
}

fn explained(plan: &Plan, cell: &Cell, of_run: &OfRun, sim: &'static dyn Executor, folder: &Path) -> Result<Explained> {
    let journal = folder.join(format!("{}.jsonl", cell.id));
    let outcome = run::part(plan, &cell.id, &[sim], &journal, &mut Lines::default())?;
    let name = &cell.target.name;
    match outcome {
        Ended::Done => {}
        Ended::Skipped(reasons) => bail!("{name} cannot be simulated again: {}", reasons.join("; ")),
        Ended::Failed(why) => bail!("simulating {name} again has failed: {why}"),
    }
    let found = Explanation::read(folder, &cell.id)?;
    let Processor { dilation, compression, .. } = Processor::of(&cell.target.machine)?;
    let pace = owners::Pace { dilation, compression };
    let phases = owners::breakdowns(&found.profile, &found.clocks, &found.symbols, pace)?;
    let again = fold_file(&journal)?;
    let sameness = of_run.model.is_none().then(|| sameness(of_run.folded, &again, &cell.id));
    Ok(Explained { target: name.clone(), work: cell.work.name.clone(), phases, sameness })
}

fn sameness(of_run: &Folded, again: &Folded, id: &str) -> Sameness {
    let (Some(old), Some(new)) = (of_run.find_cell(id), again.find_cell(id)) else { return Sameness::default() };
    let mut pairs = of_run.samples(old).zip(again.samples(new));
    let same = pairs.by_ref().filter(|(old, new)| old == new).count();
    let most = of_run.samples(old).count().max(again.samples(new).count());
    let content = "simulated disk's content";
    let same_disk =
        old.provenance.facts.get(content).is_some_and(|disk| new.provenance.facts.get(content) == Some(disk));
    Sameness { same, different: most - same, same_disk }
}

fn said_of_sameness(cell: &Explained) -> Option<String> {
    let (target, Sameness { same, different, same_disk }) = (&cell.target, cell.sameness.as_ref()?);
    let all = same + different;
    Some(match (different, same_disk) {
        (0, true) if all > 0 => {
            format!("{target}: simulated again, all {all} samples and the disk are those of the run.")
        }
        _ => format!(
            "{target}: simulated again, {different} of {all} samples are not those of the run{}: another version of pickfs or another \
             guest. What is explained is the new simulation.",
            if *same_disk { "" } else { ", nor is the disk" }
        ),
    })
}

/// A difference in words, as a table, and as JSON.
struct Shown {
    sentences: String,
    table: String,
    json: Value,
}

impl Shown {
    fn of(
        plan: &Plan,
        of_run: &OfRun,
        work: &str,
        [target, reference]: [&str; 2],
        difference: &owners::Difference,
        cell: &Explained,
    ) -> Shown {
        let threshold = plan.stop.threshold;
        let sentence = words::sentence(difference, target, reference, threshold);
        let mut json = json!({
            "work": work, "target": target, "reference": reference, "sentence": sentence, "difference": difference,
        });
        let mut sentences = String::new();
        if let Some(model) = &of_run.model {
            let all = || cell.phases.iter().map(|phase| phase.phase.as_str()).collect();
            let phases = if difference.phase == owners::ALL { all() } else { vec![difference.phase.as_str()] };
            let measured = native::measured(of_run.folded, work, [target, reference], &phases);
            let agrees = measured.is_some_and(|measured| owners::agrees(measured, difference.share, threshold));
            json["simulated_on"] = model.as_str().into();
            json["measured_share"] = measured.into();
            json["agrees"] = agrees.into();
            sentences = match measured {
                Some(measured) => words::agreement(difference, target, reference, (measured, model), agrees) + "\n",
                None => format!("{}: the run has not measured it.\n", difference.phase),
            };
            if !agrees {
                return Shown { sentences, table: String::new(), json };
            }
        }
        let table: String =
            words::table(difference, target, reference).iter().map(|line| format!("{line}\n")).collect();
        Shown { sentences: format!("{sentences}{sentence}\n"), table: table + "\n", json }
    }
}

fn cell_in_json(cell: &Explained) -> Value {
    let mut json = json!({ "target": cell.target, "work": cell.work, "phases": cell.phases });
    if let Some(Sameness { same, different, same_disk }) = cell.sameness {
        json["samples"] = json!({ "same": same, "different": different });
        json["same_disk"] = same_disk.into();
    }
    json
}

/// A folder of this user's that goes with the program.
struct Temporary(PathBuf);

impl Temporary {
    fn make() -> Result<Temporary> {
        let path = std::env::temp_dir().join(format!("pickfs-why-{}", std::process::id()));
        let made = OwnFolder::make(&path).with_context(|| format!("cannot make the folder {}", path.display()));
        made.map(|_| Temporary(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
