//! The static site protocol: walk, check, copy in, and the real generator as a command.

use crate::common::{Lab, Observation, failed, not_run, shrunk, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};

fn value(folded: &Folded, cell: &FoldedCell, phase: &str, metric: &str) -> f64 {
    let found = folded.value(cell, phase, metric);
    found.unwrap_or_else(|| panic!("{} {} {phase} has no {metric}", cell.target, cell.work))
}

/// A phase that writes reports when it returned, when all was durable, and what was written after
/// that.
fn assert_says_when_it_was_safe(folded: &Folded, cell: &FoldedCell, phase: &str) {
    let value = |metric: &str| value(folded, cell, phase, metric);
    assert!(0.0 < value("returned_ns") && value("returned_ns") <= value("durable_ns"), "{} {phase}", cell.target);
    assert_eq!(value("time_ns"), value("durable_ns"), "{} {phase}", cell.target);
    assert!(value("after_write_bytes") >= 0.0 && value("after_ns") >= 0.0, "{} {phase}", cell.target);
}

/// Folders that nanoc makes for itself and forgets.
fn leftovers() -> Vec<std::ffi::OsString> {
    let names = std::fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut found: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("nanoc")).collect();
    found.sort();
    found
}

#[test]
fn the_example_on_three_file_systems() {
    let nanoc = pickfs_system::need::find_program("nanoc").is_none().then(|| "there is no nanoc".to_string());
    if not_run(unable(&["ext4", "xfs", "btrfs"]).or(nanoc)) {
        return;
    }
    let lab = Lab::new();
    let plan = shrunk(
        include_str!("../../../../examples/site-generator.toml"),
        &[
            ("image = { dir = \".\", size = \"3GiB\" }", "memory = \"400MiB\""),
            ("title =", "duplicate = false\ntitle ="),
            (
                "workload = \"walk\"\nrepeats = 6",
                "workload = \"walk\"\nfiles = 200\nbytes = \"4MiB\"\njobs = 3\nrepeats = 2",
            ),
            ("checked = 2000\nrepeats = 6", "checked = 40\njobs = 2\nfiles = 200\nbytes = \"4MiB\"\nrepeats = 2"),
            ("scale = 0.25", "files = 100\nbytes = \"8MiB\""),
            ("(1..2000)", "(1..40)"),
            ("budget = \"2h\"", "rounds = 1"),
        ],
    );
    let left = leftovers();
    lab.run_plan(&plan).code(0);
    assert_eq!(leftovers(), left, "nanoc has left something");
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 12);
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{} {}", cell.target, cell.work);
        assert!(cell.flags.iter().all(|flag| !flag.flag.ends_with("cold")), "{}: {:?}", cell.target, cell.flags);
        let value = |phase: &str, metric: &str| value(&folded, cell, phase, metric);
        match cell.work.as_str() {
            "walk" => {
                assert!(value("walk", "lstat_operations") > 200.0 && value("walk", "readdir_operations") > 1.0);
                assert!(value("walk", "lstat_p999_ns") >= value("walk", "lstat_p50_ns"));
                assert_eq!(value("walk", "time_ns"), value("walk", "returned_ns"));
            }
            "check" => {
                let counts = ["read_operations", "work_operations", "work_files"].map(|name| value("check", name));
                assert_eq!(counts, [40.0; 3], "{}", cell.target);
                assert!(cell.provenance.facts["work of the processor"].contains("ns for each byte"));
            }
            "home" => {
                assert_says_when_it_was_safe(&folded, cell, "copy");
                for side in ["source_read_bytes_per_second", "target_write_bytes_per_second"] {
                    assert!(value("copy", side) > 0.0);
                }
                let who = &cell.provenance.facts["what held the copy back"];
                assert!(["the source", "the target", "both", "the disk"].iter().any(|w| who.starts_with(w)), "{who}");
            }
            _ => assert_says_when_it_was_safe(&folded, cell, "command"),
        }
    }
    let report = lab.run(&["report", "journal.jsonl", "--format", "full"]).code(0).out;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for target in ["ext4", "xfs"] {
        assert!(report.contains(&format!("{target}, what held the copy back: ")), "{report}");
    }
    let left = std::fs::read_dir(lab.path(".")).expect("the lab").flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains("-source")).collect();
    assert!(left.is_empty(), "{left:?}");
    lab.assert_nothing_left();
}

