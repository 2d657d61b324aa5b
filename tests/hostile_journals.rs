//! A journal is a file like any other, and `clean` may be root: what a stranger wrote is refused until he is named, and then
//! only what a run can have done is undone, wherever links lead.

mod common;

use common::{Lab, Said, not_run};
use pickfs::journal::{Journal, Record, Run, SCHEMA, StepTaken, Undo};
use pickfs::plan::Plan;
use serde_json::Value;
use std::collections::BTreeSet;
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

/// What steers a terminal, what a log of GitHub obeys, and what a sheet takes for a formula.
const HOSTILE: [&str; 6] = [
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}evil\u{2066}\u{200f}\u{0}\r",
    "x\n::set-output name=a::b\n::stop-commands::x ##[error]y",
    "=cmd|'/c calc'!A1",
    "\t=1+1",
    "\u{ff1d}1+1",
    "<script>alert(1)</script>",
];

/// A recorded run with this before all of its names, reasons and facts.
fn hostile(lab: &Lab, before: &str) {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/journals");
    let text = std::fs::read_to_string(format!("{fixtures}/failed-and-skipped.jsonl")).expect("a fixture");
    let mut records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let plan = &records[0]["run"]["plan"];
    let named = |list: &str| plan[list].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_string());
    let names: BTreeSet<String> = named("targets").chain(named("works")).collect();
    records.iter_mut().for_each(|record| {
        rename(record, "", &|key, text| {
            let is_free = ["title", "why", "failed", "skipped", "phase"].contains(&key) || names.contains(text);
            if is_free { format!("{before}{text}") } else { text.to_string() }
        })
    });
    records[0]["run"]["plan"]["works"][0]["workload"] = serde_json::json!({
        "name": "command", "settings": { "command": [before, "x"], "environment": [format!("A={before}")] }
    });
    let facts = serde_json::json!({ "cpu": format!("{before}cpu"), format!("{before}fact"): "x" });
    records.insert(1, serde_json::json!({ "provenance": { "cell": "", "facts": facts } }));
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    std::fs::write(lab.journal(), lines.join("\n") + "\n").expect("a journal");
}

fn rename(value: &mut Value, key: &str, new: &dyn Fn(&str, &str) -> String) {
    match value {
        Value::String(text) => *text = new(key, text),
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, key, new)),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| rename(value, key, new)),
        _ => {}
    }
}

/// What would be obeyed in what was printed.
fn obeyed(text: &str) -> Option<String> {
    let raw = text.chars().find(|c| !"\n\r".contains(*c) && pickfs::visible::steers(*c));
    let command = text.lines().find(|line| line.trim_start().starts_with("::") || line.contains("##["));
    raw.map(|c| format!("{c:?}")).or(command.map(String::from))
}

#[test]
fn what_a_store_and_an_archive_print_of_hostile_journals_is_inert() {
    for before in HOSTILE {
        let lab = Lab::new();
        hostile(&lab, before);
        lab.run(&["push", "store", "journal.jsonl"]).code(0);
        let mut said = Vec::new();
        for sql in ["SELECT * FROM journal", "SELECT * FROM result", "SELECT title AS '=1\u{1b}' FROM journal"] {
            for format in ["text", "csv", "json"] {
                said.push((format, lab.run(&["query", "store", sql, "--format", format]).code(0)));
            }
        }
        said.push(("error", lab.run(&["query", "store", &format!("SELECT {}", before.replace('\0', ""))])));
        said.push(("share", lab.run(&["share", "journal.jsonl", "-o", "shared.tar.gz"]).code(0)));
        for (format, said) in &said {
            for text in [&said.out, &said.err] {
                assert_eq!(obeyed(text), None, "{format} of {before:?}:\n{text}");
            }
        }
        let formulas = said.iter().filter(|(format, _)| *format == "csv").flat_map(|(_, said)| said.out.lines());
        for cell in formulas.flat_map(|line| line.split(',')) {
            let cell = cell.trim_start_matches('"').trim_start();
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\u{ff1d}']) && cell.parse::<f64>().is_err();
            assert!(!is_formula, "{cell} of {before:?}");
        }
    }
}
