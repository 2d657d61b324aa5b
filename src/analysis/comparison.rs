//! Every pair of targets, judged: whoever reads a report may take another target as the reference, and must find
//! judgements that were made, not make any.

use super::model::{Comparison, Row};
use super::work::Context;
use crate::analysis::{self as decide, Rounds};
use crate::metric;
use crate::stats::{self, Band, Estimate, Finding};

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
        let found = self.judged(estimate, reference);
        if !found.tells() {
            return Some(found);
        }
        let (own, base) = (&self.series[target], &self.series[reference]);
        let rests_on_symmetry = decide::rests_on_symmetry(own, base, self.context.level.confidence);
        Some(Comparison { p: decide::p_value(own, base), rests_on_symmetry, ..found })
    }

    fn judged(&self, estimate: Estimate, reference: usize) -> Comparison {
        let finding = self.judged.then(|| stats::judge(&estimate, self.band));
        let name = self.context.targets[reference].name.as_str();
        Comparison::new(estimate, finding, name, self.metric, self.band.threshold)
    }

    /// Each target against each but the reference's copy, by target and reference; nothing where there are too many.
    /// A pair is compared once, the plan's reference below: the other way round it is the same comparison.
    pub fn each_with_each(&self) -> Vec<Vec<Option<Comparison>>> {
        let count = self.context.targets.len();
        if count > MOST_TARGETS {
            return Vec::new();
        }
        let mut found = vec![vec![None; count]; count];
        for (a, b) in (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))) {
            let (above, below) = if self.context.reference == Some(a) { (b, a) } else { (a, b) };
            found[above][below] = self.comparison(above, below);
            found[below][above] = found[above][below].as_ref().map(|found| self.swapped(found, above));
        }
        let copies = (0..count).filter(|at| self.context.targets[*at].duplicate);
        copies.for_each(|copy| found.iter_mut().for_each(|row| row[copy] = None));
        found
    }

    fn swapped(&self, found: &Comparison, reference: usize) -> Comparison {
        let swapped = self.judged(found.estimate.swapped(), reference);
        Comparison { p: found.p, rests_on_symmetry: found.rests_on_symmetry, ..swapped }
    }
}

impl Comparison {
    /// With what `reference` names; `margin` is the relative difference that matters.
    pub fn new(estimate: Estimate, finding: Option<Finding>, reference: &str, metric: &str, margin: f64) -> Comparison {
        let (reference, noun) = (reference.into(), metric::noun(metric));
        let (p, may_be_chance, rests_on_symmetry) = Default::default();
        Comparison { estimate, finding, reference, noun, margin, p, may_be_chance, rests_on_symmetry }
    }

    /// It shows which of the two is above.
    pub fn tells(&self) -> bool {
        !matches!(self.finding, None | Some(Finding::Unresolved { .. } | Finding::Tie))
    }
}

impl Row {
    /// Against any target. `None` where it was not judged: see [`MOST_TARGETS`].
    pub fn compared_with(&self, reference: usize) -> Option<&Comparison> {
        self.others.get(reference).and_then(Option::as_ref)
    }
}
