//! The answer of a tuning, in words and as data.

use super::study::{Study, journal, weakens, word};
use anyhow::Result;
use pickfs_host::wording::advice::{self, Advice};
use pickfs_host::wording::text::{counted, percent_up, wrapped};
use pickfs_stats::tuning::{Answer, Config, Next, Stage, default_within, effects, next};
use pickfs_stats::{Estimate, Finding, judge};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A bound that is larger says nothing.
const VAGUE: f64 = 0.5;

#[derive(Serialize)]
pub(crate) struct Tuned {
    pub fs: String,
    pub work: String,
    /// As a share.
    margin: f64,
    pub kind: Kind,
    /// What the winner sets, or the best that was found.
    pub settings: Vec<String>,
    /// Time of that over time of the default, in fresh rounds.
    pub confirmed: Option<Interval>,
    /// By how much the default can be slower than the best that was tried, as a share; `None` where nothing bounds it.
    pub default_within: Option<f64>,
    /// Configurations that were measured, with the default.
    pub tried: usize,
    pub stages: Vec<Measured>,
    pub effects: Vec<Row>,
    /// Values that could not be measured here.
    pub not_measured: Vec<String>,
    #[serde(skip)]
    pub advice: Option<Advice>,
    pub commands: Vec<String>,
}

#[derive(Clone, Copy, Serialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Winner,
    DefaultIsFine,
    NothingBetter,
    Unknown,
}

#[derive(Clone, Serialize)]
pub(crate) struct Interval {
    pub ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
    rounds: usize,
}

/// A stage, and where it is.
#[derive(Serialize)]
pub(crate) struct Measured {
    name: &'static str,
    pub journal: PathBuf,
    configurations: usize,
    rounds: usize,
}

/// What one value of one option does.
#[derive(Serialize)]
pub(crate) struct Row {
    setting: String,
    /// Time with it over time without it; all intervals hold together at 95 %.
    effect: Interval,
    /// Averaged over the other options, and not with these at their defaults.
    is_crossed: bool,
    finding: Found,
    /// What it takes away, in words.
    weakens: Option<&'static str>,
    is_weak: bool,
}

#[derive(Clone, Copy, Serialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Found {
    Useful,
    ProbablyUseful,
    NoDifference,
    NotSettled,
    ProbablyCosts,
    Costs,
}

impl Found {
    fn of(finding: Finding) -> Found {
        match finding {
            Finding::Lower => Found::Useful,
            Finding::ProbablyLower => Found::ProbablyUseful,
            Finding::Tie => Found::NoDifference,
            Finding::Unresolved | Finding::TooFewRounds => Found::NotSettled,
            Finding::ProbablyHigher => Found::ProbablyCosts,
            Finding::Higher => Found::Costs,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Found::Useful => "useful",
            Found::ProbablyUseful => "probably useful",
            Found::NoDifference => "no difference",
            Found::NotSettled => "not settled",
            Found::ProbablyCosts => "probably costs",
            Found::Costs => "costs",
        }
    }
}

impl Interval {
    fn of(estimate: &Estimate) -> Interval {
        let (low, high) = estimate.interval.unzip();
        Interval { ratio: estimate.ratio, low, high, rounds: estimate.n }
    }

    /// "−8.0 %", and "−9.1 to −6.8 %".
    fn words(&self) -> [String; 2] {
        let interval = match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{} to {} %", change(low), change(high)),
            _ => "no interval yet".into(),
        };
        [format!("{} %", change(self.ratio)), interval]
    }
}

/// In percent, with its sign.
fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = if percent.abs() < 9.95 { 1 } else { 0 };
    let size = format!("{:.digits$}", percent.abs());
    let sign = if size.trim_matches(['0', '.']).is_empty() {
        ""
    } else if percent < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{size}")
}

impl Tuned {
    /// Of a folder whose tuning is done.
    pub(crate) fn new(study: &Study, folder: &Path) -> Result<Tuned> {
        let (space, stages) = (study.space(), study.stages(folder)?);
        let Next::Done(answer) = next(&space, &stages, study.margin()) else {
            anyhow::bail!("this tuning is not done; `pickfs tune --resume {}` goes on", folder.display());
        };
        let (within, tried) = default_within(&stages);
        let (kind, config, confirmed) = match answer {
            Answer::Winner(config, estimate) => (Kind::Winner, Some(config), Some(estimate)),
            Answer::DefaultIsFine(config, estimate) => (Kind::DefaultIsFine, Some(config), Some(estimate)),
            Answer::NothingBetter(config, estimate) => (Kind::NothingBetter, Some(config), Some(estimate)),
            Answer::Unknown => (Kind::Unknown, None, None),
        };
        let advice = config.as_ref().filter(|_| kind == Kind::Winner).and_then(|config| advice_for(study, config));
        let words =
            |config: &Config| study.settings(config).iter().map(|(tunable, value)| word(tunable, value)).collect();
        let effects = rows(study, &stages);
        let all = study.options.iter().flat_map(|of| of.values.iter().map(|value| word(&of.tunable, value)));
        let is_known = |setting: &String| effects.iter().any(|row| row.setting == *setting);
        Ok(Tuned {
            fs: study.base.targets[0].name.clone(),
            work: study.base.works.iter().map(|work| work.name.as_str()).collect::<Vec<_>>().join(", "),
            margin: study.margin(),
            kind,
            settings: config.as_ref().map(words).unwrap_or_default(),
            confirmed: confirmed.as_ref().map(Interval::of),
            default_within: Some(within).filter(|within| within.is_finite() && tried > 1),
            tried,
            stages: stages.iter().map(|stage| measured(stage, folder)).collect(),
            not_measured: all.filter(|setting| !is_known(setting)).collect(),
            effects,
            commands: advice.iter().flat_map(|advice| &advice.steps).map(|step| step.command.clone()).collect(),
            advice,
        })
    }

