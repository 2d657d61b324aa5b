//! Ctrl-C once finishes the step and undoes; twice undoes now; a terminal that goes away leaves
//! nothing; and the run can be taken up again.

use crate::common;

use crate::common::{Lab, PATIENCE, Said, not_run, unable};
use pickfs_core::journal::{Journal, Outcome, Record, Run, SCHEMA, Scope, StepTaken, Undo, fold_file};
use pickfs_core::plan::Plan;
use pickfs_system::sys::file::inode_and_birth;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn plan(work: &str) -> String {
    format!(
        "duplicate = false\nbacking = {{ memory = \"64MiB\" }}\n[[target]]\nfs = \"ext4\"\n[[work]]\n{work}\n[stop]\nrounds = 3\ncell = \"60s\"\n"
    )
}

fn start(lab: &Lab, plan: &str) -> Child {
    std::fs::write(lab.path("plan.toml"), plan).unwrap();
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the journal says that a cell has begun.
fn await_cell(lab: &Lab) {
    let begun = Instant::now();
    while !fold_file(&lab.journal()).is_ok_and(|folded| !folded.cells.is_empty()) {
        assert!(begun.elapsed() < PATIENCE, "no cell began");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn interrupt(child: &Child) {
    pickfs_system::sys::process::kill(child.id() as i32, pickfs_system::sys::process::Signal::INT).unwrap();
}

#[test]
fn once_finishes_the_step_and_undoes() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let child = start(&lab, &plan("workload = \"meta.ok\""));
    await_cell(&lab);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("finishing the step, then undoing"), "{words}");
    lab.assert_nothing_left();
    assert!(lab.folded().leftovers.is_empty());

    lab.run(&["run", "--resume", "journal.jsonl"]).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 3);
    assert!(folded.cells.iter().all(|cell| cell.outcome == Some(Outcome::Done)));
    lab.assert_nothing_left();
}

/// What was left out has its cells, with the reason, before any is done.
#[test]
fn of_what_was_left_out_alone_there_is_no_report() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let text = plan("workload = \"meta.hang\"").replace("[[work]]", "[[target]]\nfs = \"reiser4\"\n[[work]]");
    let child = start(&lab, &text);
    let begun = Instant::now();
    while !fold_file(&lab.journal()).is_ok_and(|folded| folded.cells.iter().any(|cell| cell.outcome.is_some())) {
        assert!(begun.elapsed() < PATIENCE, "nothing was left out");
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&child);
    let said = Said::of(child.wait_with_output().unwrap()).code(130);
    assert!(said.out.is_empty() && !lab.path("journal.html").exists(), "{}", said.out);
    let listed = lab.run(&["history", "."]).code(0).out;
    assert!(listed.contains("no result: ./journal.jsonl") && listed.lines().count() == 1, "{listed}");
    lab.assert_nothing_left();
}

/// While it waits for another run.
#[test]
fn before_a_cell_has_ended_there_is_no_report() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let turn = File::options().create(true).append(true).mode(0o600).open("/run/pickfs.lock").unwrap();
    rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let child = start(&lab, &plan("workload = \"meta.ok\""));
    let begun = Instant::now();
    while !lab.journal().exists() {
        assert!(begun.elapsed() < PATIENCE, "no journal is made");
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&child);
    let said = Said::of(child.wait_with_output().unwrap()).code(130);
    drop(turn);
    assert!(said.out.is_empty() && said.err.contains("pickfs run --resume journal.jsonl"), "{}{}", said.out, said.err);
    assert!(!lab.path("journal.html").exists());
    lab.run(&["run", "--resume", "journal.jsonl"]).code(0);
    lab.assert_nothing_left();
}

#[test]
fn twice_undoes_now() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let child = start(&lab, &plan("workload = \"meta.hang\""));
    await_cell(&lab);
    std::thread::sleep(Duration::from_millis(700));
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(200));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(lab.folded().cells.iter().all(|cell| cell.outcome.is_none()));
    lab.assert_nothing_left();
}

