//! Many small files, by our own engine and by bonnie++: the example plan on real file systems, and
//! what goes wrong.

use crate::common;

use crate::common::{Lab, Observation, failed, not_run, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};

const PHASES: [&str; 17] = [
    "putc", "write", "rewrite", "getc", "read", "seeks", "sequential-create", "sequential-stat", "readdir",
    "sequential-delete", "random-create", "random-stat", "random-delete", "rename", "link", "append", "fsync",
];

fn unable_here(filesystems: &[&str]) -> Option<String> {
    unable(filesystems).or_else(|| {
        let needs = pickfs_target::workload::find("bonnie").expect("a workload").needs(&Default::default());
        pickfs_system::need::missing(&needs).first().map(ToString::to_string)
    })
}

/// The example with other values; every text that is replaced must be there.
fn shrunk(replaced: &[(&str, &str)]) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/bonnie-and-schedulers.toml");
    common::shrunk(&std::fs::read_to_string(path).expect("the example"), replaced)
}

fn assert_every_phase(folded: &Folded, cell: &FoldedCell) {
    for phase in PHASES {
        let value = |metric: &str| {
            let found = folded.value(cell, phase, metric);
            found.unwrap_or_else(|| panic!("{} {phase} has no {metric}", cell.target))
        };
        assert!(value("time_ns") > 0.0 && value("latency_operations") > 0.0, "{} {phase}", cell.target);
        let quantiles = ["p50", "p99", "p999", "max"].map(|name| value(&format!("latency_{name}_ns")));
        assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{} {phase}: {quantiles:?}", cell.target);
    }
    // Whole batches, and for what is made in one phase and used in the next, the same ones.
    let done = |phase: &str| folded.value(cell, phase, "done_times").unwrap_or(1.0);
    for set in ["sequential", "random"] {
        let of = ["create", "stat", "delete"].map(|what| format!("{set}-{what}"));
        let operations = of.each_ref().map(|phase| folded.value(cell, phase, "latency_operations").expect("counted"));
        assert_eq!(operations, [done(&of[0]) * 400.0; 3], "{} {set}", cell.target);
    }
}

#[test]
fn the_example_on_real_file_systems() {
    if not_run(unable_here(&["ext4", "xfs", "btrfs"])) {
        return;
    }
    let lab = Lab::new();
    let plan = shrunk(&[
        ("image = { dir = \".\", size = \"8GiB\" }", "memory = \"512MiB\""),
        ("title = ", "duplicate = false\ntitle = "),
        ("[[target]]\nfs = \"ext2\"\n", ""),
        ("[[target]]\nfs = \"ext3\"\n", ""),
        ("[[target]]\nfs = \"reiser4\"\n", ""),
        ("[[target]]\nfs = \"nilfs2\"\n", ""),
        ("scheduler = [\"none\", \"mq-deadline\", \"bfq\", \"kyber\"]", "scheduler = [\"none\"]"),
        ("fill = [\"40%\"]", "fill = [\"10%\"]"),
        ("40% full", "10% full"),
        // Enough single characters for half a second on a fast machine: below that bonnie++ has no
        // value to tell.
        (
            "size = \"2GiB\"\nfiles = 131072",
            "size = \"8MiB\"\ncharacters = \"3MiB\"\nfiles = 1024\nmissing = \"leave-out\"",
        ),
        (
            "files = 16384\nlarge = \"1GiB\"",
            "files = 400\ndirectories = 3\nthreads = 2\nfile-size = \"3KiB\"\ntime = \"30ms\"\nlarge = \"8MiB\"\n\
             characters = \"1MiB\"\nseeks = 500\nsyncs = 8",
        ),
        ("budget = \"12h\"\nthreshold = \"3%\"", "rounds = 1"),
    ]);
    let said = lab.run_plan(&plan);
    let folded = lab.folded();
    for cell in &folded.cells {
        let mut facts = cell.provenance.facts.iter();
        match (cell.target.split(' ').next(), cell.work.as_str(), &cell.outcome) {
            (Some("ext4" | "xfs" | "btrfs"), "small-files", Some(Outcome::Done)) => assert_every_phase(&folded, cell),
            (Some("ext4" | "xfs" | "btrfs"), "bonnie", Some(Outcome::Done)) => {
                let value = |metric: &str| folded.value(cell, "putc", metric);
                assert!(value("time_ns") > Some(0.0) && value("latency_max_ns") > Some(0.0), "{}", cell.target);
                assert!(facts.any(|(name, value)| name == "bonnie++" && value.contains("format")), "{}", cell.target);
                let mut flags = cell.flags.iter();
                let told = flags.any(|flag| flag.flag == "no-value" && flag.why.contains("sequential-stat"));
                let timed = folded.value(cell, "sequential-stat", "time_ns").is_some();
                assert!(told != timed, "{}: a test has either a value or a word of why not", cell.target);
            }
            (Some("reiserfs"), _, Some(Outcome::Skipped(why))) => {
                assert!(why.iter().any(|why| why.contains("the kernel has no reiserfs")), "{why:?}");
            }
            // Where there is still a kernel with it.
            (Some("reiserfs"), _, Some(Outcome::Done)) => {}
            other => panic!("{other:?}\n{}", said.err),
        }
        assert!(cell.flags.iter().all(|flag| flag.flag != "not-cold"), "{}: {:?}", cell.target, cell.flags);
    }
    assert_eq!(folded.cells.len(), 8);
    lab.assert_nothing_left();
}

