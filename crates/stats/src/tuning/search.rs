//! What to measure next, and the answer.

use super::design::{MOST_FACTORS, fold_over};
use super::effects::effects;
use super::{Config, Kind, Space, Stage};
use crate::{Estimate, Finding, judge, paired_ratio};

/// The fewest rounds of a stage: what its noise is estimated from.
const FIRST: u32 = 4;
/// A search does not go on for ever on a machine that is too noisy for its margin.
const MOST_ALONE: u32 = 24;
const MOST_CROSSED: u32 = 32;
const FEWEST_CONFIRM: u32 = 8;
const MOST_CONFIRM: u32 = 120;
/// Options whose combinations are raced.
const MOST_COMBINED: usize = 6;
/// An effect is known to this part of the margin, as a standard error.
const EFFECT: f64 = 0.25;
/// Of configurations that are as near to the best as this part of the margin, that with the fewest options is taken.
const AS_GOOD: f64 = 1.0 / 6.0;
/// Standard errors by which a level may have had bad luck.
const LUCKY: f64 = 1.64;
/// Standard errors of a difference in the margin that is to be shown: 1.96 of the interval, and the rest for its luck.
const SHOWN: f64 = 4.4;

/// The default is fine if it is slower by at most this many margins: on a noisy machine one margin is not shown by the rounds that a
/// search takes, and the share is said.
const FINE: f64 = 2.0;

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// This stage, up to this number of rounds in all; `None` for as many as decide the race.
    Measure {
        kind: Kind,
        configs: Vec<Config>,
        rounds: Option<u32>,
    },
    Done(Answer),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The configuration is faster than the default, by fresh rounds.
    Winner(Config, Estimate),
    /// Fresh rounds show the default to be slower than the best that was found by at most this share, which is small.
    DefaultIsFine(Config, Estimate, f64),
    /// Fresh rounds do not show the best that was found to be faster.
    NothingBetter(Config, Estimate),
    /// Too little was measured.
    Unknown,
}

/// What to measure after these stages. `margin` is the relative
/// difference that matters.
pub fn next(space: &Space, stages: &[Stage], margin: f64) -> Next {
    let margin = margin.ln_1p();
    let of = |kind: Kind| stages.iter().find(|stage| stage.kind == kind);
    for kind in Kind::ALL {
        let (configs, is_over) = match of(kind) {
            Some(stage) => (stage.configs.clone(), stage.is_over),
            None => (configs_of(kind, space, stages, margin), false),
        };
        // The default alone is no stage.
        if configs.len() < 2 || is_over {
            continue;
        }
        let rounds = rounds_of(kind, of(kind), stages, margin);
        let done = of(kind).map_or(0, Stage::rounds) as u32;
        if rounds.is_none_or(|rounds| done < rounds) {
            return Next::Measure { kind, configs, rounds };
        }
    }
    Next::Done(of(Kind::Confirm).and_then(|stage| answer(stage, margin)).unwrap_or(Answer::Unknown))
}

fn answer(stage: &Stage, margin: f64) -> Option<Answer> {
    let estimate = paired_ratio(&stage.against_default(1), 0.95)?;
    let config = stage.configs[1].clone();
    let within = estimate.interval.map_or(f64::INFINITY, |(low, _)| (1.0 / low - 1.0).max(0.0));
    Some(match judge(&estimate, margin.exp_m1()) {
        Finding::Lower | Finding::ProbablyLower => Answer::Winner(config, estimate),
        Finding::TooFewRounds => return None,
        _ if within <= FINE * margin.exp_m1() => Answer::DefaultIsFine(config, estimate, within),
        _ => Answer::NothingBetter(config, estimate),
    })
}

/// The default first.
fn configs_of(kind: Kind, space: &Space, stages: &[Stage], margin: f64) -> Vec<Config> {
    let default = vec![0; space.levels.len()];
    let of = |kind: Kind| stages.iter().find(|stage| stage.kind == kind);
    let others = match kind {
        Kind::Alone => {
            let each =
                space.levels.iter().enumerate().flat_map(|(option, levels)| (1..=*levels).map(move |to| (option, to)));
            each.map(|(option, level)| with(&default, option, level)).collect()
        }
        Kind::Crossed => of(Kind::Alone).map(|alone| crossed(space, alone, margin)).unwrap_or_default(),
        Kind::Race => promising(space, stages, margin),
        Kind::Confirm => {
            let best = |kind: Kind| of(kind).and_then(|stage| challenger(space, stage, stages, margin));
            best(Kind::Race).or_else(|| best(Kind::Alone)).into_iter().collect()
        }
    };
    let mut configs = vec![default];
    for config in others {
        if !configs.contains(&config) {
            configs.push(config);
        }
    }
    configs
}

