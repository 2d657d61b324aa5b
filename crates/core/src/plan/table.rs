//! A reader over TOML that keeps places: typed getters that write a complaint and give `None`, so
//! that reading goes on and the user sees all mistakes at once.

use super::complaint::{Complaint, Complaints, Place, Problem, Remedy, ValueForm, listed, meant, nearest, quoted};
use super::keys::PLAN;
use super::{Catalogue, Entry};
use pickfs_system::units::{parse_duration, parse_share, parse_size};
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// What reading needs at hand.
pub(super) struct Reader<'c> {
    pub catalogue: &'c Catalogue,
    /// Relative paths are in it.
    pub folder: &'c Path,
    pub complaints: &'c Complaints,
    /// Name of the plan's.
    pub executor: &'c str,
}

impl<'c> Reader<'c> {
    /// Cells cannot disturb each other, and two that are alike are the same.
    pub(crate) fn is_simulated(&self) -> bool {
        self.catalogue.simulators.contains(&self.executor)
    }

    pub(crate) fn executor(&self) -> &'c Entry {
        let found = self.catalogue.executors.iter().find(|entry| entry.name == self.executor);
        found.expect("only one of the catalogue is chosen")
    }
}

/// A table of the plan, and what to call it in a complaint.
#[derive(Clone)]
pub(super) struct Table<'a> {
    pub label: String,
    pub place: Place,
    pub complaints: &'a Complaints,
    entries: &'a DeTable<'a>,
}

/// A key with its value, or an element of a list under the list's key.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub key: &'a str,
    pub key_place: Place,
    pub value: &'a DeValue<'a>,
    pub place: Place,
    pub complaints: &'a Complaints,
}

impl<'a> Table<'a> {
    pub(crate) fn new(label: &str, place: Place, entries: &'a DeTable<'a>, complaints: &'a Complaints) -> Table<'a> {
        Table { label: label.into(), place, entries, complaints }
    }

    pub(crate) fn field(&self, key: &str) -> Option<Field<'a>> {
        let (key, value) = self.entries.get_key_value(key)?;
        Some(self.entry(key, value))
    }

    /// In the order of the text.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let mut fields: Vec<Field> = self.entries.iter().map(|(key, value)| self.entry(key, value)).collect();
        fields.sort_by_key(|field| field.key_place.span.as_ref().map(|span| span.start));
        fields.into_iter()
    }

    fn entry(&self, key: &'a Spanned<DeString<'a>>, value: &'a Spanned<DeValue<'a>>) -> Field<'a> {
        let [key_place, place] = [key.span(), value.span()].map(|span| self.place.below(key.get_ref(), Some(span)));
        Field { key: key.get_ref(), key_place, value: value.get_ref(), place, complaints: self.complaints }
    }

    /// Complains of every key that is not `allowed`.
    pub(crate) fn only(&self, allowed: &[&str]) {
        self.only_below("plan", &PLAN.names(), allowed);
    }

    /// The same of a table in a file that has these keys as a whole.
    pub(crate) fn only_below(&self, whole: &str, top: &[&str], allowed: &[&str]) {
        for field in self.fields().filter(|field| !allowed.contains(&field.key)) {
            let message = format!("{} has no key {}", self.label, quoted(field.key));
            self.complaints.add(&field.key_place, message, unknown_key(field.key, (whole, top), allowed));
        }
    }
}

