//! Values of TOML, as flags are written down for the reader of plans.

use toml::{Table, Value};

/// A table of those keys that have a value.
pub(super) fn table<const N: usize>(entries: [(&str, Option<Value>); N]) -> Table {
    entries.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))).collect()
}

pub(super) fn list(texts: &[String]) -> Option<Value> {
    (!texts.is_empty()).then(|| Value::from(texts.to_vec()))
}

pub(super) fn text(text: Option<&str>) -> Option<Value> {
    text.map(Value::from)
}
