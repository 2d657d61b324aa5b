//! All pairs of targets in one quantity, judged once and together: what every sentence, row, place,
//! picture and export says of two targets is read here.
//!
//! Targets may be chosen by these very times and then compared, as a pick or a champion is: the
//! intervals of all pairs hold together, at every look, in 95 % of runs, over all quantities of a
//! report that are judged in this way.

use super::by_round::{Field, Rules, compare, sums};
use super::series::Rounds;
use pickfs_stats::{Estimate, Finding, Method};

/// Confidence of all intervals together.
const LEVEL: f64 = 0.95;
/// Pairs grow with the square of the targets: of more than this, each is judged when it is asked
/// for.
pub(crate) const MOST_TARGETS: usize = 30;

/// What is known of the first of two targets against the second.
#[derive(Clone, Debug)]
pub(crate) struct JudgedPair {
    pub estimate: Estimate,
    pub finding: Finding,
    /// Variance of the logarithm of the ratio, by the rounds of these two alone.
    pub variance: Option<f64>,
}

/// None for a target and itself, and where no ratio can be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct JudgedPairs {
    evidence: Evidence,
    /// Upper bounds of the logarithm of the first over the second, by target; infinite where
    /// nothing bounds it.
    above: Vec<Vec<f64>>,
    /// With few targets, all pairs, by the first and the second.
    known: Vec<Vec<Option<JudgedPair>>>,
}

/// What the pairs are judged by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub series: Vec<Rounds>,
    /// For simulated cells, the same without the time of the kernel's workers; else without rounds.
    pub without_workers: Vec<Rounds>,
    /// How much slower than the best each can be, as a logarithm; infinite where nothing bounds it.
    pub regret: Vec<f64>,
    pub confidence: f64,
    pub threshold: f64,
    /// Differences up to this are not called clear, as a logarithm: infinite where the run is
    /// unreliable.
    pub floor: f64,
    /// Times add, so that a finding that the sums contradict is none.
    pub adds: bool,
}

impl JudgedPairs {
    pub(crate) fn new(evidence: Evidence, rules: &Rules) -> JudgedPairs {
        let (series, count) = (&evidence.series, evidence.series.len());
        let is_measured = |at: &usize| !series[*at].is_empty() && rules.duplicate != Some(*at);
        let field = Field::new(series, (0..count).filter(is_measured).collect(), rules);
        // Any two, either way round: whichever is picked, none is called slower by luck.
        let bounds = field.bounds(rules.comparisons * (rules.comparisons + 1) * rules.races);
        let mut above = vec![vec![f64::INFINITY; count]; count];
        for (a, bounds) in field.targets.iter().zip(bounds) {
            field.targets.iter().zip(bounds).for_each(|(b, bound)| above[*a][*b] = bound);
        }
        let mut found = JudgedPairs { evidence, above, known: Vec::new() };
        if field.targets.len() <= MOST_TARGETS {
            found.known = found.all(&field.targets);
        }
        found
    }

    /// A pair is judged once: the other way round it is the same comparison.
    fn all(&self, targets: &[usize]) -> Vec<Vec<Option<JudgedPair>>> {
        let count = self.above.len();
        let mut known = vec![vec![None; count]; count];
        for (at, a) in targets.iter().enumerate() {
            for b in &targets[at + 1..] {
                let pair = self.judged(*a, *b);
                known[*b][*a] = pair.as_ref().map(JudgedPair::swapped);
                known[*a][*b] = pair;
            }
        }
        known
    }

    pub(crate) fn get(&self, of: usize, than: usize) -> Option<JudgedPair> {
        match self.known.is_empty() {
            true if of != than && of.max(than) < self.above.len() => self.judged(of, than),
            true => None,
            false => self.known.get(of)?.get(than)?.clone(),
        }
    }

    pub(crate) fn interval(&self, of: usize, than: usize) -> Option<(f64, f64)> {
        self.get(of, than)?.estimate.interval
    }

    pub(crate) fn finding(&self, of: usize, than: usize) -> Option<Finding> {
        Some(self.get(of, than)?.finding)
    }

    fn judged(&self, a: usize, b: usize) -> Option<JudgedPair> {
        let Evidence { series, regret, confidence, threshold, .. } = &self.evidence;
        let found = compare(&series[a], &series[b], *confidence)?;
        let variance = found.variance();
        let (low, high) = match regret[a].is_finite() && regret[b].is_finite() {
            // None is faster than the best: what bounds a regret bounds the ratio to any other too.
            true => ((-self.above[b][a]).max(-regret[b]), self.above[a][b].min(regret[a])),
            false => (-self.above[b][a], self.above[a][b]),
        };
        let estimate = if !low.is_finite() || !high.is_finite() {
            Estimate { interval: None, method: Method::Anecdote, level: 0.0, ..found }
        } else {
            // Bounds are the least of several looks: what they leave holds the estimate of the
            // last.
            let interval = Some((low.exp().min(found.ratio), high.exp().max(found.ratio)));
            Estimate { interval, level: LEVEL, ..found }
        };
        let finding = match pickfs_stats::judge(&estimate, *threshold) {
            // One side may be without a bound, where rounds are missing that may have been slow.
            Finding::TooFewRounds if low.is_finite() && low > 0.0 => Finding::Higher,
            Finding::TooFewRounds if high.is_finite() && high < 0.0 => Finding::Lower,
            Finding::ProbablyHigher => Finding::Higher,
            Finding::ProbablyLower => Finding::Lower,
            same => same,
        };
        let is_clear = matches!(finding, Finding::Higher | Finding::Lower);
        let is_doubted = is_clear && estimate.ratio.ln().abs() <= self.evidence.floor;
        let is_doubted = is_doubted || self.is_contradicted((a, b), finding) || self.overturned(a, b).is_some();
        let finding = if is_doubted { Finding::Unresolved } else { finding };
        Some(JudgedPair { estimate, finding, variance })
    }

    /// Which of a simulated pair is the faster one without the kernel's workers, where that is
    /// another one, and by more than matters on either side: one processor serves workers and
    /// program in turn, so its workers' time counts against a target.
    pub(crate) fn overturned(&self, a: usize, b: usize) -> Option<usize> {
        let Evidence { series, without_workers, confidence, threshold, .. } = &self.evidence;
        let log = |of: &[Rounds]| Some(compare(of.get(a)?, of.get(b)?, *confidence)?.ratio.ln());
        let (with, without) = (log(series)?, log(without_workers)?);
        let matters = with.abs().max(without.abs()) > threshold.ln_1p();
        (with * without < 0.0 && matters).then_some(if without < 0.0 { a } else { b })
    }

    /// Where times add, all rounds together are the other way round.
    fn is_contradicted(&self, (a, b): (usize, usize), finding: Finding) -> bool {
        let Evidence { series, threshold, adds, .. } = &self.evidence;
        let (more, less) = match finding {
            Finding::Higher => (a, b),
            Finding::Lower => (b, a),
            _ => return false,
        };
        let found = sums(&series[less], &series[more]).filter(|_| *adds);
        found.is_some_and(|sums| sums.matters(*threshold))
    }
}

impl JudgedPair {
    fn swapped(&self) -> JudgedPair {
        JudgedPair { estimate: self.estimate.swapped(), finding: self.finding.swapped(), variance: self.variance }
    }
}
