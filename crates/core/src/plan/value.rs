//! Settings of a plug-in: what was written, checked by the kind that the plug-in declares, and the
//! defaults.

use super::complaint::{Complaints, Place, Problem, listed, nearest, quoted};
use super::flag::looks_like_path;
use super::keys::{Key, KeyTable, Kind};
use super::table::{COUNTS, Field, Reader, Table};
use super::{Catalogue, Entry, Plan, Setting, SettingKind, Settings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};
use toml::de::{DeString, DeValue};

/// The settings that the fields give, and the defaults of the others, and what the machine has
/// against them. `place` is where the plug-in is chosen; `own` are the other keys of its table, as
/// far as a slip of the pen may mean one.
pub(super) fn settings(entry: &Entry, given: &[Field], own: &[&str], place: &Place, reader: &Reader) -> Settings {
    let before = reader.complaints.len();
    let settings = read(entry, given, own, reader);
    if reader.complaints.len() == before {
        for objection in (entry.objections)(entry.name, &settings) {
            let place = given.iter().find(|field| field.key == objection.setting).map_or(place, |field| &field.place);
            reader.complaints.object(place, objection);
        }
    }
    settings
}

fn read(entry: &Entry, given: &[Field], own: &[&str], reader: &Reader) -> Settings {
    let declared = entry.settings;
    let mut settings = Settings::default();
    for field in given {
        let Some(setting) = declared.iter().find(|setting| setting.name == field.key) else {
            unknown(field, entry, own, reader);
            continue;
        };
        settings.0.extend(checked(field, setting.kind, reader).map(|value| (setting.name.to_string(), value)));
    }
    for setting in declared.iter().filter(|setting| given.iter().all(|field| field.key != setting.name)) {
        settings.0.extend(default(setting, reader).map(|value| (setting.name.to_string(), value)));
    }
    settings
}

fn unknown(field: &Field, entry: &Entry, own: &[&str], reader: &Reader) {
    let names = || entry.settings.iter().map(|setting| setting.name);
    let others = others(field.key, entry, reader);
    let remedy = match (nearest(field.key, names().chain(own.iter().copied())), others.first()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some(first)) => {
            let key = quoted(field.key);
            let noun = if others.len() == 1 { "executor" } else { "executors" };
            let all = listed(others.iter().copied());
            format!("{key} is for the {noun} {all}: add `executor = \"{first}\"` at the top")
        }
        _ if entry.settings.is_empty() => "leave it out: there is nothing to set".into(),
        _ => format!("leave it out, or use {}", listed(names())),
    };
    let problem = Problem::NoSetting { plugin: entry.name, setting: field.key.into() };
    reader.complaints.add(&field.key_place, problem, remedy);
}

/// Of an executor, the others that have the setting.
fn others(key: &str, entry: &Entry, reader: &Reader) -> Vec<&'static str> {
    let all = &reader.catalogue.executors;
    let has = |other: &&Entry| other.settings.iter().any(|setting| setting.name == key);
    let is_executor = all.iter().any(|one| one.name == entry.name);
    all.iter().filter(has).map(|other| other.name).filter(|_| is_executor).collect()
}

impl Key {
    /// What the table says of it, else its default; nothing where the table has it wrong.
    fn value(&self, table: &Table, reader: &Reader) -> Option<Value> {
        let Kind::Is(kind) = self.kind else { return None };
        match table.field(self.name) {
            Some(field) => checked(&field, kind, reader),
            None => default(&Setting { name: self.name, kind, default: self.default, about: self.about }, reader),
        }
    }
}

impl KeyTable {
    /// The value of one key, by its row.
    pub(super) fn get<T: DeserializeOwned>(&self, name: &str, table: &Table, reader: &Reader) -> Option<T> {
        let key = self.keys.iter().find(|key| key.name == name)?;
        serde_json::from_value(key.value(table, reader)?).ok()
    }

    /// Checks the names of all keys, and sets in the plan what rows can set.
    pub(super) fn read(&self, table: &Table, plan: &mut Plan, reader: &Reader) {
        table.only(&self.names());
        for key in self.keys {
            if let Some((set, value)) = key.set.and_then(|set| Some((set, key.value(table, reader)?))) {
                set(plan, value);
            }
        }
    }
}

