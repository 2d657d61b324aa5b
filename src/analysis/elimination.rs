//! The race on one value: who is left, what it concludes, and how many more rounds would conclude more.

use super::series::{Observed, Rounds};
use crate::stats::{self, Band, Estimate, Finding, Level, Ties};

/// What a comparison is held against.
#[derive(Clone, Copy, Debug)]
pub struct Yardstick {
    pub level: Level,
    pub band: Band,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// One is left, and every other is slower.
    Pick,
    /// All that are left are the same within the band.
    Tie,
    /// One is left, but some other is slower by less than the noise floor, which is above what was wanted.
    WithinNoise,
    Unresolved,
}

/// How the race stands. Indices are those of the series.
#[derive(Clone, Debug)]
pub struct Race {
    pub conclusion: Conclusion,
    /// The pick, the ties, or who may still be best; fastest first.
    pub members: Vec<usize>,
    /// Of each series one that beats it, if any does.
    pub beaten_by: Vec<Option<usize>>,
    /// False: too few rounds to allow for the number of comparisons.
    pub corrected: bool,
    /// The most rounds that two ranked targets share.
    pub rounds: usize,
    /// About so many rounds in all would decide between the fastest candidate that does not tie with all others and each
    /// of those: the least and the most of these numbers. `None` where no number that anyone runs would do, or too few rounds to tell.
    pub fewest_needed: Option<u32>,
    pub most_needed: Option<u32>,
    /// Rivals of the one that is left that are slower by an amount which may or may not matter, and about how many rounds
    /// in all would tell.
    pub may_not_matter: Vec<(usize, u32)>,
    /// Members that have left the race and are beaten by nobody who is ranked now. While there are any, nothing is
    /// concluded.
    pub gone: Vec<usize>,
}

impl Race {
    /// About so many more rounds would tell the members apart.
    pub fn more_rounds(&self) -> Option<u32> {
        self.most_needed.map(|needed| needed.saturating_sub(self.rounds as u32).max(1))
    }

    pub fn settled(&self) -> bool {
        self.corrected && matches!(self.conclusion, Conclusion::Pick | Conclusion::Tie)
    }
}

/// The race that a run goes by: whoever was beaten counts with the rounds until then.
///
/// Who left may come to be beaten by nobody, when the one who beat it fails in a later round. It may then still be the
/// best, but it is not picked: the rounds that went on without it could have shown otherwise.
pub fn race_as_run(observed: &Observed, series: &[Rounds], ranked: &[usize], by: Yardstick) -> Option<Race> {
    let mut race = race(&observed.while_racing(series), ranked, by)?;
    let is_gone = |target: &usize| race.beaten_by[*target].is_none() && observed.is_out_of_race(*target);
    race.gone = race.members.iter().copied().filter(is_gone).collect();
    if !race.gone.is_empty() {
        race.conclusion = Conclusion::Unresolved;
        race.most_needed = None;
    }
    Some(race)
}

