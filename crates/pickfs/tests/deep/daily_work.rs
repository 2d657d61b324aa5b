//! The daily-work protocol on real file systems, as root on memory, and without root on an existing
//! directory.

use crate::common;

use crate::common::{Lab, Observation, Said, not_run, unable};
use pickfs_core::journal::{Begin, Folded, Outcome, Record};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const PHASES: [&str; 5] = ["write", "tar-read", "copy-read", "stat-walk", "remove"];

fn source(lab: &Lab) -> String {
    let source = lab.path("source");
    pickfs_trees::generate(&source, &pickfs_trees::Shape { files: 300, bytes: 12 << 20 }, 3).unwrap();
    source.display().to_string()
}

/// Every phase of every cell that is done has its times, in an order that can be.
fn assert_measured(folded: &Folded) {
    for cell in folded.cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done)) {
        for phase in PHASES {
            let value = |metric: &str| {
                let found = folded.value(cell, phase, metric);
                found.unwrap_or_else(|| panic!("{} {phase} has no {metric}", cell.target))
            };
            assert!(
                0.0 < value("returned_ns") && value("returned_ns") <= value("durable_ns"),
                "{} {phase}",
                cell.target
            );
            let judged = if ["write", "remove"].contains(&phase) { "durable_ns" } else { "returned_ns" };
            assert_eq!(value("time_ns"), value(judged), "{} {phase}", cell.target);
        }
    }
}

/// For each cell: seconds from its begin to its end, and those in its ledger.
fn wall_and_ledger(lab: &Lab) -> Vec<(f64, f64)> {
    let lines = std::fs::read_to_string(lab.journal()).unwrap();
    let records: Vec<Record> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |at: &str| at.parse::<jiff::Timestamp>().unwrap();
    let begun = records.iter().filter_map(|record| if let Record::Begin(begin) = record { Some(begin) } else { None });
    let of_cell = |begin: &Begin| {
        let end = records.iter().find_map(|record| match record {
            Record::End(end) if end.cell == begin.cell => Some(at(&end.at)),
            _ => None,
        });
        let ledger = records.iter().find_map(|record| match record {
            Record::Ledger(ledger) if ledger.cell == begin.cell => Some(ledger.total_ns()),
            _ => None,
        });
        let wall = end.unwrap().duration_since(at(&begin.at));
        (wall.as_secs_f64(), ledger.unwrap() as f64 / 1e9)
    };
    begun.map(of_cell).collect()
}

fn outcomes(folded: &Folded, target: &str) -> Vec<Outcome> {
    folded.cells.iter().filter(|cell| cell.target == target).filter_map(|cell| cell.outcome.clone()).collect()
}

#[test]
fn five_stacks_on_a_tree_of_ones_own() {
    let filesystems = ["btrfs", "ext4", "xfs", "zfs-fuse"];
    if not_run(unable(&filesystems)) {
        return;
    }
    let lab = Lab::new();
    let source = source(&lab);
    let fs = "ext4,xfs,btrfs,btrfs:compress=zstd:1,zfs-fuse";
    let words = ["run", "--fs", fs, "--memory", "--source", &source, "--rounds", "1", "--journal", "journal.jsonl"];
    lab.run(&words).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 6);
    assert!(folded.cells.iter().all(|cell| cell.outcome == Some(Outcome::Done)));
    assert_measured(&folded);
    for cell in &folded.cells {
        let read = |phase: &str| folded.value(cell, phase, "device_read_bytes").unwrap();
        let compressed = folded.value(cell, "write", "compression_total_disk_bytes");
        let stored = compressed.or(folded.value(cell, "write", "space_allocated_bytes")).unwrap();
        for phase in ["tar-read", "copy-read"] {
            assert!(read(phase) >= 0.9 * stored, "{} {phase} read {} of {stored}", cell.target, read(phase));
        }
        assert!(cell.flags.iter().all(|flag| flag.flag != "not-cold"), "{}: {:?}", cell.target, cell.flags);
        assert!(folded.value(cell, "write", "space_grown_bytes").unwrap() > 0.0, "{}", cell.target);
    }
    let find = |target: &str| folded.cells.iter().find(|cell| cell.target == target).unwrap();
    let compressed = find("btrfs compress=zstd:1");
    assert!(folded.value(compressed, "write", "compression_zstd_disk_bytes").unwrap() > 0.0);
    assert!(compressed.provenance.facts["mount"].contains("compress=zstd:1"), "{:?}", compressed.provenance.facts);
    assert!(folded.ledger.setup_ns > 0 && find("ext4").ledger.phases_ns > 0);
    // A hundredth for the clock of the day, which may be set meanwhile.
    for (wall, ledger) in wall_and_ledger(&lab) {
        assert!((ledger / wall - 1.0).abs() < 0.01, "{ledger} s of {wall} s are in the ledger");
    }
    lab.assert_nothing_left();
}

