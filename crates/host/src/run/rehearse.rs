//! The same rounds and looks, with simulated results: to forecast how long a plan will take, and to
//! test the very rules of a run.

use super::progress::{Progress, Silent};
use super::rounds::{Doer, measure};
use crate::analysis::observe;
use anyhow::Result;
use pickfs_core::journal::*;
use pickfs_core::plan::{Cell, Plan};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BTreeSet};

/// Goes through a plan's rounds without any machine and without its time budget, as a rehearsal
/// takes no time. `result` returns what a cell gives: (phase, nanoseconds), or `None` for a cell
/// that fails. Returns all that a journal would hold.
pub fn rehearse(plan: &Plan, result: impl FnMut(&Cell) -> Option<Vec<(String, f64)>>) -> Result<Folded> {
    rehearse_within(plan, result, || false)
}

/// The same, where the budget may be used up.
fn rehearse_within(
    plan: &Plan,
    result: impl FnMut(&Cell) -> Option<Vec<(String, f64)>>,
    is_used: impl Fn() -> bool,
) -> Result<Folded> {
    let run = Run { schema: SCHEMA, plan: plan.clone(), ..Run::default() };
    let mut actor = Actor { folded: Folded::default(), result, is_used };
    actor.folded.take(Record::Run(Box::new(run)));
    measure(&mut actor, &mut Silent)?;
    Ok(actor.folded)
}

struct Actor<F, U> {
    folded: Folded,
    result: F,
    is_used: U,
}

impl<F: FnMut(&Cell) -> Option<Vec<(String, f64)>>, U: Fn() -> bool> Doer for Actor<F, U> {
    fn cell(&mut self, cell: &Cell, _: &mut dyn Progress) -> Result<Option<Outcome>> {
        let (target, work) = (cell.target.name.clone(), cell.work.name.clone());
        let begin = Begin { cell: cell.id.clone(), round: cell.round, target, work, at: String::new() };
        self.folded.take(Record::Begin(begin));
        let found = (self.result)(cell);
        let outcome = if found.is_some() { Outcome::Done } else { Outcome::Failed("as rehearsed".into()) };
        for (phase, value) in found.unwrap_or_default() {
            let (cell, metric) = (cell.id.clone(), "time_ns".to_string());
            self.folded.take(Record::Sample(Sample { cell, phase, metric, value }));
        }
        self.folded.take(Record::End(End { cell: cell.id.clone(), outcome: outcome.clone(), at: String::new() }));
        Ok(Some(outcome))
    }

    fn folded(&self) -> &Folded {
        &self.folded
    }

    fn note(&mut self, record: Record) -> Result<()> {
        self.folded.take(record);
        Ok(())
    }

    fn budget_used(&self, _plan: &Plan) -> bool {
        (self.is_used)()
    }
}

/// What a plan will probably take, by replaying the rounds of an earlier run.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Rounds of the earlier run that were drawn from.
    pub pilot_rounds: usize,
    /// Rounds that the run will have: one in ten, half, and nine in ten rehearsals had at most
    /// these.
    pub rounds: [u32; 3],
    /// The same of nanoseconds.
    pub ns: [u64; 3],
    /// Share of the rehearsals that ended with a decision, or with the precision asked for.
    pub decided: f64,
    /// Share of the rehearsals that the plan's budget ended.
    pub cut: f64,
    /// The plan has a second copy of the reference and the earlier run has not: there is no noise
    /// floor.
    pub lacks_copy: bool,
    /// Targets and works of the plan that the earlier run does not have: they count like the mean
    /// of the others.
    pub unknown: Vec<String>,
    /// What the first of these rounds buy, in the middle of the rehearsals; none where they bound
    /// nothing.
    pub buys: Vec<BoundAfter>,
}

/// How much slower than the best the pick can be after `rounds` rounds, as a share, and how long
/// they take.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundAfter {
    pub rounds: u32,
    pub ns: u64,
    pub at_most: f64,
}

/// What one rehearsal came to.
struct Rehearsed {
    rounds: u32,
    ns: u64,
    end: Option<StopReason>,
    /// After each look: its round, nanoseconds so far, and the bound of the pick.
    looks: Vec<BoundAfter>,
}

/// Number of rehearsals: with it, a share is known to some 3 %.
const REHEARSALS: u64 = 200;
/// Fewer rounds say next to nothing of the scatter.
const LEAST_PILOT: usize = 3;

