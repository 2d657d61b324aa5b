//! Work for a time: the rate that it comes to, and the times that are too short for one.

use crate::common::{Lab, Observation, not_run, unable};
use pickfs_core::journal::Outcome;

/// The shortest time that shows a steady rate, and a limit that allows it and no more.
fn plan(time: &str) -> String {
    format!(
        "duplicate = false\nbacking = {{ memory = \"64MiB\" }}\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \
         \"stream\"\ntime = \"{time}\"\nsize = \"16MiB\"\n[stop]\nrounds = 1\ncell = \"325s\"\n"
    )
}

#[test]
fn a_time_that_shows_nothing_is_refused_before_anything_is_touched() {
    let lab = Lab::new();
    let said = lab.run_plan(&plan("30s")).code(2);
    assert!(said.err.contains("no rate can be seen to be steady") && said.err.contains("100 s"), "{}", said.err);
}

#[test]
#[ignore = "works for 100 s: cargo test --test end-to-end stream:: -- --ignored"]
fn the_rate_is_that_of_the_bytes_that_were_written() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&plan("100s")).code(0);
    let folded = lab.folded();
    let cell = &folded.cells[0];
    assert_eq!(cell.outcome, Some(Outcome::Done));
    let value = |metric: &str| folded.value(cell, "overwrite-1GiB", metric);
    let ran = value("ran_ns").expect("it ran");
    assert!((100e9..130e9).contains(&ran), "{ran} ns");
    // What was written for one GiB of work: the work itself, and a journal that is small compared
    // with it.
    let written = value("device_write_bytes").expect("a device") / f64::from(1 << 30);
    assert!((0.98..1.3).contains(&written), "{written} of what was asked for");
    let whole = value("ran_bytes").expect("it wrote") / (ran / 1e9);
    println!("{:.0} MiB/s over all, {:?}", whole / f64::from(1 << 20), cell.flags);
    let doubts: Vec<&str> = cell.flags.iter().map(|flag| flag.flag.as_str()).collect();
    match value("steady_rate_bytes_per_second") {
        Some(rate) => {
            assert!(!doubts.contains(&"never-steady"));
            let cut = value("steady_cut_ns").expect("what was cut") / ran;
            assert!((rate / whole - 1.0).abs() < 0.05 + cut, "{rate} of {whole}");
            let time = value("time_ns").expect("a time");
            assert!((time * rate / 1e9 / f64::from(1 << 30) - 1.0).abs() < 1e-6, "{time} ns at {rate}");
        }
        // A busy machine.
        None => assert!(doubts.contains(&"never-steady") && value("time_ns").is_none(), "{doubts:?}"),
    }
    lab.assert_nothing_left();
}
