//! Whether a named cause is one: both targets are simulated once more without it, and the
//! difference must change by its part.

use super::table::{COMPRESSION, LAYER};
use super::waits::{LAYER_TIMER, is_timer, kinds};
use super::{Breakdown, State};
use serde::{Deserialize, Serialize};

/// What is taken away from both targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// Requests with these words take no time.
    Requests(String),
    /// The layers below the file system.
    Layers,
    /// What the file system does with this owner's instructions is switched off.
    Switch(String),
    /// Compression takes next to no time.
    Compression,
    /// Half of all processor time.
    Processor,
}

/// What a removal says of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The difference changed by the part, within a tenth of the difference.
    Confirmed,
    /// It changed by at least half of the part, or by more than it: other causes took its place, or
    /// went with it.
    Interacts,
    /// It is no cause.
    Refuted,
}

/// A removal, and what it did. Shares are of the reference's time, and of the same sign as the part
/// that was taken away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    pub removal: Removal,
    pub predicted_share: f64,
    pub simulated_share: f64,
    pub outcome: Outcome,
}

/// How many times as fast the processor is where it is the cause.
pub const FASTER: f64 = 2.0;
/// How many times as fast all else the kernel compresses where compression is free.
pub const FREE: f64 = 100.0;

/// A simulated change may differ from the predicted one by this share of the difference.
const WITHIN: f64 = 0.1;
/// The least part of what was predicted that says that causes interact.
const AT_LEAST: f64 = 0.5;

impl Removal {
    /// What takes a cause away; none where nothing does. File systems say which owners they can do
    /// without.
    pub fn of(state: State, owner: &str, has_switch: impl Fn(&str) -> bool) -> Option<Removal> {
        Some(match state {
            State::Idle if owner == LAYER_TIMER => Removal::Layers,
            State::Idle if is_timer(owner) => return None,
            State::Idle => Removal::Requests(owner.to_string()),
            State::Busy if owner == COMPRESSION => Removal::Compression,
            State::Busy if has_switch(owner) => Removal::Switch(owner.to_string()),
            State::Busy => Removal::Processor,
        })
    }

    /// Whether it takes time of this owner's away.
    pub(crate) fn takes(&self, state: State, owner: &str) -> bool {
        match self {
            Removal::Requests(words) => state == State::Idle && owner == words,
            Removal::Layers => {
                (state == State::Idle && owner == LAYER_TIMER) || (state == State::Busy && owner == LAYER)
            }
            Removal::Switch(of) => state == State::Busy && owner == of,
            Removal::Compression => state == State::Busy && owner == COMPRESSION,
            Removal::Processor => state == State::Busy,
        }
    }

    /// It takes away much more than its cause.
    pub(crate) fn is_of_all(&self) -> bool {
        *self == Removal::Processor
    }

    pub(crate) fn text(&mut self) -> Option<&mut String> {
        match self {
            Removal::Requests(words) | Removal::Switch(words) => Some(words),
            Removal::Layers | Removal::Compression | Removal::Processor => None,
        }
    }

    /// The kinds of requests that take no time, as the disk's driver names them.
    pub fn kinds(&self) -> Vec<String> {
        match self {
            Removal::Requests(words) => kinds(words),
            _ => Vec::new(),
        }
    }

    /// Whether anything could change.
    pub fn concerns(&self, found: &Breakdown) -> bool {
        let takes = |((state, owner), _): &(&(State, String), _)| self.takes(*state, owner);
        found.owners.iter().filter(takes).any(|(_, spent)| spent.ns != 0.0 || spent.requests > 0)
    }

    /// The time that should be gone. `compression` is how many times as fast compression was
    /// before.
    fn predicted_ns(&self, found: &Breakdown, compression: f64) -> f64 {
        let share = match self {
            Removal::Processor => 1.0 - 1.0 / FASTER,
            Removal::Compression => 1.0 - compression / FREE,
            _ => 1.0,
        };
        let takes = |((state, owner), _): &(&(State, String), _)| self.takes(*state, owner);
        found.owners.iter().filter(takes).map(|(_, spent)| spent.ns * share).sum()
    }
}

