//! The answer of a tuning: which options are worth it, which make no difference, and which matter
//! on which disk for which work.

use super::advice::Advice;
use super::text::{counted, listed, percent, percent_up, signed_decimal};
use pickfs_stats::{Estimate, Finding};
use serde::{Serialize, Serializer};
use std::path::PathBuf;

/// A bound that is larger says nothing.
const VAGUE: f64 = 0.5;
/// How many options are named as mattering most.
const MOST_NAMED: usize = 3;

/// What a tuning found.
#[derive(Serialize)]
pub struct Tuned {
    pub fs: String,
    pub work: String,
    /// The simulated disk, or what the file system was made on.
    pub place: String,
    /// As a share.
    pub margin: f64,
    pub kind: Kind,
    /// What the winner sets, or the best that was found.
    pub settings: Vec<String>,
    /// Time of that over time of the default, in fresh rounds.
    pub confirmed: Option<Interval>,
    /// By how much the default can be slower than the best that was found, as a share, by the same
    /// rounds.
    pub fine_within: Option<f64>,
    /// By how much the default can be slower than the best that was tried, as a share; `None` where
    /// nothing bounds it.
    pub default_within: Option<f64>,
    /// Configurations that were measured, with the default.
    pub tried: usize,
    pub stages: Vec<Measured>,
    /// The most important first.
    pub importance: Vec<Importance>,
    /// The most useful first.
    pub effects: Vec<Row>,
    /// Values that could not be measured here.
    pub not_measured: Vec<String>,
    #[serde(skip)]
    pub advice: Option<Advice>,
    pub commands: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Winner,
    DefaultIsFine,
    NothingBetter,
    Unknown,
}

/// A ratio of times; `low` and `high` are `None` before there is an interval.
#[derive(Clone, Serialize)]
pub struct Interval {
    pub ratio: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub rounds: usize,
}

/// A stage, and where it is.
#[derive(Serialize)]
pub struct Measured {
    pub name: &'static str,
    pub journal: PathBuf,
    pub configurations: usize,
    pub rounds: usize,
}

/// How much it matters which value of an option is taken.
#[derive(Serialize)]
pub struct Importance {
    pub option: String,
    /// Of the variance of the logarithm of the time over the values of all options.
    pub share: f64,
    /// An interval of one of its values is beyond no difference.
    pub is_settled: bool,
}

/// What one value of one option does.
#[derive(Serialize)]
pub struct Row {
    /// As people say it: `commit=30`.
    pub setting: String,
    pub option: String,
    pub value: String,
    /// Time with it over time without it; all intervals hold together at 95 %.
    pub effect: Interval,
    /// Averaged over the other options, and not with these at their defaults.
    pub is_crossed: bool,
    #[serde(serialize_with = "one_word")]
    pub finding: Finding,
    /// What it takes away, in words.
    pub weakens: Option<&'static str>,
    pub is_weak: bool,
}

/// What a time with a value over the time without it says of the value.
pub fn word(finding: Finding) -> &'static str {
    match finding {
        Finding::Lower => "useful",
        Finding::ProbablyLower => "probably useful",
        Finding::Tie => "no difference",
        Finding::Unresolved | Finding::TooFewRounds => "not settled",
        Finding::ProbablyHigher => "probably costs",
        Finding::Higher => "costs",
    }
}

/// The same as one word, for programs.
fn one_word<S: Serializer>(finding: &Finding, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&word(*finding).replace(' ', "-"))
}

pub fn is_effect(finding: Finding) -> bool {
    !matches!(finding, Finding::Tie | Finding::Unresolved | Finding::TooFewRounds)
}

impl Interval {
    pub fn of(estimate: &Estimate) -> Interval {
        let (low, high) = estimate.interval.unzip();
        Interval { ratio: estimate.ratio, low, high, rounds: estimate.n }
    }

    /// "−8.0 %", and "−9.1 to −6.8 %".
    pub fn words(&self) -> [String; 2] {
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
    signed_decimal(percent, digits)
}

/// Heads of [`Row::cells`].
pub const EFFECTS: [&str; 4] = ["Setting", "Time", "Interval", "Finding"];
/// What they mean.
pub const EFFECTS_LEGEND: &str = "Time: with the value, over that of the default of its option; all intervals hold together in 95 % of tunings. \
    alone: measured with all other options at their defaults, not averaged over them.";
/// Under the table of several tunings.
pub const CHOICES_LEGEND: &str = "For each option the value that changes the time most, and the share of the differences that all options make. \
    no difference: each value is within the margin.";

impl Row {
    pub fn cells(&self) -> [String; 4] {
        let [effect, interval] = self.effect.words();
        let alone = if self.is_crossed { "" } else { ", alone" };
        let label = if self.is_weak { "; weakens: " } else { "; gives up: " };
        let weak = self.weakens.map(|how| format!("{label}{how}")).unwrap_or_default();
        [self.setting.clone(), effect, interval, format!("{}{alone}{weak}", word(self.finding))]
    }
}

impl Tuned {
    pub fn title(&self) -> String {
        format!("Options of {} for {} on {}", self.fs, self.work, self.place)
    }

