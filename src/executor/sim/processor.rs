//! How fast a simulated processor is. QEMU counts a nanosecond for each instruction; the guest's clocks may go slower
//! than that count (time dilation: Gupta et al., NSDI 2006), so more instructions fit into a second of theirs.

use super::qemu::PROCESSOR;
use crate::plan::{SPEED, Settings};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Instructions in a nanosecond; docs/sim.md has the measurement. A prototype found 2.7 over all of its phases.
pub const USUAL: &str = "2.7";
/// The guest's timer has no room for more, and slower processors no use.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.1..=15.0;

/// What `pickfs sim calibrate` has found out about a machine, in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The machine, the day, and what was run.
    pub about: String,
    /// Instructions of the guest for a nanosecond of the machine: the middle of the classes that are no compression.
    pub dilation: f64,
    /// By class of work.
    #[serde(default)]
    pub classes: BTreeMap<String, Class>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    pub dilation: f64,
    /// Of the single figures, the least and the largest.
    pub from: f64,
    pub to: f64,
}

impl Calibration {
    pub fn parse(text: &str) -> Result<Calibration> {
        toml::from_str(text).context("no file of `pickfs sim calibrate`")
    }
}

/// Of a number, or of the path of a calibration.
pub fn dilation(given: &Value) -> Result<f64> {
    let found = match given.as_str() {
        Some(path) => calibrated(Path::new(path))?,
        None => given.as_f64().context("`dilation` is no number")?,
    };
    ensure!(POSSIBLE.contains(&found), "a dilation of {found} is not possible");
    Ok(found)
}

fn calibrated(file: &Path) -> Result<f64> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Calibration::parse(&text).with_context(|| format!("in {}", file.display()))?.dilation)
}

/// Of a target's machine. One that an earlier version has described has a nanosecond an instruction.
pub fn of(machine: &Settings) -> Result<f64> {
    let times = machine.0.get(SPEED).and_then(Value::as_f64).unwrap_or(1.0);
    Ok(machine.0.get("dilation").map_or(Ok(1.0), dilation)? * times)
}

/// For facts.
pub fn shown(dilation: f64) -> String {
    format!("one, {PROCESSOR}, {dilation} instructions a nanosecond")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_speed_is_a_number_or_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("here.toml");
        let calibration = Calibration {
            about: "a machine".into(),
            dilation: 3.25,
            classes: [("metadata".to_string(), Class { dilation: 3.0, from: 2.0, to: 4.0 })].into(),
        };
        std::fs::write(&file, toml::to_string(&calibration).expect("text")).expect("written");
        assert_eq!(dilation(&json!(file)).expect("a speed"), 3.25);
        assert_eq!([json!(2), json!(0.5)].map(|given| dilation(&given).expect("a speed")), [2.0, 0.5]);
        std::fs::write(&file, "dilation = 1.0").expect("written");
        for (given, says) in [
            (json!(0.01), "a dilation of 0.01 is not possible"),
            (json!(100), "a dilation of 100 is not possible"),
            (json!(folder.path().join("none.toml")), "cannot read"),
            (json!(file), "no file of `pickfs sim calibrate`"),
        ] {
            let said = format!("{:#}", dilation(&given).expect_err(says));
            assert!(said.contains(says), "{said}");
        }
    }
}
