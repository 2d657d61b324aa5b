//! The tables that spreadsheet formats share: one row a sample, one row a summary, and what a chart
//! needs.

use crate::analysis::owners::{Cause, Pair, State};
use crate::analysis::raw::{better_name, unit_name};
use crate::analysis::{Comparison, Figure, Model, Panel, Row, WorkReport};
use crate::wording::marks;
use pickfs_stats::{Estimate, Finding, Method, STATISTICS, Statistic};
use std::borrow::Cow;

/// What a cell of a table holds.
pub(crate) enum Value<'a> {
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

pub(crate) const SAMPLES: &[&str] =
    &["run", "order", "round", "target", "work", "outcome", "phase", "metric", "unit", "value in unit"];

/// One row a sample, in the order in which cells were done.
pub(crate) fn samples(model: &Model) -> impl Iterator<Item = Vec<Value<'_>>> {
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

/// A target in a panel.
struct Line<'a> {
    model: &'a Model,
    work: &'a WorkReport,
    panel: &'a Panel,
    row: &'a Row,
}

impl<'a> Line<'a> {
    fn figure<T>(&self, of: fn(&'a Figure) -> T) -> Option<T> {
        self.row.figure.as_ref().map(of)
    }

    fn estimate<T>(&self, of: fn(&'a Estimate) -> T) -> Option<T> {
        self.row.against.as_ref().map(|against| of(&against.estimate))
    }

    fn interval(&self) -> Option<(f64, f64)> {
        self.estimate(|estimate| estimate.interval).flatten()
    }
}

type Column = (&'static str, for<'a> fn(&Line<'a>) -> Value<'a>);

const SUMMARY: &[Column] = &[
    ("work", |line| line.work.name.as_str().into()),
    ("quantity", |line| line.panel.name.as_str().into()),
    ("phase", |line| line.panel.phase.as_str().into()),
    ("metric", |line| line.panel.metric.as_str().into()),
    ("unit", |line| unit_name(line.panel.unit).into()),
    ("better", |line| better_name(line.panel.better).into()),
    ("target", |line| line.model.targets[line.row.target].name.as_str().into()),
    ("median in unit", |line| line.figure(|figure| figure.median).into()),
    ("least in unit", |line| line.figure(|figure| figure.low).into()),
    ("most in unit", |line| line.figure(|figure| figure.high).into()),
    ("rounds", |line| line.figure(|figure| figure.rounds).into()),
    ("rounds missing", |line| line.figure(|figure| figure.missing).into()),
    ("reference", |line| line.work.reference.map(|reference| line.model.targets[reference].name.as_str()).into()),
    ("ratio to reference", |line| line.estimate(|estimate| estimate.ratio).into()),
    ("ratio low", |line| line.interval().map(|(low, _)| low).into()),
    ("ratio high", |line| line.interval().map(|(_, high)| high).into()),
    ("level of interval", |line| line.interval().and(line.estimate(|estimate| estimate.level)).into()),
    ("method", |line| line.estimate(|estimate| method_name(estimate.method)).into()),
    ("finding", |line| line.row.against.as_ref().and_then(finding_name).into()),
    ("may be best", may_be_best),
    ("why absent", |line| line.row.absent.why().into()),
    ("caveats", |line| caveats(line.panel, line.row)),
];

/// Statistics come last: each is a column, in the unit of its row.
pub(crate) fn summary_header() -> Vec<&'static str> {
    SUMMARY.iter().map(|(name, _)| *name).chain(STATISTICS.iter().map(|one| one.name)).collect()
}

/// One row for every target and quantity.
pub(crate) fn summary(model: &Model) -> impl Iterator<Item = Vec<Value<'_>>> {
    model.works.iter().flat_map(move |work| {
        let panels = work.phases.iter().chain(work.beside.iter().flat_map(|table| &table.panels));
        panels.flat_map(move |panel| panel.rows.iter().map(move |row| summary_row(&Line { model, work, panel, row })))
    })
}

fn summary_row<'a>(line: &Line<'a>) -> Vec<Value<'a>> {
    let statistic = |one: &Statistic| line.row.figure.as_ref()?.statistics.get(one.name).copied();
    let columns = SUMMARY.iter().map(|(_, of)| of(line));
    columns.chain(STATISTICS.iter().map(|one| statistic(one).into())).collect()
}

