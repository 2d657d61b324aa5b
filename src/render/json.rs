//! Our own JSON: all that a report says and all that it is made of. `schema/report-1.schema.json` describes it;
//! `schema` counts up when a reader of old files would misunderstand new ones.

use super::{Format, Options};
use crate::analysis::raw::{RawCell, better_name, unit_name};
use crate::analysis::*;
use crate::render::tables::{finding_name, method_name};
use crate::stats::Estimate;
use crate::wording::between_runs::{CAVEAT, RunComparison, TimeChange};
use crate::wording::text::tame;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Of this layout.
const SCHEMA: u32 = 1;

pub const JSON: Format = Format {
    name: "json",
    about: "everything: judgements, environment, order, samples (schema/report-1.schema.json)",
    run: Some(report),
    comparison: Some(comparison),
    ..Format::NONE
};

fn report(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Document(model))?;
    out.write_all(b"\n")
}

/// Written piece by piece: a million samples are never a tree in memory.
struct Document<'a>(&'a Model);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let model = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("run", &run(model))?;
        map.serialize_entry("verdict", &verdict(model))?;
        map.serialize_entry("environment", &facts(&model.host))?;
        map.serialize_entry("targets", &model.targets.iter().map(target).collect::<Vec<_>>())?;
        let overall = model.overall.iter().map(|overall| work(model, &overall.work)).next();
        map.serialize_entry("overall", &overall)?;
        map.serialize_entry("works", &model.works.iter().map(|one| work(model, one)).collect::<Vec<_>>())?;
        map.serialize_entry("not_measured", &model.holes.iter().map(|one| hole(model, one)).collect::<Vec<_>>())?;
        map.serialize_entry("doubts", &model.flags.iter().map(|one| doubt(model, one)).collect::<Vec<_>>())?;
        map.serialize_entry("ledger", &ledger(&model.ledger))?;
        map.serialize_entry("run_ledger", &without_cell(&model.raw.ledger))?;
        map.serialize_entry("plan", &model.raw.plan)?;
        map.serialize_entry("looks", &model.raw.looks)?;
        map.serialize_entry("cells", &Cells(model))?;
        map.end()
    }
}

fn run(model: &Model) -> Value {
    let raw = &model.raw;
    json!({
        "id": model.run, "title": model.title, "started": model.started, "pickfs": model.pickfs, "seed": raw.seed,
        "imported": raw.imported, "machine": model.machine,
    })
}

fn verdict(model: &Model) -> Value {
    json!({ "headlines": model.headlines, "course": model.course, "warnings": model.warnings })
}

fn facts(facts: &[Fact]) -> Value {
    facts
        .iter()
        .map(|fact| (fact.name.clone(), Value::from(fact.value.as_str())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn target(target: &TargetInfo) -> Value {
    json!({
        "name": target.name, "duplicate": target.duplicate, "weakened": target.weakened, "mkfs": target.mkfs,
        "mount": target.mount, "aged": target.aged, "facts": facts(&target.facts),
    })
}

fn names(model: &Model, places: &[usize]) -> Vec<String> {
    places.iter().map(|at| model.targets[*at].name.clone()).collect()
}

fn work(model: &Model, work: &WorkReport) -> Value {
    let panels = |panels: &[Panel]| panels.iter().map(|one| panel(model, one)).collect::<Vec<_>>();
    let table = |table: &Table| json!({ "title": table.title, "quantities": panels(&table.panels) });
    json!({
        "name": work.name,
        "reference": work.reference.map(|at| model.targets[at].name.as_str()),
        "rounds": work.rounds,
        "ranked": names(model, &work.ranked),
        "verdict": {
            "kind": kind_name(work.verdict.kind), "headline": work.verdict.headline,
            "best": names(model, &work.verdict.best), "notes": work.verdict.notes,
        },
        "sentences": work.sentences,
        "trade_offs": work.trade_offs,
        "noise": work.noise,
        "times": panels(&work.phases),
        "beside": work.beside.iter().map(table).collect::<Vec<_>>(),
    })
}

fn kind_name(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Pick => "pick",
        VerdictKind::Tie => "tie",
        VerdictKind::Unresolved => "unresolved",
        VerdictKind::Refused => "refused",
        VerdictKind::TooFewRounds => "too few rounds",
        VerdictKind::Single => "single",
        VerdictKind::Nothing => "nothing",
    }
}

fn panel(model: &Model, panel: &Panel) -> Value {
    json!({
        "name": panel.name,
        "phase": panel.phase,
        "metric": panel.metric,
        "unit": unit_name(panel.unit),
        "better": better_name(panel.better),
        "threshold": panel.band.threshold,
        "noise": panel.noise.as_ref().map(|noise| estimate(&noise.estimate)),
        "refused": panel.refused,
        "may_be_best": panel.best.as_ref().map(|best| names(model, &best.members)),
        "rows": panel.rows.iter().map(|one| row(model, one)).collect::<Vec<_>>(),
    })
}

fn row(model: &Model, row: &Row) -> Value {
    let figure = row.figure.as_ref().map(|figure| {
        json!({
            "median": number(figure.median), "least": number(figure.low), "most": number(figure.high),
            "rounds": figure.rounds, "missing": figure.missing,
        })
    });
    let against = row.against.as_ref().map(|against| {
        json!({
            "estimate": estimate(&against.estimate), "finding": finding_name(against), "words": against.words,
            "p": against.p, "may_be_chance": against.may_be_chance, "rests_on_symmetry": against.rests_on_symmetry,
        })
    });
    json!({
        "target": model.targets[row.target].name, "figure": figure, "against_reference": against,
        "absent": row.absent.why, "cache_state_unproven": row.unproven_cache,
    })
}

fn estimate(estimate: &Estimate) -> Value {
    json!({
        "ratio": estimate.ratio,
        "low": estimate.interval.map(|(low, _)| low),
        "high": estimate.interval.map(|(_, high)| high),
        "level": estimate.level,
        "method": method_name(estimate.method),
        "rounds": estimate.n,
        "share_above": estimate.share_above,
    })
}

fn hole(model: &Model, hole: &Hole) -> Value {
    json!({
        "target": hole.target.map(|at| model.targets[at].name.as_str()), "work": hole.work, "kind": hole.kind.word(),
        "why": hole.why, "rounds": hole.rounds, "of": hole.of,
    })
}

fn doubt(model: &Model, flag: &FlagGroup) -> Value {
    json!({
        "flag": flag.flag, "phase": flag.phase, "target": flag.target.map(|at| model.targets[at].name.as_str()),
        "count": flag.count, "example": flag.example,
    })
}

fn ledger(ledger: &LedgerShares) -> Value {
    let parts = ledger.parts.iter().map(|part| (part.name.to_string(), Value::from(part.ns)));
    json!({ "total_ns": ledger.total_ns, "parts_ns": parts.collect::<serde_json::Map<_, _>>() })
}

/// Integers without a point, as in the journal; `null` for what is no number.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}

struct Cells<'a>(&'a Model);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.raw.cells.iter().map(|cell| Cell(self.0, cell)))
    }
}

