//! A run killed with SIGKILL at any moment, host or agent, leaves nothing that `pickfs clean` does
//! not remove, and the resumed run ends with the same cells, each counted once.

use crate::common::{Lab, not_run, unable, writeback_knobs};
use pickfs_core::journal::Record;
use pickfs_core::plan::Settings;
use pickfs_system::need;
use pickfs_system::process::marked_processes;
use pickfs_system::sys::process::{Signal, kill};
use pickfs_target::stack::above;
use pickfs_target::workload;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// With `PICKFS_FULL=1` more; `crates/pickfs/tests/deep/sweep.rs` has two hundred over every layer.
fn moments() -> usize {
    if std::env::var_os("PICKFS_FULL").is_some() { 50 } else { 12 }
}

/// Targets with what serves them, and what goes with every one of them.
const FILESYSTEMS: &str = "[[target]]\nfs = \"ext4\"\n[[target]]\nfs = \"btrfs\"\n";
const ABOVE: &str = "[[target]]\nfs = \"ext4\"\nabove = [\"bindfs\", \"gocryptfs\"]\n\
                     [[target]]\nfs = \"btrfs\"\nabove = [\"sshfs\"]\n";

const REST: &str = r#"
[[work]]
workload = "meta.ok"
[stop]
rounds = 1
"#;

/// Each cell opens a disk ten times, half of the cells by QEMU's server; what is killed may be in
/// any phase.
const DISKS: &str = r#"
duplicate = false
backing = { memory = "160MiB" }
target = [{ fs = "ext4" }]
work = [
  { name = "raw", workload = "vm-image", size = "64MiB", database = "8MiB", writes = 50, files = 20, bytes = "1MiB" },
  { name = "qcow2", workload = "vm-image", format = "qcow2", size = "64MiB", database = "8MiB", writes = 50, files = 20, bytes = "1MiB" },
]
[stop]
rounds = 1
"#;

fn start(lab: &Lab) -> Child {
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Two targets.
fn plan(targets: &str) -> String {
    format!("duplicate = false\nbacking = {{ memory = \"120MiB\" }}\n{targets}{REST}")
}

/// How long an undisturbed run takes, so that the moments lie all over it.
fn usual_time(plan: &str) -> Duration {
    let lab = Lab::new();
    let begun = Instant::now();
    lab.run_plan(plan).code(0);
    begun.elapsed()
}

/// Ends of cells in the journal, raw: a cell that ended twice would be seen.
fn ends(lab: &Lab) -> Vec<String> {
    let text = std::fs::read_to_string(lab.journal()).unwrap();
    let records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    records.filter_map(|record| if let Record::End(end) = record { Some(end.cell) } else { None }).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Host,
    Agent,
    Both,
}

fn kill_at(lab: &Lab, moment: Duration, victim: Victim) {
    let mut child = start(lab);
    std::thread::sleep(moment);
    let id =
        std::fs::read_dir(lab.path("state/pickfs/active")).ok().and_then(|mut all| Some(all.next()?.ok()?.file_name()));
    let agents = id.map(|id| marked_processes(&format!("PICKFS_RUN={}", id.to_string_lossy()))).unwrap_or_default();
    if victim != Victim::Agent || agents.is_empty() {
        child.kill().unwrap();
    }
    if victim != Victim::Host {
        agents.into_iter().for_each(|pid| drop(kill(pid, Signal::KILL)));
    }
    // With its agent killed, the host says so and goes on to its end.
    child.wait().unwrap();
}

#[test]
fn nothing_is_left_and_every_cell_counts_once() {
    if !not_run(unable(&["ext4", "btrfs"])) {
        kill_at_any_moment(&plan(FILESYSTEMS), moments());
    }
}

/// Servers of layers above, and their mounts.
#[test]
fn nothing_is_left_of_layers_above() {
    let lacks = |name: &str| need::missing(above::find(name).unwrap().needs).first().map(ToString::to_string);
    let lacking = ["bindfs", "gocryptfs", "sshfs"].into_iter().find_map(lacks);
    if !not_run(unable(&["ext4", "btrfs"]).or(lacking)) {
        kill_at_any_moment(&plan(ABOVE), moments());
    }
}

#[test]
fn no_disk_in_an_image_is_left() {
    let disk = workload::find("vm-image").expect("a known work");
    let qcow2 = Settings([("format".to_string(), "qcow2".into())].into());
    if not_run(unable(&["ext4"]).or_else(|| need::missing(&disk.needs(&qcow2)).first().map(ToString::to_string))) {
        return;
    }
    kill_at_any_moment(DISKS, moments() / 2);
}

/// A plan of two cells.
fn kill_at_any_moment(plan: &str, moments: usize) {
    let knobs = writeback_knobs();
    let usual = usual_time(plan);
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(50);
    let mut cut_off = 0;
    for number in 0..moments {
        let moment = usual.mul_f64((random.next_u64() % 1000) as f64 / 1000.0);
        let victim = [Victim::Host, Victim::Agent, Victim::Both][number % 3];
        let context = format!("moment {number}: {moment:?}, {victim:?}");
        let lab = Lab::new();
        lab.write_plan(plan);
        kill_at(&lab, moment, victim);
        let cleaned = lab.run(&["clean"]);
        assert_eq!(cleaned.code, Some(0), "{context}: {}{}", cleaned.out, cleaned.err);
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "{context}");
        assert_eq!(writeback_knobs(), knobs, "{context}");
        // Killed before its first line, there is nothing to take up.
        let begun = std::fs::read_to_string(lab.journal()).is_ok_and(|text| text.contains('\n'));
        if !begun {
            continue;
        }
        cut_off += usize::from(ends(&lab).len() < 2);
        let resumed = lab.run(&["run", "--resume", "journal.jsonl"]);
        assert!(matches!(resumed.code, Some(0 | 1)), "{context}: {}{}", resumed.out, resumed.err);
        let ends = ends(&lab);
        assert_eq!((ends.len(), ends.iter().collect::<BTreeSet<_>>().len()), (2, 2), "{context}: {ends:?}");
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "{context}, resumed");
    }
    println!("{cut_off} of {moments} moments cut cells off");
    assert!(cut_off >= moments / 4, "only {cut_off} moments fell into the run");
}
