//! Works that users describe in recipes: the shipped ones, shrunk; what a recipe may not do.

use crate::common::{Lab, Observation, not_run, shrunk, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};
use pickfs_core::plan::recipe::digest;
use pickfs_system::need::find_program;

const REDIS: &str = include_str!("../../../../examples/recipes/redis.toml");
const DOWNLOAD: &str = include_str!("../../../../examples/recipes/download.toml");

/// With the recipes of the examples next to its plans.
fn lab() -> Lab {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("recipes")).unwrap();
    for (name, text) in [("redis.toml", REDIS), ("download.toml", DOWNLOAD)] {
        std::fs::write(lab.path("recipes").join(name), text).unwrap();
    }
    lab
}

fn lacking(programs: &[&str]) -> Option<String> {
    let missing = programs.iter().find(|name| find_program(name).is_none());
    missing.map(|name| format!("there is no {name}")).or_else(|| unable(&["btrfs", "ext4", "xfs"]))
}

fn value(folded: &Folded, cell: &FoldedCell, phase: &str, metric: &str) -> f64 {
    folded.value(cell, phase, metric).unwrap_or_else(|| panic!("{} {phase} has no {metric}", cell.target))
}

fn small(example: &str, more: &[(&str, &str)]) -> String {
    let all = [
        ("image = { dir = \".\", size = \"2GiB\" }", "memory = \"400MiB\""),
        ("title =", "duplicate = false\ntitle ="),
    ];
    shrunk(example, &[&all, more].concat())
}

/// The run of a plan on three file systems; its recipe is not there any more when it is read.
fn played(plan: &str, recipe: &str, text: &str) -> (Lab, Folded) {
    let lab = lab();
    let said = lab.run_plan(plan);
    assert!(said.err.contains("this plan runs these programs"), "{}", said.err);
    said.code(0);
    std::fs::remove_dir_all(lab.path("recipes")).unwrap();
    lab.run(&["report", "journal.jsonl"]).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 3);
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
        assert_eq!(cell.provenance.facts["recipe"], format!("{recipe}, sha256 {}", digest(text)));
        assert_eq!(cell.work, recipe);
    }
    lab.assert_nothing_left();
    (lab, folded)
}

#[test]
fn a_server_of_the_users_own_is_started_asked_and_stopped() {
    if not_run(lacking(&["redis-server", "redis-cli", "redis-benchmark"])) {
        return;
    }
    let plan = small(
        include_str!("../../../../examples/redis.toml"),
        &[("requests = 50000", "requests = 500"), ("budget = \"40min\"", "rounds = 1")],
    );
    let (_lab, folded) = played(&plan, "redis", REDIS);
    for cell in &folded.cells {
        let value = |phase: &str, metric: &str| value(&folded, cell, phase, metric);
        assert!(value("set", "requests_per_second") > 0.0 && value("get", "requests_per_second") > 0.0);
        assert!(value("set", "request_p50_ns") > 1000.0, "of a unit that is read");
        // 500 values of 400 bytes, each in the log.
        assert!(value("set", "device_write_bytes") > 200_000.0, "{}", cell.target);
        assert!(value("save", "time_ns") > 0.0);
        assert!(cell.provenance.facts["version redis-server"].contains("Redis server v="));
    }
}

/// The server is stopped for a cold start, which no open file may hinder, and started again before
/// the clock.
#[test]
fn a_download_is_cold_and_warm() {
    if not_run(lacking(&["curl", "python3"])) {
        return;
    }
    let plan = small(
        include_str!("../../../../examples/download.toml"),
        &[("repeats = 3", "repeats = 2\nsize = \"8MiB\""), ("budget = \"30min\"", "rounds = 1")],
    );
    let (_lab, folded) = played(&plan, "download", DOWNLOAD);
    for cell in &folded.cells {
        let value = |phase: &str, metric: &str| value(&folded, cell, phase, metric);
        assert!(cell.flags.iter().all(|flag| !flag.flag.ends_with("cold")), "{}: {:?}", cell.target, cell.flags);
        assert!(value("cold", "device_read_bytes") > f64::from(4 << 20), "{}", cell.target);
        assert!(value("warm", "device_read_bytes") < f64::from(1 << 20), "{}", cell.target);
        assert!(value("cold", "download_bytes_per_second") > 0.0);
    }
}

