//! `pickfs why`: what the difference between two targets of a simulated run is made of. Their cells
//! of the first round are simulated once more, and each instruction and each idle microsecond gets
//! an owner. A run of this machine is explained by its simulation.

#![expect(clippy::disallowed_methods, reason = "says how long more simulations will take")]

mod here;
mod native;
mod proof;

use super::after::give_back;
use super::report::{EXPLANATION, beside, deliver, put, width};
use super::{Exit, FAILED, Outcome, Verb, did_you_mean, journals};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use pickfs_core::journal::{Folded, Outcome as Ended, fold_file};
use pickfs_core::plan::{Cell, Plan, Target, nearest, order};
use pickfs_host::analysis::{self, owners};
use pickfs_host::executor::Executor;
use pickfs_host::executor::sim::{Explanation, NAME, Processor, Sim};
use pickfs_host::executor::vm::RELEASES;
use pickfs_host::render::Options;
use pickfs_host::run::{self, Lines, Trust, tell};
use pickfs_host::wording::text::wrapped;
use pickfs_host::wording::why as words;
use pickfs_system::process::Interrupted;
use pickfs_system::sys::own_folder::OwnFolder;
use pickfs_system::visible::visible_lines;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Explain the difference between two targets of a run
///
/// Their cells of round 1 are simulated again, with the same results, while a plugin of QEMU's
/// counts the instructions of each function. Then each named cause is taken away from both targets,
/// and they are simulated once more: the difference must shrink by its part. A run without --sim is
/// explained by a simulation of its plan, where the two agree.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Journal of a run; @last is the newest in ./pickfs-runs
    #[arg(default_value = "@last")]
    run: PathBuf,
    /// Targets to be explained, and last the one that they are compared with; by default each
    /// slower one with the best
    #[arg(long, value_name = "A,..,B", value_delimiter = ',', num_args = 1)]
    between: Vec<String>,
    /// One phase alone; by default each, and all together
    #[arg(long)]
    phase: Option<String>,
    /// For a run without --sim: the model of a disk that it is simulated on; by default the nearest
    /// to the run's disk
    #[arg(long, value_name = "MODEL")]
    disk: Option<String>,
    /// For a run without --sim: the release of Debian whose kernel simulates it (bookworm)
    #[arg(long, value_name = "RELEASE", value_parser = PossibleValuesParser::new(RELEASES))]
    kernel: Option<String>,
    /// For a run without --sim: also estimate the same from samples that perf(1) takes here, in
    /// seven more rounds
    #[arg(long)]
    here: bool,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(["text", "json"]))]
    format: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write nanoseconds by target, owner and function or part of the disk, as programs that draw
    /// flame graphs read them
    #[arg(long, value_name = "FILE")]
    stacks: Option<PathBuf>,
    /// Leave out the simulations that prove the causes
    #[arg(long)]
    no_proof: bool,
    /// A journal that this user did not begin here, such as a copy; read it first
    #[arg(long)]
    trust: bool,
}

/// As `pickfs why` without other flags.
pub(crate) fn explain(journal: &Path, trust: bool) -> Outcome {
    let (run, format) = (journal.to_path_buf(), "text".to_string());
    Arguments { run, format, trust, ..Arguments::default() }.run()
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
        let here = self.here.then(|| here::plan(&plan, &pairs)).transpose()?;
        let (plan, model) = self.to_be_simulated(plan, &folded)?;
        let of_run = OfRun { folded: &folded, model, here };
        run::count_stop_requests()?;
        match self.explained(&plan, &of_run, &pairs, &journal) {
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
    /// What is done here once more, while perf looks.
    here: Option<Plan>,
}

/// How cells are simulated.
struct Resimulation<'a> {
    plan: &'a Plan,
    sim: &'static dyn Executor,
    folder: &'a Path,
}

