//! Our own JSON (`pickfs report --format json`): a whole run with its plan, its order and its rounds.

use super::{Contents, Importer};
use crate::journal::{
    Begin, DeviceCourse, End, Flag, Histogram, Ledger, Look, Outcome, Provenance, Record, Run, SCHEMA, Sample,
};
use crate::plan::Plan;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;

pub struct Pickfs;

/// Of `schema/report-1.schema.json`.
const LAYOUT: u32 = 1;

#[derive(Deserialize)]
struct Document {
    schema: u32,
    run: RunTold,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    targets: Vec<TargetTold>,
    plan: Plan,
    #[serde(default)]
    looks: Vec<Look>,
    #[serde(default)]
    run_ledger: Ledger,
    cells: Vec<CellTold>,
}

#[derive(Deserialize)]
struct RunTold {
    id: String,
    started: String,
    pickfs: String,
    #[serde(default)]
    imported: String,
}

#[derive(Deserialize)]
struct TargetTold {
    name: String,
    #[serde(default)]
    weakened: Vec<String>,
    #[serde(default)]
    facts: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct CellTold {
    id: String,
    round: u32,
    target: String,
    work: String,
    outcome: String,
    #[serde(default)]
    why: Vec<String>,
    #[serde(default)]
    flags: Vec<FlagTold>,
    #[serde(default)]
    histograms: Vec<HistogramTold>,
    /// Missing in exports of early versions: then what its target tells counts.
    provenance: Option<Provenance>,
    #[serde(default)]
    ledger: Ledger,
    #[serde(default)]
    device_courses: Vec<CourseTold>,
    samples: Vec<(String, String, Option<f64>)>,
}

#[derive(Deserialize)]
struct FlagTold {
    #[serde(default)]
    phase: String,
    flag: String,
    why: String,
}

#[derive(Deserialize)]
struct HistogramTold {
    phase: String,
    operation: String,
    encoded: String,
}

#[derive(Deserialize)]
struct CourseTold {
    phase: String,
    until_ns: Vec<u64>,
    read_bytes: Vec<u64>,
    write_bytes: Vec<u64>,
}

impl Importer for Pickfs {
    fn name(&self) -> &'static str {
        "pickfs"
    }

    fn about(&self) -> &'static str {
        "pickfs report --format json: a whole run"
    }

    fn recognises(&self, text: &str) -> bool {
        text.starts_with("{\"schema\":") && text.contains("\"cells\":")
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let document: Document = serde_json::from_str(text).context("this is no report of pickfs in JSON")?;
        let newer = "it is of a newer pickfs; take that one to import it";
        ensure!(document.schema == LAYOUT, "its schema is {}, not {LAYOUT}: {newer}", document.schema);
        Ok(Contents::Journal(document.records()))
    }
}

impl Document {
    fn records(self) -> Vec<Record> {
        let told = self.run;
        let imported = if told.imported.is_empty() { "pickfs".to_string() } else { told.imported };
        let run =
            Run { schema: SCHEMA, pickfs: told.pickfs, id: told.id, started: told.started, plan: self.plan, imported };
        let mut records = vec![Record::Run(Box::new(run))];
        records.push(Record::Provenance(Provenance { facts: self.environment, ..Provenance::default() }));
        records.push(Record::Ledger(Ledger { cell: "run".into(), ..self.run_ledger }));
        let targets: BTreeMap<String, TargetTold> =
            self.targets.into_iter().map(|target| (target.name.clone(), target)).collect();
        for cell in self.cells {
            let target = targets.get(&cell.target);
            cell.records(target, &mut records);
        }
        records.extend(self.looks.into_iter().map(Record::Look));
        records
    }
}

impl CellTold {
    fn records(self, target: Option<&TargetTold>, records: &mut Vec<Record>) {
        let cell = || self.id.clone();
        let (round, target_name, work) = (self.round, self.target.clone(), self.work.clone());
        records.push(Record::Begin(Begin { cell: cell(), round, target: target_name, work, at: String::new() }));
        let of_target = |target: &TargetTold| {
            let (facts, weakened) = (target.facts.clone(), target.weakened.clone());
            Provenance { facts, weakened, ..Provenance::default() }
        };
        if let Some(found) = self.provenance.clone().or_else(|| target.map(of_target)) {
            records.push(Record::Provenance(Provenance { cell: cell(), ..found }));
        }
        records.push(Record::Ledger(Ledger { cell: cell(), ..self.ledger.clone() }));
        for (phase, metric, value) in &self.samples {
            let (phase, metric) = (phase.clone(), metric.clone());
            records.extend(value.map(|value| Record::Sample(Sample { cell: cell(), phase, metric, value })));
        }
        for told in &self.flags {
            let (phase, flag, why) = (told.phase.clone(), told.flag.clone(), told.why.clone());
            records.push(Record::Flag(Flag { cell: cell(), phase, flag, why }));
        }
        for told in &self.histograms {
            let (phase, operation, encoded) = (told.phase.clone(), told.operation.clone(), told.encoded.clone());
            records.push(Record::Histogram(Histogram { cell: cell(), phase, operation, encoded }));
        }
        for CourseTold { phase, until_ns, read_bytes, write_bytes } in self.device_courses {
            records.push(Record::DeviceCourse(DeviceCourse {
                cell: self.id.clone(),
                phase,
                until_ns,
                read_bytes,
                write_bytes,
            }));
        }
        let outcome = match self.outcome.as_str() {
            "done" => Outcome::Done,
            "skipped" => Outcome::Skipped(self.why),
            "failed" => Outcome::Failed(self.why.join("; ")),
            _ => return,
        };
        records.push(Record::End(End { cell: self.id, outcome, at: String::new() }));
    }
}
