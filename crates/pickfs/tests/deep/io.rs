//! Reads and writes of one file, by our own engine and by a fio job file: on three file systems in
//! memory, end to end.

use crate::common;

use crate::common::{Lab, Observation, Said, failed, not_run, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};

const FILESYSTEMS: [&str; 3] = ["btrfs", "ext4", "xfs"];

/// Targets in memory of a size that all of them take.
fn targets(filesystems: &[&str]) -> String {
    let each = |fs: &&str| format!("[[target]]\nfs = \"{fs}\"\n");
    let targets: String = filesystems.iter().map(each).collect();
    format!("duplicate = false\nbacking = {{ memory = \"320MiB\" }}\n{targets}[stop]\nrounds = 1\n")
}

fn no_fio() -> Option<String> {
    pickfs_system::need::find_program("fio").is_none().then(|| "there is no fio".to_string())
}

fn value(folded: &Folded, cell: &FoldedCell, phase: &str, metric: &str) -> f64 {
    let found = folded.value(cell, phase, metric);
    found.unwrap_or_else(|| panic!("{} {}: {phase} has no {metric}", cell.target, cell.work))
}

fn all_done(folded: &Folded, cells: usize) {
    assert_eq!(folded.cells.len(), cells);
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{} {}", cell.target, cell.work);
    }
}

/// Cold phases on memory are proved to be so.
fn none_is_warm(folded: &Folded) {
    for cell in &folded.cells {
        assert!(cell.flags.iter().all(|flag| flag.flag != "not-cold"), "{} {:?}", cell.target, cell.flags);
    }
}

#[test]
fn both_engines_do_all_phases_on_three_file_systems() {
    if not_run(unable(&FILESYSTEMS)) {
        return;
    }
    let lab = Lab::new();
    let work = |name: &str, more: &str| {
        format!(
            "[[work]]\nname = \"{name}\"\nworkload = \"io\"\nsize = \"16MiB\"\nsequential_block = \"256KiB\"\n{more}\n"
        )
    };
    let works = [
        work("plain", "depth = 2\nfsync = 512"),
        work("ring", "engine = \"io_uring\"\ndepth = 8\ndirect = true\noperations = 1000"),
        work("reads", "phases = [\"random-read\"]\nblock = \"16KiB\""),
    ];
    lab.run_plan(&(targets(&FILESYSTEMS) + &works.concat())).code(0);
    let folded = lab.folded();
    all_done(&folded, 9);
    none_is_warm(&folded);
    for cell in &folded.cells {
        let value = |phase: &str, metric: &str| value(&folded, cell, phase, metric);
        let operations = match cell.work.as_str() {
            "plain" => 4096.0,
            "ring" => 1000.0,
            _ => 1024.0,
        };
        assert_eq!(value("random-read", "latency_operations"), operations, "{} {}", cell.target, cell.work);
        assert_eq!(value("random-read", "time_ns"), value("random-read", "returned_ns"));
        assert!(value("random-read", "latency_p50_ns") <= value("random-read", "latency_p99_ns"));
        if cell.work == "reads" {
            assert_eq!(value("random-read", "work_bytes"), f64::from(16 << 20));
            assert_eq!(folded.value(cell, "sequential-write", "time_ns"), None);
            continue;
        }
        for phase in ["sequential-write", "sequential-read"] {
            assert_eq!(value(phase, "latency_operations"), 64.0);
            assert_eq!(value(phase, "work_bytes"), f64::from(16 << 20));
        }
        assert_eq!(value("random-write", "latency_operations"), operations);
        assert_eq!(value("random-write", "time_ns"), value("random-write", "durable_ns"));
        // Two threads with 2048 writes each.
        let syncs = folded.value(cell, "random-write", "sync_operations");
        assert_eq!(syncs, (cell.work == "plain").then_some(8.0));
    }
    lab.assert_nothing_left();
}

