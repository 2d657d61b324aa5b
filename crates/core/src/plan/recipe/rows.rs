//! The settings that a recipe declares.

use super::keys::{only, required};
use super::scope::{NAMED, Scope, expression};
use super::{RECIPE, Range, Rule, leaked};
use crate::plan::complaint::quoted;
use crate::plan::table::{Field, Table};
use crate::plan::value::choice;
use crate::plan::{Setting, SettingKind, Settings, WORK};

pub(super) fn settings(table: &Table) -> Vec<(Setting, Range)> {
    let Some(table) = table.field("setting").and_then(|field| field.table("[setting]")) else { return Vec::new() };
    table.fields().filter_map(|field| setting(&field)).collect()
}

/// What needs the settings to be known.
pub(super) fn rules(table: &Table, scope: &Scope) -> Vec<Rule> {
    let all = table.field("setting").filter(|field| field.value.is_table());
    let Some(all) = all.and_then(|field| field.table("[setting]")) else { return Vec::new() };
    let rule = |field: Field| {
        let name = scope.settings.iter().find(|row| row.name == field.key)?.name;
        let table = field.table(&format!("[setting.{}]", field.key))?;
        let refused = table.field("refuse").map(|field| field.tables("[[setting.NAME.refuse]]")).unwrap_or_default();
        Some(Rule {
            setting: name,
            otherwise: table.field("otherwise").and_then(|field| scope.amount(&field)),
            unless: table.field("unless").and_then(|field| scope.setting(&field)).map(|row| row.name),
            refused: refused.iter().filter_map(refusal).collect(),
            weakens: table.field("weakens").and_then(|field| expression(&field, 0..=usize::MAX)),
        })
    };
    all.fields().filter_map(rule).collect()
}

fn refusal(table: &Table) -> Option<(regex_lite::Regex, bool, &'static str, &'static str)> {
    only(table, "[[setting.NAME.refuse]]");
    let (field, fits) = match (table.field("find"), table.field("unless")) {
        (Some(field), None) => (field, true),
        (None, Some(field)) => (field, false),
        _ => {
            let remedy = "give either `find` or `unless`";
            return table.complaints.refuse(&table.place, "the rule does not name what it refuses", remedy);
        }
    };
    let [why, remedy] = ["why", "remedy"].map(|key| required(table, key).and_then(|field| field.text()).map(leaked));
    Some((expression(&field, 0..=usize::MAX)?, fits, why?, remedy?))
}

const KINDS: [(&str, SettingKind); 10] = [
    ("choice", SettingKind::Choice(&[])),
    ("count", SettingKind::Count),
    ("counts", SettingKind::Counts),
    ("duration", SettingKind::Duration),
    ("flag", SettingKind::Flag),
    ("number", SettingKind::Number),
    ("path", SettingKind::Path),
    ("size", SettingKind::Size),
    ("text", SettingKind::Text),
    ("texts", SettingKind::Texts),
];

fn setting(field: &Field) -> Option<(Setting, Range)> {
    let table = field.table(&format!("[setting.{}]", field.key))?;
    only(&table, "[setting.NAME]");
    let name = leaked(field.key);
    if NAMED.contains(&name) || WORK.has(name) || name == RECIPE {
        let message = format!("the name {} is taken", quoted(name));
        table.complaints.add(&field.key_place, message, "call the setting something else");
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(fits) {
        let message = format!("{} is no name of a setting", quoted(name));
        table.complaints.add(&field.key_place, message, "take a letter, and then letters, digits, `_` and `-`");
    }
    let words = KINDS.map(|(word, _)| word);
    let kind = required(&table, "kind").and_then(|field| choice(&field, &words));
    let kind = KINDS.iter().find(|(word, _)| Some(*word) == kind).map(|(_, kind)| *kind)?;
    let kind = if let SettingKind::Choice(_) = kind { SettingKind::Choice(choices(&table)?) } else { kind };
    let default = table.field("default").map(|field| (leaked(&default_text(&field)), field));
    let about = leaked(required(&table, "about")?.text()?);
    let row = Setting { name, kind, default: default.as_ref().map(|(text, _)| *text), about };
    let range = range(&table, &row);
    if let Some((text, field)) = default.filter(|_| row.default_value().is_none()) {
        let remedy = "write it as a user would, such as 100, \"4GiB\" or \"60s\"";
        return field.refuse(&format!("is {}, which is not of its kind", quoted(text)), remedy);
    }
    let settings = Settings(row.default_value().map(|value| (name.to_string(), value)).into_iter().collect());
    if let (Some((_, message, remedy)), Some(field)) = (range.complaint(&settings), table.field("default")) {
        field.refuse::<()>(&format!("is out of range: {message}"), remedy);
    }
    Some((row, range))
}

fn choices(table: &Table) -> Option<&'static [&'static str]> {
    let all = required(table, "choices")?.texts()?;
    Some(Vec::leak(all.into_iter().map(|(text, _)| leaked(text)).collect()))
}

/// As a user would type it.
fn default_text(field: &Field) -> String {
    let text = |value: &toml::de::DeValue| match value {
        toml::de::DeValue::String(text) => Some(text.to_string()),
        toml::de::DeValue::Integer(number) => Some(number.as_str().to_string()),
        toml::de::DeValue::Float(number) => Some(number.as_str().to_string()),
        toml::de::DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    };
    match field.value.as_array() {
        None => text(field.value).unwrap_or_default(),
        Some(list) => {
            let shown = list.iter().filter_map(|one| match one.get_ref().as_str() {
                Some(word) => Some(toml::Value::from(word).to_string()),
                None => text(one.get_ref()),
            });
            format!("[{}]", shown.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Bounds are numbers, or text with a unit.
fn range(table: &Table, row: &Setting) -> Range {
    let bound = |key: &str| {
        let field = table.field(key)?;
        let is_of_numbers =
            matches!(row.kind, SettingKind::Count | SettingKind::Counts | SettingKind::Duration | SettingKind::Size);
        if !is_of_numbers {
            return field.refuse("is for settings of whole numbers, sizes and durations", "leave it out");
        }
        match row.kind {
            SettingKind::Size => field.size(),
            SettingKind::Duration => field.duration(),
            _ => field.count(),
        }
    };
    let at_least = bound("at_least").unwrap_or(0);
    Range {
        setting: row.name,
        kind: row.kind,
        at_least,
        at_most: bound("at_most").unwrap_or(u64::MAX),
        step: bound("step").unwrap_or(1).max(1),
    }
}