#[test]
fn a_terminal_that_closes_leaves_nothing() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let mut child = start(&lab, &plan("workload = \"meta.ok\""));
    await_cell(&lab);
    drop((child.stdout.take(), child.stderr.take()));
    pickfs_system::sys::process::kill(child.id() as i32, pickfs_system::sys::process::Signal::HUP).unwrap();
    child.wait().unwrap();
    lab.assert_nothing_left();
    assert!(lab.folded().leftovers.is_empty());
}

#[test]
fn a_reader_who_has_seen_enough_does_not_end_the_run() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let mut child = start(&lab, &plan("workload = \"meta.ok\""));
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(lab.folded().cells.len(), 3);
    lab.assert_nothing_left();
}

/// On its own terminal, whose settings are the same afterwards.
#[test]
fn q_ends_the_run_after_its_cell_and_reports() {
    let script =
        pickfs_system::need::find_program("script").is_none().then(|| "there is no script (bsdutils)".to_string());
    if not_run(unable(&["ext4"]).or(script)) {
        return;
    }
    let lab = Lab::new();
    lab.write_plan(&plan("workload = \"command\"\ncommand = \"sleep 1\"\nstart = \"fresh\""));
    let line =
        "stty -a >before; \"$PICKFS\" run plan.toml --yes --journal journal.jsonl; echo $? >code; stty -a >after";
    let mut command = Command::new("script");
    command.args(["--quiet", "--command", line, "/dev/null"]).current_dir(lab.path("."));
    command.env("PICKFS", env!("CARGO_BIN_EXE_pickfs")).env("XDG_STATE_HOME", lab.path("state")).env("TERM", "xterm");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    await_cell(&lab);
    child.stdin.as_ref().unwrap().write_all(b"xq").unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let read = |name: &str| std::fs::read_to_string(lab.path(name)).unwrap();
    assert_eq!(read("code").trim(), "130", "{shown}");
    assert_eq!(read("before"), read("after"));
    assert!(!read("before").contains("-icanon"), "{}", read("before"));
    for said in ["press q to end", "ending after this cell", "pickfs run --resume journal.jsonl", "After 1 round"] {
        assert!(shown.contains(said), "no {said} in {shown}");
    }
    let folded = lab.folded();
    assert!(folded.cells.len() < 3 && folded.cells.iter().all(|cell| cell.outcome == Some(Outcome::Done)));
    lab.assert_nothing_left();

    lab.run(&["run", "--resume", "journal.jsonl"]).code(0);
    assert_eq!(lab.folded().cells.len(), 3);
}

/// By an upgrade, or by a build.
#[test]
fn a_program_whose_file_is_replaced_goes_on() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let (own, other) = (lab.path("pickfs"), lab.path("other"));
    std::fs::copy(env!("CARGO_BIN_EXE_pickfs"), &own).unwrap();
    std::fs::write(&other, "not pickfs").unwrap();
    std::fs::write(lab.path("plan.toml"), plan("workload = \"meta.ok\"")).unwrap();
    let mut command = Command::new(&own);
    command.current_dir(lab.path("")).env("XDG_STATE_HOME", lab.path("state")).env_remove("PICKFS_RUN");
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    await_cell(&lab);
    std::fs::rename(&other, &own).unwrap();
    Said::of(child.wait_with_output().unwrap()).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 3);
    assert!(folded.cells.iter().all(|cell| cell.outcome == Some(Outcome::Done)), "{:?}", folded.cells);
    lab.assert_nothing_left();
}

/// As in most containers: nothing was changed, so nothing is to be undone.
#[test]
fn where_settings_of_the_kernel_are_read_only_nothing_is_left_to_undo() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.write_plan(&plan("workload = \"meta.ok\""));
    let read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && \
                     exec \"$0\" run plan.toml --journal journal.jsonl";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", read_only, env!("CARGO_BIN_EXE_pickfs")]);
    command.current_dir(lab.path(".")).env("XDG_STATE_HOME", lab.path("state")).env_remove("PICKFS_RUN");
    let said = Said::of(command.output().expect("unshare starts")).code(1);
    assert!(said.err.contains("cannot fix vm.dirty") && !said.err.contains("undo"), "{}", said.err);
    assert_eq!(lab.folded().leftovers.len(), 0);
    let said = lab.run(&["clean"]).code(0);
    assert!(said.out.contains("nothing to clean"), "{}", said.out);
    lab.assert_nothing_left();
}

