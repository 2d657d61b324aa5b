//! One look: which targets leave the race, and whether the run has enough rounds.
//!
//! What stops a run: a decision, the precision that was asked for, the end of the looks, a budget, or the prospect that
//! no number of rounds that a run may have would decide. The last two stop it undecided, so they cannot name a wrong
//! target.

use super::eligibility::Veto;
use super::elimination::{Race, compare};
use super::judgement::Analysis;
use super::series::observe;
use crate::journal::{Enough, Folded, LeaveReason, Leaving, Look};
use crate::plan::Plan;
use crate::stats::{ALPHA, LOOKS, Level};

/// The first look that may give a run up. Fewer rounds project badly: one cell that took twice as long among eight or
/// eleven is still inside the interval, which looks as if no number of rounds would do; among fifteen it is outside.
const HOPELESS_FROM: u32 = LOOKS[2];

/// A run is given up only where a projection asks for more than so many times the rounds that there can be. The
/// projection is as uncertain as all else: of simulated runs that would have been decided in time, a projection taken at
/// its word from the first look on gave up a quarter.
const HOPELESS_BEYOND: u32 = 2;

/// How sure a judgement after this round is. `folded` has the looks that were made; whatever a journal says, none has
/// more than all of alpha to spend.
pub fn level(plan: &Plan, folded: &Folded, round: u32) -> Level {
    match folded.looks.iter().rev().find(|look| look.round == round && look.alpha > 0.0) {
        _ if plan.stop.rounds.is_some() => Level::ONLY,
        Some(look) => Level { alpha: look.alpha.min(ALPHA), ..Level::one_of_several(round, planned(plan)) },
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
    Analysis::of(plan, folded, observed, level).look(round, budget_used)
}

impl Analysis<'_> {
    fn look(&self, round: u32, budget_used: bool) -> Look {
        let end = self.end(round, budget_used);
        // Whoever takes up a run without hope has no use for those that are beaten.
        let may_go_on = matches!(end, None | Some(Enough::Hopeless));
        let rounds_needed = end.filter(|end| *end != Enough::Decided).and_then(|_| self.needed());
        let needed_ns =
            rounds_needed.map(|needed| u64::from(needed.saturating_sub(round)).saturating_mul(self.round_ns()));
        let name = |target: &usize| self.observed.targets[*target].to_string();
        Look {
            round,
            alpha: self.level.alpha,
            best: self.race().iter().flat_map(|race| race.members.iter().map(name)).collect(),
            leaving: if may_go_on && self.plan.stop.race { self.leaving() } else { Vec::new() },
            yardsticks: if may_go_on && self.plan.stop.race { self.yardsticks() } else { Vec::new() },
            end,
            rounds_needed,
            needed_ns,
            at: String::new(),
        }
    }

    fn race(&self) -> Option<&Race> {
        self.verdict.contest.race.as_ref()
    }

    fn end(&self, round: u32, budget_used: bool) -> Option<Enough> {
        let rounds = self.plan.stop.most_rounds();
        let is_settled = |race: &Race| race.settled() && self.worth_settling(race).is_empty();
        // A decision that cannot be trusted is none; more rounds may show that the difference was luck.
        let is_decided = || self.race().is_some_and(is_settled) && self.refused.is_none();
        match self.plan.stop.precision {
            _ if self.plan.stop.rounds.is_some() && round < rounds => budget_used.then_some(Enough::Budget),
            _ if self.plan.stop.rounds.is_some() => Some(Enough::Rounds),
            None if is_decided() => Some(Enough::Decided),
            Some(precision) if self.is_precise(precision) => Some(Enough::Precise),
            _ if round >= rounds => Some(Enough::Rounds),
            _ if round >= LOOKS[0] && self.nothing_to_compare() => Some(Enough::Nothing),
            None if self.is_stuck() => Some(Enough::Nothing),
            _ if budget_used => Some(Enough::Budget),
            _ if round >= HOPELESS_FROM && self.is_hopeless(HOPELESS_BEYOND * rounds) => Some(Enough::Hopeless),
            _ => None,
        }
    }

    /// One is left, but of these it is open whether the difference matters, and there are rounds enough to tell.
    fn worth_settling(&self, race: &Race) -> Vec<usize> {
        let rounds = self.plan.stop.most_rounds();
        let is_out = |look: &Look, name: &str| left_at(look, name) || look.yardsticks.iter().any(|stays| stays == name);
        let is_here = |target: usize| !self.folded.looks.iter().any(|look| is_out(look, self.observed.targets[target]));
        let open = race.may_not_matter.iter().filter(|(target, needed)| *needed <= rounds && is_here(*target));
        open.map(|(target, _)| *target).collect()
    }

    /// No round will change that: fewer than two targets without a final veto.
    fn nothing_to_compare(&self) -> bool {
        self.may_rank().count() < 2
    }

    fn may_rank(&self) -> impl Iterator<Item = usize> {
        let duplicate = self.twins.map(|(_, duplicate)| duplicate);
        let is_out = |target: usize| self.verdict.vetoes[target].iter().any(Veto::is_final);
        (0..self.observed.targets.len()).filter(move |target| Some(*target) != duplicate && !is_out(*target))
    }

    /// What is open is how one or none that still takes part compares with those that have left for good.
    fn is_stuck(&self) -> bool {
        let Some(race) = self.race().filter(|race| !race.gone.is_empty()) else { return false };
        let is_here = |target: &usize| !self.observed.is_out_of_race(*target) && race.beaten_by[*target].is_none();
        let here: Vec<usize> = self.may_rank().filter(is_here).collect();
        // One that is vetoed for now may come back and beat them again.
        here.len() < 2 && here.iter().all(|target| self.verdict.vetoes[*target].is_empty())
    }

    /// Rounds in all after which each comparison that is still too wide would be narrow enough.
    fn to_precision(&self, precision: f64) -> Vec<Option<u32>> {
        let goal = precision.ln_1p();
        let Some(reference) = self.verdict.reference else { return Vec::new() };
        let of = |target: usize| {
            // What cannot be compared at all is not precise either.
            let found = compare(&self.verdict.values[target], &self.verdict.values[reference], self.level.confidence);
            let Some((n, half)) = found.and_then(|found| Some((found.n, found.half_width()?))) else {
                return Some(None);
            };
            // Widths shrink with the square root of the number of rounds.
            (half > goal).then(|| Some((n as f64 * (half / goal).powi(2)).ceil().min(1e9) as u32))
        };
        self.compared(reference).filter_map(of).collect()
    }

    fn is_precise(&self, precision: f64) -> bool {
        let any = self.verdict.reference.is_some_and(|reference| self.compared(reference).next().is_some());
        any && self.to_precision(precision).is_empty()
    }

    /// Targets without a veto, but the reference.
    fn compared(&self, reference: usize) -> impl Iterator<Item = usize> {
        let sound = move |target: &usize| self.verdict.vetoes[*target].is_empty() && *target != reference;
        (0..self.observed.targets.len()).filter(sound)
    }

    /// Every question that is open would need more rounds than there can be.
    fn is_hopeless(&self, rounds: u32) -> bool {
        match self.plan.stop.precision {
            Some(precision) => self.to_precision(precision).iter().all(|needed| needed.is_none_or(|n| n > rounds)),
            None => {
                let is_open = |race: &Race| race.corrected && race.members.len() > 1;
                let fewest = |race: &Race| race.fewest_needed.is_none_or(|needed| needed > rounds);
                self.race().is_some_and(|race| is_open(race) && fewest(race))
            }
        }
    }

    fn needed(&self) -> Option<u32> {
        match self.plan.stop.precision {
            Some(precision) => {
                self.to_precision(precision).into_iter().collect::<Option<Vec<u32>>>()?.into_iter().max()
            }
            None => self.race()?.most_needed,
        }
    }

    /// Those that are beaten or out for good, unless they serve the others as a yardstick.
    fn leaving(&self) -> Vec<Leaving> {
        let twins = self.twins.map_or(Vec::new(), |(reference, duplicate)| vec![reference, duplicate]);
        let stays = |target: &usize| twins.contains(target) || self.verdict.reference == Some(*target);
        let gone = |target: &usize| self.folded.looks.iter().any(|look| left_at(look, self.observed.targets[*target]));
        let here = (0..self.observed.targets.len()).filter(|target| !stays(target) && !gone(target));
        let leaving =
            |target: usize| Some(Leaving { target: self.observed.targets[target].into(), why: self.reason(target)? });
        here.filter_map(leaving).collect()
    }

    /// A reference that is beaten stays, but no longer as one that may win: what it does in further rounds, which others
    /// who were beaten do not get, must not turn the race.
    fn yardsticks(&self) -> Vec<String> {
        let is_out = |race: &Race, target: usize| {
            race.corrected && race.beaten_by[target].is_some() && !self.worth_settling(race).contains(&target)
        };
        let beaten = |target: &usize| self.race().is_some_and(|race| is_out(race, *target));
        let found = self.verdict.reference.filter(beaten).map(|target| self.observed.targets[target].to_string());
        found.into_iter().collect()
    }

    fn reason(&self, target: usize) -> Option<LeaveReason> {
        if self.verdict.vetoes[target].iter().any(Veto::is_final) {
            return Some(LeaveReason::Vetoed);
        }
        let race = self.race().filter(|race| race.corrected)?;
        let by = race.beaten_by[target].filter(|_| !self.worth_settling(race).contains(&target))?;
        let wide = |precision: f64| {
            let found = compare(
                &self.verdict.values[target],
                &self.verdict.values[self.verdict.reference?],
                self.level.confidence,
            )?;
            Some(found.half_width()? > precision.ln_1p())
        };
        let too_wide = self.plan.stop.precision.is_some_and(|precision| wide(precision).unwrap_or(true));
        (!too_wide).then(|| LeaveReason::SlowerThan(self.observed.targets[by].to_string()))
    }

    /// What a round of those that are still racing takes, from the ledgers of their cells so far.
    fn round_ns(&self) -> u64 {
        let mean =
            |times: Vec<u64>| times.iter().fold(0, |all: u64, ns| all.saturating_add(*ns)) / times.len().max(1) as u64;
        let gone = |target: &usize| self.folded.looks.iter().any(|look| left_at(look, self.observed.targets[*target]));
        let works = |target: usize| self.observed.works.iter().map(move |work| &work.cells[target]);
        let cells = (0..self.observed.targets.len()).filter(|target| !gone(target)).flat_map(works);
        cells
            .map(|cells| mean(cells.values().map(|cell| cell.ledger.total_ns()).collect()))
            .fold(0, u64::saturating_add)
    }
}

