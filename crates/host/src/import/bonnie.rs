//! bonnie++'s CSV, of 48 fields (formats 1.96 and 1.97) or 50 (1.98, which has fields for its
//! seekers too): a phase for every test. A test that it marks +++++ was too short to be measured:
//! it is missing, never 0.

use super::{A_GIB, About, Contents, Figures, Importer, positive};
use anyhow::{Context, Result, bail, ensure};

pub(crate) struct Bonnie;

const WORK: &str = "bonnie++";

/// A test, and where its rate and its latency stand in 50 fields, counted from 0.
const TESTS: [(&str, usize, usize, bool); 12] = [
    ("putc", 9, 38, true),
    ("write", 11, 39, true),
    ("rewrite", 13, 40, true),
    ("getc", 15, 41, true),
    ("read", 17, 42, true),
    ("seeks", 19, 43, false),
    ("sequential-create", 26, 44, false),
    ("sequential-stat", 28, 45, false),
    ("sequential-delete", 30, 46, false),
    ("random-create", 32, 47, false),
    ("random-stat", 34, 48, false),
    ("random-delete", 36, 49, false),
];

/// Where the two fields stand that only 1.98 has.
const NEW: usize = 7;

impl Importer for Bonnie {
    fn name(&self) -> &'static str {
        "bonnie"
    }

    fn about(&self) -> &'static str {
        "bonnie++'s line of comma-separated values, formats 1.96 to 1.98"
    }

    fn recognises(&self, text: &str) -> bool {
        lines(text).next().is_some_and(|line| matches!(line.split(',').count(), 48 | 50) && line.starts_with("1.9"))
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let mut figures = Figures::default();
        ensure!(lines(text).next().is_some(), "there is no line of results in it");
        for line in lines(text) {
            let fields: Vec<&str> = line.split(',').collect();
            let fields = aligned(&fields)?;
            TESTS.iter().for_each(|test| tell(test, &fields, &mut figures));
            figures.facts.insert("bonnie++ version".into(), fields[1].to_string());
            figures.facts.insert("bonnie++ large file".into(), fields[5].to_string());
            figures.facts.insert("bonnie++ files, in 1024s".into(), fields[21].to_string());
        }
        // After all rates, as bonnie++ prints them.
        TESTS.iter().for_each(|(phase, ..)| figures.headline(WORK, phase, "latency_max_ns", "longest latency"));
        figures.time_of("one GiB, or of a thousand seeks or files");
        Ok(Contents::Figures(figures))
    }
}

/// What it prints for people has no commas in it, or few.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| line.starts_with("1.9") && line.contains(','))
}

/// As 1.98 has them.
fn aligned<'a>(fields: &[&'a str]) -> Result<Vec<&'a str>> {
    let format: f64 = fields[0].parse().with_context(|| format!("`{}` is no format of bonnie++", fields[0]))?;
    match (fields.len(), format) {
        (50, _) => Ok(fields.to_vec()),
        (48, 1.95..1.98) => Ok([&fields[..NEW], &["", ""], &fields[NEW..]].concat()),
        (count, _) => bail!("bonnie++ {format} has {count} fields; only 48 (1.96, 1.97) and 50 (1.98) can be read"),
    }
}

/// Rates of bytes become the time for one GiB, those of operations the time for a thousand: the
/// amount of work is not reported for every test.
fn tell((phase, rate, latency, is_bytes): &(&str, usize, usize, bool), fields: &[&str], figures: &mut Figures) {
    if fields[*rate].starts_with('+') {
        figures.doubt(About::File, phase, "bonnie++ printed +++++: it was too short to be measured".into());
    }
    let Some(found) = positive(fields[*rate]) else { return };
    let (time_ns, metric, value) = if *is_bytes {
        (A_GIB / (found * 1024.0) * 1e9, "bytes_per_second", found * 1024.0)
    } else {
        (1e12 / found, "operations_per_second", found)
    };
    figures.say(WORK, phase, "time_ns", time_ns);
    figures.show(WORK, phase, (metric, "rate"), value);
    if let Some(percent) = fields[rate + 1].parse::<f64>().ok().filter(|percent| *percent >= 0.0) {
        figures.say(WORK, phase, "cpu_share", percent / 100.0);
    }
    if let Some(ns) = duration(fields[*latency]) {
        figures.say(WORK, phase, "latency_max_ns", ns);
    }
}

/// From "283ms", "8105us", "2s".
fn duration(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let unit = match &text[end..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(positive(&text[..end])? * unit)
}
