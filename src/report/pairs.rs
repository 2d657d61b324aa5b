//! Every pair of targets, judged: whoever reads a report may take another target as the reference, and must find
//! judgements that were made, not make any.

use super::judge::Context;
use super::model::{Comparison, Row};
use super::words;
use crate::decide::{self, Rounds};
use crate::stats::{self, Band, Estimate};

/// Pairs grow with the square of the targets; with more than this only those with the plan's reference are judged.
pub const MOST_TARGETS: usize = 30;

/// One quantity of all targets, about to be compared.
pub struct Pairing<'a> {
    pub series: &'a [Rounds],
    pub context: &'a Context<'a>,
    pub metric: &'a str,
    pub band: Band,
    /// False: the ratios are told, and nothing is concluded from them.
    pub judged: bool,
}

impl Pairing<'_> {
    pub fn estimate(&self, target: usize, reference: usize) -> Option<Estimate> {
        decide::compare(&self.series[target], &self.series[reference], self.context.level.confidence)
    }

    /// `None` for a target against itself, and where no ratio can be made.
    pub fn comparison(&self, target: usize, reference: usize) -> Option<Comparison> {
        let estimate = self.estimate(target, reference).filter(|_| target != reference)?;
        let finding = self.judged.then(|| stats::judge(&estimate, self.band));
        let name = &self.context.targets[reference].name;
        let mut found = words::comparison(finding, estimate, self.metric, self.band.threshold, name);
        if found.tells() {
            let (own, base) = (&self.series[target], &self.series[reference]);
            found.p = decide::p_value(own, base);
            found.rests_on_symmetry = decide::rests_on_symmetry(own, base, self.context.level.confidence);
        }
        Some(found)
    }

    /// Against each target in turn, but for the reference's copy; nothing where there are too many.
    pub fn against_each(&self, target: usize) -> Vec<Option<Comparison>> {
        let targets = &self.context.targets;
        if targets.len() > MOST_TARGETS {
            return Vec::new();
        }
        let against = |reference: usize| self.comparison(target, reference).filter(|_| !targets[reference].duplicate);
        (0..targets.len()).map(against).collect()
    }
}

impl Row {
    /// Against any target. `None` where it was not judged: see [`MOST_TARGETS`].
    pub fn compared_with(&self, reference: usize) -> Option<&Comparison> {
        self.others.get(reference).and_then(Option::as_ref)
    }
}
