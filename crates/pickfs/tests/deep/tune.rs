//! Options of a file system: a tuning that is stopped and taken up again, and the lines of its
//! answer.

use crate::common::{Lab, PATIENCE, ends, not_run, unable};
use pickfs_core::journal::fold_file;
use pickfs_system::sys::process::{Signal, kill};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The cells that have ended, of each journal of the folder by name.
fn cells(lab: &Lab) -> Vec<(String, Vec<String>)> {
    let entries = std::fs::read_dir(lab.path("tuned")).unwrap().map(|entry| entry.unwrap().path());
    let mut journals: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    journals.sort();
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    journals.iter().map(|path| (name(path), ends(&std::fs::read(path).unwrap()))).collect()
}

#[test]
fn a_tuning_goes_on_where_it_was_and_measures_nothing_twice() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.path("data")).unwrap();
    (0..20).for_each(|number| std::fs::write(lab.path("data").join(format!("{number}")), [number; 5000]).unwrap());
    let mut command = lab.pickfs();
    command.args(["tune", "--fs", "ext4", "--memory", "--size", "64MiB", "--source", "data", "--folder", "tuned"]);
    command.args(["--options", "inode_size,lazytime", "--budget", "20s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (first, begun) = (lab.path("tuned/1-alone.jsonl"), Instant::now());
    while !fold_file(&first).is_ok_and(|folded| folded.cells.len() > 2) {
        assert!(begun.elapsed() < PATIENCE, "no cell began");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(child.id() as i32, Signal::INT).unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(130), "{}", String::from_utf8_lossy(&said.stderr));
    lab.assert_nothing_left();
    let before = cells(&lab);

    let answer = lab.run(&["tune", "--resume", "tuned", "--json"]).code(0);
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    lab.assert_nothing_left();
    let after = cells(&lab);
    assert!(after[0].1.starts_with(&before[0].1), "what was measured stays: {before:?} and {after:?}");
    for (journal, ends) in &after {
        assert_eq!(ends.len(), ends.iter().collect::<BTreeSet<_>>().len(), "{journal}: a cell was measured twice");
    }
    let names: Vec<&str> = after.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["1-alone.jsonl", "2-crossed.jsonl", "3-race.jsonl", "4-around.jsonl", "5-confirm.jsonl"]);
    let settings: BTreeSet<&str> =
        answer["effects"].as_array().unwrap().iter().filter_map(|row| row["setting"].as_str()).collect();
    assert_eq!(settings, BTreeSet::from(["inode_size=1024", "inode_size=128", "inode_size=512", "lazytime=on"]));
    assert!(answer["tried"].as_u64().is_some_and(|tried| tried >= 5), "{answer}");

    // The answer again, of the journals alone.
    let again = lab.run(&["tune", "--resume", "tuned"]).code(0);
    assert_eq!(cells(&lab), after);
    for part in ["For tree, ", "inode_size=128", "configurations tried: alone 5 in", "pickfs report"] {
        assert!(again.out.contains(part), "{part}: {}", again.out);
    }
    for format in ["csv", "html", "json", "markdown", "svg", "text"] {
        let said = lab.run(&["report", "tuned", "--format", format]).code(0).out.replace('\\', "");
        assert!(said.contains("inode_size"), "{format}: {said}");
    }
    let both = lab.run(&["choices", "tuned", "tuned"]).code(0).out;
    assert!(both.contains("inode_size") && both.contains("lazytime") && both.contains("memory: For tree"), "{both}");
    assert!(lab.run(&["report", "tuned", "--full"]).code(2).err.contains("--format"));
    let lines = lab.run(&["apply", "--dry-run", "tuned"]).code(0).out;
    let is_winner = answer["kind"] == "winner";
    assert!(lines.starts_with("# From tuned: For tree, ") && lines.contains("\nmkfs.ext4") == is_winner, "{lines}");
}

#[test]
fn what_cannot_be_tuned_is_said_at_once() {
    let lab = Lab::new();
    for (words, wanted) in [
        (&["--fs", "ext4,xfs"][..], "one file system"),
        (&["--fs", "ext4", "--sim", "nvme", "--options", "comit"], "did you mean `commit`?"),
        (&["--fs", "ext4", "--sim", "nvme", "--options", "barrier"], "--weaken"),
        (&["--fs", "ext4", "--sim", "nvme", "--rounds", "3"], "--budget"),
        (&["--fs", "ext4", "--margin", "200%"], "--margin"),
        (&["--resume", "nowhere"], "nowhere"),
    ] {
        let said = lab.run(&[&["tune"], words].concat());
        assert!(said.err.contains(wanted), "{words:?}: {}", said.err);
        said.code(2);
    }
    assert!(lab.run(&["apply", "x.jsonl"]).code(2).err.contains("--dry-run"));
}
