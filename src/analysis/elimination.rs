//! The race on one value: who may be the best, whom to pick, and how much slower than the best each can be.

use super::series::Rounds;
use crate::stats::{self, Comparisons, ControlVariate, Estimate, Look, Sums};

/// What a race is held against.
#[derive(Clone, Debug)]
pub struct Rules {
    pub looks: Vec<Look>,
    /// One less than the targets that may be best.
    pub comparisons: usize,
    /// The relative difference that matters.
    pub threshold: f64,
    /// What is picked where it is as good as any, and its second copy.
    pub reference: Option<usize>,
    pub duplicate: Option<usize>,
    /// Races that share the chance that any target is called slower by luck: in this one, and in one of the parts
    /// that are shown beside it.
    pub races: usize,
    pub part_races: usize,
    /// Times add, so that what all rounds add up to counts, and not a typical round alone.
    pub adds: bool,
}

/// Of a target whose rounds add up to more than another's by more than matters, or surely: that other, and by how much.
#[derive(Clone, Copy, Debug)]
pub struct Dearer {
    pub than: usize,
    pub sums: Sums,
}

/// How the race stands. Indices are those of the series. All bounds hold together, at every look, in 95 % of runs.
#[derive(Clone, Debug)]
pub struct Race {
    /// What to take now: the one that can be least slower than the best, or the reference where that is good enough.
    pub pick: usize,
    /// Targets that may be the best, by how much slower than the best they can be.
    pub members: Vec<usize>,
    /// By how much slower than the best each can be, as a share: 0.04 for 4 %; infinite where nothing bounds it.
    pub regret: Vec<f64>,
    /// A faster target, where one is shown to be faster at all.
    pub beaten_by: Vec<Option<usize>>,
    /// Targets that share too few rounds with the others to be compared: of these nothing is known yet.
    pub too_few: Vec<usize>,
    /// Targets that are slower than the pick, all of these together in 95 % of runs, over all races that are shown.
    pub slower: Vec<usize>,
    /// Upper bounds of the logarithm of the time of the first over that of the second, of all pairs: all of them hold
    /// together, so that two targets may be chosen by these very times and then compared. Infinite where nothing bounds it.
    pub above: Vec<Vec<f64>>,
    /// Rounds that the last look saw.
    pub rounds: usize,
    /// The relative difference that matters.
    pub threshold: f64,
    /// By how much the reference surely differs from its second copy, as a share: all bounds are wider by it.
    pub contradiction: f64,
    /// How much rounds resemble those before them, 0 to 1.
    pub autocorrelation: f64,
    /// By target, where times add.
    pub dearer: Vec<Option<Dearer>>,
    /// What the speed of the processor explains of the noise, where it is taken out.
    pub control: Option<ControlVariate>,
    /// In all, until the pick is good enough: one case in ten and nine in ten.
    pub rounds_needed: Option<[Option<u32>; 2]>,
}

impl Race {
    /// By how much slower than the best the pick can be, as a share.
    pub fn bound(&self) -> f64 {
        self.regret[self.pick]
    }

    /// The pick is as good as was asked for.
    pub fn is_settled(&self) -> bool {
        self.is_good(self.pick)
    }

    /// One of which nothing is known may be better.
    fn is_good(&self, target: usize) -> bool {
        self.too_few.is_empty() && self.regret[target] <= self.threshold && self.dearer[target].is_none()
    }

    /// Targets that are as good as was asked for, whichever is best; the pick first.
    pub fn good(&self) -> Vec<usize> {
        let mut good: Vec<usize> = (0..self.regret.len()).filter(|at| self.is_good(*at)).collect();
        good.sort_by(|a, b| {
            (*a != self.pick).cmp(&(*b != self.pick)).then(self.regret[*a].total_cmp(&self.regret[*b]))
        });
        good
    }
}

