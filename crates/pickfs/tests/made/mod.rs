//! Journals of runs that never were: a number of rounds of named targets, each with its factor,
//! from a seed.
#![allow(dead_code, reason = "each of those who include this file needs other parts of it")]

use pickfs_core::journal::{Begin, End, Outcome, Provenance, Record, Run, SCHEMA, Sample};
use pickfs_core::plan::{Chosen, Plan, Settings, Target, Work};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;

/// Phases and their seconds on a target of factor one.
pub const PHASES: [(&str, f64); 2] = [("write", 1.2), ("read", 0.5)];

pub struct Made {
    pub plan: Plan,
    pub kernel: &'static str,
    pub started: &'static str,
    pub records: Vec<Record>,
}

impl Made {
    /// Targets on an image each; with an empty list of factors, no round.
    pub fn new(names: &[&str], factors: &[f64], rounds: u32, seed: u64) -> Made {
        let size =
            Settings([("size".to_string(), (4u64 << 30).into()), ("dir".to_string(), "/somewhere".into())].into());
        let backing = Chosen { name: "image".into(), settings: size };
        let target = |name: &&str| Target { name: name.to_string(), backing: backing.clone(), ..Target::default() };
        let works = vec![Work { name: "tree".into(), ..Work::default() }];
        let targets: Vec<Target> = names.iter().map(target).collect();
        let mut plan = Plan { targets, works, seed: 1, title: "Made up".into(), ..Plan::default() };
        plan.stop.rounds = Some(rounds);
        let mut made = Made { plan, kernel: "6.1", started: "2026-01-31T12:00:00Z", records: Vec::new() };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for round in 1..=rounds {
            for (at, factor) in factors.iter().enumerate() {
                made.cell(at, round, *factor, &mut random);
            }
        }
        made
    }

    fn cell(&mut self, target: usize, round: u32, factor: f64, random: &mut Xoshiro256PlusPlus) {
        let cell = format!("{target}-{round}");
        let name = self.plan.targets[target].name.clone();
        let begin = Begin { cell: cell.clone(), round, target: name, work: "tree".into(), at: String::new() };
        self.records.push(Record::Begin(begin));
        for (phase, seconds) in PHASES {
            let noise = 1.0 + 0.02 * (random.next_u64() as f64 / u64::MAX as f64);
            let time = (seconds * 1e9 * factor * noise).round();
            for (metric, value) in [("time_ns", time), ("work_bytes", 256e6), ("cpu_system_wide_ns", time * 0.8)] {
                let (cell, phase, metric) = (cell.clone(), phase.to_string(), metric.to_string());
                self.records.push(Record::Sample(Sample { cell, phase, metric, value }));
            }
        }
        self.records.push(Record::End(End { cell, outcome: Outcome::Done, at: String::new() }));
    }

    pub fn write(&self, path: &Path) {
        let started = self.started.to_string();
        let (pickfs, plan) = (env!("CARGO_PKG_VERSION").to_string(), self.plan.clone());
        let run = Run { schema: SCHEMA, pickfs, id: ["made ", self.started].concat(), started, plan, ..Run::default() };
        let facts = [("kernel".to_string(), self.kernel.to_string())].into();
        let host = Record::Provenance(Provenance { facts, ..Provenance::default() });
        let first = [Record::Run(Box::new(run)), host];
        let lines =
            first.iter().chain(&self.records).map(|record| serde_json::to_string(record).expect("records are JSON"));
        std::fs::write(path, lines.collect::<Vec<_>>().join("\n") + "\n").expect("the journal is written");
    }
}
