//! A journal is a file like any other, and `clean` may be root: only one of a run that its user
//! began here is acted on, until the user says that he has read it, and then only what a run can
//! have done is undone, wherever links lead.

use crate::common;

use crate::common::{Lab, Said, not_run, unable};
use pickfs_core::journal::{Journal, Record, Run, SCHEMA, Scope, StepTaken, Undo};
use pickfs_core::plan::Plan;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const STRANGER: u32 = 65534;
const RUN: &str = "e1aaaaaaaaaa";
const SETTING: &str = "/proc/sys/vm/overcommit_ratio";

/// A dead run of a stranger: its folder is a link to the folder of another user, and it names a
/// setting that no run changes.
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
        symlink(&victim, lab.path(&format!("pickfs-{RUN}"))).unwrap();
        let mut journal = Journal::create(&lab.journal()).unwrap();
        let plan = Plan { executor: "local".into(), ..Plan::default() };
        let run = Run { schema: SCHEMA, id: RUN.into(), plan, ..Run::default() };
        journal.append(&Record::Run(Box::new(run))).unwrap();
        let undone = [
            Undo::RemoveTree(lab.path(&format!("pickfs-{RUN}/data"))),
            Undo::Restore { path: SETTING.into(), value: "51".into(), set: None },
            Undo::KillMarked(format!("PICKFS_RUN={RUN}")),
        ];
        for (number, undo) in (1..).zip(undone) {
            let (scope, says) = (Scope::Run, "trap".into());
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

/// A folder for its user alone, as pickfs makes it.
fn private(folder: &Path) {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).unwrap();
}

fn fifo(path: &Path) {
    common::run(&["mkfifo", &path.display().to_string()]);
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
        assert!(said.err.contains("belongs to user 65534") && said.err.contains("--trust"), "{}", said.err);
    }
    assert!(std::fs::read(lab.journal()).unwrap() == before, "a journal that was refused was written to");
    trap.assert_unharmed(&setting);

    let said = lab.run(&["clean", "--trust", "journal.jsonl"]).code(1);
    assert!(said.err.contains("symbolic link") && said.err.contains("refused Restore"), "{}", said.err);
    trap.assert_unharmed(&setting);
    assert_eq!(lab.folded().leftovers.len(), 2, "what can be undone is");

    // sudo names the user, and that user could have done the same without us.
    let said = Said::of(
        lab.pickfs()
            .args(["clean", "--trust", "journal.jsonl"])
            .envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534")])
            .output()
            .unwrap(),
    );
    assert!(said.err.contains("symbolic link"), "{}", said.err);
    trap.assert_unharmed(&setting);
}

/// The journal of a run of root's own, replaced unnoticed.
#[test]
fn a_journal_that_was_replaced_by_a_stranger_is_not_followed() {
    let root = rustix::process::geteuid().is_root();
    if not_run((!root).then(|| "only root can give a file to another user".into())) {
        return;
    }
    let (trap, setting) = (Trap::new(), std::fs::read_to_string(SETTING).unwrap());
    let active = trap.lab.path("state/pickfs/active");
    private(&active);
    std::fs::write(active.join(RUN), trap.lab.journal().display().to_string()).unwrap();
    chown(trap.lab.journal(), Some(STRANGER), None).unwrap();
    let said = trap.lab.run(&["clean"]).code(1);
    assert!(said.err.contains("belongs to user 65534"), "{}", said.err);
    chown(&active, Some(STRANGER), None).unwrap();
    let said = trap.lab.run(&["clean"]).code(1);
    assert!(said.err.contains("active belongs to user 65534"), "{}", said.err);
    trap.assert_unharmed(&setting);
}

