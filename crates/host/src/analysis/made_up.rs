//! Made-up rounds, for the tests of this room.

use pickfs_core::journal::*;
use pickfs_core::plan::{Plan, Target, Work};
use std::collections::BTreeMap;

pub(crate) struct MadeUp {
    pub plan: Plan,
    pub folded: Folded,
}

impl MadeUp {
    /// The first target is the reference, `A` its duplicate.
    pub(crate) fn new(names: &[&str]) -> MadeUp {
        let target = |name: &&str| Target { name: name.to_string(), duplicate: *name == "A", ..Target::default() };
        let works = vec![Work { name: "read".into(), ..Work::default() }];
        let targets: Vec<Target> = names.iter().map(target).collect();
        let reference = names[0].to_string();
        MadeUp { plan: Plan { reference, targets, works, ..Plan::default() }, folded: Folded::default() }
    }

    /// A cell with what was measured in it: (phase, metric, value).
    pub(crate) fn cell(&mut self, target: &str, round: u32, outcome: Outcome, samples: &[(&str, &str, f64)]) {
        let cell = format!("{target}{round}");
        let (target, work) = (target.to_string(), "read".to_string());
        self.folded.take(Record::Begin(Begin { cell: cell.clone(), round, target, work, at: String::new() }));
        for (phase, metric, value) in samples {
            let (phase, metric) = (phase.to_string(), metric.to_string());
            self.folded.take(Record::Sample(Sample { cell: cell.clone(), phase, metric, value: *value }));
        }
        let ledger = Ledger { cell: cell.clone(), phases_ns: 1_000_000_000, ..Ledger::default() };
        self.folded.take(Record::Ledger(ledger));
        self.folded.take(Record::End(End { cell, outcome, at: String::new() }));
    }

    /// A finished cell of one phase.
    pub(crate) fn done(&mut self, target: &str, round: u32, time_ns: f64) {
        self.cell(target, round, Outcome::Done, &[("read", "time_ns", time_ns)]);
    }

    pub(crate) fn found(&mut self, target: &str, round: u32, features: Option<&str>, weakened: &[&str]) {
        let facts: BTreeMap<String, String> =
            features.map(|features| ("features".to_string(), features.to_string())).into_iter().collect();
        let weakened = weakened.iter().map(|option| option.to_string()).collect();
        let cell = format!("{target}{round}");
        self.folded.take(Record::Provenance(Provenance { cell, facts, weakened, ..Provenance::default() }));
    }

    pub(crate) fn takes(&mut self, target: &str, round: u32, what: &str, bytes: u64) {
        let largest = [(what.to_string(), bytes)].into();
        let cell = format!("{target}{round}");
        self.folded.take(Record::Provenance(Provenance { cell, largest, ..Provenance::default() }));
    }

    pub(crate) fn leaves(&mut self, target: &str, round: u32) {
        let leaving = vec![Leaving { target: target.into(), why: LeaveReason::Vetoed }];
        self.folded.take(Record::Look(Look { round, alpha: 0.001, leaving, ..Look::default() }));
    }
}
