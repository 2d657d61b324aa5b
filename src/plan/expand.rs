//! Plan -> cells: every target x workload x round, each with an id that hashes the whole of it.

use super::age::allowance_ns;
use super::{Judged, Plan, Target, Work};
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

/// All cells of a plan, in the order in which they are run: round after round, each round in its own random order.
pub fn expand(plan: &Plan) -> Vec<Cell> {
    (1..=plan.stop.most_rounds()).flat_map(|round| order(plan, round)).collect()
}

/// One round's cells in seeded random order: an independent uniform permutation per round.
pub fn order(plan: &Plan, round: u32) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for target in &plan.targets {
        cells.extend(plan.works.iter().map(|work| cell(plan, round, target, work)));
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(hash(&format!("order {} {round}", plan.seed)));
    // Fisher-Yates; the modulo's bias at these lengths is under 1e-15.
    for last in (1..cells.len()).rev() {
        cells.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    cells
}

/// In the settings of a cell's machine: how many times as fast as the plan's its processor is.
pub const SPEED: &str = "speed";

/// The cells of the first round, on processors that are half and twice as fast; with how many times as fast each is.
pub fn at_other_speeds(plan: &Plan) -> Vec<(f64, Cell)> {
    let at = |times: f64, mut cell: Cell| {
        cell.target.machine.0.insert(SPEED.into(), times.into());
        cell.id = cell_id(&cell);
        (times, cell)
    };
    [0.5, 2.0].into_iter().flat_map(|times| order(plan, 1).into_iter().map(move |cell| at(times, cell))).collect()
}

/// The seed that every target of a round shares: layout nuisance differs between rounds, never within one.
pub fn round_seed(seed: u64, round: u32) -> u64 {
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

/// XXH3-64 of the cell's compact JSON with an empty id and no limit, as 16 hex digits: two parameter sets can never
/// be pooled. Field order is that of the types, map keys are sorted.
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
        let half = checks.iter().filter(|(times, _)| *times == 0.5);
        assert!(half.clone().all(|(_, cell)| cell.target.machine.0[SPEED] == 0.5) && half.count() == first.len());
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
