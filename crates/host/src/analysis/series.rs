//! Folded cells -> series: for each work, target, phase and metric the values by round. One pass
//! over the samples, so that a million of them cost no more than reading them.

use pickfs_core::journal::{Flag, Folded, FoldedCell, GuestProcessor, Look, Outcome};
use pickfs_core::metric::{CPU_FOREIGN_NS, CPU_GROSS_NS, CPU_NET_NS, Combine};
use pickfs_core::plan::{Judged, OtherProcessors, Plan, processors as number_of_processors};
use pickfs_stats::one_observation;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where the whole system's CPU without that of other programs is kept: an id that no journal
/// reaches.
const NET: u32 = u32::MAX;

/// Metric that is computed, of simulated cells: the time without that of the kernel's own workers.
/// The one simulated processor serves them and the program in turn, where real machines have
/// several.
pub(crate) const TIME_WITHOUT_WORKERS: &str = "time_without_workers_ns";
const WITHOUT_WORKERS: u32 = u32::MAX - 1;
const CPU_OF_WORK_NS: &str = "cpu_workload_ns";

/// Values by round, ascending, each round once.
pub(crate) type Rounds = Vec<(u32, f64)>;

pub(crate) fn at_round(series: &Rounds, round: u32) -> Option<f64> {
    series.binary_search_by_key(&round, |(round, _)| *round).ok().map(|place| series[place].1)
}

pub struct Observed<'a> {
    /// Those of the plan, then any other that a cell names.
    pub targets: Vec<&'a str>,
    pub works: Vec<ObservedWork<'a>>,
    /// The last round that a target took part in, if it was eliminated; always set for the
    /// reference's copy.
    left_after: Vec<Option<u32>>,
    /// Another program made the rounds: it may give targets different numbers of them.
    is_imported: bool,
    /// It timed them too, with a clock that may be coarse.
    pub(crate) has_foreign_clock: bool,
}

impl Observed<'_> {
    /// For each target the rounds that it was asked for and has no value of, and not because it
    /// could not take part: what takes too long may be cut off. The last round may be under way
    /// still.
    pub(crate) fn lacking(&self, works: &[&ObservedWork], values: &[Rounds]) -> Vec<Vec<u32>> {
        let rounds: BTreeSet<u32> = works.iter().flat_map(|work| work.rounds.iter().copied()).collect();
        let has = |target: usize, round: u32| at_round(&values[target], round).is_some();
        let is_skipped = |target: usize, round: u32| {
            let mut cells = works.iter().filter_map(|work| work.cells[target].get(&round));
            cells.any(|cell| matches!(cell.outcome, Some(Outcome::Skipped(_))))
        };
        let lacks = |target: usize, round: u32| {
            let is_over = round < self.last_round() && !self.is_imported;
            is_over && self.is_asked(target, round) && !has(target, round) && !is_skipped(target, round)
        };
        (0..values.len()).map(|target| rounds.iter().copied().filter(|round| lacks(target, *round)).collect()).collect()
    }

    /// The rounds of which any cell has ended, and that a target was asked to take part in.
    pub(crate) fn asked(&self, target: usize) -> usize {
        let rounds: BTreeSet<u32> = self.works.iter().flat_map(|work| work.rounds.iter().copied()).collect();
        rounds.into_iter().filter(|round| self.is_asked(target, *round)).count()
    }

    /// For each target the rounds that went on without it after it had left.
    pub(crate) fn unasked(&self) -> Vec<usize> {
        let rounds: BTreeSet<u32> = self.works.iter().flat_map(|work| work.rounds.iter().copied()).collect();
        (0..self.targets.len()).map(|target| rounds.len() - self.asked(target)).collect()
    }

    /// Targets that took part in no further rounds.
    pub(crate) fn left(&self) -> Vec<usize> {
        (0..self.targets.len()).filter(|at| self.left_after[*at].is_some_and(|last| last < self.last_round())).collect()
    }

    /// 0 where no cell has ended.
    pub(crate) fn last_round(&self) -> u32 {
        self.works.iter().filter_map(|work| work.rounds.last().copied()).max().unwrap_or(0)
    }

    /// False for rounds after it has left.
    pub(crate) fn is_asked(&self, target: usize, round: u32) -> bool {
        self.left_after[target].is_none_or(|last| round <= last)
    }
}

