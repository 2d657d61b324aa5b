//! Power cuts on a simulated disk: what must survive does, a file system without barriers is
//! caught, a planted loss is measured.

use crate::common::{Lab, no_guests, not_run};
use pickfs_core::journal::{Folded, Outcome};

const FEW: &str = "workload = \"ledger\", synced_time = \"1s\", every = \"10ms\"";

fn plan(targets: &str, works: &str) -> String {
    format!(
        "executor = \"sim\"\nseed = 7\nrank_weakened = true\nbacking = {{ memory = \"256MiB\" }}\ntarget = [{targets}]\n\
         work = [{works}]\nstop = {{ rounds = 1 }}\n"
    )
}

/// The value of a metric in the cell of a target and a work.
fn value(folded: &Folded, target: &str, work: &str, phase: &str, metric: &str) -> f64 {
    let cell = folded.cells.iter().find(|cell| cell.target == target && cell.work == work).expect("a cell");
    assert_eq!(cell.outcome, Some(Outcome::Done), "{target} {work}");
    let found = folded.samples(cell).find(|(of, name, _)| *of == phase && *name == metric);
    found.unwrap_or_else(|| panic!("{target} {work}: no {phase} {metric}")).2
}

#[test]
fn what_was_synced_survives_and_a_target_without_barriers_is_caught() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let work = format!("{{ {FEW}, time = \"6s\", cuts = 12, synced_cuts = 40, losses = [\"all\", \"some\"] }}");
    let targets = "{ name = \"ext4\", fs = \"ext4\", mount = [\"commit=2\"] }, { name = \"bare\", fs = \"ext4\", mount = [\"nobarrier\"] }";
    let said = lab.run_plan(&plan(targets, &work)).code(0);
    let folded = lab.folded();
    let of = |target: &str, phase: &str, metric: &str| value(&folded, target, "ledger", phase, metric);
    let cuts = of("ext4", "recovery", "done_cuts");
    assert!(cuts > 60.0 && of("ext4", "recovery", "done_promise_cuts") > 50.0, "{cuts}");
    assert_eq!(of("ext4", "recovery", "broken_promise_cuts"), 0.0);
    assert_eq!(of("ext4", "recovery", "unmountable_cuts"), 0.0);
    // A name lives in the journal's memory until the next commit, and no longer.
    let loss = of("ext4", "names", "time_ns");
    assert!((1e9..2.2e9).contains(&loss), "{loss}");
    assert!(of("bare", "recovery", "broken_promise_cuts") > 0.0);
    // What is missing is one thing, what the checker finds damaged is another.
    assert_eq!(of("ext4", "recovery", "fsck_error_cuts"), 0.0);
    assert!(of("bare", "recovery", "fsck_error_cuts") > 0.0);
    // What the disk declares that it writes as one is not torn.
    assert!(folded.cells.iter().all(|cell| cell.provenance.facts["pieces of torn writes"] == "4.00 KiB"));
    let report = lab.run(&["report", "journal.jsonl", "--full"]).code(0).out;
    let report: String = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        report.contains("PROMISES BROKEN") && report.contains("not ranked: what was synced was lost in"),
        "{report}"
    );
    assert!(report.contains("What was synced survived all") && report.contains("fsck found no error"), "{report}");
    assert!(report.contains("Only ext4 can be ranked: "), "{report}");
    assert!(report.contains("Broken promises by what the disk lost: all "), "{report}");
    assert!(!said.err.contains("failed"), "{}", said.err);
    lab.assert_nothing_left();
}

/// A program that appends a number to a file, syncs it and prints it, on a disk that is declared
/// truthfully and on one that is declared to have no volatile cache: then the kernel flushes
/// nothing.
#[test]
#[ignore = "two cells in guests, two minutes: make test-vm"]
fn transactions_survive_unless_the_disk_is_declared_write_through() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let work = "{ workload = \"transactions\", cuts = 16, losses = [\"all\", \"some\"], check = [\"cat\", \"log\"], \
                prepare = [\"touch\", \"log\"], command = [\"sh\", \"-c\", \
                \"for n in $(seq 40); do echo $n >> log; sync log; echo $n; sleep 0.02; done\"] }";
    let targets = "{ name = \"declared\", fs = \"ext4\" }, \
                   { name = \"hidden\", fs = \"ext4\", queue = { write_cache = \"write through\" } }";
    lab.run_plan(&plan(targets, work)).code(0);
    let folded = lab.folded();
    let of = |target: &str, phase: &str, metric: &str| value(&folded, target, "transactions", phase, metric);
    assert!(of("declared", "recovery", "done_promise_cuts") >= 32.0);
    for (target, is_broken) in [("declared", false), ("hidden", true)] {
        assert_eq!(of(target, "recovery", "broken_promise_cuts") > 0.0, is_broken, "{target}");
        assert_eq!(of(target, "transactions", "lost_transactions") > 0.0, is_broken, "{target}");
    }
    lab.assert_nothing_left();
}

