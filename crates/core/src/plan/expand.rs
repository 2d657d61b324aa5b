//! Plan -> cells: every target x workload x round, each with an id that hashes the whole of it.

use super::age::allowance_ns;
use super::{Judged, Plan, Settings, Target, Work};
use pickfs_stats::Schedule;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The whole of a cell. Its id hashes everything in it but the limit and how it is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cell {
    pub id: String,
    pub round: u32,
    pub target: Target,
    pub work: Work,
    /// The round's seed: the same for every target of the round.
    pub seed: u64,
    /// The agent's own deadline, in nanoseconds.
    pub limit_ns: u64,
}

/// All cells of a plan, if no target leaves, in the order in which they are run.
pub fn expand(plan: &Plan) -> Vec<Cell> {
    orders(plan, |_, _| true).take(plan.stop.most_rounds() as usize).flatten().collect()
}

/// One round's cells, if every target takes part in all rounds.
pub fn order(plan: &Plan, round: u32) -> Vec<Cell> {
    orders(plan, |_, _| true).nth(round.saturating_sub(1) as usize).unwrap_or_default()
}

/// The cells of each round, of the targets that take part in it, in seeded random order.
///
/// A target that slows down whatever comes next must slow down itself as often as others: as each
/// comes once in a round, that is so where a round begins with the target that the one before ended
/// with. All others are in random order.
pub fn orders<'a>(
    plan: &'a Plan,
    takes_part: impl Fn(&Target, u32) -> bool + 'a,
) -> impl Iterator<Item = Vec<Cell>> + 'a {
    let mut last = None;
    let places = (1..=u32::MAX).map(move |round| {
        let places = in_order(plan, round, last, &takes_part);
        last = places.last().map(|(target, _)| *target).or(last);
        (round, places)
    });
    // Made of those rounds alone that are asked for: an id takes its time.
    Cells { plan, places }
}

struct Cells<'a, P> {
    plan: &'a Plan,
    places: P,
}

impl<P: Iterator<Item = (u32, Vec<(usize, usize)>)>> Iterator for Cells<'_, P> {
    type Item = Vec<Cell>;

    fn next(&mut self) -> Option<Vec<Cell>> {
        self.nth(0)
    }

    fn nth(&mut self, skipped: usize) -> Option<Vec<Cell>> {
        let (round, places) = self.places.nth(skipped)?;
        let Plan { targets, works, .. } = self.plan;
        Some(places.into_iter().map(|(target, work)| cell(self.plan, round, &targets[target], &works[work])).collect())
    }
}

/// Places of targets and works. `last` is the target with which the round before ended.
fn in_order(
    plan: &Plan,
    round: u32,
    last: Option<usize>,
    takes_part: &impl Fn(&Target, u32) -> bool,
) -> Vec<(usize, usize)> {
    let Plan { targets, works, .. } = plan;
    let mut places: Vec<(usize, usize)> =
        (0..targets.len()).flat_map(|target| (0..works.len()).map(move |work| (target, work))).collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(hash(&format!("order {} {round}", plan.seed)));
    // Fisher-Yates; the modulo's bias at these lengths is under 1e-15.
    for last in (1..places.len()).rev() {
        places.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    let is_copied = plan.looks.copied_rounds().is_none_or(|last| round <= last);
    places.retain(|(at, _)| (is_copied || !targets[*at].duplicate) && takes_part(&targets[*at], round));
    let same = |at: usize| if targets[at].duplicate { &plan.reference } else { &targets[at].name };
    let next = last.and_then(|last| places.iter().position(|(at, _)| same(*at) == same(last)));
    if let Some(next) = next.filter(|_| plan.looks != Schedule::Ten) {
        places.swap(0, next);
    }
    places
}

/// In the settings of a cell's machine: how many times as fast as the plan's its processor is.
pub const SPEED: &str = "speed";
/// In the settings of a machine: how many processors are simulated; one where none is named, as in
/// plans of earlier versions.
pub const PROCESSORS: &str = "processors";

/// As the driver of simulated disks has it.
pub const MOST_PROCESSORS: u64 = 64;
/// A kernel whose clocks cannot go slower for a while, so that it has one processor.
pub const FIXED_CLOCKS: &str = "bullseye";

/// How many processors a simulated machine has.
pub fn processors(machine: &Settings) -> u64 {
    machine.number(PROCESSORS).filter(|_| !has_one(machine)).unwrap_or(1)
}

fn has_one(machine: &Settings) -> bool {
    machine.text("kernel") == Some(FIXED_CLOCKS)
}

/// How the processors of a cell differ from those of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherProcessors {
    /// As fast as the plan's.
    pub times: f64,
    /// Their number, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u64>,
}

