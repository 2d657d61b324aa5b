//! Folded cells -> series: for each work, target, phase and metric the values by round. One pass over the samples,
//! so that a million of them cost no more than reading them.

use crate::journal::{Flag, Folded, FoldedCell, Look, Outcome};
use crate::metric::Combine;
use crate::plan::Plan;
use crate::stats::one_observation;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Values by round, ascending, each round once.
pub type Rounds = Vec<(u32, f64)>;

pub struct Observed<'a> {
    /// Those of the plan, then any other that a cell names.
    pub targets: Vec<&'a str>,
    pub works: Vec<ObservedWork<'a>>,
    /// The last round that a target took part in, where it has left the race.
    left_after: Vec<Option<u32>>,
    /// The last round that counts for a target in the race, where it was beaten.
    raced_until: Vec<Option<u32>>,
}

impl Observed<'_> {
    /// The rounds of which any cell has ended, and that a target was asked to take part in.
    pub fn asked(&self, target: usize) -> usize {
        let rounds: BTreeSet<u32> = self.works.iter().flat_map(|work| work.rounds.iter().copied()).collect();
        rounds.into_iter().filter(|round| self.is_asked(target, *round)).count()
    }

    /// For each target the rounds that went on without it after it had left.
    pub fn unasked(&self) -> Vec<usize> {
        let rounds: BTreeSet<u32> = self.works.iter().flat_map(|work| work.rounds.iter().copied()).collect();
        (0..self.targets.len()).map(|target| rounds.len() - self.asked(target)).collect()
    }

    /// 0 where no cell has ended.
    pub fn last_round(&self) -> u32 {
        self.works.iter().filter_map(|work| work.rounds.last().copied()).max().unwrap_or(0)
    }

    /// Series without the rounds after a target was beaten.
    pub fn while_racing(&self, series: &[Rounds]) -> Vec<Rounds> {
        let until = |target: usize| self.raced_until[target].unwrap_or(u32::MAX);
        let cut = |(target, rounds): (usize, &Rounds)| {
            rounds.iter().copied().take_while(|(round, _)| *round <= until(target)).collect()
        };
        series.iter().enumerate().map(cut).collect()
    }

    /// It has left, or stays as a yardstick only, and rounds have been done since that do not count for it.
    pub fn is_out_of_race(&self, target: usize) -> bool {
        self.raced_until[target].is_some_and(|last| last < self.last_round())
    }

    /// False for rounds after it has left.
    pub fn is_asked(&self, target: usize, round: u32) -> bool {
        self.left_after[target].is_none_or(|last| round <= last)
    }
}

pub struct ObservedWork<'a> {
    pub name: &'a str,
    folded: &'a Folded,
    /// Interned names, in order of first appearance.
    phases: Vec<u32>,
    metrics: Vec<u32>,
    /// By (target, phase, metric), in finished cells only.
    values: HashMap<(usize, u32, u32), Rounds>,
    /// Cells that have begun, by target and round; of two the later.
    pub cells: Vec<BTreeMap<u32, &'a FoldedCell>>,
    /// Rounds of which any cell has ended.
    pub rounds: BTreeSet<u32>,
}

pub fn observe<'a>(folded: &'a Folded, plan: &'a Plan) -> Observed<'a> {
    let mut targets = Names::new(plan.targets.iter().map(|target| target.name.as_str()));
    let mut works = Names::new(plan.works.iter().map(|work| work.name.as_str()));
    // A cell without a `Begin` has no target: nothing can be said of it.
    let begun: Vec<&FoldedCell> = folded.cells.iter().filter(|cell| !cell.target.is_empty()).collect();
    let places: Vec<_> = begun.iter().map(|cell| (targets.place(&cell.target), works.place(&cell.work))).collect();
    let count = targets.list.len();
    let mut observed: Vec<_> = works.list.iter().map(|name| ObservedWork::new(name, folded, count)).collect();
    for (cell, &(target, work)) in begun.iter().zip(&places) {
        observed[work].take(target, cell);
    }
    observed.iter_mut().for_each(ObservedWork::read_samples);
    let leaves = |look: &Look, name: &str| look.leaving.iter().any(|leaving| leaving.target == name);
    let is_beaten = |look: &Look, name: &str| leaves(look, name) || look.yardsticks.iter().any(|stays| stays == name);
    let first = |by: &dyn Fn(&Look, &str) -> bool| {
        let of = |name: &&str| folded.looks.iter().find(|look| by(look, name)).map(|look| look.round);
        targets.list.iter().map(of).collect()
    };
    let (left_after, raced_until) = (first(&leaves), first(&is_beaten));
    Observed { works: observed, left_after, raced_until, targets: targets.list }
}

/// Names in order, with their places.
struct Names<'a> {
    list: Vec<&'a str>,
    places: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn new(names: impl Iterator<Item = &'a str>) -> Names<'a> {
        let mut made = Names { list: Vec::new(), places: HashMap::new() };
        names.for_each(|name| {
            made.place(name);
        });
        made
    }

    fn place(&mut self, name: &'a str) -> usize {
        *self.places.entry(name).or_insert_with(|| {
            self.list.push(name);
            self.list.len() - 1
        })
    }
}

