//! Results of other programs -> records of a journal, so that reports, exports and comparisons read
//! them like our own. Each foreign format has its own file.
//!
//! This room must not know how anything is measured, judged or printed. The order in which another
//! program worked is unknown, and so is what it did to the machine: all values of one target, work
//! and phase are repeats of one observation, which has no interval, unless the file declares them
//! as rounds (exports of pickfs do) or the user does.
//!
//! Must not know: `analysis`, `executor`, `render`, `run`.

mod bonnie;
mod csv;
mod fio;
mod fs_benchmark;
mod hyperfine;
mod pgbench;
mod pgbench_log;
mod phoronix;
mod pickfs;

use anyhow::{Context, Result, bail};
use pickfs_core::journal::{Begin, End, Flag, Outcome, Provenance, Record, Run, SCHEMA, Sample, typed};
use pickfs_core::plan::{Chosen, Headline, Judged, Plan, Target, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One foreign format.
pub trait Importer: Sync {
    /// As typed after `--from`.
    fn name(&self) -> &'static str;
    fn about(&self) -> &'static str;
    /// A guess from what the text looks like; [`Importer::read`] is the judge.
    fn recognises(&self, text: &str) -> bool;
    fn read(&self, text: &str) -> Result<Contents>;
}

/// Every importer, sorted by name.
pub const ALL: &[&dyn Importer] = &[
    &bonnie::Bonnie,
    &csv::Csv,
    &fio::Fio,
    &hyperfine::Hyperfine,
    &fs_benchmark::FsBenchmark,
    &pgbench::Pgbench,
    &pgbench_log::PgbenchLog,
    &phoronix::Phoronix,
    &pickfs::Pickfs,
];

/// What a file holds.
pub enum Contents {
    Figures(Figures),
    /// A whole run.
    Journal(Vec<Record>),
}

/// Values without a run.
#[derive(Debug, Default)]
pub struct Figures {
    pub measures: Vec<Measure>,
    /// Settings in effect, as far as the file has them.
    pub facts: BTreeMap<String, String>,
    pub doubts: Vec<Doubt>,
    /// The program says that its work has failed: then there is no time.
    pub failed: Option<String>,
    /// Works whose phases the file adds up itself. Those of others may have no unit in common.
    pub summed: BTreeSet<String>,
    /// By work, what its program shows first: reports show that in place of times.
    pub headlines: BTreeMap<String, Vec<Headline>>,
}

/// What is missing or in doubt.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    pub about: About,
    pub phase: String,
    pub why: String,
}

/// What a doubt is about.
#[derive(Clone, Debug, PartialEq)]
pub enum About {
    /// The target that the file's label names.
    File,
    /// One with values.
    Target { target: String, work: String },
    /// Results without a value.
    Run,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// `None`: what the file's label says.
    pub target: Option<String>,
    pub work: String,
    pub phase: String,
    /// Its unit is the end of the name.
    pub metric: String,
    /// `None`: nothing says that it is one of several rounds.
    pub round: Option<u32>,
    /// Finite.
    pub value: f64,
}

impl Figures {
    /// Says what the judged times are of, where it is not what the program timed.
    fn time_of(&mut self, what: &str) {
        let known = self.facts.entry("a time is that of".into()).or_default();
        match known.as_str() {
            "" => *known = what.into(),
            said if said.contains(what) => {}
            _ => *known += &format!("; of {what}"),
        }
    }

    /// A value of the file's own target; what is no number is left out.
    pub(crate) fn say(&mut self, work: &str, phase: &str, metric: &str, value: f64) {
        let (work, phase, metric) = (work.to_string(), phase.to_string(), metric.to_string());
        self.add(Measure { target: None, work, phase, metric, round: None, value });
    }

    /// A value that the program shows first, under this name.
    pub(crate) fn show(&mut self, work: &str, phase: &str, (metric, name): (&str, &str), value: f64) {
        self.say(work, phase, metric, value);
        self.headline(work, phase, metric, name);
    }

    pub(crate) fn headline(&mut self, work: &str, phase: &str, metric: &str, name: &str) {
        let headline = Headline { phase: phase.into(), metric: metric.into(), name: format!("{phase}: {name}") };
        let known = self.headlines.entry(work.to_string()).or_default();
        if !known.contains(&headline) {
            known.push(headline);
        }
    }

    pub(crate) fn doubt(&mut self, about: About, phase: &str, why: String) {
        self.doubts.push(Doubt { about, phase: phase.into(), why });
    }

    pub(crate) fn add(&mut self, measure: Measure) {
        if measure.value.is_finite() {
            self.measures.push(measure);
        }
    }
}

/// A file to import.
pub struct File<'a> {
    /// Names the target of values that do not name one themselves.
    pub label: &'a str,
    /// For facts and complaints.
    pub name: &'a str,
    pub text: &'a str,
    /// That of its folder, where folders are rounds.
    pub round: Option<u32>,
}

/// How to read them all.
#[derive(Clone, Copy, Default)]
pub struct ImportOptions<'a> {
    /// The format's name; `None`: each file's format is detected from its content.
    pub from: Option<&'a str>,
    /// The n-th file of a label is its n-th round, if its folder does not say: the user declares
    /// that they were measured in turn.
    pub rounds: bool,
}

