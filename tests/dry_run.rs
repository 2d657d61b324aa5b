//! The dry run is the run: the steps that `pickfs plan` prints are the steps that the journal of the run has.

mod common;

use common::{Lab, not_run, unable};
use pickfs::journal::{Outcome, Record};
use pickfs::need;
use pickfs::stack::layer;
use std::collections::BTreeMap;

/// Steps as lines, by the section of the dry run: a target, or "before the first cell".
type Steps = BTreeMap<String, Vec<String>>;

const RUN: &str = "before the first cell";

fn printed(plan: &str) -> Steps {
    let (mut steps, mut section) = (Steps::new(), String::new());
    for line in plan.lines().take_while(|line| !line.starts_with("work ")) {
        match line.strip_prefix("  ") {
            Some(step) if !section.is_empty() => steps.entry(section.clone()).or_default().push(step.into()),
            _ => section = line.strip_prefix("target ").or(line.strip_prefix(RUN).and(Some(RUN))).unwrap_or("").into(),
        }
    }
    steps
}

/// Of a run of one round, with the names of the dry run for run, cell and loop devices.
fn taken(journal: &str) -> Steps {
    let records = journal.lines().map(|line| serde_json::from_str(line).expect("a record"));
    let (mut run, mut targets, mut steps) = (String::new(), BTreeMap::new(), Steps::new());
    let mut loops: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in records {
        match record {
            Record::Run(begun) => run = begun.id,
            Record::Begin(begin) => drop(targets.insert(begin.cell, begin.target)),
            Record::Step(step) if step.scope == "raw-speed" => {}
            Record::Step(step) => {
                let section = if step.scope == "run" { RUN } else { &targets[&step.scope] };
                let known = loops.entry(step.scope.clone()).or_default();
                let line = format!("{}: {}", step.says, step.does);
                let line = with_slots(&line, known).replace(&run, "RUN");
                let line = if section == RUN { line } else { line.replace(&step.scope, "CELL") };
                steps.entry(section.into()).or_default().push(line);
            }
            _ => {}
        }
    }
    steps
}

/// Loop devices become `DEVICE`, `DEVICE2` ... in the order in which they come.
fn with_slots(line: &str, known: &mut Vec<String>) -> String {
    let mut parts = line.split("/dev/loop");
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        let at = known.iter().position(|one| one == number).unwrap_or_else(|| {
            known.push(number.into());
            known.len() - 1
        });
        text.push_str(&if at == 0 { "DEVICE".to_string() } else { format!("DEVICE{}", at + 1) });
        text.push_str(rest);
    }
    text
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
    let can: Vec<&str> = pickfs::stack::fs::ALL.iter().map(|fs| fs.name).filter(|fs| unable(&[fs]).is_none()).collect();
    if not_run(can.is_empty().then(|| unable(&["ext4"]).unwrap_or_default())) {
        return;
    }
    let plan = |fs: &&str| match pickfs::stack::fs::find(fs).expect("a known file system").minimum_size {
        bytes if bytes > 128 << 20 => targets(fs, "320MiB"),
        _ => targets(fs, "128MiB"),
    };
    let in_place =
        "[[target]]\nname = \"nocow\"\nfs = \"btrfs\"\nnodatacow = true\nbacking = { memory = \"128MiB\" }\n";
    let in_place = if can.contains(&"btrfs") { in_place } else { "" };
    hold(&(can.iter().map(plan).collect::<String>() + in_place));
}

#[test]
#[ignore = "needs a kernel with device mapper or md"]
fn layers() {
    let can = layer::ALL.iter().filter(|layer| need::missing(layer.needs).is_empty());
    let target = |layer: &&layer::Layer| {
        let name = layer.name;
        format!(
            "[[target]]\nname = \"{name}\"\nfs = \"ext4\"\nlayers = [\"{name}\"]\n\
             backing = {{ image = {{ size = \"64MiB\", disks = 2 }} }}\n"
        )
    };
    let joins = can.filter(|layer| layer.joins && device_mapper()).map(target).collect::<String>();
    let why = joins.is_empty().then(|| "no layer that joins two devices can be made here".to_string());
    if not_run(why.or_else(|| unable(&["ext4"]))) {
        return;
    }
    hold(&joins);
}

/// Its programs may be there where the kernel has none of it.
fn device_mapper() -> bool {
    std::path::Path::new("/dev/mapper/control").exists()
}
