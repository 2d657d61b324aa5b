//! The dry run is the run: the steps that `pickfs plan` prints are the steps that the journal of
//! the run has.

use crate::common::steps::{RUN, Steps, plain_line, printed};
use crate::common::{Lab, not_run, unable};
use pickfs_core::journal::{Outcome, Record, Scope};
use std::collections::BTreeMap;

/// Steps of a run of one round, with the names of the dry run for run, cell and loop devices.
fn taken(journal: &str) -> Steps {
    let records = journal.lines().map(|line| serde_json::from_str(line).expect("a record"));
    let (mut run, mut targets, mut steps) = (String::new(), BTreeMap::new(), Steps::new());
    let mut loops: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in records {
        match record {
            Record::Run(begun) => run = begun.id,
            Record::Begin(begin) => drop(targets.insert(begin.cell, begin.target)),
            Record::Step(step) if step.scope == Scope::RawSpeed => {}
            Record::Step(step) => {
                let section = if step.scope == Scope::Run { RUN } else { &targets[&*step.scope] };
                let line = plain_line(&step, &run, loops.entry(step.scope.to_string()).or_default());
                steps.entry(section.into()).or_default().push(line);
            }
            _ => {}
        }
    }
    steps
}

/// A target on an image and one in memory, each with all that can be set of its device.
fn targets(fs: &str, size: &str) -> String {
    let set = "scheduler = \"none\"\nqueue = { read_ahead_kb = 64 }\n";
    format!(
        "[[target]]\nname = \"{fs} image\"\nfs = \"{fs}\"\nbacking = {{ image = {{ size = \"{size}\" }} }}\n{set}\
         [[target]]\nname = \"{fs} memory\"\nfs = \"{fs}\"\nbacking = {{ memory = \"{size}\" }}\n"
    )
}

/// Runs the plan dry and for real, and holds the one against the other.
fn hold(plan: &str) {
    let lab = Lab::new();
    lab.write_plan(&format!(
        "seed = 7\nduplicate = false\ndiscard = \"fresh\"\n{plan}[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n"
    ));
    let dry = lab.run(&["plan", "plan.toml"]).code(0).out;
    lab.run(&["run", "plan.toml", "--journal", "journal.jsonl"]).code(0);
    for cell in lab.folded().cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
    }
    let (printed, taken) = (printed(&dry), taken(&std::fs::read_to_string(lab.journal()).expect("a journal")));
    assert_eq!(printed.keys().collect::<Vec<_>>(), taken.keys().collect::<Vec<_>>(), "{dry}");
    for (section, steps) in &printed {
        assert_eq!(steps.join("\n"), taken[section].join("\n"), "{section}");
    }
    assert!(printed.len() > 1 && printed.values().all(|steps| steps.len() > 3), "{dry}");
    lab.assert_nothing_left();
}

#[test]
fn file_systems() {
    // Images are packed by the work `image` alone.
    let made = pickfs_target::stack::fs::ALL.iter().filter(|fs| fs.making.image.is_none()).map(|fs| fs.name);
    let can: Vec<&str> = made.filter(|fs| unable(&[fs]).is_none()).collect();
    if not_run(can.is_empty().then(|| unable(&["ext4"]).unwrap_or_default())) {
        return;
    }
    let plan = |fs: &&str| match pickfs_target::stack::fs::find(fs).expect("a known file system").limits.least {
        bytes if bytes > 128 << 20 => targets(fs, "320MiB"),
        _ => targets(fs, "128MiB"),
    };
    let in_place =
        "[[target]]\nname = \"nocow\"\nfs = \"btrfs\"\nnodatacow = true\nbacking = { memory = \"128MiB\" }\n";
    let in_place = if can.contains(&"btrfs") { in_place } else { "" };
    hold(&(can.iter().map(plan).collect::<String>() + in_place));
}