#[test]
fn options_that_weaken_durability_are_labelled_and_not_ranked() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let fs = "ext4,ext4:nobarrier,ext4:commit=60";
    let words = ["run", "--fs", fs, "--memory", "--size", "128MiB", "--workload", "meta.ok", "--rounds", "3"];
    let said = lab.run(&[&words[..], &["--journal", "journal.jsonl"]].concat()).code(0);
    let folded = lab.folded();
    let weakened = |target: &str| &folded.cells.iter().find(|cell| cell.target == target).unwrap().provenance.weakened;
    assert!(weakened("ext4").is_empty());
    assert_eq!(*weakened("ext4 nobarrier"), ["nobarrier"]);
    assert_eq!(*weakened("ext4 commit=60"), ["commit=60"]);
    assert!(said.out.contains("weaker durability: nobarrier"), "{}", said.out);
    lab.assert_nothing_left();
}

#[test]
fn an_option_that_the_kernel_changes_is_refused() {
    if not_run(unable(&["btrfs"])) {
        return;
    }
    let lab = Lab::new();
    let words = ["run", "--fs", "btrfs:compress=zstd:99", "--memory", "--size", "256MiB", "--workload", "meta.ok"];
    lab.run(&[&words[..], &["--rounds", "1", "--journal", "journal.jsonl"]].concat()).code(1);
    let folded = lab.folded();
    assert!(common::failed(&folded.cells[0]).contains("compress=zstd:99"), "{}", common::failed(&folded.cells[0]));
    lab.assert_nothing_left();
}

#[test]
fn without_root_a_directory_is_measured_as_it_is() {
    let is_root = rustix::process::geteuid().is_root();
    if not_run((!is_root).then(|| "it wants to give root up, and is not root".into())) {
        return;
    }
    let lab = Lab::new();
    let source = source(&lab);
    // A place, a copy of the program and a state folder that user `nobody` can use, in folders
    // where other users can replace nothing.
    let open =
        |path: &std::path::Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let (program, home, on) = (lab.path("pickfs"), lab.path("home"), lab.path("on"));
    std::fs::copy(env!("CARGO_BIN_EXE_pickfs"), &program).unwrap();
    for folder in [&home, &on] {
        std::fs::create_dir(folder).unwrap();
        open(folder);
    }
    open(&lab.path("."));
    open(&program);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).current_dir(&home);
    command.env("XDG_STATE_HOME", home.join("state")).env("HOME", &home);
    command
        .args(["run", "--fs", "ext4,xfs,btrfs,btrfs:compress=zstd:1,zfs-fuse", "--source", &source, "--on"])
        .arg(&on);
    let journal = lab.journal().display().to_string();
    let said = Said::of(command.args(["--rounds", "2", "--journal", &journal]).output().unwrap()).code(0);

    let folded = lab.folded();
    assert_eq!(outcomes(&folded, &on.display().to_string()), [Outcome::Done, Outcome::Done]);
    assert_measured(&folded);
    for cell in folded.cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done)) {
        // Names and inodes cannot be dropped without root, so nothing but a flag is honest.
        assert!(cell.flags.iter().any(|flag| (flag.phase.as_str(), flag.flag.as_str()) == ("stat-walk", "not-cold")));
        let own = |phase: &str| folded.value(cell, phase, "workload_read_bytes").unwrap();
        let drive = |phase: &str| folded.value(cell, phase, "device_read_bytes").unwrap_or(f64::INFINITY);
        // On a tmpfs there is no drive to read from.
        assert!(drive("tar-read").is_infinite() || own("tar-read") > 0.0, "tar had read nothing, or nobody counted it");
        assert!(
            own("tar-read") <= drive("tar-read"),
            "tar read {} of the drive's {}",
            own("tar-read"),
            drive("tar-read")
        );
    }
    for target in ["ext4", "xfs", "btrfs", "btrfs compress=zstd:1", "zfs-fuse"] {
        let found = outcomes(&folded, target);
        let reasons =
            |outcome: &Outcome| matches!(outcome, Outcome::Skipped(why) if why.iter().any(|w| w.contains("not root")));
        // Tried once before the first round, and left alone then.
        assert!(found.len() == 1 && found.iter().all(reasons), "{target}: {found:?}");
    }
    assert!(said.out.contains("not root"), "{}", said.out);
    assert_eq!(std::fs::read_dir(&on).unwrap().count(), 0, "something is left in the directory");
    lab.assert_nothing_left();
}

/// Second names of one file are given once by tar; pipes are not read; a name need not be text.
#[test]
fn a_source_may_hold_what_a_file_system_can() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    use std::os::unix::ffi::OsStrExt;
    let lab = Lab::new();
    let source = lab.path("source");
    std::fs::create_dir_all(source.join("-rf")).unwrap();
    std::fs::write(source.join("one"), vec![7; 1 << 20]).unwrap();
    for name in ["-rf/two", "new\nline", " "] {
        std::fs::hard_link(source.join("one"), source.join(name)).unwrap();
    }
    std::fs::write(source.join(std::ffi::OsStr::from_bytes(b"no text \xff")), "x").unwrap();
    std::fs::File::create(source.join("sparse")).unwrap().set_len(8 << 20).unwrap();
    std::os::unix::fs::symlink("/nowhere", source.join("dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(source.join("socket")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(source.join("pipe")).status().unwrap().success());
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \"tree\"\nsource = \"source\"\n[stop]\nrounds = 1\n",
    )
    .code(0);
    let folded = lab.folded();
    assert_eq!(folded.value(&folded.cells[0], "tar-read", "work_bytes"), Some(((9 << 20) + 1) as f64));
    lab.assert_nothing_left();
}
