//! What words and amounts of a recipe may name.

use super::{Amount, Command, Word};
use crate::plan::complaint::{ValueForm, listed, quoted};
use crate::plan::table::Field;
use crate::plan::value::words;
use crate::plan::{Setting, SettingKind};
use regex_lite::RegexBuilder;

/// Bytes of a compiled expression: the time of a search grows with it.
const LARGEST_PATTERN: usize = 16 << 10;

/// What words may name, apart from settings.
pub(super) const NAMED: [&str; 4] = ["dir", "memory", "port", "processors"];

/// What the words and amounts of a recipe may name.
pub(super) struct Scope<'s> {
    pub(super) settings: &'s [Setting],
    pub(super) lists: Vec<&'static str>,
    pub(super) each: Option<&'static str>,
    /// Those read before in the same phase.
    pub(super) figures: Vec<&'static str>,
}

impl Scope<'_> {
    pub(super) fn setting(&self, field: &Field) -> Option<&Setting> {
        let text = field.text()?;
        self.settings.iter().find(|row| row.name == text).or_else(|| {
            let remedy = "name one of the tables [setting.NAME]";
            field.refuse(&format!("is {}, which is no setting", quoted(text)), remedy)
        })
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        NAMED.contains(&name)
            || [&self.lists, &self.figures].iter().any(|all| all.contains(&name))
            || self.settings.iter().any(|row| row.name == name)
    }

    /// By itself, and not the one number of `each`.
    fn is_list(&self, name: &str) -> bool {
        let kind = self.settings.iter().find(|row| row.name == name).map(|row| row.kind);
        let is_of_lists = matches!(kind, Some(SettingKind::Counts | SettingKind::Texts));
        self.lists.contains(&name) || is_of_lists && self.each != Some(name)
    }

    fn is_number(&self, name: &str) -> bool {
        let kind = self.settings.iter().find(|row| row.name == name).map(|row| row.kind);
        let is_of_numbers =
            matches!(kind, Some(SettingKind::Count | SettingKind::Counts | SettingKind::Duration | SettingKind::Size));
        is_of_numbers || ["port", "processors"].contains(&name) || self.figures.contains(&name)
    }

    fn check<'n>(&self, field: &Field, names: impl Iterator<Item = &'n str>, numbers: impl Iterator<Item = &'n str>) {
        let all = || self.settings.iter().map(|row| row.name).chain(self.lists.iter().copied()).chain(NAMED);
        for name in names.filter(|name| !self.knows(name)) {
            field.refuse::<()>(
                &format!("names {}, which is no setting", quoted(name)),
                format!("use {}, or add [setting.{name}]; a brace itself is written as `{{{{`", listed(all())),
            );
        }
        for name in numbers.filter(|name| self.knows(name) && !self.is_number(name)) {
            let remedy = "reckon with settings of the kinds `count`, `counts`, `duration` and `size` alone";
            field.refuse::<()>(&format!("reckons with {}, which is no number", quoted(name)), remedy);
        }
    }

    /// A number, or text such as `"keys * value / 8"`.
    pub(super) fn amount(&self, field: &Field) -> Option<Amount> {
        let text = if field.value.is_integer() { field.count()?.to_string() } else { field.text()?.to_string() };
        match Amount::parse(&text) {
            Ok(amount) => {
                self.check(field, amount.names(), amount.names());
                Some(amount)
            }
            Err(why) => field.refuse(&format!("is no amount: {why}"), "write it like \"keys * value / 8 + 1MiB\""),
        }
    }

    pub(super) fn word(&self, field: &Field, text: &str) -> Option<Word> {
        match Word::parse(text) {
            Ok(word) => {
                self.check(field, word.names(), word.numbers());
                if word.names().filter(|name| self.is_list(name)).count() > 1 {
                    field.refuse::<()>("has two lists in one word", "put each into its own word");
                }
                Some(word)
            }
            Err(why) => field.refuse(&why, "write a setting as `{name}`, and a brace itself as `{{` or `}}`"),
        }
    }

    pub(super) fn command(&self, field: &Field) -> Option<Command> {
        let words = words_of(field)?;
        if words.first().is_some_and(|program| program.contains('{') && !program.starts_with("{dir}/")) {
            let remedy = "write the program itself, so that users see what is run; `{dir}/x` is one on the target";
            return field.refuse("begins with a setting", remedy);
        }
        Some(words.iter().filter_map(|text| self.word(field, text)).collect())
    }

    /// One command, or a list of them.
    pub(super) fn commands(&self, field: &Field) -> Vec<Command> {
        match field.value.as_array().map(|_| field.elements().unwrap_or_default()) {
            Some(elements) if elements.first().is_some_and(|field: &Field| field.value.is_array()) => {
                elements.iter().filter_map(|one| self.command(one)).collect()
            }
            Some(elements) if elements.is_empty() => Vec::new(),
            _ => self.command(field).into_iter().collect(),
        }
    }
}

const COMMAND: ValueForm = ValueForm { what: "text", in_quotes: true, example: "[\"program\", \"word\"]" };

/// A word may be empty, or have several lines.
pub(super) fn words_of(field: &Field) -> Option<Vec<String>> {
    if !field.value.is_array() {
        return words(field);
    }
    let word = |field: Field| match field.value.as_str() {
        Some(word) => Some(word.to_string()),
        None => field.mistyped(COMMAND),
    };
    let all: Option<Vec<String>> = field.elements()?.into_iter().map(word).collect();
    let all = all?;
    let has_program = !all[0].trim().is_empty();
    if has_program { Some(all) } else { field.refuse("begins with no program", "write its name as the first word") }
}

/// What it finds in parentheses are the numbers.
pub(super) fn expression(field: &Field, pairs: std::ops::RangeInclusive<usize>) -> Option<regex_lite::Regex> {
    let text = field.text()?;
    match RegexBuilder::new(text).multi_line(true).size_limit(LARGEST_PATTERN).build() {
        Ok(pattern) if pairs.contains(&(pattern.captures_len() - 1)) => Some(pattern),
        Ok(pattern) => {
            let groups = pattern.captures_len() - 1;
            let remedy =
                "put the number, and nothing else, into parentheses: 'rate: ([0-9.]+)'; others are written (?:...)";
            field.refuse(&format!("has {groups} pairs of parentheses, not {}", pairs.start()), remedy)
        }
        Err(error) => {
            field.refuse(&format!("is no expression: {error}"), "see docs/recipes.md; write it in single quotes")
        }
    }
}
