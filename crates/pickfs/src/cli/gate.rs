//! Whether this machine is fit to measure: left alone, and as fast as before. For the health check
//! of many machines.

#![expect(clippy::disallowed_methods, reason = "measures how fast this machine is")]

use super::cpu_speed::SpeedProbe;
use super::{FAILED, Outcome};
use anyhow::{Context, Result};
use pickfs_host::run::{Active, State};
use pickfs_stats::median;
use pickfs_target::probe::{Subject, foreign};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Readings of the loop, each 30 ms long: two seconds in all.
const READINGS: usize = 65;
/// From the median of earlier readings.
const MOST_APART: f64 = 0.05;
/// Most CPU time of other processes, as a share of one processor.
const MOST_FOREIGN: f64 = 0.05;
/// Readings that there must be before they are compared with.
const LEAST_HISTORY: usize = 5;
const MOST_HISTORY: usize = 200;

// No doc comment: clap would take it for the verb's own.
#[derive(clap::Args)]
pub(crate) struct Gate {
    /// Check whether this machine is fit to measure: as fast as before, and idle; if not, exit code
    /// 1 with the reason
    #[arg(long, conflicts_with = "json")]
    pub gate: bool,
    /// With --gate: forget how fast it was, such as after a change of hardware
    #[arg(long, requires = "gate")]
    forget: bool,
    /// A speed and a share of a processor instead of measuring
    #[arg(long, hide = true, requires = "gate", value_name = "SPEED,SHARE", value_parser = reading)]
    reading: Option<Reading>,
}

/// What was seen of the machine.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Pieces of work a second; means nothing but by ratios.
    speed: f64,
    /// Share of one processor that programs used which are none of ours.
    foreign: f64,
}

fn reading(text: &str) -> Result<Reading, String> {
    let numbers: Vec<f64> = text.split(',').filter_map(|number| number.parse().ok()).collect();
    let is_sane = |number: &f64| number.is_finite() && *number >= 0.0;
    match numbers.as_slice() {
        [speed, foreign] if numbers.iter().all(is_sane) => Ok(Reading { speed: *speed, foreign: *foreign }),
        _ => Err("give two numbers, such as 100,0.01".into()),
    }
}

impl Gate {
    pub(crate) fn run(&self) -> Outcome {
        let state = State::create("")?;
        let file = state.file("gate");
        if self.forget {
            let _ = fs::remove_file(&file);
        }
        let runs = Active::list()?;
        if let Some((run, _)) = runs.iter().find(|(run, _)| Active::is_alive(run)) {
            // Two seconds of a processor would be in its times.
            println!("not measured: the run {run} is under way");
            return Ok(0);
        }
        if let Some((run, _)) = runs.first() {
            println!("unfit: the run {run} is dead and not undone; `pickfs clean` undoes it");
            return Ok(FAILED);
        }
        let (history, now) = (history(&file), self.reading.unwrap_or_else(measured));
        Ok(match judged(now, &history) {
            Ok(why) => {
                remember(&file, &history, now.speed)?;
                println!("fit: {why}");
                0
            }
            Err(why) => {
                println!("unfit: {why}");
                FAILED
            }
        })
    }
}

fn measured() -> Reading {
    let used = || foreign::read(&Subject::default()).iter().map(|reading| reading.value).sum::<f64>();
    let mut probe = SpeedProbe::new();
    // The first one is of a buffer that is new.
    probe.read();
    let (begun, before) = (Instant::now(), used());
    let speeds: Vec<f64> = (0..READINGS).map(|_| probe.read()).collect();
    let foreign = (used() - before).max(0.0) / begun.elapsed().as_nanos() as f64;
    Reading { speed: median(&speeds).unwrap_or_default(), foreign }
}

/// Why it is fit, or why not.
fn judged(now: Reading, history: &[f64]) -> Result<String, String> {
    if now.foreign > MOST_FOREIGN {
        return Err(format!(
            "other programs use {:.0} % of a processor, more than {:.0} %",
            100.0 * now.foreign,
            100.0 * MOST_FOREIGN
        ));
    }
    let count = history.len();
    if count < LEAST_HISTORY {
        return Ok(format!("{count} earlier readings, which are compared with from {LEAST_HISTORY} on"));
    }
    let apart = now.speed / median(history).unwrap_or_default() - 1.0;
    let shown = format!("{:.1} % {} than the median of {count} earlier readings", 100.0 * apart.abs(), word(apart));
    if apart.abs() > MOST_APART {
        Err(format!(
            "{shown}, more than {:.0} %; see to it, or let `pickfs doctor --gate --forget` begin anew",
            100.0 * MOST_APART
        ))
    } else {
        Ok(shown)
    }
}

fn word(apart: f64) -> &'static str {
    if apart < 0.0 { "slower" } else { "faster" }
}

/// Speeds at which the machine was fit, a line each.
fn history(file: &Path) -> Vec<f64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).filter(|speed: &f64| speed.is_finite() && *speed > 0.0).collect()
}

/// Only what was fit: a machine that slows down by and by must not take its past with it.
fn remember(file: &Path, history: &[f64], speed: f64) -> Result<()> {
    let first = (history.len() + 1).saturating_sub(MOST_HISTORY);
    let lines = history[first.min(history.len())..].iter().chain([&speed]);
    let text: String = lines.map(|speed| format!("{speed}\n")).collect();
    let new: PathBuf = file.with_extension(format!("new-{}", std::process::id()));
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, file));
    written.context("cannot write `gate` in the state folder; set XDG_STATE_HOME to a folder of yours")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_fit_that_is_left_alone_and_as_fast_as_it_was() {
        let steady = [99.0, 101.0, 100.0, 98.0, 102.0];
        let rows: [(f64, f64, &[f64], &str); 8] = [
            (100.0, 0.0, &[], "fit: 0 earlier readings"),
            (50.0, 0.0, &steady[..4], "fit: 4 earlier readings"),
            (96.0, 0.0, &steady, "fit: 4.0 % slower than the median of 5"),
            (104.9, 0.05, &steady, "fit: 4.9 % faster"),
            (92.0, 0.0, &steady, "unfit: 8.0 % slower"),
            (106.0, 0.0, &steady, "unfit: 6.0 % faster"),
            (100.0, 0.06, &steady, "unfit: other programs use 6 % of a processor"),
            (100.0, 2.0, &[], "unfit: other programs use 200 %"),
        ];
        for (speed, foreign, history, wanted) in rows {
            let said = match judged(Reading { speed, foreign }, history) {
                Ok(why) => format!("fit: {why}"),
                Err(why) => format!("unfit: {why}"),
            };
            assert!(said.starts_with(wanted), "{said}, not {wanted}");
        }
    }

    #[test]
    fn what_is_remembered_is_the_latest() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gate");
        for number in 1..=MOST_HISTORY + 3 {
            remember(&file, &history(&file), number as f64).unwrap();
        }
        let all = history(&file);
        assert_eq!((all.len(), all[0], all[MOST_HISTORY - 1]), (MOST_HISTORY, 4.0, MOST_HISTORY as f64 + 3.0));
        fs::write(&file, "1\nnonsense\nNaN\n-3\n2\n").unwrap();
        assert_eq!(history(&file), [1.0, 2.0]);
    }
}
