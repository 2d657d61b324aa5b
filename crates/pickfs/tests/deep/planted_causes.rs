//! `pickfs why` on pairs of targets that differ in one thing: the largest part of their difference is what was planted, and taking it away
//! proves it.

use crate::common::{Lab, no_guests, not_run};
use serde_json::Value;

/// A target that differs from the reference in one thing; the phase that shows it; the state and the owners of which the largest part may be.
type Planted = (&'static str, &'static str, &'static str, &'static [&'static str]);

const ON_EXT4: &[Planted] = &[
    (
        "{ name = \"at-once\", fs = \"ext4\", machine = { disk = \"none\" } }",
        "tar-read",
        "idle",
        &["read-ahead", "reads", "metadata reads"],
    ),
    (
        "{ name = \"turns\", fs = \"ext4\", machine = { disk = \"hdd-7200\" } }",
        "tar-read",
        "idle",
        &["read-ahead", "reads", "metadata reads"],
    ),
    ("{ name = \"slow-flush\", fs = \"ext4\", machine = { disk_flush = \"20ms\" } }", "write", "idle", &["flushes"]),
    ("{ name = \"slow-processor\", fs = \"ext4\", machine = { dilation = 1.35 } }", "copy-read", "busy", &[]),
    (
        "{ name = \"delayed\", fs = \"ext4\", layers = [{ delay = { read = \"5ms\", write = \"0ms\" } }] }",
        "tar-read",
        "idle",
        &["a timer"],
    ),
    ("{ name = \"no-read-ahead\", fs = \"ext4\", queue = { read_ahead_kb = 0 } }", "tar-read", "idle", &["reads"]),
];
const ON_BTRFS: &[Planted] = &[
    ("{ name = \"zstd\", fs = \"btrfs\", variant = \"zstd:3\" }", "write", "busy", &["compression"]),
    ("{ name = \"no-sums\", fs = \"btrfs\", mount = [\"nodatasum\"] }", "tar-read", "busy", &["checksums"]),
];

fn plan(reference: &str, planted: &[Planted]) -> String {
    let targets: Vec<&str> = planted.iter().map(|(target, ..)| *target).collect();
    format!(
        "executor = \"sim\"\nseed = 7\nduplicate = false\nbacking = {{ memory = \"256MiB\" }}\n\
         machine = {{ disk = \"nvme\", processors = 1 }}\nwork = [{{ workload = \"tree\", like = \"site\", scale = 0.02 }}]\n\
         stop = {{ rounds = 1 }}\ntarget = [{{ fs = \"{reference}\" }}, {}]\n",
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
    for (reference, planted) in [("ext4", ON_EXT4), ("btrfs", ON_BTRFS)] {
        let lab = Lab::new();
        lab.run_plan(&plan(reference, planted)).code(0);
        let names: Vec<&str> = planted.iter().map(|(target, ..)| name(target)).chain([reference]).collect();
        let between = names.join(",");
        let said = lab.run(&["why", "journal.jsonl", "--between", &between, "--format", "json", "--no-proof"]).code(0);
        let found: Value = serde_json::from_str(&said.out).expect("JSON");
        for (target, phase, state, owners) in planted {
            let differences = found["differences"].as_array().expect("differences");
            let is_it = |one: &&Value| one["target"] == name(target) && one["difference"]["phase"] == *phase;
            let difference = differences.iter().find(is_it).unwrap_or_else(|| panic!("{target}: {phase}"));
            let largest = &difference["difference"]["causes"][0];
            let owner = largest["owner"].as_str().expect("an owner");
            println!("{}: {}", name(target), difference["sentence"]);
            if largest["state"] != *state || !(owners.is_empty() || owners.contains(&owner)) {
                wrong.push(format!("{}: {largest}", name(target)));
            }
        }
        lab.assert_nothing_left();
    }
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
    lab.run_plan(&plan("ext4", &[(slow_flush, "write", "idle", &[])])).code(0);
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
