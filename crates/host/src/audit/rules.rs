//! The rules of a result that others can trust, as data: what each says, how it is checked, and the check.
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

/// Numbered from 1 in this order.
pub const RULES: &[Rule] = &[
    Rule {
        name: "whole",
        says: "The journal is whole.",
        checked: "each line is a record, and the first one is the run's",
        check: whole,
    },
    Rule {
        name: "chain",
        says: "No line was edited, removed, added or moved.",
        checked: "each `chain` record has the SHA-256 of all bytes before it, and follows each end of a cell and each look",
        check: chain,
    },
    Rule {
        name: "version",
        says: "One version of pickfs made the run.",
        checked: "the `chain` records and the run's own record name the same version",
        check: version,
    },
    Rule {
        name: "own",
        says: "pickfs made the measurements.",
        checked: "the run is not imported from results of another program",
        check: own,
    },
    Rule {
        name: "cells",
        says: "Each cell is one of the plan.",
        checked: "its id is the hash of target, work, settings, round and seed",
        check: cells,
    },
    Rule {
        name: "dropped",
        says: "No round and no cell is left out.",
        checked: "each round up to the last has each target that had not left, in each work, and each cell has ended",
        check: dropped,
    },
    Rule {
        name: "chosen",
        says: "No cell is chosen.",
        checked: "none began again after it had ended, and the aim of the run was not changed",
        check: chosen,
    },
    Rule {
        name: "order",
        says: "The order of each round is random.",
        checked: "cells begin in the order of the plan's seed; simulated cells may run side by side",
        check: order,
    },
    Rule {
        name: "clock",
        says: "Times fit the clock.",
        checked: "the phases of a cell take no longer than its ledger says, and a cell begins before it ends",
        check: clock,
    },
    Rule {
        name: "reference",
        says: "The reference is measured twice.",
        checked: "the plan has its second copy, which has results; simulated cells do not need it",
        check: reference,
    },
    Rule {
        name: "durability",
        says: "All ranked targets promise the same durability.",
        checked: "no mount line or option promises less than the default without being marked, and marked targets are not ranked",
        check: durability,
    },
    Rule {
        name: "read back",
        says: "Options in effect are those that the plan asks for.",
        checked: "each done cell has the mount line that the kernel shows, and no mismatch",
        check: read_back,
    },
    Rule {
        name: "cold",
        says: "Phases that start cold are proved cold.",
        checked: "no flag of a done cell says otherwise",
        check: cold,
    },
    Rule {
        name: "quiet",
        says: "Nothing else used the machine beyond a share.",
        checked: "less than half a processor and less than the work's own bytes on the disk, in half of all phases or more",
        check: quiet,
    },
    Rule {
        name: "seed",
        says: "All targets of a round get the same data.",
        checked: "cells of a round record the same seed, those of two rounds different ones",
        check: seed,
    },
    Rule {
        name: "software",
        says: "Kernel and programs stay the same.",
        checked: "facts on kernel, microcode and versions have one value each",
        check: software,
    },
    Rule {
        name: "settings",
        says: "Settings of the machine stay the same.",
        checked: "facts on governor, turbo, writeback, swap and the queue of a target have one value each",
        check: settings,
    },
    Rule {
        name: "drive",
        says: "Processor, memory, drive and firmware stay the same.",
        checked: "facts on them have one value each",
        check: drive,
    },
    Rule {
        name: "stop",
        says: "The run ended by its own rule.",
        checked: "it has the plan's rounds, or its last look says why it ended",
        check: stop,
    },
    Rule {
        name: "verdict",
        says: "The verdict follows from the samples.",
        checked: "docs/audit/verdict.py, which shares nothing with pickfs, computes the same names, bounds and ratios to nine digits",
        check: verdict,
    },
    Rule {
        name: "looks",
        says: "Each look of the run at its results decided as it should.",
        checked: "the same program computes pick, bound, end and who leaves from the records before the look; ends of budgets are believed",
        check: looks,
    },
    Rule {
        name: "page",
        says: "The page says what the journal says.",
        checked: "the page of a bundle is the one that pickfs makes of its journal; of another version it has the same sentences",
        check: page,
    },
    Rule {
        name: "again",
        says: "Simulated cells come out the same again.",
        checked: "with --again: each time of each cell is equal in a journal of the same plan that was run again",
        check: again,
    },
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