fn unknown_key(key: &str, (whole, top): (&str, &[&str]), allowed: &[&str]) -> String {
    if let Some(near) = nearest(key, allowed.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    // TOML's trap: a key below a table's head belongs to that table.
    if top.contains(&key) {
        return format!("`{key}` belongs to the whole {whole}: move it above the first line that begins with `[`");
    }
    format!("leave it out, or use {}", listed(allowed.iter().copied()))
}

const TEXT: ValueForm = ValueForm { what: "text", in_quotes: true, example: "\"...\"" };
const FLAG: ValueForm = ValueForm { what: "true or false", in_quotes: false, example: "true" };
const COUNT: ValueForm = ValueForm { what: "a whole number", in_quotes: false, example: "10" };
const NUMBER: ValueForm = ValueForm { what: "a number", in_quotes: false, example: "2" };
const SIZE: ValueForm = ValueForm { what: "a size", in_quotes: false, example: "\"20GiB\"" };
const DURATION: ValueForm = ValueForm { what: "a duration", in_quotes: true, example: "\"90s\"" };
const SHARE: ValueForm = ValueForm { what: "a share", in_quotes: true, example: "\"3%\"" };
const LIST: ValueForm = ValueForm { what: "a list", in_quotes: false, example: "[\"...\"]" };
pub(super) const COUNTS: ValueForm =
    ValueForm { what: "a list of whole numbers", in_quotes: false, example: "[10, 100]" };

impl<'a> Field<'a> {
    fn at(&self, span: Range<usize>) -> Place {
        Place { span: Some(span), ..self.place.clone() }
    }

    /// "`key`", for the beginning of a message.
    pub(crate) fn shown(&self) -> String {
        quoted(self.key)
    }

    pub(crate) fn refuse<T>(&self, what: &str, remedy: impl Into<Remedy>) -> Option<T> {
        self.complaints.refuse(&self.place, Problem::Of(what.into()), remedy)
    }

    pub(crate) fn mistyped<T>(&self, wanted: ValueForm) -> Option<T> {
        let text = self.value.as_str().map(|text| format!(" {}", quoted(text))).unwrap_or_default();
        self.none_of(wanted, format!("it is {}{text}", type_of(self.value)))
    }

    fn none_of<T>(&self, wanted: ValueForm, why: String) -> Option<T> {
        let remedy = Remedy::write("write it like this", &self.place.path, wanted.example);
        self.complaints.refuse(&self.place, Problem::Mistyped { wanted, why }, remedy)
    }

    /// Text that can stand in a name, a path or an option: not empty, nothing unprintable.
    pub(crate) fn text(&self) -> Option<&'a str> {
        self.string(TEXT)
    }

    fn string(&self, wanted: ValueForm) -> Option<&'a str> {
        let Some(text) = self.value.as_str() else { return self.mistyped(wanted) };
        if text.trim().is_empty() {
            return self.refuse("is empty", "give it a value, or leave it out");
        }
        if text.contains(char::is_control) {
            let what = format!("has a control character in it: {}", quoted(text));
            return self.refuse(&what, "take the control character out; none is of use here");
        }
        Some(text)
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        self.value.as_bool().or_else(|| self.mistyped(FLAG))
    }

    pub(crate) fn count(&self) -> Option<u64> {
        let Some(integer) = self.value.as_integer() else {
            return self.mistyped(COUNT);
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(count) => Some(count),
            Err(_) if integer.as_str().starts_with('-') => {
                self.refuse("is negative", "write a whole number of 0 or more")
            }
            Err(_) => self.refuse("is too large", format!("write a number up to {}", u64::MAX)),
        }
    }

    pub(crate) fn count_in(&self, allowed: RangeInclusive<u64>) -> Option<u64> {
        let count = self.count()?;
        if allowed.contains(&count) {
            return Some(count);
        }
        let remedy = match *allowed.end() {
            u64::MAX => format!("write a whole number of {} or more", allowed.start()),
            most => format!("write a whole number from {} to {most}", allowed.start()),
        };
        self.refuse(&format!("is {count}, which is out of range"), remedy)
    }

    /// A number of 0 or more, with a point or without.
    pub(crate) fn number(&self) -> Option<f64> {
        let Some(float) = self.value.as_float() else {
            let Some(whole) = self.value.as_integer() else { return self.mistyped(NUMBER) };
            let negative = whole.as_str().starts_with('-');
            return if negative { self.negative() } else { self.count().map(|n| n as f64) };
        };
        let value = float.as_str().parse::<f64>().ok().filter(|value| value.is_finite());
        match value {
            Some(value) if value >= 0.0 => Some(value),
            Some(_) => self.negative(),
            None => self.refuse("is no finite number", "write a number of 0 or more, such as 2 or 0.5"),
        }
    }

    fn negative(&self) -> Option<f64> {
        self.refuse("is negative", "write a number of 0 or more, such as 2 or 0.5")
    }

    /// Bytes, from text with a unit or from a bare whole number.
    pub(crate) fn size(&self) -> Option<u64> {
        if self.value.is_integer() {
            return self.count_in(1..=i64::MAX as u64);
        }
        self.measured(parse_size, SIZE)
    }

    /// Nanoseconds.
    pub(crate) fn duration(&self) -> Option<u64> {
        self.measured(parse_duration, DURATION)
    }

    /// A share between none and all, both excluded.
    pub(crate) fn share(&self) -> Option<f64> {
        let share = self.measured(parse_share, SHARE)?;
        if share > 0.0 && share < 1.0 {
            return Some(share);
        }
        self.refuse("is out of range", "write more than 0% and less than 100%")
    }

    fn measured<T>(&self, parse: fn(&str) -> Result<T, String>, wanted: ValueForm) -> Option<T> {
        let text = self.string(wanted)?;
        let why = match parse(text) {
            Ok(value) => return Some(value),
            Err(why) => why,
        };
        let is_number = text.trim().chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        let why = match () {
            () if why.ends_with("is out of range") => format!("{} is out of range", quoted(text)),
            () if is_number => format!("{} has no unit", quoted(text)),
            () => format!("it is {}", quoted(text)),
        };
        self.none_of(wanted, why)
    }

    /// The elements of a list that is not empty.
    pub(crate) fn elements(&self) -> Option<Vec<Field<'a>>> {
        let Some(list) = self.value.as_array() else {
            return self.mistyped(LIST);
        };
        if list.is_empty() {
            return self.refuse("is an empty list", "put something between the brackets, or leave the key out");
        }
        let element =
            |v: &'a Spanned<DeValue<'a>>| Field { value: v.get_ref(), place: self.at(v.span()), ..self.clone() };
        Some(list.iter().map(element).collect())
    }

    /// The texts of a list, each with its place; wrong ones are complained of and left out.
    pub(crate) fn texts(&self) -> Option<Vec<(&'a str, Field<'a>)>> {
        let elements = self.elements()?;
        Some(elements.into_iter().filter_map(|field| field.text().map(|text| (text, field))).collect())
    }

    pub(crate) fn table(&self, label: &str) -> Option<Table<'a>> {
        match self.value.as_table() {
            Some(entries) => Some(Table::new(label, self.place.clone(), entries, self.complaints)),
            None => {
                let what = format!("must be a table, but it is {}", type_of(self.value));
                self.refuse(
                    &what,
                    format!("write {label} on its own line and its keys below, or {} = {{ ... }}", self.key),
                )
            }
        }
    }

    /// The tables of `[[key]]`.
    pub(crate) fn tables(&self, label: &str) -> Vec<Table<'a>> {
        if self.value.is_table() {
            let remedy = format!("there can be several, so write {label}, with two brackets on each side");
            return self.refuse("is a single table", remedy).unwrap_or_default();
        }
        let elements = self.elements().unwrap_or_default();
        elements.iter().filter_map(|field| field.table(label)).collect()
    }
}

