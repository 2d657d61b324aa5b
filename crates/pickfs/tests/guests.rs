//! A cell in a guest and a simulated one, the shortest that there are; `deep` has all that they can
//! do.

use crate::common::{Lab, no_guests, not_run};
use crate::deep::guest_sim::{SPINNING, assert_same, assert_spins_are_shared, recorded, records};
use pickfs_core::journal::Outcome;
use serde_json::Value;

const WORK: &str = "work = [{ workload = \"tree\", like = \"site\", scale = 0.02 }]\nstop = { rounds = 1 }\nduplicate = false\n\
                    target = [{ fs = \"ext4\" }]\n";

#[test]
fn a_file_system_is_measured_in_a_guest() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let image = "executor = \"vm\"\nbacking = { image = { dir = \".\", size = \"128MiB\" } }\n";
    let said = lab.run_plan(&format!("{image}{WORK}")).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 1, "{}", said.err);
    assert_eq!(folded.cells[0].outcome, Some(Outcome::Done), "{}", said.err);
    assert!(folded.cells[0].provenance.facts.contains_key("guest boot"), "{:?}", folded.cells[0].provenance.facts);
    lab.assert_nothing_left();
}

/// The second time a plugin of QEMU's counts instructions, which changes nothing. What differs is
/// the disk, and that is found.
#[test]
fn a_simulated_cell_is_the_same_twice_and_its_time_is_explained() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let disk = "executor = \"sim\"\nseed = 7\nmachine = { disk = \"nvme\" }\nbacking = { memory = \"128MiB\" }\n";
    std::fs::write(lab.path("spin.toml"), SPINNING).expect("a recipe");
    let plan = format!(
        "{disk}{}",
        WORK.replace("workload = \"tree\", like = \"site\", scale = 0.02", "workload = \"./spin.toml\"")
    );
    let first = recorded(&lab, &plan, 0);
    lab.run_plan(&plan).code(0);
    assert_same(&first, &records(&lab.journal()), "the second run");
    assert_spins_are_shared(&lab.folded(), "ext4", 8, 0.02);
    std::fs::remove_file(lab.journal()).expect("removed");
    let at_once = "{ fs = \"ext4\" }, { name = \"at-once\", fs = \"ext4\", machine = { disk = \"none\" } }";
    lab.run_plan(&format!("{disk}{WORK}").replace("{ fs = \"ext4\" }", at_once)).code(0);
    let why = [
        "why", "journal.jsonl", "--between", "ext4,at-once", "--format", "json", "--stacks", "why.folded", "--no-proof",
    ];
    let said = lab.run(&why).code(0);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let number = |value: &Value| value.as_f64().expect("a number");
    for cell in found["cells"].as_array().expect("cells") {
        assert!(number(&cell["samples"]["same"]) > 50.0, "{}", cell["samples"]);
        assert_eq!(
            (number(&cell["samples"]["different"]), &cell["same_disk"]),
            (0.0, &Value::Bool(true)),
            "{}",
            said.err
        );
        let phases = cell["phases"].as_array().expect("phases");
        assert_eq!(phases.len(), 5);
        for phase in phases {
            for owner in phase["owners"].as_array().expect("owners") {
                let Some(parts) = owner["parts_ns"].as_object() else { continue };
                let sum: f64 = parts.values().map(number).sum();
                assert!((sum - number(&owner["ns"])).abs() < 1.0, "{owner}");
            }
            let sum: f64 = phase["owners"].as_array().expect("owners").iter().map(|owner| number(&owner["ns"])).sum();
            let (time, rest) = (number(&phase["time_ns"]), number(&phase["rest_ns"]));
            assert!((sum + rest - time).abs() < 1.0 && rest.abs() < 0.001 * time, "{phase}");
        }
    }
    let whole = &found["differences"][0];
    let (sentence, first) = (whole["sentence"].as_str().expect("a sentence"), &whole["difference"]["causes"][0]);
    assert!(number(&whole["difference"]["share"]) > 0.03 && first["state"] == "idle", "{whole}");
    assert!(sentence.starts_with("Why ext4 takes ") && sentence.contains("% waits for "), "{sentence}");
    assert_stacks_are_read(&std::fs::read_to_string(lab.path("why.folded")).expect("stacks"));
    assert_explanation_is_kept(&lab);
    lab.assert_nothing_left();
}

/// As flamegraph.pl and speedscope read a line: frames between semicolons, then a blank and a
/// count.
fn assert_stacks_are_read(stacks: &str) {
    for wanted in ["ext4;page cache and VFS;filemap_read ", "ext4;waiting for read-ahead;die "] {
        assert!(stacks.lines().any(|line| line.starts_with(wanted)), "{stacks}");
    }
    for line in stacks.lines() {
        let (frames, count) = line.rsplit_once(' ').expect("a count");
        assert!(count.parse::<u64>().is_ok_and(|count| count > 0), "{line}");
        assert!(
            (2..=3).contains(&frames.split(';').count()) && frames.split(';').all(|frame| !frame.is_empty()),
            "{line}"
        );
    }
}

/// Next to the journal, so that the report has it; that of another run is none.
fn assert_explanation_is_kept(lab: &Lab) {
    let report = || lab.run(&["report", "journal.jsonl", "--format", "markdown"]).code(0).out;
    let words: String = report().replace('\\', "");
    assert!(words.contains("Why ext4 takes ") && words.contains("The causes are not proved."), "{words}");
    // All phases together and each: a table that ends in its sum.
    let full = lab.run(&["report", "journal.jsonl", "--full"]).code(0).out;
    assert_eq!(full.matches("│ not accounted for").count(), 6, "{full}");
    let kept = std::fs::read_to_string(lab.path("journal.why.json")).expect("it was kept");
    std::fs::write(lab.path("journal.why.json"), kept.replacen("\"run\":\"", "\"run\":\"x", 1)).expect("changed");
    assert!(!report().contains("Why ext4"), "the explanation is of another run");
}