/// Two cells, and their difference in one phase or all.
struct Compared<'c> {
    cells: [&'c Explained; 2],
    difference: owners::Difference,
    /// Which.
    phases: Vec<&'c str>,
    /// By how much the target took longer in the run, of the reference's time; none where that was
    /// a simulation.
    measured: Option<Option<f64>>,
    /// The simulation stands for what was measured.
    agrees: bool,
    /// As samples on this machine show it.
    here: Option<here::Estimate>,
}

/// A cell that was simulated again.
struct Explained {
    target: Target,
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
            format: "json".into(),
            output: Some(output.to_path_buf()),
            no_proof: true,
            ..Arguments::default()
        }
    }

    /// The plan of the simulation; with the model, where the run was none.
    fn to_be_simulated(&self, plan: Plan, folded: &Folded) -> Result<(Plan, Option<String>)> {
        if plan.executor == NAME {
            return match self.disk.is_some() || self.kernel.is_some() {
                true => Err(Exit::usage("--disk and --kernel are for runs without --sim: this one has its own")),
                false => Ok((plan, None)),
            };
        }
        let given = self.disk.as_deref().map(pickfs_disks::whole_name);
        let model = given.unwrap_or_else(|| native::nearest_model(&plan, folded).to_string());
        if !model.contains('/') && pickfs_disks::find(&model).is_none() {
            let near = did_you_mean("", nearest(&model, pickfs_disks::ALL.iter().map(|entry| entry.name)));
            let model = model.escape_debug();
            return Err(Exit::usage(format!(
                "--disk: there is no model of a disk `{model}`; {near}`pickfs list disks` shows all"
            )));
        }
        Ok((native::simulated(&plan, folded, &model, self.kernel.as_deref())?, Some(model)))
    }

    fn pairs(&self, plan: &Plan, folded: &Folded) -> Result<Vec<Pair>> {
        let names: Vec<&str> = own_targets(plan).collect();
        match &self.between[..] {
            [] => default_pairs(plan, &names, folded),
            [others @ .., reference] if !others.is_empty() && !others.contains(reference) => {
                let known = |given: &String| {
                    // As --fs spells it, too: "btrfs:zstd:1" is "btrfs zstd:1".
                    let is_it = |name: &&&str| **name == *given || name.replacen(' ', ":", 1) == *given;
                    let found = names.iter().find(is_it).map(|name| name.to_string());
                    let (given, names) = (given.escape_debug(), names.join(", "));
                    found.ok_or_else(|| Exit::usage(format!("the run has no target `{given}`; it has {names}")))
                };
                others.iter().map(|other| Ok([known(other)?, known(reference)?])).collect()
            }
            _ => Err(Exit::usage("--between takes two targets or more, such as --between btrfs,ext4")),
        }
    }

    fn explained(&self, plan: &Plan, of_run: &OfRun, pairs: &[Pair], journal: &Path) -> Outcome {
        let folder = Temporary::make()?;
        // Executors are for the whole program's life, and so is this one.
        let sim: &'static dyn Executor = Box::leak(Box::new(Sim::explaining(&folder.0)));
        let is_asked =
            |cell: &Cell| !cell.target.duplicate && pairs.iter().flatten().any(|name| *name == cell.target.name);
        let again = Resimulation { plan, sim, folder: &folder.0 };
        let (asked, begun): (Vec<Cell>, _) = (order(plan, 1).into_iter().filter(is_asked).collect(), Instant::now());
        for Cell { target, work, .. } in &asked {
            tell(&visible_lines(&format!("simulating {} ({}) again", target.name, work.name)));
        }
        let (found, of_again) = simulated(&asked, &again, plan)?;
        let mut cells = Vec::new();
        for (cell, phases) in asked.into_iter().zip(found) {
            let phases = phases.with_context(|| format!("{} cannot be simulated again", cell.target.name))?;
            let sameness = of_run.model.is_none().then(|| sameness(of_run.folded, &of_again, &cell.id));
            cells.push(Explained { target: cell.target, work: cell.work.name, phases, sameness });
        }
        if let Some(file) = &self.stacks {
            deliver(self.stacks_of(&cells).as_bytes(), Some(file))?;
        }
        let each = begun.elapsed() / cells.len().max(1) as u32;
        let mut compared = self.compared(plan, of_run, &cells, pairs);
        if let Some(plan) = &of_run.here {
            if let Err(error) = here::estimate(&mut compared, plan, &folder.0) {
                if error.is::<run::NotUndone>() {
                    std::mem::forget(folder);
                }
                return Err(error);
            }
        }
        if !self.no_proof {
            proof::prove(&mut compared, &again, each)?;
        }
        self.keep(plan, of_run, &cells, &compared, journal);
        let (text, is_found) = self.written(plan, of_run, &cells, &compared)?;
        deliver(text.as_bytes(), self.output.as_deref())?;
        Ok(if is_found { 0 } else { FAILED })
    }

    /// For reports of the run. It is printed also where it cannot be kept.
    fn keep(&self, plan: &Plan, of_run: &OfRun, cells: &[Explained], compared: &[Compared], journal: &Path) {
        let flame = |cell: &Explained| owners::Flame::of(&cell.work, &cell.target.name, &self.wanted(cell));
        let shown: Vec<&Compared> = compared.iter().filter(|one| one.agrees).collect();
        let is_shown = |cell: &Explained| shown.iter().flat_map(|one| one.cells).any(|of| std::ptr::eq(of, cell));
        let kept = owners::Kept {
            run: of_run.folded.run.as_ref().map(|run| run.id.clone()).unwrap_or_default(),
            simulated_on: of_run.model.clone(),
            threshold: plan.stop.threshold,
            is_proved: !self.no_proof,
            pairs: shown.iter().map(|one| one.kept()).collect(),
            flames: cells.iter().filter(|cell| is_shown(cell)).map(flame).collect(),
        };
        let path = beside(journal, EXPLANATION);
        let written = serde_json::to_vec(&kept).map_err(anyhow::Error::from).and_then(|text| put(&text, &path));
        match written {
            Ok(()) => give_back(&path),
            Err(error) => tell(&format!("reports of the run do not show it: {error:#}")),
        }
    }

    fn compared<'c>(&self, plan: &Plan, of_run: &OfRun, cells: &'c [Explained], pairs: &[Pair]) -> Vec<Compared<'c>> {
        let mut all = Vec::new();
        for work in &plan.works {
            for pair in pairs {
                let of = |name: &String| cells.iter().find(|cell| cell.target.name == *name && cell.work == work.name);
                let [Some(one), Some(other)] = pair.each_ref().map(of) else { continue };
                let found = self.differences(one, other).into_iter();
                all.extend(found.map(|(phases, found)| Compared::of(plan, of_run, [one, other], &phases, found)));
            }
        }
        all
    }

    fn is_wanted(&self, phase: &owners::Breakdown) -> bool {
        self.phase.as_ref().is_none_or(|wanted| *wanted == phase.phase)
    }

    /// As one.
    fn wanted(&self, cell: &Explained) -> owners::Breakdown {
        owners::Breakdown::sum(cell.phases.iter().filter(|phase| self.is_wanted(phase)))
    }

    fn stacks_of(&self, cells: &[Explained]) -> String {
        let lines = |cell: &Explained| {
            self.wanted(cell)
                .stacks()
                .lines()
                .map(|line| format!("{};{line}\n", cell.target.name.replace(';', ",")))
                .collect::<String>()
        };
        cells.iter().map(lines).collect()
    }

    /// Whether anything could be compared, too.
    fn written(
        &self,
        plan: &Plan,
        of_run: &OfRun,
        cells: &[Explained],
        compared: &[Compared],
    ) -> Result<(String, bool)> {
        // Sentences first: they are what is asked for.
        let (mut sentences, mut tables, mut found) = (String::new(), String::new(), Vec::new());
        for one in compared {
            let shown = DifferenceReport::of(plan, of_run, one, !self.no_proof);
            sentences.push_str(&shown.sentences);
            tables.push_str(&shown.table);
            found.push(shown.json);
        }
        if compared.iter().any(|one| !one.agrees) {
            sentences.push_str(&format!("{}\n", words::NO_EXPLANATION));
        }
        if let (true, Some(phase)) = (found.is_empty(), &self.phase) {
            bail!("no phase `{}` was explained; `pickfs report` shows the phases", phase.escape_debug());
        }
        let sameness: Vec<String> = cells.iter().filter_map(said_of_sameness).collect();
        let width = if self.output.is_some() { Options::default().width } else { width() };
        let [said, sameness] = [sentences, sameness.join("\n")].map(|sentences| filled(&sentences, width));
        let mut text = format!("{said}\n{tables}{sameness}");
        let is_found = !found.is_empty();
        if self.format == "json" {
            let cells: Vec<Value> = cells.iter().map(cell_in_json).collect();
            text = serde_json::to_string_pretty(&json!({ "differences": found, "cells": cells }))? + "\n";
        }
        Ok((visible_lines(&text), is_found))
    }

    /// All phases together, where there are several, and then each; with the names of their phases.
    fn differences<'e>(&self, one: &'e Explained, other: &Explained) -> Vec<(Vec<&'e str>, owners::Difference)> {
        let is_of_both = |name: &&str| other.phases.iter().any(|reference| reference.phase == **name);
        let wanted = one.phases.iter().filter(|phase| self.is_wanted(phase)).map(|phase| phase.phase.as_str());
        let names: Vec<&str> = wanted.filter(is_of_both).collect();
        let whole = (names.len() > 1).then_some(&names[..]);
        let difference = |names: &[&'e str]| {
            let [one, other] = [one, other].map(|cell| owners::Breakdown::of(&cell.phases, names));
            Some((names.to_vec(), owners::between(&one?, &other?)?))
        };
        whole.into_iter().chain(names.chunks(1)).filter_map(difference).collect()
    }
}

