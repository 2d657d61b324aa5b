//! Probes at fixed times during a background: the example, small, and backgrounds that fail.

use crate::common::{Lab, Observation, failed, not_run, shrunk, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};

const PROBES: [(&str, f64, f64); 5] = [
    ("append", 0.1, 0.003),
    ("read", 0.05, 0.017),
    ("create", 0.25, 0.031),
    ("stat", 0.05, 0.041),
    ("start", 0.5, 0.071),
];

/// One for every time that was due before the end.
fn assert_punctual(folded: &Folded, cell: &FoldedCell, background: &str) {
    for (probe, every, first) in PROBES {
        let part = format!("{probe}-during-{background}");
        let value = |metric: &str| {
            folded.value(cell, &part, metric).unwrap_or_else(|| panic!("{} {part} has no {metric}", cell.target))
        };
        let due = (((value("ran_ns") / 1e9 - first) / every).ceil()).max(1.0);
        assert_eq!(value("latency_operations"), due, "{} {part}", cell.target);
        assert!(value("time_ns") > 0.0 && value("time_ns") == value("latency_p99_ns"), "{} {part}", cell.target);
        assert!(value("over_1s_share") <= value("over_100ms_share") && value("over_100ms_share") <= 1.0);
        assert!(value("stall_ns") >= 0.0 && value("latency_max_ns") >= value("time_ns"));
    }
}

#[test]
fn the_example_on_three_file_systems() {
    if not_run(unable(&["ext4", "xfs", "btrfs"])) {
        return;
    }
    let lab = Lab::new();
    let plan = shrunk(
        include_str!("../../../../examples/responsiveness.toml"),
        &[
            ("image = { dir = \".\", size = \"6GiB\" }", "memory = \"400MiB\""),
            ("title =", "duplicate = false\ntitle ="),
            (
                "time = \"60s\"\ndrain_time = \"60s\"",
                "time = \"1.2s\"\ndrain_time = \"300ms\"\nstart_every = \"500ms\"",
            ),
            (
                "write_size = \"2GiB\"",
                "write_size = \"16MiB\"\nclients = 3\nstart_files = 10\nstart_bytes = \"512KiB\"",
            ),
            ("scale = 1.0", "files = 300\nbytes = \"6MiB\""),
            ("rounds = 8", "rounds = 1"),
        ],
    );
    lab.run_plan(&plan).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 3);
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
        for background in ["idle", "write", "drain", "untar", "remove"] {
            assert_punctual(&folded, cell, background);
        }
        for background in ["untar", "remove"] {
            assert_eq!(folded.value(cell, background, "done_share"), Some(1.0), "{} {background}", cell.target);
        }
        assert!(cell.flags.iter().all(|flag| flag.flag != "not-cold"), "{}: {:?}", cell.target, cell.flags);
        assert!(folded.value(cell, "write", "time_ns").is_none(), "only its parts have times");
    }
    lab.assert_nothing_left();
}

/// The background fills the file system: its failure is the cell's, although the probes would go
/// on.
#[test]
fn a_background_that_fails_is_told() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    for (background, says) in [("untar", "No space left"), ("write", "in the background")] {
        let lab = Lab::new();
        lab.run_plan(&format!(
            "duplicate = false\nbacking = {{ memory = \"128MiB\" }}\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \
             \"respond\"\nbackgrounds = [\"{background}\"]\nprobes = [\"stat\", \"create\"]\ntime = \"8s\"\ndrain_time = \
             \"1s\"\nstart_every = \"30s\"\nstart_files = 1\nstart_bytes = \"4KiB\"\nwrite_size = \"98MiB\"\nfiles = \
             100\nbytes = \"98MiB\"\n[stop]\nrounds = 1\n"
        ))
        .code(1);
        let folded = lab.folded();
        let why = failed(&folded.cells[0]);
        assert!(why.contains(says) && why.contains(background), "{why}");
        lab.assert_nothing_left();
    }
}
