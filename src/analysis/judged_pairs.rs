//! All pairs of targets in one quantity, judged once and together: what every sentence, row, place, picture and export
//! says of two targets is read here.
//!
//! Targets may be chosen by these very times and then compared, as a pick or a champion is: the intervals of all pairs hold
//! together, at every look, in 95 % of runs, over all quantities of a report that are judged in this way.

use super::elimination::{Field, Rules, compare, sums};
use super::model::variance_by;
use super::series::Rounds;
use crate::stats::{self, Estimate, Finding, Method};

/// Of all intervals together.
const LEVEL: f64 = 0.95;

/// What is known of the first of two targets against the second.
#[derive(Clone, Debug)]
pub struct JudgedPair {
    pub estimate: Estimate,
    pub finding: Finding,
    /// Of the logarithm of the ratio, by the rounds of these two alone.
    pub variance: Option<f64>,
}

/// By the first and the second target; none for a target and itself, and where no ratio can be made.
#[derive(Clone, Debug, Default)]
pub struct JudgedPairs(Vec<Vec<Option<JudgedPair>>>);

/// What the pairs are judged by.
pub struct Evidence<'a> {
    pub series: &'a [Rounds],
    /// What the values would be by the speed of the processor alone.
    pub by_speed: &'a [Rounds],
    /// What ratios are taken of: the series, or these at one speed of the processor.
    pub compared: &'a [Rounds],
    /// How much slower than the best each can be, as a logarithm; infinite where nothing bounds it.
    pub regret: Vec<f64>,
    pub confidence: f64,
}

impl JudgedPairs {
    pub fn new(evidence: &Evidence, rules: &Rules) -> JudgedPairs {
        let series = evidence.series;
        let is_measured = |at: &usize| !series[*at].is_empty() && rules.duplicate != Some(*at);
        let field = Field::new(series, evidence.by_speed, (0..series.len()).filter(is_measured).collect(), rules);
        // Any two, either way round: whichever is picked, none is called slower by luck.
        let above = field.bounds(rules.comparisons * (rules.comparisons + 1) * rules.races);
        let mut found = JudgedPairs(vec![vec![None; series.len()]; series.len()]);
        for (i, a) in field.targets.iter().enumerate() {
            for (j, b) in field.targets.iter().enumerate().filter(|(j, _)| *j != i) {
                found.0[*a][*b] = evidence.judged((*a, *b), (-above[j][i], above[i][j]), rules);
            }
        }
        found
    }

    pub fn get(&self, of: usize, than: usize) -> Option<&JudgedPair> {
        self.0.get(of)?.get(than)?.as_ref()
    }

    pub fn interval(&self, of: usize, than: usize) -> Option<(f64, f64)> {
        self.get(of, than)?.estimate.interval
    }

    pub fn finding(&self, of: usize, than: usize) -> Option<Finding> {
        Some(self.get(of, than)?.finding)
    }
}

impl Evidence<'_> {
    fn judged(&self, (a, b): (usize, usize), bounds: (f64, f64), rules: &Rules) -> Option<JudgedPair> {
        let found = compare(&self.compared[a], &self.compared[b], self.confidence)?;
        let variance = variance_by(&found);
        // None is faster than the best: what bounds a regret bounds the ratio to any other too.
        let (low, high) = match self.regret[a].is_finite() && self.regret[b].is_finite() {
            true => (bounds.0.max(-self.regret[b]), bounds.1.min(self.regret[a])),
            false => bounds,
        };
        let estimate = if !low.is_finite() || !high.is_finite() {
            Estimate { interval: None, method: Method::Anecdote, level: 0.0, ..found }
        } else {
            // Bounds are the least of several looks: what they leave holds the estimate of the last.
            let interval = Some((low.exp().min(found.ratio), high.exp().max(found.ratio)));
            Estimate { interval, level: LEVEL, ..found }
        };
        let finding = match stats::judge(&estimate, rules.threshold) {
            // One side may be without a bound, where rounds are missing that may have been slow.
            Finding::TooFewRounds if low.is_finite() && low > 0.0 => Finding::Higher,
            Finding::TooFewRounds if high.is_finite() && high < 0.0 => Finding::Lower,
            Finding::ProbablyHigher => Finding::Higher,
            Finding::ProbablyLower => Finding::Lower,
            same => same,
        };
        let is_contradicted = self.is_contradicted((a, b), finding, rules);
        Some(JudgedPair { estimate, finding: if is_contradicted { Finding::Unresolved } else { finding }, variance })
    }

    /// Where times add, all rounds together are the other way round.
    fn is_contradicted(&self, (a, b): (usize, usize), finding: Finding, rules: &Rules) -> bool {
        let (more, less) = match finding {
            Finding::Higher => (a, b),
            Finding::Lower => (b, a),
            _ => return false,
        };
        let found = sums(&self.series[less], &self.series[more]).filter(|_| rules.adds);
        found.is_some_and(|sums| sums.matters(rules.threshold))
    }
}
