//! A slow-down of a known size, through the whole of pickfs: one target is born with more files to read than the other.
//! What the report says of it must be true.

mod common;

use common::{Lab, not_run, unable};
use pickfs::journal::Folded;
use pickfs::report::{self, Comparison, Model, VerdictKind};
use pickfs::stats::Finding;
use std::collections::BTreeMap;

const FILES: u32 = 100;
const BYTES: usize = 8192;

/// Times of equal work that are further apart than this show that something else had the processor.
const DISTURBED: f64 = 1.15;

/// Runs `few` with so many files against `many` with so many more. What disturbs the machine is seen within each target,
/// never between them, so a run may be repeated for it: three runs at most.
fn compared(more: u32) -> Model {
    let run = || {
        let lab = Lab::new();
        let model = compared_once(&lab, more);
        (spread(&lab.folded()), model)
    };
    let mut runs = (0..3).map(|_| run());
    let (mut spread, mut model) = runs.next().expect("three runs");
    while let Some(again) = (spread > DISTURBED).then(|| runs.next()).flatten() {
        println!("once more: equal work took up to {spread:.2} times as long");
        (spread, model) = again;
    }
    model
}

/// The longest time of a target over its shortest, for the target where that is most.
fn spread(folded: &Folded) -> f64 {
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for cell in &folded.cells {
        times.entry(&cell.target).or_default().extend(folded.value(cell, "read", "time_ns"));
    }
    let longest = |times: &Vec<f64>| times.iter().copied().fold(0.0, f64::max);
    let shortest = |times: &Vec<f64>| times.iter().copied().fold(f64::INFINITY, f64::min);
    times.values().map(|times| longest(times) / shortest(times)).fold(0.0, f64::max)
}

fn compared_once(lab: &Lab, more: u32) -> Model {
    for (name, files) in [("few", FILES), ("many", FILES + more)] {
        let folder = lab.path(name);
        std::fs::create_dir(&folder).expect("a folder");
        for number in 0..files {
            std::fs::write(folder.join(format!("file{number}")), vec![number as u8; BYTES]).expect("a file");
        }
    }
    let target = |name: &str| {
        let born_with = lab.path(name);
        format!("[[target]]\nname = \"{name}\"\nfs = \"ext4\"\nmkfs = [\"-d\", \"{}\"]\n", born_with.display())
    };
    let plan = format!(
        "backing = {{ memory = \"16MiB\" }}\n{}{}[[work]]\nworkload = \"meta.read\"\n[stop]\nrounds = 8\n",
        target("few"),
        target("many")
    );
    lab.run_plan(&plan).code(0);
    lab.assert_nothing_left();
    report::model(&lab.folded()).expect("the report is made")
}

fn many_against_few(model: &Model) -> &Comparison {
    let row = model.works[0].phases[0].rows.iter().find(|row| model.targets[row.target].name == "many");
    row.and_then(|row| row.against.as_ref()).expect("`many` is compared with `few`")
}

#[test]
fn a_fifth_more_work_is_found_and_its_size_told() {
    if not_run("a_fifth_more_work_is_found_and_its_size_told", unable(&["ext4"])) {
        return;
    }
    let model = compared(FILES / 5);
    let (verdict, against) = (&model.works[0].verdict, many_against_few(&model));
    println!("{}, {}", against.shown, verdict.headline);
    let (low, high) = against.estimate.interval.expect("eight rounds have an interval");
    assert!(1.1 < low && high < 1.3, "{}", against.shown);
    assert_eq!(against.finding, Some(Finding::Higher), "{}", against.words);
    let best: Vec<&str> = verdict.best.iter().map(|target| model.targets[*target].name.as_str()).collect();
    assert_eq!((verdict.kind, best), (VerdictKind::Pick, vec!["few"]), "{}", verdict.headline);
}

/// Far below the difference that matters: a tie, or on a noisy machine unresolved or perhaps negligible; never more.
#[test]
fn a_hundredth_more_work_is_no_difference_that_matters() {
    if not_run("a_hundredth_more_work_is_no_difference_that_matters", unable(&["ext4"])) {
        return;
    }
    let model = compared(FILES / 100);
    let against = many_against_few(&model);
    assert!(!matches!(against.finding, Some(Finding::Higher | Finding::Lower)), "{}", against.words);
    println!("{}, {}", against.shown, model.works[0].verdict.headline);
}
