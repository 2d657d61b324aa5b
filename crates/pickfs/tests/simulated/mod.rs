//! Runs that touch no machine: the real rounds, looks and reports of a plan, on times from a known
//! truth.
#![allow(dead_code, reason = "each of those who include this file needs other parts of it")]

pub mod habits;
pub use pickfs_test_support::noise;

use noise::{Field, Noise, Pair};
use pickfs_core::journal::{Folded, StopReason};
use pickfs_core::plan::{Cell, Plan, Stop, Target, Work};
use pickfs_host::analysis::{Model, VerdictKind, model};
use pickfs_host::run::rehearse;

/// The name of the hidden second copy of the reference.
const DUPLICATE: &str = "again";

/// One work of one phase. The reference is the first target, which the duplicate, if there is one,
/// copies.
pub fn plan(names: &[String], duplicate: bool, stop: Stop, seed: u64) -> Plan {
    let target = |name: &String| Target { name: name.clone(), ..Target::default() };
    let mut targets: Vec<Target> = names.iter().map(target).collect();
    if duplicate {
        targets.push(Target { name: DUPLICATE.to_string(), duplicate: true, ..Target::default() });
    }
    let works = vec![Work { name: "tree".to_string(), ..Work::default() }];
    Plan { seed, reference: names[0].clone(), targets, works, stop, ..Plan::default() }
}

/// Rehearses a plan with an agent that knows of each cell the logarithm of its time in seconds.
pub fn play(plan: &Plan, mut log_seconds: impl FnMut(&Cell) -> f64) -> Folded {
    let agent = |cell: &Cell| Some(vec![("write".to_string(), log_seconds(cell).exp() * 1e9)]);
    rehearse(plan, agent).expect("a rehearsal touches nothing that could fail")
}

pub fn report(folded: &Folded) -> Model {
    model(folded).expect("a rehearsal has a plan")
}

/// What the machine does to all cells alike: a random walk of 1 % a round, and 1 % from the first
/// cell of a round to its last.
struct Drift {
    walk: f64,
    round: u32,
    place: usize,
    cells: usize,
}

impl Drift {
    fn next(&mut self, cell: &Cell, noise: &mut Noise) -> f64 {
        if cell.round != self.round {
            self.walk += 0.01 * noise.normal();
            (self.round, self.place) = (cell.round, 0);
        }
        self.place += 1;
        self.walk + 0.01 * self.place as f64 / self.cells as f64
    }
}

/// Targets with known logarithms of time, the least of them the best.
#[derive(Clone)]
pub struct Race {
    pub truth: Vec<f64>,
    pub field: Field,
    /// Added to targets with an odd number: nought leaves the means of all noises at nought,
    /// [`same_medians`] makes targets of the same truth tie in their rounds.
    pub odd: f64,
    pub stop: Stop,
}

/// Sides of unlike noise that have the same mean still differ, by the median over pairs of rounds,
/// by minus this.
pub fn same_medians(field: Field) -> f64 {
    let pair = Pair { name: field.name, first: field.odd, second: field.even };
    field.odd.mean() - field.even.mean() - pair.centre()
}

/// What a race came to; targets are those of the truth.
pub struct Played {
    pub kind: VerdictKind,
    /// Targets that may still be the best, by the last look.
    pub candidates: Vec<usize>,
    /// Whom the report names, in whatever sense its kind has.
    pub named: Vec<usize>,
    /// What it picks, by how much slower than the best that can be, as a share, and whom it calls
    /// slower.
    pub pick: usize,
    pub bound: f64,
    pub slower: Vec<usize>,
    pub end: Option<StopReason>,
    pub rounds: u32,
    /// Cells of all targets and the duplicate.
    pub cells: usize,
    /// The band of the report, as a share.
    pub threshold: f64,
}

impl Race {
    /// With a reference drawn from all targets, its hidden duplicate, and drift.
    pub fn play(&self, seed: u64) -> Played {
        let mut noise = Noise::new(seed);
        let count = self.truth.len();
        let first = (noise.uniform() * count as f64).ceil() as usize - 1;
        let order: Vec<usize> = (0..count).map(|at| (first + at) % count).collect();
        let names: Vec<String> = order.iter().map(usize::to_string).collect();
        let mut drift = Drift { walk: 0.0, round: 0, place: 0, cells: count + 1 };
        let folded = play(&plan(&names, true, self.stop, seed), |cell| {
            let target = if cell.target.duplicate { first } else { number(&cell.target.name) };
            drift.next(cell, &mut noise) + self.draw(target, &mut noise)
        });
        played(&folded)
    }

    /// One logarithm of a target's time, without what the machine does to all.
    pub fn draw(&self, target: usize, noise: &mut Noise) -> f64 {
        let odd = if target % 2 == 1 { self.odd } else { 0.0 };
        self.truth[target] + odd + self.field.draw(target, noise)
    }

    pub fn best(&self) -> Vec<usize> {
        let least = self.truth.iter().copied().fold(f64::INFINITY, f64::min);
        (0..self.truth.len()).filter(|at| self.truth[*at] <= least).collect()
    }

    /// How much slower than the best.
    pub fn behind(&self, target: usize) -> f64 {
        self.truth[target] - self.truth[self.best()[0]]
    }
}

fn played(folded: &Folded) -> Played {
    let report = report(folded);
    let race = report.works[0].phases[0].race.as_ref().expect("three rounds");
    let (verdict, last) = (&report.works[0].verdict, folded.looks.last().expect("a run ends with a look"));
    Played {
        kind: verdict.kind,
        candidates: last.best.iter().map(|name| number(name)).collect(),
        named: verdict.best.iter().map(|at| number(&report.targets[*at].name)).collect(),
        pick: number(&report.targets[race.pick].name),
        bound: race.bound(),
        slower: race.slower.iter().map(|at| number(&report.targets[*at].name)).collect(),
        end: last.end,
        rounds: last.round,
        cells: folded.cells.len(),
        threshold: report.works[0].phases[0].threshold,
    }
}

fn number(name: &str) -> usize {
    name.parse().expect("targets are named by number")
}

/// Results of `count` independent trials, by seed; on all processors, and the same on any number of
/// them.
pub fn trials<T: Send>(count: usize, salt: u64, trial: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(count.max(1));
    let seed = |at: usize| (salt << 32) + at as u64;
    let share = |worker: usize| (worker..count).step_by(workers).map(|at| (at, trial(seed(at)))).collect::<Vec<_>>();
    let mut found: Vec<(usize, T)> = std::thread::scope(|scope| {
        let share = &share;
        let handles: Vec<_> = (0..workers).map(|worker| scope.spawn(move || share(worker))).collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("no trial panics")).collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}

pub fn share<T>(all: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    all.iter().filter(|one| holds(one)).count() as f64 / all.len() as f64
}

pub fn mean<T>(all: &[T], of: impl Fn(&T) -> f64) -> f64 {
    all.iter().map(of).sum::<f64>() / all.len() as f64
}
