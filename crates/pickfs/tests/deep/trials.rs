//! Before the first round every target is tried: what cannot work is said once and costs no further
//! cell. And what else a run owes those around it: its turn, its aims when it is taken up, its
//! owner.

use crate::common::{Lab, PATIENCE, Said, SmallDisk, failed, not_run, run, unable};
use pickfs_core::journal::{Folded, Outcome};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

const STRANGER: u32 = 65534;

fn cells<'a>(folded: &'a Folded, target: &str) -> Vec<&'a Outcome> {
    let of_target = folded.cells.iter().filter(|cell| cell.target == target);
    of_target.filter_map(|cell| cell.outcome.as_ref()).collect()
}

#[test]
fn what_cannot_work_is_said_once_and_another_target_is_the_reference() {
    if not_run(unable(&["btrfs", "ext4", "ext2"])) {
        return;
    }
    let lab = Lab::new();
    let plan = r#"
backing = { memory = "120MiB" }
[[target]]
fs = "btrfs"
mount = ["zstd"]
[[target]]
fs = "ext4"
[[target]]
fs = "ext2"
[[work]]
workload = "meta.ok"
[stop]
rounds = 3
"#;
    let said = lab.run_plan(plan).code(1);
    let told = said.err.lines().filter(|line| line.contains("left out: btrfs")).count();
    assert_eq!(told, 1, "{}", said.err);
    assert!(said.err.contains("the reference is ext4 now"), "{}", said.err);
    let folded = lab.folded();
    let plan = &folded.run.as_ref().unwrap().plan;
    assert_eq!((plan.reference.as_str(), plan.targets[3].name.as_str()), ("ext4", "ext4 (again)"));
    let names = ["btrfs zstd", "btrfs zstd (again)", "ext4", "ext4 (again)", "ext2"];
    assert_eq!(names.map(|name| cells(&folded, name).len()), [1, 0, 3, 3, 3], "{said:?}", said = said.err);
    assert!(failed(folded.cells.iter().find(|cell| cell.target == "btrfs zstd").unwrap()).contains("mount"));
    assert!(folded.host["warm-up"].starts_with("a cell of"), "{:?}", folded.host);
    assert!(folded.leftovers.is_empty());
    let report = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("failed in 1 of 3") || report.contains("btrfs zstd"), "{report}");
    lab.assert_nothing_left();

    // The journal knows, and nothing is tried again.
    let again = lab.run(&["run", "--resume", "journal.jsonl", "--rounds", "4"]).code(1);
    assert!(!again.err.contains("left out"), "{}", again.err);
    assert_eq!(names.map(|name| cells(&lab.folded(), name).len()), [1, 0, 4, 4, 4]);
    lab.assert_nothing_left();
}

/// The image is large enough, and what ext4 leaves of it is not: known once it is made, before
/// anything is measured.
#[test]
fn what_cannot_fit_is_said_before_the_first_round() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let plan = "backing = { memory = \"64MiB\" }\nduplicate = false\n[[target]]\nfs = \"ext4\"\n\
                [[work]]\nworkload = \"tree\"\nfiles = 100\nbytes = \"62MiB\"\n[stop]\nrounds = 2\n";
    let said = lab.run_plan(plan);
    let flat = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("there is room for") && flat.contains("the work puts 62.0 MiB"), "{flat}");
    assert!(said.code != Some(0) && !flat.contains("No space left"), "{flat}");
    lab.assert_nothing_left();
}

