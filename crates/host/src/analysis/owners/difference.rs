//! The difference between two targets in a phase, owner by owner, in shares of the reference's
//! time.

use super::proof::{Outcome, Proof, Removal};
use super::{Breakdown, Spent, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One owner's part of a difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    pub state: State,
    pub owner: String,
    /// Of the reference's time: above 0 where the reference spends less.
    pub share: f64,
    pub target: Spent,
    pub reference: Spent,
}

/// Why a target takes another time than the reference does: causes and rest sum to the share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    pub phase: String,
    pub target_ns: f64,
    pub reference_ns: f64,
    /// By how much the target takes longer, of the reference's time.
    pub share: f64,
    /// The largest first, whatever their signs.
    pub causes: Vec<Cause>,
    /// What is in no owner's time.
    pub target_rest_ns: f64,
    pub reference_rest_ns: f64,
    pub rest_share: f64,
    /// What became of it where causes were taken away.
    pub proofs: Vec<Proof>,
    /// Bounds of the share over the rounds of the run, at 95 %, where they do not show it: 0 is
    /// between them, or they lie on its other side, or are below what matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<[f64; 2]>,
}

/// The part of a difference from which on a cause is named.
const NAMED: f64 = 0.1;

/// `None` where the reference took no time.
pub fn between(target: &Breakdown, reference: &Breakdown) -> Option<Difference> {
    let whole = reference.time_ns;
    if whole <= 0.0 {
        return None;
    }
    let owners: BTreeSet<&(State, String)> = target.owners.keys().chain(reference.owners.keys()).collect();
    let cause = |owner: &(State, String)| {
        let of = |breakdown: &Breakdown| breakdown.owners.get(owner).cloned().unwrap_or_default();
        let (target, reference) = (of(target), of(reference));
        Cause { state: owner.0, owner: owner.1.clone(), share: (target.ns - reference.ns) / whole, target, reference }
    };
    let mut causes: Vec<Cause> = owners.into_iter().map(cause).collect();
    causes.sort_by(|one, other| other.share.abs().total_cmp(&one.share.abs()));
    Some(Difference {
        phase: target.phase.clone(),
        target_ns: target.time_ns,
        reference_ns: whole,
        share: (target.time_ns - whole) / whole,
        causes,
        target_rest_ns: target.rest_ns,
        reference_rest_ns: reference.rest_ns,
        rest_share: (target.rest_ns - reference.rest_ns) / whole,
        proofs: Vec::new(),
        noise: None,
    })
}

impl Difference {
    /// Whether it matters and is no noise: a cause is named for no other one.
    pub fn has_causes(&self, threshold: f64) -> bool {
        self.share.abs() >= threshold && self.noise.is_none()
    }

    /// Causes that are at least a tenth of the difference, also causes that work against it; the
    /// largest first. None that its removal has not confirmed.
    pub fn named(&self) -> impl Iterator<Item = &Cause> {
        self.large().filter(|cause| self.proof_of(cause).is_none_or(|proof| proof.outcome != Outcome::Refuted))
    }

    /// The same before any proof.
    pub fn large(&self) -> impl Iterator<Item = &Cause> {
        self.causes.iter().filter(|cause| cause.share.abs() >= NAMED * self.share.abs())
    }

    /// What takes its large causes away, each once.
    pub fn removals(&self, has_switch: impl Fn(&str) -> bool) -> Vec<Removal> {
        let mut all = Vec::new();
        for removal in self.large().filter_map(|cause| Removal::of(cause.state, &cause.owner, &has_switch)) {
            if !all.contains(&removal) {
                all.push(removal);
            }
        }
        all
    }

    /// The proof that takes the least away apart from the cause.
    pub fn proof_of(&self, cause: &Cause) -> Option<&Proof> {
        let takes = |proof: &&Proof| proof.removal.takes(cause.state, &cause.owner);
        self.proofs.iter().filter(takes).min_by_key(|proof| proof.removal.is_of_all())
    }
}

/// Whether a simulated difference stands for a measured one: both are below what matters, or they
/// have the same sign, and neither is more than twice as large as the other.
pub fn agrees(measured: f64, simulated: f64, threshold: f64) -> bool {
    let ratio = simulated / measured;
    measured.abs().max(simulated.abs()) < threshold || (0.5..=2.0).contains(&ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breakdown(time_ns: f64, owners: &[(State, &str, f64)], rest_ns: f64) -> Breakdown {
        let spent = |ns: f64| Spent { ns, ..Spent::default() };
        let owners = owners.iter().map(|(state, owner, ns)| ((*state, owner.to_string()), spent(*ns))).collect();
        Breakdown { phase: "write".into(), time_ns, owners, rest_ns, ..Breakdown::default() }
    }

    #[test]
    fn a_simulation_agrees_in_direction_and_within_a_factor_of_two() {
        for (measured, simulated, wanted) in [
            (0.58, 0.46, true),
            (0.58, 0.28, false),
            (0.1, 0.21, false),
            (0.1, -0.1, false),
            (-0.2, -0.3, true),
            (0.02, -0.01, true),
            (0.02, 0.05, false),
        ] {
            assert_eq!(agrees(measured, simulated, 0.03), wanted, "{measured} {simulated}");
        }
    }

    #[test]
    fn causes_sum_to_the_difference_and_the_largest_is_first() {
        use State::{Busy, Idle};
        let reference = breakdown(100.0, &[(Busy, "VFS", 60.0), (Idle, "reads", 39.0)], 1.0);
        let target = breakdown(150.0, &[(Busy, "VFS", 55.0), (Busy, "checksums", 43.0), (Idle, "reads", 50.0)], 2.0);
        let found = between(&target, &reference).expect("a difference");
        let shown: Vec<(&str, f64)> = found.causes.iter().map(|cause| (cause.owner.as_str(), cause.share)).collect();
        assert_eq!(shown, [("checksums", 0.43), ("reads", 0.11), ("VFS", -0.05)]);
        let sum: f64 = found.causes.iter().map(|cause| cause.share).sum();
        assert!((sum + found.rest_share - found.share).abs() < 1e-12, "{found:?}");
        let named: Vec<&str> = found.named().map(|cause| cause.owner.as_str()).collect();
        assert_eq!(named, ["checksums", "reads", "VFS"], "one that works against it, too");
        // The other way round all signs turn, and the same causes are named.
        let back = between(&reference, &target).expect("a difference");
        assert_eq!(back.named().map(|cause| cause.owner.as_str()).collect::<Vec<_>>(), named);
        assert!(back.share < 0.0 && back.causes[0].share < 0.0);
        assert_eq!(between(&target, &breakdown(0.0, &[], 0.0)), None);
    }
}