    /// The sentence that answers.
    pub fn headline(&self) -> String {
        let (fs, work, settings) = (&self.fs, &self.work, self.settings.join(", "));
        let known = self.confirmed.as_ref().map(|found| (found.words(), found.rounds));
        let ([effect, interval], rounds) = known.unwrap_or_default();
        let rounds = counted(rounds, "fresh round");
        match self.kind {
            Kind::Winner => format!(
                "For {work}, {fs} is best with {settings}: {effect} time against its default ({interval}, 95 %), by {rounds}."
            ),
            Kind::DefaultIsFine => {
                let within = self.fine_within.unwrap_or(self.margin);
                let wider = if within > self.margin {
                    format!(" To show that within {} would take more rounds.", percent_up(self.margin))
                } else {
                    String::new()
                };
                format!(
                    "For {work}, the default of {fs} is fine: it is at most {} slower than the best that was found, {settings} \
                     ({effect} time, {interval}, 95 %), by {rounds}.{wider}",
                    percent_up(within)
                )
            }
            Kind::NothingBetter => format!(
                "For {work}, keep the default of {fs}: nothing is shown to be better. The best that was found, {settings}, takes \
                 {effect} time ({interval}, 95 %), by {rounds}."
            ),
            Kind::Unknown => {
                format!("For {work}, nothing is known of the options of {fs}: too little was measured. Give more time.")
            }
        }
    }

    /// In a list of several.
    pub(crate) fn in_a_list(&self) -> String {
        format!("{}: {}", self.place, self.headline())
    }

    /// How many were tried and how, and what that says of the default.
    pub fn how(&self) -> String {
        let bound = match self.default_within {
            Some(within) if within < VAGUE => {
                format!("The default is at most {} slower than the best of all of these (95 %).", percent_up(within))
            }
            _ => "The default may be more than 50 % slower than the best of all of these: the rounds do not show it."
                .to_string(),
        };
        let stage = |stage: &Measured| {
            let (count, rounds) = (stage.configurations, counted(stage.rounds, "round"));
            format!("{} {count} in {rounds}", stage.name)
        };
        let stages = self.stages.iter().map(stage).collect::<Vec<_>>().join(", ");
        format!("{} tried: {stages}. {bound}", counted(self.tried, "configuration"))
    }

    /// What else is to be said, a paragraph each: what matters most, what makes no difference, what
    /// is slower, what was not measured.
    pub fn findings(&self) -> Vec<String> {
        // What costs on average may pay together with another value.
        let is_taken = |row: &Row| self.kind == Kind::Winner && self.settings.contains(&row.setting);
        let of = |is: &dyn Fn(&Row) -> bool| {
            let names = self.effects.iter().filter(|row| is(row)).map(|row| row.setting.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let costs = |taken: bool| of(&|row| row.finding == Finding::Higher && is_taken(row) == taken);
        let settled = self.importance.iter().filter(|of| of.is_settled).take(MOST_NAMED);
        let settled: Vec<String> = settled.map(|of| format!("{} ({})", of.option, percent(of.share))).collect();
        let parts = [
            ("What matters most, by its share of the differences that all options make", listed(&settled)),
            ("No difference that matters", of(&|row| row.finding == Finding::Tie)),
            ("Slower", costs(false)),
            ("Slower in the mean over the other options, and part of the best", costs(true)),
            ("Not measured, as it failed or was left out here", self.not_measured.join(", ")),
        ];
        parts
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(head, names)| format!("{head}: {names}."))
            .collect()
    }

    /// How much an option matters here, in a few words.
    fn matters(&self, option: &str) -> String {
        let own = || self.effects.iter().filter(|row| row.option == option);
        let size = |row: &&Row| row.effect.ratio.ln().abs();
        let most = own().filter(|row| is_effect(row.finding)).max_by(|a, b| size(a).total_cmp(&size(b)));
        let share = self.importance.iter().find(|of| of.option == option).map_or(0.0, |of| of.share);
        match most {
            Some(row) => {
                let [effect, _] = row.effect.words();
                format!("{}: {effect}, {} ({})", row.value, word(row.finding), percent(share))
            }
            None if own().next().is_none() => "not measured".into(),
            None if own().all(|row| row.finding == Finding::Tie) => "no difference".into(),
            None => "not settled".into(),
        }
    }
}

/// Which option matters where: a head for each tuning, and a row for each option, the most
/// important first.
pub fn where_it_matters(tunings: &[Tuned]) -> (Vec<String>, Vec<Vec<String>>) {
    let head = |tuned: &Tuned| format!("{}, {}, {}", tuned.fs, tuned.work, tuned.place);
    let heads = std::iter::once("Option".to_string()).chain(tunings.iter().map(head)).collect();
    let mut options: Vec<(&str, f64)> = Vec::new();
    for of in tunings.iter().flat_map(|tuned| &tuned.importance) {
        let share = if of.is_settled { of.share } else { 0.0 };
        match options.iter_mut().find(|(name, _)| *name == of.option) {
            Some((_, most)) => *most = most.max(share),
            None => options.push((&of.option, share)),
        }
    }
    options.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let row = |(option, _): (&str, f64)| {
        std::iter::once(option.to_string()).chain(tunings.iter().map(|tuned| tuned.matters(option))).collect()
    };
    (heads, options.into_iter().map(row).collect())
}
