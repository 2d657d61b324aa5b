//! What `hyperfine --export-json` writes: every run of a command in seconds, up to version 1.20 as
//! a list, from 2.0 on a measurement for each run. Commands ran one after the other, each all of
//! its times, so that they are repeats and no rounds; an export of pickfs says which rounds they
//! were. Reports show what hyperfine shows: mean, standard deviation and range.

use super::{About, Contents, Figures, Importer, Measure, nanoseconds};
use anyhow::{Context, Result, ensure};
use pickfs_core::metric::MEAN_RUN_NS;
use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) struct Hyperfine;

const WORK: &str = "hyperfine";
const PHASE: &str = "command";

#[derive(Deserialize)]
struct Output {
    results: Vec<Command>,
}

/// One command, in either layout. Times are in seconds.
#[derive(Deserialize)]
struct Command {
    command: String,
    #[serde(flatten)]
    layout: Layout,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    #[serde(default)]
    pickfs: Option<Mark>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Layout {
    /// Since 2.0.
    Measurements {
        measurements: Vec<Measurement>,
        summary: Summary,
    },
    Lists(Lists),
}

#[derive(Deserialize)]
struct Measurement {
    time_wall_clock: Quantity,
    #[serde(default)]
    exit_code: Option<i64>,
}

#[derive(Deserialize)]
struct Quantity {
    value: f64,
    #[serde(default)]
    unit: String,
}

#[derive(Deserialize)]
struct Summary {
    time_wall_clock: Spread,
    #[serde(default)]
    time_user: Option<Spread>,
    #[serde(default)]
    time_system: Option<Spread>,
}

#[derive(Clone, Copy, Deserialize)]
struct Spread {
    mean: f64,
    #[serde(default)]
    stddev: Option<f64>,
    #[serde(default)]
    median: Option<f64>,
    #[serde(default)]
    min: Option<f64>,
    #[serde(default)]
    max: Option<f64>,
}

#[derive(Deserialize)]
struct Lists {
    #[serde(flatten)]
    spread: Spread,
    #[serde(default)]
    user: Option<f64>,
    #[serde(default)]
    system: Option<f64>,
    /// Versions before 1.0 have none.
    #[serde(default)]
    times: Vec<f64>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
}

/// Which rounds the times are of.
#[derive(Deserialize)]
pub(crate) struct Mark {
    pub rounds: Vec<u32>,
}

impl Importer for Hyperfine {
    fn name(&self) -> &'static str {
        "hyperfine"
    }

    fn about(&self) -> &'static str {
        "hyperfine --export-json, of version 1 or 2: a target for every command"
    }

    fn recognises(&self, text: &str) -> bool {
        text.trim_start().starts_with('{') && text.contains("\"results\"") && text.contains("\"command\"")
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let output: Output = serde_json::from_str(text).context("this is not what hyperfine exports")?;
        let mut figures = Figures::default();
        for command in &output.results {
            command.read(&mut figures)?;
        }
        super::drop_sums(&mut figures);
        Ok(Contents::Figures(figures))
    }
}

impl Layout {
    fn lists(&self) -> Result<Lists> {
        let (measurements, summary) = match self {
            Layout::Lists(Lists { spread, user, system, times, exit_codes }) => {
                let (spread, user, system) = (*spread, *user, *system);
                return Ok(Lists { spread, user, system, times: times.clone(), exit_codes: exit_codes.clone() });
            }
            Layout::Measurements { measurements, summary } => (measurements, summary),
        };
        let strange = measurements.iter().map(|one| one.time_wall_clock.unit.as_str()).find(|unit| *unit != "second");
        ensure!(strange.is_none(), "a time in `{}`, where seconds are expected", strange.unwrap_or_default());
        Ok(Lists {
            spread: summary.time_wall_clock,
            user: summary.time_user.map(|user| user.mean),
            system: summary.time_system.map(|system| system.mean),
            times: measurements.iter().map(|one| one.time_wall_clock.value).collect(),
            exit_codes: measurements.iter().map(|one| one.exit_code).collect(),
        })
    }
}

impl Command {
    fn read(&self, figures: &mut Figures) -> Result<()> {
        let Lists { spread, user, system, times, exit_codes } = self.layout.lists()?;
        let named =
            |name: &str, otherwise: &str| self.parameters.get(name).map_or(otherwise, String::as_str).to_string();
        let rounds = self.pickfs.as_ref().map(|mark| mark.rounds.as_slice());
        let times = if times.is_empty() { vec![spread.mean] } else { times };
        ensure!(
            rounds.is_none_or(|rounds| rounds.len() == times.len()),
            "{}: not one round for each time",
            self.command
        );
        let target = if rounds.is_some() { named("target", &self.command) } else { self.command.clone() };
        let work = if rounds.is_some() { named("work", WORK) } else { WORK.into() };
        let measure = |metric: &str, seconds: f64, round: Option<u32>| Measure {
            target: Some(target.clone()),
            work: work.clone(),
            phase: if rounds.is_some() { named("phase", PHASE) } else { PHASE.into() },
            metric: metric.into(),
            round,
            value: nanoseconds(seconds),
        };
        for (at, seconds) in times.iter().enumerate() {
            figures.add(measure("time_ns", *seconds, rounds.map(|rounds| rounds[at])));
        }
        let mut all = vec![("cpu_user_mean_ns", user), ("cpu_system_mean_ns", system)];
        if rounds.is_none() {
            let shown = spread.shown();
            shown.iter().for_each(|(metric, name, _)| figures.headline(WORK, PHASE, metric, name));
            all.extend(shown.map(|(metric, _, value)| (metric, value)));
        }
        all.into_iter().for_each(|(name, value)| value.into_iter().for_each(|s| figures.add(measure(name, s, None))));
        let failed = exit_codes.iter().filter(|code| **code != Some(0)).count();
        if failed > 0 {
            figures.doubt(
                About::Target { target, work },
                "",
                format!("`{}` failed in {failed} of its runs", self.command),
            );
        }
        Ok(())
    }
}

impl Spread {
    /// In the order in which hyperfine prints them; the median comes last.
    fn shown(self) -> [(&'static str, &'static str, Option<f64>); 5] {
        [
            (MEAN_RUN_NS, "mean", Some(self.mean)),
            ("run_deviation_ns", "stddev", self.stddev),
            ("shortest_run_ns", "min", self.min),
            ("longest_run_ns", "max", self.max),
            ("median_run_ns", "median", self.median),
        ]
    }
}