struct Cell<'a>(&'a Model, &'a RawCell);

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cell = self.1;
        let flag = |flag: &RawFlag| json!({ "phase": flag.phase, "flag": flag.flag, "why": flag.why });
        let histogram = |one: &crate::journal::Histogram| json!({ "phase": one.phase, "operation": one.operation, "encoded": one.encoded });
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &cell.id)?;
        map.serialize_entry("order", &cell.order)?;
        map.serialize_entry("round", &cell.round)?;
        map.serialize_entry("target", &cell.target)?;
        map.serialize_entry("work", &cell.work)?;
        map.serialize_entry("outcome", cell.outcome)?;
        map.serialize_entry("why", &cell.why)?;
        map.serialize_entry("flags", &cell.flags.iter().map(flag).collect::<Vec<_>>())?;
        map.serialize_entry("histograms", &cell.histograms.iter().map(histogram).collect::<Vec<_>>())?;
        map.serialize_entry("provenance", &without_cell(&cell.provenance))?;
        map.serialize_entry("ledger", &without_cell(&cell.ledger))?;
        map.serialize_entry("device_courses", &cell.courses.iter().map(without_cell).collect::<Vec<_>>())?;
        map.serialize_entry("samples", &Samples(self.0, cell))?;
        map.end()
    }
}

/// A record, harmless and without the name of its cell, which stands beside it.
fn without_cell(record: &impl serde::Serialize) -> Value {
    let mut value = tame(serde_json::to_value(record).unwrap_or_default());
    if let Some(fields) = value.as_object_mut() {
        fields.remove("cell");
    }
    value
}

struct Samples<'a>(&'a Model, &'a RawCell);

/// `["write", "time_ns", 12]`: short, as there are many.
impl Serialize for Samples<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let each = self.0.raw.samples(self.1).map(|sample| (sample.phase, sample.metric, number(sample.value)));
        serializer.collect_seq(each)
    }
}

fn comparison(runs: &RunComparison, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let gate = match runs.gate {
        Gate::Fine => "fine",
        Gate::Regression => "regression",
        Gate::Inconclusive => "inconclusive",
    };
    let facts = runs.facts.iter();
    let document = json!({
        "schema": 1,
        "gate": gate,
        "headline": runs.headline,
        "caveat": CAVEAT,
        "threshold": runs.threshold,
        "times": runs.rows.iter().map(change).collect::<Vec<_>>(),
        "missing": runs.missing,
        "not_the_same": facts.map(|fact| json!({ "name": fact.name, "old": fact.old, "new": fact.new })).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

fn change(row: &TimeChange) -> Value {
    let estimate = row.change.estimate.as_ref();
    let bound = |of: fn((f64, f64)) -> f64| estimate.and_then(|estimate| estimate.interval).map(of);
    json!({
        "target": row.target, "work": row.work, "phase": row.phase,
        "old_median_ns": row.change.old, "new_median_ns": row.change.new,
        "old_rounds": row.change.old_rounds, "new_rounds": row.change.new_rounds,
        "ratio": estimate.map(|estimate| estimate.ratio),
        "low": bound(|(low, _)| low),
        "high": bound(|(_, high)| high),
        "level": estimate.map(|estimate| estimate.level),
        "method": estimate.map(|estimate| method_name(estimate.method)),
        "says": row.says,
    })
}