/// The kernel shows `nobarrier` for `barrier=0`, `1024k` for `1m`: the same is not another.
#[test]
fn options_that_the_kernel_spells_otherwise_are_in_effect() {
    if not_run(unable(&["btrfs", "ext4", "xfs"])) {
        return;
    }
    let lab = Lab::new();
    let plan = r#"
backing = { memory = "320MiB" }
duplicate = false
[[target]]
fs = "ext4"
name = "ext4 bare"
mount = ["barrier=0", "auto_da_alloc=0", "noload"]
[[target]]
fs = "xfs"
mount = ["allocsize=1m", "logbsize=262144"]
[[target]]
fs = "btrfs"
mount = ["compress=zstd:0", "max_inline=1k"]
[[work]]
workload = "meta.ok"
[stop]
rounds = 1
"#;
    lab.run_plan(plan).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 3);
    assert!(folded.cells.iter().all(|cell| cell.outcome == Some(Outcome::Done)), "{:?}", folded.cells);
    let weak = folded.cells.iter().filter(|cell| !cell.provenance.weakened.is_empty());
    assert!(weak.map(|cell| cell.target.as_str()).eq(["ext4 bare"]));
    lab.assert_nothing_left();
}

/// A failure of the moment, which the second trial does not meet, costs no target its run.
#[test]
fn a_target_that_failed_once_is_tried_again() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let (folder, program, real) = (lab.path("programs"), lab.path("programs/mke2fs"), run(&["which", "mke2fs"]));
    std::fs::create_dir(&folder).unwrap();
    let script = "#!/bin/sh\nmkdir FAILED 2> /dev/null && { echo busy just now >&2; exit 1; }\nexec REAL \"$@\"\n";
    let script = script.replace("FAILED", &lab.path("failed").display().to_string()).replace("REAL", &real);
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    lab.write_plan(&SHORT.replace("rounds = 1", "rounds = 2"));
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).env("PATH", path);
    let said = Said::of(command.output().unwrap()).code(0);
    assert!(
        said.err.contains("trying ext4 once more, after this failure: ") && said.err.contains("busy"),
        "{}",
        said.err
    );
    assert_eq!(cells(&lab.folded(), "ext4"), [&Outcome::Done; 2]);
    lab.assert_nothing_left();
}

#[test]
fn a_directory_without_room_is_seen_before_the_first_round() {
    if not_run(unable(&[])) {
        return;
    }
    let lab = Lab::new();
    let small = SmallDisk::new(&lab, "160m");
    let plan = format!(
        "backing = {{ directory = '{}' }}\n[[work]]\nworkload = 'tree'\nfiles = 10\nbytes = '150MiB'\n[stop]\nrounds = 2\n",
        small.folder.display()
    );
    std::fs::write(small.folder.join("filler"), vec![1; 30 << 20]).unwrap();
    let said = lab.run_plan(&plan).code(1);
    assert!(said.err.contains("there is room for") && said.err.contains("nothing can be measured"), "{}", said.err);
    assert!(lab.folded().cells.iter().all(|cell| cell.outcome != Some(Outcome::Done)));
    lab.assert_nothing_left();
}

/// The user `nobody` cannot make file systems here, so every cell is skipped.
#[test]
fn a_run_that_measures_nothing_fails() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    std::fs::set_permissions(lab.path("."), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let program = lab.path("pickfs");
    std::fs::copy(env!("CARGO_BIN_EXE_pickfs"), &program).unwrap();
    for rounds in ["1", "3"] {
        let mut command = std::process::Command::new(&program);
        command.current_dir(lab.path(".")).env("XDG_STATE_HOME", lab.path(&format!("state{rounds}")));
        command.args(["run", "--fs", "ext4,ext2", "--executor", "local", "--rounds", rounds, "--scale", "0.01"]);
        let said = Said::of(command.uid(STRANGER).gid(STRANGER).output().unwrap()).code(1);
        assert!(said.err.contains("root"), "{}", said.err);
    }
}

const SHORT: &str = "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\n[[work]]\n\
                     workload = \"meta.ok\"\n[stop]\nrounds = 1\n";

