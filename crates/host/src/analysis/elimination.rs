//! The race on one value: which targets may be the best, which one to pick, and how much slower
//! than the best each can be.

use super::by_round::{Field, Rules, common, sums};
use super::judged_pairs::{JudgedPairs, MOST_TARGETS};
use super::series::Rounds;
use pickfs_stats::{Finding, Schedule, Sums};

/// For a target whose rounds add up to more than another's, by more than matters, surely or
/// perhaps: that other, and by how much.
#[derive(Clone, Copy, Debug)]
pub struct HigherTotal {
    pub than: usize,
    pub sums: Sums,
    /// It does, and not only may.
    pub is_shown: bool,
}

/// How the race stands. Indices are those of the series. Each target that takes part is in one
/// group: the pick, maybe as good, slower, eliminated early and not settled, and too few rounds.
#[derive(Clone, Debug)]
pub struct Race {
    /// What to take now: the one that can be least slower than the best, or the reference where
    /// that is good enough.
    pub pick: usize,
    /// Targets that no interim analysis has eliminated, by how much slower than the best they can
    /// be.
    pub members: Vec<usize>,
    /// Targets that may be as good as the pick, by how much slower than the best they can be.
    pub may_be_as_good: Vec<usize>,
    /// Targets that are slower than the pick, all of these together in 95 % of runs, over all races
    /// that are shown.
    pub slower: Vec<usize>,
    /// Targets that left before it was settled whether they are slower than the pick.
    pub left_early: Vec<usize>,
    /// Targets that share too few rounds with the others to be compared: of these nothing is known
    /// yet.
    pub too_few: Vec<usize>,
    /// By how much slower than the best each can be, as a share: 0.04 for 4 %; infinite where
    /// nothing bounds it.
    pub regret: Vec<f64>,
    /// A faster target, where one is shown to be faster at all.
    pub beaten_by: Vec<Option<usize>>,
    /// Rounds that the last look saw.
    pub rounds: usize,
    /// The relative difference that matters.
    pub threshold: f64,
    /// By how much the reference surely differs from its second copy, as a share: all bounds are
    /// wider by it.
    pub contradiction: f64,
    /// How much rounds resemble those before them, 0 to 1.
    pub autocorrelation: f64,
    /// They do, and are too few to say how much: the last look concluded nothing.
    pub waits: bool,
    /// By how much a coarse clock may have moved a difference, as a share: all bounds are wider by
    /// it.
    pub tick: f64,
    /// Another target is faster without the workers of the one simulated processor, and only then.
    pub is_overturned: Vec<bool>,
    /// By target, where times add.
    pub higher_total: Vec<Option<HigherTotal>>,
    is_unreliable: bool,
    standing: Standing,
}

impl Race {
    /// By how much slower than the best the pick can be, as a share.
    pub fn bound(&self) -> f64 {
        self.regret[self.pick]
    }

    /// The pick, and targets that may be as good.
    pub(crate) fn may_be_best(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.pick).chain(self.may_be_as_good.iter().copied())
    }

    /// The pick is as good as was asked for.
    pub fn is_settled(&self) -> bool {
        self.is_good(self.pick)
    }

    /// More rounds would not change the answer: what remains open is not for lack of them.
    pub(crate) fn is_enough(&self) -> bool {
        self.is_bounded(self.pick)
    }

    /// Rounds depend on one another so much that what they showed before that was seen is
    /// forgotten, and there are too few to bound anything now.
    pub(crate) fn is_refused(&self) -> bool {
        self.waits && self.bound().is_infinite()
    }

    fn is_good(&self, target: usize) -> bool {
        self.is_bounded(target) && !self.is_overturned[target]
    }

    /// One of which nothing is known may be better.
    fn is_bounded(&self, target: usize) -> bool {
        self.too_few.is_empty() && self.regret[target] <= self.threshold && self.higher_total[target].is_none()
    }

    /// In all, until the pick is good enough: one case in ten and nine in ten. `None` where it is,
    /// and where others keep the machine busy: that takes a quiet machine, not more rounds.
    pub(crate) fn rounds_needed(&self) -> Option<[Option<u32>; 2]> {
        let Standing { field, found, comparisons, schedule, .. } = &self.standing;
        let now = (*schedule, self.rounds as u32);
        let ahead = || pickfs_stats::rounds_to_go(&field.comparisons(*comparisons), found, now, self.threshold.ln_1p());
        (!self.is_unreliable && self.bound() > self.threshold).then(ahead).flatten()
    }

    /// Targets that are as good as was asked for, whichever is best; the pick first.
    pub(crate) fn good(&self) -> Vec<usize> {
        let mut good: Vec<usize> = (0..self.regret.len()).filter(|at| self.is_good(*at)).collect();
        good.sort_by_key(|at| (*at != self.pick, self.place(*at)));
        good
    }

    /// In the order of bounds. Bounds that agree to nine digits differ by rounding alone: the first
    /// of the plan comes first.
    fn place(&self, target: usize) -> (i64, usize) {
        ((self.regret[target] * 1e9).round() as i64, target)
    }
}

/// How the targets stand after all looks, before a pick is made.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    field: Field,
    found: pickfs_stats::Regret,
    too_few: Vec<usize>,
    comparisons: usize,
    schedule: Schedule,
}

impl Standing {
    /// `None` with fewer than two ranked targets that share enough rounds for any bound.
    pub(crate) fn new(series: &[Rounds], ranked: &[usize], rules: &Rules) -> Option<Standing> {
        let measured: Vec<usize> = ranked.iter().copied().filter(|&target| !series[target].is_empty()).collect();
        let ranked = comparable(series, &measured, rules.looks.last().map_or(0, |look| look.rounds));
        if ranked.len() < 2 {
            return None;
        }
        let too_few = measured.into_iter().filter(|at| !ranked.contains(at)).collect();
        let field = Field::new(series, ranked, rules);
        let found = pickfs_stats::regret(&field.comparisons(rules.comparisons), &field.looks);
        Some(Standing { field, found, too_few, comparisons: rules.comparisons, schedule: rules.schedule })
    }

