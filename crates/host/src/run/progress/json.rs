//! Progress for programs: one JSON object a line. `docs/progress.md` describes each.

use super::{Finish, Progress};
use crate::analysis::{self, Model, Row};
use pickfs_core::journal::{Folded, Look, Outcome, Run};
use pickfs_core::plan::Cell;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;

pub(crate) struct Json {
    out: Box<dyn Write>,
    /// Id of the cell that is under way.
    cell: String,
}

impl Json {
    pub(crate) fn new(out: Box<dyn Write>) -> Json {
        Json { out, cell: String::new() }
    }

    /// Write errors are ignored: the run goes on without a reader.
    fn write(&mut self, event: &str, values: Value) {
        let _ = writeln!(self.out, "{}", line(event, values));
    }
}

fn line(event: &str, values: Value) -> Value {
    let mut line = Map::new();
    line.insert("event".into(), event.into());
    line.insert("at".into(), jiff::Timestamp::now().to_string().into());
    if let Value::Object(values) = values {
        line.extend(values);
    }
    Value::Object(line)
}

/// A message from outside of a run's moments.
pub(crate) fn message(text: &str) -> Value {
    line("message", json!({ "text": text.trim() }))
}

impl Progress for Json {
    fn begin(&mut self, run: &Run, journal: &Path, planned: usize, ended: usize) {
        let targets: Vec<&str> = run.plan.targets.iter().map(|target| target.name.as_str()).collect();
        let works: Vec<&str> = run.plan.works.iter().map(|work| work.name.as_str()).collect();
        let values = json!({
            "run": run.id, "pickfs": run.pickfs, "title": run.plan.title, "journal": journal,
            "targets": targets, "works": works, "reference": run.plan.reference,
            "cells_planned": planned, "cells_ended": ended,
        });
        self.write("run_begun", values);
    }

    fn say(&mut self, text: &str) {
        self.write("message", json!({ "text": text }));
    }

    fn remark(&mut self, text: &str) {
        self.write("message", json!({ "text": text }));
    }

    fn cell(&mut self, cell: &Cell) {
        self.cell.clone_from(&cell.id);
        self.write("cell_begun", of_cell(cell));
    }

    fn phase(&mut self, phase: &str) {
        let values = json!({ "cell": self.cell, "phase": phase });
        self.write("phase_begun", values);
    }

    fn phase_ended(&mut self, phase: &str, ns: f64) {
        let values = json!({ "cell": self.cell, "phase": phase, "time_ns": ns });
        self.write("phase_ended", values);
    }

    fn cell_ended(&mut self, cell: &Cell, outcome: &Outcome, folded: &Folded) {
        let mut values = of_cell(cell);
        let (outcome, reasons) = match outcome {
            Outcome::Done => ("done", Vec::new()),
            Outcome::Skipped(reasons) => ("skipped", reasons.clone()),
            Outcome::Failed(why) => ("failed", vec![why.clone()]),
        };
        values["outcome"] = outcome.into();
        values["reasons"] = reasons.into();
        values["values"] = measured(&cell.id, folded);
        self.write("cell_ended", values);
    }

    fn interim_analysis(&mut self, look: &Look, planned: usize, folded: &Folded) {
        let mut values = serde_json::to_value(look).unwrap_or_default();
        if let Value::Object(values) = &mut values {
            // The line has its own one, and what the statistics have spent is theirs.
            values.retain(|name, _| !["at", "alpha"].contains(&name.as_str()));
        }
        values["cells_planned"] = planned.into();
        let model = analysis::model(folded).ok();
        let (standings, noise) = model.as_ref().map(standings).unwrap_or_default();
        (values["standings"], values["noise"]) = (standings, noise);
        self.write("interim_analysis", values);
    }

    fn end(&mut self, finish: Option<Finish>) {
        let finish = match finish {
            Some(Finish::Enough(enough)) => serde_json::to_value(enough).unwrap_or_default(),
            Some(Finish::Stopped) => "stopped".into(),
            None => "error".into(),
        };
        self.write("run_ended", json!({ "finish": finish }));
    }
}

fn of_cell(cell: &Cell) -> Value {
    json!({ "cell": cell.id, "round": cell.round, "target": cell.target.name, "work": cell.work.name })
}

/// By phase and metric; the last of several.
fn measured(cell: &str, folded: &Folded) -> Value {
    let mut phases: Map<String, Value> = Map::new();
    let samples = folded.find_cell(cell).into_iter().flat_map(|cell| folded.samples(cell));
    for (phase, metric, value) in samples {
        phases.entry(phase).or_insert_with(|| json!({}))[metric] = value.into();
    }
    Value::Object(phases)
}

/// What the pick is about: each target with its time and its ratio to the reference; and the
/// reference's ratio to its second copy.
fn standings(model: &Model) -> (Value, Value) {
    let Some(panel) = model.judged().and_then(|work| work.phases.first()) else { return Default::default() };
    let ratio = |ratio: f64, interval: Option<(f64, f64)>| {
        let (low, high) = interval.unzip();
        json!({ "ratio": ratio, "low": low, "high": high })
    };
    let one = |row: &Row| {
        let name = &model.targets[row.target].name;
        let race = panel.race.as_ref();
        let at_most_slower = race.map(|race| race.regret[row.target]).filter(|share| share.is_finite());
        json!({
            "target": name,
            "median": row.figure.as_ref().map(|figure| figure.median),
            "against_reference": row.against.as_ref().map(|found| ratio(found.estimate.ratio, found.estimate.interval)),
            "at_most_slower": at_most_slower,
            "eliminated": model.history.eliminated.iter().any(|(eliminated, ..)| eliminated == name),
        })
    };
    let noise = panel.noise.as_ref().map(|noise| ratio(noise.ratio, noise.interval));
    (panel.rows.iter().map(one).collect(), noise.unwrap_or_default())
}
