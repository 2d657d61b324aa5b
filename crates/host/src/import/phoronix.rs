//! The composite.xml of the Phoronix Test Suite: a target for every system, a work for every test,
//! a phase for every description. `RawString` holds every run, which are repeats; an export of
//! pickfs says which rounds they were.
//!
//! Units are what `Scale` says. The MB/s of pts/fio are MiB/s in truth
//! (phoronix-test-suite/test-profiles#326): such results carry a doubt.

use super::hyperfine::Mark;
use super::{A_GIB, About, Contents, Figures, Importer, Measure, nanoseconds, positive};
use anyhow::{Context, Result, ensure};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) struct Phoronix;

impl Importer for Phoronix {
    fn name(&self) -> &'static str {
        "phoronix"
    }

    fn about(&self) -> &'static str {
        "composite.xml of the Phoronix Test Suite: a target for every system"
    }

    fn recognises(&self, text: &str) -> bool {
        text.contains("<PhoronixTestSuite")
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let mut figures = Figures::default();
        let results = results(text)?;
        ensure!(!results.is_empty(), "there is no <Result> in it");
        results.iter().for_each(|result| result.tell(&result.phase(&results), &mut figures));
        super::drop_sums(&mut figures);
        Ok(Contents::Figures(figures))
    }
}

/// Text by the name of its element.
type Fields = BTreeMap<String, String>;

#[derive(Default)]
struct ResultElement {
    fields: Fields,
    entries: Vec<Fields>,
}

/// No file of theirs is deeper.
const DEEPEST: usize = 64;

