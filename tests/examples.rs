//! Every example is a plan that can be run as it is, where the machine has what it needs.

mod common;

use common::{Lab, Said};
use std::path::{Path, PathBuf};

/// A run that ends before its first interim analysis decides nothing.
#[test]
fn every_example_says_how_long_it_takes_and_has_an_end() {
    for plan in examples() {
        let text = std::fs::read_to_string(&plan).expect("it is read");
        let stop = text.split_once("[stop]\n").unwrap_or_else(|| panic!("{}: no [stop]", plan.display()));
        assert!(stop.1.contains("budget = ") || stop.1.contains("rounds = 8"), "{}: nothing ends it", plan.display());
        let before = stop.0.lines().rev().take_while(|line| line.starts_with('#')).collect::<Vec<_>>().concat();
        assert!(before.contains("A round takes"), "{}: how long is a round?", plan.display());
    }
}

/// Complaints about this machine, not about the plan: a program or a source that is not there, no room on its disk.
const OF_THE_MACHINE: [&str; 3] =
    ["apt-get install", "a smaller size, or another place", "make it first, or name another"];

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = std::fs::read_dir(folder).expect("there are examples").map(|entry| entry.expect("an example").path());
    let mut plans: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    plans.sort();
    plans
}

#[test]
fn every_example_is_right_as_it_stands() {
    let plans = examples();
    assert!(plans.len() >= 10, "{plans:?}");
    for plan in plans {
        let lab = Lab::new();
        let said: Said = lab.run(&["plan", &plan.display().to_string()]);
        let complaints: Vec<&str> = said.err.split("error: ").skip(1).collect();
        let strange = complaints.iter().find(|told| OF_THE_MACHINE.iter().all(|known| !told.contains(known)));
        assert!(strange.is_none(), "{}: {}", plan.display(), strange.unwrap_or(&""));
        if said.code == Some(0) {
            assert!(said.out.contains("\nwork "), "{}: {}", plan.display(), said.out);
        } else {
            assert!(!complaints.is_empty(), "{}: {}{}", plan.display(), said.out, said.err);
            println!("{}: not planned, because {}", plan.display(), complaints.concat());
        }
    }
}