fn may_be_best<'a>(line: &Line<'a>) -> Value<'a> {
    let best = line.panel.race.as_ref();
    best.map(|best| if best.may_be_best().any(|at| at == line.row.target) { "yes" } else { "no" }).into()
}

/// What the marks at figure and ratio say, other than that a figure may be the best.
fn caveats<'a>(panel: &Panel, row: &Row) -> Value<'a> {
    let ratio = row.against.iter().flat_map(marks::of_ratio);
    let all = marks::of_figure(panel, row).into_iter().chain(ratio).filter(|mark| mark.caveat);
    let meanings: Vec<&str> = all.map(|mark| mark.meaning).collect();
    if meanings.is_empty() { Value::Nothing } else { Value::Text(meanings.join("; ").into()) }
}

pub(crate) const CHART: &[&str] = &["work", "phase", "target", "median in s", "ratio", "below", "above"];

/// Times as ratios with the lengths of their error bars.
pub(crate) fn chart(model: &Model) -> impl Iterator<Item = Vec<Value<'_>>> {
    model.works.iter().flat_map(move |work| {
        work.phases.iter().filter(|panel| panel.metric == "time_ns").flat_map(move |panel| {
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

pub(crate) const WHY: &[&str] = &[
    "work",
    "phase",
    "target",
    "reference",
    "processor",
    "owner",
    "share of the reference's time",
    "target in ns",
    "reference in ns",
    "target's requests",
    "reference's requests",
];

/// One row for each part of what `pickfs why` has explained, and one for what has no owner: they
/// sum to the whole.
pub(crate) fn why(model: &Model) -> impl Iterator<Item = Vec<Value<'_>>> {
    model.why.iter().flat_map(|kept| &kept.pairs).flat_map(|pair| {
        let Pair { work, target, reference, difference } = pair;
        let names = move || [work, &difference.phase, target, reference].map(|name| name.as_str().into());
        let part = move |cause: &'_ Cause| -> [Value<'_>; 7] {
            [
                state_name(cause.state).into(),
                cause.owner.clone().into(),
                cause.share.into(),
                cause.target.ns.into(),
                cause.reference.ns.into(),
                (cause.target.requests as usize).into(),
                (cause.reference.requests as usize).into(),
            ]
        };
        let times = [difference.rest_share, difference.target_rest_ns, difference.reference_rest_ns];
        let [share, one, other] = times.map(Value::from);
        let name = "not accounted for".into();
        let rest = [Value::Nothing, name, share, one, other, Value::Nothing, Value::Nothing];
        let parts = difference.causes.iter().map(part).chain([rest]);
        parts.map(move |part| names().into_iter().chain(part).collect())
    })
}

/// What the processor did.
pub(crate) fn state_name(state: State) -> &'static str {
    match state {
        State::Busy => "busy",
        State::Idle => "idle",
    }
}

pub(crate) fn method_name(method: Method) -> &'static str {
    match method {
        Method::SignedRank => "signed-rank",
        Method::RankSum => "rank-sum",
        Method::LogT => "log-t, preliminary",
        Method::Anecdote => "anecdote, no interval",
    }
}

pub(crate) fn finding_name(against: &Comparison) -> Option<&'static str> {
    against.finding.as_ref().map(|finding| match finding {
        Finding::Higher => "higher",
        Finding::Lower => "lower",
        Finding::Tie => "tie",
        Finding::ProbablyHigher => "probably higher",
        Finding::ProbablyLower => "probably lower",
        Finding::Unresolved => "unresolved",
        Finding::TooFewRounds => "too few rounds",
    })
}