fn results(text: &str) -> Result<Vec<ResultElement>> {
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = Vec::new();
    let mut found: Vec<ResultElement> = Vec::new();
    loop {
        match reader.read_event().context("this is no well-formed XML")? {
            Event::Start(start) => {
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                ensure!(path.len() <= DEEPEST, "elements lie more than {DEEPEST} deep");
                match path.last().map(String::as_str) {
                    Some("Result") => found.push(ResultElement::default()),
                    Some("Entry") => {
                        found.iter_mut().next_back().into_iter().for_each(|one| one.entries.push(Fields::new()))
                    }
                    _ => {}
                }
            }
            Event::End(_) => drop(path.pop()),
            Event::Text(text) => add(&path, &mut found, &text.decode().unwrap_or_default()),
            Event::CData(text) => add(&path, &mut found, &String::from_utf8_lossy(&text)),
            Event::GeneralRef(name) => {
                let written = format!("&{};", String::from_utf8_lossy(&name));
                let meant = quick_xml::escape::unescape(&written).map(|text| text.into_owned()).unwrap_or_default();
                add(&path, &mut found, &meant);
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

fn add(path: &[String], found: &mut [ResultElement], text: &str) {
    let (Some(name), Some(result)) = (path.last(), found.last_mut()) else { return };
    if !path.iter().any(|element| element == "Result") {
        return;
    }
    let in_entry = path.iter().any(|element| element == "Entry");
    let fields = if in_entry { result.entries.last_mut() } else { Some(&mut result.fields) };
    fields.into_iter().for_each(|fields| fields.entry(name.clone()).or_default().push_str(text));
}

/// What stands in `JSON`.
#[derive(Deserialize)]
struct Marked {
    pickfs: Mark,
}

fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).map_or("", |text| text.trim())
}

impl ResultElement {
    fn field(&self, name: &str) -> &str {
        text(&self.fields, name)
    }

    fn tell(&self, phase: &str, figures: &mut Figures) {
        let scale = self.field("Scale");
        let Some(convert) = conversion(scale, self.field("Proportion")) else {
            let why = format!("{}: `{scale}` is neither a time nor a rate", self.field("Title"));
            figures.doubt(About::Run, "", why);
            return;
        };
        if scale == "MB/s" && self.field("Identifier").starts_with("pts/fio") {
            for entry in &self.entries {
                let (target, work) = (text(entry, "Identifier").to_string(), self.field("Title").to_string());
                let about = About::Target { target, work };
                figures.doubt(about, phase, "pts/fio prints MB/s and means MiB/s".into());
            }
        }
        if self.field("Proportion") != "LIB" {
            figures.time_of("one GiB, or of a thousand of what a rate counts");
        }
        self.entries.iter().for_each(|entry| self.entry(entry, phase, &convert, figures));
    }

    /// A test that has the same in several units, such as MB/s and IOPS, has a phase for each.
    fn phase(&self, all: &[ResultElement]) -> String {
        let scale = self.field("Scale");
        let is_same = |one: &&ResultElement| {
            ["Title", "Description", "Arguments"].iter().all(|name| one.field(name) == self.field(name))
        };
        let is_repeated = all.iter().filter(is_same).any(|one| one.field("Scale") != scale);
        let name = [self.field("Description"), self.field("Arguments")].into_iter().find(|text| !text.is_empty());
        let name = name.unwrap_or("result");
        if is_repeated { format!("{name}, {scale}") } else { name.to_string() }
    }

    fn entry(&self, entry: &Fields, phase: &str, convert: &Convert, figures: &mut Figures) {
        let text = |name: &str| text(entry, name);
        let raw = if text("RawString").is_empty() { text("Value") } else { text("RawString") };
        let values: Vec<Option<f64>> = raw.split(':').map(positive).collect();
        let marked = serde_json::from_str::<Marked>(text("JSON")).ok().map(|marked| marked.pickfs.rounds);
        let rounds = marked.filter(|rounds| rounds.len() == values.len());
        for (at, value) in values.into_iter().enumerate() {
            for (metric, value) in value.into_iter().flat_map(convert) {
                figures.add(Measure {
                    target: Some(text("Identifier").to_string()),
                    work: self.field("Title").to_string(),
                    phase: phase.to_string(),
                    metric: metric.to_string(),
                    round: rounds.as_ref().map(|rounds| rounds[at]),
                    value,
                });
            }
        }
    }
}

/// A value -> metrics with their values; the first is the time that is judged.
pub(super) type Convert = Box<dyn Fn(f64) -> Vec<(&'static str, f64)>>;

/// Seconds in units of time.
const TIMES: [(&str, f64); 9] = [
    ("Seconds", 1.0),
    ("sec", 1.0),
    ("s", 1.0),
    ("Milliseconds", 1e-3),
    ("ms", 1e-3),
    ("Microseconds", 1e-6),
    ("us", 1e-6),
    ("Nanoseconds", 1e-9),
    ("ns", 1e-9),
];

/// Bytes in units of rates.
const RATES: [(&str, f64); 10] = [
    ("B/s", 1.0),
    ("KB/s", 1e3),
    ("kB/s", 1e3),
    ("KiB/s", 1024.0),
    ("MB/s", 1e6),
    ("MiB/s", 1048576.0),
    ("GB/s", 1e9),
    ("GiB/s", 1073741824.0),
    ("TB/s", 1e12),
    ("TiB/s", 1099511627776.0),
];

/// A rate becomes the time for one GiB, or for a thousand of what it counts. `None` for any other
/// unit, and for rates of bytes or bits whose size is not known here: they are no operations.
pub(super) fn conversion(scale: &str, proportion: &str) -> Option<Convert> {
    let size_in = |units: &[(&str, f64)]| units.iter().find(|(unit, _)| *unit == scale).map(|(_, size)| *size);
    if let Some(seconds) = size_in(&TIMES) {
        return Some(Box::new(move |value| vec![("time_ns", nanoseconds(value * seconds))]));
    }
    let lower = scale.to_lowercase();
    let is_of_bytes = ["b/s", "bit/s", "bits/s", "byte/s", "bytes/s"].iter().any(|end| lower.ends_with(end));
    let is_rate = ["TPS", "IOPS"].contains(&scale) || scale.ends_with("/s") || scale.ends_with("Per Second");
    match size_in(&RATES) {
        _ if proportion == "LIB" => None,
        Some(size) => Some(Box::new(move |value| bytes(value * size))),
        None if is_rate && !is_of_bytes => Some(Box::new(operations)),
        None => None,
    }
}

fn bytes(a_second: f64) -> Vec<(&'static str, f64)> {
    vec![("time_ns", A_GIB / a_second * 1e9), ("bytes_per_second", a_second)]
}

fn operations(a_second: f64) -> Vec<(&'static str, f64)> {
    vec![("time_ns", 1e12 / a_second), ("operations_per_second", a_second)]
}
