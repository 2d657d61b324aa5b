//! Searches replayed on grids whose truth is known.

use super::*;
use crate::{Comparisons, FIRST_LOOK, Finding, LAST_LOOK, Regret, Schedule, judge};
use pickfs_test_support::noise::{Noise, replications, share_error};

const MARGIN: f64 = 0.03;
/// Searches of the quick test, and of that behind docs/tune.md.
const FEW: usize = 30;
const MANY: usize = 500;

/// Two levels of options, and what they add together.
type Pair = ((usize, usize), (usize, usize), f64);

/// What each level adds to the logarithm of the time, and what pairs of levels add beside.
struct Grid {
    levels: Vec<Vec<f64>>,
    pairs: Vec<Pair>,
}

impl Grid {
    fn truth(&self, config: &Config) -> f64 {
        let own: f64 =
            config.iter().zip(&self.levels).filter(|(level, _)| **level > 0).map(|(level, of)| of[level - 1]).sum();
        let is = |(option, level): (usize, usize)| config[option] == level;
        own + self.pairs.iter().filter(|(a, b, _)| is(*a) && is(*b)).map(|(_, _, by)| by).sum::<f64>()
    }

    fn space(&self) -> Space {
        Space { levels: self.levels.iter().map(Vec::len).collect(), excludes: Vec::new() }
    }

    fn least(&self) -> f64 {
        let mut all: Vec<Config> = vec![Vec::new()];
        for levels in &self.levels {
            let longer =
                |config: &Config| (0..=levels.len()).map(|level| [&config[..], &[level]].concat()).collect::<Vec<_>>();
            all = all.iter().flat_map(longer).collect();
        }
        all.iter().map(|config| self.truth(config)).fold(f64::INFINITY, f64::min)
    }

    /// Twelve options of which most do nothing, as on most disks: 12 288 configurations.
    fn made(noise: &mut Noise) -> Grid {
        let mut level = |by: f64| by * (0.6 + 0.8 * noise.uniform());
        let useful = [level(-0.15), level(-0.08), level(-0.05)];
        let mut levels = vec![vec![useful[0], useful[0] / 2.0], vec![useful[1]], vec![0.0, useful[2]]];
        levels.extend([vec![level(0.20)], vec![level(0.05)], vec![0.005], vec![-0.005]]);
        levels.extend([vec![0.0], vec![0.0], vec![0.0], vec![0.0], vec![0.0]]);
        let pairs = vec![((0, 1), (1, 1), level(0.03)), ((1, 1), (7, 1), level(-0.02)), ((3, 1), (8, 1), level(0.05))];
        Grid { levels, pairs }
    }

    fn of_equals() -> Grid {
        Grid { levels: vec![vec![0.0]; 12], pairs: Vec::new() }
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
            match next(&self.space(), &stages, MARGIN) {
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

    /// What a reader would take.
    fn named(&self) -> Config {
        match &self.answer {
            Answer::Winner(config, _) => config.clone(),
            _ => self.stages[0].configs[0].clone(),
        }
    }
}

/// The share of searches in which each holds, and the mean number of cells.
fn shares<const N: usize>(
    seed: u64,
    scatter: f64,
    of: impl Fn(&mut Noise) -> Grid,
    holds: impl Fn(&Grid, &Search) -> [bool; N],
) -> ([f64; N], f64) {
    let count = replications(FEW, MANY);
    let mut noise = Noise::new(seed);
    let (mut found, mut cells) = ([0.0; N], 0.0);
    for _ in 0..count {
        let grid = of(&mut noise);
        let search = grid.search(scatter, &mut noise);
        cells += search.cells() as f64 / count as f64;
        holds(&grid, &search)
            .iter()
            .zip(&mut found)
            .for_each(|(holds, share)| *share += f64::from(u8::from(*holds)) / count as f64);
    }
    println!("noise {scatter}: {found:?}, {cells:.0} cells");
    (found, cells)
}

/// Two standard errors below what must hold.
fn least() -> f64 {
    0.95 - 2.0 * share_error(0.95, replications(FEW, MANY))
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
        assert!(found.iter().all(|share| *share >= least()), "{scatter}: {found:?}");
    }
}

#[test]
fn of_equals_the_default_is_named() {
    for scatter in [0.02, 0.05, 0.10] {
        let holds = |grid: &Grid, search: &Search| {
            let all = effects(&grid.space(), &search.stages);
            let useful = all.iter().any(|effect| judge(&effect.estimate, MARGIN) == Finding::Lower);
            let is_fine = matches!(search.answer, Answer::DefaultIsFine(..));
            [!matches!(search.answer, Answer::Winner(..)), !useful, is_fine]
        };
        let (found, _) = shares(2, scatter, |_| Grid::of_equals(), holds);
        // More noise than that asks for more rounds than a search takes.
        let shown = if scatter < 0.1 { 3 } else { 2 };
        assert!(found[..shown].iter().all(|share| *share >= least()), "{scatter}: {found:?}");
    }
}