/// `None` with fewer than two ranked targets that have values, or fewer than three rounds.
pub fn race(series: &[Rounds], ranked: &[usize], by: Yardstick) -> Option<Race> {
    let ranked: Vec<usize> = ranked.iter().copied().filter(|&target| !series[target].is_empty()).collect();
    let logs = aligned(&ranked.iter().map(|&target| &series[target]).collect::<Vec<_>>());
    let rounds = shared_rounds(&logs);
    if ranked.len() < 2 || rounds < 3 {
        return None;
    }
    let standing = stats::standing(&logs, by.level, by.band);
    let mut ties = Ties::new(by.level.confidence, by.band);
    let (mut members, tie) = with_equals(&standing, &logs, &mut ties);
    members.sort_by(|a, b| middle(&logs[*a]).total_cmp(&middle(&logs[*b])));
    let conclusion = match members.as_slice() {
        _ if tie => Conclusion::Tie,
        [one] if by.band.proves_ties() || is_clear(*one, &logs, by) => Conclusion::Pick,
        [_] => Conclusion::WithinNoise,
        _ => Conclusion::Unresolved,
    };
    let needed = if tie { Vec::new() } else { needed(&members, &logs, by) };
    let all: Option<Vec<u32>> = needed.iter().copied().collect();
    let may_not_matter = match members.as_slice() {
        [one] => may_not_matter(*one, &logs, by).into_iter().map(|(at, rounds)| (ranked[at], rounds)).collect(),
        _ => Vec::new(),
    };
    let mut beaten_by = vec![None; series.len()];
    for (at, by) in standing.beaten_by.iter().enumerate() {
        beaten_by[ranked[at]] = by.map(|by| ranked[by]);
    }
    Some(Race {
        conclusion,
        members: members.into_iter().map(|at| ranked[at]).collect(),
        beaten_by,
        corrected: standing.corrected,
        rounds,
        fewest_needed: needed.iter().copied().flatten().min(),
        most_needed: all.and_then(|all| all.into_iter().max()),
        may_not_matter,
        gone: Vec::new(),
    })
}

/// Logarithms by round, alike for all: NaN where a target has no positive value, for a ratio to nothing says nothing.
fn aligned(series: &[&Rounds]) -> Vec<Vec<f64>> {
    let mut rounds: Vec<u32> = series.iter().flat_map(|rounds| rounds.iter().map(|(round, _)| *round)).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let of = |found: &&Rounds| {
        let mut logs = vec![f64::NAN; rounds.len()];
        let mut at = 0;
        for &(round, value) in found.iter().filter(|(_, value)| *value > 0.0 && value.is_finite()) {
            at += rounds[at..].partition_point(|other| *other < round);
            logs[at] = value.ln();
        }
        logs
    };
    series.iter().map(of).collect()
}

/// The most rounds that any two have in common: of the two that have most.
fn shared_rounds(logs: &[Vec<f64>]) -> usize {
    let count = |at: usize| logs[at].iter().filter(|value| value.is_finite()).count();
    let mut by_count: Vec<usize> = (0..logs.len()).collect();
    by_count.sort_by_key(|at| std::cmp::Reverse(count(*at)));
    match by_count.as_slice() {
        [a, b, ..] => differences(&logs[*a], &logs[*b]).len(),
        _ => 0,
    }
}

/// Of the rounds that both have.
fn differences(first: &[f64], second: &[f64]) -> Vec<f64> {
    first.iter().zip(second).map(|(a, b)| a - b).filter(|d| d.is_finite()).collect()
}

fn middle(logs: &[f64]) -> f64 {
    stats::median(&logs.iter().copied().filter(|value| value.is_finite()).collect::<Vec<_>>()).unwrap_or(f64::INFINITY)
}

/// A target that is shown to be slower, but by less than the threshold, is no worse a pick: it ties.
fn with_equals(standing: &stats::Standing, logs: &[Vec<f64>], ties: &mut Ties) -> (Vec<usize>, bool) {
    let mut members = standing.members.clone();
    if !standing.tie && members.len() != 1 {
        return (members, false);
    }
    let chosen = members.clone();
    let others = (0..logs.len()).filter(|at| !chosen.contains(at));
    members.extend(others.filter(|&at| chosen.iter().all(|&to| ties.hold(&logs[at], &logs[to]))));
    let tie = members.len() > 1;
    (members, tie)
}

/// Those that are beaten by the pick, but not by more than the band for sure: the interval must shrink to the distance
/// between the estimate and the edge of the band.
fn may_not_matter(pick: usize, logs: &[Vec<f64>], by: Yardstick) -> Vec<(usize, u32)> {
    let rounds = |other: usize| {
        let found = stats::paired_ratio(&differences(&logs[other], &logs[pick]), by.level.confidence)?;
        if stats::judge(&found, by.band) != Finding::ProbablyHigher {
            return None;
        }
        let distance = (found.ratio.ln() - by.band.threshold.ln_1p()).abs();
        let rounds = found.n as f64 * (found.half_width()? / distance).powi(2);
        Some((other, rounds.ceil().min(1e9) as u32))
    };
    (0..logs.len()).filter(|other| *other != pick).filter_map(rounds).collect()
}

