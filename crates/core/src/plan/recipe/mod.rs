//! Recipes: works as data. A recipe is one TOML file that names files and a server to be made, phases that start programs,
//! and what is read from what these print. Its text travels with the plan, so nothing beside the journal is needed.
//!
//! Checked as a plan is, with all complaints at once.

mod amount;
mod keys;
mod read;
mod rows;
mod scope;

pub use amount::{Amount, Values, Word};
pub use keys::TABLES;

use super::complaint::Source;
use super::{Complaint, Setting, SettingKind, Settings};
use regex_lite::Regex;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The workload that plays the recipe that a plan names, and the setting that holds its text.
pub const RECIPE: &str = "recipe";

/// A work of programs.
#[derive(Debug)]
pub struct Recipe {
    pub name: String,
    pub about: String,
    pub settings: Vec<Setting>,
    pub(crate) ranges: Vec<Range>,
    pub main: &'static str,
    /// Phases have no unit in common, so the work is judged by the geometric mean of their times.
    pub is_mean: bool,
    pub seconds: Option<Amount>,
    pub bytes: Option<Amount>,
    /// Programs with the packages that bring them.
    pub needs: Vec<(&'static str, &'static str)>,
    pub versions: Vec<Vec<String>>,
    pub environment: Vec<Word>,
    /// Lists of words by name, for commands that have them in common.
    pub words: BTreeMap<&'static str, Command>,
    pub files: Vec<MadeFile>,
    pub server: Option<ServerOf>,
    pub phases: Vec<PhaseOf>,
}

/// A program and its arguments.
pub type Command = Vec<Word>;

/// The values that a setting of numbers may have.
#[derive(Debug)]
pub(crate) struct Range {
    pub setting: &'static str,
    pub at_least: u64,
    pub at_most: u64,
    /// Only multiples of it.
    pub step: u64,
}

/// A file below the target's folder that is there before the first phase.
#[derive(Debug)]
pub struct MadeFile {
    pub path: String,
    pub content: Content,
}

#[derive(Debug)]
pub enum Content {
    Text(Word),
    /// Bytes that compress as those of people do.
    Bytes(Amount),
}

/// A program that runs beside the phases.
#[derive(Debug)]
pub struct ServerOf {
    pub run: Command,
    /// Succeeds as soon as the server answers.
    pub ready: Command,
    pub stop: StopSignal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    Int,
    Quit,
    Term,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    Fresh,
    Warm,
    Cold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    Returned,
    Durable,
    /// Its parts have times, and it has none.
    Parts,
}

/// What a cold start must make the device read.
#[derive(Clone, Debug, PartialEq)]
pub enum Reads {
    AllData,
    Metadata,
    Anything,
    AtLeast(Amount),
}

#[derive(Debug)]
pub struct PhaseOf {
    /// With the setting of `each` in it, where there is one.
    pub name: Word,
    /// A setting of several counts: there is a phase for each.
    pub each: Option<&'static str>,
    pub about: &'static str,
    pub starts: Starts,
    pub until: Until,
    pub reads: Reads,
    pub is_judged: bool,
    /// Programs, in order: untimed before it, in it, in it after what is read from the output, and untimed after it.
    pub before: Vec<Command>,
    pub run: Vec<Command>,
    pub flush: Vec<Command>,
    pub then: Vec<Command>,
    pub metrics: Vec<Figure>,
    pub parts: Vec<PartOf>,
}

#[derive(Debug)]
pub struct PartOf {
    pub name: String,
    pub about: &'static str,
    pub is_judged: bool,
    pub time: Figure,
    pub metrics: Vec<Figure>,
}

/// A number: found in what the programs of a phase printed, or known before.
#[derive(Debug)]
pub struct Figure {
    /// Empty where the number is only checked.
    pub name: String,
    pub source: FigureSource,
    pub times: f64,
    /// What the number must be at least, and what it must be.
    pub at_least: Option<Amount>,
    pub equals: Option<Amount>,
}

#[derive(Debug)]
pub enum FigureSource {
    /// The last match counts; the amount is divided by it where there is one.
    Found {
        pattern: Regex,
        amount: Option<Amount>,
    },
    Amount(Amount),
}

impl Recipe {
    /// Its settings that are out of range, each with what is wrong and what to give.
    pub fn out_of_range(&self, settings: &Settings) -> Vec<(&'static str, String, String)> {
        let each = self.phases.iter().filter_map(|phase| phase.each);
        let repeated = each.filter_map(|setting| {
            let numbers = settings.0.get(setting)?.as_array()?;
            let twice = numbers.iter().enumerate().find(|(at, number)| numbers[..*at].contains(number))?.1;
            let remedy = "give each number once: there is a phase for each";
            Some((setting, format!("`{setting}` has {twice} twice"), remedy.to_string()))
        });
        self.ranges.iter().filter_map(|range| range.complaint(settings)).chain(repeated).collect()
    }

