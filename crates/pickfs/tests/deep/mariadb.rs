//! MariaDB under sysbench on real file systems: the shipped example, shrunk; a server that dies,
//! and one that does not start.

use crate::common::{Lab, Observation, Said, failed, not_run, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome, fold_file};
use pickfs_core::plan::Settings;
use pickfs_system::need;
use pickfs_system::sys::process::{self, Signal};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Why this machine cannot run the database on these file systems.
fn without(filesystems: &[&str]) -> Option<String> {
    let needs = pickfs_target::workload::find("sysbench").expect("a workload").needs(&Settings::default());
    need::missing(&needs).first().map(ToString::to_string).or_else(|| unable(filesystems))
}

/// The example with other sizes, each of which must stand in it.
fn shrunk() -> String {
    let mut plan = std::fs::read_to_string("../../examples/mariadb.toml").expect("the example");
    for (shipped, small) in [
        ("image = { dir = \".\", size = \"8GiB\" }", "memory = \"512MiB\""),
        ("clients = [8, 64]", "clients = [1, 3]\ntables = 2\nrows = 2000\nserver = [\"innodb_log_file_size=16M\"]"),
        ("time = \"60s\"", "time = \"2s\""),
        ("budget = \"3h\"", "rounds = 1"),
    ] {
        assert_eq!(plan.matches(shipped).count(), 1, "{shipped}");
        plan = plan.replace(shipped, small);
    }
    plan
}

fn assert_sysbench(folded: &Folded, cell: &FoldedCell) {
    for (phase, clients) in [("clients-1", 1.0), ("clients-3", 3.0)] {
        let value = |metric: &str| {
            let found = folded.value(cell, phase, metric);
            found.unwrap_or_else(|| panic!("{} {phase} has no {metric}", cell.target))
        };
        let (done, rate, took) = (value("work_transactions"), value("transactions_per_second"), value("time_ns"));
        assert_eq!(value("latency_operations"), done, "{} {phase}", cell.target);
        assert!((rate * took / 1e12 - 1.0).abs() < 1e-6, "{} {phase}: {took} ns for 1000 at {rate}/s", cell.target);
        // The stage's own clock saw more than sysbench's: connecting and the checkpoint.
        assert!(done / (value("returned_ns") * done / 1000.0 / 1e9) < rate, "{} {phase}", cell.target);
        // Little's law: clients that never rest are all in a transaction.
        let busy = rate * value("latency_mean_ns") / 1e9;
        assert!((0.7 * clients..=1.02 * clients).contains(&busy), "{} {phase}: {busy} clients busy", cell.target);
        // Each transaction waits for its record in the log: a flush, which clients can share.
        assert!(value("device_write_bytes") > 1000.0, "{} {phase}", cell.target);
        assert!(cell.provenance.facts["server innodb_flush_log_at_trx_commit"] == "1", "{}", cell.target);
    }
    let fact = |name: &str| cell.provenance.facts.get(name).map(String::as_str);
    assert_eq!([fact("server innodb_doublewrite"), fact("server weakened by")], [Some("ON"), Some("nothing")]);
    assert_eq!([fact("server innodb_log_file_size"), fact("server max_connections")], [Some("16777216"), Some("13")]);
    assert!(fact("version mariadbd").is_some_and(|said| said.contains("MariaDB")), "{:?}", fact("version mariadbd"));
    assert!(fact("version sysbench").is_some_and(|said| said.contains("sysbench 1")), "{:?}", fact("version sysbench"));
}

#[test]
fn the_example_runs_and_counts() {
    if not_run(without(&["btrfs", "ext4", "xfs"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&shrunk()).code(0);
    let folded = lab.folded();
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{} {}", cell.target, cell.work);
        assert_sysbench(&folded, cell);
    }
    // Four targets and the reference's copy.
    assert_eq!(folded.cells.len(), 5);
    lab.assert_nothing_left();
}

/// A plan of one target, ext4, and one test of sysbench.
fn one_target(more: &str) -> String {
    format!(
        "duplicate = false\nbacking = {{ memory = \"512MiB\" }}\n[[target]]\nfs = \"ext4\"\n[[work]]\n\
         workload = \"sysbench\"\nclients = 2\ntables = 1\nrows = 1000\n{more}\n[stop]\nrounds = 1\n"
    )
}

/// What the tests say that they did is what the server counted: else the cell fails.
#[test]
fn every_test_of_sysbench_runs_and_is_counted_by_the_server() {
    if not_run(without(&["ext4"])) {
        return;
    }
    for test in ["write-only", "update-index", "insert"] {
        let lab = Lab::new();
        lab.run_plan(&one_target(&format!("test = \"{test}\"\ntime = \"1s\""))).code(0);
        assert_eq!(lab.folded().cells[0].outcome, Some(Outcome::Done), "{test}");
        lab.assert_nothing_left();
    }
}

/// The run's server, once clients are at work.
fn server_at_work(journal: &Path) -> i32 {
    let words = |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let runs = |pid: &i32, name: &str, word: &str| {
        let words = String::from_utf8_lossy(&words(pid)).into_owned();
        words.split('\0').next().is_some_and(|program| program.ends_with(name)) && words.contains(word)
    };
    for _ in 0..12_000 {
        if let Some(run) = fold_file(journal).ok().and_then(|folded| folded.run) {
            let marked = pickfs_system::process::marked_processes(&format!("PICKFS_RUN={}", run.id));
            let server = marked.iter().find(|pid| runs(pid, "mariadbd", "--socket"));
            if let (Some(server), true) = (server, marked.iter().any(|pid| runs(pid, "sysbench", "--time"))) {
                return *server;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("sysbench never ran");
}

#[test]
fn a_server_that_dies_fails_the_cell_and_leaves_nothing() {
    if not_run(without(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.write_plan(&one_target("time = \"300s\""));
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("pickfs starts");
    process::kill(server_at_work(&lab.journal()), Signal::KILL).expect("the server can be killed");
    Said::of(child.wait_with_output().unwrap()).code(1);
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    for part in ["the server is gone", "signal: 9", "in phase clients-2", "sysbench"] {
        assert!(why.contains(part), "{part} is not in: {why}");
    }
    lab.assert_nothing_left();
}

#[test]
fn a_server_that_does_not_start_says_why() {
    if not_run(without(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&one_target("time = \"1s\"\nserver = [\"innodb_no_such_setting=1\"]")).code(1);
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    assert!(why.contains("the server is gone") && why.contains("innodb_no_such_setting"), "{why}");
    lab.assert_nothing_left();
}
