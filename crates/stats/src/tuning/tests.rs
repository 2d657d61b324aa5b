//! Searches replayed on grids whose truth is known.

use super::*;
use crate::{Comparisons, FIRST_LOOK, Finding, LAST_LOOK, Regret, Schedule, judge};
use effects::variance;
use pickfs_test_support::noise::{Noise, replications, share_error};
use std::collections::{BTreeMap, BTreeSet};

const MARGIN: f64 = 0.03;
/// Searches of the quick test, and of that behind docs/tune.md.
const FEW: usize = 30;
const MANY: usize = 500;

/// The logarithm of the time of each configuration, in the order of [`all`].
struct Grid {
    space: Space,
    logs: Vec<f64>,
}

/// Every configuration, the last option changing fastest.
fn all(levels: &[usize]) -> Vec<Config> {
    let longer = |config: &Config, most: usize| (0..=most).map(|level| [&config[..], &[level]].concat()).collect();
    levels.iter().fold(vec![Vec::new()], |all, most| {
        all.iter().flat_map(|config| -> Vec<Config> { longer(config, *most) }).collect()
    })
}

impl Grid {
    fn of(levels: Vec<usize>, truth: impl Fn(&Config) -> f64) -> Grid {
        let logs = all(&levels).iter().map(truth).collect();
        Grid { space: Space { levels, excludes: Vec::new() }, logs }
    }

    /// Of a table of simulated times: a column for each option and one for the time, with the
    /// default in the first row.
    fn simulated(table: &str) -> Grid {
        let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
        let options = rows[0].len() - 1;
        let mut values: Vec<Vec<&str>> = vec![Vec::new(); options];
        let mut times: BTreeMap<Config, f64> = BTreeMap::new();
        for row in &rows {
            let level = |option: usize| {
                let known = &mut values[option];
                known.iter().position(|value| *value == row[option]).unwrap_or_else(|| {
                    known.push(row[option]);
                    known.len() - 1
                })
            };
            times.insert((0..options).map(level).collect(), row[options].parse().expect("a time"));
        }
        Grid::of(values.iter().map(|values| values.len() - 1).collect(), |config| times[config].ln())
    }

    fn truth(&self, config: &Config) -> f64 {
        self.logs[config.iter().zip(&self.space.levels).fold(0, |at, (level, most)| at * (most + 1) + level)]
    }