/// Every other one is slower than the pick by more than the band.
fn is_clear(pick: usize, logs: &[Vec<f64>], by: Yardstick) -> bool {
    let clear = |other: usize| {
        let found = stats::paired_ratio(&differences(&logs[other], &logs[pick]), by.level.confidence);
        found.is_some_and(|estimate| stats::judge(&estimate, by.band) == Finding::Higher)
    };
    (0..logs.len()).filter(|other| *other != pick).all(clear)
}

/// Rounds until two candidates can be told apart, or told to be the same: of the fastest with each other one; of the
/// next with those after it where the fastest ties with all, and so on.
fn needed(members: &[usize], logs: &[Vec<f64>], by: Yardstick) -> Vec<Option<u32>> {
    let mut ties = Ties::new(by.level.confidence, by.band);
    let mut open = |at: usize| -> Vec<(usize, usize)> {
        let pairs = members[at + 1..].iter().map(|other| (*other, members[at]));
        pairs.filter(|(other, first)| !ties.hold(&logs[*other], &logs[*first])).collect()
    };
    let first_open = (0..members.len()).map(&mut open).find(|pairs| !pairs.is_empty());
    let of = |(other, first): (usize, usize)| {
        let found = stats::paired_ratio(&differences(&logs[other], &logs[first]), by.level.confidence)?;
        stats::rounds_to_decide(&found, by.level, logs.len(), by.band)
    };
    first_open.unwrap_or_default().into_iter().map(of).collect()
}

/// Paired by round: only rounds that both have.
pub fn compare(of: &Rounds, reference: &Rounds, confidence: f64) -> Option<Estimate> {
    stats::paired_ratio(&log_ratios(of, reference), confidence)
}

/// Two-sided, that the two are the same.
pub fn p_value(of: &Rounds, reference: &Rounds) -> Option<f64> {
    stats::signed_rank_p(&log_ratios(of, reference))
}

/// A difference is shown only if the scatter is symmetric, which it clearly is not.
pub fn rests_on_symmetry(of: &Rounds, reference: &Rounds, confidence: f64) -> bool {
    stats::rests_on_symmetry(&log_ratios(of, reference), confidence)
}

fn log_ratios(of: &Rounds, reference: &Rounds) -> Vec<f64> {
    let pairs = common(&[of, reference]);
    pairs[0].iter().zip(&pairs[1]).map(|(a, b)| a.ln() - b.ln()).collect()
}

/// The values of those rounds that all have, positive ones only: a ratio to nothing says nothing.
fn common(series: &[&Rounds]) -> Vec<Vec<f64>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two targets that swing against each other tie with a quiet one, which is the fastest, but not with one another:
    /// their interval of ±5 % must shrink to ln 1.03.
    #[test]
    fn candidates_that_all_tie_with_the_fastest_are_still_told_how_many_rounds_they_need() {
        let swing = |by: &f64| -> Rounds {
            (1..=12).map(|round| (round, f64::exp(if round % 2 == 0 { *by } else { -by } + 1e-9))).collect()
        };
        let series: Vec<Rounds> = [0.0, 0.025, -0.025].iter().map(swing).collect();
        let level = Level { alpha: 0.05, confidence: 0.97 };
        let found = race(&series, &[0, 1, 2], Yardstick { level, band: Band::from(0.03) }).expect("twelve rounds");
        assert_eq!((found.conclusion, found.members.len()), (Conclusion::Unresolved, 3));
        assert_eq!((found.fewest_needed, found.most_needed), (Some(35), Some(35)));
    }
}
