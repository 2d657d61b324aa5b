//! What each level of each option does to the time, and how much better than the default anything
//! that was tried can be.

use super::design::{MOST_FACTORS, fold_over, weights};
use super::process::{Process, with};
use super::{Config, Kind, Space, Stage};
use crate::{ALPHA, Comparisons, Estimate, Look, Schedule, paired_ratio, upper_bounds};
use std::collections::BTreeSet;

/// Of one option, without the default: what two columns of a design can say.
const MOST_CROSSED_LEVELS: usize = 3;

/// The effect of one level of one option.
#[derive(Clone, Debug)]
pub struct Effect {
    pub option: usize,
    pub level: usize,
    /// Time with it over time without it. All effects of a search hold together at 95 %.
    pub estimate: Estimate,
    /// Averaged over the other options, and not with all of these at their defaults.
    pub is_crossed: bool,
}

/// Of each level with results. A level that was crossed with others has its average effect, the
/// others theirs alone.
pub fn effects(space: &Space, stages: &[Stage]) -> Vec<Effect> {
    let confidence = 1.0 - ALPHA / space.levels.iter().sum::<usize>().max(1) as f64;
    let of = |kind: Kind| stages.iter().find(|stage| stage.kind == kind);
    let mut found: Vec<Effect> = match (of(Kind::Alone), of(Kind::Crossed)) {
        (Some(alone), Some(stage)) => crossed(stage, &design(space, alone), confidence),
        _ => Vec::new(),
    };
    for alone in of(Kind::Alone).map(|stage| alone(stage, confidence)).unwrap_or_default() {
        if !found.iter().any(|other| (other.option, other.level) == (alone.option, alone.level)) {
            found.push(alone);
        }
    }
    found.sort_by_key(|effect| (effect.option, effect.level));
    found
}

/// By option, how much it matters which of its levels is taken: the variance of the logarithm of
/// the time over them with all others alike. It is averaged over two settings of the others, the
/// default and the best that the race found, where what noise adds is taken off; what is expected
/// over all settings counts twice as much as those two.
pub fn importance(space: &Space, stages: &[Stage]) -> Vec<f64> {
    let center = |stage: &Stage| match stage.kind {
        Kind::Alone => stage.configs.first().cloned(),
        Kind::Around => stage.configs.get(1).cloned(),
        _ => None,
    };
    let lines: Vec<(&Stage, Config)> = stages.iter().filter_map(|stage| Some((stage, center(stage)?))).collect();
    let of = |option: usize| lines.iter().map(|(stage, center)| along(stage, center, option)).sum::<f64>();
    let measured = (0..space.levels.len()).map(|option| of(option) / lines.len().max(1) as f64);
    match Process::of(space, stages) {
        Some(process) => measured.zip(process.importance()).map(|(line, all)| (line + 2.0 * all) / 3.0).collect(),
        None => measured.collect(),
    }
}

/// The variance over the levels of one option, with all others as in `center`.
fn along(stage: &Stage, center: &Config, option: usize) -> f64 {
    let is_on = |config: &Config| (0..config.len()).all(|at| at == option || config[at] == center[at]);
    let (logs, rounds): (Vec<f64>, Vec<f64>) = stage
        .means()
        .into_iter()
        .filter(|(config, ..)| is_on(config))
        .map(|(_, log, rounds)| (log, rounds as f64))
        .unzip();
    let count = logs.len().max(1) as f64;
    let by_noise = rounds.iter().map(|rounds| 1.0 / rounds).sum::<f64>() * stage.noise().unwrap_or(0.0).powi(2) / count;
    (variance(&logs) - by_noise * (count - 1.0) / count).max(0.0)
}

pub(super) fn variance(values: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let center = mean(values);
    mean(&values.iter().map(|value| (value - center).powi(2)).collect::<Vec<f64>>())
}

fn alone(stage: &Stage, confidence: f64) -> Vec<Effect> {
    let of = |at: usize| {
        let option = stage.configs[at].iter().position(|level| *level > 0)?;
        let estimate = paired_ratio(&stage.against_default(at), confidence)?;
        Some(Effect { option, level: stage.configs[at][option], estimate, is_crossed: false })
    };
    (1..stage.configs.len()).filter_map(of).collect()
}