    fn least(&self) -> f64 {
        self.logs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// By option, the variance over its levels with all others alike, averaged over every
    /// combination of the others.
    fn importance(&self) -> Vec<f64> {
        let levels = &self.space.levels;
        let configs = all(levels);
        let of = |option: usize| {
            let line = |config: &Config| {
                let mut config = config.clone();
                let logs = (0..=levels[option]).map(|level| {
                    config[option] = level;
                    self.truth(&config)
                });
                variance(&logs.collect::<Vec<_>>())
            };
            configs.iter().map(line).sum::<f64>() / configs.len() as f64
        };
        (0..levels.len()).map(of).collect()
    }

    /// Twelve options of which most do nothing, as on most disks: 9,216 configurations. In half of
    /// these grids two cost by themselves and pay together.
    fn made(noise: &mut Noise) -> Grid {
        let trap = f64::from(u8::from(noise.uniform() < 0.5));
        let mut level = |by: f64| by * (0.6 + 0.8 * noise.uniform());
        let useful = [level(-0.15), level(-0.08), level(-0.05)];
        let mut levels = vec![vec![useful[0], useful[0] / 2.0], vec![useful[1]], vec![0.0, useful[2]]];
        levels.extend([vec![level(0.20)], vec![level(0.05)], vec![0.005], vec![-0.005]]);
        levels.extend([vec![0.0], vec![0.0], vec![0.0], vec![trap * 0.02], vec![trap * level(0.10)]]);
        let together = -0.12 * trap - levels[11][0];
        let pairs = [
            ((10, 1), (11, 1), together),
            ((0, 1), (1, 1), level(0.03)),
            ((1, 1), (7, 1), level(-0.02)),
            ((3, 1), (8, 1), level(0.05)),
        ];
        Grid::of(levels.iter().map(Vec::len).collect(), |config| {
            let own = config.iter().zip(&levels).filter(|(level, _)| **level > 0).map(|(level, of)| of[level - 1]);
            let is = |(option, level): (usize, usize)| config[option] == level;
            own.sum::<f64>() + pairs.iter().filter(|(a, b, _)| is(*a) && is(*b)).map(|(_, _, by)| by).sum::<f64>()
        })
    }

    fn of_equals() -> Grid {
        Grid::of(vec![1; 12], |_| 0.0)
    }

    /// One round more of those configurations that are not eliminated.
    fn measure(&self, stage: &mut Stage, eliminated: &[Option<usize>], (scatter, noise): (f64, &mut Noise)) {
        let round = 0.02 * noise.normal();
        for (at, config) in stage.configs.iter().enumerate() {
            let own = self.truth(config) + round + scatter * noise.normal();
            stage.logs[at].push(if eliminated.get(at).is_some_and(Option::is_some) { f64::NAN } else { own });
        }
    }

    /// As a run does it: until the default, or another, is good enough.
    fn race(&self, stage: &mut Stage, (scatter, noise): (f64, &mut Noise)) {
        let looks = Schedule::EachRound.spent(&(1..=LAST_LOOK).collect::<Vec<u32>>());
        let count = stage.configs.len();
        let mut found = Regret::of(count);
        for round in 1..=LAST_LOOK {
            self.measure(stage, &found.eliminated, (scatter, noise));
            if round >= FIRST_LOOK {
                let (logs, comparisons) = (&stage.logs, count - 1);
                let of = Comparisons { logs, candidates: count, comparisons, twins: None, lacking: &[], tick: 0.0 };
                found.look(&of, &looks[(round - FIRST_LOOK) as usize]);
            }
            if found.regret.iter().any(|regret| *regret <= MARGIN.ln_1p()) {
                break;
            }
        }
        stage.is_over = true;
    }

    fn search(&self, scatter: f64, noise: &mut Noise) -> Search {
        let mut stages: Vec<Stage> = Vec::new();
        loop {
            match next(&self.space, &stages, MARGIN) {
                Next::Done(answer) => return Search { answer, stages },
                Next::Measure { kind, configs, rounds } => {
                    if stages.last().is_none_or(|last| last.kind != kind) {
                        let logs = vec![Vec::new(); configs.len()];
                        stages.push(Stage { kind, configs, logs, is_over: false });
                    }
                    let stage = stages.last_mut().expect("one");
                    match rounds {
                        None => self.race(stage, (scatter, noise)),
                        Some(rounds) => {
                            (stage.rounds()..rounds as usize).for_each(|_| self.measure(stage, &[], (scatter, noise)))
                        }
                    }
                }
            }
        }
    }
}

struct Search {
    answer: Answer,
    stages: Vec<Stage>,
}

impl Search {
    fn cells(&self) -> usize {
        self.stages.iter().flat_map(|stage| stage.logs.iter().flatten()).filter(|log| log.is_finite()).count()
    }

    /// Different ones that were measured.
    fn configurations(&self) -> usize {
        self.stages.iter().flat_map(|stage| &stage.configs).collect::<BTreeSet<_>>().len()
    }

    /// What a reader would take.
    fn named(&self) -> Config {
        match &self.answer {
            Answer::Winner(config, _) => config.clone(),
            _ => self.stages[0].configs[0].clone(),
        }
    }
}

/// The share of searches in which each holds, and the mean numbers of cells and of configurations.
fn shares<const N: usize>(
    seed: u64,
    scatter: f64,
    of: impl Fn(&mut Noise) -> Grid,
    holds: impl Fn(&Grid, &Search) -> [bool; N],
) -> ([f64; N], [f64; 2]) {
    let count = replications(FEW, MANY);
    let mut noise = Noise::new(seed);
    let (mut found, mut tried) = ([0.0; N], [0.0; 2]);
    for _ in 0..count {
        let grid = of(&mut noise);
        let search = grid.search(scatter, &mut noise);
        let own = [search.cells(), search.configurations()];
        tried.iter_mut().zip(own).for_each(|(tried, own)| *tried += own as f64 / count as f64);
        holds(&grid, &search)
            .iter()
            .zip(&mut found)
            .for_each(|(holds, share)| *share += f64::from(u8::from(*holds)) / count as f64);
    }
    println!("noise {scatter}: {found:.3?}, {:.0} cells of {:.0} configurations", tried[0], tried[1]);
    (found, tried)
}

/// Two standard errors below what must hold.
fn least(wanted: f64) -> f64 {
    wanted - 2.0 * share_error(wanted, replications(FEW, MANY))
}

#[test]
fn what_a_search_names_is_nearly_the_best() {
    for scatter in [0.02, 0.05, 0.10] {
        let holds = |grid: &Grid, search: &Search| {
            let regret = grid.truth(&search.named()) - grid.least();
            let of_default = default_within(&search.stages).0;
            let tried = search.stages.iter().flat_map(|stage| &stage.configs).map(|config| grid.truth(config));
            let bounded = (-tried.fold(0.0, f64::min)).exp_m1() <= of_default;
            let covered = match &search.answer {
                Answer::Winner(config, estimate) => {
                    let truth = grid.truth(config).exp();
                    estimate.interval.is_some_and(|(low, high)| low <= truth && truth <= high)
                }
                _ => true,
            };
            [regret <= MARGIN.ln_1p(), bounded, covered]
        };
        let (found, _) = shares(1, scatter, Grid::made, holds);
        assert!(found.iter().all(|share| *share >= least(0.95)), "{scatter}: {found:?}");
    }
}

/// Whole grids whose every configuration was simulated, and the shares of searches in which each
/// claim must hold; docs/tune.md says how they were made, and why one has less.
const TABLES: [(&str, &str, [f64; 4]); 6] = [
    ("btrfs on nvme", include_str!("../../../../fixtures/tuning/btrfs-nvme.csv"), WANTED),
    ("ext4 on hdd-7200", include_str!("../../../../fixtures/tuning/ext4-hdd-7200.csv"), WANTED),
    ("ext4 on nvme", include_str!("../../../../fixtures/tuning/ext4-nvme.csv"), WANTED),
    ("xfs on nvme", include_str!("../../../../fixtures/tuning/xfs-nvme.csv"), WANTED),
    ("xfs on hdd-7200", include_str!("../../../../fixtures/tuning/xfs-hdd-7200.csv"), [0.95, 0.95, 0.65, 0.95]),
    ("btrfs on hdd-7200", include_str!("../../../../fixtures/tuning/btrfs-hdd-7200.csv"), WANTED),
];
/// What is named is no worse than the default, it is within the margin of the best, the three
/// options that matter most are named, and the search is cheap.
const WANTED: [f64; 4] = [0.95, 0.95, 0.9, 0.95];

/// By how much less of a standard deviation an option may make than the third one of the table, to
/// be as important.
const TIE: f64 = 0.1;
/// A standard deviation of a third of the margin makes no difference.
const NOTHING: f64 = MARGIN / 3.0;

/// The three that matter most, the first one before all.
fn three(importance: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..importance.len()).collect();
    order.sort_by(|a, b| importance[*b].total_cmp(&importance[*a]));
    order.into_iter().take(3).collect()
}