#[test]
fn warm_is_warm_and_as_long_as_it_takes() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \
         \"small-files\"\nfiles = 100\ntime = \"20ms\"\nlarge = \"2MiB\"\ncharacters = \"1MiB\"\nseeks = 50\nsyncs = 4\n\
         cache = \"warm\"\n[stop]\nrounds = 1\n",
    )
    .code(0);
    let folded = lab.folded();
    let cell = &folded.cells[0];
    let value = |phase: &str, metric: &str| folded.value(cell, phase, metric).expect("a value");
    // As many batches as fill the time, and none asked the device.
    let made = folded.value(cell, "random-create", "done_times").unwrap_or(1.0);
    assert!(value("random-stat", "done_times") >= made);
    assert!(value("random-stat", "returned_ns") * value("random-stat", "done_times") >= 20e6);
    for phase in ["getc", "read", "random-stat", "readdir"] {
        assert_eq!(value(phase, "device_read_bytes"), 0.0, "{phase}");
    }
    lab.assert_nothing_left();
}

#[test]
fn a_full_file_system_fails_the_cell_and_names_the_operation() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\nmkfs = [\"-N\", \"300\"]\n\
         [[work]]\nworkload = \"small-files\"\nfiles = 1000\nlarge = \"1MiB\"\ncharacters = \"1MiB\"\n\
         [stop]\nrounds = 1\n",
    );
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    for words in ["sequential-create", "create of 00000/", "No space left on device"] {
        assert!(why.contains(words), "{words} is not in: {why}");
    }
    lab.assert_nothing_left();
}

#[test]
fn a_bonnie_that_fails_is_told_with_its_last_words() {
    if not_run(unable_here(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\nmkfs = [\"-N\", \"300\"]\n\
         [[work]]\nworkload = \"bonnie\"\nsize = \"8MiB\"\ncharacters = \"1MiB\"\nfiles = 1024\n[stop]\nrounds = 1\n",
    );
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    assert!(why.contains("bonnie++") && why.contains("Can't create file"), "{why}");
    lab.assert_nothing_left();
}

#[test]
fn a_bonnie_with_too_little_to_do_fails_and_says_what_to_give() {
    if not_run(unable_here(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \
         \"bonnie\"\nsize = \"1MiB\"\ncharacters = \"1MiB\"\nfiles = 1024\n[stop]\nrounds = 1\n",
    );
    let folded = lab.folded();
    let why = failed(&folded.cells[0]);
    for part in ["bonnie++ printed +++++ for ", "sequential-stat", "`files`"] {
        assert!(why.contains(part), "{part} is not in: {why}");
    }
    // A fast machine does all of it too fast.
    assert!(["missing = \"leave-out\"", "no part is left to report"].iter().any(|end| why.contains(end)), "{why}");
    lab.assert_nothing_left();
}