/// Rehearses the plan with whole rounds drawn from an earlier run, each as likely as any other (a
/// bootstrap; it knows no noise that the earlier run has not met, so few rounds make it too
/// hopeful). `None` with fewer than three rounds that all targets of both have finished.
pub fn forecast(plan: &Plan, pilot: &Folded) -> Option<Forecast> {
    let known = Pilot::read(pilot)?;
    let wanted = plan.targets.iter().flat_map(|t| plan.works.iter().map(move |w| (t.name.clone(), w.name.clone())));
    let (cells, unknown): (Vec<_>, Vec<_>) = wanted.partition(|key| known.times.contains_key(key));
    let common: BTreeSet<u32> = known.rounds_of_all(&cells)?;
    let rounds: Vec<u32> = common.into_iter().collect();
    if rounds.len() < LEAST_PILOT {
        return None;
    }
    let mut found: Vec<Rehearsed> = (0..REHEARSALS).filter_map(|seed| known.rehearsal(plan, &rounds, seed)).collect();
    let share = |ends: &[StopReason]| {
        let ended = found.iter().filter(|one| one.end.is_some_and(|end| ends.contains(&end)));
        ended.count() as f64 / found.len() as f64
    };
    let (decided, cut) = (share(&[StopReason::Decided, StopReason::Precise]), share(&[StopReason::Budget]));
    let at = |share: f64| ((found.len() - 1) as f64 * share).round() as usize;
    let places = [at(0.1), at(0.5), at(0.9)];
    let buys = bounds_after(&found);
    found.sort_by_key(|one| one.rounds);
    let by_rounds = places.map(|at| found[at].rounds);
    found.sort_by_key(|one| one.ns);
    let ns = places.map(|at| found[at].ns);
    let (copies, unknown): (Vec<_>, Vec<_>) = unknown.into_iter().partition(|(target, _)| is_copy(plan, target));
    let unknown = unknown.into_iter().map(|(target, work)| format!("{target} / {work}")).collect();
    let (pilot_rounds, lacks_copy) = (rounds.len(), !copies.is_empty());
    Some(Forecast { pilot_rounds, rounds: by_rounds, ns, decided, cut, lacks_copy, unknown, buys })
}

/// After each of these looks that half of the rehearsals came to, or at the one look that they
/// have.
const BUYS_AFTER: [u32; 5] = [3, 6, 11, 20, 40];

fn bounds_after(found: &[Rehearsed]) -> Vec<BoundAfter> {
    let mut rounds: Vec<u32> = found.iter().flat_map(|one| &one.looks).map(|look| look.rounds).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let is_shown = |after: &u32| BUYS_AFTER.contains(after) || rounds.len() == 1;
    let after = |after: u32| {
        let reached: Vec<&BoundAfter> =
            found.iter().filter_map(|one| one.looks.iter().find(|look| look.rounds == after)).collect();
        let mut ns: Vec<u64> = reached.iter().map(|look| look.ns).collect();
        ns.sort_unstable();
        let mut bounds: Vec<f64> = reached.iter().map(|look| look.at_most).collect();
        bounds.sort_by(f64::total_cmp);
        let middle = reached.len() / 2;
        let is_usual = reached.len() * 2 >= found.len() && bounds.get(middle).is_some_and(|bound| bound.is_finite());
        is_usual.then(|| BoundAfter { rounds: after, ns: ns[middle], at_most: bounds[middle] })
    };
    rounds.iter().copied().filter(is_shown).filter_map(after).collect()
}

fn is_copy(plan: &Plan, name: &str) -> bool {
    plan.targets.iter().any(|target| target.duplicate && target.name == name)
}

type Key = (String, String);

/// Times of an earlier run, by target and work.
struct Pilot {
    /// Phases' times by round.
    times: BTreeMap<Key, BTreeMap<u32, Vec<(String, f64)>>>,
    /// What a cell takes in all, in nanoseconds.
    cell_ns: BTreeMap<Key, u64>,
    /// Preparing and undoing the run.
    around_ns: u64,
}

