//! An explanation in the form that is kept next to its journal, for the reports of the run.

use super::{ALL, Breakdown, Difference};
use crate::analysis::plain::plain;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The run's id.
    pub run: String,
    /// The model of a disk that the run was simulated on, where it was no simulation.
    pub simulated_on: Option<String>,
    /// Below it no cause is named, as a share.
    pub threshold: f64,
    /// Causes were taken away.
    pub is_proved: bool,
    pub pairs: Vec<Pair>,
    /// A target of a work each.
    #[serde(default)]
    pub flames: Vec<Flame>,
}

/// Instructions of a target by owner and function, the most first; what is too small to be seen is
/// one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flame {
    pub work: String,
    pub target: String,
    pub owners: Vec<(String, Vec<(String, u64)>)>,
}

/// Functions of less than this part of all instructions are too small.
const SEEN: u64 = 500;

impl Flame {
    pub fn of(work: &str, target: &str, all: &Breakdown) -> Flame {
        let whole: u64 = all.functions.values().map(|of| of.instructions).sum();
        let mut owners: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for ((owner, function), of) in &all.functions {
            let count = of.instructions;
            let name = if count * SEEN < whole { "smaller ones" } else { function };
            *owners.entry(owner).or_default().entry(name).or_default() += count;
        }
        let most_first = |functions: BTreeMap<&str, u64>| {
            let mut functions: Vec<_> = functions.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
            functions.sort_by_key(|(_, count)| Reverse(*count));
            functions
        };
        let mut owners: Vec<_> =
            owners.into_iter().map(|(owner, functions)| (owner.to_string(), most_first(functions))).collect();
        owners.sort_by_key(|(_, functions)| Reverse(functions.iter().map(|(_, count)| count).sum::<u64>()));
        Flame { work: work.into(), target: target.into(), owners }
    }

    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let owners = self.owners.iter_mut().flat_map(|(owner, functions)| {
            std::iter::once(owner).chain(functions.iter_mut().map(|(function, _)| function))
        });
        [&mut self.work, &mut self.target].into_iter().chain(owners)
    }
}

/// Why a target of a work takes another time than the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub work: String,
    pub target: String,
    pub reference: String,
    pub difference: Difference,
}

impl Kept {
    /// None where it is of another run, or nothing that can be read. Strangers may have written it.
    pub fn read(text: &str, run: &str) -> Option<Kept> {
        let mut kept: Kept = serde_json::from_str(text).ok()?;
        kept.simulated_on = kept.simulated_on.as_deref().map(plain);
        for pair in &mut kept.pairs {
            let causes = pair.difference.causes.iter_mut().map(|cause| &mut cause.owner);
            let texts = [&mut pair.work, &mut pair.target, &mut pair.reference, &mut pair.difference.phase];
            let proofs = pair.difference.proofs.iter_mut().filter_map(|proof| proof.removal.text());
            causes.chain(texts).chain(proofs).for_each(|text| *text = plain(text));
        }
        kept.flames.iter_mut().flat_map(Flame::texts).for_each(|text| *text = plain(text));
        (kept.run == run).then_some(kept)
    }

    /// For each pair of targets, the difference of all phases, or of the one phase that was
    /// explained. Only differences that matter.
    pub fn whole(&self) -> impl Iterator<Item = &Pair> {
        let are_alike = |one: &Pair, other: &Pair| {
            (&one.work, &one.target, &one.reference) == (&other.work, &other.target, &other.reference)
        };
        let is_alone = move |pair: &Pair| self.pairs.iter().filter(|other| are_alike(pair, other)).count() == 1;
        let is_whole = move |pair: &&Pair| pair.difference.phase == ALL || is_alone(pair);
        self.pairs.iter().filter(is_whole).filter(|pair| pair.difference.has_causes(self.threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Breakdown, Outcome, Proof, Removal, Spent, State, between};
    use super::*;

    #[test]
    fn an_explanation_is_read_again_where_it_is_of_the_run() {
        let breakdown = |ns: f64, phase: &str| Breakdown {
            phase: phase.into(),
            time_ns: ns,
            owners: [((State::Idle, "reads\u{1b}[1m".to_string()), Spent { ns, ..Spent::default() })].into(),
            ..Breakdown::default()
        };
        let pair = |work: &str, phase: &str, ns: f64| Pair {
            work: work.into(),
            target: "btrfs".into(),
            reference: "ext4".into(),
            difference: between(&breakdown(ns, phase), &breakdown(100.0, phase)).expect("a difference"),
        };
        let mut pairs = vec![
            pair("tree", ALL, 150.0),
            pair("tree", "write", 150.0),
            pair("io", "read", 150.0),
            pair("web", "read", 101.0),
        ];
        pairs[0].difference.proofs = vec![Proof {
            removal: Removal::Requests("reads\u{1b}[1m".into()),
            predicted_share: 0.5,
            simulated_share: 0.5,
            outcome: Outcome::Confirmed,
        }];
        let kept = Kept { run: "a".into(), threshold: 0.03, pairs, ..Kept::default() };
        let text = serde_json::to_string(&kept).expect("JSON");
        let found = Kept::read(&text, "a").expect("the same run");
        let shown: Vec<(&str, &str)> =
            found.whole().map(|pair| (pair.work.as_str(), pair.difference.phase.as_str())).collect();
        assert_eq!(shown, [("tree", ALL), ("io", "read")]);
        assert_eq!(found.pairs[0].difference.causes[0].owner, "reads [1m");
        assert_eq!(found.pairs[0].difference.proofs[0].removal, Removal::Requests("reads [1m".into()));
        assert_eq!((Kept::read(&text, "b"), Kept::read("{", "a")), (None, None));
    }
}
