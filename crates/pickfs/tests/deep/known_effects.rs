//! Effects that the developers of Linux have published, found again by `pickfs compare` of two
//! simulated kernels. Minutes each.

use crate::common::{Lab, no_guests, not_run, shrunk};
use std::path::Path;

/// The example's plan with each of two kernels, compared: the new one's time of this part over that
/// of the old one.
fn ratio(example: &str, kernels: [&str; 2], smaller: &[(&str, &str)], part: &str) -> f64 {
    let lab = Lab::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(folder.join(example)).expect("an example");
    let text = shrunk(&text, smaller).replace("./recipes", &folder.join("recipes").display().to_string());
    for (kernel, journal) in kernels.iter().zip(["old.jsonl", "new.jsonl"]) {
        assert!(text.contains("kernel = \"bookworm\""), "{text}");
        lab.write_plan(&text.replace("kernel = \"bookworm\"", &format!("kernel = \"{kernel}\"")));
        lab.run(&["run", "plan.toml", "--yes", "--journal", journal]).code(0);
    }
    let found: serde_json::Value =
        serde_json::from_str(&lab.run(&["compare", "old.jsonl", "new.jsonl", "--format", "json"]).out).expect("JSON");
    let times = found["times"].as_array().expect("times");
    let time = times.iter().find(|time| time["phase"] == part).unwrap_or_else(|| panic!("{part} in {found}"));
    println!("{example}: {time}");
    time["ratio"].as_f64().expect("a ratio")
}

/// Linux 6.1 against 5.10; 150 times as fast was published, of 6.1 against 6.0.
#[test]
#[ignore = "makes guests of two releases of Debian, and simulates many extents: minutes"]
fn extents_of_a_file_are_listed_far_faster() {
    if not_run(no_guests()) {
        return;
    }
    let found =
        ratio("fiemap.toml", ["bullseye", "bookworm"], &[("rounds = 2", "rounds = 1"), ("32768", "8192")], "list");
    assert!(found < 0.1, "{found}");
}

/// Linux 6.12 against 6.1; a quarter of the time was published, of 6.4 against 6.3.
#[test]
#[ignore = "makes guests of two releases of Debian, and simulates many files: minutes"]
fn a_folder_that_changed_is_durable_sooner() {
    if not_run(no_guests()) {
        return;
    }
    let found = ratio("folder-fsync.toml", ["bookworm", "trixie"], &[("rounds = 2", "rounds = 1")], "fsync");
    assert!(found < 0.8, "{found}");
}