fn with(config: &Config, option: usize, level: usize) -> Config {
    let mut config = config.clone();
    config[option] = level;
    config
}

/// The levels to cross, as a screening design: of each option that does not only cost the best, and the second where it may well
/// be better. Of options that exclude each other the better one. Two and more, or nothing is crossed.
fn crossed(space: &Space, alone: &Stage, margin: f64) -> Vec<Config> {
    let mut of_option = open_levels(space, alone, margin);
    if of_option.len() < 2 {
        return Vec::new();
    }
    of_option.truncate(MOST_FACTORS);
    let columns = |of_option: &[(usize, Vec<usize>)]| of_option.iter().map(|(_, levels)| levels.len()).sum::<usize>();
    if columns(&of_option) > MOST_FACTORS {
        of_option.iter_mut().for_each(|(_, levels)| levels.truncate(1));
    }
    let config = |row: Vec<bool>| {
        let mut choices = row[of_option.len()..].iter();
        let mut config = vec![0; space.levels.len()];
        for ((option, levels), high) in of_option.iter().zip(&row) {
            let is_second = levels.len() > 1 && choices.next() == Some(&true);
            config[*option] = if *high { levels[usize::from(is_second)] } else { 0 };
        }
        config
    };
    fold_over(columns(&of_option)).into_iter().map(config).collect()
}

/// Options with one or two levels each.
fn open_levels(space: &Space, alone: &Stage, margin: f64) -> Vec<(usize, Vec<usize>)> {
    let mut all = effects(space, std::slice::from_ref(alone));
    all.retain(|effect| judge(&effect.estimate, margin.exp_m1()) != Finding::Higher);
    all.sort_by(|a, b| a.estimate.ratio.total_cmp(&b.estimate.ratio));
    let luck = alone.noise().unwrap_or(0.0) * (2.0 / alone.rounds().max(1) as f64).sqrt();
    let mut open: Vec<(usize, Vec<usize>, f64)> = Vec::new();
    for effect in &all {
        let (option, level, log) = (effect.option, effect.level, effect.estimate.ratio.ln());
        let is_excluded = |(other, levels, _): &(usize, Vec<usize>, f64)| {
            levels.iter().any(|other_level| space.exclude((*other, *other_level), (option, level)))
        };
        let is_out = open.iter().any(is_excluded);
        match open.iter_mut().find(|(other, ..)| *other == option) {
            Some((_, levels, best)) if levels.len() == 1 && log - *best - LUCKY * luck < -margin / 2.0 => {
                levels.push(level)
            }
            Some(_) => {}
            None if is_out => {}
            None => open.push((option, vec![level], log)),
        }
    }
    open.into_iter().map(|(option, levels, _)| (option, levels)).collect()
}

/// The options that help most, one after the other; all of these but one; and the best that was measured.
fn promising(space: &Space, stages: &[Stage], margin: f64) -> Vec<Config> {
    let Some(stage) = stages.iter().find(|stage| stage.kind == Kind::Crossed) else { return Vec::new() };
    let mut helping = effects(space, stages);
    helping.retain(|effect| effect.is_crossed);
    helping.sort_by(|a, b| a.estimate.ratio.total_cmp(&b.estimate.ratio));
    let mut seen = Vec::new();
    helping.retain(|effect| {
        !seen.contains(&effect.option) && {
            seen.push(effect.option);
            true
        }
    });
    let helps = |ratio: f64| ratio.ln() < -margin / 6.0;
    let count = helping.iter().take(MOST_COMBINED).filter(|effect| helps(effect.estimate.ratio)).count();
    helping.truncate(count.max(1));
    let default = vec![0; space.levels.len()];
    let made = |without: Option<usize>, count: usize| {
        let parts = helping.iter().take(count).enumerate().filter(|(at, _)| Some(*at) != without);
        parts.fold(default.clone(), |config, (_, effect)| with(&config, effect.option, effect.level))
    };
    let nested = (1..=helping.len()).map(|count| made(None, count));
    let without = (0..helping.len()).map(|at| made(Some(at), helping.len())).filter(|config| *config != default);
    let best = |stage: &Stage| ranked(stage).first().map(|(at, _)| stage.configs[*at].clone());
    let alone = stages.iter().find(|stage| stage.kind == Kind::Alone).and_then(best);
    nested.chain(without).chain(best(stage)).chain(alone).collect()
}