const ONE: &str = "duplicate = false\nbacking = { memory = \"400MiB\" }\n[[target]]\nfs = \"ext4\"\n[[work]]\n\
    workload = \"./recipes/mine.toml\"\n[stop]\nrounds = 1\n";

/// A lab with this recipe.
fn with(recipe: &str) -> Lab {
    let lab = lab();
    std::fs::write(lab.path("recipes/mine.toml"), recipe).unwrap();
    lab.write_plan(ONE);
    lab
}

#[test]
fn a_bad_recipe_gets_all_its_complaints_with_its_file_and_lines() {
    let lab = with("name = 'mine'\nabot = 'x'\n[[phase]]\nname = '../x'\nrun = ['true', '{no}']\n");
    let plan = lab.run(&["plan", "plan.toml"]);
    let flags = lab.run(&["plan", "--workload", "./recipes/mine.toml", "--memory", "--fs", "ext4"]);
    for said in [plan, flags] {
        assert_eq!(said.code, Some(2), "{}", said.err);
        for part in
            ["mine.toml:2:1", "did you mean `about`?", "mine.toml:4:8", "no plain name", "mine.toml:5:7", "`no`"]
        {
            assert!(said.err.contains(part), "{part} is not in: {}", said.err);
        }
    }
    let made = std::process::Command::new("mkfifo").arg(lab.path("pipe.toml")).status().unwrap();
    assert!(made.success());
    for (file, says) in [("./none.toml", "cannot read"), ("/dev/zero", "no file"), ("pipe.toml", "no file")] {
        let said = lab.run(&["plan", "--workload", file, "--memory", "--fs", "ext4"]);
        assert!(said.code == Some(2) && said.err.contains(says), "{file}: {}", said.err);
    }
}

/// The example of docs/recipes.md, smaller.
fn of_the_page() -> String {
    let page = include_str!("../../../../docs/recipes.md");
    let (_, from) = page.split_once("    name = \"pack\"").expect("the example");
    let lines = from.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let text: String = lines.map(|line| format!("{}\n", line.trim_start_matches("    "))).collect();
    shrunk(&format!("name = \"pack\"{text}"), &[("default = \"64MiB\"", "default = \"2MiB\"")])
}

const TWO_PROGRAMS: &str = "name = 'mine'\nabout = 'x'\n[[phase]]\nname = 'p'\nabout = 'x'\nstarts = 'fresh'\n\
    run = ['sh', '-c', 'echo 7 things; echo x >{dir}/x']\nthen = ['rm', '{dir}/x']\nmetric = [{ find = '(.) things', equals = 7 }]\n";

#[test]
fn programs_of_a_recipe_that_others_may_write_are_shown_and_need_yes() {
    use std::os::unix::fs::PermissionsExt;
    let lab = with(TWO_PROGRAMS);
    let path = lab.path("recipes/mine.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let said = lab.run(&["run", "plan.toml", "--journal", "journal.jsonl"]);
    for part in
        ["run: sh -c 'echo 7 things; echo x >{dir}/x'", "then: rm {dir}/x", "refused: ", "others may write", "--yes"]
    {
        assert!(said.err.contains(part), "{part} is not in: {}", said.err);
    }
    assert!(!lab.journal().exists());
}

#[test]
fn a_check_of_a_recipe_fails_the_cell_and_endless_output_does_no_harm() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let wrong = TWO_PROGRAMS.replace("equals = 7", "equals = 8");
    let endless = TWO_PROGRAMS.replace("echo 7 things;", "yes | head -c 70000000;");
    for (recipe, says) in
        [(TWO_PROGRAMS, ""), (&of_the_page(), ""), (&wrong, "is 7, and must be 8"), (&endless, "bytes were printed")]
    {
        let lab = with(recipe);
        lab.run(&["run", "plan.toml", "--journal", "journal.jsonl"]);
        match &lab.folded().cells[0].outcome {
            Some(Outcome::Done) => assert_eq!(says, ""),
            Some(Outcome::Failed(why)) => assert!(!says.is_empty() && why.contains(says), "{why}"),
            other => panic!("{other:?}"),
        }
        lab.assert_nothing_left();
    }
}
