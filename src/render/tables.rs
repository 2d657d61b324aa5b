//! The tables that spreadsheet formats share: one row a sample, one row a summary, and what a chart needs.

use crate::analysis::raw::{better_name, unit_name};
use crate::analysis::{Comparison, Model, Panel, Row, WorkReport};
use crate::stats::{Finding, Method};
use crate::wording::marks;
use std::borrow::Cow;

/// What a cell of a table holds.
pub enum Value<'a> {
    Text(Cow<'a, str>),
    /// Finite.
    Number(f64),
    Nothing,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        if text.is_empty() { Value::Nothing } else { Value::Text(text.into()) }
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        if text.is_empty() { Value::Nothing } else { Value::Text(text.into()) }
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        if number.is_finite() { Value::Number(number) } else { Value::Nothing }
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Value::Number(number as f64)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Nothing, Into::into)
    }
}

pub const SAMPLES: &[&str] =
    &["run", "order", "round", "target", "work", "outcome", "phase", "metric", "unit", "value in unit"];

/// One row a sample, in the order in which cells were done.
pub fn samples(model: &Model) -> impl Iterator<Item = Vec<Value<'_>>> {
    model.raw.cells.iter().flat_map(move |cell| {
        model.raw.samples(cell).map(move |sample| {
            vec![
                model.run.as_str().into(),
                cell.order.into(),
                (cell.round as usize).into(),
                cell.target.as_str().into(),
                cell.work.as_str().into(),
                cell.outcome.into(),
                sample.phase.into(),
                sample.metric.into(),
                sample.unit().into(),
                sample.value.into(),
            ]
        })
    })
}

pub const SUMMARY: &[&str] = &[
    "work",
    "quantity",
    "phase",
    "metric",
    "unit",
    "better",
    "target",
    "median in unit",
    "least in unit",
    "most in unit",
    "rounds",
    "rounds missing",
    "reference",
    "ratio to reference",
    "ratio low",
    "ratio high",
    "level of interval",
    "method",
    "finding",
    "may be best",
    "why absent",
    "caveats",
];

/// One row for every target and quantity.
pub fn summary(model: &Model) -> impl Iterator<Item = Vec<Value<'_>>> {
    let works = model.works.iter();
    works.flat_map(move |work| {
        let panels = work.phases.iter().chain(work.beside.iter().flat_map(|table| &table.panels));
        panels.flat_map(move |panel| panel.rows.iter().map(move |row| summary_row(model, work, panel, row)))
    })
}

fn summary_row<'a>(model: &'a Model, work: &'a WorkReport, panel: &'a Panel, row: &'a Row) -> Vec<Value<'a>> {
    let figure = row.figure.as_ref();
    let against = row.against.as_ref();
    let estimate = against.map(|against| &against.estimate);
    let best = panel.best.as_ref().map(|best| if best.members.contains(&row.target) { "yes" } else { "no" });
    vec![
        work.name.as_str().into(),
        panel.name.as_str().into(),
        panel.phase.as_str().into(),
        panel.metric.as_str().into(),
        unit_name(panel.unit).into(),
        better_name(panel.better).into(),
        model.targets[row.target].name.as_str().into(),
        figure.map(|figure| figure.median).into(),
        figure.map(|figure| figure.low).into(),
        figure.map(|figure| figure.high).into(),
        figure.map(|figure| figure.rounds).into(),
        figure.map(|figure| figure.missing).into(),
        work.reference.map(|reference| model.targets[reference].name.as_str()).into(),
        estimate.map(|estimate| estimate.ratio).into(),
        estimate.and_then(|estimate| estimate.interval).map(|(low, _)| low).into(),
        estimate.and_then(|estimate| estimate.interval).map(|(_, high)| high).into(),
        estimate.and_then(|estimate| estimate.interval.map(|_| estimate.level)).into(),
        estimate.map(|estimate| method_name(estimate.method)).into(),
        against.and_then(finding_name).into(),
        best.into(),
        row.absent.why().into(),
        caveats(panel, row),
    ]
}

/// What the marks at figure and ratio say, other than that a figure may be the best.
fn caveats<'a>(panel: &Panel, row: &Row) -> Value<'a> {
    let ratio = row.against.iter().flat_map(marks::of_ratio);
    let all = marks::of_figure(panel, row).into_iter().chain(ratio).filter(|mark| mark.caveat);
    let meanings: Vec<&str> = all.map(|mark| mark.meaning).collect();
    if meanings.is_empty() { Value::Nothing } else { Value::Text(meanings.join("; ").into()) }
}

pub const CHART: &[&str] = &["work", "phase", "target", "median in s", "ratio", "below", "above"];

/// Times as ratios with the lengths of their error bars.
pub fn chart(model: &Model) -> impl Iterator<Item = Vec<Value<'_>>> {
    model.works.iter().flat_map(move |work| {
        work.phases.iter().flat_map(move |panel| {
            panel.rows.iter().filter(|row| row.figure.is_some()).map(move |row| chart_row(model, work, panel, row))
        })
    })
}

fn chart_row<'a>(model: &'a Model, work: &'a WorkReport, panel: &'a Panel, row: &'a Row) -> Vec<Value<'a>> {
    let estimate = row.against.as_ref().map(|against| &against.estimate);
    let is_reference = work.reference == Some(row.target);
    let ratio = estimate.map(|estimate| estimate.ratio).or(is_reference.then_some(1.0));
    let arms = estimate.and_then(|found| found.interval.map(|(low, high)| (found.ratio - low, high - found.ratio)));
    vec![
        work.name.as_str().into(),
        panel.name.as_str().into(),
        model.targets[row.target].name.as_str().into(),
        row.figure.as_ref().map(|figure| figure.median / 1e9).into(),
        ratio.into(),
        arms.map(|(below, _)| below).into(),
        arms.map(|(_, above)| above).into(),
    ]
}

pub fn method_name(method: Method) -> &'static str {
    match method {
        Method::SignedRank => "signed-rank",
        Method::RankSum => "rank-sum",
        Method::LogT => "log-t, preliminary",
        Method::Anecdote => "anecdote, no interval",
    }
}

pub fn finding_name(against: &Comparison) -> Option<&'static str> {
    against.finding.as_ref().map(|finding| match finding {
        Finding::Higher => "higher",
        Finding::Lower => "lower",
        Finding::Tie => "tie",
        Finding::ProbablyHigher => "probably higher",
        Finding::ProbablyLower => "probably lower",
        Finding::Unresolved { .. } => "unresolved",
        Finding::TooFewRounds => "too few rounds",
    })
}
