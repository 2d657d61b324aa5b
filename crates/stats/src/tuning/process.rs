//! What is expected of every configuration, also where options add to each other in ways that no
//! one looked for: a Gaussian process (Rasmussen and Williams 2006, chapter 2) over the logarithms
//! of the times.

use super::super::moments::mean_of;
use super::design::solved;
use super::{Config, Kind, Space, Stage};

/// The correlation of two configurations that differ in one option; in two, its square.
const ALIKE: f64 = 0.85;
/// The variance of what all rounds of one stage have in common, as a multiple of that of the
/// configurations: so much that it explains nothing of their differences.
const OF_STAGE: f64 = 1e3;
/// Of the variance: without any noise two stages that share two configurations say one thing twice.
const LEAST_NOISE: f64 = 1e-6;
/// Steps in which the variance of the configurations is fitted. It settles in fewer.
const STEPS: usize = 10;

pub(super) struct Process<'a> {
    space: &'a Space,
    configs: Vec<&'a Config>,
    /// The variance of the configurations.
    variance: f64,
    /// The inverse of the covariance of the points, over `variance`.
    inverse: Vec<Vec<f64>>,
    /// What the value of each point adds to what is expected of another.
    weights: Vec<f64>,
}

impl<'a> Process<'a> {
    /// `None` without more configurations than stages.
    pub(super) fn of(space: &'a Space, stages: &'a [Stage]) -> Option<Process<'a>> {
        let points = points(stages);
        let logs: Vec<f64> = points.iter().map(|point| point.log).collect();
        // A stage of one round does not say how much it scatters, nor a race that leaves one.
        let most = stages.iter().filter_map(Stage::noise).fold(0.0, f64::max);
        let noise = |point: &Point| stages[point.stage].noise().unwrap_or(most).powi(2) / point.rounds as f64;
        let noise: Vec<f64> = points.iter().map(noise).collect();
        let covariance = |a: usize, b: usize| {
            let of_stage = if points[a].stage == points[b].stage { OF_STAGE } else { 0.0 };
            correlation(points[a].config, points[b].config) + of_stage
        };
        let rows: Vec<Vec<f64>> =
            (0..points.len()).map(|a| (0..points.len()).map(|b| covariance(a, b)).collect()).collect();
        let mean = mean_of(&logs);
        let mut variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64;
        let (mut inverse, mut weights) = (Vec::new(), Vec::new());
        for _ in 0..STEPS {
            variance = variance.max(1e-12);
            let mut rows = rows.clone();
            (0..rows.len()).for_each(|at| rows[at][at] += noise[at] / variance + LEAST_NOISE);
            let one = |at: usize| (0..logs.len()).map(|other| f64::from(u8::from(other == at))).collect();
            inverse = solved(rows, (0..logs.len()).map(one).collect())?;
            weights = inverse.iter().map(|row| row.iter().zip(&logs).map(|(by, log)| by * log).sum()).collect();
            let free = logs.len().checked_sub(stages.len()).filter(|free| *free > 0)?;
            variance = weights.iter().zip(&logs).map(|(by, log)| by * log).sum::<f64>() / free as f64;
        }
        Some(Process { space, configs: points.iter().map(|point| point.config).collect(), variance, inverse, weights })
    }

    /// By option, the variance over its levels with all others alike, in the mean over every
    /// combination of the others: what is expected of it, which counts what is not known.
    pub(super) fn importance(&self) -> Vec<f64> {
        let count = self.configs.len();
        // Over the levels of an option, the mean product of correlations with two points.
        let shared = |option: usize, a: usize, b: usize| {
            let levels = (self.space.levels[option] + 1) as f64;
            if self.configs[a][option] == self.configs[b][option] {
                (1.0 + (levels - 1.0) * ALIKE * ALIKE) / levels
            } else {
                (2.0 * ALIKE + (levels - 2.0) * ALIKE * ALIKE) / levels
            }
        };
        let all = 0..self.space.levels.len();
        let of = |option: usize| {
            let levels = (self.space.levels[option] + 1) as f64;
            // The mean correlation of a level with all of its option.
            let mean = (1.0 + (levels - 1.0) * ALIKE) / levels;
            let with = |(a, b): (usize, usize)| {
                let weight = self.weights[a] * self.weights[b] - self.variance * self.inverse[a][b];
                let others = all.clone().filter(|other| *other != option).map(|other| shared(other, a, b));
                weight * others.product::<f64>() * (shared(option, a, b) - mean.powi(2))
            };
            let pairs = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
            (self.variance * (1.0 - mean) + pairs.map(with).sum::<f64>()).max(0.0)
        };
        all.clone().map(of).collect()
    }

    /// The logarithm of its time, less something that all configurations have in common.
    pub(super) fn expected(&self, config: &Config) -> f64 {
        self.configs.iter().zip(&self.weights).map(|(other, weight)| weight * correlation(config, other)).sum()
    }

    /// The standard deviation of what is not known of a configuration over the default.
    pub(super) fn unknown(&self, config: &Config) -> f64 {
        let default = vec![0; config.len()];
        let near: Vec<f64> =
            self.configs.iter().map(|other| correlation(config, other) - correlation(&default, other)).collect();
        let own = 2.0 * (1.0 - correlation(config, &default));
        let row = |row: &Vec<f64>| row.iter().zip(&near).map(|(by, near)| by * near).sum::<f64>();
        let known: f64 = self.inverse.iter().zip(&near).map(|(by, near)| near * row(by)).sum();
        (self.variance * (own - known).max(0.0)).sqrt()
    }

    /// From the default on, the change of one option or of two that helps most, by what is expected
    /// less `daring` times what is not known; as long as it helps by `least`.
    pub(super) fn path(&self, daring: f64, least: f64, most: usize) -> Vec<Config> {
        let all: Vec<(usize, usize)> = self.space.each_level().collect();
        let score = |config: &Config| {
            let unknown = if daring > 0.0 { daring * self.unknown(config) } else { 0.0 };
            self.expected(config) - unknown
        };
        let better = |from: &Config| {
            let moves = all.iter().enumerate().flat_map(|(at, a)| {
                let second = all[at + 1..].iter().filter(|b| b.0 != a.0).map(|b| vec![*a, *b]);
                std::iter::once(vec![*a]).chain(second).collect::<Vec<_>>()
            });
            let to = moves.map(|levels| with(from, &levels)).filter(|config| self.space.allows(config));
            let scored = to.map(|config| (score(&config), config));
            let (best, next) = scored.min_by(|a, b| a.0.total_cmp(&b.0))?;
            (best <= score(from) - least).then_some(next)
        };
        std::iter::successors(Some(vec![0; self.space.levels.len()]), better).skip(1).take(most).collect()
    }
}