impl Pilot {
    fn read(folded: &Folded) -> Option<Pilot> {
        let plan = &folded.run.as_ref()?.plan;
        let observed = observe(folded, plan);
        let mut pilot = Pilot { times: BTreeMap::new(), cell_ns: BTreeMap::new(), around_ns: folded.ledger.total_ns() };
        for work in &observed.works {
            for (target, cells) in work.cells.iter().enumerate() {
                let key = (observed.targets[target].to_string(), work.name.to_string());
                let total: u64 = cells.values().map(|cell| cell.ledger.total_ns()).fold(0, u64::saturating_add);
                pilot.cell_ns.insert(key.clone(), total / cells.len().max(1) as u64);
                let by_round = pilot.times.entry(key).or_default();
                for phase in work.phases() {
                    for (round, value) in work.series(target, phase, "time_ns") {
                        by_round.entry(round).or_default().push((phase.to_string(), value));
                    }
                }
            }
        }
        pilot.times.retain(|_, rounds| !rounds.is_empty());
        Some(pilot)
    }

    fn rounds_of_all(&self, cells: &[Key]) -> Option<BTreeSet<u32>> {
        let of = |key: &Key| self.times[key].keys().copied().collect::<BTreeSet<u32>>();
        cells.iter().map(of).reduce(|all, rounds| all.intersection(&rounds).copied().collect())
    }