#[test]
fn a_run_that_is_taken_up_can_have_another_aim() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(SHORT).code(0);
    let resume = |words: &[&str]| lab.run(&[&["run", "--resume", "journal.jsonl"], words].concat());
    resume(&["--rounds", "3"]).code(0);
    assert_eq!(cells(&lab.folded(), "ext4").len(), 3);
    assert!(resume(&["--rounds", "2"]).code(2).err.contains("round 3 has begun"));
    assert!(resume(&["--more", "1s"]).code(1).err.contains("--rounds N"));
    resume(&["--precision", "2%", "--budget", "1ms"]).code(0);
    let stop = lab.folded().run.unwrap().plan.stop;
    assert_eq!((stop.rounds, stop.precision, stop.budget_ns), (None, Some(0.02), Some(1_000_000)));
    assert_eq!(cells(&lab.folded(), "ext4").len(), 4, "a session does something before its budget ends it");
    assert!(resume(&["--more", "soon"]).code(2).err.contains("--more"));
    // What makes the cells is the journal's, and is refused by its name.
    for [flag, value] in [["--fs", "xfs"], ["--age", "1"], ["--fill", "50%"], ["--like", "site"], ["--scale", "0.5"]] {
        let said = resume(&[flag, value]).code(2).err;
        assert!(said.contains("cannot be used with") && said.contains(flag), "{flag}: {said}");
    }
    lab.run(&["run", "--more", "1h"]).code(2);
    lab.assert_nothing_left();
}

/// The lock of root's runs is root's alone. A run that waits names the run that it waits for, and a
/// holder of the lock that users share delays no run of root's.
#[test]
fn who_waits_is_told_for_whom_and_root_waits_for_no_user() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let (lab, other) = (Lab::new(), Lab::new());
    lab.write_plan(&SHORT.replace("meta.ok", "meta.hang").replace("[stop]", "[stop]\ncell = '60s'"));
    let mut first = lab.pickfs();
    let mut first = first
        .args(["run", "plan.toml", "--journal", "journal.jsonl"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !pickfs_core::journal::fold_file(&lab.journal()).is_ok_and(|folded| !folded.cells.is_empty()) {
        assert!(begun.elapsed() < PATIENCE, "no cell began");
        std::thread::sleep(Duration::from_millis(20));
    }
    other.write_plan(SHORT);
    let mut second = other.pickfs();
    second.args(["run", "plan.toml", "--journal", "journal.jsonl"]);
    let mut second = second.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let holder = format!("process {}, {}", first.id(), std::fs::canonicalize(lab.journal()).unwrap().display());
    let mut said = BufReader::new(second.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains(&format!("to end: {holder}"))), "the second run did not name {holder}");
    for _ in 0..2 {
        pickfs_system::sys::process::kill(first.id() as i32, pickfs_system::sys::process::Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(first.wait().unwrap().code(), Some(130));
    let rest: Vec<String> = said.collect();
    assert!(second.wait().unwrap().success(), "{rest:#?}");
    assert_eq!(std::fs::metadata("/run/pickfs.lock").unwrap().mode() & 0o077, 0);

    let shared = std::fs::File::open("/run/lock/pickfs.lock").unwrap();
    rustix::fs::flock(&shared, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let third = Lab::new();
    let said = third.run_plan(SHORT).code(0);
    assert!(said.err.contains("another user's run is under way"), "{}", said.err);
    [lab, other, third].iter().for_each(Lab::assert_nothing_left);
}

/// `cd ~; sudo pickfs run --on ~`, on a terminal that moves no cursor.
#[test]
fn what_sudo_makes_belongs_to_the_user() {
    if not_run(unable(&[])) {
        return;
    }
    let lab = Lab::new();
    let words = format!("{} run --on . --rounds 1 --scale 0.01", env!("CARGO_BIN_EXE_pickfs"));
    let mut command = std::process::Command::new("script");
    command.args(["--quiet", "--return", "--command", &words, "/dev/null"]).current_dir(lab.path("."));
    command.env("XDG_STATE_HOME", lab.path("state")).env("TERM", "dumb");
    let said = Said::of(command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").output().unwrap()).code(0);
    assert!(said.out.contains("[1/2] round 1"), "{}", said.out);
    let folder = lab.path("pickfs-runs");
    let mut made: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(made.len(), 2, "a journal and its page: {made:?}");
    made.push(folder);
    for path in made {
        assert_eq!(path.metadata().unwrap().uid(), STRANGER, "{}", path.display());
    }
}