    pub(crate) fn text(&self, width: usize) -> String {
        let mut out = wrapped("", &self.headline(), width) + "\n\n";
        let _ = writeln!(out, "{}", wrapped("", &self.how(), width));
        out += &self.table();
        let of = |found: Found| {
            let rows = self.effects.iter().filter(|row| row.finding == found);
            rows.map(|row| row.setting.clone()).collect::<Vec<_>>().join(", ")
        };
        for (head, found) in [("No difference that matters", Found::NoDifference), ("Slower", Found::Costs)] {
            let names = of(found);
            if !names.is_empty() {
                let _ = write!(out, "\n{}", wrapped("", &format!("{head}: {names}."), width));
            }
        }
        if !self.not_measured.is_empty() {
            let names = self.not_measured.join(", ");
            let _ = write!(
                out,
                "\n{}",
                wrapped("", &format!("Not measured, as it failed or was left out here: {names}."), width)
            );
        }
        if let Some(advice) = &self.advice {
            let _ = write!(out, "\n\n{}", lines_of(advice, width));
        }
        let journals = self.stages.iter().map(|stage| format!("\n  pickfs report {}", stage.journal.display()));
        out.trim_end().to_string() + "\n\nAll rounds:" + &journals.collect::<String>() + "\n"
    }

    /// The sentence that answers.
    pub(crate) fn headline(&self) -> String {
        let (fs, work, settings) = (&self.fs, &self.work, self.settings.join(", "));
        let margin = percent_up(self.margin);
        let known = self.confirmed.as_ref().map(|found| (found.words(), found.rounds));
        let ([effect, interval], rounds) = known.unwrap_or_default();
        let rounds = counted(rounds, "fresh round");
        match self.kind {
            Kind::Winner => format!(
                "For {work}, {fs} is best with {settings}: {effect} time against its default ({interval}, 95 %), by {rounds}."
            ),
            Kind::DefaultIsFine => format!(
                "For {work}, the default of {fs} is fine: the best that was found, {settings}, takes as long \
                 within {margin} ({effect}, {interval}, 95 %), by {rounds}."
            ),
            Kind::NothingBetter => format!(
                "For {work}, keep the default of {fs}: nothing is shown to be better. The best that was found, {settings}, takes \
                 {effect} time ({interval}, 95 %), by {rounds}."
            ),
            Kind::Unknown => {
                format!("For {work}, nothing is known of the options of {fs}: too little was measured. Give more time.")
            }
        }
    }

    /// How many were tried and how, and what that says of the default.
    fn how(&self) -> String {
        let bound = match self.default_within {
            Some(within) if within < VAGUE => {
                format!("The default is at most {} slower than the best of all of these (95 %).", percent_up(within))
            }
            _ => "By how much the default is slower than the best of all of these is not known to within a half."
                .to_string(),
        };
        let stage = |stage: &Measured| {
            let (count, rounds) = (stage.configurations, counted(stage.rounds, "round"));
            format!("{} {count} in {rounds}", stage.name)
        };
        let stages = self.stages.iter().map(stage).collect::<Vec<_>>().join(", ");
        format!("{} tried: {stages}. {bound}", counted(self.tried, "configuration"))
    }

    /// Most useful first.
    fn table(&self) -> String {
        let mut out = String::new();
        let width = self.effects.iter().map(|row| row.setting.len()).max().unwrap_or(0).max(7);
        let _ = write!(out, "\n{:width$}  {:>8}  {:>18}  (all together 95 %)\n", "Setting", "time", "interval");
        for row in &self.effects {
            let [effect, interval] = row.effect.words();
            let (alone, word) = (if row.is_crossed { "" } else { ", alone" }, row.finding.word());
            let label = if row.is_weak { "; weakens: " } else { "; gives up: " };
            let weak = row.weakens.map(|how| format!("{label}{how}")).unwrap_or_default();
            let _ = writeln!(out, "{:width$}  {effect:>8}  {interval:>18}  {word}{alone}{weak}", row.setting);
        }
        out
    }
}

fn measured(stage: &Stage, folder: &Path) -> Measured {
    let (name, journal) = (stage.kind.name(), journal(folder, stage.kind));
    Measured { name, journal, configurations: stage.configs.len(), rounds: stage.rounds() }
}

fn rows(study: &Study, stages: &[Stage]) -> Vec<Row> {
    let mut effects = effects(&study.space(), stages);
    effects.sort_by(|a, b| a.estimate.ratio.total_cmp(&b.estimate.ratio));
    let row = |effect: &pickfs_stats::tuning::Effect| {
        let option = &study.options[effect.option];
        let value = option.values[effect.level - 1];
        Row {
            setting: word(&option.tunable, value),
            effect: Interval::of(&effect.estimate),
            is_crossed: effect.is_crossed,
            finding: Found::of(judge(&effect.estimate, study.margin())),
            weakens: value.weakens.map(|(_, how)| how),
            is_weak: weakens(value),
        }
    };
    effects.iter().map(row).collect()
}

/// Words of variants are not those of their target.
fn advice_for(study: &Study, config: &Config) -> Option<Advice> {
    let target = study.target(config);
    target.variant.is_none().then(|| advice::of_target(&target, &target.mkfs, &target.mount)).flatten()
}

/// Lines to paste, and what goes with them.
fn lines_of(advice: &Advice, width: usize) -> String {
    let mut out = format!("To use {}:\n", advice.target);
    for step in &advice.steps {
        let _ = writeln!(out, "  {:10} {}", step.when, step.command);
    }
    advice.notes.iter().for_each(|note| out += &(wrapped("  ", note, width) + "\n"));
    out.trim_end().to_string()
}