fn left_at(look: &Look, target: &str) -> bool {
    look.leaving.iter().any(|leaving| leaving.target == target)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;
    use crate::journal::Outcome;
    use crate::plan::{Limit, Stop};

    /// Name, level and width of the noise of a target; level 0 fails, below it is skipped.
    type Targets = &'static [(&'static str, f64, f64)];

    /// Noise that is fixed, different for each target, and as often to the one side as to the other.
    fn made(targets: Targets, stop: Stop, rounds: u32) -> MadeUp {
        let mut made = MadeUp::new(&targets.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
        made.plan.stop = stop;
        for round in 1..=rounds {
            for (at, (name, level, width)) in targets.iter().enumerate() {
                let noise = (f64::from(round) * (at as f64 * 0.7 + 1.9)).sin();
                match *level {
                    0.0 => made.cell(name, round, Outcome::Failed("full".into()), &[]),
                    level if level < 0.0 => made.cell(name, round, Outcome::Skipped(vec!["no mkfs".into()]), &[]),
                    level => made.done(name, round, 1e9 * level * (width * noise).exp()),
                }
            }
        }
        made
    }

    /// "decided; best b, a; c: slower than a; 15 in all".
    fn told(look: &Look) -> String {
        let end = look.end.map_or("goes on".to_string(), |end| format!("{end:?}").to_lowercase());
        let leaving = look.leaving.iter().map(|leaving| match &leaving.why {
            LeaveReason::SlowerThan(by) => format!("; {}: slower than {by}", leaving.target),
            why => format!("; {}: {why:?}", leaving.target).to_lowercase(),
        });
        let needed = look.rounds_needed.map(|needed| format!("; {needed} in all")).unwrap_or_default();
        format!("{end}; best {}{}{needed}", look.best.join(" "), leaving.collect::<String>())
    }

    const FREE: Stop = Stop { rounds: None, precision: None, race: true, budget_ns: None, cell_ns: 1, threshold: 0.03 };
    const KEEP_ALL: Stop = Stop { race: false, ..FREE };
    const FIXED: Stop = Stop { rounds: Some(10), ..FREE };
    const PRECISE: Stop = Stop { precision: Some(0.02), ..FREE };

    const QUIET: f64 = 0.005;
    const LOUD: f64 = 0.2;

    const APART: Targets = &[("a", 1.0, QUIET), ("A", 1.0, QUIET), ("b", 1.2, QUIET)];
    const SAME: Targets = &[("a", 1.0, QUIET), ("A", 1.0, QUIET), ("b", 1.0, QUIET)];
    const OPEN: Targets = &[("a", 1.0, 0.045), ("A", 1.0, QUIET), ("b", 1.0, 0.045), ("c", 1.6, QUIET)];
    const HARD: Targets = &[("a", 1.0, LOUD), ("A", 1.0, LOUD), ("b", 1.05, LOUD), ("c", 4.0, LOUD)];
    const SLOW: Targets = &[("a", 1.6, QUIET), ("A", 1.6, QUIET), ("b", 1.0, 0.033), ("c", 1.0, 0.033)];
    const UNLIKE_ITSELF: Targets = &[("a", 1.0, QUIET), ("A", 1.05, QUIET), ("b", 1.2, QUIET)];
    const LITTLE: Targets = &[("a", 1.0, 0.010), ("A", 1.0, QUIET), ("b", 1.02, 0.010)];
    const BARELY: Targets = &[("a", 1.0, 0.016), ("A", 1.0, QUIET), ("b", 1.031, 0.016)];
    const FAILING: Targets = &[("a", 1.0, 0.045), ("A", 1.0, QUIET), ("b", 1.0, 0.045), ("c", 0.0, QUIET)];
    const ONE_LEFT: Targets = &[("a", 1.0, QUIET), ("A", 1.0, QUIET), ("b", 0.0, QUIET)];
    const ONE_NOT_THERE: Targets = &[("a", 1.0, QUIET), ("A", 1.0, QUIET), ("b", -1.0, QUIET)];
    const NO_REFERENCE: Targets = &[("a", 0.0, QUIET), ("A", 0.0, QUIET), ("b", 1.2, QUIET), ("c", 1.0, QUIET)];
    const HALF_KNOWN: Targets = &[("a", 1.0, QUIET), ("A", 1.0, QUIET), ("b", 1.2, 0.05), ("c", 1.2, QUIET)];

    /// Targets, when to stop, the round, whether the budget is used up, and what the look says.
    const LOOKS_AND_ENDS: &[(&str, Targets, Stop, u32, bool, &str)] = &[
        ("one is left", APART, FREE, 8, false, "decided; best a"),
        ("all are the same", SAME, FREE, 8, false, "decided; best b a"),
        ("a decision counts though the budget is used up", APART, FREE, 9, true, "decided; best a"),
        ("three rounds bear no race", APART, FREE, 3, true, "budget; best a"),
        ("who is beaten leaves", OPEN, FREE, 8, false, "goes on; best b a; c: slower than b"),
        ("or stays where the plan says so", OPEN, KEEP_ALL, 8, false, "goes on; best b a"),
        ("who has failed leaves", FAILING, FREE, 8, false, "goes on; best b a; c: vetoed"),
        ("the yardsticks stay", SLOW, FREE, 8, false, "goes on; best c b"),
        ("who differs from itself decides nothing", UNLIKE_ITSELF, FREE, 8, false, "goes on; best a; b: slower than a"),
        ("a little slower may not matter", LITTLE, FREE, 8, false, "goes on; best a"),
        ("and may not matter in the end", LITTLE, FREE, 28, false, "decided; best a b"),
        ("a little slower, and no rounds to tell", BARELY, FREE, 8, false, "decided; best a"),
        ("nobody leaves a run that ends", OPEN, FREE, 9, true, "budget; best b a; 25 in all"),
        ("too early to give up", HARD, FREE, 11, false, "goes on; best b a; c: slower than a"),
        ("no hope", HARD, FREE, 15, false, "hopeless; best a b; c: slower than a; 517 in all"),
        ("no hope is told only at a look", HARD, FREE, 7, true, "budget; best a b; 591 in all"),
        ("the last round", HARD, FREE, 40, false, "rounds; best a b; 166 in all"),
        ("nothing to compare", ONE_LEFT, FREE, 8, false, "nothing; best "),
        ("nor where the other one's program is not there", ONE_NOT_THERE, FREE, 8, false, "nothing; best "),
        ("nor with a budget", ONE_LEFT, FREE, 9, true, "nothing; best "),
        ("a fixed number of rounds", HARD, FIXED, 10, false, "rounds; best a b; 75 in all"),
        ("that a budget cuts short", APART, FIXED, 9, true, "budget; best a"),
        ("precise", APART, PRECISE, 8, false, "precise; best a"),
        (
            "precise against another target where the reference fails",
            NO_REFERENCE,
            PRECISE,
            8,
            false,
            "precise; best c",
        ),
        ("not precise before there is an interval", NO_REFERENCE, PRECISE, 2, true, "budget; best "),
        ("not yet precise, though decided", HALF_KNOWN, PRECISE, 8, false, "goes on; best a; c: slower than a"),
        ("never precise", HARD, PRECISE, 15, false, "hopeless; best a b; 899 in all"),
    ];

    #[test]
    fn every_end_has_its_reason() {
        for (name, targets, stop, round, budget_used, wanted) in LOOKS_AND_ENDS {
            let made = made(targets, *stop, *round);
            assert_eq!(told(&look(&made.plan, &made.folded, *round, *budget_used)), *wanted, "{name}");
        }
    }

    /// The looks of a run share 5 %; one look alone has them all, and the last takes what is left.
    #[test]
    fn each_look_says_what_it_has_spent() {
        let cases = [(FREE, 8, false, 0.05 / 6.0), (FREE, 9, true, 0.05 * 5.0 / 6.0), (FIXED, 10, false, 0.05)];
        for (stop, round, budget_used, wanted) in cases {
            let made = made(OPEN, stop, round);
            let found = look(&made.plan, &made.folded, round, budget_used);
            assert!((found.alpha - wanted).abs() < 1e-12, "{} after {round}", found.alpha);
        }
    }

    /// An alpha above 1 is no chance, and quantiles of it end the program.
    #[test]
    fn no_journal_buys_a_looser_level() {
        let mut made = made(OPEN, FREE, 8);
        for (told, wanted) in [(0.004, 0.004), (10.0, 0.05), (-1.0, 0.05 / 6.0)] {
            made.folded.looks = vec![Look { round: 8, alpha: told, ..Look::default() }];
            let found = level(&made.plan, &made.folded, 8).alpha;
            assert!((found - wanted).abs() < 1e-12, "{found} of {told}");
        }
    }

    #[test]
    fn who_has_left_leaves_once() {
        let mut made = made(OPEN, FREE, 8);
        made.leaves("c", 8);
        for round in 9..=11 {
            for (name, time) in [("a", 1.0), ("A", 1.0), ("b", if round % 2 == 0 { 1.04 } else { 0.96 })] {
                made.done(name, round, time * 1e9);
            }
        }
        let found = look(&made.plan, &made.folded, 11, false);
        assert_eq!((found.best.contains(&"c".to_string()), found.leaving), (false, vec![]));
    }

    /// Two that are level, and one that is over a limit in every round, or never finishes.
    #[test]
    fn who_will_never_be_ranked_leaves_and_holds_nobody_up() {
        let limit = Limit { phase: None, metric: "space_grown_bytes".into(), at_most: 2e9 };
        let run = |over: &[&str], never: &[&str]| {
            let mut made = MadeUp::new(&["a", "A", "b", "c"]);
            made.plan.verdict.limits = vec![limit.clone()];
            for round in 1..=8 {
                for (at, name) in ["a", "A", "b", "c"].into_iter().enumerate() {
                    let noise = 0.045 * (f64::from(round) * (at as f64 * 0.7 + 1.9)).sin();
                    let space = if over.contains(&name) { 3e9 } else { 1e9 };
                    let time = if never.contains(&name) { "other_ns" } else { "time_ns" };
                    let samples = [("read", time, 1e9 * noise.exp()), ("read", "space_grown_bytes", space)];
                    made.cell(name, round, Outcome::Done, &samples);
                }
            }
            told(&look(&made.plan, &made.folded, 8, false))
        };
        assert_eq!(run(&["c"], &[]), "goes on; best b a; c: vetoed");
        assert_eq!(run(&[], &["c"]), "goes on; best b a; c: vetoed");
        assert_eq!(run(&["c"], &["b"]), "nothing; best ");
        assert_eq!(run(&["b", "c"], &[]), "nothing; best ");
    }

    /// `c` was beaten by `b`, which then fails: it may still be the best, but no round of `a` alone will tell.
    #[test]
    fn who_has_left_decides_nothing_once_nobody_beats_it() {
        for (level_of_c, wanted) in [(0.9, "nothing; best c"), (1.0, "nothing; best a c"), (1.2, "decided; best a")] {
            let targets = [("a", 1.0), ("A", 1.0), ("b", 0.8), ("c", level_of_c)];
            let mut made = MadeUp::new(&targets.map(|(name, _)| name));
            let wobble = |round: u32, at: usize| 1.0 + 0.005 * (f64::from(round) * (at as f64 * 0.7 + 1.9)).sin();
            for round in 1..=8 {
                for (at, (name, level)) in targets.into_iter().enumerate() {
                    // Now above the others and now below: level with `a`, by more than matters.
                    let swing =
                        if name == "c" && level == 1.0 { 1.0 + 0.05 * f64::from(round % 2) - 0.025 } else { 1.0 };
                    made.done(name, round, 1e9 * level * swing * wobble(round, at));
                }
            }
            made.leaves("c", 8);
            for round in 9..=11 {
                made.done("a", round, 1e9);
                made.done("A", round, 1e9);
                made.cell("b", round, Outcome::Failed("full".into()), &[]);
            }
            let found = look(&made.plan, &made.folded, 11, false);
            let told = told(&found);
            assert!(told.starts_with(wanted), "{told}");
        }
    }

    /// `b` beat `c` and is a little over a limit now: it may come back.
    #[test]
    fn a_run_waits_for_who_may_come_back() {
        let mut made = MadeUp::new(&["a", "A", "b", "c"]);
        made.plan.verdict.limits = vec![Limit { phase: None, metric: "space_grown_bytes".into(), at_most: 2e9 }];
        let wobble = |round: u32, at: usize| 1.0 + 0.005 * (f64::from(round) * (at as f64 * 0.7 + 1.9)).sin();
        for round in 1..=11 {
            let racing = [("a", 1.0), ("A", 1.0), ("b", 0.8), ("c", 0.9)];
            for (at, (name, level)) in racing.into_iter().enumerate().filter(|(at, _)| *at < 3 || round <= 8) {
                let space = if name == "b" && round > 5 { 3e9 } else { 1e9 };
                let samples =
                    [("read", "time_ns", 1e9 * level * wobble(round, at)), ("read", "space_grown_bytes", space)];
                made.cell(name, round, Outcome::Done, &samples);
            }
        }
        made.leaves("c", 8);
        assert_eq!(told(&look(&made.plan, &made.folded, 11, false)), "goes on; best c");
    }

    /// 2 targets and the duplicate, a second each.
    #[test]
    fn what_is_missing_is_told_in_time() {
        let made = made(HARD, FREE, 9);
        let found = look(&made.plan, &made.folded, 9, true);
        let missing = found.rounds_needed.map(|needed| u64::from(needed - 9) * 4_000_000_000);
        assert!(missing.is_some() && found.needed_ns == missing, "{found:?}");
    }
}