pub(crate) fn find(name: &str) -> Option<&'static dyn Importer> {
    ALL.iter().copied().find(|importer| importer.name() == name)
}

/// All files as one journal.
pub fn records(files: &[File], wanted: ImportOptions) -> Result<Vec<Record>> {
    let mut all = Journal::default();
    for (place, file) in files.iter().enumerate() {
        let importer = importer_of(file, wanted)?;
        let contents =
            importer.read(file.text).with_context(|| format!("cannot read {} as {}", file.name, importer.name()))?;
        match contents {
            Contents::Journal(records) if files.len() == 1 => return Ok(records),
            Contents::Journal(_) => bail!("{} is a whole run; import it by itself", file.name),
            Contents::Figures(figures) => {
                let before = files[..place].iter().filter(|other| other.label == file.label).count();
                let round = file.round.unwrap_or(if wanted.rounds { before as u32 + 1 } else { 1 });
                all.take(figures, file, (importer.name(), place + 1), round);
            }
        }
    }
    if all.cells.is_empty() {
        bail!("there is no figure in what was given");
    }
    Ok(all.records())
}

/// The format that a text looks like.
pub fn importer_by_looks(text: &str) -> Option<&'static dyn Importer> {
    ALL.iter().copied().find(|importer| importer.recognises(text))
}

fn importer_of(file: &File, wanted: ImportOptions) -> Result<&'static dyn Importer> {
    let known = || ALL.iter().map(|importer| importer.name()).collect::<Vec<_>>().join(", ");
    if let Some(name) = wanted.from {
        return find(name).with_context(|| format!("no format `{name}`; there are: {}", known()));
    }
    let found = importer_by_looks(file.text);
    let is_ours = || file.text.starts_with("{\"run\":{\"schema\":");
    found.with_context(|| {
        if is_ours() {
            format!("{} is a journal of pickfs already: pickfs report {}", file.name, typed(Path::new(file.name)))
        } else {
            format!("the format of {} is not known; name it with --from, one of: {}", file.name, known())
        }
    })
}

/// Target, work, round.
type CellKey = (String, String, u32);

/// What becomes of a cell.
#[derive(Default)]
struct CellFound {
    samples: Vec<(String, String, f64)>,
    doubts: Vec<(String, String)>,
    failed: Option<String>,
}

/// All that was read so far.
#[derive(Default)]
struct Journal {
    programs: Vec<&'static str>,
    facts: BTreeMap<String, String>,
    /// In order of first appearance.
    cells: Vec<(CellKey, CellFound)>,
    places: BTreeMap<CellKey, usize>,
    /// Of what has no cell.
    doubts: Vec<(String, String)>,
    summed: BTreeSet<String>,
    headlines: BTreeMap<String, Vec<Headline>>,
}

