//! Two runs side by side, in words and numbers: what `pickfs compare` prints. Regressions come first; what differs
//! between the machines stands beside; formats compute nothing.

use super::markdown::escaped;
use super::tables::method_name;
use super::text::new_table;
use crate::analysis::{self as decide, Change, Difference, Gate};
use crate::journal::{Folded, Outcome, Run};
use crate::units::show_duration;
use crate::wording::text::{self as words, plain};
use comfy_table::presets;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A comparison, ready to be printed.
#[derive(Debug)]
pub struct Compared {
    pub gate: Gate,
    /// What it comes to, in words.
    pub headline: String,
    pub threshold: f64,
    pub rows: Vec<ComparedRow>,
    /// Targets and works that one run alone has.
    pub missing: Vec<String>,
    /// What was in effect and is not the same.
    pub provenance: Vec<Provenance>,
}

#[derive(Debug)]
pub struct ComparedRow {
    pub target: String,
    pub work: String,
    /// "whole job", or the phase.
    pub phase: String,
    /// Medians with their units; "no value" where there is none.
    pub old: String,
    pub new: String,
    /// "1.23 (1.18–1.28)".
    pub ratio: String,
    /// "slower", "faster", "no slower", "open".
    pub says: &'static str,
    pub change: Change,
}

#[derive(Debug, PartialEq)]
pub struct Provenance {
    pub name: String,
    pub old: String,
    pub new: String,
}

/// What is true of every comparison of two single runs.
const SINGLE: &str = "Each side is one run: what a whole run has for itself, its day and its boot, is in the ratios and not \
                      in their intervals.";

/// The runs' fields that must be alike and are not, if there are any.
pub fn differences(old: (&Run, &Folded), new: (&Run, &Folded)) -> Vec<Difference> {
    let tamed =
        |found: Difference| Difference { field: plain(&found.field), old: plain(&found.old), new: plain(&found.new) };
    decide::differences(old, new).into_iter().map(tamed).collect()
}

pub fn compared(old: (&Run, &Folded), new: (&Run, &Folded), threshold: f64) -> Compared {
    let found = decide::changes(old, new, threshold);
    let rows: Vec<ComparedRow> = found.changes.into_iter().map(row).collect();
    Compared {
        gate: found.gate,
        headline: headline(found.gate, &rows, threshold),
        threshold,
        missing: found.missing.iter().map(|line| plain(line)).collect(),
        provenance: provenance(old.1, new.1),
        rows,
    }
}

fn row(change: Change) -> ComparedRow {
    let shown = |ns: Option<f64>| ns.map_or("no value".to_string(), show_duration);
    let high = change.estimate.as_ref().and_then(|estimate| estimate.interval).map(|(_, high)| high);
    ComparedRow {
        target: plain(&change.target),
        work: plain(&change.work),
        phase: plain(change.phase.as_deref().unwrap_or(crate::analysis::work::WHOLE_JOB)),
        old: shown(change.old),
        new: shown(change.new),
        ratio: change.estimate.as_ref().map_or(String::new(), words::ratio),
        says: match () {
            () if change.is_regression => "slower",
            () if change.is_fine && high.is_some_and(|high| high < 1.0) => "faster",
            () if change.is_fine => "no slower",
            () => "open",
        },
        change,
    }
}

fn headline(gate: Gate, rows: &[ComparedRow], threshold: f64) -> String {
    let beyond = words::percent(threshold);
    match gate {
        Gate::Regression => {
            let slower: Vec<&ComparedRow> = rows.iter().filter(|row| row.change.is_regression).collect();
            let most = slower.first().map(|row| format!(" The most: {}.", sentence(row))).unwrap_or_default();
            format!("{} slower by clearly more than {beyond}.{most}", times_are(slower.len(), rows.len()))
        }
        Gate::Fine => {
            format!("No time is slower by more than {beyond}: {} compared.", words::counted(rows.len(), "time"))
        }
        Gate::Inconclusive => {
            let open = rows.iter().filter(|row| !row.change.is_fine).count();
            format!(
                "Inconclusive: no time is slower by clearly more than {beyond}, but of {open} of {} it is not excluded; more \
                 rounds of both runs would tell.",
                rows.len()
            )
        }
    }
}

fn times_are(count: usize, of: usize) -> String {
    format!("{count} of {of} times {}", if count == 1 { "is" } else { "are" })
}

/// "ext4, tree, write takes 23 % more time than before (18–28 %)".
fn sentence(row: &ComparedRow) -> String {
    let name = format!("{}, {}, {}", row.target, row.work, row.phase);
    let Some(estimate) = &row.change.estimate else { return name };
    let (amount, range) = words::difference(estimate);
    let than = if amount.ends_with("the") { "time of before" } else { "time than before" };
    format!("{name} takes {amount} {than} ({range})")
}