/// Results of another program, or an export of a run, leave nothing to undo.
#[test]
fn an_imported_journal_is_neither_taken_up_nor_undone() {
    let lab = Lab::new();
    let plan = Plan { executor: "local".into(), ..Plan::default() };
    let run = Run { schema: SCHEMA, id: RUN.into(), imported: "fio".into(), plan, ..Run::default() };
    Journal::create(&lab.journal()).unwrap().append(&Record::Run(Box::new(run))).unwrap();
    for words in [&["clean", "--trust", "journal.jsonl"][..], &["run", "--trust", "--resume", "journal.jsonl"]] {
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
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/journals");
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
    let raw = text.chars().find(|c| !"\n\r".contains(*c) && pickfs_system::visible::steers(*c));
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

/// Each verb that does what a journal says.
const DEEDS: [&[&str]; 3] = [&["clean"], &["run", "--resume"], &["run", "--again"]];

fn deed(lab: &Lab, deed: &[&str], journal: &str) -> Said {
    lab.run(&[deed, &[journal]].concat())
}

/// The user that saved a journal has not written it: one that was fetched or downloaded belongs to
/// its user.
#[test]
fn a_journal_that_was_not_begun_here_is_refused_until_it_is_trusted() {
    let lab = Lab::new();
    write_journal(&lab, RUN, &[]);
    for words in DEEDS {
        let said = deed(&lab, words, "journal.jsonl").code(1);
        let wanted =
            ["not the journal of a run that this user began here", "with your rights. Read it", "--trust", "--host"];
        assert!(wanted.iter().all(|part| said.err.contains(part)), "{words:?}: {}", said.err);
    }
    // A register that names another file, or is a link, says nothing for this one.
    private(&lab.path("state/pickfs/begun"));
    let noted = lab.path(&format!("state/pickfs/begun/{RUN}"));
    std::fs::write(&noted, "1 2.000000003").unwrap();
    deed(&lab, &["clean"], "journal.jsonl").code(1);
    let said = lab.run(&["clean", "--trust", "journal.jsonl"]).code(0);
    assert!(said.out.contains("nothing was left to undo"), "{}", said.out);
}

/// The journal of a run of this user stays his own where it is moved to, and its copy is none.
#[test]
fn a_copy_is_another_journal_and_a_moved_one_is_the_same() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("here")).unwrap();
    let on = ["run", "--on", "here", "--workload", "meta.ok", "--rounds", "3", "--journal", "journal.jsonl"];
    lab.run(&on).code(0);
    std::fs::copy(lab.journal(), lab.path("copy.jsonl")).unwrap();
    std::fs::rename(lab.journal(), lab.path("moved.jsonl")).unwrap();
    for words in [DEEDS[0], DEEDS[1]] {
        let said = deed(&lab, words, "copy.jsonl").code(1);
        assert!(said.err.contains("it is a copy"), "{words:?}: {}", said.err);
        deed(&lab, words, "moved.jsonl").code(0);
    }
    // Others may write to it: then it is not known what it says.
    for mode in [0o666, 0o664] {
        std::fs::set_permissions(lab.path("moved.jsonl"), PermissionsExt::from_mode(mode)).unwrap();
        for words in DEEDS {
            let said = deed(&lab, words, "moved.jsonl").code(1);
            assert!(said.err.contains("others may write to moved.jsonl"), "{words:?} {mode:o}: {}", said.err);
        }
    }
    std::fs::set_permissions(lab.path("moved.jsonl"), PermissionsExt::from_mode(0o644)).unwrap();
    // A link to it may be swapped for another.
    symlink("moved.jsonl", lab.journal()).unwrap();
    let said = deed(&lab, &["clean"], "journal.jsonl").code(1);
    assert!(said.err.contains("symbolic link"), "{}", said.err);
    // Where the register can be forged, it says nothing.
    std::fs::set_permissions(lab.path("state/pickfs/begun"), PermissionsExt::from_mode(0o770)).unwrap();
    let said = deed(&lab, &["clean"], "moved.jsonl").code(1);
    assert!(said.err.contains("begun is not a folder of user"), "{}", said.err);
}

