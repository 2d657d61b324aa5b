//! Databases on real file systems: the shipped example, shrunk; a server that dies; copy on write
//! switched off.

use crate::common::{Lab, Observation, Said, failed, not_run, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome, fold_file};
use pickfs_core::plan::Settings;
use pickfs_system::need;
use pickfs_system::sys::process::{self, Signal};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Why this machine cannot run a database on these file systems.
fn without(works: &[&str], filesystems: &[&str]) -> Option<String> {
    let find = |work: &&str| pickfs_target::workload::find(work).expect("a workload").needs(&Settings::default());
    let missing = need::missing(&works.iter().flat_map(find).collect::<Vec<_>>());
    let first = missing.first().map(ToString::to_string);
    first.or_else(|| unable(filesystems))
}

/// The example with other sizes, each of which must stand in it.
fn shrunk() -> String {
    let mut plan = std::fs::read_to_string("../../examples/postgresql.toml").expect("the example");
    for (shipped, small) in [
        ("image = { dir = \".\", size = \"8GiB\" }", "memory = \"400MiB\""),
        ("clients = [10, 100]", "clients = [1, 3]\nserver = [\"max_wal_size=64MB\", \"shared_buffers=16MB\"]"),
        ("time = \"60s\"", "time = \"2s\""),
        ("transactions = 1000", "transactions = 40\nselects = 100\njournal = \"truncate\""),
        ("rows = 100000", "rows = 3000"),
        ("budget = \"6h\"", "rounds = 1"),
    ] {
        assert_eq!(plan.matches(shipped).count(), 1, "{shipped}");
        plan = plan.replace(shipped, small);
    }
    plan
}

fn value(folded: &Folded, cell: &FoldedCell, phase: &str, metric: &str) -> f64 {
    let found = folded.value(cell, phase, metric);
    found.unwrap_or_else(|| panic!("{} {phase} has no {metric}", cell.target))
}

/// Segments of System V shared memory that no process is attached to.
fn forsaken_segments() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let rows = text.lines().skip(1).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.get(6) == Some(&"0")).map(|row| row[1].to_string()).collect()
}

/// Processes that still stand in a run's folders; a database server's children carry no mark.
fn still_inside(run: &str) -> Vec<i32> {
    let inside = |pid: &i32| {
        let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        folder.display().to_string().contains(&format!("pickfs-{run}"))
    };
    process::all_processes().into_iter().filter(inside).collect()
}

fn assert_pgbench(folded: &Folded, cell: &FoldedCell) {
    for (phase, clients) in [("clients-1", 1.0), ("clients-3", 3.0)] {
        let value = |metric: &str| value(folded, cell, phase, metric);
        let (done, rate, took) = (value("work_transactions"), value("transactions_per_second"), value("time_ns"));
        assert_eq!(value("latency_operations"), done, "{} {phase}", cell.target);
        assert!((rate * took / 1e12 - 1.0).abs() < 1e-6, "{} {phase}: {took} ns for 1000 at {rate}/s", cell.target);
        // The stage's own clock saw more than pgbench's: connecting and the checkpoint.
        let whole_seconds = value("returned_ns") * done / 1000.0 / 1e9;
        assert!(done / whole_seconds < rate, "{} {phase}", cell.target);
        assert!(value("transactions_with_connections_per_second") < rate, "{} {phase}", cell.target);
        // Little's law: clients that never rest are all in a transaction, by the log's latencies
        // and the report's rate.
        let busy = rate * value("latency_mean_ns") / 1e9;
        assert!((0.7 * clients..=1.02 * clients).contains(&busy), "{} {phase}: {busy} clients busy", cell.target);
        assert!(value("latency_p50_ns") <= value("latency_p99_ns"), "{} {phase}", cell.target);
        assert!(value("device_write_bytes") > 1000.0, "{} {phase}", cell.target);
    }
    let fact = |name: &str| cell.provenance.facts.get(name).map(String::as_str);
    assert_eq!(fact("server shared_buffers"), Some("16MB"), "{}", cell.target);
    assert_eq!([fact("server fsync"), fact("server max_connections")], [Some("on"), Some("13")]);
    assert_eq!(fact("server weakened by"), Some("nothing"));
    assert!(fact("version postgres").is_some_and(|said| said.contains("PostgreSQL")), "{:?}", fact("version postgres"));
}

fn assert_sqlite(folded: &Folded, cell: &FoldedCell) {
    for (phase, transactions) in [("insert", 40.0), ("insert-many", 30.0), ("select", 40.0), ("update", 40.0)] {
        let transactions = if phase == "select" { 100.0 } else { transactions };
        assert_eq!(value(folded, cell, phase, "work_transactions"), transactions, "{} {phase}", cell.target);
        assert!(value(folded, cell, phase, "time_ns") > 0.0);
    }
    assert!(value(folded, cell, "select", "device_read_bytes") > 50.0 * 4096.0, "{}", cell.target);
    assert_eq!(cell.provenance.facts["sqlite journal_mode"], "truncate");
}