/// Whether the three that a search found are those of the table, of which some may be tied. What
/// makes less than `NOTHING` has no place of its own.
fn are_the_three(found: &[f64], table: &[f64]) -> bool {
    let (found, wanted) = (three(found), three(table));
    let third = table[wanted[2]].sqrt();
    let least = if third < NOTHING { 0.0 } else { third * (1.0 - TIE) };
    let matters = |option: &&usize| table[**option].sqrt() >= NOTHING.max(third / (1.0 - TIE));
    found.iter().all(|option| table[*option].sqrt() >= least)
        && wanted.iter().filter(matters).all(|option| found.contains(option))
}

#[test]
fn of_simulated_grids_nearly_the_best_is_named() {
    for (name, table, wanted) in TABLES {
        let truth = Grid::simulated(table);
        let (best, of_default) = (truth.least(), truth.logs[0]);
        println!("{name}: {} configurations, default {:.4} above the best", truth.logs.len(), of_default - best);
        println!("importance: {:.3?}", truth.importance().iter().map(|by| by.sqrt()).collect::<Vec<_>>());
        for scatter in [0.02, 0.05, 0.10] {
            let holds = |grid: &Grid, search: &Search| {
                let regret = grid.truth(&search.named()) - best;
                let is_no_worse = grid.truth(&search.named()) - of_default <= MARGIN.ln_1p() / 2.0;
                let is_same = are_the_three(&importance(&grid.space, &search.stages), &grid.importance());
                let rounds: usize = search.stages.iter().map(Stage::rounds).sum();
                let is_cheap = search.cells() * 10 <= rounds * grid.logs.len();
                [is_no_worse, regret <= MARGIN.ln_1p(), is_same, is_cheap]
            };
            let (found, _) = shares(3, scatter, |_| Grid::simulated(table), holds);
            assert!(
                found.iter().zip(wanted).all(|(found, wanted)| *found >= least(wanted)),
                "{name}, {scatter}: {found:?}"
            );
        }
    }
}

#[test]
fn of_equals_the_default_is_named() {
    for scatter in [0.02, 0.05, 0.10] {
        let holds = |grid: &Grid, search: &Search| {
            let all = effects(&grid.space, &search.stages);
            let useful = all.iter().any(|effect| judge(&effect.estimate, MARGIN) == Finding::Lower);
            let is_fine = matches!(search.answer, Answer::DefaultIsFine(..));
            [!matches!(search.answer, Answer::Winner(..)), !useful, is_fine]
        };
        let (found, _) = shares(2, scatter, |_| Grid::of_equals(), holds);
        assert!(found.iter().all(|share| *share >= least(0.95)), "{scatter}: {found:?}");
    }
}
