//! Whether a run can be trusted by others: what its journal shows of the rules, and its verdict
//! computed by a second program.
//!
//! It reads journals and pages, and acts on none of what they say. It must not know how cells are
//! run.
//!
//! Must not know: `executor`, `fleet`, `import`, `store`.

mod checks;
mod disclosure;
mod recompute;
mod rules;

pub use disclosure::{Audited, Section, as_html, as_markdown, disclosure};
pub use recompute::{decisions, differences, recomputed};
pub use rules::{RULES, Rule};

use crate::analysis::is_simulated;
use anyhow::Result;
use pickfs_core::journal::{Folded, FoldedCell, Record};
use pickfs_core::plan::Plan;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a journal shows of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    Kept,
    /// There is nothing that it could be held against.
    NotAsked,
    /// The journal does not show it, and where.
    Open(Vec<String>),
    /// It does not hold, and where.
    Broken(Vec<String>),
}

impl Finding {
    pub fn broken(places: Vec<String>) -> Finding {
        if places.is_empty() { Finding::Kept } else { Finding::Broken(places) }
    }

    pub fn open(places: Vec<String>) -> Finding {
        if places.is_empty() { Finding::Kept } else { Finding::Open(places) }
    }
}

/// A journal as its checks read it.
pub struct Evidence<'a> {
    journal: &'a [u8],
    pub folded: &'a Folded,
    plan: &'a Plan,
    /// By line, from 1; `None` for what is no record.
    records: Vec<(usize, Option<Record>)>,
    /// Cells that check the verdict on another processor.
    speeds: BTreeSet<String>,
    /// Targets as the plan had them at first, and as it has them.
    names: BTreeSet<String>,
    /// Copies of the reference among them.
    copies: BTreeSet<String>,
    beside: CrossChecks,
}

/// What a journal is held against.
#[derive(Default)]
pub struct CrossChecks {
    /// As `report --format json` has it.
    pub report: Value,
    /// The same from the second program; `None` where it could not be run.
    pub anew: Option<Value>,
    pub page: Option<Page>,
    /// The same plan, run again.
    pub again: Option<Folded>,
}

/// The page of a bundle, and the one that is made of its journal.
pub struct Page {
    pub shown: String,
    pub made: String,
    /// The answer, in the words of any format.
    pub sentences: Vec<String>,
}

impl<'a> Evidence<'a> {
    pub fn new(journal: &'a [u8], folded: &'a Folded, beside: CrossChecks) -> Result<Evidence<'a>> {
        let run = folded.begun()?;
        let lines = journal.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let records: Vec<_> = (1..).zip(lines).map(|(at, line)| (at, serde_json::from_slice(line).ok())).collect();
        let speeds = records.iter().filter_map(|(_, record)| match record {
            Some(Record::Speed(speed)) => Some(speed.cell.clone()),
            _ => None,
        });
        let speeds = speeds.collect();
        let first = records.iter().find_map(|(_, record)| match record {
            Some(Record::Run(run)) => Some(&run.plan),
            _ => None,
        });
        let targets = || first.into_iter().chain([&run.plan]).flat_map(|plan| &plan.targets);
        let names = targets().map(|target| target.name.clone()).collect();
        let copies = targets().filter(|target| target.duplicate).map(|target| target.name.clone()).collect();
        Ok(Evidence { journal, folded, plan: &run.plan, speeds, names, copies, records, beside })
    }

    /// What each of [`RULES`] comes to.
    pub fn findings(&self) -> Vec<Finding> {
        RULES.iter().map(|rule| (rule.check)(self)).collect()
    }

    fn each(&self, is: impl Fn(&Record) -> bool) -> impl Iterator<Item = (usize, &Record)> {
        let known = self.records.iter().filter_map(|(line, record)| Some((*line, record.as_ref()?)));
        known.filter(move |(_, record)| is(record))
    }

    /// The cells that the verdict is about.
    fn cells(&self) -> impl Iterator<Item = &FoldedCell> {
        self.folded.cells.iter().filter(|cell| !cell.target.is_empty() && !self.speeds.contains(&cell.id))
    }

    fn last_round(&self) -> u32 {
        self.cells().map(|cell| cell.round).max().unwrap_or(0)
    }

    fn is_imported(&self) -> bool {
        self.folded.run.as_ref().is_some_and(|run| !run.imported.is_empty())
    }

    fn has_ended(&self) -> bool {
        let all_rounds = self.plan.stop.rounds.is_some_and(|rounds| {
            let ended = self.cells().filter(|cell| cell.outcome.is_some()).map(|cell| cell.round).max();
            ended == Some(rounds) && self.cells().all(|cell| cell.outcome.is_some())
        });
        all_rounds || self.folded.looks.last().is_some_and(|look| look.end.is_some())
    }

    /// Facts of these names have one value each: those of the run in all its sessions, those of
    /// cells for each target.
    fn constant(&self, is: impl Fn(&str) -> bool) -> Finding {
        let target = |cell: &str| self.folded.find_cell(cell).map_or("", |cell| cell.target.as_str());
        let mut seen: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        let mut broken = Vec::new();
        for (line, record) in self.each(|record| matches!(record, Record::Provenance(_))) {
            let Record::Provenance(found) = record else { continue };
            if self.speeds.contains(&found.cell) {
                continue;
            }
            for (name, value) in found.facts.iter().filter(|(name, _)| is(name)) {
                let first = *seen.entry((target(&found.cell), name)).or_insert(value);
                if without_number(first) != without_number(value) {
                    broken.push(format!("line {line}: {name} is {value:?}, and was {first:?}"));
                }
            }
        }
        Finding::broken(broken)
    }
}

/// The kernel counts devices as it finds them: `loop1, scheduler ...` is the drive that was
/// `loop0`.
fn without_number(fact: &str) -> (&str, &str) {
    let (name, rest) = fact.split_once(", ").unwrap_or((fact, ""));
    (if rest.is_empty() { name } else { name.trim_end_matches(|c: char| c.is_ascii_digit()) }, rest)
}

/// How far a result can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Its cells were simulated, done again, and are equal.
    Reproduced,
    /// Each rule is kept, as far as a journal can show it.
    ByTheRules,
    /// Of some rule the journal does not show it.
    Open,
    /// Some rule is broken.
    Broken,
}

impl Evidence<'_> {
    pub fn grade(&self, findings: &[Finding]) -> Grade {
        let any = |is: fn(&Finding) -> bool| findings.iter().any(is);
        let is_open = |counts: &dyn Fn(&str) -> bool| {
            RULES.iter().zip(findings).any(|(rule, finding)| matches!(finding, Finding::Open(_)) && counts(rule.name))
        };
        let is_again = self.beside.again.is_some() && is_simulated(self.folded);
        match () {
            () if any(|finding| matches!(finding, Finding::Broken(_))) => Grade::Broken,
            // Times that came out the same again were not edited, whether there is a chain or not.
            () if is_again && is_open(&|name| name != "chain") => Grade::Open,
            () if is_again => Grade::Reproduced,
            () if is_open(&|_| true) => Grade::Open,
            () => Grade::ByTheRules,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_device_is_no_other_device() {
        let cases = [
            ("loop0, rotational 0", "loop1, rotational 0", true),
            ("loop0, rotational 0", "loop1, rotational 1", false),
            ("nvme0n1, Model A", "sda, Model A", false),
            ("6.1.1", "6.1.2", false),
        ];
        for (one, other, is_same) in cases {
            assert_eq!(without_number(one) == without_number(other), is_same, "{one}; {other}");
        }
    }
}