/// A run with these lines behind its first one.
fn write_journal(lab: &Lab, id: &str, lines: &[&str]) {
    let plan = Plan { executor: "local".into(), ..Plan::default() };
    let run = Run { schema: SCHEMA, id: id.into(), plan, ..Run::default() };
    let _ = std::fs::remove_file(lab.journal());
    Journal::create(&lab.journal()).unwrap().append(&Record::Run(Box::new(run))).unwrap();
    let text = std::fs::read_to_string(lab.journal()).unwrap() + &lines.join("");
    std::fs::write(lab.journal(), text).unwrap();
}

/// It would become part of the paths that are removed: `pickfs-runs` has all journals.
#[test]
fn a_run_has_no_name_that_pickfs_does_not_give() {
    let lab = Lab::new();
    for id in ["runs", "main", "", "E1AAAAAAAAAA", "e1aaaaaaaaa", "e1aaaaaaaaaaa", "../aaaaaaaaa", "e1aaaaaaaaag"] {
        let folder = lab.path(&format!("pickfs-{}", id.replace('/', "-")));
        std::fs::create_dir_all(folder.join("data")).unwrap();
        let tree =
            serde_json::json!({"step": {"scope": "run", "number": 1, "says": "s", "undo": {"remove_tree": folder}}});
        write_journal(&lab, id, &[&format!("{tree}\n")]);
        for words in [&["clean", "--trust", "journal.jsonl"][..], &["run", "--trust", "--resume", "journal.jsonl"]] {
            let said = lab.run(words).code(1);
            assert!(said.err.contains("is not the name of a run"), "{id}: {}", said.err);
        }
        assert!(folder.join("data").is_dir(), "{id}");
    }
}

/// A step that cannot be read may have changed anything: the run is not taken for undone.
#[test]
fn steps_that_cannot_be_read_are_reported_and_the_run_is_not_forgotten() {
    let lab = Lab::new();
    let step = |undo: &str| format!("{{\"step\":{{\"scope\":\"run\",\"number\":1,\"says\":\"s\",\"undo\":{undo}}}}}\n");
    let tree = lab.path(&format!("pickfs-{RUN}"));
    std::fs::create_dir(&tree).unwrap();
    let known = step(&format!("{{\"remove_tree\":\"{}\"}}", tree.display()));
    let unknown = step("{\"shell\":[\"id\"]}");
    write_journal(&lab, RUN, &[&unknown, &known, "\0\0\0\n", "{\"weather\":1}\n", "{\"step\":{\"sco"]);
    private(&lab.path("state/pickfs/active"));
    let entry = lab.path(&format!("state/pickfs/active/{RUN}"));
    std::fs::write(&entry, lab.journal().display().to_string()).unwrap();
    for words in [&["clean", "--trust", "journal.jsonl"][..], &["run", "--trust", "--resume", "journal.jsonl"]] {
        let said = lab.run(words).code(1);
        let wanted = ["cannot be read, and may have been steps: 2, 4.", "pickfs clean --trust"];
        assert!(wanted.iter().all(|part| said.err.contains(part)), "{words:?}: {}{}", said.out, said.err);
        assert!(!tree.exists() && entry.exists(), "{words:?}");
    }
    // A word that no plug-in has for taking something down.
    std::fs::create_dir(&tree).unwrap();
    write_journal(&lab, RUN, &[&step("{\"shell\":\"id\"}"), &known]);
    let said = lab.run(&["clean", "--trust", "journal.jsonl"]).code(1);
    assert!(said.err.contains("refused") && said.err.contains("shell"), "{}", said.err);
    assert!(!tree.exists() && entry.exists());
    // Only the last line is torn.
    write_journal(&lab, RUN, &[&known, "{\"step\":{\"sco"]);
    lab.run(&["clean", "--trust", "journal.jsonl"]).code(0);
    assert!(!entry.exists());
}

