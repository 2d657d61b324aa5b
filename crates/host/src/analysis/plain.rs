//! Text of a journal made harmless: what it names may have been written to steer a terminal or to
//! break a document.

pub(crate) use pickfs_system::visible::steers;
use pickfs_system::visible::without_log_commands;
use serde_json::Value;

/// No name or reason is longer in a report.
const LONGEST: usize = 300;

/// Text without what could steer a terminal or break a document: control characters and characters
/// that turn or hide text become blanks; very long text is cut.
pub fn plain(text: &str) -> String {
    let shown: String = text.chars().take(LONGEST).map(|c| if steers(c) { ' ' } else { c }).collect();
    let cut = if text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    without_log_commands(shown.trim()) + cut
}

/// No text inside a plan is longer in a report.
const LONGEST_IN_PLAN: usize = 1 << 16;

/// The same for all that a tree of values holds; names and lines keep their breaks, as programs
/// read them.
pub(crate) fn sanitize_json(value: Value) -> Value {
    let tamed = |text: &str| -> String {
        text.chars().take(LONGEST_IN_PLAN).map(|c: char| if steers(c) && c != '\n' { ' ' } else { c }).collect()
    };
    match value {
        Value::String(text) => Value::String(tamed(&text)),
        Value::Array(list) => list.into_iter().map(sanitize_json).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (plain(&name), sanitize_json(value))).collect(),
        other => other,
    }
}
