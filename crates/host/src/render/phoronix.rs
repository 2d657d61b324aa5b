//! The composite.xml of the Phoronix Test Suite: a system for every target, a result for every
//! phase of every work with the value of each round in `RawString` (elements and their order as in
//! its `result-file.xsd`). Less is better in all of them, and says so. Which rounds they were
//! stands in `JSON`, so that an import can pair them again.

use super::{Format, Options};
use crate::analysis::Model;
use crate::analysis::raw::Times;
use quick_xml::escape::escape;
use std::io::{self, Write};

pub(crate) const PHORONIX: Format = Format {
    name: "phoronix",
    about: "composite.xml of the Phoronix Test Suite: every round of every time",
    run: Some(write),
    ..Format::NONE
};

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PhoronixTestSuite>")?;
    head(model, out)?;
    for target in model.targets.iter().filter(|target| !target.duplicate) {
        system(model, &target.name, out)?;
    }
    let same = |a: &Times, b: &Times| (&a.work, &a.phase) == (&b.work, &b.phase);
    model.raw.times.chunk_by(same).try_for_each(|times| result(model, times, out))?;
    writeln!(out, "</PhoronixTestSuite>")
}

fn head(model: &Model, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  <Generated>")?;
    element(out, 4, "Title", if model.title.is_empty() { "pickfs" } else { &model.title })?;
    element(out, 4, "Description", &model.headlines().join(" "))?;
    element(out, 4, "Notes", &model.warnings().join(" "))?;
    element(out, 4, "LastModified", &moment(&model.started))?;
    element(out, 4, "TestClient", &format!("pickfs {}", model.pickfs))?;
    element(out, 4, "InternalTags", "")?;
    element(out, 4, "PreSetEnvironmentVariables", "")?;
    writeln!(out, "  </Generated>")
}

/// "2026-01-31 12:00:00" from "2026-01-31T12:00:00.5Z".
fn moment(started: &str) -> String {
    started.chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

fn system(model: &Model, target: &str, out: &mut dyn Write) -> io::Result<()> {
    // Commas part the entries of its system table.
    let facts = |wanted: &[&str]| {
        let known = model.system().into_iter().filter(|(name, _)| wanted.contains(name));
        known.map(|(name, value)| format!("{name}: {}", value.replace(", ", " "))).collect::<Vec<_>>().join(", ")
    };
    writeln!(out, "  <System>")?;
    element(out, 4, "Identifier", target)?;
    element(out, 4, "TestClientVersion", &model.pickfs)?;
    element(out, 4, "Hardware", &facts(&["Processor", "Memory", "Disk"]))?;
    element(out, 4, "Software", &format!("File-System: {target}, {}", facts(&["OS", "Kernel"])))?;
    element(out, 4, "User", "")?;
    element(out, 4, "TimeStamp", &moment(&model.started))?;
    element(out, 4, "Notes", "")?;
    writeln!(out, "  </System>")
}

fn result(model: &Model, times: &[Times], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  <Result>")?;
    element(out, 4, "Identifier", "")?;
    element(out, 4, "ProfileVersion", "")?;
    element(out, 4, "Title", &times[0].work)?;
    element(out, 4, "AppVersion", &model.pickfs)?;
    element(out, 4, "Arguments", &times[0].phase)?;
    element(out, 4, "Description", &times[0].phase)?;
    element(out, 4, "Scale", "Seconds")?;
    element(out, 4, "Proportion", "LIB")?;
    element(out, 4, "DisplayFormat", "BAR_GRAPH")?;
    writeln!(out, "    <Data>")?;
    times.iter().try_for_each(|times| entry(model, times, out))?;
    writeln!(out, "    </Data>\n  </Result>")
}

fn entry(model: &Model, times: &Times, out: &mut dyn Write) -> io::Result<()> {
    let seconds: Vec<String> = times.rounds.iter().map(|(_, ns)| (ns / 1e9).to_string()).collect();
    let rounds: Vec<u32> = times.rounds.iter().map(|(round, _)| *round).collect();
    writeln!(out, "      <Entry>")?;
    element(out, 8, "Identifier", &model.targets[times.target].name)?;
    element(out, 8, "Value", &(times.median / 1e9).to_string())?;
    element(out, 8, "RawString", &seconds.join(":"))?;
    element(out, 8, "JSON", &serde_json::json!({ "pickfs": { "rounds": rounds } }).to_string())?;
    writeln!(out, "      </Entry>")
}

fn element(out: &mut dyn Write, indent: usize, name: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{:indent$}<{name}>{}</{name}>", "", escape(text))
}
