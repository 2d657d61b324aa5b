//! `pickfs sim calibrate`: file systems in memory, on this machine and simulated.

use crate::common::{Lab, no_guests, not_run};

/// The table of docs/sim-results.md. A machine that does other work meanwhile shows more of that than of the simulation.
#[test]
#[ignore = "nine rounds here and four guests, ten minutes: make test-sim"]
fn ratios_between_file_systems_are_those_of_this_machine() {
    let is_root = rustix::process::geteuid().is_root();
    if not_run((!is_root).then(|| "only root makes file systems in memory".into())) || not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let said = lab.run(&["sim", "calibrate"]).code(0).out;
    println!("{said}");
    let file = std::fs::read_to_string(lab.path("processor.toml")).expect("the file");
    println!("{file}");
    let line = said.lines().find(|line| line.starts_with("processor time: ")).expect("the agreement");
    let mut numbers = line.split(' ').filter_map(|word| word.parse::<f64>().ok());
    let (in_order, apart) = (numbers.next().expect("pairs"), numbers.next().expect("pairs"));
    assert!(apart >= 10.0 && in_order / apart >= 0.9, "{line}");
    // What was written is what a plan takes.
    lab.write_plan(
        "executor = \"sim\"\nmachine = { disk = \"none\", dilation = \"processor.toml\" }\nbacking = { memory = \"1GiB\" }\n\
         target = [{ fs = \"ext4\" }]\nwork = [\"tree\"]\n",
    );
    lab.run(&["plan", "plan.toml"]).code(0);
    let again = lab.run(&["sim", "calibrate"]).code(2).err;
    assert!(again.contains("processor.toml is there already"), "{again}");
}