impl Journal {
    fn take(&mut self, figures: Figures, file: &File, (program, number): (&'static str, usize), round: u32) {
        if !self.programs.contains(&program) {
            self.programs.push(program);
        }
        self.summed.extend(figures.summed);
        for (work, headlines) in figures.headlines {
            let known = self.headlines.entry(work).or_default();
            known.extend(headlines.into_iter().filter(|one| !known.contains(one)).collect::<Vec<_>>());
        }
        // A shared report need not show the paths of its files.
        let path = Path::new(file.name);
        let last = |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        // Files of one name lie in several folders, which are named with them.
        let folder =
            path.parent().filter(|_| file.round.is_some()).map(|folder| last(folder) + "/").unwrap_or_default();
        self.facts.insert(format!("imported file {number}"), folder + &last(path));
        self.facts.extend(figures.facts.into_iter().map(|(name, value)| (format!("{name} (file {number})"), value)));
        let mut own: Vec<CellKey> = Vec::new();
        for measure in figures.measures {
            let target = measure.target.unwrap_or_else(|| file.label.to_string());
            let key = (target, measure.work, measure.round.unwrap_or(round));
            self.cell(key.clone()).samples.push((measure.phase, measure.metric, measure.value));
            own.push(key);
        }
        let last = own.iter().rev().find(|(target, ..)| target == file.label).cloned();
        // A file without a value is another round of what its label has.
        let known = self.cells.iter().rev().map(|(key, _)| key).find(|(target, ..)| target == file.label);
        let work = known.map_or(program, |(_, work, _)| work).to_string();
        let of_file = last.unwrap_or((file.label.to_string(), work, round));
        for Doubt { about, phase, why } in figures.doubts {
            match about {
                About::File => self.cell(of_file.clone()).doubts.push((phase, why)),
                About::Target { target, work } => {
                    let key = own.iter().rev().find(|(a, b, _)| (a, b) == (&target, &work));
                    if let Some(key) = key.cloned() {
                        self.cell(key).doubts.push((phase, why));
                    }
                }
                About::Run => self.doubts.push((phase, why)),
            }
        }
        if let Some(why) = figures.failed {
            self.cell(of_file).failed.get_or_insert(why);
        }
    }

    fn cell(&mut self, key: CellKey) -> &mut CellFound {
        let at = *self.places.entry(key.clone()).or_insert_with(|| {
            self.cells.push((key, CellFound::default()));
            self.cells.len() - 1
        });
        &mut self.cells[at].1
    }

    /// Phases of a work that all its targets have, for these are what they can be ranked by. None
    /// stands for all.
    fn common_phases(&self, work: &str) -> Vec<String> {
        let mut having: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut targets = BTreeSet::new();
        for ((target, ..), found) in self.cells.iter().filter(|((_, of, _), _)| of == work) {
            targets.insert(target.as_str());
            let phases = found.samples.iter().filter(|(_, metric, _)| metric == "time_ns").map(|(phase, ..)| phase);
            phases.for_each(|phase| {
                having.entry(phase).or_default().insert(target);
            });
        }
        let common = having.iter().filter(|(_, having)| having.len() == targets.len());
        let common: Vec<String> = common.map(|(phase, _)| phase.to_string()).collect();
        if common.len() == having.len() { Vec::new() } else { common }
    }

    fn records(self) -> Vec<Record> {
        let run = Run { schema: SCHEMA, id: "imported".into(), plan: self.plan(), ..Run::default() };
        let run = Run { imported: self.programs.join(", "), ..run };
        let mut records = vec![Record::Run(Box::new(run))];
        records.push(Record::Provenance(Provenance { facts: self.facts, ..Provenance::default() }));
        let flag = |(phase, why)| Flag { cell: String::new(), phase, flag: "imported".into(), why };
        records.extend(self.doubts.into_iter().map(flag).map(Record::Flag));
        for (number, (key, found)) in self.cells.into_iter().enumerate() {
            cell_records(format!("import-{}", number + 1), key, found, &mut records);
        }
        records
    }

    fn plan(&self) -> Plan {
        let mut plan = Plan { title: format!("imported from {}", self.programs.join(", ")), ..Plan::default() };
        for (target, work, _) in self.cells.iter().map(|(key, _)| key) {
            if !plan.targets.iter().any(|known| known.name == *target) {
                plan.targets.push(Target { name: target.clone(), ..Target::default() });
            }
            if !plan.works.iter().any(|known| known.name == *work) {
                let workload = Chosen { name: "imported".into(), ..Chosen::default() };
                let judged = if self.summed.contains(work) {
                    Judged::default()
                } else {
                    Judged { phases: self.common_phases(work), ..Judged::mean_of_phases() }
                };
                let judged = Judged { headlines: self.headlines.get(work).cloned().unwrap_or_default(), ..judged };
                plan.works.push(Work { name: work.clone(), workload, judged, ..Work::default() });
            }
        }
        plan.reference = plan.targets.first().map(|target| target.name.clone()).unwrap_or_default();
        let rounds = self.cells.iter().map(|((.., round), _)| *round).max().unwrap_or(1);
        plan.stop.rounds = Some(rounds);
        plan
    }
}

fn cell_records(id: String, (target, work, round): CellKey, found: CellFound, records: &mut Vec<Record>) {
    let cell = || id.clone();
    records.push(Record::Begin(Begin { cell: cell(), round, target, work, at: String::new() }));
    for (phase, metric, value) in found.samples {
        records.push(Record::Sample(Sample { cell: cell(), phase, metric, value }));
    }
    for (phase, why) in found.doubts {
        records.push(Record::Flag(Flag { cell: cell(), phase, flag: "imported".into(), why }));
    }
    let outcome = found.failed.map_or(Outcome::Done, Outcome::Failed);
    records.push(Record::End(End { cell: id, outcome, at: String::new() }));
}

/// The amount of work that the time is given for where the work ends by time, as in `pickfs run`.
const A_GIB: f64 = (1u64 << 30) as f64;

/// Nanoseconds from seconds; whole where only the last bit of the product says otherwise.
fn nanoseconds(seconds: f64) -> f64 {
    let ns = seconds * 1e9;
    let whole = ns.round();
    if (ns - whole).abs() <= 1e-15 * whole.abs() * 4.0 { whole } else { ns }
}

/// A whole job is the sum of its phases, which come with it in exports of pickfs: it is not one
/// more phase.
fn drop_sums(figures: &mut Figures) {
    const WHOLE_JOB: &str = "whole job";
    let is_round = |measure: &Measure| measure.round.is_some();
    let has_phases = |work: &str| {
        figures.measures.iter().any(|other| is_round(other) && other.work == work && other.phase != WHOLE_JOB)
    };
    let is_sum = |measure: &Measure| is_round(measure) && measure.phase == WHOLE_JOB && has_phases(&measure.work);
    let sums = figures.measures.iter().filter(|measure| is_sum(measure));
    figures.summed = sums.map(|measure| measure.work.clone()).collect();
    let keep: Vec<bool> = figures.measures.iter().map(|measure| !is_sum(measure)).collect();
    let mut keep = keep.into_iter();
    figures.measures.retain(|_| keep.next().unwrap_or(true));
}

/// A finite number above nought, of text that is one.
fn positive(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests;
