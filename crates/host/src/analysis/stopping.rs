//! One look: which targets leave the race, and whether the run has enough rounds.
//!
//! What stops a run: a pick that is good enough, the precision that was asked for, the end of the
//! looks, or a budget. Whatever stops it, there is a pick, and a bound on how much slower than the
//! best it can be. No run is given up: an estimate says too little about how many rounds a decision
//! would take.

use super::eligibility::Veto;
use super::elimination::Race;
use super::judgement::Analysis;
use super::series::observe;
use pickfs_core::journal::{Folded, LeaveReason, Leaving, Look, StopReason};
use pickfs_core::plan::Plan;
use pickfs_stats::Schedule;

/// The first round after which a precision may end the run, or a lack of anything to compare.
const FULL_FROM: u32 = 8;

/// The looks that have been made, and what each may spend; without any, the one look at all rounds.
pub(crate) fn looks_made(plan: &Plan, folded: &Folded, last_round: u32) -> Vec<pickfs_stats::Look> {
    let made = folded.rounds_of_looks();
    match plan.stop.rounds {
        None if !made.is_empty() => plan.looks.spent(&made),
        _ => vec![pickfs_stats::Look::only(last_round)],
    }
}

/// The rounds that are to be run before the next judgement, or were before the last.
pub(crate) fn rounds_planned(plan: &Plan, folded: &Folded) -> u32 {
    let last = folded.looks.last();
    let next = || plan.looks.next(last.map_or(0, |look| look.round));
    match (plan.stop.rounds, last) {
        (Some(rounds), _) => rounds,
        (None, Some(look)) if look.end.is_some() => look.round,
        (None, _) => next().unwrap_or(plan.stop.most_rounds()),
    }
}

/// Looks after a round. With `budget_used` it is the last look, whatever it sees.
pub fn look(plan: &Plan, folded: &Folded, round: u32, budget_used: bool) -> Look {
    let looks = match plan.stop.rounds {
        Some(_) => vec![pickfs_stats::Look::only(round)],
        None => plan.looks.spent(&[folded.rounds_of_looks(), vec![round]].concat()),
    };
    Analysis::of(plan, folded, observe(folded, plan), looks).look(round, budget_used)
}

