//! Recipes: works as data. A recipe is one TOML file that names files and a server to be made,
//! phases that start programs, and what is read from what these print. Its text travels with the
//! plan, so only the journal is needed.
//!
//! Checked as a plan is, with all complaints at once.

mod amount;
mod keys;
mod read;
mod rows;
mod scope;

pub use amount::{Amount, Values, Word};
pub use keys::tables;

use super::complaint::Source;
use super::{Complaint, Setting, SettingKind, Settings};
use pickfs_system::units::{show_bytes, show_duration};
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
    pub(crate) rules: Vec<Rule>,
    pub main: &'static str,
    /// Phases have no unit in common, so the work is judged by the geometric mean of their times.
    pub is_mean: bool,
    /// The amount of work that this mean is given for.
    pub per: Option<&'static str>,
    pub seconds: Option<Amount>,
    pub bytes: Option<Amount>,
    /// Programs with the packages that bring them.
    pub needs: Vec<(&'static str, &'static str)>,
    /// A folder with one for each version, in whose `bin` they are looked for first.
    pub under: Option<&'static str>,
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
    pub kind: SettingKind,
    pub at_least: u64,
    pub at_most: u64,
    /// Only multiples of it.
    pub step: u64,
}

/// What else a recipe says of a setting.
#[derive(Debug)]
pub(crate) struct Rule {
    pub setting: &'static str,
    /// What it is where it is not given.
    pub otherwise: Option<Amount>,
    /// Where this one is given, it is not.
    pub unless: Option<&'static str>,
    /// Refused values, with a reason and a remedy: matches of the expression, or everything else.
    pub refused: Vec<(Regex, bool, &'static str, &'static str)>,
    /// Values that make the server promise less.
    pub weakens: Option<Regex>,
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

/// A program that runs during the phases.
#[derive(Debug)]
pub struct ServerOf {
    pub run: Command,
    /// Succeeds as soon as the server answers.
    pub ready: Command,
    pub stop: StopSignal,
    /// The user that all programs run as where pickfs is root, and folders that are that user's
    /// alone.
    pub account: Option<&'static str>,
    pub folders: Vec<Word>,
    /// Prints names and values of its settings.
    pub facts: Option<Command>,
    /// A file where PostgreSQL notes a segment of shared memory that it leaves when it is killed.
    pub segment: Option<Word>,
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
    /// The server runs.
    pub is_served: bool,
    /// Programs, in order: untimed before it, in it, in it after what is read from the output, and
    /// untimed after it.
    pub before: Vec<Command>,
    pub run: Vec<Command>,
    pub flush: Vec<Command>,
    pub then: Vec<Command>,
    pub metrics: Vec<Figure>,
    pub latencies: Vec<LatenciesOf>,
    /// Prints names and values of what is in effect.
    pub facts: Option<Command>,
    pub parts: Vec<PartOf>,
    /// Why parts have no time, and the setting that leaves them out then.
    pub no_value: Option<Word>,
    pub may_miss: Option<&'static str>,
}

/// Latencies of an operation, found in what is printed.
#[derive(Debug)]
pub struct LatenciesOf {
    pub name: &'static str,
    /// Each match has a value, and how often that came where it is not once.
    pub pattern: Regex,
    pub ask: Option<Command>,
    pub times: f64,
    /// Larger values are taken for this one.
    pub at_most: Option<Amount>,
    /// How many there must be.
    pub count: Option<Amount>,
}

#[derive(Debug)]
pub struct PartOf {
    pub name: String,
    pub about: &'static str,
    pub is_judged: bool,
    /// The setting of which there must be more where it has no time.
    pub more: Option<&'static str>,
    pub time: Figure,
    pub metrics: Vec<Figure>,
}

/// A number: found in what is printed, or known before.
#[derive(Debug)]
pub struct Figure {
    /// Empty where the number is only checked.
    pub name: &'static str,
    /// The name is for the amounts behind it alone.
    pub is_inner: bool,
    pub source: FigureSource,
    /// An amount that is divided by the number.
    pub of: Option<Amount>,
    pub times: f64,
    /// What the number must be at least, and what it must be.
    pub at_least: Option<Amount>,
    pub equals: Option<Amount>,
    /// It may be missing.
    pub is_optional: bool,
    /// Where the number is another than it must be, the phase is flagged, and the cell does not
    /// fail.
    pub doubt: Option<(Doubt, Word)>,
}

/// A flag that a recipe may raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    ClientsWait,
    NoValue,
}

