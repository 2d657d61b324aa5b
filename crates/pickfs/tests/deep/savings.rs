//! What a run costs: rounds and cells until it ends, against the rule of earlier versions on the
//! same seeds.
//!
//! The rule before raced by signed ranks from round 8 on, and ended with a proven winner or a
//! proven tie, or gave up. Its code is gone. What it came to is kept here: 1000 runs a line of the
//! races below, at the parent of commit f675606.

use crate::simulated;

use crate::simulated::noise::{Field, Side, replications};
use crate::simulated::{Race, mean, share, trials};
use pickfs_core::journal::StopReason;
use pickfs_core::plan::Stop;
use std::fmt::Write;

/// The first is the spread race; the others are easier to read off.
const TRUTHS: [(&str, &[f64]); 6] = [
    ("0, 10, 20, 40, 80 %", &[1.0, 1.1, 1.2, 1.4, 1.8]),
    ("two equal", &[1.0, 1.0]),
    ("two, +5 %", &[1.0, 1.05]),
    ("two, +10 %", &[1.0, 1.1]),
    ("two, +20 %", &[1.0, 1.2]),
    ("five equal", &[1.0; 5]),
];

/// What runs came to, on average: rounds, cells with those of the reference's copy, and how many
/// were decided, in %.
type Cost = (f64, f64, f64);

/// A noise, the most cells that a spread race may take, as a share of those before, and what each
/// truth took before.
struct Line {
    noise: Field,
    most_cells: f64,
    before: [Cost; 6],
}

#[rustfmt::skip]
const LINES: [Line; 11] = [
    Line { noise: alike("normal 1 %", Side::Normal(0.01)), most_cells: 0.6, before: [
        (11.0, 66.0, 100.0), (8.1, 24.4, 100.0), (9.1, 27.3, 100.0),
        (8.0, 24.0, 100.0), (8.0, 24.0, 100.0), (11.0, 66.2, 100.0),
    ] },
    Line { noise: alike("normal 2 %", Side::Normal(0.02)), most_cells: 0.6, before: [
        (11.1, 66.3, 100.0), (12.1, 36.4, 98.9), (12.3, 36.4, 100.0),
        (8.5, 25.4, 100.0), (8.0, 24.1, 100.0), (18.7, 111.9, 98.5),
    ] },
    Line { noise: alike("normal 3 %", Side::Normal(0.03)), most_cells: 0.6, before: [
        (12.7, 71.4, 99.8), (20.0, 60.0, 93.6), (17.5, 51.0, 99.7),
        (12.6, 36.1, 99.5), (8.2, 24.5, 100.0), (32.0, 190.2, 77.1),
    ] },
    Line { noise: alike("normal 5 %", Side::Normal(0.05)), most_cells: 0.6, before: [
        (28.6, 117.8, 94.3), (24.1, 72.2, 29.6), (33.3, 94.1, 75.6),
        (29.3, 79.1, 90.2), (11.0, 32.1, 99.7), (36.1, 214.2, 13.2),
    ] },
    Line { noise: alike("normal 6 %", Side::Normal(0.06)), most_cells: 0.6, before: [
        (34.9, 136.7, 58.7), (21.5, 64.2, 4.5), (33.0, 94.0, 25.9),
        (34.8, 94.3, 57.0), (14.9, 42.0, 97.4), (32.6, 194.4, 1.3),
    ] },
    Line { noise: alike("normal 10 %", Side::Normal(0.10)), most_cells: 0.6, before: [
        (36.8, 150.6, 3.5), (17.5, 52.2, 0.0), (25.7, 75.4, 0.5),
        (36.6, 102.3, 4.1), (32.2, 86.8, 50.9), (23.7, 140.8, 0.0),
    ] },
    Line { noise: alike("t2 1 %", Side::T2(0.01)), most_cells: 0.6, before: [
        (11.8, 68.9, 100.0), (12.8, 38.4, 99.3), (13.4, 39.8, 99.8),
        (9.4, 28.0, 100.0), (8.3, 24.8, 100.0), (20.2, 120.6, 98.6),
    ] },
    Line { noise: alike("t2 2 %", Side::T2(0.02)), most_cells: 0.6, before: [
        (16.6, 84.3, 99.4), (22.4, 67.1, 77.3), (22.2, 64.4, 97.2),
        (16.1, 45.9, 99.6), (9.8, 29.1, 99.8), (34.9, 207.8, 48.3),
    ] },
    Line { noise: alike("10 % outliers x3", Side::Modes { sd: 0.03, share: 0.1, by: 1.0986 }), most_cells: 0.85, before: [
        (26.6, 131.2, 60.2), (20.1, 60.3, 19.2), (23.4, 68.2, 36.6),
        (20.9, 61.7, 56.1), (22.0, 65.8, 73.7), (29.1, 173.3, 6.3),
    ] },
    Line { noise: alike("bimodal", Side::Modes { sd: 0.01, share: 0.2, by: 0.15 }), most_cells: 0.6, before: [
        (30.5, 123.7, 69.8), (24.9, 74.5, 20.0), (34.8, 100.8, 45.3),
        (29.9, 81.2, 73.1), (17.0, 46.8, 91.3), (37.0, 220.4, 5.7),
    ] },
    Line { noise: Field { name: "1.5 and 6 %", even: Side::Normal(0.015), odd: Side::Normal(0.06) }, most_cells: 0.6, before: [
        (20.5, 95.5, 88.3), (28.8, 86.3, 32.2), (29.4, 88.3, 67.6),
        (22.3, 67.0, 82.0), (10.0, 29.9, 99.6), (35.7, 213.0, 8.6),
    ] },
];

