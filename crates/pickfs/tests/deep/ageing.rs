//! Old and full file systems, end to end with the real binary: the same operations on every target,
//! none of it counted as the work's, and nothing left behind.

use crate::common::{Lab, Observation, failed, not_run, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};
use pickfs_system::need::{Need, missing};
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

/// What is needed for file systems, and git.
fn cannot_run(filesystems: &[&str]) -> bool {
    let git = missing(&[Need::Program { name: "git", package: "git" }]).first().map(ToString::to_string);
    not_run(unable(filesystems).or(git))
}

fn fact<'a>(cell: &'a FoldedCell, name: &str) -> &'a str {
    cell.provenance.facts.get(name).unwrap_or_else(|| panic!("{} has no fact `{name}`", cell.target))
}

const EVERY_WAY: &str = r#"
seed = 3
duplicate = false
backing = { memory = "400MiB" }
target = [{ fs = "ext4" }, { fs = "xfs" }, { fs = "btrfs", variant = "zstd:1" }]
[matrix]
fill = ["30%"]
age = ["none", "churn 1x", "git 10"]
[[work]]
workload = "tree"
files = 100
bytes = "8MiB"
[stop]
rounds = 1
"#;

#[test]
fn every_target_has_the_same_done_to_it() {
    if cannot_run(&["btrfs", "ext4", "xfs"]) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(EVERY_WAY).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 9);
    let mut by_age: BTreeMap<&str, Vec<[&str; 2]>> = BTreeMap::new();
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
        let age = ["churn", "git"].into_iter().find(|age| cell.target.contains(age)).unwrap_or("fill");
        by_age.entry(age).or_default().push(["aged by", "aged files"].map(|name| fact(cell, name)));
        is_told(cell);
        is_not_counted(&folded, cell);
    }
    let filled = (400 * MIB) as f64 * 0.3;
    for (age, told) in &by_age {
        assert!(told.len() == 3 && told.iter().all(|facts| *facts == told[0]), "{told:#?}");
        assert_eq!(told[0][1].contains(&format!(" files of {filled:.0} bytes, ")), *age != "git", "{told:?}");
    }
    let files: Vec<&str> = by_age.values().map(|told| told[0][1]).collect();
    assert!(files[0] != files[1] && files[1] != files[2] && files[0] != files[2], "{files:?}");
    let full = lab.run(&["report", "journal.jsonl", "--full"]).code(0).out;
    let flat = full.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["layout score", "% ageing", "aged: ", "10 times pulled; layout score "] {
        assert!(flat.contains(words) || flat.contains(&words.replace("% ageing", "ageing ")), "{words}\n{full}");
    }
    lab.assert_nothing_left();
}

/// How the aged files lie, how full it is and how its free space is cut up.
fn is_told(cell: &FoldedCell) {
    let layout = fact(cell, "aged layout");
    let score = layout.strip_prefix("score ").and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    assert!(score.is_some_and(|score| (50.0..=100.0).contains(&score)), "{}: {layout}", cell.target);
    assert!(fact(cell, "aged space used").contains("MiB of "));
    let free = fact(cell, "aged free space");
    assert_eq!(free.starts_with("unknown"), cell.target.starts_with("btrfs"), "{}: {free}", cell.target);
    assert!(cell.ledger.ageing_ns > 10_000_000, "{:?}", cell.ledger);
}

/// The work's own numbers are those of a fresh file system, and cold is still proved.
fn is_not_counted(folded: &Folded, cell: &FoldedCell) {
    let value = |metric: &str| folded.value(cell, "write", metric).unwrap_or_else(|| panic!("no {metric}"));
    assert_eq!(value("space_apparent_bytes"), (8 * MIB) as f64);
    assert!(value("space_grown_bytes") < (32 * MIB) as f64, "{}: {}", cell.target, value("space_grown_bytes"));
    assert!(value("space_used_bytes") > value("space_grown_bytes") + (32 * MIB) as f64);
    assert!((0.5..=1.0).contains(&value("layout_adjacent_share")) && value("layout_fragments_p99") >= 1.0);
    let cold = cell.flags.iter().filter(|flag| flag.flag == "not-cold" && flag.phase == "tar-read");
    assert_eq!(cold.count(), 0, "{}: {:?}", cell.target, cell.flags);
}