    /// The settings, and the defaults of those that are not given.
    fn with_defaults(&self, settings: &Settings) -> Settings {
        // A journal may say anything, and only lists may make many words of one.
        let is_list = |row: &Setting| matches!(row.kind, SettingKind::Counts | SettingKind::Texts);
        let given = |row: &Setting| settings.0.get(row.name).filter(|value| value.is_array() == is_list(row)).cloned();
        let value = |row: &Setting| given(row).or_else(|| row.default_value());
        Settings(self.settings.iter().filter_map(|row| Some((row.name.to_string(), value(row)?))).collect())
    }

    /// Every command with what it is for, in order, but those that print versions.
    pub fn commands(&self) -> Vec<(&'static str, &Command)> {
        let server = self.server.iter().flat_map(|server| [("server", &server.run), ("ready", &server.ready)]);
        let of_phases = self.phases.iter().flat_map(|phase| {
            let lists =
                [("before", &phase.before), ("run", &phase.run), ("flush", &phase.flush), ("then", &phase.then)];
            lists.into_iter().flat_map(|(key, list)| list.iter().map(move |command| (key, command)))
        });
        server.chain(of_phases).collect()
    }

    /// What its words and amounts stand for, with what is named besides settings.
    pub fn values(&self, settings: &Settings, named: impl IntoIterator<Item = (&'static str, String)>) -> Values {
        let named = named.into_iter().collect();
        Values { settings: self.with_defaults(settings), named, lists: self.words.clone() }
    }

    /// Each phase as it is played: its name, and what its `each` stands for in it.
    pub fn played(&self, values: &Values) -> Vec<(String, &PhaseOf, Values)> {
        let each = |phase| {
            let phase: &PhaseOf = phase;
            let numbers = phase.each.map_or(vec![None], |setting| {
                values.texts(setting).into_iter().map(|number| Some((setting, number))).collect()
            });
            numbers.into_iter().map(move |number| {
                let mut values = values.clone();
                values.named.extend(number);
                (phase.name.filled(&values).concat(), phase, values)
            })
        };
        self.phases.iter().flat_map(each).collect()
    }
}

impl Range {
    fn complaint(&self, settings: &Settings) -> Option<(&'static str, String, String)> {
        let Range { setting, at_least, at_most, step } = self;
        let given = settings.0.get(*setting)?;
        let numbers = given.as_array().map_or(std::slice::from_ref(given), Vec::as_slice);
        let number = numbers.iter().filter_map(serde_json::Value::as_u64);
        let wrong = number.into_iter().find(|n| !(at_least..=at_most).contains(&n) || n % step != 0)?;
        let message = format!("`{setting}` is {wrong}");
        let remedy = match (*at_most, *step) {
            (u64::MAX, 1) => format!("give {at_least} or more"),
            (u64::MAX, step) => format!("give a multiple of {step}, and {at_least} or more"),
            (most, 1) => format!("give {at_least} to {most}"),
            (most, step) => format!("give a multiple of {step} from {at_least} to {most}"),
        };
        Some((setting, message, remedy))
    }
}

/// The recipe of a text, kept as long as this process: workloads are described by what lives as long. A process meets only the
/// recipes of its plan, and each once.
pub fn kept(text: &str, file: &str) -> Result<&'static Recipe, Vec<Complaint>> {
    static KEPT: Mutex<BTreeMap<String, &'static Recipe>> = Mutex::new(BTreeMap::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(recipe) = all.get(text) {
        return Ok(recipe);
    }
    let recipe: &'static Recipe = Box::leak(Box::new(read::recipe(text).map_err(|complaints| {
        let source = Arc::new(Source { text: text.into(), file: file.into() });
        complaints.into_iter().map(|one| Complaint { source: Some(source.clone()), ..one }).collect::<Vec<_>>()
    })?));
    all.insert(text.into(), recipe);
    Ok(recipe)
}

/// SHA-256 of a recipe's text, in hexadecimal.
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Rows for the plan's check of settings; the first one holds the text.
pub(super) fn rows(recipe: &'static Recipe, text: &str) -> &'static [Setting] {
    let about = "the text of the recipe";
    let own = Setting { name: RECIPE, kind: SettingKind::Recipe, default: Some(leaked(text)), about };
    Vec::leak(std::iter::once(own).chain(recipe.settings.iter().copied()).collect())
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_string().into_boxed_str())
}