/// Every option with up to [`MOST_CROSSED_LEVELS`] of its levels, as a screening design: a level
/// that costs by itself may pay together with another. Two options and more, or nothing is crossed.
pub(super) fn design(space: &Space, alone: &Stage) -> Vec<Config> {
    let mut of_option = open_levels(space, alone);
    if of_option.len() < 2 {
        return Vec::new();
    }
    of_option.truncate(MOST_FACTORS);
    let columns =
        |of_option: &[(usize, Vec<usize>)]| of_option.iter().map(|(_, levels)| levels.len().min(2)).sum::<usize>();
    if columns(&of_option) > MOST_FACTORS {
        of_option.iter_mut().for_each(|(_, levels)| levels.truncate(1));
    }
    let config = |row: Vec<bool>| {
        let mut choices = row[of_option.len()..].iter();
        let mut config = vec![0; space.levels.len()];
        for ((option, levels), high) in of_option.iter().zip(&row) {
            let is_second = levels.len() > 1 && choices.next() == Some(&true);
            // Two columns say four things: the default, and each of three levels.
            let level = match (high, is_second) {
                (true, _) => levels.get(usize::from(is_second)),
                (false, true) => levels.get(2),
                (false, false) => None,
            };
            let set = level.map(|level| with(&config, &[(*option, *level)])).filter(|config| space.allows(config));
            config = set.unwrap_or(config);
        }
        config
    };
    fold_over(columns(&of_option)).into_iter().map(config).collect()
}

/// Options with their best levels, the best option first.
fn open_levels(space: &Space, alone: &Stage) -> Vec<(usize, Vec<usize>)> {
    let mut all = effects(space, std::slice::from_ref(alone));
    all.sort_by(|a, b| a.estimate.ratio.total_cmp(&b.estimate.ratio));
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    for effect in &all {
        match open.iter_mut().find(|(option, _)| *option == effect.option) {
            Some((_, levels)) if levels.len() < MOST_CROSSED_LEVELS => levels.push(effect.level),
            Some(_) => {}
            None => open.push((effect.option, vec![effect.level])),
        }
    }
    open
}

/// Each round has one value of each effect, so that rounds remain what is repeated. A configuration
/// without a value in one of the rounds is left out, and so is one that was drawn at random: in
/// these an effect is not clear of others.
fn crossed(stage: &Stage, design: &[Config], confidence: f64) -> Vec<Effect> {
    let is_of_design = |at: &usize| *at == 0 || design.contains(&stage.configs[*at]);
    let complete: Vec<usize> = stage.complete().into_iter().filter(is_of_design).collect();
    let all = design.iter().flat_map(|config| config.iter().copied().enumerate());
    let columns: BTreeSet<(usize, usize)> = all.filter(|(_, level)| *level > 0).collect();
    let row = |at: &usize| columns.iter().map(|(option, level)| stage.configs[*at][*option] == *level).collect();
    let rows: Vec<Vec<bool>> = complete.iter().map(row).collect();
    let Some(weights) = weights(&rows.iter().collect::<Vec<_>>()) else { return Vec::new() };
    let of = |((option, level), weights): ((usize, usize), &Vec<f64>)| {
        let in_round = |round: usize| weights.iter().zip(&complete).map(|(by, at)| by * stage.logs[*at][round]).sum();
        let rounds: Vec<f64> = (0..stage.rounds()).map(in_round).collect();
        Some(Effect { option, level, estimate: paired_ratio(&rounds, confidence)?, is_crossed: true })
    };
    columns.into_iter().zip(&weights).filter_map(of).collect()
}

/// By how much, as a share, the default can be slower than the best configuration that any stage
/// tried, and how many those are: one bound for all of them and all looks at them, in 95 % of
/// searches. Infinite where one has too few rounds.
pub fn default_within(stages: &[Stage]) -> (f64, usize) {
    let comparisons: usize = stages.iter().map(|stage| stage.configs.len() - 1).sum();
    let mut least: Vec<(&Config, f64)> = Vec::new();
    for stage in stages {
        let of = Comparisons {
            logs: &stage.logs,
            candidates: stage.configs.len(),
            comparisons,
            twins: None,
            lacking: &[],
            tick: 0.0,
        };
        let rounds = stage.rounds() as u32;
        let looks = if stage.kind.is_race() {
            Schedule::EachRound.spent(&(1..=rounds).collect::<Vec<u32>>())
        } else {
            vec![Look::only(rounds)]
        };
        let above = upper_bounds(&of, &looks).swap_remove(0);
        for (at, config) in stage.configs.iter().enumerate().skip(1) {
            let has_any = stage.logs[at].iter().any(|log| log.is_finite());
            match least.iter_mut().find(|(other, _)| *other == config) {
                Some((_, bound)) => *bound = bound.min(above[at]),
                None if has_any => least.push((config, above[at])),
                None => {}
            }
        }
    }
    (least.iter().map(|(_, bound)| *bound).fold(0.0, f64::max).exp_m1(), least.len() + 1)
}
