//! Values of targets by round, side by side for the comparison: only rounds that both have.

use super::series::Rounds;
use pickfs_stats::{Comparisons, Estimate, Look, Schedule, Sums};

/// What a race is held against.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub looks: Vec<Look>,
    /// When there are further ones.
    pub schedule: Schedule,
    /// One less than the targets that may be best.
    pub comparisons: usize,
    /// The relative difference that matters.
    pub threshold: f64,
    /// What is picked where it is as good as any, and its second copy.
    pub reference: Option<usize>,
    pub duplicate: Option<usize>,
    /// Races that share the chance that any target is called slower by luck: in this one, and in
    /// one of the parts that are shown with it.
    pub races: usize,
    pub part_races: usize,
    /// Targets that take part in no further rounds.
    pub left: Vec<usize>,
    /// By target, rounds that it lacks for a reason that its time may be.
    pub lacking: Vec<Vec<u32>>,
    /// Times add, so that what all rounds add up to counts, and not a typical round alone.
    pub adds: bool,
    /// Times are another program's, whose clock may be coarse.
    pub has_foreign_clock: bool,
    /// No difference is called clear: the machine was busy, or the reference differs from its own
    /// copy.
    pub is_unreliable: bool,
}

/// Some targets, laid out by round for `stats`.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub targets: Vec<usize>,
    logs: Vec<Vec<f64>>,
    pub looks: Vec<Look>,
    twins: Option<(usize, usize)>,
    lacking: Vec<Vec<bool>>,
    /// By how much a coarse clock may have moved a difference, as a logarithm.
    pub tick: f64,
}

impl Field {
    pub(crate) fn new(series: &[Rounds], targets: Vec<usize>, rules: &Rules) -> Field {
        let copy = rules.duplicate.filter(|copy| !series[*copy].is_empty());
        let taking_part: Vec<usize> = targets.iter().chain(&copy).copied().collect();
        let (rounds, logs) = aligned(&taking_part.iter().map(|&target| &series[target]).collect::<Vec<_>>());
        let seen = |look: &Look| Look { rounds: rounds.partition_point(|round| *round <= look.rounds) as u32, ..*look };
        let reference = rules.reference.and_then(|at| targets.iter().position(|other| *other == at));
        let twins = reference.zip(copy.map(|_| targets.len()));
        let lacks = |target: &usize| rounds.iter().map(|round| rules.lacking[*target].contains(round)).collect();
        let lacking = targets.iter().map(lacks).collect();
        let values = |target: &usize| series[*target].iter().map(|(_, value)| *value).collect();
        let tick = if rules.has_foreign_clock {
            pickfs_stats::tick(&targets.iter().map(values).collect::<Vec<Vec<f64>>>())
        } else {
            0.0
        };
        Field { looks: rules.looks.iter().map(seen).collect(), targets, logs, twins, lacking, tick }
    }

    /// The upper bounds of the logarithms of the first over the second, by place; all hold
    /// together.
    pub(crate) fn bounds(&self, comparisons: usize) -> Vec<Vec<f64>> {
        pickfs_stats::upper_bounds(&self.comparisons(comparisons), &self.looks)
    }

    pub(crate) fn comparisons(&self, comparisons: usize) -> Comparisons<'_> {
        let (logs, candidates, twins) = (&self.logs, self.targets.len(), self.twins);
        let (lacking, tick) = (&self.lacking[..], self.tick);
        Comparisons { logs, candidates, comparisons, twins, lacking, tick }
    }
}

/// What the rounds that both have add up to; `None` without any.
pub(crate) fn sums(of: &Rounds, reference: &Rounds) -> Option<Sums> {
    let shared = common(&[of, reference]);
    pickfs_stats::ratio_of_sums(&shared[0], &shared[1])
}

/// The rounds of all, and logarithms by round, alike for all: NaN where a target has no positive
/// value, for a ratio to nothing says nothing.
fn aligned(series: &[&Rounds]) -> (Vec<u32>, Vec<Vec<f64>>) {
    let mut rounds: Vec<u32> = series.iter().flat_map(|rounds| rounds.iter().map(|(round, _)| *round)).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let logs = series.iter().map(|series| logs_in(&rounds, series)).collect();
    (rounds, logs)
}

/// Logarithms of the positive values in those of these rounds that they have, NaN elsewhere.
fn logs_in(rounds: &[u32], series: &Rounds) -> Vec<f64> {
    let mut logs = vec![f64::NAN; rounds.len()];
    for &(round, value) in series.iter().filter(|(_, value)| *value > 0.0 && value.is_finite()) {
        if let Ok(at) = rounds.binary_search(&round) {
            logs[at] = value.ln();
        }
    }
    logs
}

/// Paired by round: only rounds that both have.
pub(crate) fn compare(of: &Rounds, reference: &Rounds, confidence: f64) -> Option<Estimate> {
    pickfs_stats::paired_ratio(&log_ratios(of, reference), confidence)
}

/// The logarithm of the ratio in each of these rounds, NaN where there is none.
pub(crate) fn by_round(of: &Rounds, reference: &Rounds, rounds: &[u32]) -> Vec<f64> {
    let at = |series: &Rounds, round: u32| {
        let place = series.binary_search_by_key(&round, |(round, _)| *round).ok()?;
        value_of(series.get(place), round)
    };
    let log = |round: &u32| Some((at(of, *round)? / at(reference, *round)?).ln());
    rounds.iter().map(|round| log(round).unwrap_or(f64::NAN)).collect()
}

/// Two-sided, that the two are the same.
pub(crate) fn p_value(of: &Rounds, reference: &Rounds) -> Option<f64> {
    pickfs_stats::signed_rank_p(&log_ratios(of, reference))
}

/// A difference is shown only if the scatter is symmetric, which it clearly is not.
pub(crate) fn rests_on_symmetry(of: &Rounds, reference: &Rounds, confidence: f64) -> bool {
    pickfs_stats::rests_on_symmetry(&log_ratios(of, reference), confidence)
}

fn log_ratios(of: &Rounds, reference: &Rounds) -> Vec<f64> {
    let pairs = common(&[of, reference]);
    pairs[0].iter().zip(&pairs[1]).map(|(a, b)| a.ln() - b.ln()).collect()
}

/// The values of those rounds that all have, positive ones only: a ratio to nothing says nothing.
pub(crate) fn common(series: &[&Rounds]) -> Vec<Vec<f64>> {
    let mut at = vec![0; series.len()];
    let mut shared = vec![Vec::new(); series.len()];
    for &(round, _) in series[0] {
        for (at, series) in at.iter_mut().zip(series) {
            *at += series[*at..].partition_point(|(other, _)| *other < round);
        }
        let values: Vec<f64> = at.iter().zip(series).filter_map(|(at, s)| value_of(s.get(*at), round)).collect();
        if values.len() == series.len() {
            shared.iter_mut().zip(values).for_each(|(list, value)| list.push(value));
        }
    }
    shared
}

fn value_of(entry: Option<&(u32, f64)>, round: u32) -> Option<f64> {
    entry.filter(|(other, value)| *other == round && *value > 0.0 && value.is_finite()).map(|(_, value)| *value)
}
