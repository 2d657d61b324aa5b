//! Workloads that misbehave on purpose end as they should through the executor, and nothing is left
//! of them.

use crate::common::{Lab, Loop, Observation, failed, not_run, run, unable, writeback_knobs};
use pickfs_core::journal::Outcome;
use std::process::Stdio;

const PLAN: &str = r#"
duplicate = false
backing = { memory = "64MiB" }

[[target]]
fs = "ext4"

[[work]]
workload = "meta.ok"
count_for = "500ms"
[[work]]
workload = "meta.fail"
[[work]]
workload = "meta.crash"
[[work]]
workload = "meta.leak"
[[work]]
name = "leak unmarked"
workload = "meta.leak"
unmarked = true
[[work]]
workload = "meta.hang"
[[work]]
name = "hang inside"
workload = "meta.hang"
inside = true

[stop]
rounds = 1
cell = "3s"
"#;

#[test]
fn each_costs_its_own_cell_and_no_more() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let knobs = writeback_knobs();
    lab.run_plan(PLAN).code(1);
    let folded = lab.folded();
    let cell =
        |work: &str| folded.cells.iter().find(|cell| cell.work == work).unwrap_or_else(|| panic!("no cell {work}"));

    assert_eq!(folded.cells.len(), 7);
    let full = lab.run(&["report", "journal.jsonl", "--full"]).code(0).out;
    assert_eq!(cell("meta.ok").outcome, Some(Outcome::Done));
    assert!(folded.value(cell("meta.ok"), "write", "time_ns").is_some_and(|ns| ns > 0.0));
    // Reading and counting what a program left is a check, and no part of its phase.
    assert!(cell("meta.ok").ledger.checks_ns >= 500_000_000, "{:?}", cell("meta.ok").ledger);
    for (work, words) in [
        ("meta.fail", "No such file or directory"),
        ("meta.crash", "killed by signal 6"),
        ("meta.leak", "left running: sleep"),
        ("leak unmarked", "left running: sleep"),
        ("meta.hang", "the time limit of 3.00 s passed"),
        ("hang inside", "the agent did not answer; killed"),
    ] {
        assert!(failed(cell(work)).contains(words), "{work}: {}", failed(cell(work)));
        assert!(full.contains(work), "the report does not show the hole {work}:\n{full}");
    }
    assert!(folded.leftovers.is_empty(), "{:?}", folded.leftovers);
    assert_eq!(writeback_knobs(), knobs);
    lab.assert_nothing_left();
}

#[test]
fn what_still_runs_is_waited_for_before_a_cold_start_and_then_named() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let work = |name: &str, seconds: u32| {
        format!(
            "[[work]]\nname = \"{name}\"\nworkload = \"command\"\ncommand = [\"true\"]\nwrites = false\n\
             prepare = [\"sh\", \"-c\", \"sleep {seconds} >/dev/null 2>&1 &\"]\n"
        )
    };
    let works = work("brief", 1) + &work("long", 300);
    lab.run_plan(&format!(
        "duplicate = false\nbacking = {{ memory = \"64MiB\" }}\ntarget = [{{ fs = \"ext4\" }}]\n{works}[stop]\nrounds = 1\n"
    ));
    let folded = lab.folded();
    let cell = |work: &str| folded.cells.iter().find(|cell| cell.work == work).expect("a cell");
    assert_eq!(cell("brief").outcome, Some(Outcome::Done));
    assert!(failed(cell("long")).contains("in use by sleep ("), "{}", failed(cell("long")));
    lab.assert_nothing_left();
}

/// A file system that is frozen: whatever writes to it can be neither ended nor killed.
struct Frozen(Loop);

impl Frozen {
    fn new() -> Frozen {
        let mut made = Loop::new(16 << 20);
        run(&["mkfs.ext4", "-q", &made.device]);
        made.mount("noatime");
        run(&["fsfreeze", "--freeze", &made.mount_point().display().to_string()]);
        Frozen(made)
    }

    fn thaw(&self) {
        let mut command = std::process::Command::new("fsfreeze");
        let _ = command.arg("--unfreeze").arg(self.0.mount_point()).stderr(Stdio::null()).status();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.thaw();
    }
}

#[test]
fn a_process_that_cannot_be_ended_is_named_and_what_it_holds_is_kept_for_clean() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let (lab, frozen) = (Lab::new(), Frozen::new());
    let command = format!("touch {}/file &", frozen.0.mount_point().display());
    let said = lab.run_plan(&format!(
        "duplicate = false\nbacking = {{ memory = \"64MiB\" }}\ntarget = [{{ fs = \"ext4\" }}]\n[[work]]\n\
         workload = \"command\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\nwrites = false\nstart = \"warm\"\n\
         [stop]\nrounds = 1\n"
    ));
    let cleaned = lab.run(&["clean"]);
    frozen.thaw();
    lab.run(&["clean"]).code(0);
    lab.assert_nothing_left();
    // The cell, the run and the cleaning say so alike.
    let folded = lab.folded();
    for told in [failed(&folded.cells[0]), &said.code(1).err, &cleaned.code(1).err] {
        assert!(told.contains("still running: touch (pid "), "{told}");
    }
}
