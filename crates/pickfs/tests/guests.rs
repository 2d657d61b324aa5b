//! A cell in a guest and a simulated one, the shortest that there are; `deep` has all that they can do.

use crate::common::{Lab, no_guests, not_run};
use crate::deep::guest_sim::{SPINNING, assert_same, assert_spins_are_shared, recorded, records};
use pickfs_core::journal::Outcome;

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

#[test]
fn a_simulated_cell_is_the_same_twice() {
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
}