/// None of them is waited for, and none is read without end.
#[test]
fn only_regular_files_are_journals() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("runs")).unwrap();
    fifo(&lab.path("runs/pipe.jsonl"));
    symlink("/dev/zero", lab.path("runs/zero.jsonl")).unwrap();
    let verbs: [&[&str]; 10] = [
        &["report"],
        &["compare", "runs/pipe.jsonl"],
        &["choices"],
        &["share"],
        &["push", "store"],
        &["clean"],
        &["clean", "--trust"],
        &["run", "--resume"],
        &["run", "--again"],
        &["run", "--trust", "--again"],
    ];
    for journal in ["runs/pipe.jsonl", "runs/zero.jsonl"] {
        for words in verbs {
            let said = deed(&lab, words, journal).code(1);
            let is_link = journal.contains("zero") && said.err.contains("symbolic link");
            assert!(is_link || said.err.contains("not a regular file"), "{words:?} {journal}: {}", said.err);
        }
    }
    let said = lab.run(&["history", "runs"]).code(0);
    assert!(said.out.contains("no journals in runs"), "{}", said.out);
    // What the user opens for us is not looked for by a name that others could take.
    write_journal(&lab, RUN, &[]);
    let mut report = lab.pickfs();
    report.args(["report", "/dev/stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut report = report.spawn().unwrap();
    std::io::copy(&mut std::fs::File::open(lab.journal()).unwrap(), &mut report.stdin.take().unwrap()).unwrap();
    let said = Said::of(report.wait_with_output().unwrap());
    assert!(!said.err.contains("cannot open"), "{}", said.err);
}

/// However often a line repeats itself, and whatever it makes of itself in memory.
#[test]
fn no_journal_takes_all_the_memory() {
    const LENGTH: usize = 24 << 20;
    const MOST: &str = "--data=209715200";
    let lab = Lab::new();
    for line in [
        r#"{"begin":{"cell":"N","round":1,"target":"a","work":"b"}}"#,
        r#"{"begin":{"cell":"N","round":1,"target":"N","work":"b"}}"#,
        r#"{"sample":{"cell":"c","phase":"N","metric":"m","value":1}}"#,
        r#"{"step":{"scope":"run","number":N,"says":"","undo":{"unmount":"/x"}}}"#,
    ] {
        let mut text = serde_json::to_string(&Record::Run(Box::default())).unwrap() + "\n";
        let mut number = 0;
        while text.len() < LENGTH {
            text += &(line.replace('N', &number.to_string()) + "\n");
            number += 1;
        }
        std::fs::write(lab.journal(), text).unwrap();
        // What the kernel counts as a child's largest size begins with the size of its parent: a
        // limit says more.
        let mut limited = std::process::Command::new("prlimit");
        limited.args([MOST, env!("CARGO_BIN_EXE_pickfs"), "report", "journal.jsonl"]).current_dir(lab.path(""));
        limited.env("XDG_STATE_HOME", lab.path("state"));
        let said = Said::of(limited.output().expect("prlimit starts"));
        assert!(matches!(said.code, Some(0 | 1)), "{line}: {:?} {}", said.code, said.err);
    }
}

/// As a service of systemd is started.
fn without_home(lab: &Lab) -> std::process::Command {
    let mut command = lab.pickfs();
    command.env_remove("XDG_STATE_HOME").env_remove("HOME").env("TMPDIR", lab.path("tmp"));
    command
}

/// Where no home is known, another user that makes the state folder first cannot lead pickfs to
/// root's files.
#[test]
fn a_state_folder_that_a_stranger_made_is_not_used() {
    let root = rustix::process::geteuid().is_root();
    if not_run((!root).then(|| "only root can give a folder to another user".into())) {
        return;
    }
    let lab = Lab::new();
    let etc = lab.path("etc");
    std::fs::create_dir(&etc).unwrap();
    std::fs::write(etc.join("passwd"), "root").unwrap();
    std::fs::create_dir(lab.path("tmp")).unwrap();
    std::fs::set_permissions(lab.path("tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
    let theirs = lab.path("tmp/pickfs-state-0/pickfs");
    std::fs::create_dir_all(&theirs).unwrap();
    symlink(&etc, theirs.join("active")).unwrap();
    for path in [&theirs, &lab.path("tmp/pickfs-state-0")] {
        chown(path, Some(STRANGER), None).unwrap();
    }
    Said::of(without_home(&lab).arg("clean").output().unwrap());
    assert_eq!(std::fs::read_to_string(etc.join("passwd")).unwrap(), "root");
    // A folder that is named is looked at too, and a link in it followed only if it is root's.
    let said =
        Said::of(lab.pickfs().env("XDG_STATE_HOME", lab.path("tmp/pickfs-state-0")).arg("clean").output().unwrap());
    assert!(said.code(1).err.contains("pickfs-state-0 belongs to user 65534"));
    for path in [&theirs, &lab.path("tmp/pickfs-state-0")] {
        chown(path, Some(0), None).unwrap();
    }
    // In a folder of root's own, only entries are: names of runs, files, paths.
    private(&lab.path("real/pickfs/active"));
    let entries = lab.path("real/pickfs/active");
    std::fs::write(entries.join("passwd"), "/nowhere").unwrap();
    std::fs::write(entries.join("aaaaaaaaaaaa"), "root").unwrap();
    symlink(etc.join("passwd"), entries.join("bbbbbbbbbbbb")).unwrap();
    fifo(&entries.join("cccccccccccc"));
    let said = Said::of(lab.pickfs().env("XDG_STATE_HOME", lab.path("real")).arg("clean").output().unwrap()).code(0);
    assert!(said.out.contains("nothing to clean"), "{}", said.out);
    assert_eq!(std::fs::read_dir(&entries).unwrap().count(), 4);
}

/// The folder of its journal belongs to another user, and that user takes the journal away or puts
/// another in its place.
#[test]
fn a_dead_run_whose_journal_was_swapped_is_neither_undone_nor_forgotten() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.write_plan(&common::SHORT_CELLS.replace("meta.ok", "meta.hang"));
    std::fs::create_dir(lab.path("theirs")).unwrap();
    let journal = lab.path("theirs/run.jsonl");
    let mut run = lab.pickfs();
    run.args(["run", "plan.toml", "--journal", "theirs/run.jsonl"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = run.spawn().unwrap();
    while !pickfs_core::journal::fold_file(&journal).is_ok_and(|folded| !folded.cells.is_empty()) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    std::fs::rename(&journal, lab.path("hidden")).unwrap();
    let swaps: [&dyn Fn(); 4] = [
        &|| (),
        &|| std::fs::write(&journal, "").unwrap(),
        &|| assert!(std::fs::copy(lab.path("hidden"), &journal).is_ok()),
        &|| fifo(&journal),
    ];
    for (number, swap) in swaps.iter().enumerate() {
        let _ = std::fs::remove_file(&journal);
        swap();
        let said = lab.run(&["clean"]).code(1);
        assert!(said.err.contains("is gone, and it may have left"), "{number}: {}{}", said.out, said.err);
    }
    std::fs::rename(lab.path("hidden"), &journal).unwrap();
    lab.run(&["clean"]).code(0);
    std::fs::rename(&journal, lab.journal()).unwrap();
    lab.assert_nothing_left();
}

/// A terminal does what it is sent.
#[test]
fn text_of_a_journal_does_not_steer_the_terminal() {
    let lab = Lab::new();
    let says = "\u{1b}[2J\u{202e}bad";
    let step = serde_json::json!({"step": {"scope": "run", "number": 1, "says": says, "undo": {"unmount": "/"}}});
    write_journal(&lab, RUN, &[&format!("{step}\n")]);
    let odd = "odd\u{1b}[2J.jsonl";
    std::fs::rename(lab.journal(), lab.path(odd)).unwrap();
    for words in [&["clean", "--trust", odd][..], &["run", "--trust", "--resume", odd], &["clean", odd]] {
        let said = lab.run(words).code(1);
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.err.contains(steers) && !said.out.contains(steers), "{words:?}: {:?}", said.err);
    }
}
