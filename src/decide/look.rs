//! One look: which targets leave the race, and whether the run has enough rounds.
//!
//! What stops a run: a decision, the precision that was asked for, the end of the looks, a budget, or the prospect that
//! no number of rounds that a run may have would decide. The last two stop it undecided, so they cannot name a wrong
//! target.

use super::collect::{Observed, ObservedWork, Rounds, observe};
use super::race::{Race, Yardstick, compare, race};
use super::veto::{Veto, vetoes};
use super::{Combine, differs_from_itself, score, twins};
use crate::journal::{Enough, Folded, Leaving, Look};
use crate::plan::Plan;
use crate::stats::{Band, LOOKS, Level};

/// The first look that may give a run up. Fewer rounds project badly: one cell that took twice as long among eight or
/// eleven is still inside the interval, which looks as if no number of rounds would do; among fifteen it is outside.
const HOPELESS_FROM: u32 = LOOKS[2];

/// A run is given up only where a projection asks for more than so many times the rounds that there can be. The
/// projection is as uncertain as all else: of simulated runs that would have been decided in time, a projection taken at
/// its word from the first look on gave up a quarter.
const HOPELESS_BEYOND: u32 = 2;

/// How sure a judgement after this round is. `folded` has the looks that were made.
pub fn level(plan: &Plan, folded: &Folded, round: u32) -> Level {
    match folded.looks.iter().rev().find(|look| look.round == round && look.alpha > 0.0) {
        _ if plan.stop.rounds.is_some() => Level::ONLY,
        Some(look) => Level { alpha: look.alpha, ..Level::one_of_several(round, planned(plan)) },
        None => Level::one_of_several(round, planned(plan)),
    }
}

/// As many as may ever be in the race: the looks share alpha alike, whoever is vetoed on the way.
fn planned(plan: &Plan) -> usize {
    plan.targets.iter().filter(|target| !target.duplicate).count()
}

/// The rounds that are to be run before the next judgement, or were before the last.
pub fn rounds_planned(plan: &Plan, folded: &Folded) -> u32 {
    let last = folded.looks.last();
    let next = || LOOKS.into_iter().find(|round| *round > last.map_or(0, |look| look.round));
    match (plan.stop.rounds, last) {
        (Some(rounds), _) => rounds,
        (None, Some(look)) if look.end.is_some() => look.round,
        (None, _) => next().unwrap_or(plan.stop.most_rounds()),
    }
}

/// Looks after a round. With `budget_used` it is the last look, whatever it sees.
pub fn look(plan: &Plan, folded: &Folded, round: u32, budget_used: bool) -> Look {
    let observed = observe(folded, plan);
    let level = match plan.stop.rounds {
        Some(_) => Level::ONLY,
        None if budget_used => Level::last(round, planned(plan)),
        None => Level::one_of_several(round, planned(plan)),
    };
    let sight = Sight::new(plan, folded, &observed, level);
    let end = sight.end(round, budget_used);
    let rounds_needed = end.filter(|end| *end != Enough::Decided).and_then(|_| sight.needed());
    let needed_ns = rounds_needed.map(|needed| u64::from(needed.saturating_sub(round)) * sight.round_ns());
    let name = |target: &usize| observed.targets[*target].to_string();
    Look {
        round,
        alpha: level.alpha,
        best: sight.race.iter().flat_map(|race| race.members.iter().map(name)).collect(),
        leaving: if end.is_none() && plan.stop.race { sight.leaving() } else { Vec::new() },
        yardsticks: if end.is_none() && plan.stop.race { sight.yardsticks() } else { Vec::new() },
        end,
        rounds_needed,
        needed_ns,
        at: String::new(),
    }
}

/// All that a look sees.
struct Sight<'a> {
    plan: &'a Plan,
    folded: &'a Folded,
    observed: &'a Observed<'a>,
    scores: Vec<Rounds>,
    vetoes: Vec<Vec<Veto>>,
    twins: Option<(usize, usize)>,
    level: Level,
    race: Option<Race>,
}

