//! `pickfs scan --predict`: what file systems would store for a tree, and whether to turn
//! compression on.

#![expect(clippy::disallowed_methods, reason = "shows progress")]

use super::{Outcome, report};
use pickfs_host::run::tell;
use pickfs_system::units::{show_bytes, show_duration, show_share};
use pickfs_trees::predict::advice::{Advice, Gain, LITTLE, More};
use pickfs_trees::predict::estimate::Estimate;
use pickfs_trees::predict::rules;
use pickfs_trees::predict::{Effort, Predicted, Prediction, predict};
use pickfs_trees::scan::survey::survey;
use pickfs_trees::scan::walk::Options;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) fn main(dir: &Path, options: &Options, output: Option<&Path>) -> Outcome {
    let begun = Instant::now();
    let survey = survey(dir, options)?;
    let walked = begun.elapsed();
    let prediction = predict(&survey, &Effort::usual(options.threads()));
    let shown = text(&prediction);
    report::deliver(shown.as_bytes(), output)?;
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
    for advice in rules::ALL.iter().filter_map(|rules| prediction.advice(rules.filesystem)) {
        let _ = write!(out, "\n{}\n", answer(prediction, &advice));
    }
    out
}

fn row(prediction: &Prediction, predicted: &Predicted) -> String {
    let name = format!("{} {}", predicted.way.rules.filesystem, predicted.way.option);
    let stored = show_bytes(predicted.stored.bytes);
    let of_data = prediction.data.bytes;
    let share = format!("{} ({})", show_share(predicted.stored.bytes / of_data), range(&predicted.stored, of_data));
    let compsize = predicted.way.rules.compsize;
    let compsize = compsize.then(|| show_share(predicted.stored.bytes / predicted.plain.bytes.max(1.0)));
    let compsize = compsize.unwrap_or_default();
    let speed = prediction.speed(predicted).map(|speed| format!("{:.0} MB/s", speed / 1e6)).unwrap_or_default();
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

fn answer(prediction: &Prediction, advice: &Advice) -> String {
    let option = advice.pick.way.option;
    let saving = format!("saves {:.0} % of what is taken without compression", 100.0 * advice.saves);
    let more = advice.more.as_ref().map(more).unwrap_or_default();
    let what = match advice.gain {
        Gain::Unknown => {
            format!("Whether {option} saves anything is not known: the sample allows both. Try it on a copy.")
        }
        Gain::None => format!("Leave compression off: no codec saves even {:.0} %.", 100.0 * LITTLE),
        Gain::Little => format!("Compression matters little: {option} {saving}."),
        Gain::Much => format!("Turn compression on: {option} {saving}{more}."),
    };
    format!("{}: {}\n  {what}", advice.pick.way.rules.filesystem, would_store(prediction, advice.pick))
}

/// "; zstd:3 saves 1.0 points more, at 50 % of the speed".
fn more(more: &More) -> String {
    let slower = more.speed.map(|speed| format!(", at {:.0} % of the speed", 100.0 * speed)).unwrap_or_default();
    format!("; {} saves {:.1} points more{slower}", more.way.way.option, 100.0 * more.share)
}

/// "zstd:1 would store 412 MiB of 1.60 GiB (24–26 %)."
fn would_store(prediction: &Prediction, way: &Predicted) -> String {
    let of = prediction.data.bytes;
    let (low, high) = way.stored.interval();
    let (low, high) = (format!("{:.0}", 100.0 * low / of), format!("{:.0}", 100.0 * high / of));
    let share = if low == high { low } else { format!("{low}–{high}") };
    format!("{} would store {} of {} ({share} %).", way.way.option, show_bytes(way.stored.bytes), show_bytes(of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::STORAGE_OPTIONS;

    fn estimate(bytes: f64) -> Estimate {
        Estimate { bytes, half_width: 0.01 * bytes }
    }

    /// A prediction for 1000 MiB, with what each way stores in MiB, and codecs that get slower.
    fn made(stored: [f64; 9]) -> Prediction {
        // The others store the same whatever is asked of btrfs and zfs.
        let others = [1000.0, 450.0, 1000.0, 600.0, 500.0, 1000.0, 600.0, 500.0];
        let stored: Vec<f64> = stored.into_iter().chain(others).collect();
        const MIB: f64 = 1024.0 * 1024.0;
        let way = |index: usize| Predicted {
            way: STORAGE_OPTIONS[index],
            stored: estimate(stored[index] * MIB),
            plain: estimate(1000.0 * MIB),
        };
        Prediction {
            files: 7,
            apparent: 1000 << 20,
            data: Estimate { bytes: 1000.0 * MIB, half_width: 0.0 },
            ways: (0..STORAGE_OPTIONS.len()).map(way).collect(),
            speeds: [500e6, 60e6, 400e6, 200e6, 600e6, 30e6, 20e6, 300e6, 250e6, 300e6, 250e6].map(Some),
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
            "erofs: lz4hc would store 450 MiB of 0.98 GiB (45 %).",
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
    fn no_advice_goes_against_its_interval() {
        let mut made = made([1000.0, 1000.0, 800.0, 800.0, 800.0, 1000.0, 1000.0, 1000.0, 1000.0]);
        made.ways.iter_mut().for_each(|way| way.stored.half_width = 0.25 * way.stored.bytes);
        let text = text(&made);
        assert!(text.contains("zstd:1 would store 800 MiB of 0.98 GiB (60–100 %)."), "{text}");
        let btrfs = text.split("btrfs: ").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
        assert!(btrfs.contains("Whether zstd:1 saves anything is not known"), "{text}");
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let nothing = Prediction { files: 3, apparent: 0, data: Estimate::default(), ..made([0.0; 9]) };
        assert_eq!(text(&nothing), "3 files, 0 B\n\nThere is nothing to compress.\n");
    }
}