/// The remaining steps are still in the journal.
#[test]
fn undoing_a_dead_run_ends_when_asked_to() {
    if not_run(unable(&[])) {
        return;
    }
    let (lab, id) = (Lab::new(), format!("{:012x}", std::process::id()));
    let folder = lab.path(".").canonicalize().unwrap().join(format!("pickfs-{id}"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let image = folder.join("disk-1048576.img");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let device = common::run(&["losetup", "--find", "--show", &image.display().to_string()]);
    // It cannot be removed while it is open, so that each of the steps is tried for a while.
    let held = File::open(&device).unwrap();
    let mut journal = Journal::create(&lab.journal()).unwrap();
    let plan = Plan { executor: "local".into(), ..Plan::default() };
    let run = Run { schema: SCHEMA, id: id.clone(), plan, ..Run::default() };
    journal.append(&Record::Run(Box::new(run))).unwrap();
    for number in 1..=100 {
        let (scope, says, does) = (Scope::Run, "attach".into(), String::new());
        let undo = Some(Undo::DetachLoops(image.clone()));
        journal.append(&Record::Step(StepTaken { scope, number, says, does, undo })).unwrap();
    }
    drop(journal);
    let mut command = lab.pickfs();
    command.args(["clean", "--trust", "journal.jsonl"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut clean = command.spawn().unwrap();
    let mark = format!("PICKFS_RUN={id}");
    while pickfs_system::process::marked_processes(&mark).is_empty() && clean.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    pickfs_system::sys::process::kill(clean.id() as i32, pickfs_system::sys::process::Signal::TERM).unwrap();
    let said = Said::of(clean.wait_with_output().unwrap());
    drop(held);
    assert!(said.err.contains("the undoing was stopped"), "{}{}", said.out, said.err);
    assert_eq!(lab.folded().leftovers.len(), 100);
    lab.run(&["clean", "--trust", "journal.jsonl"]).code(0);
    std::fs::remove_dir_all(folder).unwrap();
    lab.assert_nothing_left();
}

/// The limit of a file's size stands for a disk that is full: 512 or 1024 bytes hold what the state
/// folder remembers, and no plan.
#[test]
fn a_disk_that_is_full_at_the_start_leaves_no_run_to_clean() {
    let lab = Lab::new();
    for folder in ["a", "b", "c"] {
        std::fs::create_dir(lab.path(folder)).unwrap();
    }
    let words = ["run", "--on", "a", "--on", "b", "--on", "c", "--rounds", "1", "--journal", "journal.jsonl"];
    for blocks in [0, 1] {
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_pickfs")]).args(words).stdin(Stdio::null());
        command.current_dir(lab.path(".")).env("XDG_STATE_HOME", lab.path("state")).env_remove("PICKFS_RUN");
        let said = Said::of(command.output().unwrap()).code(1);
        assert!(said.err.contains("cannot write ") && said.err.contains("File too large"), "{blocks}: {}", said.err);
        assert!(!said.err.contains("--resume"), "{blocks}: {}", said.err);
        assert_eq!(std::fs::read_dir(lab.path("state/pickfs/active")).unwrap().count(), 0, "{blocks}");
    }
}

/// The entry of a run whose path was not written any more, and one whose journal has a part of its
/// first line.
#[test]
fn runs_that_died_before_their_first_line_are_cleaned() {
    let lab = Lab::new();
    let made = |name: &str, text: &str| {
        let path = lab.path(&format!("state/pickfs/{name}"));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    std::fs::write(lab.journal(), "{\"run\":{\"id\":\"0123456789ab").unwrap();
    let identity = inode_and_birth(File::open(lab.journal()).unwrap()).unwrap();
    made("begun/0123456789ab", &identity);
    made("active/0123456789ab", &lab.journal().display().to_string());
    made("active/ba9876543210", "");
    let said = lab.run(&["clean"]).code(0);
    for run in ["0123456789ab", "ba9876543210"] {
        assert!(said.out.contains(&format!("{run}: died before it touched anything")), "{}{}", said.out, said.err);
    }
    assert!(lab.run(&["clean"]).code(0).out.contains("nothing to clean"));
}
