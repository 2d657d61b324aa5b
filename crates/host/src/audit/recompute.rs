//! The verdict of a journal by a second program that shares nothing with this one, and where the
//! two differ.

use anyhow::{Context, Result, anyhow};
use pickfs_system::process::{argv, feed_and_read};
use serde_json::Value;

/// Published, so that others can read and run it; docs/statistics.md says what it computes.
const PROGRAM: &str = include_str!("../../../../docs/audit/verdict.py");

/// Numbers that are the same differ by no more than this share of themselves: sums may be added in
/// another order.
const ALIKE: f64 = 1e-9;

/// What the program computes from a journal alone. It reads the journal from its standard input,
/// and nothing else.
pub fn recomputed(journal: &[u8]) -> Result<Value> {
    let words = argv(["python3", "-I", "-c", PROGRAM, "/dev/stdin"]);
    // The command line holds all of the program.
    let said = feed_and_read(&words, journal).map_err(|error| {
        let error = error.to_string();
        anyhow!("python3 could not compute the verdict: {}", error.rsplit("` ").next().unwrap_or(&error))
    })?;
    serde_json::from_str(&said).context("the second program printed no JSON")
}

/// Where a report, as `report --format json` has it, differs from what was computed anew.
pub fn differences(report: &Value, anew: &Value) -> Vec<String> {
    let mut found = Vec::new();
    of_work("all work", &report["overall"], &anew["overall"], &mut found);
    let (ours, theirs) = (list(&report["works"]), list(&anew["works"]));
    differ("works", "number", &ours.len().into(), &theirs.len().into(), &mut found);
    for (ours, theirs) in ours.iter().zip(theirs) {
        of_work(ours["name"].as_str().unwrap_or_default(), ours, theirs, &mut found);
    }
    found
}

fn of_work(work: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    let (verdict, first) = (&ours["verdict"], &ours["times"][0]);
    for (name, ours) in [
        ("ranked", &ours["ranked"]),
        ("kind", &verdict["kind"]),
        ("best", &verdict["best"]),
        ("pick", &verdict["pick"]),
        ("at_most_slower", &verdict["at_most_slower"]),
        ("may_be_best", &first["may_be_best"]),
        ("slower", &first["slower"]),
        ("left_early", &first["left_early"]),
    ] {
        differ(work, name, ours, &theirs[name], found);
    }
    // What another program shows first is no time, and not judged by pairs.
    for row in list(&first["rows"]).iter().filter(|_| first["metric"] == "time_ns") {
        let target = row["target"].as_str().unwrap_or_default();
        let (place, theirs) = (format!("{work}, {target}"), &theirs["rows"][target]);
        differ(&place, "at_most_slower", &row["at_most_slower"], &theirs["at_most_slower"], found);
        let (against, estimate) = (&row["against_reference"], &row["against_reference"]["estimate"]);
        for name in ["ratio", "low", "high"] {
            differ(&place, name, &estimate[name], &theirs[name], found);
        }
        differ(&place, "finding", &against["finding"], &theirs["finding"], found);
    }
}

/// Where the run's own looks at its results, as the journal has them, were not what they should
/// have been. A budget is time, of which samples say nothing.
pub fn decisions(looks: &Value, anew: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (made, anew) in list(looks).iter().zip(list(anew)) {
        let place = format!("after round {}", made["round"]);
        let bound = anew["at_most_slower"].as_f64().map(|bound| (bound * 1e6).round() / 1e6);
        differ(&place, "pick", &made["pick"], &anew["pick"], &mut found);
        differ(&place, "at_most_slower", &made["at_most_slower"], &bound.into(), &mut found);
        let mut best: Vec<&str> = list(&made["best"]).iter().filter_map(Value::as_str).collect();
        best.sort_unstable();
        differ(&place, "best", &best.into(), &anew["best"], &mut found);
        let is_cut = made["end"] == "budget" && anew["end"].is_null();
        if !is_cut {
            differ(&place, "end", &made["end"], &anew["end"], &mut found);
        }
        if made["end"].is_null() {
            let leaving = list(&made["leaving"]).iter();
            let leaving =
                leaving.map(|one| (one["target"].as_str().unwrap_or_default().to_string(), one["why"].clone()));
            differ(&place, "leaving", &Value::Object(leaving.collect()), &anew["leaving"], &mut found);
        }
    }
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn differ(place: &str, name: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    let is_same = match (ours.as_f64(), theirs.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= ALIKE * a.abs().max(b.abs()).max(1e-3),
        _ => ours == theirs,
    };
    if !is_same {
        found.push(format!("{place}: {name} is {ours}, and {theirs} anew"));
    }
}
