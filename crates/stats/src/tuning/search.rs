//! What to measure next, and the answer.

use super::effects::design;
use super::process::{Process, with};
use super::{Config, Kind, Space, Stage};
use crate::{Estimate, Finding, LAST_LOOK, judge, paired_ratio};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The fewest rounds of a stage: what its noise is estimated from.
const FIRST: u32 = 4;
/// A search does not go on for ever on a machine that is too noisy for its margin.
const MOST_ALONE: u32 = 24;
const MOST_CROSSED: u32 = 32;
const MOST_RACE: u32 = 120;
const FEWEST_CONFIRM: u32 = 8;
const MOST_CONFIRM: u32 = 120;
/// Configurations that are drawn at random and crossed too.
const MOST_DRAWN: usize = 24;
/// Changes of the default that are raced together.
const MOST_COMBINED: usize = 6;
/// Of what was crossed, the best are raced as they are.
const MOST_MEASURED: usize = 4;
/// An effect is known to this part of the margin, as a standard error.
const EFFECT: f64 = 0.25;
/// Of configurations that are as near to the best as this part of the margin, that with the fewest
/// options is taken.
const AS_GOOD: f64 = 1.0 / 6.0;
/// Standard errors of a difference in the margin by which the best of a stage is chosen.
const CHOSEN: f64 = 2.0;
/// Standard errors of a difference in the margin that is to be shown: 1.96 of the interval, and the
/// rest for its luck.
const SHOWN: f64 = 4.4;

/// The default is fine if it is slower by at most this many margins: on a noisy machine one margin
/// is not shown by the rounds that a search takes, and the share is said.
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
    /// Fresh rounds show the default to be slower than the best that was found by at most this
    /// share, which is small.
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
    let best = |kind: Kind| of(kind).and_then(|stage| challenger(space, stage, stages, margin));
    let others = match kind {
        Kind::Alone => around(space, default.clone()),
        Kind::Crossed => of(Kind::Alone).map(|alone| crossed(space, alone)).unwrap_or_default(),
        Kind::Race => promising(space, stages, margin),
        Kind::Around => best(Kind::Race).map(|best| around(space, best)).unwrap_or_default(),
        Kind::Confirm => [Kind::Around, Kind::Race, Kind::Alone].into_iter().find_map(best).into_iter().collect(),
    };
    let mut configs = vec![default];
    for config in others {
        if !configs.contains(&config) {
            configs.push(config);
        }
    }
    configs
}

/// A configuration, and the same with each other level of each option.
fn around(space: &Space, center: Config) -> Vec<Config> {
    let others = space.each_level().map(|level| with(&center, &[level])).filter(|config| space.allows(config));
    std::iter::once(center.clone()).chain(others).collect()
}

/// A screening design, and others at random.
fn crossed(space: &Space, alone: &Stage) -> Vec<Config> {
    let design = design(space, alone);
    let more = drawn(space, alone, (design.len() * 3 / 2).min(MOST_DRAWN));
    design.into_iter().chain(more).collect()
}

/// Configurations of any levels, drawn at random: a design of two levels says nothing of the
/// others, and gives some pairs of options nearly the same rows. The draw follows from what was
/// measured, so that a search that was cut makes the same one.
fn drawn(space: &Space, alone: &Stage, count: usize) -> Vec<Config> {
    let seed = alone.logs.iter().flatten().fold(0_u64, |seed, log| seed.rotate_left(7) ^ log.to_bits());
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut level = |most: &usize| (generator.next_u64() % (*most as u64 + 1)) as usize;
    let all: Vec<Config> = (0..count).map(|_| space.levels.iter().map(&mut level).collect()).collect();
    all.into_iter().filter(|config| space.allows(config)).collect()
}

