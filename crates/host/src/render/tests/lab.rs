//! Journals made up from a seed: what each target's times are multiplied with, and what goes wrong
//! on the way.

use crate::analysis::{Model, model};
use crate::render::{Document, Options, written};
use pickfs_core::journal::*;
use pickfs_core::plan::{Plan, Stop, Target, Work};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

pub(crate) struct Lab {
    pub plan: Plan,
    pub records: Vec<Record>,
    /// Relative spread of one time.
    pub noise: f64,
    random: Xoshiro256PlusPlus,
}

/// Phases and their times in seconds on a target of factor one.
pub(crate) const PHASES: [(&str, f64); 3] = [("write", 1.2), ("tar-read", 0.5), ("remove", 0.2)];

/// One look at the end, unless a test wants more.
const FIXED: Stop =
    Stop { rounds: Some(8), precision: None, race: false, budget_ns: None, cell_ns: 600_000_000_000, threshold: 0.03 };

impl Lab {
    pub(crate) fn new(names: &[&str]) -> Lab {
        Lab::seeded(names, 3)
    }

    pub(crate) fn seeded(names: &[&str], seed: u64) -> Lab {
        let target = |name: &&str| Target { name: name.to_string(), ..Target::default() };
        let works = vec![Work { name: "tree".into(), ..Work::default() }];
        let targets: Vec<Target> = names.iter().map(target).collect();
        let plan = Plan { title: "Daily work".into(), targets, works, stop: FIXED, ..Plan::default() };
        Lab { plan, records: Vec::new(), noise: 0.01, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// As many rounds of every target as there are, each with its factor.
    pub(crate) fn rounds(&mut self, rounds: u32, factors: &[f64]) -> &mut Lab {
        self.plan.stop.rounds = Some(rounds);
        for round in 1..=rounds {
            // What a round does to all targets alike is no difference between them.
            let shared = 1.0 + 0.1 * self.uniform();
            for (at, factor) in factors.iter().enumerate() {
                self.cell(at, round, factor * shared);
            }
        }
        self
    }

    pub(crate) fn cell(&mut self, target: usize, round: u32, factor: f64) {
        let cell = self.begin(target, round);
        for (phase, seconds) in PHASES {
            let time = seconds * 1e9 * factor * (1.0 + self.noise * self.uniform());
            self.sample(&cell, phase, "time_ns", time.round());
            self.sample(&cell, phase, "work_bytes", 256e6);
            self.sample(&cell, phase, "cpu_system_wide_ns", (time * 0.8).round());
        }
        self.end(&cell, Outcome::Done);
    }

    /// Not uniform, but symmetric around nought and about one wide.
    fn uniform(&mut self) -> f64 {
        let mut one = || self.random.next_u64() as f64 / u64::MAX as f64;
        one() + one() + one() - 1.5
    }

    pub(crate) fn begin(&mut self, target: usize, round: u32) -> String {
        let name = self.plan.targets[target].name.clone();
        let cell = format!("{target}-{round}");
        let begin = Begin { cell: cell.clone(), round, target: name, work: "tree".into(), at: String::new() };
        self.records.push(Record::Begin(begin));
        cell
    }

    pub(crate) fn sample(&mut self, cell: &str, phase: &str, metric: &str, value: f64) {
        let (cell, phase, metric) = (cell.to_string(), phase.to_string(), metric.to_string());
        self.records.push(Record::Sample(Sample { cell, phase, metric, value }));
    }

    pub(crate) fn end(&mut self, cell: &str, outcome: Outcome) {
        self.records.push(Record::End(End { cell: cell.to_string(), outcome, at: String::new() }));
    }

    /// A metric of every cell that a target has so far.
    pub(crate) fn also(&mut self, target: usize, phase: &str, metric: &str, value: f64) -> &mut Lab {
        for round in 1..=self.plan.stop.most_rounds() {
            self.sample(&format!("{target}-{round}"), phase, metric, value);
        }
        self
    }

    pub(crate) fn flag(&mut self, target: usize, round: u32, phase: &str, flag: &str, why: &str) {
        let (cell, phase) = (format!("{target}-{round}"), phase.to_string());
        self.records.push(Record::Flag(Flag { cell, phase, flag: flag.into(), why: why.into() }));
    }

    pub(crate) fn provenance(&mut self, target: usize, round: u32, facts: &[(&str, &str)], weakened: &[&str]) {
        let facts: BTreeMap<String, String> = facts.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let weakened = weakened.iter().map(|w| w.to_string()).collect();
        let cell = if round == 0 { String::new() } else { format!("{target}-{round}") };
        self.records.push(Record::Provenance(Provenance { cell, facts, weakened, ..Provenance::default() }));
    }

    pub(crate) fn fail(&mut self, target: usize, round: u32, outcome: Outcome) {
        let cell = self.begin(target, round);
        self.end(&cell, outcome);
    }

    pub(crate) fn folded(&self) -> Folded {
        let run = Run { schema: SCHEMA, id: "r1".into(), plan: self.plan.clone(), ..Run::default() };
        let run = Record::Run(Box::new(run));
        let records = [&run].into_iter().chain(&self.records).map(serde_json::to_string);
        fold(records.collect::<Result<Vec<_>, _>>().unwrap().join("\n").as_bytes()).unwrap()
    }

    pub(crate) fn model(&self) -> Model {
        model(&self.folded()).unwrap()
    }
}

/// What people and programs read of it: of an archive, what is packed in it.
pub(crate) fn rendered(model: &Model, format: &str) -> String {
    let out = written(format, Document::Run(model), &Options::default()).unwrap();
    if format == "ods" {
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(out)).unwrap();
        return std::io::read_to_string(archive.by_name("content.xml").unwrap()).unwrap();
    }
    String::from_utf8(out).unwrap()
}

/// Names of the targets that may be picked for the first work.
pub(crate) fn best(model: &Model) -> Vec<&str> {
    let mut names: Vec<&str> = model.works[0].verdict.best.iter().map(|&at| model.targets[at].name.as_str()).collect();
    names.sort();
    names
}