impl<'a> ObservedWork<'a> {
    fn new(name: &'a str, folded: &'a Folded, targets: usize) -> ObservedWork<'a> {
        let cells = vec![BTreeMap::new(); targets];
        let (phases, metrics, values) = Default::default();
        ObservedWork { name, folded, phases, metrics, values, cells, rounds: BTreeSet::new() }
    }

    fn take(&mut self, target: usize, cell: &'a FoldedCell) {
        if cell.outcome.is_some() {
            self.rounds.insert(cell.round);
        }
        self.cells[target].insert(cell.round, cell);
    }

    fn read_samples(&mut self) {
        for (target, cells) in self.cells.iter().enumerate() {
            for (&round, cell) in cells.iter().filter(|(_, cell)| cell.outcome == Some(Outcome::Done)) {
                for sample in self.folded.series(cell) {
                    let series = self.values.entry((target, sample.phase, sample.metric)).or_default();
                    if series.is_empty() {
                        remember(&mut self.phases, sample.phase);
                        remember(&mut self.metrics, sample.metric);
                    }
                    series.push((round, sample.value));
                }
            }
        }
        self.values.values_mut().for_each(once_a_round);
    }

    /// Phases that were timed, in order of first appearance.
    pub fn phases(&self) -> Vec<&'a str> {
        let Some(time) = self.folded.interned("time_ns") else { return Vec::new() };
        let timed = |phase: &&u32| (0..self.cells.len()).any(|target| self.has(target, **phase, time));
        self.phases.iter().filter(timed).map(|&phase| self.folded.name(phase)).collect()
    }

    /// (phase, metric) pairs that any target has.
    pub fn measured(&self) -> Vec<(&'a str, &'a str)> {
        let mut pairs = Vec::new();
        for &metric in &self.metrics {
            let has = |phase: &&u32| (0..self.cells.len()).any(|target| self.has(target, **phase, metric));
            let found = self.phases.iter().filter(has);
            pairs.extend(found.map(|&phase| (self.folded.name(phase), self.folded.name(metric))));
        }
        pairs
    }

    fn has(&self, target: usize, phase: u32, metric: u32) -> bool {
        self.values.contains_key(&(target, phase, metric))
    }

    pub fn series(&self, target: usize, phase: &str, metric: &str) -> Rounds {
        let key = self.folded.interned(phase).zip(self.folded.interned(metric));
        let found = key.and_then(|(phase, metric)| self.values.get(&(target, phase, metric)));
        found.cloned().unwrap_or_default()
    }

    /// The same for every target.
    pub fn in_phase(&self, phase: &str, metric: &str) -> Vec<Rounds> {
        (0..self.cells.len()).map(|target| self.series(target, phase, metric)).collect()
    }

    /// One value a cell for every target, from all of its phases.
    pub fn over_phases(&self, metric: &str, how: Combine) -> Vec<Rounds> {
        let Some(metric) = self.folded.interned(metric) else { return vec![Vec::new(); self.cells.len()] };
        let any = |phase: &u32| (0..self.cells.len()).any(|target| self.has(target, *phase, metric));
        let phases: Vec<u32> = self.phases.iter().copied().filter(any).collect();
        (0..self.cells.len()).map(|target| self.combined(target, &phases, metric, how)).collect()
    }

    fn combined(&self, target: usize, phases: &[u32], metric: u32, how: Combine) -> Rounds {
        let mut by_round: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
        for &phase in phases {
            for &(round, value) in self.values.get(&(target, phase, metric)).into_iter().flatten() {
                let (so_far, seen) = by_round.entry(round).or_insert((value, 0));
                *seen += 1;
                match how {
                    _ if *seen == 1 => {}
                    Combine::Sum => *so_far += value,
                    Combine::Largest => *so_far = so_far.max(value),
                    Combine::First => {}
                }
            }
        }
        let whole = |seen: usize| how != Combine::Sum || seen == phases.len();
        by_round.into_iter().filter(|(_, (_, seen))| whole(*seen)).map(|(round, (value, _))| (round, value)).collect()
    }

    /// Doubts about a target's finished cells.
    pub fn flags(&self, target: usize) -> impl Iterator<Item = &'a Flag> {
        let done = self.cells[target].values().filter(|cell| cell.outcome == Some(Outcome::Done));
        done.flat_map(|cell| cell.flags.iter())
    }
}

fn remember(list: &mut Vec<u32>, name: u32) {
    if !list.contains(&name) {
        list.push(name);
    }
}

/// Cells come in ascending rounds; repeats inside a cell are one observation, however many.
fn once_a_round(series: &mut Rounds) {
    if series.windows(2).all(|pair| pair[0].0 != pair[1].0) {
        return;
    }
    let value = |repeats: &[(u32, f64)]| one_observation(&repeats.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    let observed = series.chunk_by(|a, b| a.0 == b.0).filter_map(|repeats| Some((repeats[0].0, value(repeats)?)));
    *series = observed.collect();
}