impl OtherProcessors {
    /// No difference.
    pub const NONE: OtherProcessors = OtherProcessors { times: 1.0, processors: None };

    fn put_into(self, mut cell: Cell) -> Cell {
        if let Some(number) = self.processors {
            cell.target.machine.0.insert(PROCESSORS.into(), number.into());
        } else {
            cell.target.machine.0.insert(SPEED.into(), self.times.into());
        }
        cell.id = cell_id(&cell);
        cell
    }
}

/// The cells of the first round on processors that are half and twice as fast, on one alone, and on
/// twice as many.
pub fn at_other_speeds(plan: &Plan) -> Vec<(OtherProcessors, Cell)> {
    let speeds = [0.5, 2.0].map(|times| OtherProcessors { times, ..OtherProcessors::NONE });
    let is_set = |target: &&Target| {
        let machine = &target.machine;
        machine.0.contains_key(PROCESSORS) && !has_one(machine)
    };
    let most = plan.targets.iter().filter(is_set).map(|target| processors(&target.machine)).max();
    let numbers = most.map(|most| [1, (2 * most).min(MOST_PROCESSORS)].into_iter().filter(move |other| *other != most));
    let numbers = numbers.into_iter().flatten();
    let numbers = numbers.map(|number| OtherProcessors { processors: Some(number), ..OtherProcessors::NONE });
    let cells = |other: OtherProcessors| order(plan, 1).into_iter().map(move |cell| (other, other.put_into(cell)));
    speeds.into_iter().chain(numbers).flat_map(cells).collect()
}

/// The seed that every target of a round shares: layout nuisance differs between rounds, never
/// within one.
pub(crate) fn round_seed(seed: u64, round: u32) -> u64 {
    hash(&format!("round {seed} {round}"))
}

fn cell(plan: &Plan, round: u32, target: &Target, work: &Work) -> Cell {
    let mut cell = Cell {
        id: String::new(),
        round,
        target: target.clone(),
        work: work.clone(),
        seed: round_seed(plan.seed, round),
        limit_ns: plan.stop.cell_ns.saturating_add(allowance_ns(target)),
    };
    cell.id = cell_id(&cell);
    cell
}

/// XXH3-64 of the cell's compact JSON with an empty id and no limit, as 16 hex digits: two
/// parameter sets can never be pooled. Field order is that of the types, map keys are sorted.
pub fn cell_id(cell: &Cell) -> String {
    let mut bare = Cell { id: String::new(), limit_ns: 0, ..cell.clone() };
    bare.work.judged = Judged::default();
    format!("{:016x}", hash(&serde_json::to_string(&bare).expect("a cell is plain data")))
}

fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Stop;
    use std::collections::HashSet;

    fn plan() -> Plan {
        let target = |name: &str| Target { name: name.into(), ..Target::default() };
        let work = Work { name: "tree".into(), ..Work::default() };
        let stop = Stop { rounds: Some(6), ..Stop::default() };
        Plan { seed: 7, stop, targets: ["a", "b", "c", "d"].map(target).into(), works: vec![work], ..Plan::default() }
    }

    fn names(cells: &[Cell]) -> String {
        cells.iter().map(|c| c.target.name.as_str()).collect()
    }

    #[test]
    fn every_target_is_once_in_every_round_under_its_own_id() {
        let cells = expand(&plan());
        assert_eq!(cells.len(), 24);
        assert_eq!(cells.iter().map(|c| &c.id).collect::<HashSet<_>>().len(), 24);
        for round in cells.chunks(4) {
            assert_eq!(round.iter().map(|c| &c.target.name).collect::<HashSet<_>>().len(), 4);
            assert!(round.iter().all(|c| c.seed == round[0].seed && c.round == round[0].round));
        }
    }

    #[test]
    fn the_order_comes_from_the_seed_alone() {
        assert_eq!(expand(&plan()), expand(&plan()));
        let orders: HashSet<String> = (1..=6).map(|round| names(&order(&plan(), round))).collect();
        assert!(orders.len() > 2, "{orders:?}");
        assert_ne!(names(&expand(&plan())), names(&expand(&Plan { seed: 8, ..plan() })));
    }

    /// Each target follows each equally often, itself too, also where targets have left: within 4
    /// standard errors of 4000 rounds.
    #[test]
    fn who_comes_next_is_balanced() {
        for (here, copied) in [("abcd", false), ("ab", false), ("bd", false), ("abcd", true)] {
            let mut plan = plan();
            if copied {
                plan.reference = "a".into();
                plan.targets.push(plan.targets[0].again());
                plan.looks = Schedule::EachRound;
            }
            let rounds = orders(&plan, |target, _| here.contains(&target.name[..1]));
            let all: Vec<String> = rounds.take(4000).map(|cells| names(&cells)).collect();
            let all = all.concat().replace(" (again)", "");
            let (count, after) = (here.len(), |one: char, next: char| all.matches(&format!("{one}{next}")[..]).count());
            let is_even = |found: usize| {
                let meant = 4000.0 / count as f64;
                (found as f64 - meant).abs() < 4.0 * meant.sqrt() + 16.0
            };
            let pairs = |one: char| here.chars().map(move |next| (one, next));
            // Of a pair of the same, a run of three has two, and `matches` sees one.
            let uneven = here.chars().flat_map(pairs).filter(|(one, next)| one != next && !is_even(after(*one, *next)));
            assert_eq!(uneven.collect::<Vec<_>>(), [], "{here}, {copied}");
            let own: usize = here.chars().map(|one| after(one, one)).sum();
            assert!(own >= 3999 - 8, "{here}: the last of a round is the first of the next: {own}");
        }
    }

    /// Enough rounds to show the noise; journals of earlier versions have it in all.
    #[test]
    fn the_copy_is_in_the_first_rounds_alone() {
        let mut plan = Plan { reference: "a".into(), stop: Stop { rounds: Some(12), ..Stop::default() }, ..plan() };
        plan.targets.push(plan.targets[0].again());
        let copies = |plan: &Plan| expand(plan).iter().filter(|cell| cell.target.duplicate).map(|c| c.round).max();
        assert_eq!((copies(&plan), expand(&plan).len()), (Some(8), 56));
        plan.looks = Schedule::Ten;
        assert_eq!((copies(&plan), expand(&plan).len()), (Some(12), 60));
    }

    #[test]
    fn ageing_is_no_part_of_the_limit_for_the_work() {
        let mut aged = plan();
        aged.targets[0].fill = Some(0.5);
        let limits: Vec<u64> = expand(&aged).iter().map(|cell| cell.limit_ns).collect();
        let (usual, longer) = (aged.stop.cell_ns, limits.iter().filter(|limit| **limit > aged.stop.cell_ns).count());
        assert_eq!((limits.iter().filter(|limit| **limit == usual).count(), longer), (18, 6));
    }

    #[test]
    fn a_check_has_the_first_round_on_two_other_processors() {
        let checks = at_other_speeds(&plan());
        let first = order(&plan(), 1);
        assert_eq!(checks.len(), 2 * first.len());
        assert!(checks.iter().all(|(_, cell)| cell.seed == first[0].seed && cell.round == 1));
        let ids: HashSet<&String> =
            checks.iter().map(|(_, cell)| &cell.id).chain(first.iter().map(|c| &c.id)).collect();
        assert_eq!(ids.len(), 3 * first.len());
        let half = checks.iter().filter(|(other, _)| other.times == 0.5);
        assert!(half.clone().all(|(_, cell)| cell.target.machine.0[SPEED] == 0.5) && half.count() == first.len());
    }

    #[test]
    fn a_check_has_one_processor_and_twice_as_many_where_the_plan_has_a_number() {
        for (number, kernel, others) in [
            (8, "bookworm", vec![1, 16]),
            (1, "bookworm", vec![2]),
            (64, "bookworm", vec![1]),
            (40, "/own", vec![1, 64]),
            (8, FIXED_CLOCKS, vec![]),
            (8, "trixie", vec![1, 16]),
        ] {
            let mut plan = plan();
            for target in &mut plan.targets {
                target.machine.0.extend([(PROCESSORS.into(), number.into()), ("kernel".into(), kernel.into())]);
            }
            let checks = at_other_speeds(&plan);
            let cells = order(&plan, 1).len();
            assert_eq!(checks.len(), (2 + others.len()) * cells, "{number} {kernel}");
            for (other, cell) in &checks[2 * cells..] {
                assert_eq!(cell.target.machine.number(PROCESSORS), other.processors);
                assert!(others.contains(&other.processors.expect("a number")) && other.times == 1.0);
            }
        }
    }

    #[test]
    fn an_id_changes_with_every_parameter_but_the_limit() {
        let cell = &expand(&plan())[0];
        assert_eq!(cell_id(cell), cell_id(&Cell { limit_ns: 1, ..cell.clone() }));
        let mut other = cell.clone();
        other.target.mount.push("noatime".into());
        assert_ne!(cell_id(cell), cell_id(&other));
        let mut in_place = cell.clone();
        in_place.target.nodatacow = true;
        assert_ne!(cell_id(cell), cell_id(&in_place));
    }
}