impl Analysis<'_> {
    fn look(&self, round: u32, budget_used: bool) -> Look {
        let end = self.end(round, budget_used);
        let rounds_needed = end.filter(|end| *end != StopReason::Decided).and_then(|_| self.needed());
        // No session can ask for more rounds than the run may have.
        let can_have = |needed: u32| needed.min(self.plan.stop.most_rounds()).saturating_sub(round);
        let needed_ns = rounds_needed.map(|needed| u64::from(can_have(needed)).saturating_mul(self.round_ns()));
        let name = |target: usize| self.observed.targets[target].to_string();
        let race = self.race();
        Look {
            round,
            alpha: self.looks.iter().find(|look| look.rounds == round).map_or(0.0, |look| look.alpha),
            best: race.map(|race| race.members.iter().copied().map(name).collect()).unwrap_or_default(),
            pick: race.map(|race| name(race.pick)).unwrap_or_default(),
            at_most_slower: race.map(Race::bound).filter(|bound| bound.is_finite()).map(to_millionths),
            leaving: if end.is_none() && self.plan.stop.race { self.leaving(round) } else { Vec::new() },
            end,
            rounds_needed,
            needed_ns,
            ..Look::default()
        }
    }

    fn race(&self) -> Option<&Race> {
        self.verdict.contest.race.as_ref()
    }

    fn end(&self, round: u32, budget_used: bool) -> Option<StopReason> {
        let rounds = self.plan.stop.most_rounds();
        let is_decided = || self.race().is_some_and(Race::is_enough);
        match self.plan.stop.precision {
            _ if self.plan.stop.rounds.is_some() && round < rounds => budget_used.then_some(StopReason::Budget),
            _ if self.plan.stop.rounds.is_some() => Some(StopReason::Rounds),
            None if is_decided() => Some(StopReason::Decided),
            Some(precision) if round >= FULL_FROM && self.is_precise(precision) => Some(StopReason::Precise),
            _ if round >= rounds => Some(StopReason::Rounds),
            _ if round >= FULL_FROM && self.nothing_to_compare() => Some(StopReason::Nothing),
            None if self.is_stuck() => Some(StopReason::Nothing),
            _ if budget_used => Some(StopReason::Budget),
            _ => None,
        }
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

    /// What is open is how at most one remaining target compares with targets that are out for
    /// good.
    fn is_stuck(&self) -> bool {
        let Some(race) = self.race() else { return false };
        let has_left =
            |target: usize| self.folded.looks.iter().any(|look| left_at(look, self.observed.targets[target]));
        let here: Vec<usize> = self.may_rank().filter(|at| !has_left(*at) && race.beaten_by[*at].is_none()).collect();
        // One that is vetoed for now may come back and beat them again.
        here.len() < 2 && here.iter().all(|target| self.verdict.vetoes[*target].is_empty())
    }

    /// Rounds in all after which each comparison that is still too wide would be narrow enough.
    fn to_precision(&self, precision: f64) -> Vec<Option<u32>> {
        let goal = precision.ln_1p();
        let Some(reference) = self.verdict.reference else { return Vec::new() };
        let of = |target: usize| {
            // What cannot be compared at all is not precise either.
            let found = self.verdict.contest.pairs.get(target, reference).map(|pair| pair.estimate);
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

    /// Targets without a veto, but the reference and its copy.
    fn compared(&self, reference: usize) -> impl Iterator<Item = usize> {
        let is_copy = |target: usize| self.verdict.duplicate == Some(target);
        let sound =
            move |target: &usize| self.verdict.vetoes[*target].is_empty() && *target != reference && !is_copy(*target);
        (0..self.observed.targets.len()).filter(sound)
    }

    fn needed(&self) -> Option<u32> {
        match self.plan.stop.precision {
            Some(precision) => {
                self.to_precision(precision).into_iter().collect::<Option<Vec<u32>>>()?.into_iter().max()
            }
            None => self.race()?.rounds_needed()?[1],
        }
    }

    /// The targets that are beaten or out for good. The reference's copy goes with it; in journals
    /// of ten looks both stayed, and where a precision is asked for, all are compared with the
    /// reference.
    fn leaving(&self, round: u32) -> Vec<Leaving> {
        let (reference, copy) = self.twins.unzip();
        let is_reference = |target: &usize| [reference, self.verdict.reference].contains(&Some(*target));
        let is_kept = self.plan.looks == Schedule::Ten || self.plan.stop.precision.is_some();
        let stays = |target: &usize| copy == Some(*target) || (is_kept && is_reference(target));
        let gone = |target: &usize| self.folded.looks.iter().any(|look| left_at(look, self.observed.targets[*target]));
        let here = (0..self.observed.targets.len()).filter(|target| !stays(target) && !gone(target));
        let leaving = |target: usize| {
            Some(Leaving { target: self.observed.targets[target].into(), why: self.reason(target, round)? })
        };
        here.filter_map(leaving).collect()
    }

    fn reason(&self, target: usize, round: u32) -> Option<LeaveReason> {
        if self.verdict.vetoes[target].iter().any(Veto::is_final) {
            return Some(LeaveReason::Vetoed);
        }
        let by = self.race()?.beaten_by[target]?;
        let wide = |precision: f64| {
            let found = self.verdict.contest.pairs.get(target, self.verdict.reference?)?;
            Some(found.estimate.half_width()? > precision.ln_1p())
        };
        // With few rounds, an interval may be narrow by chance.
        let too_wide = |precision: f64| round < FULL_FROM || wide(precision).unwrap_or(true);
        let too_wide = self.plan.stop.precision.is_some_and(too_wide);
        (!too_wide).then(|| LeaveReason::SlowerThan(self.observed.targets[by].to_string()))
    }

    /// What a round of the remaining targets takes, from the ledgers of their cells so far.
    pub(crate) fn round_ns(&self) -> u64 {
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

/// A number that a journal gives back unchanged.
fn to_millionths(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

fn left_at(look: &Look, target: &str) -> bool {
    look.leaving.iter().any(|leaving| leaving.target == target)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;
    use pickfs_core::journal::Outcome;
    use pickfs_core::plan::{Limit, Stop};

    /// Name, level and width of the noise of a target; level 0 fails, below it is skipped.
    type Targets = &'static [(&'static str, f64, f64)];

    /// Noise that is fixed, different for each target, and as often to the one side as to the
    /// other.
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

    /// "decided; best b, a; c: slower than a; more in all".
    fn shown(look: &Look) -> String {
        let end = look.end.map_or("goes on".to_string(), |end| format!("{end:?}").to_lowercase());
        let leaving = look.leaving.iter().map(|leaving| match &leaving.why {
            LeaveReason::SlowerThan(by) => format!("; {}: slower than {by}", leaving.target),
            why => format!("; {}: {why:?}", leaving.target).to_lowercase(),
        });
        let more = look.rounds_needed.is_some_and(|needed| needed > look.round);
        let needed = if more { "; more in all" } else { "" };
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
        ("all are the same", SAME, FREE, 8, false, "decided; best a b"),
        ("a decision counts though the budget is used up", APART, FREE, 9, true, "decided; best a"),
        ("three rounds bear a decision", APART, FREE, 3, true, "decided; best a"),
        ("who is beaten leaves", OPEN, FREE, 8, false, "goes on; best b a; c: slower than b"),
        ("or stays where the plan says so", OPEN, KEEP_ALL, 8, false, "goes on; best b a"),
        ("who has failed leaves", FAILING, FREE, 8, false, "goes on; best b a; c: vetoed"),
        ("a beaten reference leaves", SLOW, FREE, 8, false, "goes on; best c b; a: slower than c"),
        ("who differs from itself by less than others differ", UNLIKE_ITSELF, FREE, 8, false, "decided; best a"),
        ("a little slower is decided at once", LITTLE, FREE, 8, false, "decided; best a"),
        ("and may not matter in the end", LITTLE, FREE, 28, false, "decided; best a"),
        ("a little slower, and no rounds to tell", BARELY, FREE, 8, false, "decided; best a"),
        ("nobody leaves a run that ends", OPEN, FREE, 9, true, "budget; best a b; more in all"),
        ("noise is no reason to stop", HARD, FREE, 11, false, "goes on; best a b; c: slower than a"),
        ("nor is it later", HARD, FREE, 15, false, "goes on; best a b; c: slower than a"),
        ("a budget ends what is open", HARD, FREE, 7, true, "budget; best a b; more in all"),
        ("the last round", HARD, FREE, 40, false, "rounds; best a b; more in all"),
        ("nothing to compare", ONE_LEFT, FREE, 8, false, "nothing; best "),
        ("nor where the other one's program is not there", ONE_NOT_THERE, FREE, 8, false, "nothing; best "),
        ("nor with a budget", ONE_LEFT, FREE, 9, true, "nothing; best "),
        ("a fixed number of rounds", HARD, FIXED, 10, false, "rounds; best a b; more in all"),
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
        ("not yet precise, though decided", HALF_KNOWN, PRECISE, 8, false, "goes on; best a"),
        ("nor does one leave with an interval of six rounds", HALF_KNOWN, PRECISE, 6, false, "goes on; best a"),
        ("not yet precise, however unlikely", HARD, PRECISE, 15, false, "goes on; best a b"),
    ];

    #[test]
    fn every_end_has_its_reason() {
        let mut wrong = Vec::new();
        for (name, targets, stop, round, budget_used, wanted) in LOOKS_AND_ENDS {
            let made = made(targets, *stop, *round);
            let found = shown(&look(&made.plan, &made.folded, *round, *budget_used));
            wrong.extend((found != *wanted).then(|| format!("{name}: {found}, not {wanted}")));
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// The looks of a run share 5 %; one look alone has them all, whatever makes it.
    #[test]
    fn each_look_says_what_it_has_spent() {
        let cases =
            [(FREE, 3, false, 0.001), (FREE, 10, false, 0.0046), (FREE, 10, true, 0.0046), (FIXED, 10, false, 0.05)];
        for (stop, round, budget_used, wanted) in cases {
            let made = made(OPEN, stop, round);
            let found = look(&made.plan, &made.folded, round, budget_used);
            assert!((found.alpha - wanted).abs() < 1e-12, "{} after {round}", found.alpha);
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
            shown(&look(&made.plan, &made.folded, 8, false))
        };
        assert_eq!(run(&["c"], &[]), "goes on; best b a; c: vetoed");
        assert_eq!(run(&[], &["c"]), "goes on; best b a; c: vetoed");
        assert_eq!(run(&["c"], &["b"]), "nothing; best ");
        assert_eq!(run(&["b", "c"], &[]), "nothing; best ");
    }

    /// Three targets and the duplicate, a second each, and no more rounds than the run may have.
    #[test]
    fn what_is_missing_is_told_in_time() {
        let made = made(HARD, FREE, 9);
        let found = look(&made.plan, &made.folded, 9, true);
        let missing = found.rounds_needed.map(|needed| u64::from(needed.min(40) - 9) * 4_000_000_000);
        assert!(found.rounds_needed > Some(40) && found.needed_ns == missing, "{found:?}");
    }
}
