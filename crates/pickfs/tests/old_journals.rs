//! Journals that earlier versions wrote stay readable: each is folded to what it holds, and every
//! report can be made.

use crate::common::{Lab, Said};
use pickfs_core::journal::{Folded, Outcome, fold_file};
use std::path::PathBuf;

/// What a journal of `fixtures/journals` holds.
struct Kept {
    journal: &'static str,
    /// Cells that are done, skipped, failed, and not finished.
    cells: [usize; 4],
    samples: usize,
    looks: usize,
    leftovers: usize,
}

#[rustfmt::skip]
const KEPT: &[Kept] = &[
    Kept { journal: "default-run", cells: [54, 0, 0, 0], samples: 2052, looks: 1, leftovers: 0 },
    Kept { journal: "failed-and-skipped", cells: [4, 4, 4, 0], samples: 44, looks: 1, leftovers: 0 },
    Kept { journal: "first-version", cells: [12, 0, 0, 0], samples: 136, looks: 0, leftovers: 0 },
    Kept { journal: "imported", cells: [1, 0, 0, 0], samples: 55, looks: 0, leftovers: 0 },
    Kept { journal: "interim-analyses", cells: [35, 0, 0, 0], samples: 175, looks: 2, leftovers: 0 },
    Kept { journal: "killed", cells: [1, 0, 0, 1], samples: 11, looks: 0, leftovers: 11 },
    Kept { journal: "layers-and-age", cells: [9, 18, 3, 0], samples: 273, looks: 1, leftovers: 0 },
    Kept { journal: "left-out", cells: [4, 2, 0, 0], samples: 702, looks: 1, leftovers: 0 },
    Kept { journal: "linked", cells: [16, 0, 0, 0], samples: 240, looks: 1, leftovers: 0 },
    Kept { journal: "looks-without-yardsticks", cells: [60, 0, 0, 0], samples: 120, looks: 4, leftovers: 0 },
    Kept { journal: "small-files", cells: [9, 0, 0, 0], samples: 77, looks: 1, leftovers: 0 },
];

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals"))
}

fn path(kept: &Kept) -> PathBuf {
    folder().join(kept.journal).with_extension("jsonl")
}

fn cells(folded: &Folded) -> [usize; 4] {
    let count = |is: fn(&Option<Outcome>) -> bool| folded.cells.iter().filter(|cell| is(&cell.outcome)).count();
    [
        count(|outcome| matches!(outcome, Some(Outcome::Done))),
        count(|outcome| matches!(outcome, Some(Outcome::Skipped(why)) if !why.is_empty())),
        count(|outcome| matches!(outcome, Some(Outcome::Failed(why)) if !why.is_empty())),
        count(Option::is_none),
    ]
}

#[test]
fn every_journal_of_an_earlier_version_is_folded_whole() {
    let files = std::fs::read_dir(folder())
        .unwrap()
        .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "jsonl"));
    assert_eq!(files.count(), KEPT.len(), "a journal that this test does not know");
    for kept in KEPT {
        let folded = fold_file(&path(kept)).unwrap();
        let samples: usize = folded.cells.iter().map(|cell| folded.samples(cell).count()).sum();
        let found = (cells(&folded), samples, folded.looks.len(), folded.leftovers.len());
        assert_eq!(found, (kept.cells, kept.samples, kept.looks, kept.leftovers), "{}", kept.journal);
        assert_eq!(folded.unreadable, 0, "{}", kept.journal);
        let plan = folded.run.expect("a run").plan;
        assert!(!plan.targets.is_empty() && !plan.works.is_empty() && !plan.title.is_empty(), "{}", kept.journal);
    }
}

