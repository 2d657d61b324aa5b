//! Facts that may be shared: measured values, settings in effect, models and versions. A fact that
//! is not in `facts.txt` may hold anything, such as the dump of a super block or the machine's own
//! number.

/// Names, a line each; `*` stands for any text. Facts about a backing have its name first.
const SHARED: &str = include_str!("facts.txt");

/// Whether a fact of this name may be shared. Imported ones have their file behind them.
pub(crate) fn may_be_shared(name: &str) -> bool {
    let name = name.split(" (file ").next().unwrap_or(name);
    let is = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => name == pattern,
        (Some(end), None) => name.ends_with(end),
        (None, Some(beginning)) => name.starts_with(beginning),
        (Some(part), Some(_)) => name.contains(part.trim_end_matches('*')),
    };
    SHARED.lines().any(is)
}
