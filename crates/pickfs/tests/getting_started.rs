//! The first minutes: a plan from five answers, a schema for editors, runs by short names, one work
//! of a report, JSON for programs.

use crate::common::{Lab, Said, modules, no_guests, not_run};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("fixtures/journals").join(name)
}

/// `pickfs init` with these answers on its standard input.
fn init(lab: &Lab, words: &[&str], answers: &str) -> (Option<i32>, String) {
    use std::io::Write;
    let mut child = Command::new(env!("CARGO_BIN_EXE_pickfs"))
        .arg("init")
        .args(words)
        .current_dir(lab.path("."))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    let said = child.wait_with_output().unwrap();
    (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned())
}

#[test]
fn answers_from_a_pipe_become_a_plan_that_is_right() {
    let lab = Lab::new();
    let (code, said) = init(&lab, &["mine.toml"], "ext4,xfs\nmemory\n\n10min\nsnapshots\n");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("]: ").count(), 5, "{said}");
    assert!(said.contains("note: no target can be picked, as none has all of: snapshots"), "{said}");
    let plan = std::fs::read_to_string(lab.path("mine.toml")).unwrap();
    for part in
        ["fs = \"xfs\"", "memory", "workload = \"tree\"", "budget = \"10min\"", "snapshots", "# What is compared"]
    {
        assert!(plan.contains(part), "no {part} in {plan}");
    }
    lab.run(&["plan", "mine.toml", "--json"]).code(0);
    // What an option answers is not asked, and the end of the input takes the defaults.
    let (code, said) = init(&lab, &["other.toml", "--fs", "ext4", "--on", "memory", "--budget", "5min"], "");
    assert_eq!((code, said.matches("]: ").count()), (Some(0), 2), "{said}");
    let (code, said) = init(&lab, &["other.toml"], "");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--force"), "{said}");
    let (code, said) = init(&lab, &["wrong.toml"], "ext5\nmemory\n");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("ext5") && !lab.path("wrong.toml").exists(), "{said}");
}

/// An aim ends a run by itself; every other has time for its work.
#[test]
fn runs_without_an_aim_have_a_budget_for_their_work() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("tree")).unwrap();
    std::fs::write(lab.path("tree/file"), "words").unwrap();
    let budget = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let plan: toml::Table = toml::from_str(&lab.run(&words).code(0).out).unwrap();
        plan.get("stop").and_then(|stop| stop.get("budget")?.as_str()).map(String::from)
    };
    for (line, wanted) in [
        ("--memory", Some("3min")),
        ("--fs ext4,xfs --source tree", Some("3min")),
        ("--fs ext4,xfs --workload pgbench", Some("96min")),
        ("--fs ext4 --workload kernel", Some("64min")),
        ("--workload pgbench --budget 1h", Some("1h")),
        ("--workload pgbench --rounds 3", None),
        ("--memory --precision 2%", None),
        ("--sim nvme", None),
    ] {
        assert_eq!(budget(&format!("plan --toml {line}")).as_deref(), wanted, "{line}");
    }
}