impl<'a> Sight<'a> {
    fn new(plan: &'a Plan, folded: &'a Folded, observed: &'a Observed, level: Level) -> Sight<'a> {
        let scores = score(plan, observed, "time_ns", Combine::Sum);
        let works: Vec<&ObservedWork> = observed.works.iter().collect();
        let vetoes = vetoes(plan, observed, &works, &scores);
        let twins = twins(plan, observed);
        let noise = twins.and_then(|(reference, twin)| compare(&scores[twin], &scores[reference], level.confidence));
        let band = Band::new(plan.stop.threshold, noise.as_ref());
        let duplicate = twins.map(|(_, duplicate)| duplicate);
        let is_ranked = |target: &usize| vetoes[*target].is_empty() && Some(*target) != duplicate;
        let ranked: Vec<usize> = (0..observed.targets.len()).filter(is_ranked).collect();
        let race = race(&observed.while_racing(&scores), &ranked, Yardstick { level, band });
        Sight { plan, folded, observed, scores, vetoes, twins, level, race }
    }

    fn end(&self, round: u32, budget_used: bool) -> Option<Enough> {
        let rounds = self.plan.stop.most_rounds();
        let is_decided = || self.race.as_ref().is_some_and(Race::settled) && !self.is_refused();
        match self.plan.stop.precision {
            _ if self.plan.stop.rounds.is_some() && round < rounds => budget_used.then_some(Enough::Budget),
            _ if self.plan.stop.rounds.is_some() => Some(Enough::Rounds),
            None if is_decided() => Some(Enough::Decided),
            Some(precision) if self.is_precise(precision) => Some(Enough::Precise),
            _ if round >= rounds => Some(Enough::Rounds),
            _ if round >= LOOKS[0] && self.nothing_to_compare() => Some(Enough::Nothing),
            _ if budget_used => Some(Enough::Budget),
            _ if round >= HOPELESS_FROM && self.is_hopeless(HOPELESS_BEYOND * rounds) => Some(Enough::Hopeless),
            _ => None,
        }
    }

    /// A decision that cannot be trusted is none; more rounds may show that the difference was luck.
    fn is_refused(&self) -> bool {
        differs_from_itself(self.plan, self.observed, self.level.confidence).is_some()
    }

    /// No round will change that: fewer than two targets without a final veto.
    fn nothing_to_compare(&self) -> bool {
        let duplicate = self.twins.map(|(_, duplicate)| duplicate);
        let may_rank = |target: &usize| Some(*target) != duplicate && !self.vetoes[*target].iter().any(Veto::is_final);
        (0..self.observed.targets.len()).filter(may_rank).count() < 2
    }

    /// Rounds in all after which each comparison that is still too wide would be narrow enough.
    fn to_precision(&self, precision: f64) -> Vec<Option<u32>> {
        let goal = precision.ln_1p();
        let Some(reference) = self.reference() else { return Vec::new() };
        let of = |target: usize| {
            let found = compare(&self.scores[target], &self.scores[reference], self.level.confidence)?;
            let Some(half) = found.half_width() else { return Some(None) };
            // Widths shrink with the square root of the number of rounds.
            (half > goal).then(|| Some((found.n as f64 * (half / goal).powi(2)).ceil().min(1e9) as u32))
        };
        self.compared(reference).filter_map(of).collect()
    }

    fn is_precise(&self, precision: f64) -> bool {
        let any = self.reference().is_some_and(|reference| self.compared(reference).next().is_some());
        any && self.to_precision(precision).is_empty()
    }

    fn reference(&self) -> Option<usize> {
        let named = self.observed.targets.iter().position(|name| *name == self.plan.reference);
        named.or((!self.observed.targets.is_empty()).then_some(0))
    }

    /// Targets without a veto, but the reference.
    fn compared(&self, reference: usize) -> impl Iterator<Item = usize> {
        let sound = move |target: &usize| self.vetoes[*target].is_empty() && *target != reference;
        (0..self.observed.targets.len()).filter(sound)
    }

    /// Every question that is open would need more rounds than there can be.
    fn is_hopeless(&self, rounds: u32) -> bool {
        match self.plan.stop.precision {
            Some(precision) => self.to_precision(precision).iter().all(|needed| needed.is_none_or(|n| n > rounds)),
            None => {
                let is_open = |race: &Race| race.corrected && race.members.len() > 1;
                let fewest = |race: &Race| race.fewest_needed.is_none_or(|needed| needed > rounds);
                self.race.as_ref().is_some_and(|race| is_open(race) && fewest(race))
            }
        }
    }

    fn needed(&self) -> Option<u32> {
        match self.plan.stop.precision {
            Some(precision) => {
                self.to_precision(precision).into_iter().collect::<Option<Vec<u32>>>()?.into_iter().max()
            }
            None => self.race.as_ref()?.most_needed,
        }
    }

    /// Those that are beaten or out for good, unless they serve the others as a yardstick.
    fn leaving(&self) -> Vec<Leaving> {
        let twins = self.twins.map_or(Vec::new(), |(reference, duplicate)| vec![reference, duplicate]);
        let stays = |target: &usize| twins.contains(target) || self.reference() == Some(*target);
        let gone = |target: &usize| self.folded.looks.iter().any(|look| left_at(look, self.observed.targets[*target]));
        let here = (0..self.observed.targets.len()).filter(|target| !stays(target) && !gone(target));
        let leaving =
            |target: usize| Some(Leaving { target: self.observed.targets[target].into(), why: self.reason(target)? });
        here.filter_map(leaving).collect()
    }

    /// A reference that is beaten stays, but no longer as one that may win: what it does in further rounds, which others
    /// who were beaten do not get, must not turn the race.
    fn yardsticks(&self) -> Vec<String> {
        let beaten =
            |target: &usize| self.race.as_ref().is_some_and(|race| race.corrected && race.beaten_by[*target].is_some());
        let found = self.reference().filter(beaten).map(|target| self.observed.targets[target].to_string());
        found.into_iter().collect()
    }

    fn reason(&self, target: usize) -> Option<String> {
        if self.vetoes[target].iter().any(Veto::is_final) {
            return Some("out of the verdict".to_string());
        }
        let race = self.race.as_ref().filter(|race| race.corrected)?;
        let by = race.beaten_by[target]?;
        let wide = |precision: f64| {
            let found = compare(&self.scores[target], &self.scores[self.reference()?], self.level.confidence)?;
            Some(found.half_width()? > precision.ln_1p())
        };
        let too_wide = self.plan.stop.precision.is_some_and(|precision| wide(precision).unwrap_or(true));
        (!too_wide).then(|| format!("slower than {}", self.observed.targets[by]))
    }

    /// What a round of those that are still racing takes, from the ledgers of their cells so far.
    fn round_ns(&self) -> u64 {
        let mean = |times: Vec<u64>| times.iter().sum::<u64>() / times.len().max(1) as u64;
        let gone = |target: &usize| self.folded.looks.iter().any(|look| left_at(look, self.observed.targets[*target]));
        let works = |target: usize| self.observed.works.iter().map(move |work| &work.cells[target]);
        let cells = (0..self.observed.targets.len()).filter(|target| !gone(target)).flat_map(works);
        cells.map(|cells| mean(cells.values().map(|cell| cell.ledger.total_ns()).collect())).sum()
    }
}

fn left_at(look: &Look, target: &str) -> bool {
    look.leaving.iter().any(|leaving| leaving.target == target)
}
