//! The JSON schema of plans, from the lists that check them: for editors, which complete and check
//! keys while one writes. `pickfs plan` is the judge; the schema knows keys, types and names, not
//! what must fit together.

use super::keys::{Key, KeyTable, Kind, MATRIX, PLAN, Shape, TARGET, WORK};
use super::setting::{Setting, SettingKind};
use super::{Catalogue, Entry};
use serde_json::{Map, Value, json};

/// In draft 7, which editors of TOML know.
pub fn schema(catalogue: &Catalogue) -> Value {
    let mut schema = table(&PLAN, catalogue);
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "A plan of pickfs".into();
    schema
}

/// A table with its own keys alone, each with what is said of it.
fn table(table: &KeyTable, catalogue: &Catalogue) -> Value {
    object(properties(table, catalogue), true)
}

fn properties(table: &KeyTable, catalogue: &Catalogue) -> impl Iterator<Item = (String, Value)> {
    let described = |key: &Key| {
        let mut value = match key.kind {
            Kind::Is(kind) => of_kind(kind),
            Kind::Own(shape) => of_shape(shape, catalogue),
            Kind::Below(below) => self::table(below, catalogue),
        };
        value["description"] = format!("{}; such as {}", key.about(), key.example).into();
        (key.name.to_string(), value)
    };
    table.keys.iter().map(described)
}

fn object(properties: impl Iterator<Item = (String, Value)>, closed: bool) -> Value {
    let properties: Map<String, Value> = properties.collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": !closed })
}

fn of_shape(shape: Shape, catalogue: &Catalogue) -> Value {
    match shape {
        Shape::Any => json!({}),
        Shape::List => json!({ "type": "array" }),
        Shape::Amounts => json!({ "type": ["number", "object"] }),
        Shape::Executor => names(&catalogue.executors),
        Shape::Workload => names(&catalogue.workloads),
        Shape::Filesystem => json!({ "enum": catalogue.filesystems.iter().map(|fs| fs.name).collect::<Vec<_>>() }),
        Shape::Backing => backing(catalogue),
        Shape::Targets => json!({ "type": "array", "items": table(&TARGET, catalogue) }),
        // Settings of machines too.
        Shape::Matrix => object(properties(&MATRIX, catalogue), false),
        Shape::Works => json!({ "type": "array", "items": work(catalogue) }),
    }
}

fn names(entries: &[Entry]) -> Value {
    json!({ "enum": entries.iter().map(|entry| entry.name).collect::<Vec<_>>() })
}

/// `image`, or `{ image = { size = ... } }`, or a list of devices or directories.
fn backing(catalogue: &Catalogue) -> Value {
    let known = |entry: &Entry| {
        let table = object(entry.settings.iter().map(|one| (one.name.to_string(), setting(one))), true);
        (entry.name.to_string(), json!({ "anyOf": [table, { "type": ["string", "array"] }] }))
    };
    json!({ "anyOf": [names(&catalogue.backings), object(catalogue.backings.iter().map(known), true)] })
}

/// Settings depend on the workload that a table names.
fn work(catalogue: &Catalogue) -> Value {
    let of_workload = |entry: &Entry| {
        let settings = entry.settings.iter().map(|one| (one.name.to_string(), setting(one)));
        let own: Vec<&str> = WORK.names().into_iter().chain(entry.settings.iter().map(|one| one.name)).collect();
        json!({
            "if": { "type": "object", "required": ["workload"], "properties": { "workload": { "const": entry.name } } },
            "then": { "properties": settings.collect::<Map<_, _>>(), "propertyNames": { "enum": own } },
        })
    };
    let mut work = object(properties(&WORK, catalogue), false);
    // The file of a recipe, or its text.
    let recipe = json!({ "type": "string", "pattern": "/|\\.toml$|\n" });
    work["properties"]["workload"] = json!({ "anyOf": [names(&catalogue.workloads), recipe] });
    work["required"] = json!(["workload"]);
    work["allOf"] = catalogue.workloads.iter().map(of_workload).collect();
    json!({ "anyOf": [names(&catalogue.workloads), work] })
}

fn of_kind(kind: SettingKind) -> Value {
    match kind {
        SettingKind::Text | SettingKind::Path | SettingKind::NameOrPath | SettingKind::Recipe => {
            json!({ "type": "string" })
        }
        SettingKind::Size => json!({ "type": ["string", "integer"] }),
        SettingKind::Count => json!({ "type": "integer", "minimum": 0 }),
        SettingKind::Within(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
        SettingKind::Within(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        SettingKind::Number => json!({ "type": "number" }),
        SettingKind::NumberOrPath => json!({ "type": ["number", "string"] }),
        SettingKind::Duration | SettingKind::Share => json!({ "type": "string" }),
        SettingKind::Flag => json!({ "type": "boolean" }),
        SettingKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        SettingKind::Counts => json!({ "type": ["integer", "array"] }),
        SettingKind::Words => json!({ "type": ["string", "array"] }),
        SettingKind::Choice(choices) => json!({ "enum": choices }),
    }
}

fn setting(of: &Setting) -> Value {
    let mut value = of_kind(of.kind);
    let default = of.default.map(|default| format!(" (default {default})")).unwrap_or_default();
    value["description"] = format!("{}{default}", of.about).into();
    value
}
