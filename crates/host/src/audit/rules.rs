//! The rules of a result that others can trust, as data: what each says, how it is checked, and the
//! check.
//!
//! docs/rules.md is made of this table.

use super::checks::*;
use super::{Evidence, Finding};

pub struct Rule {
    pub name: &'static str,
    /// What must hold.
    pub says: &'static str,
    /// What of the journal shows it.
    pub checked: &'static str,
    pub(super) check: fn(&Evidence) -> Finding,
}

const fn rule(name: &'static str, says: &'static str, checked: &'static str, check: fn(&Evidence) -> Finding) -> Rule {
    Rule { name, says, checked, check }
}

/// Numbered from 1 in this order.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    rule("whole", "The journal is whole.", "each line is a record, and the first one is the run's", whole),
    rule("chain", "No line was edited, removed, added or moved.",
        "each `chain` record has the SHA-256 of all bytes before it, and follows each end of a cell and each \
        look", chain),
    rule("version", "One version of pickfs made the run.",
        "the `chain` records and the run's own record name the same version", version),
    rule("own", "pickfs made the measurements.", "the run is not imported from results of another program", own),
    rule("cells", "Each cell is one of the plan.", "its id is the hash of target, work, settings, round and seed",
        cells),
    rule("dropped", "No round and no cell is left out.",
        "each round up to the last has each target that had not left, in each work, and each cell has ended", dropped),
    rule("chosen", "No cell is chosen.", "none began again after it had ended, and the aim of the run was not changed",
        chosen),
    rule("order", "The order of each round is random.",
        "cells begin in the order of the plan's seed; simulated cells may run side by side", order),
    rule("clock", "Times fit the clock.",
        "the phases of a cell take no longer than its ledger records, and a cell begins before it ends", clock),
    rule("reference", "The reference is measured twice.",
        "the plan has its second copy, which has results; simulated cells do not need it", reference),
    rule("durability", "All ranked targets promise the same durability.",
        "no mount line or option promises less than the default without being marked, and marked targets are not \
        ranked", durability),
    rule("read back", "Options in effect match the plan.",
        "each done cell has the mount line that the kernel shows, and no mismatch", read_back),
    rule("cold", "Phases that start cold are proved cold.", "no done cell has a flag against it", cold),
    rule("quiet", "Nothing else used the machine beyond a share.",
        "less than half a processor and less than the work's own bytes on the disk, in half of all phases or \
        more", quiet),
    rule("seed", "All targets of a round get the same data.",
        "cells of a round record the same seed, those of two rounds different ones", seed),
    rule("software", "Kernel and programs stay the same.",
        "facts on kernel, microcode and versions have one value each", software),
    rule("settings", "Settings of the machine stay the same.",
        "facts on governor, turbo, idling, writeback, swap and the queue of a target have one value each", settings),
    rule("drive", "Processor, memory, drive and firmware stay the same.", "facts on them have one value each", drive),
    rule("stop", "The run ended by its own rule.", 
        "it has the plan's rounds, or its last interim analysis records why it ended", stop),
    rule("verdict", "The verdict follows from the samples.",
        "docs/audit/verdict.py, which shares nothing with pickfs, computes the same names, bounds and ratios to nine \
        digits", verdict),
    rule("looks", "Each interim analysis of the run decided as it should.",
        "the same program computes pick, bound, end and eliminated targets from the records before \
        the analysis; ends of budgets are believed", looks),
    rule("page", "The page agrees with the journal.",
        "the page of a bundle is the one that pickfs makes of its journal; of another version it has the same \
        sentences", page),
    rule("again", "Simulated cells come out the same again.",
        "with --again: each time of each cell is equal in a journal of the same plan that was run again; times of another \
        program or guest may differ, and leave it open", again),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/rules.md has a row for each rule; `make schema` writes it.
    #[test]
    fn the_page_of_rules_is_that_of_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");
        let page = std::fs::read_to_string(path).unwrap();
        let head = "| | rule | what must hold | how it is checked |\n|---|---|---|---|\n";
        let (before, rest) = page.split_once(head).expect("a table");
        let after = rest.find("\n\n").map_or("", |end| &rest[end..]);
        let row =
            |(number, rule): (usize, &Rule)| format!("| {number} | {} | {} | {} |", rule.name, rule.says, rule.checked);
        let rows: Vec<String> = (1..).zip(RULES).map(row).collect();
        let wanted = [before, head, &rows.join("\n"), after].concat();
        if std::env::var_os("PICKFS_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &wanted).unwrap();
        }
        assert!(wanted == page, "docs/rules.md is out of date: run `make schema`");
    }
}