#[test]
fn the_example_runs_and_counts() {
    let filesystems = ["btrfs", "ext4", "xfs"];
    if not_run(without(&["pgbench", "sqlite"], &filesystems)) {
        return;
    }
    let (lab, before) = (Lab::new(), forsaken_segments());
    lab.run_plan(&shrunk()).code(0);
    let folded = lab.folded();
    for cell in &folded.cells {
        let none = cell.target.starts_with("zfs") && unable(&["zfs"]).is_some();
        if none {
            assert!(matches!(cell.outcome, Some(Outcome::Skipped(_))), "{:?}", cell.outcome);
            continue;
        }
        assert_eq!(cell.outcome, Some(Outcome::Done), "{} {}", cell.target, cell.work);
        if cell.work == "pgbench" {
            assert_pgbench(&folded, cell)
        } else {
            assert_sqlite(&folded, cell)
        }
        assert!(cell.flags.iter().all(|flag| flag.flag != "not-cold"), "{}: {:?}", cell.target, cell.flags);
        let attributes = cell.provenance.facts.get("attributes").map_or("", String::as_str);
        assert_eq!(attributes.contains("nocow"), cell.target.contains("nodatacow"), "{}", cell.target);
        let checked = cell.provenance.facts["features"].split(' ').any(|name| name == "checksums");
        let has_checksums = cell.target.starts_with("btrfs") && !cell.target.contains("nodatacow");
        assert!(checked == has_checksums || cell.target.starts_with("zfs"), "{}", cell.target);
    }
    // Seven targets and the reference's copy, with two works each.
    assert_eq!(folded.cells.len(), 16);
    assert!(folded.cells.iter().any(|cell| cell.target == "btrfs nodatacow noatime"), "{}", folded.cells[0].target);
    let run = folded.run.as_ref().expect("a run").id.clone();
    assert_eq!((still_inside(&run), forsaken_segments().difference(&before).count()), (Vec::new(), 0));
    lab.assert_nothing_left();
}

/// A plan of one target, ext4, with pgbench for so long.
fn one_target(time: &str, more: &str) -> String {
    format!(
        "duplicate = false\nbacking = {{ memory = \"256MiB\" }}\n[[target]]\nfs = \"ext4\"\n[[work]]\n\
         workload = \"pgbench\"\nclients = 2\ntime = \"{time}\"\n{more}\n[stop]\nrounds = 1\n"
    )
}

/// The run's id and its server, once clients are at work.
fn server_at_work(journal: &Path) -> (String, i32) {
    let words = |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let runs = |pid: &i32, name: &str, word: &str| {
        let words = String::from_utf8_lossy(&words(pid)).into_owned();
        words.split('\0').next().is_some_and(|program| program.ends_with(name)) && words.contains(word)
    };
    for _ in 0..12_000 {
        if let Some(run) = fold_file(journal).ok().and_then(|folded| folded.run) {
            let marked = pickfs_system::process::marked_processes(&format!("PICKFS_RUN={}", run.id));
            let server = marked.iter().find(|pid| runs(pid, "/postgres", "-k"));
            if let (Some(server), true) = (server, marked.iter().any(|pid| runs(pid, "/pgbench", "--time"))) {
                return (run.id, *server);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("pgbench never ran");
}

#[test]
fn a_server_that_dies_fails_the_cell_and_leaves_nothing() {
    if not_run(without(&["pgbench"], &["ext4"])) {
        return;
    }
    let (lab, before) = (Lab::new(), forsaken_segments());
    lab.write_plan(&one_target("300s", ""));
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("pickfs starts");
    let (run, server) = server_at_work(&lab.journal());
    process::kill(server, Signal::KILL).expect("the server can be killed");
    Said::of(child.wait_with_output().unwrap()).code(1);
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    for part in ["the server is gone", "signal: 9", "in phase clients-2", "pgbench"] {
        assert!(why.contains(part), "{part} is not in: {why}");
    }
    assert_eq!((still_inside(&run), forsaken_segments().difference(&before).count()), (Vec::new(), 0));
    lab.assert_nothing_left();
}

#[test]
fn a_server_that_does_not_start_says_why() {
    if not_run(without(&["pgbench"], &["ext4"])) {
        return;
    }
    let (lab, before) = (Lab::new(), forsaken_segments());
    lab.run_plan(&one_target("1s", "server = [\"shared_buffers=a lot\"]")).code(1);
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    assert!(why.contains("the server is gone") && why.contains("shared_buffers"), "{why}");
    assert_eq!(forsaken_segments().difference(&before).count(), 0);
    lab.assert_nothing_left();
}

#[test]
fn copy_on_write_is_switched_off_on_btrfs_alone() {
    let lab = Lab::new();
    let plan = |fs: &str| {
        format!(
            "backing = {{ memory = \"256MiB\" }}\n[[target]]\nfs = \"{fs}\"\nnodatacow = true\n[[work]]\nworkload = \"meta.ok\"\n"
        )
    };
    lab.write_plan(&plan("ext4"));
    let said = lab.run(&["plan", "plan.toml"]).code(2);
    assert!(said.err.contains("ext4 has no copy on write of data"), "{}", said.err);
    lab.write_plan(&plan("btrfs"));
    let said = lab.run(&["plan", "plan.toml"]).code(0);
    assert!(said.out.contains("btrfs nodatacow"), "{}", said.out);
}