#[test]
fn runs_have_short_names() {
    let lab = Lab::new();
    let folder = lab.path("pickfs-runs");
    std::fs::create_dir(&folder).unwrap();
    assert!(lab.run(&["report", "@last"]).code(2).err.contains("`pickfs run` makes one"));
    for (name, from) in [("a.jsonl", "default-run.jsonl"), ("b.jsonl", "interim-analyses.jsonl")] {
        std::fs::copy(fixture(from), folder.join(name)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let history = lab.run(&["history"]).code(0).out;
    let at = |text: &str| history.find(text).unwrap_or_else(|| panic!("no {text} in {history}"));
    assert!(at("@1") < at("b.jsonl") && at("b.jsonl") < at("@2") && at("@2") < at("a.jsonl"), "{history}");
    assert!(history.contains("ext4"), "{history}");
    let listed = json(&lab.run(&["history", "--json"]).code(0).out);
    assert_eq!((&listed[1]["name"], &listed[1]["journal"]), (&"@2".into(), &"pickfs-runs/a.jsonl".into()));
    let report = |word: &str| lab.run(&["report", word]).code(0).out;
    assert_eq!(report("@2"), report("pickfs-runs/a.jsonl"));
    assert_eq!(report("@last"), report("pickfs-runs/b.jsonl"));
    assert_ne!(report("@1"), report("@2"));
    assert!(lab.run(&["report", "@3"]).code(2).err.contains("2 journals"));
    assert!(lab.run(&["report", "@first"]).code(2).err.contains("@last"));
    // Two runs of different plans: the names are found, and the plans compared.
    assert!(lab.run(&["compare", "@2", "@last"]).code(2).err.contains("cannot be compared"));
    lab.run(&["compare", "@2", "pickfs-runs/a.jsonl"]);
}

#[test]
fn one_work_and_one_phase_can_be_asked_for() {
    let lab = Lab::new();
    let journal = fixture("default-run.jsonl").display().to_string();
    let whole = lab.run(&["report", &journal, "--full"]).code(0).out;
    let phase = lab.run(&["report", &journal, "tree", "write"]).code(0).out;
    assert!(phase.contains("write") && phase.lines().count() < whole.lines().count(), "{phase}");
    assert!(phase.matches("stat-walk").count() < whole.matches("stat-walk").count(), "{phase}");
    let wrong = lab.run(&["report", &journal, "mail"]).code(2).err;
    assert!(wrong.contains("mail") && wrong.contains("tree"), "{wrong}");
    let wrong = lab.run(&["report", &journal, "tree", "wirte"]).code(2).err;
    assert!(wrong.contains("wirte") && wrong.contains("tar-read"), "{wrong}");
}

#[test]
fn programs_get_json() {
    let lab = Lab::new();
    let workloads = json(&lab.run(&["list", "workloads", "--json"]).code(0).out);
    let tree = workloads.as_array().unwrap().iter().find(|one| one["name"] == "tree").expect("tree");
    assert!(tree["phases"].as_array().is_some_and(|phases| phases.len() > 3), "{tree}");
    assert!(json(&lab.run(&["list", "--json"]).code(0).out).as_array().unwrap().len() > 60);
    let doctor = json(&lab.run(&["doctor", "--json"]).code(0).out);
    let ext4 = doctor["file_systems"].as_array().unwrap().iter().find(|one| one["name"] == "ext4").expect("ext4");
    assert!(["ok", "sudo", "missing"].contains(&ext4["state"].as_str().unwrap()), "{ext4}");
    let plan = json(&lab.run(&["plan", "--fs", "ext4", "--memory", "--rounds", "3", "--json"]).code(0).out);
    assert_eq!((&plan["plan"]["stop"]["rounds"], &plan["plan"]["targets"][0]["name"]), (&3.into(), &"ext4".into()));
    std::fs::create_dir(lab.path("tree")).unwrap();
    std::fs::write(lab.path("tree/a.txt"), "some words\n".repeat(99)).unwrap();
    json(&lab.run(&["scan", "tree", "--json"]).code(0).out);
}

/// What is ready stands on one screen; what one lacks is asked for by name.
#[test]
fn a_doctor_is_short_until_it_is_asked() {
    let lab = Lab::new();
    let short = lab.run(&["doctor"]).code(0).out;
    assert!(short.lines().count() <= 40 && short.lines().next().is_some_and(|line| line.contains("btrfs ext4 xfs")));
    for name in ["reiser4", "lvmvdo", "pgbench", "sim"] {
        assert!(short.contains(name), "{name}: {short}");
    }
    let named = lab.run(&["doctor", "reiser4", "sim"]).code(0).out;
    assert!(
        named.contains("no stock kernel ever had it") && named.contains(" sim") && !named.contains("ext4"),
        "{named}"
    );
    assert!(lab.run(&["doctor", "--all"]).code(0).out.contains("no stock kernel ever had it"));
    let wrong = lab.run(&["doctor", "extt4"]).code(2).err;
    assert!(wrong.contains("did you mean `ext4`"), "{wrong}");
}

#[test]
fn shells_complete_values() {
    let lab = Lab::new();
    let bash = lab.run(&["completions", "bash"]).code(0).out;
    for value in ["btrfs:zstd:1", "github-action-benchmark", "small-files", "hdd-7200", "git-clone", "verdicts", "luks"]
    {
        assert!(bash.contains(value), "{value} is not completed");
    }
    assert!(!bash.contains("meta."), "works that test pickfs itself are completed");
    for (option, value) in [("--sim)", "hdd-7200"), ("--trace)", "git-clone"), ("--workload)", "pgbench")] {
        let offered = bash.split(option).skip(1).filter_map(|rest| rest.split(";;").next());
        assert!(
            offered.clone().count() > 0 && offered.clone().all(|values| values.contains(value)),
            "{option} {value}"
        );
    }
}

#[test]
fn taplo_finds_every_example_right_and_slips_wrong() {
    let found = modules("taplo");
    if not_run(found.as_ref().err().cloned()) {
        return;
    }
    let taplo = found.expect("it is there").join("node_modules/.bin/taplo");
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let lab = Lab::new();
    std::fs::write(lab.path("schema.json"), lab.run(&["plan", "--schema"]).code(0).out).unwrap();
    // All at once: each start of it takes as long as its work.
    let errors = |files: &[PathBuf]| {
        let schema = format!("file://{}", lab.path("schema.json").display());
        let words = ["lint", "--colors", "never", "--schema", &schema];
        let said = Command::new(&taplo).args(words).args(files).current_dir(lab.path(".")).output();
        let said = said.expect("taplo starts");
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        let wrong = text.lines().filter(|line| line.contains("invalid file")).count();
        assert_eq!(said.status.success(), wrong == 0, "{text}");
        (wrong, text)
    };
    let entries = std::fs::read_dir(root.join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let examples: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    assert!(examples.len() >= 10, "only {} examples", examples.len());
    let (wrong, said) = errors(&examples);
    assert_eq!(wrong, 0, "{said}");
    let slips = [
        "titel = \"x\"",
        "seed = \"one\"",
        "[[target]]\nfs = \"ext5\"",
        "[[target]]\nfs = \"ext4\"\nmounts = []",
        "[[work]]\nworkload = \"tree\"\nsauce = \"/usr\"",
        "[stop]\nbudgets = \"3min\"",
    ];
    let file = |(number, slip): (usize, &&str)| {
        let file = lab.path(&format!("slip-{number}.toml"));
        std::fs::write(&file, slip).unwrap();
        file
    };
    let files: Vec<PathBuf> = slips.iter().enumerate().map(file).collect();
    let (wrong, said) = errors(&files);
    assert_eq!(wrong, slips.len(), "{said}");
}

/// Without measuring: what the atlas has, or that it has nothing, and the command that measures.
#[test]
fn each_purpose_has_a_first_answer() {
    let lab = Lab::new();
    let list = lab.run(&["for"]).code(0).out;
    let words: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    assert_eq!(words.len(), 25, "{list}");
    for word in words {
        let said = lab.run(&["for", word, "--disk", "nvme"]).code(0).out;
        let command = format!("pickfs for {word} --now");
        assert!(said.contains("Known without measuring") && said.contains(&command), "{word}: {said}");
        let plan = lab.run(&["for", word, "--plan"]).code(0).out;
        lab.write_plan(&plan);
        lab.run(&["plan", "plan.toml"]).code(0);
        assert!(said.lines().all(|line| line.chars().count() <= 80 || !line.contains(' ')), "{word}: {said}");
    }
    let plan = lab.run(&["for", "laptop", "--plan", "--short", "--sim", "nvme"]).code(0).out;
    assert!(plan.contains("# `pickfs for laptop --sim nvme --short --plan` printed it.\n"), "{plan}");
    let said = lab.run(&["for", "mail", "--disk", "hdd"]).code(0).out;
    assert!(said.contains("Simulated hdd-7200, 2026-") && said.contains("Pick xfs: the fastest (95 %)"), "{said}");
    let said = lab.run(&["for", "aged", "--disk", "hdd"]).code(0).out;
    assert!(said.contains("nothing: ageing fills each file system"), "{said}");
    let said = lab.run(&["for", "postgresql", "--fs", "ext4,xfs", "--budget", "1h"]).code(0).out;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("no new round after 60.0 min"), "{said}");
    assert!(said.contains("pickfs for postgres --fs ext4,xfs --budget 1h --now"), "{said}");
    let said = lab.run(&["for", "postgers"]).code(2).err;
    assert!(said.contains("did you mean `pickfs for postgres`?"), "{said}");
    let said = lab.run(&["for", "postgres", "--trace", "maildir"]).code(2).err;
    assert!(said.contains("use `pickfs run --trace`"), "{said}");
}

/// Without root and without a terminal, what is fetched must be agreed to.
#[test]
fn no_guest_is_fetched_unasked() {
    if not_run(no_guests()) {
        return;
    }
    let (lab, program) = (Lab::new(), env!("CARGO_BIN_EXE_pickfs"));
    let (home, copy) = (lab.path("home"), lab.path("pickfs"));
    std::fs::create_dir(&home).unwrap();
    std::fs::copy(program, &copy).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        for path in [&home, &lab.path(".")] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777)).unwrap();
        }
    }
    for words in [&["run"][..], &["for", "laptop", "--now"], &["tune", "--fs", "ext4"]] {
        let mut command = Command::new(if is_root { "setpriv" } else { "env" });
        if is_root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.arg(&copy).args(words).current_dir(&home).stdin(Stdio::null()).env("HOME", &home);
        command.env_remove("XDG_CACHE_HOME").env("XDG_STATE_HOME", home.join("state"));
        let said = Said::of(command.output().unwrap()).code(5);
        assert!(said.err.contains("refused: nothing was fetched") && said.err.contains("--yes"), "{}", said.err);
        assert!(!home.join(".cache/pickfs").exists(), "{words:?}");
    }
}

/// What is refused is not offered.
#[test]
fn help_shows_no_flag_that_a_verb_refuses() {
    let lab = Lab::new();
    for (verb, flag) in
        [("for", "--workload"), ("for", "--job"), ("for", "--trace"), ("tune", "--rounds"), ("tune", "--precision")]
    {
        let help = lab.run(&[verb, "--help"]).code(0).out;
        assert!(!help.contains(&format!("  {flag} ")), "{verb} {flag}: {help}");
    }
}