    /// As in earnest, the budget is for cells alone.
    fn rehearsal(&self, plan: &Plan, rounds: &[u32], seed: u64) -> Option<Rehearsed> {
        let mean = self.cell_ns.values().copied().fold(0, u64::saturating_add) / self.cell_ns.len().max(1) as u64;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // As many as a run may have; the modulo's bias at these lengths is far below what a
        // forecast can tell.
        let drawn: Vec<u32> =
            (0..plan.stop.most_rounds()).map(|_| rounds[(random.next_u64() % rounds.len() as u64) as usize]).collect();
        let ns = std::cell::Cell::new(0u64);
        let mut by_round: BTreeMap<u32, u64> = BTreeMap::new();
        let cell_ns = |target: &str, work: &str| self.cell_ns.get(&(target.to_string(), work.to_string())).copied();
        let result = |cell: &Cell| {
            let (target, work) = (&cell.target.name, &cell.work.name);
            // One that the pilot does not have takes no part in the race, but in the time: a copy
            // that of its original.
            let original = || cell_ns(&plan.reference, work).filter(|_| cell.target.duplicate);
            ns.set(ns.get().saturating_add(cell_ns(target, work).or_else(original).unwrap_or(mean)));
            by_round.insert(cell.round, ns.get());
            let times = self.times.get(&(target.clone(), work.clone()));
            Some(times.map_or(Vec::new(), |times| times[&drawn[cell.round as usize - 1]].clone()))
        };
        let folded = rehearse_within(plan, result, || plan.stop.budget_ns.is_some_and(|budget| ns.get() > budget));
        let folded = folded.ok()?;
        let last = folded.looks.last()?;
        let looks = folded.looks.iter().map(|look| BoundAfter {
            rounds: look.round,
            ns: by_round.get(&look.round).copied().unwrap_or(0).saturating_add(self.around_ns),
            at_most: look.at_most_slower.unwrap_or(f64::INFINITY),
        });
        let (ns, looks) = (ns.get().saturating_add(self.around_ns), looks.collect());
        Some(Rehearsed { rounds: last.round, ns, end: last.end, looks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::{Target, Work};

    const SECOND: f64 = 1e9;

    fn plan(targets: &[&str]) -> Plan {
        let target = |name: &&str| Target { name: name.to_string(), ..Target::default() };
        let works = vec![Work { name: "tree".into(), ..Work::default() }];
        Plan { reference: targets[0].into(), targets: targets.iter().map(target).collect(), works, ..Plan::default() }
    }

    /// A run of `rounds` rounds, of targets with these factors and a scatter of this share; a cell
    /// takes 10 s in all.
    fn pilot(plan: &Plan, rounds: u32, factors: &[f64], scatter: f64) -> Folded {
        let mut plan = plan.clone();
        plan.stop.rounds = Some(rounds);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut folded = rehearse(&plan, |cell| {
            let at = plan.targets.iter().position(|target| target.name == cell.target.name)?;
            let noise = 1.0 + scatter * (random.next_u64() as f64 / u64::MAX as f64 - 0.5);
            Some(vec![("write".into(), SECOND * factors[at] * noise), ("read".into(), SECOND * factors[at])])
        });
        let folded = folded.as_mut().unwrap();
        for cell in folded.cells.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>() {
            folded.take(Record::Ledger(Ledger { cell, phases_ns: 10_000_000_000, ..Ledger::default() }));
        }
        std::mem::take(folded)
    }

    #[test]
    fn clear_differences_are_forecast_to_need_the_first_look_alone() {
        let plan = plan(&["ext4", "xfs"]);
        let found = forecast(&plan, &pilot(&plan, 6, &[1.0, 1.3], 0.02)).expect("six rounds");
        assert_eq!((found.pilot_rounds, found.rounds, found.decided), (6, [3; 3], 1.0));
        assert_eq!(found.ns, [60_000_000_000; 3], "two targets, three rounds, ten seconds");
        let [bought] = &found.buys[..] else { panic!("one look: {:?}", found.buys) };
        assert_eq!((bought.rounds, bought.ns), (3, 60_000_000_000));
        assert!((0.0..0.03).contains(&bought.at_most), "{bought:?}");
    }

    #[test]
    fn closer_targets_take_more_rounds_and_time() {
        let plan = plan(&["ext4", "xfs"]);
        let rounds = |factor, scatter| {
            let found = forecast(&plan, &pilot(&plan, 12, &[1.0, factor], scatter)).expect("twelve rounds");
            assert!(found.rounds.is_sorted() && found.ns.is_sorted(), "{found:?}");
            (found.rounds[1], found.ns[1], found.decided)
        };
        let (clear, close) = (rounds(1.3, 0.3), rounds(1.06, 0.3));
        assert!(close.0 > clear.0 && close.1 > clear.1, "{clear:?} {close:?}");
        assert!(rounds(1.0, 3.9).2 < 0.5, "there is no hope of a tie within 3 % in such noise");
    }

    #[test]
    fn targets_that_leave_take_no_more_time() {
        let three = plan(&["ext4", "xfs", "slow"]);
        let found = forecast(&three, &pilot(&three, 12, &[1.0, 1.0, 3.0], 0.4)).expect("twelve rounds");
        let all = u64::from(found.rounds[1]) * 3 * 10_000_000_000;
        assert!(found.rounds[1] > 8 && found.ns[1] < all, "{found:?}");
    }

    #[test]
    fn what_the_pilot_does_not_know_is_named_and_too_little_is_refused() {
        let (old, new) = (plan(&["ext4", "xfs"]), plan(&["ext4", "xfs", "btrfs"]));
        let found = forecast(&new, &pilot(&old, 6, &[1.0, 1.3], 0.02)).expect("six rounds");
        assert_eq!(found.unknown, ["btrfs / tree"]);
        assert_eq!(found.ns[0], 90_000_000_000, "btrfs is taken to cost what the others do");
        assert_eq!(forecast(&old, &pilot(&old, 2, &[1.0, 1.3], 0.02)), None);
        assert_eq!(forecast(&plan(&["jfs", "f2fs"]), &pilot(&old, 6, &[1.0, 1.3], 0.02)), None);
    }

    /// Two targets at ten seconds each, which eight rounds would not decide.
    #[test]
    fn a_budget_ends_rehearsals_as_it_ends_runs() {
        let mut plan = plan(&["ext4", "xfs"]);
        let pilot = pilot(&plan, 12, &[1.0, 1.0], 3.9);
        plan.stop.budget_ns = Some(90_000_000_000);
        let found = forecast(&plan, &pilot).expect("twelve rounds");
        assert_eq!((found.rounds, found.ns), ([5; 3], [100_000_000_000; 3]), "the round in which it is used up");
        assert!(found.decided < 0.1 && found.cut > 0.9, "{found:?}");
        plan.stop.budget_ns = Some(u64::MAX);
        assert_eq!(forecast(&plan, &pilot).map(|found| found.cut), Some(0.0));
    }

    #[test]
    fn a_copy_that_the_pilot_lacks_is_told_and_costs_what_its_original_does() {
        let old = plan(&["ext4", "xfs"]);
        let mut new = old.clone();
        new.targets.push(Target { name: "ext4 (again)".into(), duplicate: true, ..Target::default() });
        let mut known = pilot(&old, 6, &[1.0, 1.3], 0.02);
        for cell in
            known.cells.iter().filter(|cell| cell.target == "ext4").map(|cell| cell.id.clone()).collect::<Vec<_>>()
        {
            known.take(Record::Ledger(Ledger { cell, setup_ns: 10_000_000_000, ..Ledger::default() }));
        }
        let found = forecast(&new, &known).expect("six rounds");
        assert_eq!((found.lacks_copy, found.unknown), (true, vec![]));
        assert_eq!(found.ns[0], 3 * 50_000_000_000, "twice 20 s and 10 s");
        assert_eq!(forecast(&old, &known).map(|found| found.lacks_copy), Some(false));
    }
}
