//! The JSON schema of plans, from the lists that check them: for editors, which complete and check keys while one writes.
//! `pickfs plan` is the judge; the schema knows keys, types and names, not what must fit together.

use super::keys::{self, HOST_KEYS, Key, MATRIX_KEYS, PLAN_KEYS, STOP_KEYS, TARGET_KEYS, VERDICT_KEYS, WORK_KEYS};
use super::setting::{Setting, SettingKind};
use super::{Catalogue, Entry};
use serde_json::{Map, Value, json};

/// In draft 7, which editors of TOML know.
pub fn schema(catalogue: &Catalogue) -> Value {
    let known = |key: &&str| -> Value {
        match *key {
            "title" | "reference" => json!({ "type": "string" }),
            "seed" | "jobs" => json!({ "type": "integer", "minimum": 0 }),
            "rank_weakened" | "duplicate" | "other_speeds" => json!({ "type": "boolean" }),
            "executor" => names(&catalogue.executors),
            "discard" => json!({ "enum": ["none", "fresh", "trim"] }),
            "backing" => backing(catalogue),
            "target" => json!({ "type": "array", "items": target(catalogue) }),
            "work" => json!({ "type": "array", "items": work(catalogue) }),
            "matrix" => object(MATRIX_KEYS.iter().map(|key| (key.to_string(), json!({ "type": "array" }))), false),
            "stop" => stop(),
            "host" => described("[host]", &HOST_KEYS, |key| if *key == "dirty_expire" { duration() } else { size() }),
            "verdict" => described("[verdict]", &VERDICT_KEYS, |_| json!({})),
            _ => json!({}),
        }
    };
    let mut schema = described("", &PLAN_KEYS, known);
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "A plan of pickfs".into();
    schema
}

/// A table with its own keys alone, each with what is said of it.
fn described(head: &str, keys: &[&str], known: impl Fn(&&str) -> Value) -> Value {
    let with_words = |key: &&str| {
        let mut found = known(key);
        if let Some(Key { example, about, .. }) = keys::about(head, key) {
            found["description"] = format!("{about}; such as {example}").into();
        }
        (key.to_string(), found)
    };
    object(keys.iter().map(with_words), true)
}

fn object(properties: impl Iterator<Item = (String, Value)>, closed: bool) -> Value {
    let properties: Map<String, Value> = properties.collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": !closed })
}

fn names(entries: &[Entry]) -> Value {
    json!({ "enum": entries.iter().map(|entry| entry.name).collect::<Vec<_>>() })
}

fn size() -> Value {
    json!({ "type": ["string", "integer"], "description": "bytes, such as \"20GiB\"" })
}

fn share() -> Value {
    json!({ "type": ["string", "number"], "description": "a percentage, such as \"3%\"" })
}

fn duration() -> Value {
    json!({ "type": "string", "description": "a time, such as \"90s\", \"5m\" or \"2h\"" })
}

fn stop() -> Value {
    let known = |key: &&str| match *key {
        "rounds" => json!({ "type": "integer", "minimum": 1 }),
        "race" => json!({ "type": "boolean" }),
        "budget" | "cell" => duration(),
        _ => share(),
    };
    described("[stop]", &STOP_KEYS, known)
}

/// `image`, or `{ image = { size = ... } }`, or a list of devices or directories.
fn backing(catalogue: &Catalogue) -> Value {
    let known = |entry: &Entry| {
        let table = object(entry.settings.iter().map(|one| (one.name.to_string(), setting(one))), true);
        (entry.name.to_string(), json!({ "anyOf": [table, { "type": ["string", "array"] }] }))
    };
    json!({ "anyOf": [names(&catalogue.backings), object(catalogue.backings.iter().map(known), true)] })
}

fn target(catalogue: &Catalogue) -> Value {
    let filesystems: Vec<&str> = catalogue.filesystems.iter().map(|fs| fs.name).collect();
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let known = |key: &&str| match *key {
        "name" | "variant" | "scheduler" => json!({ "type": "string" }),
        "fs" => json!({ "enum": filesystems }),
        "mkfs" | "mount" => texts.clone(),
        "nodatacow" | "overlay" => json!({ "type": "boolean" }),
        "backing" => backing(catalogue),
        "layers" => json!({ "type": "array" }),
        _ => json!({}),
    };
    let mut target = described("[[target]]", &TARGET_KEYS, known);
    target["properties"]["discard"] = json!({});
    target
}

/// Settings depend on the workload that a table names.
fn work(catalogue: &Catalogue) -> Value {
    let of_workload = |entry: &Entry| {
        let settings = entry.settings.iter().map(|one| (one.name.to_string(), setting(one)));
        let own: Vec<&str> = WORK_KEYS.into_iter().chain(entry.settings.iter().map(|one| one.name)).collect();
        json!({
            "if": { "type": "object", "required": ["workload"], "properties": { "workload": { "const": entry.name } } },
            "then": { "properties": settings.collect::<Map<_, _>>(), "propertyNames": { "enum": own } },
        })
    };
    // The file of a recipe, or its text.
    let recipe = json!({ "type": "string", "pattern": "/|\\.toml$|\n" });
    let table = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "workload": { "anyOf": [names(&catalogue.workloads), recipe] },
            "repeats": {},
            "weight": { "type": ["number", "object"] },
            "count": { "type": ["number", "object"] },
        },
        "required": ["workload"],
        "allOf": catalogue.workloads.iter().map(of_workload).collect::<Vec<_>>(),
    });
    json!({ "anyOf": [names(&catalogue.workloads), table] })
}

fn setting(of: &Setting) -> Value {
    let mut found = match of.kind {
        SettingKind::Text | SettingKind::Path | SettingKind::NameOrPath | SettingKind::Recipe => {
            json!({ "type": "string" })
        }
        SettingKind::Size => size(),
        SettingKind::Count => json!({ "type": "integer", "minimum": 0 }),
        SettingKind::Number => json!({ "type": "number" }),
        SettingKind::NumberOrPath => json!({ "type": ["number", "string"] }),
        SettingKind::Duration => duration(),
        SettingKind::Flag => json!({ "type": "boolean" }),
        SettingKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        SettingKind::Counts => json!({ "type": ["integer", "array"] }),
        SettingKind::Words => json!({ "type": ["string", "array"] }),
        SettingKind::Choice(choices) => json!({ "enum": choices }),
    };
    found["description"] = of.about.into();
    if let Some(default) = of.default {
        found["description"] = format!("{} (default {default})", of.about).into();
    }
    found
}
