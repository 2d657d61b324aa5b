//! Journals that are full, gone or not what they say they are.

use crate::common::{Lab, SHORT_CELLS, not_run, unable, writeback_knobs};
use pickfs_core::journal::fold_file;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn plan() -> String {
    SHORT_CELLS.replace("rounds = 3", "rounds = 20")
}

/// A disk with hardly any room.
struct Small(PathBuf);

impl Small {
    fn new(at: PathBuf) -> Small {
        std::fs::create_dir(&at).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=32k", "small"]).arg(&at).status();
        assert!(mount.unwrap().success());
        Small(at)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn unreadable(journal: &Path) -> u64 {
    fold_file(journal).unwrap().unreadable
}

#[test]
fn a_full_disk_below_the_journal_tears_no_line_and_leaves_nothing() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let small = Small::new(lab.path("small"));
    std::fs::write(lab.path("plan.toml"), plan()).unwrap();
    std::os::unix::fs::symlink(small.0.join("j.jsonl"), lab.journal()).unwrap();
    let said = lab.run(&["run", "plan.toml", "--journal", "small/j.jsonl"]).code(1);
    assert!(said.err.contains("cannot write the journal") && said.err.contains("--resume"), "{}", said.err);
    lab.assert_nothing_left();
    assert_eq!(unreadable(&lab.journal()), 0);
    lab.run(&["clean"]);

    let remount = Command::new("mount").args(["-o", "remount,size=4m"]).arg(&small.0).status();
    assert!(remount.unwrap().success());
    lab.run(&["run", "--resume", "small/j.jsonl"]).code(0);
    assert_eq!((lab.folded().cells.len(), unreadable(&lab.journal())), (20, 0));
    lab.assert_nothing_left();
}

/// Two dead runs in a row: the second saved what the first had put there.
#[test]
fn settings_come_back_after_two_dead_runs() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let (lab, knobs) = (Lab::new(), writeback_knobs());
    std::fs::write(lab.path("plan.toml"), plan().replace("meta.ok", "meta.hang")).unwrap();
    for journal in ["first.jsonl", "second.jsonl"] {
        let mut run = lab.pickfs();
        run.args(["run", "plan.toml", "--journal", journal]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = run.spawn().unwrap();
        while !fold_file(&lab.path(journal)).is_ok_and(|folded| !folded.cells.is_empty()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let refused = lab.run(&["clean", journal]).code(1);
        assert!(refused.err.contains("in use by another pickfs"), "{}", refused.err);
        assert_eq!(refused.err.matches(journal).count(), 1, "{}", refused.err);
        let all = lab.run(&["clean"]).code(0);
        assert!(all.out.contains("is under way") && all.err.is_empty(), "{}{}", all.out, all.err);
        run.kill().unwrap();
        run.wait().unwrap();
    }
    assert_eq!(lab.folded_at("first.jsonl").leftovers.len(), 0, "the second run did not undo the first");
    lab.run(&["clean"]).code(0);
    assert_eq!(writeback_knobs(), knobs);
    let again = lab.run(&["clean"]).code(0);
    assert!(again.out.contains("nothing to clean"), "{}", again.out);
}

#[test]
fn a_run_whose_journal_is_deleted_is_not_forgotten() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.path("plan.toml"), plan().replace("meta.ok", "meta.hang")).unwrap();
    let mut run = lab.pickfs();
    run.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = run.spawn().unwrap();
    while !fold_file(&lab.journal()).is_ok_and(|folded| !folded.cells.is_empty()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::rename(lab.journal(), lab.path("hidden")).unwrap();
    let alive = lab.run(&["clean"]).code(0);
    assert!(alive.out.contains("is under way"), "{}", alive.out);
    run.kill().unwrap();
    run.wait().unwrap();
    let gone = lab.run(&["clean"]).code(1);
    assert!(gone.err.contains("is gone") && gone.err.contains("/run/pickfs-"), "{}", gone.err);
    std::fs::rename(lab.path("hidden"), lab.journal()).unwrap();
    lab.run(&["clean"]).code(0);
    lab.assert_nothing_left();
}