#[test]
fn a_file_system_that_runs_full_is_a_failed_cell() {
    if cannot_run(&["ext4"]) {
        return;
    }
    let lab = Lab::new();
    let plan = "duplicate = false\nbacking = { memory = \"32MiB\" }\n[[target]]\nfs = \"ext4\"\nfill = \"95%\"\n\
                [[target]]\nfs = \"ext4\"\nfill = \"20%\"\nage = \"churn 3x\"\n\
                [[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n";
    lab.run_plan(plan).code(1);
    let folded = lab.folded();
    let cell = |name: &str| folded.cells.iter().find(|cell| cell.target.contains(name)).expect("a cell");
    let why = failed(cell("95% full"));
    assert!(why.contains("ageing, with ") && why.contains("of at most 30.4 MiB in files"), "{why}");
    assert!(why.contains("No space left on device"), "{why}");
    assert_eq!(cell("20% full").outcome, Some(Outcome::Done));
    // What was in effect is known of the failed one too.
    assert!(fact(cell("95% full"), "mount").contains("ext4"));
    lab.assert_nothing_left();
}

#[test]
fn wrong_ages_are_complained_of_and_nothing_is_touched() {
    let lab = Lab::new();
    let head = "backing = { memory = \"400MiB\" }\n[[work]]\nworkload = \"meta.ok\"\n";
    let rows: [(&str, &[&str]); 4] = [
        (
            "[[target]]\nfs = \"ext4\"\nage = \"churn 5\"\nfill = \"99%\"",
            &["plan.toml:6", "\"churn 5x\"", "plan.toml:7", "leaves no room"],
        ),
        ("[[target]]\nfs = \"ext4\"\nage = \"5 years\"\nfil = \"9%\"", &["`5 years`", "did you mean `fill`?"]),
        (
            "[matrix]\nfill = [\"0%\", \"full\"]\nage = [\"git many\"]\n[[target]]\nfs = \"ext4\"",
            &["cannot be `full`", "cannot be `git many`"],
        ),
        (
            "[[target]]\nbacking = { directory = \"/tmp\" }\nfill = \"9%\"\nage = \"git 1\"",
            &["`fill` cannot be chosen on `directory`", "`age` cannot be chosen on `directory`"],
        ),
    ];
    for (text, says) in rows {
        let said = lab.run_plan(&format!("{head}{text}\n")).code(2);
        for words in says {
            assert!(said.err.contains(words), "{text}\n{words}\n{}", said.err);
        }
        assert!(!lab.journal().exists());
    }
    let said = lab.run(&["plan", "--memory", "--fs", "ext4", "--age", "churn 5"]).code(2);
    assert!(said.err.contains("--age cannot be `churn 5`"), "{}", said.err);
}

#[test]
fn the_dry_run_tells_steps_and_bytes() {
    let lab = Lab::new();
    let words =
        ["plan", "--memory", "--fs", "ext4", "--size", "1GiB", "--rounds", "1", "--age", "none,churn 2x,git 100"];
    let said = lab.run(&words).code(0);
    for line in [
        "  fill it: 819 MiB in files\n  churn it: 1.60 GiB more in files made, as much deleted\n  leave 410 MiB in files\n",
        "  clone a repository, and pull 100 times\n",
        "  so ageing writes about 2.40 GiB in each cell, and 410 MiB are there when the work begins\n",
    ] {
        assert!(said.out.contains(line), "{line}\n{}", said.out);
    }
    // The fresh one, and its copy, tell nothing of it.
    assert_eq!(said.out.matches("so ageing writes").count(), 2, "{}", said.out);
}
