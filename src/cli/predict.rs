//! `pickfs scan --predict`: what file systems would store for a tree, and whether to turn compression on.

#![expect(clippy::disallowed_methods, reason = "shows progress")]

use super::Outcome;
use crate::data::scan::survey::survey;
use crate::data::scan::walk::Options;
use crate::predict::estimate::Estimate;
use crate::predict::rules::CODECS;
use crate::predict::{Effort, Predicted, Prediction, predict};
use crate::run::tell;
use crate::units::{show_bytes, show_duration, show_share};
use anyhow::Context;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// The widest interval is good enough when it is ±0.8 points.
const HALF_WIDTH: f64 = 0.008;
const TIME: Duration = Duration::from_secs(5);
/// Savings that decide: less than the first is not worth a setting, more than the second surely is.
const LITTLE: f64 = 0.03;
const MUCH: f64 = 0.10;
/// The fastest codec that saves so much of what the best one saves is recommended.
const NEARLY: f64 = 0.8;

pub fn main(dir: &Path, options: &Options, output: Option<&Path>) -> Outcome {
    let begun = Instant::now();
    let survey = survey(dir, options)?;
    let walked = begun.elapsed();
    let effort = Effort { half_width: HALF_WIDTH, time: TIME, threads: options.threads() };
    let prediction = predict(&survey, &effort);
    let shown = text(&prediction);
    match output {
        Some(file) => std::fs::write(file, shown).with_context(|| format!("writing {}", file.display()))?,
        None => print!("{shown}"),
    }
    tell(&spent(&prediction, walked, begun.elapsed() - walked));
    prediction.problems.lines().iter().for_each(|line| tell(&format!("  {line}")));
    Ok(0)
}

fn spent(prediction: &Prediction, walked: Duration, read: Duration) -> String {
    let time = |time: Duration| show_duration(time.as_nanos() as f64);
    let bytes = show_bytes(prediction.bytes_read as f64);
    let files = prediction.files_read;
    let complete = if prediction.problems.is_empty() { "" } else { "; what could not be seen:" };
    format!("walked in {}; compressed {bytes} of {files} files in {}{complete}", time(walked), time(read))
}

/// The table, then an answer for each file system.
fn text(prediction: &Prediction) -> String {
    let mut out = format!("{} files, {}", prediction.files, show_bytes(prediction.apparent as f64));
    if prediction.data.bytes < 0.99 * prediction.apparent as f64 {
        let _ = write!(out, ", of which {} are not in holes", show_bytes(prediction.data.bytes));
    }
    if prediction.data.bytes < 1.0 {
        return out + "\n\nThere is nothing to compress.\n";
    }
    let _ = write!(out, "\n\n{:18}{:>10}   {:22}{:>9}{:>14}\n", "", "stored", "of it (95 %)", "compsize", "compresses");
    for way in &prediction.ways {
        let _ = writeln!(out, "{}", row(prediction, way));
    }
    out += "\nstored: data alone, without directories, checksums and second copies; compsize: the percentage that it\n\
            would print; compresses: one processor, with the codec as a program has it, the kernel's may differ\n";
    for filesystem in ["btrfs", "zfs"] {
        let ways: Vec<&Predicted> = prediction.ways.iter().filter(|way| way.way.filesystem == filesystem).collect();
        let _ = write!(out, "\n{}\n", answer(prediction, &ways));
    }
    out
}

fn row(prediction: &Prediction, predicted: &Predicted) -> String {
    let name = format!("{} {}", predicted.way.filesystem, predicted.way.option);
    let stored = show_bytes(predicted.stored.bytes);
    let of_data = prediction.data.bytes;
    let share = format!("{} ({})", show_share(predicted.stored.bytes / of_data), range(&predicted.stored, of_data));
    let compsize = match predicted.way.filesystem {
        "btrfs" => show_share(predicted.stored.bytes / predicted.plain.bytes.max(1.0)),
        _ => String::new(),
    };
    let speed = speed(prediction, predicted).map(|speed| format!("{:.0} MB/s", speed / 1e6)).unwrap_or_default();
    format!("{name:18}{stored:>10}   {share:22}{compsize:>9}{speed:>14}").trim_end().to_string()
}

/// "24.0–26.1" of a hundred.
fn range(estimate: &Estimate, of: f64) -> String {
    let (low, high) = estimate.interval();
    if estimate.half_width == 0.0 {
        return "all read".into();
    }
    format!("{:.1}–{:.1}", 100.0 * low / of, 100.0 * high / of)
}

fn speed(prediction: &Prediction, predicted: &Predicted) -> Option<f64> {
    let index = CODECS.iter().position(|codec| Some(*codec) == predicted.way.codec)?;
    prediction.speeds[index]
}

