//! A journal is a file like any other, and `clean` may be root: what a stranger wrote is refused until he is named, and then
//! only what a run can have done is undone, wherever links lead.

mod common;

use common::{Lab, Said, not_run};
use pickfs::journal::{Journal, Record, Run, SCHEMA, StepTaken, Undo};
use pickfs::plan::Plan;
use std::os::unix::fs::{chown, symlink};
use std::path::PathBuf;

const STRANGER: u32 = 65534;
const ID: &str = "0123456789ab";
const SETTING: &str = "/proc/sys/vm/overcommit_ratio";

/// A dead run of the stranger's: its folder is a link to somebody else's, and it names a setting that no run changes.
struct Trap {
    lab: Lab,
    victim: PathBuf,
}

impl Trap {
    fn new() -> Trap {
        let lab = Lab::new();
        let victim = lab.path("victim");
        std::fs::create_dir_all(victim.join("data")).unwrap();
        std::fs::write(victim.join("data/kept"), "kept").unwrap();
        symlink(&victim, lab.path(&format!("pickfs-{ID}"))).unwrap();
        let mut journal = Journal::create(&lab.journal()).unwrap();
        let plan = Plan { executor: "local".into(), ..Plan::default() };
        let run = Run { schema: SCHEMA, id: ID.into(), plan, ..Run::default() };
        journal.append(&Record::Run(Box::new(run))).unwrap();
        let undone = [
            Undo::RemoveTree(lab.path(&format!("pickfs-{ID}/data"))),
            Undo::Restore { path: SETTING.into(), value: "51".into(), set: None },
            Undo::KillMarked(format!("PICKFS_RUN={ID}")),
        ];
        for (number, undo) in (1..).zip(undone) {
            let (scope, says) = ("run".into(), "trap".into());
            let step = StepTaken { scope, number, says, does: String::new(), undo: Some(undo) };
            journal.append(&Record::Step(step)).unwrap();
        }
        Trap { lab, victim }
    }

    #[track_caller]
    fn assert_unharmed(&self, setting: &str) {
        assert_eq!(std::fs::read_to_string(self.victim.join("data/kept")).unwrap(), "kept");
        assert_eq!(std::fs::read_to_string(SETTING).unwrap(), setting);
    }
}

#[test]
fn a_strangers_journal_is_refused_and_harms_nobody_where_it_is_not() {
    let root = rustix::process::geteuid().is_root();
    if not_run((!root).then(|| "only root can give a file to another user".into())) {
        return;
    }
    let (trap, setting) = (Trap::new(), std::fs::read_to_string(SETTING).unwrap());
    let lab = &trap.lab;
    chown(lab.journal(), Some(STRANGER), None).unwrap();
    let before = std::fs::read(lab.journal()).unwrap();
    for words in [&["clean", "journal.jsonl"][..], &["run", "--resume", "journal.jsonl"]] {
        let said = lab.run(words).code(1);
        assert!(said.err.contains("belongs to user 65534") && said.err.contains("--any-owner"), "{}", said.err);
    }
    assert!(std::fs::read(lab.journal()).unwrap() == before, "a journal that was refused was written to");
    trap.assert_unharmed(&setting);

    let said = lab.run(&["clean", "--any-owner", "journal.jsonl"]).code(1);
    assert!(said.err.contains("symbolic link") && said.err.contains("refused Restore"), "{}", said.err);
    trap.assert_unharmed(&setting);
    assert_eq!(lab.folded().leftovers.len(), 2, "what can be undone is");

    // sudo names the user, who could as well have done it himself.
    let said = Said::of(
        lab.pickfs()
            .args(["clean", "journal.jsonl"])
            .envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534")])
            .output()
            .unwrap(),
    );
    assert!(said.err.contains("symbolic link"), "{}", said.err);
    trap.assert_unharmed(&setting);
}

/// The journal of a run of root's own, replaced while nobody looked.
#[test]
fn a_journal_that_was_replaced_by_a_stranger_is_not_followed() {
    let root = rustix::process::geteuid().is_root();
    if not_run((!root).then(|| "only root can give a file to another user".into())) {
        return;
    }
    let (trap, setting) = (Trap::new(), std::fs::read_to_string(SETTING).unwrap());
    let active = trap.lab.path("state/pickfs/active");
    std::fs::create_dir_all(&active).unwrap();
    std::fs::write(active.join(ID), trap.lab.journal().display().to_string()).unwrap();
    chown(trap.lab.journal(), Some(STRANGER), None).unwrap();
    let said = trap.lab.run(&["clean"]).code(1);
    assert!(said.err.contains("belongs to user 65534"), "{}", said.err);
    chown(&active, Some(STRANGER), None).unwrap();
    let said = trap.lab.run(&["clean"]).code(0);
    assert!(said.out.contains("nothing to clean"), "{}", said.out);
    trap.assert_unharmed(&setting);
}

/// Results of another program, or an export of a run, leave nothing to undo.
#[test]
fn an_imported_journal_is_neither_taken_up_nor_undone() {
    let lab = Lab::new();
    let plan = Plan { executor: "local".into(), ..Plan::default() };
    let run = Run { schema: SCHEMA, id: ID.into(), imported: "fio".into(), plan, ..Run::default() };
    Journal::create(&lab.journal()).unwrap().append(&Record::Run(Box::new(run))).unwrap();
    for words in [&["clean", "journal.jsonl"][..], &["run", "--resume", "journal.jsonl"]] {
        let said = lab.run(words).code(1);
        assert!(said.err.contains("holds results of fio"), "{}", said.err);
    }
}