const fn alike(name: &'static str, side: Side) -> Field {
    Field { name, even: side, odd: side }
}

/// A spread race takes at most 0.6 of the cells before (0.85 with outliers), and what nine runs in
/// ten decided before takes at most 0.8 of the rounds.
#[test]
fn runs_end_earlier_than_before() {
    let count = replications(8, 1000);
    let mut table = String::from(
        "| noise | truth | rounds before | now | cells before | now | decided % before | now |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut wrong = Vec::new();
    for (at, line) in LINES.iter().enumerate() {
        for (number, ((truth, times), before)) in TRUTHS.iter().zip(line.before).enumerate() {
            let race = Race {
                truth: times.iter().map(|time| time.ln()).collect(),
                field: line.noise,
                odd: 0.0,
                stop: Stop::default(),
            };
            let runs = trials(count, (5000 + at * 10 + number) as u64, |seed| race.play(seed));
            let decided = 100.0 * share(&runs, |run| run.end == Some(StopReason::Decided));
            let (rounds, cells) = (mean(&runs, |run| f64::from(run.rounds)), mean(&runs, |run| run.cells as f64));
            let (rounds_before, cells_before, decided_before) = before;
            let name = line.noise.name;
            let _ = writeln!(
                table,
                "| {name} | {truth} | {rounds_before:.1} | {rounds:.1} | {cells_before:.1} | {cells:.1} | \
                 {decided_before:.1} | {decided:.1} |"
            );
            let doubt = |of: &dyn Fn(&simulated::Played) -> f64| ERRORS * standard_error(&runs, of);
            if number == 0 && cells - doubt(&|run| run.cells as f64) > line.most_cells * cells_before {
                wrong.push(format!("{name}, {truth}: {cells:.1} cells, {cells_before:.1} before"));
            }
            if decided_before >= 90.0 && rounds - doubt(&|run| f64::from(run.rounds)) > 0.8 * rounds_before {
                wrong.push(format!("{name}, {truth}: {rounds:.1} rounds, {rounds_before:.1} before"));
            }
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{table}\n{}", wrong.join("\n"));
}

/// A mean may be above its limit by at most this many standard errors.
const ERRORS: f64 = 3.5;

fn standard_error(runs: &[simulated::Played], of: &dyn Fn(&simulated::Played) -> f64) -> f64 {
    let centre = mean(runs, of);
    (mean(runs, |run| (of(run) - centre).powi(2)) / runs.len() as f64).sqrt()
}