/// `None` with fewer than two ranked targets that have values, or too few rounds for any bound. `by_speed` has what the
/// values would be by the speed of the processor alone.
pub fn race(series: &[Rounds], by_speed: &[Rounds], ranked: &[usize], rules: &Rules) -> Option<Race> {
    let measured: Vec<usize> = ranked.iter().copied().filter(|&target| !series[target].is_empty()).collect();
    let ranked = comparable(series, &measured, rules.looks.last().map_or(0, |look| look.rounds));
    let copy = rules.duplicate.filter(|copy| !series[*copy].is_empty());
    let taking_part: Vec<usize> = ranked.iter().chain(&copy).copied().collect();
    let (rounds, logs) = aligned(&taking_part.iter().map(|&target| &series[target]).collect::<Vec<_>>());
    let of_target = |target: &usize| logs_in(&rounds, &by_speed[*target]);
    let covariates: Vec<Vec<f64>> = taking_part.iter().map(of_target).collect();
    let seen = |look: &Look| Look { rounds: rounds.partition_point(|round| *round <= look.rounds) as u32, ..*look };
    let looks: Vec<Look> = rules.looks.iter().map(seen).collect();
    let place = |target: usize| ranked.iter().position(|other| *other == target);
    let twins = rules.reference.and_then(place).zip(copy.map(|_| ranked.len()));
    let of = |comparisons| Comparisons {
        logs: &logs,
        candidates: ranked.len(),
        covariates: &covariates,
        comparisons,
        twins,
    };
    let found = stats::regret(&of(rules.comparisons), &looks);
    if ranked.len() < 2 {
        return None;
    }
    let members = found.members();
    let dearer: Vec<Option<Dearer>> = ranked.iter().map(|at| dearer(series, *at, &ranked, rules)).collect();
    let close = |at: &usize| found.regret[*at] <= rules.threshold.ln_1p();
    let good = |at: &usize| close(at) && dearer[*at].is_none();
    let first = || members.iter().copied().find(good);
    let pick = rules.reference.and_then(place).filter(good).or_else(first).unwrap_or(members[0]);
    // Any two of the targets, either way round: whichever is picked, nothing is called slower by luck.
    let all = stats::regret(&of(rules.comparisons * (rules.comparisons + 1) * rules.races), &looks);
    let slower = (0..ranked.len()).filter(|at| all.above[pick][*at] < 0.0 && !close(at)).map(|at| ranked[at]).collect();
    let mut race = Race {
        pick: ranked[pick],
        members: members.into_iter().map(|at| ranked[at]).collect(),
        too_few: measured.into_iter().filter(|at| !ranked.contains(at)).collect(),
        regret: vec![f64::INFINITY; series.len()],
        beaten_by: vec![None; series.len()],
        slower,
        above: vec![vec![f64::INFINITY; series.len()]; series.len()],
        rounds: looks.last().map_or(0, |look| look.rounds as usize),
        threshold: rules.threshold,
        contradiction: found.contradiction.exp_m1(),
        autocorrelation: found.autocorrelation,
        dearer: vec![None; series.len()],
        control: found.control,
        rounds_needed: None,
    };
    for (at, target) in ranked.iter().enumerate() {
        race.regret[*target] = found.regret[at].exp_m1();
        race.dearer[*target] = dearer[at];
        race.beaten_by[*target] = found.eliminated[at].map(|(_, by)| ranked[by]);
        ranked.iter().enumerate().for_each(|(by, other)| race.above[*target][*other] = all.above[at][by]);
    }
    if race.bound() > race.threshold {
        let goal = rules.threshold.ln_1p();
        race.rounds_needed = stats::rounds_to_go(&of(rules.comparisons), &found, race.rounds as u32, goal);
    }
    Some(race)
}

/// Those of which each two share enough rounds for a bound, up to this round. One after the other is left out that shares
/// too few with the most: a target that lacks rounds must not take the bounds of the others with it.
fn comparable(series: &[Rounds], targets: &[usize], last: u32) -> Vec<usize> {
    let seen: Vec<Rounds> = series.iter().map(|rounds| up_to(rounds, last)).collect();
    let shares = |a: usize, b: usize| common(&[&seen[a], &seen[b]])[0].len() >= stats::FEWEST_ROUNDS;
    let mut left = targets.to_vec();
    loop {
        let open = |at: &usize| left.iter().filter(|other| *other != at && !shares(*at, **other)).count();
        let worst = left.iter().copied().max_by_key(|at| (open(at), std::cmp::Reverse(seen[*at].len())));
        match worst.filter(|at| open(at) > 0) {
            None => return left,
            Some(worst) => left.retain(|at| *at != worst),
        }
    }
}

fn up_to(rounds: &Rounds, last: u32) -> Rounds {
    rounds.iter().copied().filter(|(round, _)| *round <= last).collect()
}

/// Against the one that adds up to the least, over the rounds that both have.
pub fn dearer(series: &[Rounds], target: usize, ranked: &[usize], rules: &Rules) -> Option<Dearer> {
    let against = |other: &usize| Some(Dearer { than: *other, sums: sums(&series[target], &series[*other])? });
    let others = ranked.iter().filter(|other| rules.adds && **other != target).filter_map(against);
    let matters = |found: &Dearer| {
        found.sums.ratio > 1.0 + rules.threshold || found.sums.interval.is_some_and(|(low, _)| low > 1.0)
    };
    others.filter(matters).max_by(|a, b| a.sums.ratio.total_cmp(&b.sums.ratio))
}

/// What the rounds that both have add up to; `None` without any.
pub fn sums(of: &Rounds, reference: &Rounds) -> Option<Sums> {
    let shared = common(&[of, reference]);
    stats::ratio_of_sums(&shared[0], &shared[1])
}

/// The rounds of all, and logarithms by round, alike for all: NaN where a target has no positive value, for a ratio to
/// nothing says nothing.
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

/// All values as they would be at one speed of the processor.
pub fn at_one_speed(series: &[Rounds], by_speed: &[Rounds], control: ControlVariate) -> Vec<Rounds> {
    let (rounds, logs) = aligned(&series.iter().collect::<Vec<_>>());
    let covariates: Vec<Vec<f64>> = by_speed.iter().map(|by_speed| logs_in(&rounds, by_speed)).collect();
    let back = |logs: Vec<f64>| {
        let values = rounds.iter().zip(logs).filter(|(_, log)| log.is_finite());
        values.map(|(round, log)| (*round, log.exp())).collect()
    };
    stats::adjusted(&logs, &covariates, control).into_iter().map(back).collect()
}

/// Paired by round: only rounds that both have.
pub fn compare(of: &Rounds, reference: &Rounds, confidence: f64) -> Option<Estimate> {
    stats::paired_ratio(&log_ratios(of, reference), confidence)
}

/// The logarithm of the ratio in each of these rounds, NaN where there is none.
pub fn by_round(of: &Rounds, reference: &Rounds, rounds: &[u32]) -> Vec<f64> {
    let at = |series: &Rounds, round: u32| {
        let place = series.binary_search_by_key(&round, |(round, _)| *round).ok()?;
        value_of(series.get(place), round)
    };
    let log = |round: &u32| Some((at(of, *round)? / at(reference, *round)?).ln());
    rounds.iter().map(|round| log(round).unwrap_or(f64::NAN)).collect()
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