fn type_of(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "the text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The row that the field names, or a complaint with the nearest name.
pub(super) fn choose<'c, T>(
    field: &Field,
    (what, list): (&str, &str),
    rows: &'c [T],
    name: fn(&T) -> &str,
) -> Option<&'c T> {
    let text = field.text()?;
    find(text, rows, name).or_else(|| {
        let remedy = not_found(text, rows.iter().map(name), list);
        field.complaints.refuse(&field.place, format!("there is no {what} {}", quoted(text)), remedy)
    })
}

/// The same of plug-ins, which may be looked for by what they are about.
pub(super) fn choose_entry<'c>(field: &Field, (what, list): (&str, &str), entries: &'c [Entry]) -> Option<&'c Entry> {
    let text = field.text()?;
    find(text, entries, |entry| entry.name).or_else(|| {
        let known = entries.iter().filter_map(|entry| Some((entry.name, entry.about?)));
        let remedy = match meant(text, known.clone()) {
            Some(meant) => format!("did you mean `{meant}`? `{list}` shows them all"),
            None => not_found(text, known.map(|(name, _)| name), list),
        };
        field.complaints.refuse(&field.place, format!("there is no {what} {}", quoted(text)), remedy)
    })
}

/// The same of a key, such as that of `{ md = { level = "raid1" } }`.
pub(super) fn choose_key<'c, T>(
    field: &Field,
    listing: (&str, &str),
    rows: &'c [T],
    name: fn(&T) -> &str,
) -> Option<&'c T> {
    let key = DeValue::String(field.key.into());
    choose(&Field { value: &key, place: field.key_place.clone(), ..field.clone() }, listing, rows, name)
}

pub(super) fn find<'c, T>(text: &str, rows: &'c [T], name: fn(&T) -> &str) -> Option<&'c T> {
    rows.iter().find(|row| name(row) == text)
}

/// What to do about a name that does not exist; `list` is the command that shows existing ones.
pub(super) fn not_found<'n>(text: &str, names: impl Iterator<Item = &'n str> + Clone, list: &str) -> String {
    match nearest(text, names.clone()) {
        Some(near) => format!("did you mean `{near}`? `{list}` shows them all"),
        None => format!("use one of {}; `{list}` describes them", listed(names)),
    }
}

/// The one complaint that stands alone: behind it nothing can be read.
pub(super) fn syntax(error: &toml::de::Error, text: &str) -> Complaint {
    let remedy = match error.message() {
        message if message.contains("duplicate key") => "keep one of the two: every key can be given once in its table",
        message if message.contains("recurs") => "use fewer brackets and dots: nothing in a plan is nested so deeply",
        _ => "correct this place; text stands in quotes, and a list is written like [\"a\", \"b\"]",
    };
    let place = error.span().map_or_else(|| end_of(text), |span| Place { span: Some(span), ..Place::default() });
    let problem = format!("this is not TOML: {}", error.message()).into();
    Complaint { place, problem, remedy: remedy.into(), refusal: false, source: None }
}

/// An empty place just behind the last thing written: where what is missing would go.
pub(super) fn end_of(text: &str) -> Place {
    let end = text.trim_end().len();
    Place { span: Some(end..end), path: Vec::new() }
}