    /// By how much slower than the best each target can be, as a logarithm; infinite where nothing
    /// bounds it.
    pub(crate) fn regret(&self, targets: usize) -> Vec<f64> {
        let mut regret = vec![f64::INFINITY; targets];
        self.field.targets.iter().zip(&self.found.regret).for_each(|(target, by)| regret[*target] = *by);
        regret
    }

    pub(crate) fn race(self, series: &[Rounds], pairs: &JudgedPairs, rules: &Rules) -> Race {
        let (ranked, found) = (&self.field.targets.clone(), &self.found.clone());
        let mut race = Race {
            pick: ranked[0],
            members: Vec::new(),
            may_be_as_good: Vec::new(),
            slower: Vec::new(),
            left_early: Vec::new(),
            too_few: self.too_few.clone(),
            regret: vec![f64::INFINITY; series.len()],
            beaten_by: vec![None; series.len()],
            rounds: self.field.looks.last().map_or(0, |look| look.rounds as usize),
            threshold: rules.threshold,
            contradiction: found.contradiction.exp_m1(),
            autocorrelation: found.autocorrelation,
            waits: found.waits,
            tick: self.field.tick.exp_m1(),
            is_overturned: vec![false; series.len()],
            higher_total: vec![None; series.len()],
            is_unreliable: rules.is_unreliable,
            standing: self,
        };
        // Nothing more will be known of an eliminated target.
        let mut open: Vec<usize> =
            (0..ranked.len()).filter(|at| found.eliminated[*at].is_none()).map(|at| ranked[at]).collect();
        for (at, target) in ranked.iter().enumerate() {
            // No bound is better than what a row of its target shows.
            let others = ranked.iter().filter(|other| ranked.len() <= MOST_TARGETS || rules.reference == Some(**other));
            let shown = others.filter_map(|other| pairs.interval(*target, *other)).map(|(_, high)| high - 1.0);
            race.regret[*target] = shown.fold(found.regret[at].exp_m1(), f64::max);
            let overturned = |other: &usize| pairs.overturned(*target, *other).is_some_and(|faster| faster != *target);
            race.is_overturned[*target] = ranked.iter().any(overturned);
            race.higher_total[*target] = higher_total(series, *target, ranked, rules)
                .or_else(|| may_be_higher_total(series, *target, &open, rules));
            race.beaten_by[*target] = found.eliminated[at].map(|by| ranked[by]);
        }
        open.sort_by_key(|at| race.place(*at));
        race.members = open;
        race.choose(ranked, pairs, rules);
        race
    }
}

impl Race {
    /// The pick, and in which group each of the others is.
    fn choose(&mut self, ranked: &[usize], pairs: &JudgedPairs, rules: &Rules) {
        let members = &self.members;
        let good = |at: &usize| {
            self.regret[*at] <= rules.threshold && self.higher_total[*at].is_none() && !self.is_overturned[*at]
        };
        let reference = rules.reference.filter(|at| ranked.contains(at));
        self.pick = reference.filter(good).or(members.iter().copied().find(good)).unwrap_or(members[0]);
        let mut others: Vec<usize> = ranked.iter().copied().filter(|at| *at != self.pick).collect();
        others.sort_by_key(|at| self.place(*at));
        let is_slower = |at: &usize| pairs.finding(*at, self.pick) == Some(Finding::Higher);
        let (slower, others): (Vec<usize>, Vec<usize>) = others.into_iter().partition(is_slower);
        let (left, open) = others.into_iter().partition(|at| rules.left.contains(at));
        (self.slower, self.left_early, self.may_be_as_good) = (slower, left, open);
    }
}

/// Those of which each two share enough rounds for a bound, up to this round. One after the other
/// is left out that shares too few with the most: a target that lacks rounds must not take the
/// bounds of the others with it.
fn comparable(series: &[Rounds], targets: &[usize], last: u32) -> Vec<usize> {
    let seen: Vec<Rounds> = series.iter().map(|rounds| up_to(rounds, last)).collect();
    let shares = |a: usize, b: usize| common(&[&seen[a], &seen[b]])[0].len() >= pickfs_stats::FEWEST_ROUNDS;
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
pub(crate) fn higher_total(series: &[Rounds], target: usize, ranked: &[usize], rules: &Rules) -> Option<HigherTotal> {
    let found = by_sums((series, target), ranked, rules, true).filter(|found| found.sums.matters(rules.threshold));
    found.max_by(|a, b| a.sums.ratio.total_cmp(&b.sums.ratio))
}

/// Against the one than which it may cost most more.
fn may_be_higher_total(series: &[Rounds], target: usize, open: &[usize], rules: &Rules) -> Option<HigherTotal> {
    let found = by_sums((series, target), open, rules, false).filter(|found| found.sums.most() > 1.0 + rules.threshold);
    found.max_by(|a, b| a.sums.most().total_cmp(&b.sums.most()))
}

fn by_sums<'a>(
    (series, target): (&'a [Rounds], usize),
    others: &'a [usize],
    rules: &'a Rules,
    is_shown: bool,
) -> impl Iterator<Item = HigherTotal> + 'a {
    let against = move |other: &usize| {
        Some(HigherTotal { than: *other, sums: sums(&series[target], &series[*other])?, is_shown })
    };
    others.iter().filter(move |other| rules.adds && **other != target).filter_map(against)
}
