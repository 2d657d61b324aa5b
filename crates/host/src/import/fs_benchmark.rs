//! `result-*.json` of fenio/modern-fs-benchmark: one file system of one run, whose figures carry
//! their unit at the end of their name.

use super::phoronix::conversion;
use super::{Contents, Figures, Importer, Measure};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) struct FsBenchmark;

const WORK: &str = "modern-fs-benchmark";

#[derive(Deserialize)]
struct Output {
    fs: String,
    layout: String,
    results: BTreeMap<String, Value>,
    /// Kernel, versions, devices.
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

impl Importer for FsBenchmark {
    fn name(&self) -> &'static str {
        "modern-fs-benchmark"
    }

    fn about(&self) -> &'static str {
        "result-*.json of fenio/modern-fs-benchmark: a target for every file system and layout"
    }

    fn recognises(&self, text: &str) -> bool {
        text.trim_start().starts_with('{')
            && ["\"fs\"", "\"layout\"", "\"results\""].iter().all(|key| text.contains(key))
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let output: Output = serde_json::from_str(text).context("this is not what modern-fs-benchmark writes")?;
        let mut figures = Figures::default();
        let target = format!("{} {}", output.fs, output.layout);
        for (name, value) in output.rest.iter().filter(|(_, value)| value.is_string() || value.is_number()) {
            figures.facts.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), String::from));
        }
        for (name, value) in &output.results {
            let Some((phase, convert)) = quantity(name) else {
                // Counts, percentages and verdicts are no times.
                if !value.is_null() {
                    figures.facts.insert(name.clone(), value.to_string());
                }
                continue;
            };
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            for value in values.iter().filter_map(Value::as_f64).filter(|value| *value > 0.0) {
                for (metric, value) in convert(value) {
                    let (target, work) = (Some(target.clone()), WORK.to_string());
                    let (phase, metric) = (phase.to_string(), metric.to_string());
                    figures.add(Measure { target, work, phase, metric, round: None, value });
                }
            }
        }
        figures.time_of("one GiB, or of a thousand of what a rate counts");
        Ok(Contents::Figures(figures))
    }
}

/// What was timed, and how its unit becomes a time.
fn quantity(name: &str) -> Option<(&str, super::phoronix::Convert)> {
    const UNITS: [(&str, &str); 4] = [("_iops", "IOPS"), ("_mbps", "MB/s"), ("_ms", "ms"), ("_s", "s")];
    let (phase, unit) = UNITS.iter().find_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)))?;
    Some((phase, conversion(unit, "HIB")?))
}