/// Facts of the machine, and the versions and settings in effect of every target, that are not the same.
fn provenance(old: &Folded, new: &Folded) -> Vec<Provenance> {
    let (old, new) = (facts(old), facts(new));
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    let shown = |facts: &BTreeMap<String, String>, name: &String| facts.get(name).cloned().unwrap_or("unknown".into());
    let differ = names.filter(|name| old.get(*name) != new.get(*name));
    differ.map(|name| Provenance { name: name.clone(), old: shown(&old, name), new: shown(&new, name) }).collect()
}

/// What is measured anew each time is no setting.
fn facts(folded: &Folded) -> BTreeMap<String, String> {
    let host = folded.host.iter().filter(|(name, _)| !name.contains(" raw "));
    let mut facts: BTreeMap<String, String> = host.map(|(name, value)| (plain(name), plain(value))).collect();
    for cell in folded.cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done)) {
        for (name, value) in cell.provenance.facts.iter().filter(|(name, _)| is_setting(name)) {
            // What it is mounted from has another number each time.
            let value =
                if name == "mount" { value.split_once(' ').map_or(value.as_str(), |(_, rest)| rest) } else { value };
            facts.insert(plain(&format!("{}: {name}", cell.target)), plain(value));
        }
    }
    facts
}

/// Of what is known of a cell.
fn is_setting(name: &str) -> bool {
    matches!(name, "mount" | "features") || name.starts_with("version ") || name.starts_with("queue ")
}

/// How it can be printed.
pub const COMPARISON_FORMATS: [&str; 3] = ["json", "markdown", "text"];

/// In one of [`COMPARISON_FORMATS`]; `width` is for text alone.
pub fn write_comparison(compared: &Compared, format: &str, width: usize, out: &mut dyn Write) -> io::Result<()> {
    match format {
        "json" => json(compared, out),
        "markdown" => markdown(compared, out),
        _ => text(compared, width, out),
    }
}

fn text(compared: &Compared, width: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", words::wrapped("", &compared.headline, width))?;
    let mut table = new_table(presets::UTF8_FULL_CONDENSED, width);
    table.set_header(["", "before", "now", "ratio", ""]);
    for row in &compared.rows {
        let name = format!("{}, {}, {}", row.target, row.work, row.phase);
        table.add_row([name.as_str(), &row.old, &row.new, &row.ratio, row.says]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    writeln!(
        out,
        "{}\n",
        words::wrapped("", &format!("Ratio: now over before, with its 95 % interval. {SINGLE}"), width)
    )?;
    compared.missing.iter().try_for_each(|line| writeln!(out, "{}", words::wrapped("", line, width)))?;
    if !compared.provenance.is_empty() {
        writeln!(out, "Not the same in both runs:")?;
    }
    let lines = compared.provenance.iter().map(|fact| format!("{}: {} → {}", fact.name, fact.old, fact.new));
    lines.into_iter().try_for_each(|line| writeln!(out, "{}", words::wrapped("  ", &line, width)))
}

fn markdown(compared: &Compared, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", escaped(&compared.headline))?;
    writeln!(out, "| | before | now | ratio | |\n|:---|---:|---:|---:|:---|")?;
    for row in &compared.rows {
        let name = escaped(&format!("{}, {}, {}", row.target, row.work, row.phase));
        writeln!(out, "| {name} | {} | {} | {} | {} |", row.old, row.new, row.ratio, row.says)?;
    }
    writeln!(out, "\n{SINGLE}\n")?;
    compared.missing.iter().try_for_each(|line| writeln!(out, "- {}", escaped(line)))?;
    let facts = compared.provenance.iter();
    let lines = facts.map(|fact| escaped(&format!("{}: {} → {}", fact.name, fact.old, fact.new)));
    lines.into_iter().try_for_each(|line| writeln!(out, "- {line}"))
}

fn json(compared: &Compared, out: &mut dyn Write) -> io::Result<()> {
    let gate = match compared.gate {
        Gate::Fine => "fine",
        Gate::Regression => "regression",
        Gate::Inconclusive => "inconclusive",
    };
    let facts = compared.provenance.iter();
    let document = json!({
        "schema": 1,
        "gate": gate,
        "headline": compared.headline,
        "caveat": SINGLE,
        "threshold": compared.threshold,
        "times": compared.rows.iter().map(json_row).collect::<Vec<_>>(),
        "missing": compared.missing,
        "not_the_same": facts.map(|fact| json!({ "name": fact.name, "old": fact.old, "new": fact.new })).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

fn json_row(row: &ComparedRow) -> Value {
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