#[derive(Debug)]
pub enum FigureSource {
    /// By the last match, in what a command prints after the phase, or in what the phase has
    /// printed.
    Found {
        pattern: Regex,
        ask: Option<Command>,
    },
    /// How often it fits.
    Counted(Regex),
    Amount(Amount),
}

impl Recipe {
    /// Its settings that are out of range, each with what is wrong and what to give.
    pub fn out_of_range(&self, settings: &Settings) -> Vec<(&'static str, String, String)> {
        let each = self.phases.iter().filter_map(|phase| phase.each);
        let repeated = each.filter_map(|setting| {
            let numbers = settings.0.get(setting)?.as_array()?;
            let twice = numbers.iter().enumerate().find(|(at, number)| numbers[..*at].contains(number));
            let message = match twice {
                Some((_, number)) => format!("`{setting}` has {number} twice"),
                None if numbers.is_empty() => format!("`{setting}` has no number"),
                None => return None,
            };
            Some((setting, message, "give each number once: there is a phase for each".to_string()))
        });
        let refused = self.rules.iter().flat_map(|rule| rule.complaints(settings));
        self.ranges.iter().filter_map(|range| range.complaint(settings)).chain(repeated).chain(refused).collect()
    }

    /// Values of settings that make its server promise less than by default.
    pub fn weakening(&self, settings: &Settings) -> Option<String> {
        let rules: Vec<(&str, &Regex)> =
            self.rules.iter().filter_map(|rule| Some((rule.setting, rule.weakens.as_ref()?))).collect();
        let weakens = |(setting, pattern): &(&str, &Regex)| {
            texts(settings, setting).into_iter().filter(|text| pattern.is_match(text)).collect::<Vec<_>>()
        };
        let found: Vec<&str> = rules.iter().flat_map(weakens).collect();
        (!rules.is_empty()).then(|| if found.is_empty() { "nothing".into() } else { found.join(" ") })
    }

    /// The settings, with the defaults of missing ones.
    fn with_defaults(&self, settings: &Settings) -> Settings {
        // A journal may say anything, and only lists may make many words of one.
        let is_list = |row: &Setting| matches!(row.kind, SettingKind::Counts | SettingKind::Texts);
        let given = |row: &Setting| settings.0.get(row.name).filter(|value| value.is_array() == is_list(row)).cloned();
        let unless = |row: &Setting| self.rules.iter().find(|rule| rule.setting == row.name)?.unless;
        let is_given = |row: &Setting| unless(row).is_none_or(|other| !settings.0.contains_key(other));
        let value = |row: &Setting| given(row).or_else(|| row.default_value()).filter(|_| is_given(row));
        Settings(self.settings.iter().filter_map(|row| Some((row.name.to_string(), value(row)?))).collect())
    }