/// A configuration that was measured, its stage, and the mean of its logarithms over its rounds.
struct Point<'a> {
    config: &'a Config,
    stage: usize,
    log: f64,
    rounds: usize,
}

/// The rounds of the last stage have no part in the choice of what it measures.
fn points(stages: &[Stage]) -> Vec<Point<'_>> {
    let chosen = stages.iter().enumerate().filter(|(_, stage)| stage.kind != Kind::Confirm);
    let point = |(stage, (config, log, rounds))| Point { config, stage, log, rounds };
    chosen.flat_map(|(at, stage)| stage.means().into_iter().map(move |mean| (at, mean))).map(point).collect()
}

/// A configuration with these levels.
pub(super) fn with(config: &Config, levels: &[(usize, usize)]) -> Config {
    let mut config = config.clone();
    levels.iter().for_each(|(option, level)| config[*option] = *level);
    config
}

fn correlation(a: &Config, b: &Config) -> f64 {
    ALIKE.powi(a.iter().zip(b).filter(|(a, b)| a != b).count() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve configurations, in which the second option matters only with the first.
    fn truth(config: &Config) -> f64 {
        [0.0, 0.1, -0.2][config[0]] + if config[0] == 2 { 0.3 * config[1] as f64 } else { 0.0 }
    }

    fn stage(configs: Vec<Config>) -> Stage {
        let logs = configs.iter().map(|config| vec![truth(config) + 4.0, truth(config) + 4.1]).collect();
        Stage { kind: Kind::Crossed, configs, logs, is_over: false }
    }

    fn grid() -> Vec<Config> {
        (0..12).map(|at| vec![at / 4, at / 2 % 2, at % 2]).collect()
    }

    #[test]
    fn of_a_whole_grid_nothing_is_unknown() {
        let (space, stages) = (Space { levels: vec![2, 1, 1], excludes: Vec::new() }, [stage(grid())]);
        let process = Process::of(&space, &stages).expect("two rounds");
        let default = process.expected(&grid()[0]);
        for config in grid() {
            let apart = process.expected(&config) - default - truth(&config);
            assert!(apart.abs() < 1e-4 && process.unknown(&config) < 1e-3, "{config:?}: {apart}");
        }
        // By hand: without the second option 0, 0.1 and -0.2, with it 0, 0.1 and 0.1; 0.3 or none.
        let wanted = [(0.14 / 9.0 + 0.02 / 9.0) / 2.0, 0.0225 / 3.0, 0.0];
        for (found, wanted) in process.importance().iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-5, "{found} is not {wanted}");
        }
        assert_eq!(process.path(0.0, 0.01, 6), [[2, 0, 0]], "the best of all at one step");
    }

    #[test]
    fn what_is_far_from_all_that_was_measured_is_unknown() {
        let space = Space { levels: vec![2, 1, 1], excludes: vec![((2, 1), 0)] };
        let stages = [stage(vec![vec![0, 0, 0], vec![1, 0, 0], vec![0, 1, 0]])];
        let process = Process::of(&space, &stages).expect("two rounds");
        let unknown = [[0, 1, 0], [1, 1, 0], [2, 1, 0], [2, 1, 1]].map(|config| process.unknown(&config.to_vec()));
        assert!(unknown.windows(2).all(|pair| pair[0] < pair[1]), "{unknown:?}");
        assert!(process.path(2.0, 0.0, 6).iter().all(|config| space.allows(config)));
        let once = Stage { logs: vec![vec![4.0], vec![4.1], vec![4.3]], ..stages[0].clone() };
        let twice = [once.clone(), once];
        let expected = |config: &[usize]| Process::of(&space, &twice).expect("points").expected(&config.to_vec());
        let apart = [[1, 0, 0], [0, 1, 0]].map(|config| expected(&config) - expected(&[0, 0, 0]));
        assert!((apart[0] - 0.1).abs() < 1e-3 && (apart[1] - 0.3).abs() < 1e-3, "{apart:?}");
        assert!(Process::of(&space, &[]).is_none());
    }
}
