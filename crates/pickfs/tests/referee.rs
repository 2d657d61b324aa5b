//! Every figure of a report against a computation that shares nothing with the program's:
//! fixtures/referee.py made the runs and, with NumPy and SciPy, the expected figures. They are
//! stored, so that the test needs no Python.

use pickfs_core::journal::{Begin, End, Folded, Look, Outcome, Record, Run, SCHEMA, Sample, fold};
use pickfs_core::plan::Plan;
use pickfs_host::analysis::{Model, Panel, Row, WorkReport, model};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Figures by flat names, such as "tree/write/b/ratio".
type Figures = BTreeMap<String, Value>;

/// Round, target, work, and nanoseconds by phase; a phase that was repeated is there several times.
type Cell = (u32, String, String, Vec<(String, f64)>);

#[derive(Deserialize)]
struct Case {
    name: String,
    plan: Plan,
    looks: Vec<Look>,
    cells: Vec<Cell>,
    expected: Figures,
}

/// Numbers agree to this share of themselves.
const ALIKE: f64 = 1e-9;

/// Shares of random draws: six standard errors of the program's ten thousand.
const DRAWN: f64 = 0.03;

#[test]
fn reports_give_the_figures_of_an_independent_computation() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../fixtures/referee.json")).unwrap();
    let differences: Vec<String> = cases.iter().flat_map(differences).collect();
    assert!(differences.is_empty(), "{} figures differ:\n{}", differences.len(), differences.join("\n"));
}

/// In both directions: a figure that is missing differs too.
fn differences(case: &Case) -> Vec<String> {
    let found = figures(&model(&folded(case)).unwrap());
    let mut names: Vec<&String> = found.keys().chain(case.expected.keys()).collect();
    names.sort();
    names.dedup();
    let differ = |name: &&&String| !alike(name, found.get(**name), case.expected.get(**name));
    let says =
        |name: &String| format!("{}: {name}: {:?}, expected {:?}", case.name, found.get(name), case.expected.get(name));
    names.iter().filter(differ).map(|name| says(name)).collect()
}

/// A share of nought is left out of reports.
fn alike(name: &str, found: Option<&Value>, expected: Option<&Value>) -> bool {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    match (number(found), number(expected)) {
        (a, Some(b)) if name.starts_with("share/") => (a.unwrap_or(0.0) - b).abs() <= DRAWN,
        (Some(a), Some(b)) => (a - b).abs() <= ALIKE * a.abs().max(b.abs()),
        _ => found == expected,
    }
}

fn folded(case: &Case) -> Folded {
    let run = Run { schema: SCHEMA, plan: case.plan.clone(), ..Run::default() };
    let mut records = vec![Record::Run(Box::new(run))];
    for (round, target, work, times) in &case.cells {
        let cell = format!("{round}-{target}-{work}");
        let (round, target, work, at) = (*round, target.clone(), work.clone(), String::new());
        records.push(Record::Begin(Begin { cell: cell.clone(), round, target, work, at }));
        for (phase, value) in times {
            let (phase, metric) = (phase.clone(), "time_ns".to_string());
            records.push(Record::Sample(Sample { cell: cell.clone(), phase, metric, value: *value }));
        }
        records.push(Record::End(End { cell, outcome: Outcome::Done, at: String::new() }));
    }
    records.extend(case.looks.iter().cloned().map(Record::Look));
    let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    fold(lines.join("\n").as_bytes()).unwrap()
}

fn figures(model: &Model) -> Figures {
    let mut out = Figures::new();
    for work in &model.works {
        of_work(model, work, &mut out);
        out.insert(format!("{}/drifts", work.name), json!(warns(model, &work.name, "drifted over the rounds")));
        for target in model.targets.iter().filter(|target| !target.duplicate) {
            let modes = warns(model, &work.name, &format!("{} has several modes", target.name));
            out.insert(format!("{}/{}/modes", work.name, target.name), json!(modes));
        }
    }
    if let Some(overall) = &model.overall {
        of_work(model, &overall.work, &mut out);
        for (target, share) in overall.robustness.iter().flat_map(|robustness| &robustness.shares) {
            out.insert(format!("share/{}", model.targets[*target].name), json!(share));
        }
    }
    out
}

fn warns(model: &Model, work: &str, of: &str) -> bool {
    model.warnings().iter().any(|warning| warning.starts_with(&format!("{work}: ")) && warning.contains(of))
}

fn of_work(model: &Model, work: &WorkReport, out: &mut Figures) {
    for panel in &work.phases {
        let key = format!("{}/{}", work.name, panel.name);
        out.extend(of_panel(panel).into_iter().map(|(name, value)| (format!("{key}/{name}"), value)));
        for row in &panel.rows {
            let name = &model.targets[row.target].name;
            out.extend(of_row(row).into_iter().map(|(figure, value)| (format!("{key}/{name}/{figure}"), value)));
        }
    }
}

fn of_panel(panel: &Panel) -> Vec<(&'static str, Value)> {
    let mut out = vec![("threshold", json!(panel.threshold))];
    out.extend(panel.noise.as_ref().map(|noise| ("noise", json!(noise.half_width()))));
    out
}

fn of_row(row: &Row) -> Vec<(&'static str, Value)> {
    let mut out = Vec::new();
    if let Some(figure) = &row.figure {
        out.extend([("median", json!(figure.median)), ("least", json!(figure.low)), ("most", json!(figure.high))]);
    }
    // Intervals and findings are of all pairs together: what covers is simulated elsewhere.
    if let Some(against) = &row.against {
        out.extend([("ratio", json!(against.estimate.ratio)), ("rounds", json!(against.estimate.n))]);
    }
    out
}