    /// Every command with its purpose, in order, without commands that print versions.
    pub fn commands(&self) -> Vec<(&'static str, &Command)> {
        let server = self.server.iter().flat_map(|server| {
            let facts = server.facts.iter().map(|command| ("facts", command));
            [("server", &server.run), ("ready", &server.ready)].into_iter().chain(facts)
        });
        let of_phases = self.phases.iter().flat_map(|phase| {
            let lists =
                [("before", &phase.before), ("run", &phase.run), ("flush", &phase.flush), ("then", &phase.then)];
            let figures = phase.metrics.iter().chain(phase.parts.iter().flat_map(PartOf::figures));
            let asked = figures.filter_map(|figure| match &figure.source {
                FigureSource::Found { ask, .. } => ask.as_ref(),
                FigureSource::Counted(_) | FigureSource::Amount(_) => None,
            });
            let asked = asked.chain(phase.latencies.iter().filter_map(|latencies| latencies.ask.as_ref()));
            let listed = lists.into_iter().flat_map(|(key, list)| list.iter().map(move |command| (key, command)));
            let facts = phase.facts.iter().map(|command| ("facts", command));
            listed.chain(asked.map(|command| ("ask", command))).chain(facts)
        });
        server.chain(of_phases).collect()
    }

    /// What its words and amounts stand for: settings and other names.
    pub fn values(&self, settings: &Settings, named: impl IntoIterator<Item = (&'static str, String)>) -> Values {
        let named = named.into_iter().collect();
        let mut values = Values { settings: self.with_defaults(settings), named, lists: self.words.clone() };
        for rule in &self.rules {
            if let (Some(amount), false) = (&rule.otherwise, values.settings.0.contains_key(rule.setting)) {
                let number = amount.value(&values);
                values.settings.0.insert(rule.setting.into(), number.into());
            }
        }
        values
    }

    /// Each phase in the form that is played: its name, and what its `each` stands for in it.
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
        let Range { setting, at_least, at_most, step, .. } = self;
        let given = settings.0.get(*setting)?;
        let numbers = given.as_array().map_or(std::slice::from_ref(given), Vec::as_slice);
        let number = numbers.iter().filter_map(serde_json::Value::as_u64);
        let wrong = number.into_iter().find(|n| !(at_least..=at_most).contains(&n) || n % step != 0)?;
        let message = format!("`{setting}` is {}", self.shown(wrong));
        let [least, most, unit] = [*at_least, *at_most, *step].map(|number| self.shown(number));
        let remedy = match (*at_most, *step) {
            (u64::MAX, 1) => format!("give {least} or more"),
            (u64::MAX, _) => format!("give a multiple of {unit}, and {least} or more"),
            (_, 1) => format!("give {least} to {most}"),
            _ => format!("give a multiple of {unit} from {least} to {most}"),
        };
        Some((setting, message, remedy))
    }

    fn shown(&self, number: u64) -> String {
        match self.kind {
            SettingKind::Size => show_bytes(number as f64),
            SettingKind::Duration => show_duration(number as f64),
            _ => number.to_string(),
        }
    }
}

impl Rule {
    fn complaints(&self, settings: &Settings) -> Vec<(&'static str, String, String)> {
        let refused = |text: &&str| {
            let (_, _, why, remedy) =
                self.refused.iter().find(|(pattern, fits, ..)| pattern.is_match(text) == *fits)?;
            Some((self.setting, format!("`{text}` {why}"), remedy.to_string()))
        };
        texts(settings, self.setting).iter().filter_map(refused).collect()
    }
}

impl PartOf {
    fn figures(&self) -> impl Iterator<Item = &Figure> {
        std::iter::once(&self.time).chain(&self.metrics)
    }
}

/// Of a setting of one text, or of several.
fn texts<'s>(settings: &'s Settings, name: &str) -> Vec<&'s str> {
    let Some(given) = settings.0.get(name) else { return Vec::new() };
    let all = given.as_array().map_or(std::slice::from_ref(given), Vec::as_slice);
    all.iter().filter_map(serde_json::Value::as_str).collect()
}

/// The recipe of a text, kept as long as this process: workloads are described by what lives as
/// long. A process meets only the recipes of its plan, and each once.
pub fn read_once(text: &str, file: &str) -> Result<&'static Recipe, Vec<Complaint>> {
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
    format!("{:x}", Sha256::digest(text))
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