#[test]
fn at_a_rate_the_99th_percentile_is_what_counts() {
    if not_run(unable(&FILESYSTEMS)) {
        return;
    }
    let lab = Lab::new();
    let work = |engine: &str| {
        format!(
            "[[work]]\nname = \"{engine}\"\nworkload = \"io\"\nengine = \"{engine}\"\nsize = \"16MiB\"\ndepth = 4\nrate = 1000\ntime = \"2s\"\n"
        )
    };
    lab.run_plan(&(targets(&FILESYSTEMS) + &work("plain") + &work("io_uring"))).code(0);
    let folded = lab.folded();
    all_done(&folded, 6);
    none_is_warm(&folded);
    for cell in &folded.cells {
        for phase in ["random-read", "random-write"] {
            let value = |metric: &str| value(&folded, cell, phase, metric);
            assert_eq!(value("latency_operations"), 2000.0);
            assert_eq!(value("time_ns"), value("latency_p99_ns"), "{} {}", cell.target, cell.work);
            assert_eq!(value("work_bytes"), 0.0, "a latency makes no throughput");
            assert!((1.0..1100.0).contains(&value("done_per_second")), "{}", value("done_per_second"));
            // It takes as long as the schedule, which is what its time would say.
            assert!(value("returned_ns") > 1.7e9, "{}", value("returned_ns"));
            let late = cell.flags.iter().any(|flag| flag.phase == phase && flag.flag == "generator-late");
            assert_eq!(late, value("generator_late_ns") > 1e6, "{:?}", cell.flags);
        }
    }
    lab.assert_nothing_left();
}

#[test]
fn a_target_that_is_full_fails_with_the_cause() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    for engine in ["plain", "io_uring"] {
        let lab = Lab::new();
        let plan = targets(&["ext4"]).replace("320MiB", "32MiB");
        let work = format!("[[work]]\nworkload = \"io\"\nengine = \"{engine}\"\nsize = \"31MiB\"\n");
        // It fits in the backing, but not in what ext4 leaves of it.
        lab.run_plan(&(plan + &work)).code(1);
        let folded = lab.folded();
        let why = failed(&folded.cells[0]);
        // With io_uring, the cause may be a short write instead of an error.
        let told = why.contains("No space left") || why.contains("bytes of");
        assert!(told && why.contains("sequential-write"), "{engine}: {why}");
        lab.assert_nothing_left();
    }
}

/// Runs a job file on one file system.
fn run_job(lab: &Lab, job: &str, plan: &str) -> Said {
    std::fs::write(lab.path("job.fio"), job).expect("the job is written");
    lab.run_plan(&format!("{plan}[[work]]\nworkload = \"fio\"\njob = \"job.fio\"\n"))
}

#[test]
fn a_job_that_writes_elsewhere_is_refused_before_anything_is_touched() {
    let lab = Lab::new();
    let elsewhere = lab.path("elsewhere");
    for line in [
        format!("filename={}", elsewhere.display()),
        "filename=../../elsewhere".to_string(),
        format!("directory={}", lab.path(".").display()),
        format!("exec_prerun=touch {}", elsewhere.display()),
    ] {
        let said = run_job(&lab, &format!("[x]\nrw=write\nsize=64k\n{line}\n"), &targets(&["ext4"])).code(2);
        assert!(said.err.contains("line 4") && said.err.contains("target"), "{}", said.err);
        assert!(!lab.journal().exists() && !elsewhere.exists(), "{line}");
    }
    for (job, says) in [("[global]\nrw=read\n", "has no job"), ("", "has no job")] {
        let said = run_job(&lab, job, &targets(&["ext4"])).code(2);
        assert!(said.err.contains(says), "{}", said.err);
    }
    std::fs::remove_file(lab.path("job.fio")).expect("it is there");
    let said = lab.run(&["run", "plan.toml", "--journal", "journal.jsonl"]).code(2);
    assert!(said.err.contains("cannot read") && said.err.contains("No such file"), "{}", said.err);
}