fn command(lines: &str) -> String {
    format!(
        "duplicate = false\nbacking = {{ memory = \"64MiB\" }}\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \
         \"command\"\n{lines}\n[stop]\nrounds = 1\n"
    )
}

/// What a plan with one command comes to.
fn outcome(lines: &str, code: i32) -> (Lab, Folded) {
    let lab = Lab::new();
    lab.run_plan(&command(lines)).code(code);
    let folded = lab.folded();
    lab.assert_nothing_left();
    (lab, folded)
}

#[test]
fn a_command_that_ends_with_another_code_fails_with_its_last_words() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let command = "command = [\"sh\", \"-c\", \"echo printed; echo complained >&2; exit 3\"]";
    let (_lab, folded) = outcome(command, 1);
    let why = failed(&folded.cells[0]);
    for part in ["exit status: 3", "printed", "complained", "in phase command"] {
        assert!(why.contains(part), "{why}");
    }
    let (_lab, folded) = outcome(&format!("{command}\ncodes = [0, 3]\nstart = \"warm\""), 0);
    assert_eq!(folded.cells[0].outcome, Some(Outcome::Done));
    let (_lab, folded) = outcome("command = \"true\"\nprepare = \"ls /nowhere/at/all\"", 1);
    assert!(failed(&folded.cells[0]).contains("preparing: `ls /nowhere/at/all` ended with"));
}

#[test]
fn a_command_works_in_its_folder_on_a_tree_and_with_its_environment() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let script = "command = [\"sh\", \"-c\", 'test \"$PWD\" = {dir} && test \"$WHERE\" = {dir}/here && test \"$(ls \
                  {source} | wc -l)\" -gt 0 && tar -c -f - tree | wc -c']\nenvironment = [\"WHERE={dir}/here\"]\nsource_as \
                  = \"tree\"\nlike = \"site\"\nfiles = 60\nbytes = \"1MiB\"\nwrites = false\nrepeats = 2";
    let (_lab, folded) = outcome(script, 0);
    let cell = &folded.cells[0];
    assert_eq!(cell.outcome, Some(Outcome::Done));
    assert_eq!(value(&folded, cell, "command", "time_ns"), value(&folded, cell, "command", "returned_ns"));
    assert!(value(&folded, cell, "command", "device_read_bytes") > 0.0);
    assert!(cell.flags.iter().all(|flag| !flag.flag.ends_with("cold")), "{:?}", cell.flags);
    // One that reads nothing proves nothing.
    let (_lab, folded) = outcome("command = \"/bin/true\"", 0);
    let flags: Vec<&str> = folded.cells[0].flags.iter().map(|flag| flag.flag.as_str()).collect();
    assert!(flags.contains(&"not-proved-cold"), "{flags:?}");
}

#[test]
fn a_missing_program_is_skipped_with_what_to_install() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&command("command = \"no-such-generator compile\"\npackage = \"some-package\""));
    let folded = lab.folded();
    match &folded.cells[0].outcome {
        Some(Outcome::Skipped(why)) => {
            assert_eq!(*why, ["no program `no-such-generator`: apt-get install some-package"]);
        }
        other => panic!("{other:?}"),
    }
    lab.assert_nothing_left();
}

#[test]
fn a_command_that_leaves_a_program_running_has_failed() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let (_lab, folded) = outcome("command = [\"sh\", \"-c\", \"setsid sleep 300 & exit 0\"]", 1);
    assert!(failed(&folded.cells[0]).contains("left running: "), "{:?}", folded.cells[0].outcome);
}
