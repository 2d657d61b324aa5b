//! What a search expects of each configuration: levels by themselves and in pairs, fitted to all
//! that was measured.

use super::design::weights;
use super::{Config, Kind, Space, Stage};
use std::collections::BTreeSet;

/// One level, or two levels together.
type Term = Vec<(usize, usize)>;

/// Pairs that are looked for: few are large, and each false one costs the race a configuration.
const MOST_PAIRS: usize = 6;
/// Standard errors by which a pair must differ from the sum of its levels: of many pairs, the
/// luckiest looks large.
const PAIR: f64 = 4.0;
/// The share of a pair's column that other terms must leave unexplained.
const FREE: f64 = 0.1;

/// The logarithm of the time of any configuration over that of the default.
pub(super) struct Model {
    terms: Vec<(Term, f64)>,
    /// The variance of what it leaves unexplained, of one configuration.
    pub(super) error: f64,
    /// Pairs that explain much by themselves and help. A design gives several pairs nearly the same
    /// rows, and only a measurement of each shows which one it is.
    leads: Vec<Term>,
}

/// A configuration that was measured, its stage, and the mean of its logarithms.
struct Point<'a> {
    config: &'a Config,
    stage: usize,
    log: f64,
}

/// What the terms of a model leave unexplained, and what each pair that is no term yet could
/// explain of it.
struct Rest {
    logs: Vec<f64>,
    pairs: Vec<Pair>,
}

/// Two levels together.
#[derive(Clone)]
struct Pair {
    term: Term,
    /// Its column without what the terms explain.
    column: Vec<f64>,
    /// The sum of squares that must be left of the column.
    least: f64,
}

impl Rest {
    fn of(points: &[Point], levels: &[Term], stages: usize) -> Rest {
        let column = |is: &dyn Fn(&Point) -> bool| points.iter().map(|point| f64::from(u8::from(is(point)))).collect();
        let pair = |a: &Term, b: &Term| {
            let term = vec![a[0], b[0]];
            let column: Vec<f64> = column(&|point| has(point.config, &term));
            let least = (FREE * dot(&column, &column)).max(1e-9);
            Pair { term, column, least }
        };
        let later = |at: usize, a: &Term| {
            levels[at + 1..].iter().filter(|b| b[0].0 != a[0].0).map(|b| pair(a, b)).collect::<Vec<_>>()
        };
        let pairs = levels.iter().enumerate().flat_map(|(at, a)| later(at, a)).collect();
        let mut rest = Rest { logs: points.iter().map(|point| point.log).collect(), pairs };
        let of_stages = (0..stages).map(|stage| column(&|point| point.stage == stage));
        let mut known: Vec<Vec<f64>> =
            of_stages.chain(levels.iter().map(|term| column(&|point| has(point.config, term)))).collect();
        for at in 0..known.len() {
            let by = known[at].clone();
            known[at + 1..].iter_mut().for_each(|other| clear(other, &by));
            rest.explain(&by);
        }
        rest
    }

    fn explain(&mut self, by: &[f64]) {
        self.pairs.iter_mut().for_each(|pair| clear(&mut pair.column, by));
        clear(&mut self.logs, by);
    }

    /// Places of the pairs that explain more than `least` of the sum of squares, that which
    /// explains most first.
    fn largest(&self, least: f64) -> Vec<usize> {
        let gain = |pair: &Pair| {
            let size = dot(&pair.column, &pair.column);
            if size < pair.least { 0.0 } else { dot(&self.logs, &pair.column).powi(2) / size }
        };
        let gains: Vec<f64> = self.pairs.iter().map(gain).collect();
        let mut order: Vec<usize> = (0..gains.len()).filter(|at| gains[*at] > least).collect();
        order.sort_by(|a, b| gains[*b].total_cmp(&gains[*a]));
        order
    }
}

impl Model {
    /// Of each level by itself.
    pub(super) fn of_levels(stages: &[Stage]) -> Option<Model> {
        let points = points(stages);
        fitted(&points, &levels(&points))
    }