/// Of one file system, whose first way does not compress.
fn answer(prediction: &Prediction, ways: &[&Predicted]) -> String {
    let Some((plain, ways)) = ways.split_first() else { return String::new() };
    let saves = |way: &Predicted| 1.0 - way.stored.bytes / plain.stored.bytes.max(1.0);
    let Some(best) = ways.iter().max_by(|a, b| saves(a).total_cmp(&saves(b))) else { return String::new() };
    let fast = |way: &&&Predicted| speed(prediction, way).unwrap_or(0.0);
    let nearly = ways.iter().filter(|way| saves(way) >= NEARLY * saves(best));
    let pick = nearly.max_by(|a, b| fast(a).total_cmp(&fast(b))).unwrap_or(best);
    let option = pick.way.option;
    let saving = format!("saves {:.0} % of what is taken without compression", 100.0 * saves(pick));
    let advice = match saves(best) {
        best if best < LITTLE => format!("Leave compression off: no codec saves even {:.0} %.", 100.0 * LITTLE),
        best if best < MUCH => format!("Compression matters little: {option} {saving}."),
        _ => format!("Turn compression on: {option} {saving}{}.", more(prediction, pick, best, plain)),
    };
    format!("{}: {}\n  {advice}", pick.way.filesystem, would_store(prediction, pick))
}

/// "zstd:1 would store 412 MiB of 1.60 GiB (24–26 %)."
fn would_store(prediction: &Prediction, way: &Predicted) -> String {
    let of = prediction.data.bytes;
    let (low, high) = way.stored.interval();
    let (low, high) = (format!("{:.0}", 100.0 * low / of), format!("{:.0}", 100.0 * high / of));
    let share = if low == high { low } else { format!("{low}–{high}") };
    format!("{} would store {} of {} ({share} %).", way.way.option, show_bytes(way.stored.bytes), show_bytes(of))
}

/// What the best brings beyond the pick.
fn more(prediction: &Prediction, pick: &Predicted, best: &Predicted, plain: &Predicted) -> String {
    let points = 100.0 * (pick.stored.bytes - best.stored.bytes) / plain.stored.bytes.max(1.0);
    if pick.way == best.way || points < 0.5 {
        return String::new();
    }
    let slower = match (speed(prediction, pick), speed(prediction, best)) {
        (Some(pick), Some(best)) => format!(", at {:.0} % of the speed", 100.0 * best / pick),
        _ => String::new(),
    };
    format!("; {} saves {points:.1} points more{slower}", best.way.option)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::rules::WAYS;

    fn estimate(bytes: f64) -> Estimate {
        Estimate { bytes, half_width: 0.01 * bytes }
    }

    /// Of 1000 MiB; what each way stores in MiB, and codecs that get slower.
    fn made(stored: [f64; 9]) -> Prediction {
        const MIB: f64 = 1024.0 * 1024.0;
        let way = |index: usize| Predicted {
            way: WAYS[index],
            stored: estimate(stored[index] * MIB),
            plain: estimate(1000.0 * MIB),
        };
        Prediction {
            files: 7,
            apparent: 1000 << 20,
            data: Estimate { bytes: 1000.0 * MIB, half_width: 0.0 },
            ways: (0..9).map(way).collect(),
            speeds: [500e6, 60e6, 400e6, 200e6, 600e6, 30e6].map(Some),
            files_read: 7,
            bytes_read: 1 << 20,
            problems: Default::default(),
        }
    }

    #[test]
    fn the_answer_names_the_fastest_that_saves_nearly_the_most() {
        let text = text(&made([1000.0, 500.0, 250.0, 250.0, 240.0, 1000.0, 400.0, 300.0, 300.0]));
        for line in [
            "btrfs: zstd:1 would store 250 MiB of 0.98 GiB (25 %).",
            "  Turn compression on: zstd:1 saves 75 % of what is taken without compression; zstd:3 saves 1.0 points more, at 50 % of the speed.",
            "zfs: lz4 would store 400 MiB of 0.98 GiB (40 %).",
            "btrfs zstd:3         240 MiB   24.0 % (23.8–24.2)       24.0 %      200 MB/s",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn what_saves_little_is_not_recommended() {
        let advice =
            |stored: f64| text(&made([1000.0, 1000.0, stored, stored, stored, 1000.0, 1000.0, 1000.0, 1000.0]));
        assert!(advice(980.0).contains("Leave compression off: no codec saves even 3 %."));
        assert!(advice(930.0).contains("Compression matters little: zstd:1 saves 7 % of"));
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let nothing = Prediction { files: 3, apparent: 0, data: Estimate::default(), ..made([0.0; 9]) };
        assert_eq!(text(&nothing), "3 files, 0 B\n\nThere is nothing to compress.\n");
    }
}