pub(super) fn checked(field: &Field, kind: SettingKind, reader: &Reader) -> Option<Value> {
    match kind {
        SettingKind::Text => field.text().map(Value::from),
        SettingKind::Path => path(field, reader.folder).map(Value::from),
        SettingKind::NameOrPath => name_or_path(field, reader.folder).map(Value::from),
        SettingKind::NumberOrPath if field.value.is_str() => path(field, reader.folder).map(Value::from),
        SettingKind::Number | SettingKind::NumberOrPath => field.number().map(Value::from),
        SettingKind::Size => field.size().map(Value::from),
        SettingKind::Count => field.count().map(Value::from),
        SettingKind::Within(least, most) => field.count_in(least..=most).map(Value::from),
        SettingKind::Share => field.share().map(Value::from),
        SettingKind::Duration => field.duration().map(Value::from),
        SettingKind::Flag => field.flag().map(Value::from),
        SettingKind::Texts => texts(field).map(Value::from),
        SettingKind::Counts => counts(field).map(Value::from),
        SettingKind::Words => words(field).map(Value::from),
        SettingKind::Choice(choices) => choice(field, choices).map(Value::from),
        // Read where the plan names it, and checked again by what plays it.
        SettingKind::Recipe => field.value.as_str().map(Value::from),
    }
}

fn texts(field: &Field) -> Option<Vec<String>> {
    Some(field.texts()?.into_iter().map(|(text, _)| text.to_string()).collect())
}

fn counts(field: &Field) -> Option<Vec<u64>> {
    if field.value.is_integer() {
        return Some(vec![field.count()?]);
    }
    if !field.value.is_array() {
        return field.mistyped(COUNTS);
    }
    let (elements, before) = (field.elements()?, field.complaints.len());
    let counts = elements.iter().filter_map(|field| field.count()).collect();
    (field.complaints.len() == before).then_some(counts)
}

pub(super) fn words(field: &Field) -> Option<Vec<String>> {
    if !field.value.is_str() {
        return texts(field);
    }
    let remedy = "close every quote, or write a list of words: [\"program\", \"argument\"]";
    match shell_words::split(field.text()?) {
        Ok(words) => Some(words),
        Err(error) => field.refuse(&format!("cannot be split into words: {error}"), remedy),
    }
}

pub(super) fn choice(field: &Field, choices: &[&'static str]) -> Option<&'static str> {
    let text = field.text()?;
    choices.iter().find(|choice| **choice == text).copied().or_else(|| {
        let remedy = format!("use one of {}", listed(choices.iter().copied()));
        field.refuse(&format!("cannot be {}", quoted(text)), remedy)
    })
}

/// The path as absolute text: `~` is the home directory, anything relative lies in the plan's
/// folder.
pub(super) fn path(field: &Field, folder: &Path) -> Option<String> {
    let text = field.text()?;
    let full = match home(text) {
        Ok(path) => std::path::absolute(folder.join(path)).ok(),
        Err(reason) => return field.refuse(&reason, "write the path in full, from `/` on"),
    };
    full.and_then(|path| path.into_os_string().into_string().ok()).or_else(|| {
        let remedy = "write the path in full, from `/` on; only UTF-8 names can be used";
        field.refuse("cannot be made an absolute path", remedy)
    })
}

/// What looks like a file is one.
fn name_or_path(field: &Field, folder: &Path) -> Option<String> {
    let text = field.text()?;
    if looks_like_path(text) { path(field, folder) } else { Some(text.into()) }
}

fn home(text: &str) -> Result<PathBuf, String> {
    let Some(rest) = text.strip_prefix('~') else { return Ok(PathBuf::from(text)) };
    if !rest.is_empty() && !rest.starts_with('/') {
        return Err(format!("begins with the home directory of another user: {}", quoted(text)));
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).ok_or("needs HOME, which is not set")?;
    Ok(Path::new(&home).join(rest.trim_start_matches('/')))
}

impl Setting {
    /// Its default, in checked form.
    pub fn default_value(&self) -> Option<Value> {
        let catalogue = Catalogue::default();
        let folder = Path::new("/");
        default(self, &Reader { catalogue: &catalogue, folder, complaints: &Complaints::default(), executor: "" })
    }
}

/// A default is text as a user would type it, so it is read by what reads the user's.
fn default(setting: &Setting, reader: &Reader) -> Option<Value> {
    let text = setting.default?;
    if matches!(setting.kind, SettingKind::Texts) && matches!(text, "" | "[]") {
        return Some(Value::Array(Vec::new()));
    }
    let value = match setting.kind {
        SettingKind::Count
        | SettingKind::Within(..)
        | SettingKind::Counts
        | SettingKind::Number
        | SettingKind::NumberOrPath
        | SettingKind::Flag
        | SettingKind::Texts => DeValue::parse(text).ok().map(|value| value.into_inner()),
        _ => None,
    };
    let value = value.unwrap_or(DeValue::String(DeString::Borrowed(text)));
    let complaints = reader.complaints;
    let [key_place, place] = [Place::default(), Place::default()];
    checked(&Field { key: setting.name, key_place, value: &value, place, complaints }, setting.kind, reader)
}
