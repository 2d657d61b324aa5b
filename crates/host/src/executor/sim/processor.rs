//! How fast a simulated processor is. QEMU counts a nanosecond for each instruction; the guest's
//! clocks may go slower than that count (time dilation: Gupta et al., NSDI 2006), so more
//! instructions fit into a second of theirs.

use anyhow::{Context, Result, ensure};
use pickfs_core::plan::{FIXED_CLOCKS, SPEED, Settings, processors};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// With SSE4.2, AES and AVX2 for checksums and ciphers. Without "enhanced rep movsb": the kernel
/// would copy with it, and each byte would count as an instruction. Without instructions that give
/// random numbers of the host.
pub(crate) const PROCESSOR: &str = "Haswell-noTSX,-erms,-rdrand,-rdseed";
/// Instructions in a nanosecond; docs/sim-results.md has the measurement. A prototype found 2.7
/// over all of its phases.
pub(crate) const USUAL: &str = "2.7";
/// How many times as many they are while the kernel compresses; docs/sim-results.md has the
/// measurement.
pub(crate) const USUAL_COMPRESSION: &str = "3";
/// How many times as many they are while a program executes its own instructions;
/// docs/sim-results.md has the measurement.
pub(crate) const USUAL_USER_MODE: &str = "2.8";
/// In files.
pub const COMPRESSION: &str = "compression";
const USER_MODE: &str = "user_mode";
/// Processors of a machine whose plan does not say.
pub(crate) const USUAL_PROCESSORS: &str = "8";
/// The guest's timer has no room for more, and slower processors no use.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.1..=15.0;
const POSSIBLE_COMPRESSION: std::ops::RangeInclusive<f64> = 1.0..=100.0;
const POSSIBLE_USER_MODE: std::ops::RangeInclusive<f64> = 1.0..=10.0;

/// What `pickfs sim calibrate` has found out about a machine, in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The machine, the day, and what was run.
    pub about: String,
    /// Instructions of the guest for a nanosecond of the machine: the middle of the classes that
    /// are no compression.
    pub dilation: f64,
    /// By class of work.
    #[serde(default)]
    pub classes: BTreeMap<String, Class>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    pub dilation: f64,
    /// The least and the largest of the single figures.
    pub from: f64,
    pub to: f64,
}

impl Calibration {
    /// How many times as fast as all else; never less.
    pub(crate) fn compression(&self) -> Option<f64> {
        let own = self.classes.get(COMPRESSION)?;
        Some(pickfs_disks::significant(own.dilation / self.dilation, 3).max(1.0))
    }

    /// The processor that was found.
    pub fn processor(&self) -> Processor {
        let compression = self.compression().unwrap_or(1.0);
        Processor { dilation: self.dilation, compression, ..Processor::plainest() }
    }

    pub fn parse(text: &str) -> Result<Calibration> {
        toml::from_str(text).context("no file of `pickfs sim calibrate`")
    }
}

/// The processor of a target's machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processor {
    pub dilation: f64,
    /// How many times as many instructions a nanosecond has while the kernel compresses.
    pub compression: f64,
    /// How many times as many it has while a program executes its own instructions.
    pub user_mode: f64,
    /// Processors that never wait for each other.
    pub processors: u64,
}

impl Processor {
    /// An instruction of the kernel is a nanosecond, whatever it does. Programs are as much faster
    /// than it as without a word in a plan.
    pub fn plainest() -> Processor {
        let user_mode = USUAL_USER_MODE.parse().unwrap_or(1.0);
        Processor { dilation: 1.0, compression: 1.0, user_mode, processors: 1 }
    }

    /// One that an earlier version has described has a nanosecond an instruction, whatever it does,
    /// and is alone.
    pub fn of(machine: &Settings) -> Result<Processor> {
        let times = machine.0.get(SPEED).and_then(Value::as_f64).unwrap_or(1.0);
        let given = |name: &str, read: fn(&Value) -> Result<f64>| machine.0.get(name).map_or(Ok(1.0), read);
        let [compression, user_mode] = match machine.text("kernel") {
            Some(FIXED_CLOCKS) => [1.0, 1.0],
            _ => [given(COMPRESSION, compression)?, given(USER_MODE, user_mode)?],
        };
        let dilation = given("dilation", dilation)? * times;
        Ok(Processor { dilation, compression, user_mode, processors: processors(machine) })
    }

    /// For facts.
    pub(crate) fn shown(self) -> String {
        let own = match self.compression {
            1.0 => String::new(),
            times => format!(", {times} times as many while it compresses"),
        };
        let programs = match self.user_mode {
            1.0 => String::new(),
            times => format!(", {times} times as many in programs"),
        };
        let count = match self.processors {
            1 => "one".to_string(),
            several => {
                format!("{several} that never wait for each other, for which the kernel sizes its pools of workers")
            }
        };
        format!("{count}, {PROCESSOR}, {} instructions a nanosecond{own}{programs}", self.dilation)
    }
}

