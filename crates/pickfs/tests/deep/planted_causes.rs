//! `pickfs why` on pairs of targets that differ in one thing: the largest part of their difference is what was planted, and taking it away
//! proves it.

use crate::common::{Lab, no_guests, not_run};
use serde_json::Value;

/// A target that differs from the reference in one thing; the phase that shows it; the state and the owners of which the largest part may be.
type Planted = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Each against ext4 on a drive as it is; compression has a test of its own.
const PLANTED: &[Planted] = &[
    ("{ name = \"slow-flush\", fs = \"ext4\", machine = { disk_flush = \"20ms\" } }", "write", "idle", &["flushes"]),
    (
        "{ name = \"delayed\", fs = \"ext4\", layers = [{ delay = { read = \"5ms\", write = \"1ms\" } }] }",
        "tar-read",
        "idle",
        &["a timer"],
    ),
    // The kernel still calls the read of each single page read-ahead: there are many times as many of them.
    ("{ name = \"no-read-ahead\", fs = \"ext4\", queue = { read_ahead_kb = 0 } }", "tar-read", "idle", &["read-ahead"]),
];

fn plan(planted: &[Planted]) -> String {
    let targets: Vec<&str> = planted.iter().map(|(target, ..)| *target).collect();
    format!(
        "executor = \"sim\"\nseed = 7\nduplicate = false\nbacking = {{ memory = \"256MiB\" }}\n\
         machine = {{ disk = \"nvme\", processors = 1 }}\nwork = [{{ workload = \"tree\", like = \"site\", scale = 0.02 }}]\n\
         stop = {{ rounds = 1 }}\ntarget = [{{ fs = \"ext4\" }}, {}]\n",
        targets.join(", ")
    )
}

fn name(target: &str) -> &str {
    target.split('"').nth(1).expect("a name")
}

#[test]
fn the_largest_part_of_a_difference_is_what_was_planted() {
    if not_run(no_guests()) {
        return;
    }
    let mut wrong = Vec::new();
    let lab = Lab::new();
    lab.run_plan(&plan(PLANTED)).code(0);
    let names: Vec<&str> = PLANTED.iter().map(|(target, ..)| name(target)).chain(["ext4"]).collect();
    let between = names.join(",");
    let said = lab.run(&["why", "journal.jsonl", "--between", &between, "--format", "json", "--no-proof"]).code(0);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    for (target, phase, state, owners) in PLANTED {
        let differences = found["differences"].as_array().expect("differences");
        let is_it = |one: &&Value| one["target"] == name(target) && one["difference"]["phase"] == *phase;
        let difference = differences.iter().find(is_it).unwrap_or_else(|| panic!("{target}: {phase}"));
        let largest = &difference["difference"]["causes"][0];
        let owner = largest["owner"].as_str().expect("an owner");
        println!("{}: {}", name(target), difference["sentence"]);
        if largest["state"] != *state || !owners.contains(&owner) {
            wrong.push(format!("{}: {largest}", name(target)));
        }
    }
    lab.assert_nothing_left();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A disk with slower flushes: without the time of flushes the difference is gone.
#[test]
fn a_cause_is_proved_by_its_removal() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let slow_flush = "{ name = \"slow-flush\", fs = \"ext4\", machine = { disk_flush = \"20ms\" } }";
    lab.run_plan(&plan(&[(slow_flush, "write", "idle", &[])])).code(0);
    let words = ["why", "journal.jsonl", "--between", "slow-flush,ext4", "--phase", "write", "--format", "json"];
    let said = lab.run(&words).code(0);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let proof = &found["differences"][0]["difference"]["proofs"][0];
    let number = |of: &Value| of.as_f64().expect("a number");
    assert_eq!(proof["removal"], serde_json::json!({ "requests": "flushes" }), "{proof}");
    assert_eq!(proof["outcome"], "confirmed", "{proof}");
    assert!(number(&proof["predicted_share"]) > 0.1 && number(&proof["simulated_share"]) > 0.1, "{proof}");
    let report = lab.run(&["report", "journal.jsonl"]).code(0).out;
    assert!(report.contains("Why slow-flush takes"), "{report}");
    lab.assert_nothing_left();
}