/// The configurations beside the default that have all rounds, the fastest first, with the mean of their logarithms.
fn ranked(stage: &Stage) -> Vec<(usize, f64)> {
    let mean = |at: usize| (at, stage.logs[at].iter().sum::<f64>() / stage.rounds() as f64);
    let mut means: Vec<(usize, f64)> = stage.complete().into_iter().filter(|at| *at > 0).map(mean).collect();
    means.sort_by(|a, b| a.1.total_cmp(&b.1));
    means
}

/// The best that a race found, or one with fewer options that is as good. What the design says of a sum of effects counts too, by
/// how well it is known: among many that are raced, the luckiest looks best.
fn challenger(space: &Space, race: &Stage, stages: &[Stage], margin: f64) -> Option<Config> {
    let known = effects(space, stages);
    let expected = |config: &Config| {
        let own = known.iter().filter(|effect| config[effect.option] == effect.level);
        own.map(|effect| effect.estimate.ratio.ln()).sum::<f64>()
    };
    let variance = |stage: &Stage, of: f64| of * stage.noise().unwrap_or(0.0).powi(2) / stage.rounds().max(1) as f64;
    let crossed = stages.iter().find(|stage| stage.kind == Kind::Crossed);
    // Two options more or less, and what pairs of options add.
    let of_design = crossed
        .map_or(f64::INFINITY, |stage| variance(stage, 8.0 / stage.configs.len() as f64) + (margin / 2.0).powi(2));
    let by_design = variance(race, 1.0) / (variance(race, 1.0) + of_design);
    let means = ranked(race);
    let apart = |(at, mean): &(usize, f64)| expected(&race.configs[*at]) - mean;
    // The default may be eliminated, so the two are aligned by what all have in common.
    let common = means.iter().map(apart).sum::<f64>() / means.len().max(1) as f64;
    let mut scores: Vec<(usize, f64)> =
        means.iter().map(|mean| (mean.0, mean.1 + by_design * (apart(mean) - common))).collect();
    scores.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (_, best) = *scores.first()?;
    let good = scores.iter().take_while(|(_, score)| *score <= best + AS_GOOD * margin);
    let fewest = good.min_by_key(|(at, _)| race.configs[*at].iter().filter(|level| **level > 0).count())?;
    Some(race.configs[fewest.0].clone())
}

/// In all; `None` of a race, which ends when it is decided.
fn rounds_of(kind: Kind, own: Option<&Stage>, stages: &[Stage], margin: f64) -> Option<u32> {
    let fixed = |wanted: f64, fewest: u32, most: u32| Some((wanted.ceil() as u32).clamp(fewest, most));
    let first = own.filter(|stage| stage.rounds() >= FIRST as usize);
    let noise = |stage: &Stage| stage.noise().unwrap_or(0.0) / margin;
    match (kind, first) {
        (Kind::Race, _) => None,
        (Kind::Alone, Some(stage)) => fixed(2.0 * first_rounds(stage, noise).powi(2), FIRST, MOST_ALONE),
        (Kind::Crossed, Some(stage)) => {
            let noise = first_rounds(stage, noise) * 2.0 / EFFECT;
            fixed(noise.powi(2) / stage.configs.len() as f64, FIRST, MOST_CROSSED)
        }
        (Kind::Alone | Kind::Crossed, None) => Some(FIRST),
        (Kind::Confirm, _) => {
            let before: Vec<&Stage> = stages.iter().filter(|stage| stage.kind != Kind::Confirm).collect();
            let noise = before.iter().map(|stage| noise(stage)).fold(0.0, f64::max);
            fixed(2.0 * (SHOWN * noise).powi(2), FEWEST_CONFIRM, MOST_CONFIRM)
        }
    }
}

/// By the first rounds alone, so that the number does not change when they are done.
fn first_rounds(stage: &Stage, noise: impl Fn(&Stage) -> f64) -> f64 {
    let logs = stage.logs.iter().map(|logs| logs[..logs.len().min(FIRST as usize)].to_vec()).collect();
    noise(&Stage { logs, ..stage.clone() })
}
