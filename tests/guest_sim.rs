//! `executor = "sim"`: the same cell twice gives the same records to the last digit, and the same disk.

mod common;

use common::{Lab, no_guests, not_run};
use pickfs::journal::Outcome;

/// Two file systems on one disk, in one round.
const PLAN: &str = "executor = \"sim\"\nseed = 7\nduplicate = false\nmachine = { disk = \"hdd-7200\" }\n\
                    backing = { memory = \"512MiB\" }\ntarget = [{ fs = \"ext4\" }, { fs = \"btrfs\" }]\n\
                    work = [{ workload = \"tree\", like = \"site\", scale = 0.02 }]\nstop = { rounds = 1 }\n";

/// What the journal says of cells, line by line; what the host says of itself and of its own time is left out.
fn records(journal: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(journal).expect("a journal");
    let of_cell = |line: &&str| line.contains("\"cell\":\"") && !line.contains("\"cell\":\"\"");
    text.lines().filter(of_cell).map(String::from).collect()
}

#[test]
fn the_same_cells_twice_give_the_same_records_and_the_same_disk() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let said = lab.run_plan(PLAN).code(0);
    let (first, folded) = (records(&lab.journal()), lab.folded());
    lab.assert_nothing_left();
    std::fs::rename(lab.journal(), lab.path("first.jsonl")).expect("renamed");
    lab.run_plan(PLAN).code(0);
    let second = records(&lab.journal());
    assert!(first.len() > 100, "{} records: {}", first.len(), said.err);
    for (number, (one, other)) in first.iter().zip(&second).enumerate() {
        assert_eq!(one, other, "record {number}");
    }
    assert_eq!(first.len(), second.len());
    assert_eq!(folded.cells.len(), 2);
    let content = |cell: &pickfs::journal::FoldedCell| {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
        assert_eq!(cell.provenance.facts["simulated disk"], "hdd-7200");
        cell.provenance.facts["simulated disk's content"].clone()
    };
    assert_ne!(content(&folded.cells[0]), content(&folded.cells[1]), "two file systems wrote the same disk");
    let report = lab.run(&["report", "journal.jsonl", "--full"]).code(0).out;
    assert!(report.contains("simulated on models of disks (hdd-7200)"), "{report}");
    lab.assert_nothing_left();
}

#[test]
fn what_cannot_be_simulated_is_refused_where_it_is_written() {
    let lab = Lab::new();
    lab.write_plan(&PLAN.replace("hdd-7200", "floppy"));
    let said = lab.run(&["plan", "plan.toml"]).code(2).err;
    assert!(said.contains("plan.toml:4:") && said.contains("`floppy`") && said.contains("pickfs list disks"), "{said}");
    lab.write_plan(&PLAN.replace("machine = {", "machine = { kernel = \"./own\","));
    let said = lab.run(&["plan", "plan.toml"]).code(2).err;
    assert!(said.contains("plan.toml:4:") && said.contains("a kernel of Debian's"), "{said}");
    let said = lab.run(&["run", "--sim", "nvme,hdd-7200", "--journal", "a.jsonl"]).code(2).err;
    assert!(said.contains("--journal names one file"), "{said}");
    let said = lab.run(&["plan", "--sim", "nvme,hdd-7200"]).code(2).err;
    assert!(said.contains("--sim takes one disk here"), "{said}");
    let said = lab.run(&["plan", "--sim", "nvme", "--fs", "ext4", "--rounds", "1"]).code(0).out;
    assert!(said.contains("executor sim: "), "{said}");
}
