//! A disk that is full or broken costs its cells, with the cause; the run goes on, and the report
//! shows the hole.

use crate::common::{Lab, SmallDisk, failed, not_run, run, unable};
use pickfs_core::journal::Outcome;
use std::process::Command;

/// A device of 300 MiB that fails beyond the first 60: a sparse file on a tmpfs too small for it.
struct BrokenDevice {
    device: String,
    _disk: SmallDisk,
}

impl BrokenDevice {
    fn new(lab: &Lab) -> BrokenDevice {
        let disk = SmallDisk::new(lab, "60m");
        let file = disk.folder.join("disk");
        std::fs::File::create(&file).unwrap().set_len(300 << 20).unwrap();
        let device = run(&["losetup", "--find", "--show", &file.display().to_string()]);
        BrokenDevice { device, _disk: disk }
    }
}

impl Drop for BrokenDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

#[test]
fn a_full_file_system_fails_its_cell_and_the_run_goes_on() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let plan = r#"
duplicate = false
backing = { memory = "64MiB" }
[[target]]
fs = "ext4"
[[work]]
workload = "tree"
files = 50
bytes = "63MiB"
[[work]]
workload = "meta.ok"
[stop]
rounds = 1
"#;
    let said = lab.run_plan(plan).code(1);
    let folded = lab.folded();
    let cell = |work: &str| folded.cells.iter().find(|cell| cell.work == work).unwrap();
    assert!(failed(cell("tree")).contains("No space left on device"), "{}", failed(cell("tree")));
    assert!(failed(cell("tree")).contains("in phase write"), "{}", failed(cell("tree")));
    assert_eq!(cell("meta.ok").outcome, Some(Outcome::Done));
    // The report breaks its lines anywhere.
    let told = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("No space left on device"), "{told}");
    lab.assert_nothing_left();
}

#[test]
fn an_io_error_is_the_cause_that_is_told() {
    if not_run(unable(&["ext2"])) {
        return;
    }
    let lab = Lab::new();
    let broken = BrokenDevice::new(&lab);
    let plan = format!(
        r#"
duplicate = false
backing = {{ device = "{}" }}
[[target]]
fs = "ext2"
[[work]]
workload = "tree"
files = 50
bytes = "120MiB"
[[work]]
workload = "meta.ok"
[stop]
rounds = 1
"#,
        broken.device
    );
    std::fs::write(lab.path("plan.toml"), plan).unwrap();
    let said = lab.run(&["run", "plan.toml", "--journal", "journal.jsonl", "--erase", &broken.device]).code(1);
    let folded = lab.folded();
    let tree = folded.cells.iter().find(|cell| cell.work == "tree").unwrap();
    assert!(failed(tree).contains("Input/output error"), "{}", failed(tree));
    assert!(folded.cells.iter().any(|cell| cell.work == "meta.ok" && cell.outcome.is_some()));
    assert!(said.out.contains("Input/output error"), "{}", said.out);
    lab.assert_nothing_left();
}
