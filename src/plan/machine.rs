//! `machine` and `layers`: what does the work, and what lies between the backing and the file system.

use super::complaint::Span;
use super::read::Reader;
use super::table::{Field, Table, choose};
use super::value::{checked, settings};
use super::{Chosen, Kind, Placed, Setting, Settings};

/// What the executor is told of a target's machine: the target's own words before the plan's, then the defaults.
pub(super) fn machine(plan: &Table, target: Option<&Table>, reader: &mut Reader) -> Settings {
    let own = target.map(|table| given(table, reader)).unwrap_or_default();
    let shared: Vec<Field> = given(plan, reader).into_iter().filter(|f| own.iter().all(|o| o.key != f.key)).collect();
    let span = first_span(&own).or_else(|| first_span(&shared)).or_else(|| plan.span.clone());
    let fields: Vec<Field> = own.into_iter().chain(shared).collect();
    let executor = reader.executor();
    settings(executor, &fields, &[], &span, reader)
}

fn first_span(fields: &[Field]) -> Span {
    fields.first().and_then(|field| field.span.clone())
}

/// The entries of `machine`; none where there is none.
fn given<'a>(table: &Table<'a>, reader: &mut Reader) -> Vec<Field<'a>> {
    let Some(field) = table.field("machine") else { return Vec::new() };
    let table = field.table("machine", &mut reader.complaints);
    table.map(|table| table.fields().collect()).unwrap_or_default()
}

/// In the text of a target, what it says of its machine itself: key and value as its name shows them.
pub(super) fn own_words(target: &Table) -> Vec<(String, String)> {
    let Some(entries) = target.field("machine").and_then(|field| field.value.as_table()) else { return Vec::new() };
    let shown = |field: Field| Some((field.key.to_string(), shown(&field)?));
    Table::new("machine", None, entries).fields().filter_map(shown).collect()
}

fn shown(field: &Field) -> Option<String> {
    let number = || field.value.as_integer().map(|number| number.as_str().to_string());
    field.value.as_str().map(String::from).or_else(number)
}

/// `layers = ["luks", { md = { level = "raid1" } }]`, the lowest first.
pub(super) fn layers(table: &Table, reader: &mut Reader) -> Vec<Chosen> {
    let Some(field) = table.field("layers") else { return Vec::new() };
    let elements = field.elements(&mut reader.complaints).unwrap_or_default();
    elements.iter().filter_map(|element| layer(element, reader)).collect()
}

fn layer(element: &Field, reader: &mut Reader) -> Option<Chosen> {
    let listing = ("layer", "pickfs list layers");
    let catalogue = reader.catalogue;
    if element.value.is_str() {
        let entry = choose(element, listing, &catalogue.layers, |entry| entry.name, &mut reader.complaints)?;
        return Some(Chosen { name: entry.name.into(), settings: settings(entry, &[], &[], &element.span, reader) });
    }
    let example = "write a name, or one name with its settings, such as `{ md = { level = \"raid1\" } }`";
    let table = element.table("a layer", &mut reader.complaints)?;
    let fields: Vec<Field> = table.fields().collect();
    let [value] = &fields[..] else { return element.refuse("is not one layer", example, &mut reader.complaints) };
    let name = toml::de::DeValue::String(value.key.into());
    let name = Field { value: &name, span: value.key_span.clone(), ..value.clone() };
    let entry = choose(&name, listing, &catalogue.layers, |entry| entry.name, &mut reader.complaints)?;
    let inner = value.table(entry.name, &mut reader.complaints)?;
    let given: Vec<Field> = inner.fields().collect();
    Some(Chosen { name: entry.name.into(), settings: settings(entry, &given, &[], &value.span, reader) })
}

/// The executor's settings that a matrix may have: those that are written as text.
pub(super) fn in_matrix(settings: &'static [Setting]) -> Vec<&'static Setting> {
    settings.iter().filter(|setting| !matches!(setting.kind, Kind::Count | Kind::Counts | Kind::Flag)).collect()
}

/// Every target with each value of one of the executor's settings.
pub(super) fn on_machines(targets: Vec<Placed>, field: &Field, setting: &Setting, reader: &mut Reader) -> Vec<Placed> {
    if let Some(placed) = targets.iter().find(|placed| placed.own_machine.iter().any(|(key, _)| key == setting.name)) {
        let message = format!("the target `{}` has {} of its own", placed.target.name, field.shown());
        reader.complaints.add(&field.key_span, message, "take it out of the target, or out of [matrix]");
    }
    let elements = field.elements(&mut reader.complaints).unwrap_or_default();
    let value = |element: &Field| Some((shown(element)?, checked(element, setting.kind, reader)?));
    let values: Vec<_> = elements.iter().filter_map(value).collect();
    let with = |placed: &Placed, (shown, value): &(String, serde_json::Value)| {
        let mut placed = placed.clone();
        placed.target.machine.0.insert(setting.name.into(), value.clone());
        placed.target.name = format!("{} {shown}", placed.target.name);
        placed
    };
    if values.is_empty() {
        return targets;
    }
    targets.iter().flat_map(|placed| values.iter().map(|value| with(placed, value)).collect::<Vec<_>>()).collect()
}