/// What is expected to help, one change after the other, and the best that was measured.
fn promising(space: &Space, stages: &[Stage], margin: f64) -> Vec<Config> {
    let process = Process::of(space, stages);
    let path = |daring: f64| process.iter().flat_map(move |process| process.path(daring, margin / 6.0, MOST_COMBINED));
    let paths = path(0.0).chain(path(1.0)).chain(path(2.0));
    let best = |(kind, count): (Kind, usize)| {
        let stage = stages.iter().find(|stage| stage.kind == kind);
        let places = stage.map(|stage| (stage, ranked(stage))).into_iter();
        places.flat_map(move |(stage, ranked)| ranked.into_iter().take(count).map(|(at, _)| stage.configs[at].clone()))
    };
    paths.chain([(Kind::Crossed, MOST_MEASURED), (Kind::Alone, 1)].into_iter().flat_map(best)).collect()
}

/// The configurations that have all rounds, without the default, the fastest first, with the mean
/// of their logarithms.
fn ranked(stage: &Stage) -> Vec<(usize, f64)> {
    let mean = |at: usize| (at, stage.logs[at].iter().sum::<f64>() / stage.rounds() as f64);
    let mut means: Vec<(usize, f64)> = stage.complete().into_iter().filter(|at| *at > 0).map(mean).collect();
    means.sort_by(|a, b| a.1.total_cmp(&b.1));
    means
}

/// The best that a race found, or one with fewer options that is as good, by what is expected of
/// each. All that was measured of its neighbours counts in that: among many that are raced, the
/// luckiest looks best.
fn challenger(space: &Space, race: &Stage, stages: &[Stage], margin: f64) -> Option<Config> {
    let process = Process::of(space, stages)?;
    let mut scores: Vec<(usize, f64)> =
        ranked(race).into_iter().map(|(at, _)| (at, process.expected(&race.configs[at]))).collect();
    scores.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (_, best) = *scores.first()?;
    let good = scores.iter().take_while(|(_, score)| *score <= best + AS_GOOD * margin);
    let fewest = good.min_by_key(|(at, _)| race.configs[*at].iter().filter(|level| **level > 0).count())?;
    Some(race.configs[fewest.0].clone())
}

/// In all; `None` of a race that ends when it is decided.
fn rounds_of(kind: Kind, own: Option<&Stage>, stages: &[Stage], margin: f64) -> Option<u32> {
    let fixed = |wanted: f64, fewest: u32, most: u32| Some((wanted.ceil() as u32).clamp(fewest, most));
    let first = own.filter(|stage| stage.rounds() >= FIRST as usize);
    let noise = |stage: &Stage| stage.noise().unwrap_or(0.0) / margin;
    let most =
        |counts: fn(Kind) -> bool| stages.iter().filter(|stage| counts(stage.kind)).map(noise).fold(0.0, f64::max);
    match (kind, first) {
        (Kind::Alone, Some(stage)) => fixed(2.0 * first_rounds(stage, noise).powi(2), FIRST, MOST_ALONE),
        (Kind::Crossed, Some(stage)) => {
            let noise = first_rounds(stage, noise) * 2.0 / EFFECT;
            fixed(noise.powi(2) / stage.configs.len() as f64, FIRST, MOST_CROSSED)
        }
        (Kind::Alone | Kind::Crossed, None) => Some(FIRST),
        // The looks of a race end before a noisy machine shows which of many is the best.
        (Kind::Race | Kind::Around, _) => {
            fixed(2.0 * (CHOSEN * most(|kind| matches!(kind, Kind::Alone | Kind::Crossed))).powi(2), 0, MOST_RACE)
                .filter(|rounds| *rounds > LAST_LOOK)
        }
        (Kind::Confirm, _) => {
            fixed(2.0 * (SHOWN * most(|kind| kind != Kind::Confirm)).powi(2), FEWEST_CONFIRM, MOST_CONFIRM)
        }
    }
}

/// By the first rounds alone, so that the number does not change when they are done.
fn first_rounds(stage: &Stage, noise: impl Fn(&Stage) -> f64) -> f64 {
    let logs = stage.logs.iter().map(|logs| logs[..logs.len().min(FIRST as usize)].to_vec()).collect();
    noise(&Stage { logs, ..stage.clone() })
}
