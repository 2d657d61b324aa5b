//! A system is laid out on a target and booted from it, cold, in its own machine.

use crate::common;

use crate::common::{Lab, Observation, no_guests, not_run};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};

fn plan(targets: &str, more: &str) -> String {
    format!(
        "executor = \"vm\"\nduplicate = false\nbacking = {{ image = {{ dir = \".\", size = \"1GiB\" }} }}\n{targets}\n\
         [[work]]\nworkload = \"boot\"\n{more}\n[stop]\nrounds = 1\ncell = \"30m\"\n"
    )
}

fn cell<'f>(folded: &'f Folded, target: &str) -> &'f FoldedCell {
    folded.cells.iter().find(|cell| cell.target == target).unwrap_or_else(|| panic!("no cell of {target}"))
}

fn assert_booted(folded: &Folded, target: &str) {
    let cell = cell(folded, target);
    assert_eq!(cell.outcome, Some(Outcome::Done), "{target}");
    let value = |metric: &str| folded.value(cell, "boot", metric).unwrap_or_else(|| panic!("{target}: no {metric}"));
    let parts = ["kernel_ns", "load_modules_ns", "mount_ns", "user_space_ns"].map(value);
    assert!(parts.iter().all(|part| *part > 0.0), "{target}: {parts:?}");
    // Between them lies only what it takes to go from one to the next.
    let (sum, whole) = (parts.iter().sum::<f64>(), value("time_ns"));
    assert!(sum <= whole && whole <= value("host_clock_ns"), "{target}: {parts:?} of {whole}");
    assert!(value("device_read_bytes") > (8 << 20) as f64, "{target}");
    let flags: Vec<String> = cell.flags.iter().map(|flag| format!("{}: {}", flag.flag, flag.why)).collect();
    println!("{target}: {parts:?} of {whole}, read {}; {flags:?}", value("device_read_bytes"));
    assert!(!flags.iter().any(|flag| flag.starts_with("not-cold")), "{target}: {flags:?}");
}

#[test]
#[ignore = "boots three machines for each of three file systems: a quarter of an hour where the processor is emulated"]
fn a_system_boots_from_ext4_xfs_and_btrfs() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let names = ["ext4", "xfs", "btrfs"];
    let targets: String = names.iter().map(|name| format!("[[target]]\nfs = \"{name}\"\n")).collect();
    let said = lab.run_plan(&plan(&targets, ""));
    let folded = lab.folded();
    assert_eq!(said.code, Some(0), "{}{}: {:#?}", said.out, said.err, folded.cells);
    names.iter().for_each(|name| assert_booted(&folded, name));
    lab.assert_nothing_left();
}

/// The key is random, so nothing but what the agent has handed on can open it.
#[test]
#[ignore = "boots three machines for each of two stacks: ten minutes where the processor is emulated"]
fn a_system_boots_from_luks_and_lvm() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let stacks = [("luks", "'luks'"), ("luks on lvm", "'lvm', 'luks'")];
    let targets: String = stacks
        .iter()
        .map(|(name, layers)| format!("[[target]]\nname = '{name}'\nfs = 'ext4'\nlayers = [{layers}]\n"))
        .collect();
    let said = lab.run_plan(&plan(&targets, ""));
    let folded = lab.folded();
    assert_eq!(said.code, Some(0), "{}{}: {:#?}", said.out, said.err, folded.cells);
    for (name, _) in stacks {
        assert_booted(&folded, name);
        let opened = folded.value(cell(&folded, name), "boot", "open_layers_ns");
        println!("{name}: layers opened in {opened:?} ns");
        assert!(opened.is_some_and(|ns| ns > 0.0), "{name}: {opened:?}");
    }
    lab.assert_nothing_left();
}

#[test]
fn what_cannot_carry_a_root_is_skipped_with_every_reason() {
    let lab = Lab::new();
    if not_run(common::unable(&["ext4"])) {
        return;
    }
    let text = "duplicate = false\nbacking = { memory = \"64MiB\" }\n[[target]]\nfs = \"ext4\"\n\
                [[work]]\nworkload = \"boot\"\nservices = [\"no-such-program=no-such-package\"]\n[stop]\nrounds = 1\n";
    let shown = lab.path("plan.toml");
    lab.write_plan(text);
    let planned = lab.run(&["plan", &shown.display().to_string()]).code(0).out;
    assert!(planned.contains("will be skipped: this machine cannot be booted from a target"), "{planned}");
    lab.run_plan(text);
    let folded = lab.folded();
    let Some(Outcome::Skipped(reasons)) = &cell(&folded, "ext4").outcome else { panic!("{:#?}", folded.cells) };
    for reason in ["no program `no-such-program`: apt-get install no-such-package", "use executor = \"vm\""] {
        assert!(reasons.iter().any(|told| told.contains(reason)), "{reason}: {reasons:?}");
    }
    lab.assert_nothing_left();
}