impl Proof {
    /// Of a target and its reference, each with and without the cause. `compression` is how many
    /// times as fast each compresses.
    pub fn of(
        removal: &Removal,
        [target, reference]: [&Breakdown; 2],
        [target_without, reference_without]: [&Breakdown; 2],
        compression: [f64; 2],
    ) -> Proof {
        let whole = reference.time_ns;
        let predicted = removal.predicted_ns(target, compression[0]) - removal.predicted_ns(reference, compression[1]);
        let before = target.time_ns - reference.time_ns;
        let simulated = before - (target_without.time_ns - reference_without.time_ns);
        let outcome = outcome(predicted, simulated, before);
        Proof {
            removal: removal.clone(),
            predicted_share: predicted / whole,
            simulated_share: simulated / whole,
            outcome,
        }
    }
}

fn outcome(predicted: f64, simulated: f64, difference: f64) -> Outcome {
    match () {
        () if (simulated - predicted).abs() <= WITHIN * difference.abs() => Outcome::Confirmed,
        () if simulated * predicted.signum() >= AT_LEAST * predicted.abs() => Outcome::Interacts,
        () => Outcome::Refuted,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Spent, between};
    use super::*;

    type Row<'a> = (State, &'a str, f64);

    fn breakdown(owners: &[Row]) -> Breakdown {
        let spent = |ns: f64| Spent { ns, ..Spent::default() };
        let owners = owners.iter().map(|(state, owner, ns)| ((*state, owner.to_string()), spent(*ns)));
        let time_ns = owners.clone().map(|(_, spent)| spent.ns).sum();
        Breakdown { phase: "write".into(), time_ns, owners: owners.collect(), ..Breakdown::default() }
    }

    #[test]
    fn a_cause_is_proved_where_its_removal_takes_its_part_away() {
        for (predicted, simulated, wanted) in [
            (40.0, 41.0, Outcome::Confirmed),
            (40.0, 45.0, Outcome::Confirmed),
            (40.0, 20.0, Outcome::Interacts),
            (40.0, 60.0, Outcome::Interacts),
            (40.0, 19.0, Outcome::Refuted),
            (40.0, -40.0, Outcome::Refuted),
            (-40.0, -20.0, Outcome::Interacts),
            (-40.0, 0.0, Outcome::Refuted),
        ] {
            assert_eq!(outcome(predicted, simulated, 50.0), wanted, "{predicted} {simulated}");
            assert_eq!(outcome(predicted, simulated, -50.0), wanted, "{predicted} {simulated}");
        }
    }

    #[test]
    fn what_is_refuted_is_not_named() {
        use State::{Busy, Idle};
        let reference = breakdown(&[(Busy, "VFS", 100.0)]);
        let target = breakdown(&[(Busy, "VFS", 140.0), (Busy, "checksums", 20.0), (Idle, "metadata reads", 60.0)]);
        let mut found = between(&target, &reference).expect("a difference");
        let removals = found.removals(|owner| owner == "checksums");
        let reads = Removal::Requests("metadata reads".into());
        assert_eq!(removals, [reads.clone(), Removal::Processor, Removal::Switch("checksums".into())]);
        assert_eq!(reads.kinds(), ["RM"]);
        let with = |ns: f64| breakdown(&[(Busy, "all", ns)]);
        for (removal, without, predicted, simulated, outcome) in [
            (&removals[0], [160.0, 100.0], 0.6, 0.6, Outcome::Confirmed),
            // Half of 60.
            (&removals[1], [190.0, 100.0], 0.3, 0.3, Outcome::Confirmed),
            (&removals[2], [220.0, 100.0], 0.2, 0.0, Outcome::Refuted),
        ] {
            let [one, other] = without.map(with);
            let proof = Proof::of(removal, [&target, &reference], [&one, &other], [3.0; 2]);
            assert!(
                (proof.predicted_share - predicted).abs() < 1e-9 && (proof.simulated_share - simulated).abs() < 1e-9
            );
            assert_eq!(proof.outcome, outcome);
            found.proofs.push(proof);
        }
        let named: Vec<&str> = found.named().map(|cause| cause.owner.as_str()).collect();
        assert_eq!(named, ["metadata reads", "VFS"]);
        assert!(removals[0].concerns(&target) && !removals[0].concerns(&reference));
    }

    #[test]
    fn each_state_has_its_removal() {
        let none = |_: &str| false;
        for (state, owner, wanted) in [
            (State::Idle, LAYER_TIMER, Removal::Layers),
            (State::Idle, "flushes", Removal::Requests("flushes".into())),
            (State::Busy, "compression", Removal::Compression),
            (State::Busy, "checksums", Removal::Processor),
        ] {
            let removal = Removal::of(state, owner, none).expect("a removal");
            assert_eq!(removal, wanted);
            assert!(removal.takes(state, owner), "{owner}");
        }
    }
}
