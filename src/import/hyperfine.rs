//! What `hyperfine --export-json` writes: every run of a command in seconds. Commands ran one after the other, each all of
//! its times, so that they are repeats and no rounds; an export of pickfs says which rounds they were.

use super::{Contents, Figures, Importer, Measure, nanoseconds};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;

pub struct Hyperfine;

#[derive(Deserialize)]
struct Output {
    results: Vec<Told>,
}

#[derive(Deserialize)]
struct Told {
    command: String,
    mean: f64,
    #[serde(default)]
    user: Option<f64>,
    #[serde(default)]
    system: Option<f64>,
    #[serde(default)]
    times: Vec<f64>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    #[serde(default)]
    pickfs: Option<Mark>,
}

/// Which rounds the times are of.
#[derive(Deserialize)]
pub struct Mark {
    pub rounds: Vec<u32>,
}

impl Importer for Hyperfine {
    fn name(&self) -> &'static str {
        "hyperfine"
    }

    fn about(&self) -> &'static str {
        "hyperfine --export-json: a target for every command"
    }

    fn recognises(&self, text: &str) -> bool {
        text.trim_start().starts_with('{') && text.contains("\"results\"") && text.contains("\"command\"")
    }

    fn read(&self, text: &str) -> Result<Contents> {
        let output: Output = serde_json::from_str(text).context("this is not what hyperfine exports")?;
        let mut figures = Figures::default();
        for told in &output.results {
            told.tell(&mut figures)?;
        }
        super::drop_sums(&mut figures);
        Ok(Contents::Figures(figures))
    }
}

impl Told {
    fn tell(&self, figures: &mut Figures) -> Result<()> {
        let named =
            |name: &str, otherwise: &str| self.parameters.get(name).map_or(otherwise, String::as_str).to_string();
        let rounds = self.pickfs.as_ref().map(|mark| mark.rounds.as_slice());
        // A version before 1.0 told no single times; then the mean is all there is.
        let times = if self.times.is_empty() { &[self.mean] } else { self.times.as_slice() };
        ensure!(
            rounds.is_none_or(|rounds| rounds.len() == times.len()),
            "{}: not one round for each time",
            self.command
        );
        let measure = |metric: &str, seconds: f64, round: Option<u32>| Measure {
            target: Some(if rounds.is_some() { named("target", &self.command) } else { self.command.clone() }),
            work: if rounds.is_some() { named("work", "hyperfine") } else { "hyperfine".into() },
            phase: if rounds.is_some() { named("phase", "command") } else { "command".into() },
            metric: metric.into(),
            round,
            value: nanoseconds(seconds),
        };
        for (at, seconds) in times.iter().enumerate() {
            figures.add(measure("time_ns", *seconds, rounds.map(|rounds| rounds[at])));
        }
        let means = [("cpu_user_mean_ns", self.user), ("cpu_system_mean_ns", self.system)];
        means.into_iter().for_each(|(name, value)| value.into_iter().for_each(|s| figures.add(measure(name, s, None))));
        let failed = self.exit_codes.iter().filter(|code| **code != Some(0)).count();
        if failed > 0 {
            figures.doubts.push((String::new(), format!("`{}` failed in {failed} of its runs", self.command)));
        }
        Ok(())
    }
}