    /// Of pairs of levels too: one after the other, that which explains most first (Efroymson
    /// 1960), while it is beyond the noise.
    pub(super) fn of_pairs(stages: &[Stage]) -> Option<Model> {
        let points = points(stages);
        let mut terms = levels(&points);
        let mut rest = Rest::of(&points, &terms, stages.len());
        let noise = |stage: &Stage| Some(stage.noise()?.powi(2) / stage.rounds() as f64);
        let least = PAIR.powi(2) * stages.iter().filter_map(noise).fold(0.0, f64::max);
        let helps = |at: &usize| dot(&rest.logs, &rest.pairs[*at].column) < 0.0;
        let helping = rest.largest(least).into_iter().filter(helps).take(MOST_PAIRS);
        let leads = helping.map(|at| rest.pairs[at].term.clone()).collect();
        for _ in 0..MOST_PAIRS {
            let Some(best) = rest.largest(least).first().copied() else { break };
            let Pair { term, column, .. } = rest.pairs[best].clone();
            terms.push(term);
            rest.explain(&column);
        }
        let free = points.len().saturating_sub(terms.len() + stages.len()).max(1);
        let error = dot(&rest.logs, &rest.logs) / free as f64;
        fitted(&points, &terms).map(|model| Model { leads, error, ..model })
    }

    pub(super) fn expected(&self, config: &Config) -> f64 {
        self.terms.iter().filter(|(term, _)| has(config, term)).map(|(_, log)| log).sum()
    }

    /// The default with the levels of each lead.
    pub(super) fn leads(&self, space: &Space) -> Vec<Config> {
        let default = vec![0; space.levels.len()];
        self.leads.iter().map(|term| with(&default, term)).filter(|config| space.allows(config)).collect()
    }

    /// From the default on, the change of one option, or of the two of a pair, that helps most; as
    /// long as it helps by `least`.
    pub(super) fn path(&self, space: &Space, least: f64, most: usize) -> Vec<Config> {
        let defaults = (0..space.levels.len()).map(|option| vec![(option, 0)]);
        let moves: Vec<Term> = self.terms.iter().map(|(term, _)| term.clone()).chain(defaults).collect();
        let better = |from: &Config| {
            let all = moves.iter().map(|term| with(from, term)).filter(|config| space.allows(config));
            let next = all.min_by(|a, b| self.expected(a).total_cmp(&self.expected(b)))?;
            (self.expected(&next) <= self.expected(from) - least).then_some(next)
        };
        std::iter::successors(Some(vec![0; space.levels.len()]), better).skip(1).take(most).collect()
    }
}

/// A configuration with these levels.
pub(super) fn with(config: &Config, levels: &[(usize, usize)]) -> Config {
    let mut config = config.clone();
    levels.iter().for_each(|(option, level)| config[*option] = *level);
    config
}

/// The rounds of the last stage have no part in the choice of what it measures.
fn points(stages: &[Stage]) -> Vec<Point<'_>> {
    let chosen = stages.iter().enumerate().filter(|(_, stage)| stage.kind != Kind::Confirm);
    let point = |(at, (config, log, _))| Point { config, stage: at, log };
    chosen.flat_map(|(at, stage)| stage.means().into_iter().map(move |mean| (at, mean))).map(point).collect()
}

fn levels(points: &[Point]) -> Vec<Term> {
    let all = points.iter().flat_map(|point| point.config.iter().copied().enumerate());
    let set: BTreeSet<(usize, usize)> = all.filter(|(_, level)| *level > 0).collect();
    set.into_iter().map(|level| vec![level]).collect()
}

fn has(config: &Config, term: &Term) -> bool {
    term.iter().all(|(option, level)| config[*option] == *level)
}

/// By least squares; each stage has its own mean. `None` where the points cannot tell the terms
/// apart.
fn fitted(points: &[Point], terms: &[Term]) -> Option<Model> {
    let stages: BTreeSet<usize> = points.iter().map(|point| point.stage).collect();
    let row = |point: &Point| {
        let own = terms.iter().map(|term| has(point.config, term));
        own.chain(stages.iter().skip(1).map(|stage| point.stage == *stage)).collect::<Vec<bool>>()
    };
    let rows: Vec<Vec<bool>> = points.iter().map(row).collect();
    let weights = weights(&rows.iter().collect::<Vec<_>>())?;
    let log = |weights: &Vec<f64>| weights.iter().zip(points).map(|(by, point)| by * point.log).sum();
    Some(Model { terms: terms.iter().cloned().zip(weights.iter().map(log)).collect(), error: 0.0, leads: Vec::new() })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Takes out of a column what another explains of it.
fn clear(column: &mut [f64], by: &[f64]) {
    let size = dot(by, by);
    if size > 1e-9 {
        let share = dot(column, by) / size;
        column.iter_mut().zip(by).for_each(|(value, by)| *value -= share * by);
    }
}