/// What a later version must not lose of the plan of an earlier one.
#[test]
fn plans_in_old_journals_keep_what_they_say() {
    let plan = |journal: &str| fold_file(&folder().join(journal)).unwrap().run.unwrap().plan;
    let layered = plan("layers-and-age.jsonl");
    let target = |name: &str| layered.targets.iter().find(|target| target.name == name).unwrap();
    assert_eq!(target("encrypted").layers.iter().map(|layer| layer.name.as_str()).collect::<Vec<_>>(), ["luks", "lvm"]);
    assert_eq!((target("old").age.map(String::from), target("old").fill), (Some("churn 1x".into()), Some(0.2)));
    assert!(layered.verdict.has_counts());
    let parts = &layered.verdict.parts;
    assert_eq!(parts.iter().map(|part| part.amount).collect::<Vec<_>>(), [1.0, 3.0, 5.0]);
    assert_eq!((&layered.verdict.require[..], layered.verdict.limits.len()), (&["checksums".to_string()][..], 2));
    assert_eq!(layered.verdict.holds["file"], 1 << 40);
    assert_eq!(plan("first-version.jsonl").stop.rounds, Some(4));
    assert_eq!(plan("interim-analyses.jsonl").stop.budget_ns, Some(16_000_000_000));
}

#[test]
fn every_report_of_an_old_journal_can_be_made() {
    let lab = Lab::new();
    let listed = lab.run(&["list", "formats"]).code(0).out;
    // A line that is indented goes on with the one before.
    let names = listed.lines().filter(|line| !line.starts_with("   "));
    let formats: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(formats.contains(&"json") && formats.contains(&"text"), "{formats:?}");
    for kept in KEPT {
        let path = path(kept);
        let journal = path.to_str().unwrap();
        for format in &formats {
            lab.run(&["report", journal, "--format", format, "-o", "report"]).code(0);
            assert!(std::fs::metadata(lab.path("report")).unwrap().len() > 0, "{journal} as {format}");
        }
        lab.run(&["choices", journal]).code(0);
    }
}

/// The journal's lines, and a reading of the processor's speed with each time, as an earlier
/// version took them: usual ones but in these cells.
fn with_readings(journal: &str, odd: &[&str]) -> String {
    let with_reading = |line: &str| {
        let mut record: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let Some(sample) = record.get_mut("sample").filter(|sample| sample["metric"] == "time_ns") else {
            return format!("{line}\n");
        };
        let is_odd = odd.iter().any(|cell| sample["cell"] == *cell);
        sample["metric"] = "cpu_speed_per_second".into();
        sample["value"] = (if is_odd { 19_000.0 } else { 80_000.0 }).into();
        format!("{line}\n{record}\n")
    };
    journal.lines().map(with_reading).collect()
}

/// Readings of two cells that took long, here by a third and a quarter, would explain them away.
#[test]
fn readings_of_the_processor_in_old_journals_decide_nothing() {
    let lab = Lab::new();
    let journal = std::fs::read_to_string(folder().join("default-run.jsonl")).unwrap();
    let reported = |journal: &str| {
        std::fs::write(lab.path("run.jsonl"), journal).unwrap();
        lab.run(&["report", "run.jsonl", "--format", "text"]).code(0).out
    };
    let slow = ["330801abe7bfb051", "1304d589766aa6f1"];
    assert!(slow.iter().all(|cell| journal.contains(cell)));
    let without = reported(&journal);
    assert_eq!(reported(&with_readings(&journal, &[])), without);
    assert_eq!(reported(&with_readings(&journal, &slow)), without);
}

#[test]
fn a_report_is_as_wide_as_the_environment_says() {
    let lab = Lab::new();
    let journal = folder().join("default-run.jsonl");
    let widest = |columns: &str| {
        let mut command = lab.pickfs();
        let said = Said::of(command.arg("report").arg(&journal).env("COLUMNS", columns).output().unwrap()).code(0);
        said.out.lines().map(|line| line.chars().count()).max()
    };
    let found = ["60", "100"].map(widest);
    assert!(found[0] <= Some(60) && found[1] > Some(60) && found[1] <= Some(100), "{found:?}");
}