fn own_targets(plan: &Plan) -> impl Iterator<Item = &str> {
    plan.targets.iter().filter(|target| !target.duplicate).map(|target| target.name.as_str())
}

/// The best target of the verdict against each other one. Of several, and where there is none, the
/// one with the least time.
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

/// The phases of each cell, and the journal of all.
fn simulated(
    cells: &[Cell],
    again: &Resimulation,
    plan: &Plan,
) -> Result<(Vec<Result<Vec<owners::Breakdown>>>, Folded)> {
    let first = cells.first().context("no cell to simulate")?;
    let journal = again.folder.join(format!("{}.jsonl", first.id));
    let outcomes = run::parts(plan, cells, &[again.sim], &journal, &mut Lines::default())?;
    let found = cells.iter().zip(outcomes).map(|(cell, outcome)| explanation(cell, outcome, again)).collect();
    Ok((found, fold_file(&journal)?))
}

fn explanation(cell: &Cell, outcome: Ended, again: &Resimulation) -> Result<Vec<owners::Breakdown>> {
    match outcome {
        Ended::Done => {}
        Ended::Skipped(reasons) => bail!("{}", reasons.join("; ")),
        Ended::Failed(why) => bail!("{why}"),
    }
    let found = Explanation::read(again.folder, &cell.id)?;
    let Processor { dilation, compression, user_mode, .. } = Processor::of(&cell.target.machine)?;
    let pace = owners::Pace { dilation, compression, user_mode };
    owners::breakdowns(&found.profile, &found.clocks, &found.symbols, pace)
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
    let (target, Sameness { same, different, same_disk }) = (&cell.target.name, cell.sameness.as_ref()?);
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

impl<'c> Compared<'c> {
    fn of(
        plan: &Plan,
        of_run: &OfRun,
        cells: [&'c Explained; 2],
        phases: &[&'c str],
        mut difference: owners::Difference,
    ) -> Compared<'c> {
        let names = cells.map(|cell| cell.target.name.as_str());
        let share = (difference.share, plan.stop.threshold);
        difference.noise = native::noise(of_run.folded, &cells[0].work, names, phases, share);
        let measured = of_run.model.is_some().then(|| native::measured(of_run.folded, &cells[0].work, names, phases));
        let stands = |measured: f64| owners::agrees(measured, difference.share, plan.stop.threshold);
        let agrees = measured.is_none_or(|measured| measured.is_some_and(stands));
        Compared { cells, difference, phases: phases.to_vec(), measured, agrees, here: None }
    }
}

impl Compared<'_> {
    fn kept(&self) -> owners::Pair {
        let [target, reference] = self.cells.map(|cell| cell.target.name.clone());
        owners::Pair { work: self.cells[0].work.clone(), target, reference, difference: self.difference.clone() }
    }
}

/// A difference in words, as a table, and as JSON.
struct DifferenceReport {
    sentences: String,
    table: String,
    json: Value,
}

impl DifferenceReport {
    fn of(plan: &Plan, of_run: &OfRun, compared: &Compared, is_proved: bool) -> DifferenceReport {
        let (difference, threshold) = (&compared.difference, plan.stop.threshold);
        let [target, reference] = compared.cells.map(|cell| cell.target.name.as_str());
        let sentence = words::sentence(difference, target, reference, threshold);
        let mut json = json!({
            "work": compared.cells[0].work, "target": target, "reference": reference, "sentence": sentence,
            "difference": difference,
        });
        let mut sentences = String::new();
        if let (Some(model), Some(measured)) = (&of_run.model, compared.measured) {
            json["simulated_on"] = model.as_str().into();
            json["measured_share"] = measured.into();
            json["agrees"] = compared.agrees.into();
            let said = |measured| words::agreement(difference, target, reference, (measured, model), compared.agrees);
            sentences = match measured {
                Some(measured) => said(measured) + "\n",
                None => format!("{}: the run has not measured it.\n", difference.phase),
            };
        }
        let table = |difference| {
            let lines = words::table(difference, target, reference);
            lines.iter().map(|line| format!("{line}\n")).collect::<String>() + "\n"
        };
        let mut tables = String::new();
        if compared.agrees {
            sentences.push_str(&format!("{sentence}\n"));
            if is_proved && difference.has_causes(threshold) {
                sentences.extend(words::proofs(difference).iter().map(|line| format!("    {line}\n")));
            }
            tables = table(difference);
        }
        if let Some(here) = &compared.here {
            json["here"] = json!(here);
            sentences.push_str(&here.sentences([target, reference], difference, threshold));
            tables.push_str(&table(&here.difference));
        }
        DifferenceReport { sentences, table: tables, json }
    }
}

/// Sentences, a line each, broken where they are wider.
fn filled(sentences: &str, width: usize) -> String {
    let line = |line: &str| {
        let sentence = line.trim_start();
        wrapped(&line[..line.len() - sentence.len()], sentence, width) + "\n"
    };
    sentences.lines().map(line).collect()
}

fn cell_in_json(cell: &Explained) -> Value {
    let mut json = json!({ "target": cell.target.name, "work": cell.work, "phases": cell.phases });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_fit_the_terminal() {
        let said =
            filled("Why a takes 7.5 % longer than b.\n    no time for reads: predicted +4 %, simulated +5 %\n", 30);
        let wanted =
            "Why a takes 7.5 % longer than\nb.\n    no time for reads:\n      predicted +4 %,\n      simulated +5 %\n";
        assert_eq!((said.as_str(), filled("", 30)), (wanted, String::new()));
    }
}
