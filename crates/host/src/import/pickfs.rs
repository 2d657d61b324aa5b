//! Our own JSON (`pickfs report --format json`): a whole run with its plan, its order and its
//! rounds.

use super::{Contents, Importer};
use crate::exchange::{Cell, Report, SCHEMA, Target};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::{
    self, Begin, DeviceCourse, End, Flag, Histogram, Ledger, Look, Outcome, Provenance, Record, Run, Sample,
};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) struct Pickfs;

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
        let unlike = "this is no report of pickfs in JSON";
        let report: Report = serde_json::from_str(text).context(unlike)?;
        let newer = "it is of a newer pickfs; take that one to import it";
        ensure!(report.schema == SCHEMA, "its schema is {}, not {SCHEMA}: {newer}", report.schema);
        Ok(Contents::Journal(records(report).context(unlike)?))
    }
}

fn records(report: Report) -> Result<Vec<Record>> {
    let run = report.run;
    let imported = if run.imported.is_empty() { "pickfs".to_string() } else { run.imported };
    let plan = Deserialize::deserialize(report.plan)?;
    let looks: Vec<Look> = report.looks.into_iter().map(Deserialize::deserialize).collect::<Result<_, _>>()?;
    let run = Run { schema: journal::SCHEMA, pickfs: run.pickfs, id: run.id, started: run.started, plan, imported };
    let mut records = vec![Record::Run(Box::new(run))];
    records.push(Record::Provenance(Provenance { facts: report.environment, ..Provenance::default() }));
    records.push(Record::Ledger(Ledger { cell: "run".into(), ..report.run_ledger }));
    let targets: BTreeMap<&str, &Target> = report.targets.iter().map(|one| (one.name.as_str(), one)).collect();
    for cell in report.cells.into_vec() {
        let target = targets.get(cell.target.as_str()).copied();
        cell_records(cell, target, &mut records);
    }
    records.extend(looks.into_iter().map(Record::Look));
    Ok(records)
}

/// Exports of early versions have no provenance of cells: that of the target stands for it.
fn cell_records(found: Cell, target: Option<&Target>, records: &mut Vec<Record>) {
    let cell = || found.id.clone();
    let (round, target_name, work) = (found.round, found.target, found.work);
    records.push(Record::Begin(Begin { cell: cell(), round, target: target_name, work, at: String::new() }));
    let of_target = |target: &Target| {
        let (facts, weakened) = (target.facts.clone(), target.weakened.clone());
        Provenance { facts, weakened, ..Provenance::default() }
    };
    let provenance = found.provenance.or_else(|| target.map(of_target));
    records.extend(provenance.map(|found| Record::Provenance(Provenance { cell: cell(), ..found })));
    records.push(Record::Ledger(Ledger { cell: cell(), ..found.ledger }));
    let samples = found.samples.into_vec().into_iter().filter(|(_, _, value)| !value.0.is_nan());
    records.extend(samples.map(|(phase, metric, value)| {
        let (phase, metric) = (phase.into_owned(), metric.into_owned());
        Record::Sample(Sample { cell: cell(), phase, metric, value: value.0 })
    }));
    records.extend(found.flags.into_iter().map(|flag| Record::Flag(Flag { cell: cell(), ..flag })));
    let histograms = found.histograms.into_iter();
    records.extend(histograms.map(|one| Record::Histogram(Histogram { cell: cell(), ..one })));
    let courses = found.device_courses.into_iter();
    records.extend(courses.map(|one| Record::DeviceCourse(DeviceCourse { cell: cell(), ..one })));
    let outcome = match &*found.outcome {
        "done" => Outcome::Done,
        "skipped" => Outcome::Skipped(found.why),
        "failed" => Outcome::Failed(found.why.join("; ")),
        _ => return,
    };
    records.push(Record::End(End { cell: found.id, outcome, at: String::new() }));
}