/// The dilation as a number, or from the path of a calibration.
pub(crate) fn dilation(given: &Value) -> Result<f64> {
    let found = number(given, |calibration| Ok(calibration.dilation))?;
    ensure!(POSSIBLE.contains(&found), "a dilation of {found} is not possible");
    Ok(found)
}

/// The same.
pub(crate) fn compression(given: &Value) -> Result<f64> {
    let found = number(given, |calibration| {
        calibration.compression().context("no compression was measured: let `pickfs sim calibrate` have btrfs")
    })?;
    ensure!(POSSIBLE_COMPRESSION.contains(&found), "compression that is {found} times as fast is not possible");
    Ok(found)
}

/// As a number.
pub(crate) fn user_mode(given: &Value) -> Result<f64> {
    let found = given.as_f64().context("this is no number")?;
    ensure!(POSSIBLE_USER_MODE.contains(&found), "programs that are {found} times as fast are not possible");
    Ok(found)
}

fn number(given: &Value, of: impl FnOnce(&Calibration) -> Result<f64>) -> Result<f64> {
    let Some(file) = given.as_str().map(Path::new) else { return given.as_f64().context("this is no number") };
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Calibration::parse(&text).and_then(|calibration| of(&calibration)).with_context(|| format!("in {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_speed_is_a_number_or_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("here.toml");
        let class = |dilation: f64| Class { dilation, from: dilation, to: dilation };
        let calibration = |own: f64| Calibration {
            about: "a machine".into(),
            dilation: 3.25,
            classes: [("metadata".to_string(), class(3.0)), (COMPRESSION.to_string(), class(own))].into(),
        };
        let write =
            |own: f64| std::fs::write(&file, toml::to_string(&calibration(own)).expect("text")).expect("written");
        write(6.5);
        assert_eq!(dilation(&json!(file)).expect("a speed"), 3.25);
        assert_eq!([json!(2), json!(0.5)].map(|given| dilation(&given).expect("a speed")), [2.0, 0.5]);
        assert_eq!([json!(file), json!(1.5)].map(|given| compression(&given).expect("a speed")), [2.0, 1.5]);
        // Slower than all else was noise.
        write(3.0);
        assert_eq!(compression(&json!(file)).expect("a speed"), 1.0);
        std::fs::write(&file, "dilation = 1.0").expect("written");
        let without = folder.path().join("without.toml");
        let plain = Calibration { classes: BTreeMap::new(), ..calibration(1.0) };
        std::fs::write(&without, toml::to_string(&plain).expect("text")).expect("written");
        type Read = fn(&Value) -> Result<f64>;
        for (read, given, says) in [
            (dilation as Read, json!(0.01), "a dilation of 0.01 is not possible"),
            (dilation, json!(100), "a dilation of 100 is not possible"),
            (dilation, json!(folder.path().join("none.toml")), "cannot read"),
            (dilation, json!(file), "no file of `pickfs sim calibrate`"),
            (compression, json!(0.5), "0.5 times as fast is not possible"),
            (compression, json!(without), "no compression was measured"),
            (user_mode, json!(0.5), "programs that are 0.5 times as fast are not possible"),
        ] {
            let said = format!("{:#}", read(&given).expect_err(says));
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn a_machine_has_the_processor_that_its_words_say() {
        let of =
            |machine: Value| Processor::of(&serde_json::from_value(machine).expect("settings")).expect("a processor");
        let old =
            json!({ "dilation": 2.5, "compression": 2.0, "user_mode": 1.5, "processors": 8, "kernel": "bullseye" });
        for (machine, dilation, compression, user_mode, processors) in [
            (json!({}), 1.0, 1.0, 1.0, 1),
            (json!({ "dilation": 2.5, "compression": 2.0 }), 2.5, 2.0, 1.0, 1),
            (json!({ "dilation": 2.5, "user_mode": 1.5, "speed": 2.0, "processors": 8 }), 5.0, 1.0, 1.5, 8),
            (old, 2.5, 1.0, 1.0, 1),
        ] {
            let expected = Processor { dilation, compression, user_mode, processors };
            assert_eq!(of(machine.clone()), expected, "{machine}");
        }
        for (machine, begins, ends) in [
            (json!({ "dilation": 2.7, "compression": 3 }), "one, ", "nanosecond, 3 times as many while it compresses"),
            (
                json!({ "dilation": 2.7, "processors": 8 }),
                "8 that never wait",
                "-rdseed, 2.7 instructions a nanosecond",
            ),
            (json!({ "user_mode": 1.5 }), "one, ", ", 1 instructions a nanosecond, 1.5 times as many in programs"),
        ] {
            let shown = of(machine).shown();
            assert!(shown.starts_with(begins) && shown.ends_with(ends), "{shown}");
        }
    }
}
