//! Settings that a plug-in declares, so that a plan can be checked before anything is touched, and
//! help and reference pages come from the same rows.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One setting of a workload or a backing.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    pub name: &'static str,
    pub kind: SettingKind,
    /// As a user would type it; `None` means that the plug-in can do without.
    #[serde(borrow)]
    pub default: Option<&'static str>,
    pub about: &'static str,
}

/// A row of a table of settings.
pub const fn setting(
    name: &'static str,
    kind: SettingKind,
    default: Option<&'static str>,
    about: &'static str,
) -> Setting {
    Setting { name, kind, default, about }
}

/// What a setting holds, and how it is kept once checked.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", bound(deserialize = "'de: 'static"))]
pub enum SettingKind {
    /// A string, kept unchanged.
    Text,
    /// A path; `~` is resolved and the path made absolute.
    Path,
    /// A name, kept unchanged, or a path (it has a slash, or ends in `.toml`), made absolute.
    NameOrPath,
    /// Any number, or the path of a file that holds one, made absolute.
    NumberOrPath,
    /// Bytes, from "20GiB".
    Size,
    /// A whole number.
    Count,
    /// A whole number from one to another.
    Within(u64, u64),
    /// Any number.
    Number,
    /// Nanoseconds, from "90s".
    Duration,
    /// A share of one, from "3%"; neither none nor all.
    Share,
    Flag,
    /// A list of strings.
    Texts,
    /// A list of whole numbers, or one of them.
    Counts,
    /// A program and its arguments: a list of strings, or one string that is split as a shell would
    /// split it.
    Words,
    #[serde(deserialize_with = "leaked")]
    Choice(&'static [&'static str]),
    /// The whole text of a recipe.
    Recipe,
}

/// Checked settings by name: sizes and durations as integers, paths absolute, defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(pub BTreeMap<String, Value>);

impl Settings {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Bytes, nanoseconds or a count.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.map(|list| list.iter().filter_map(|v| v.as_str().map(String::from)).collect()).unwrap_or_default()
    }
}

/// The other disks of a backing. No setting of a plan, where each of them would have to be checked
/// and agreed to: set by the code that gives a machine its own disks.
pub const MORE_DEVICES: &str = "more";

/// How many disks a backing has.
pub fn disks(backing: &Settings) -> u64 {
    backing.number("disks").unwrap_or(1).max(1 + backing.texts(MORE_DEVICES).len() as u64)
}

/// A list that lasts as long as the program.
pub fn leaked<'de, D: Deserializer<'de>, T: Deserialize<'de> + 'static>(list: D) -> Result<&'static [T], D::Error> {
    Ok(Vec::deserialize(list)?.leak())
}