pub struct ObservedWork<'a> {
    pub name: &'a str,
    /// What it is judged by.
    pub judged: Judged,
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
    /// By target: whether its machine has one processor.
    are_alone: Vec<bool>,
}

/// All its cells ran by clocks that count.
pub(crate) fn is_simulated(folded: &Folded) -> bool {
    folded.hardware().guests.iter().any(|guest| guest.processor == GuestProcessor::Simulated)
}

pub fn observe<'a>(folded: &'a Folded, plan: &'a Plan) -> Observed<'a> {
    observe_at(folded, plan, OtherProcessors::NONE)
}

/// The cells with these processors alone.
pub(crate) fn observe_at<'a>(folded: &'a Folded, plan: &'a Plan, processors: OtherProcessors) -> Observed<'a> {
    let mut targets = Names::new(plan.targets.iter().map(|target| target.name.as_str()));
    let mut works = Names::new(plan.works.iter().map(|work| work.name.as_str()));
    // A cell without a `Begin` has no target: nothing can be said of it.
    let begun: Vec<&FoldedCell> =
        folded.cells.iter().filter(|cell| !cell.target.is_empty() && folded.processors(cell) == processors).collect();
    let places: Vec<_> = begun.iter().map(|cell| (targets.place(&cell.target), works.place(&cell.work))).collect();
    let count = targets.list.len();
    let judged = |name: &str| plan.works.iter().find(|work| work.name == name).map(|work| work.judged.clone());
    let planned = |name: &&str| plan.targets.iter().find(|target| target.name == *name);
    let is_alone = |name: &&str| planned(name).is_none_or(|target| number_of_processors(&target.machine) == 1);
    let are_alone: Vec<bool> = targets.list.iter().map(is_alone).collect();
    let new = |name: &&'a str| ObservedWork {
        are_alone: are_alone.clone(),
        ..ObservedWork::new(name, judged(name).unwrap_or_default(), folded, count)
    };
    let mut observed: Vec<_> = works.list.iter().map(new).collect();
    for (cell, &(target, work)) in begun.iter().zip(&places) {
        observed[work].take(target, cell);
    }
    observed.iter_mut().for_each(ObservedWork::read_samples);
    let leaves = |look: &&Look, name: &str| look.leaving.iter().any(|leaving| leaving.target == name);
    let left = |name: &str| folded.looks.iter().find(|look| leaves(look, name)).map(|look| look.round);
    let is_copy = |name: &str| plan.targets.iter().any(|target| target.duplicate && target.name == name);
    // The reference's copy goes with it.
    let last_of_copy = || left(&plan.reference).into_iter().chain(plan.looks.copied_rounds()).min();
    let last = |name: &&str| left(name).or_else(|| is_copy(name).then(last_of_copy).flatten());
    let left_after = targets.list.iter().map(last).collect();
    let imported = folded.run.as_ref().map_or("", |run| run.imported.as_str());
    let has_foreign_clock = !["", "pickfs"].contains(&imported);
    Observed {
        works: observed,
        left_after,
        targets: targets.list,
        is_imported: !imported.is_empty(),
        has_foreign_clock,
    }
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
    fn new(name: &'a str, judged: Judged, folded: &'a Folded, targets: usize) -> ObservedWork<'a> {
        let cells = vec![BTreeMap::new(); targets];
        let (phases, metrics, values) = Default::default();
        let (rounds, are_alone) = (BTreeSet::new(), vec![true; targets]);
        ObservedWork { name, judged, folded, phases, metrics, values, cells, rounds, are_alone }
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
        self.take_off_foreign_cpu();
        if is_simulated(self.folded) {
            self.take_off_workers();
        }
    }

    /// All that the processor did apart from the program, at most all of the time; nothing where
    /// several processors were simulated.
    fn take_off_workers(&mut self) {
        let ids = ["time_ns", CPU_GROSS_NS, CPU_OF_WORK_NS].map(|metric| self.folded.interned(metric));
        let [Some(time), Some(all), Some(own)] = ids else { return };
        let alone = (0..self.cells.len()).filter(|target| self.are_alone[*target]);
        let places: Vec<_> = alone.flat_map(|at| self.phases.iter().map(move |phase| (at, *phase))).collect();
        for (target, phase) in places {
            let Some(times) = self.values.get(&(target, phase, time)) else { continue };
            let of = |metric: u32, round: u32| at_round(self.values.get(&(target, phase, metric))?, round);
            let without = |(round, time): &(u32, f64)| {
                let workers = of(all, *round).zip(of(own, *round)).map_or(0.0, |(all, own)| (all - own).max(0.0));
                (*round, (time - workers).max(0.0))
            };
            let found: Rounds = times.iter().map(without).collect();
            self.values.insert((target, phase, WITHOUT_WORKERS), found);
        }
    }

    /// What other programs used of the CPU is no cost of a target: it is on the machine, and not in
    /// what is compared.
    fn take_off_foreign_cpu(&mut self) {
        let Some(gross) = self.folded.interned(CPU_GROSS_NS) else { return };
        let of_whole_system: Vec<(usize, u32)> =
            self.values.keys().filter(|key| key.2 == gross).map(|key| (key.0, key.1)).collect();
        for (target, phase) in of_whole_system {
            let foreign = self.folded.interned(CPU_FOREIGN_NS).and_then(|id| self.values.get(&(target, phase, id)));
            let foreign: BTreeMap<u32, f64> = foreign.into_iter().flatten().copied().collect();
            let net = |&(round, ns): &(u32, f64)| (round, (ns - foreign.get(&round).unwrap_or(&0.0)).max(0.0));
            let net: Rounds = self.values[&(target, phase, gross)].iter().map(net).collect();
            self.values.insert((target, phase, NET), net);
            remember(&mut self.metrics, NET);
        }
    }

    fn interned(&self, metric: &str) -> Option<u32> {
        match metric {
            CPU_NET_NS => Some(NET),
            TIME_WITHOUT_WORKERS => Some(WITHOUT_WORKERS),
            _ => self.folded.interned(metric),
        }
    }

    /// Phases that were timed, in order of first appearance.
    pub(crate) fn phases(&self) -> Vec<&'a str> {
        let Some(time) = self.folded.interned("time_ns") else { return Vec::new() };
        let timed = |phase: &&u32| (0..self.cells.len()).any(|target| self.has(target, **phase, time));
        self.phases.iter().filter(timed).map(|&phase| self.folded.name(phase)).collect()
    }

    /// (phase, metric) pairs that any target has.
    pub(crate) fn measured(&self) -> Vec<(&'a str, &'a str)> {
        let mut pairs = Vec::new();
        for &metric in &self.metrics {
            let has = |phase: &&u32| (0..self.cells.len()).any(|target| self.has(target, **phase, metric));
            let found = self.phases.iter().filter(has);
            let name = if metric == NET { CPU_NET_NS } else { self.folded.name(metric) };
            pairs.extend(found.map(|&phase| (self.folded.name(phase), name)));
        }
        pairs
    }

    fn has(&self, target: usize, phase: u32, metric: u32) -> bool {
        self.values.contains_key(&(target, phase, metric))
    }

    pub(crate) fn series(&self, target: usize, phase: &str, metric: &str) -> Rounds {
        let key = self.folded.interned(phase).zip(self.interned(metric));
        let found = key.and_then(|(phase, metric)| self.values.get(&(target, phase, metric)));
        found.cloned().unwrap_or_default()
    }

    /// Every value of a metric, with repeats of one observation, in the journal's order.
    pub(crate) fn every_value(&self, target: usize, phase: &str, metric: &str) -> Vec<f64> {
        let done = self.cells[target].values().filter(|cell| cell.outcome == Some(Outcome::Done));
        let samples = done.flat_map(|cell| self.folded.samples(cell));
        samples.filter(|(of, name, _)| *of == phase && *name == metric).map(|(.., value)| value).collect()
    }

    /// The same for every target.
    pub(crate) fn in_phase(&self, phase: &str, metric: &str) -> Vec<Rounds> {
        (0..self.cells.len()).map(|target| self.series(target, phase, metric)).collect()
    }

    /// One value a cell for every target, from all of its phases; of times, what the work is judged
    /// by.
    pub(crate) fn over_phases(&self, metric: &str, how: Combine) -> Vec<Rounds> {
        let is_judged = ["time_ns", TIME_WITHOUT_WORKERS].contains(&metric);
        let Some(metric) = self.interned(metric) else { return vec![Vec::new(); self.cells.len()] };
        let any = |phase: &u32| (0..self.cells.len()).any(|target| self.has(target, *phase, metric));
        let counts = |phase: &u32| !is_judged || self.judges(self.folded.name(*phase));
        let phases: Vec<u32> = self.phases.iter().copied().filter(any).filter(counts).collect();
        let how = if is_judged { self.judged.combine } else { how };
        (0..self.cells.len()).map(|target| self.combined(target, &phases, metric, how)).collect()
    }

    pub(crate) fn judges(&self, phase: &str) -> bool {
        self.judged.phases.is_empty() || self.judged.phases.iter().any(|name| name == phase)
    }

    fn combined(&self, target: usize, phases: &[u32], metric: u32, how: Combine) -> Rounds {
        let mut by_round: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
        for &phase in phases {
            for &(round, value) in self.values.get(&(target, phase, metric)).into_iter().flatten() {
                let value = if how == Combine::GeometricMean { value.ln() / phases.len() as f64 } else { value };
                let (so_far, seen) = by_round.entry(round).or_insert((value, 0));
                *seen += 1;
                match how {
                    _ if *seen == 1 => {}
                    Combine::Sum | Combine::GeometricMean => *so_far += value,
                    Combine::Largest => *so_far = so_far.max(value),
                    Combine::First => {}
                }
            }
        }
        let needs_all = matches!(how, Combine::Sum | Combine::GeometricMean);
        let whole = |seen: usize| !needs_all || seen == phases.len();
        let back = |value: f64| if how == Combine::GeometricMean { value.exp() } else { value };
        let found = by_round.into_iter().filter(|(_, (_, seen))| whole(*seen));
        found.map(|(round, (value, _))| (round, back(value))).collect()
    }

    /// Doubts about a target's finished cells.
    pub(crate) fn flags(&self, target: usize) -> impl Iterator<Item = &'a Flag> {
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

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    fn values(rounds: &[Rounds]) -> Vec<f64> {
        rounds.iter().flatten().map(|(_, value)| *value).collect()
    }

    #[test]
    fn cpu_that_is_compared_is_without_that_of_other_programs() {
        let mut made = MadeUp::new(&["quiet", "busy", "older"]);
        let cell = |foreign: Option<f64>| {
            let own = 1e9;
            let gross = ("write", CPU_GROSS_NS, own + foreign.unwrap_or(0.0));
            [Some(("write", "time_ns", 1.0)), Some(gross), foreign.map(|ns| ("write", CPU_FOREIGN_NS, ns))]
        };
        for (name, foreign) in [("quiet", Some(0.0)), ("busy", Some(5e9)), ("older", None)] {
            let samples: Vec<_> = cell(foreign).into_iter().flatten().collect();
            made.cell(name, 1, Outcome::Done, &samples);
        }
        let observed = observe(&made.folded, &made.plan);
        let work = &observed.works[0];
        assert_eq!(values(&work.over_phases(CPU_NET_NS, Combine::Sum)), [1e9; 3]);
        assert_eq!(values(&work.in_phase("write", CPU_NET_NS)), [1e9; 3]);
        assert!(work.measured().contains(&("write", CPU_NET_NS)) && work.measured().contains(&("write", CPU_GROSS_NS)));
        assert_eq!(pickfs_core::metric::by_alias("cpu"), Some(CPU_NET_NS));
    }

    #[test]
    fn a_work_is_judged_by_its_phases_as_it_declares() {
        let judged = |combine, phases: &[&str]| {
            let mut made = MadeUp::new(&["ext4"]);
            let phases = phases.iter().map(ToString::to_string).collect();
            made.plan.works[0].judged = Judged { combine, phases, name: "it".into(), ..Judged::default() };
            let times = [("load", 900.0), ("few", 2.0), ("many", 8.0)].map(|(phase, ns)| (phase, "time_ns", ns));
            made.cell("ext4", 1, Outcome::Done, &times);
            // Without one of them there is no value of a round.
            made.cell("ext4", 2, Outcome::Done, &times[..2]);
            let observed = observe(&made.folded, &made.plan);
            let found = observed.works[0].over_phases("time_ns", Combine::Sum);
            assert_eq!(values(&observed.works[0].in_phase("load", "time_ns")), [900.0, 900.0]);
            values(&found).into_iter().map(|value| (value * 1000.0).round() / 1000.0).collect::<Vec<_>>()
        };
        assert_eq!(judged(Combine::Sum, &[]), [910.0]);
        assert_eq!(judged(Combine::Sum, &["few", "many"]), [10.0]);
        assert_eq!(judged(Combine::GeometricMean, &["few", "many"]), [4.0]);
        assert_eq!(judged(Combine::Largest, &["few"]), [2.0, 2.0]);
    }
}