/// A layer of the kernel's that passes on all but flushes, and one that logs what the disk is
/// given.
#[test]
#[ignore = "two cells in guests, two minutes: make test-vm"]
fn flushes_that_a_layer_eats_are_found_and_a_second_witness_agrees() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let work = format!("{{ {FEW}, time = \"2s\", cuts = 8, synced_cuts = 40, losses = [\"all\", \"some\"] }}");
    let targets = "{ name = \"eaten\", fs = \"ext4\", layers = [\"noflush\"] }, \
                   { name = \"logged\", fs = \"ext4\", layers = [\"logwrites\"], backing = { image = { size = \"256MiB\", disks = 2 } } }";
    lab.run_plan(&plan(targets, &work)).code(0);
    let folded = lab.folded();
    let of = |target: &str, metric: &str| value(&folded, target, "ledger", "recovery", metric);
    assert!(of("eaten", "broken_promise_cuts") > 0.0 && of("eaten", "done_cuts") <= 200.0);
    assert_eq!(of("logged", "broken_promise_cuts"), 0.0);
    let cell = |target: &str| folded.cells.iter().find(|cell| cell.target == target).expect("a cell");
    assert_eq!(cell("eaten").provenance.weakened, ["write_cache=write through"]);
    assert!(cell("logged").provenance.weakened.is_empty());
    let witness = &cell("logged").provenance.facts["second witness"];
    assert!(witness.starts_with("dm-log-writes: the same disk at each of "), "{witness}");
    lab.assert_nothing_left();
}

#[test]
fn only_a_disk_that_is_recorded_can_be_cut() {
    let lab = Lab::new();
    let text = plan("{ fs = \"ext4\" }", &format!("{{ {FEW}, cuts = 2, losses = [\"half\"] }}"));
    lab.write_plan(&text);
    let said = lab.run(&["plan", "plan.toml"]).code(2).err;
    assert!(said.contains("give at least 8") && said.contains("`half` is none of the losses"), "{said}");
}

#[test]
#[ignore = "six cells in guests, ten minutes: make test-vm"]
fn planted_losses_are_measured_and_the_same_plan_gives_the_same_outcomes() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    // Each change is durable when it returns, and the disk loses the last two seconds.
    let planted = format!(
        "{{ name = \"planted\", {FEW}, unsynced = \"fsync-folder\", lies = \"2s\", time = \"24s\", syncs = [\"dsync\"], synced_cuts = 0, cuts = 64, losses = [\"all\"] }}"
    );
    let knob = format!(
        "{{ name = \"knob\", {FEW}, time = \"36s\", syncs = [\"dsync\"], synced_cuts = 0, cuts = 64, losses = [\"all\"] }}"
    );
    let targets = "{ name = \"2\", fs = \"ext4\", mount = [\"commit=2\"] }, { name = \"8\", fs = \"ext4\", mount = [\"commit=8\"] }";
    let text = plan(targets, &format!("{planted}, {knob}"));
    let outcomes = || {
        lab.run_plan(&text).code(0);
        let folded = lab.folded();
        let lines = std::fs::read_to_string(lab.journal()).expect("a journal");
        std::fs::remove_file(lab.journal()).expect("removed");
        let of_cells = |line: &&str| line.contains("\"sample\"") || line.contains("\"histogram\"");
        (folded, lines.lines().filter(of_cells).map(String::from).collect::<Vec<_>>())
    };
    let (folded, first) = outcomes();
    for target in ["2", "8"] {
        for phase in ["names", "contents"] {
            let loss = value(&folded, target, "planted", phase, "time_ns");
            assert!((1.9e9..=2.0e9).contains(&loss), "{target} {phase}: {loss}");
        }
        assert!(value(&folded, target, "planted", "recovery", "broken_promise_cuts") > 0.0);
    }
    let worst = ["2", "8"].map(|target| value(&folded, target, "knob", "names", "time_ns"));
    let slope = (worst[1] - worst[0]) / 6e9;
    assert!((0.9..1.1).contains(&slope), "{worst:?}");
    assert_eq!(first, outcomes().1);
    lab.assert_nothing_left();
}
