//! The answer of a tuning, from its journals.

use super::study::{Choice, Study, journal, weakens, word};
use anyhow::Result;
use pickfs_core::journal::typed;
use pickfs_host::wording::advice::{self, Advice};
use pickfs_host::wording::text::plain;
use pickfs_host::wording::tuning::{Importance, Interval, Kind, Measured, Row, Tuned, is_effect};
use pickfs_stats::judge;
use pickfs_stats::tuning::{Answer, Config, Effect, Next, Stage, default_within, effects, importance, next};
use std::path::Path;

/// Of a folder whose tuning is done.
pub(crate) fn tuned(study: &Study, folder: &Path) -> Result<Tuned> {
    let (space, stages) = (study.space(), study.stages(folder)?);
    let Next::Done(answer) = next(&space, &stages, study.margin()) else {
        anyhow::bail!("this tuning is not done; `pickfs tune --resume {}` goes on", typed(folder));
    };
    let (within, tried) = default_within(&stages);
    let (kind, fine_within, best) = match answer {
        Answer::Winner(config, estimate) => (Kind::Winner, None, Some((config, estimate))),
        Answer::DefaultIsFine(config, estimate, within) => {
            (Kind::DefaultIsFine, Some(within), Some((config, estimate)))
        }
        Answer::NothingBetter(config, estimate) => (Kind::NothingBetter, None, Some((config, estimate))),
        Answer::Unknown => (Kind::Unknown, None, None),
    };
    let (config, confirmed) = best.unzip();
    let advice = config.as_ref().filter(|_| kind == Kind::Winner).and_then(|config| advice_for(study, config));
    let words = |config: &Config| study.settings(config).iter().map(|(tunable, value)| word(tunable, value)).collect();
    let known = effects(&space, &stages);
    let effects = rows(study, &known);
    let importance = important(study, &importance(&space, &stages), &effects);
    let all = study.options.iter().flat_map(|of| of.values.iter().map(|value| word(&of.tunable, value)));
    let is_known = |setting: &String| effects.iter().any(|row| row.setting == *setting);
    Ok(Tuned {
        fs: plain(&study.base.targets[0].name),
        work: study.base.works.iter().map(|work| plain(&work.name)).collect::<Vec<_>>().join(", "),
        place: plain(&study.place()),
        margin: study.margin(),
        kind,
        settings: config.as_ref().map(words).unwrap_or_default(),
        confirmed: confirmed.as_ref().map(Interval::of),
        fine_within,
        default_within: Some(within).filter(|within| within.is_finite() && tried > 1),
        tried,
        stages: stages.iter().map(|stage| measured(stage, folder)).collect(),
        not_measured: all.filter(|setting| !is_known(setting)).collect(),
        importance,
        effects,
        commands: advice.iter().flat_map(|advice| &advice.steps).map(|step| step.command.clone()).collect(),
        advice,
    })
}

fn measured(stage: &Stage, folder: &Path) -> Measured {
    let (name, journal) = (stage.kind.name(), journal(folder, stage.kind));
    Measured { name, journal, configurations: stage.configs.len(), rounds: stage.rounds() }
}

/// The most useful first.
fn rows(study: &Study, effects: &[Effect]) -> Vec<Row> {
    let row = |effect: &Effect| {
        let option = &study.options[effect.option];
        let value = option.values[effect.level - 1];
        Row {
            setting: word(&option.tunable, value),
            option: option.tunable.name.into(),
            value: value.name.into(),
            effect: Interval::of(&effect.estimate),
            is_crossed: effect.is_crossed,
            finding: judge(&effect.estimate, study.margin()),
            weakens: value.weakens.map(|(_, how)| how),
            is_weak: weakens(value),
        }
    };
    let mut rows: Vec<Row> = effects.iter().map(row).collect();
    rows.sort_by(|a, b| a.effect.ratio.total_cmp(&b.effect.ratio));
    rows
}

/// The most important first, of the measured ones.
fn important(study: &Study, variances: &[f64], rows: &[Row]) -> Vec<Importance> {
    let all: f64 = variances.iter().sum();
    let of = |(option, variance): (&Choice, &f64)| {
        let name = option.tunable.name;
        let own = || rows.iter().filter(|row| row.option == name);
        let is_settled = own().any(|row| is_effect(row.finding));
        own().next()?;
        Some(Importance { option: name.into(), share: variance / all.max(f64::MIN_POSITIVE), is_settled })
    };
    let mut found: Vec<Importance> = study.options.iter().zip(variances).filter_map(of).collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// Words of variants are not those of their target.
fn advice_for(study: &Study, config: &Config) -> Option<Advice> {
    let target = study.target(config);
    target.variant.is_none().then(|| advice::of_target(&target, &target.mkfs, &target.mount)).flatten()
}