#[test]
fn a_job_that_fails_fails_the_cell_with_fios_words() {
    if not_run(unable(&["ext4"]).or(no_fio())) {
        return;
    }
    let small = targets(&["ext4"]).replace("320MiB", "32MiB");
    for (job, says) in [
        ("[x]\nrw=write\nsize=64m\nfallocate=none\n", "No space left on device"),
        ("[x]\nrw=write\nsize=1m\nno_such_option=5\n", "no_such_option"),
    ] {
        let lab = Lab::new();
        run_job(&lab, job, &small).code(1);
        let folded = lab.folded();
        let why = failed(&folded.cells[0]);
        assert!(why.contains(says) && why.contains("stage-1"), "{job}: {why}");
        lab.assert_nothing_left();
    }
}

/// The text of an example with values made small; each must be there.
fn shrunk(name: &str, changes: &[(&str, &str)]) -> String {
    let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("examples").join(name);
    common::shrunk(&std::fs::read_to_string(path).expect("the example"), changes)
}

const SMALL: [(&str, &str); 2] = [
    ("budget = \"2h\"\nthreshold = \"3%\"", "rounds = 1"),
    ("image = { dir = \".\", size = \"2GiB\" }", "memory = \"320MiB\""),
];

#[test]
fn the_example_of_a_fio_job_runs() {
    if not_run(unable(&FILESYSTEMS).or(no_fio())) {
        return;
    }
    let lab = Lab::new();
    let changes = [("size=256m", "size=8m"), ("io_size=128m", "io_size=4m"), ("io_size=32m", "io_size=1m")];
    let more = [("size=16m", "size=256k"), ("runtime=10", "runtime=1")];
    std::fs::write(lab.path("fio-job.fio"), shrunk("fio-job.fio", &[&changes[..], &more[..]].concat())).unwrap();
    lab.run_plan(&format!("duplicate = false\n{}", shrunk("fio-job.toml", &SMALL))).code(0);
    let folded = lab.folded();
    all_done(&folded, 3);
    none_is_warm(&folded);
    for cell in &folded.cells {
        let value = |phase: &str, metric: &str| value(&folded, cell, phase, metric);
        for part in ["load", "query", "update", "log", "backup"] {
            assert!(value(part, "time_ns") > 0.0, "{part}");
        }
        assert_eq!(value("load", "write_operations"), 64.0);
        assert_eq!(value("query", "read_operations"), 1024.0);
        assert_eq!([value("update", "write_operations"), value("update", "sync_operations")], [128.0, 1.0]);
        assert_eq!(value("log", "write_operations"), 64.0);
        assert!(value("log", "sync_p99_ns") > 0.0 && value("query", "read_bytes_per_second") > 0.0);
        assert!(value("backup", "ran_ns") >= 1e9);
        let gib = value("backup", "read_bytes_per_second") * value("backup", "time_ns") / 1e9 / f64::from(1 << 30);
        assert!((gib - 1.0).abs() < 0.01, "{gib} GiB in its time");
        for stage in ["stage-1", "stage-2", "stage-3"] {
            assert!(value(stage, "durable_ns") > 0.0 && folded.value(cell, stage, "time_ns").is_none());
        }
        assert!(cell.provenance.facts["fio_job"].contains("[backup]"));
    }
    lab.assert_nothing_left();
}

#[test]
fn the_example_of_io_runs() {
    if not_run(unable(&FILESYSTEMS)) {
        return;
    }
    let lab = Lab::new();
    let changes = [
        ("budget = \"3h\"\nthreshold = \"3%\"", "rounds = 1"),
        ("image = { dir = \".\", size = \"4GiB\" }", "memory = \"320MiB\""),
        ("size = \"1GiB\"", "size = \"16MiB\""),
        ("rate = 500", "rate = 2000"),
        ("time = \"60s\"", "time = \"1s\""),
    ];
    lab.run_plan(&format!("duplicate = false\n{}", shrunk("io.toml", &changes))).code(0);
    let folded = lab.folded();
    all_done(&folded, 6);
    none_is_warm(&folded);
    for cell in &folded.cells {
        let value = |metric: &str| value(&folded, cell, "random-write", metric);
        let at_a_rate = cell.work.contains("second");
        assert_eq!(value("latency_operations"), if at_a_rate { 2000.0 } else { 4096.0 });
        assert_eq!(folded.value(cell, "random-write", "sync_operations").is_some(), at_a_rate);
    }
    lab.assert_nothing_left();
}
