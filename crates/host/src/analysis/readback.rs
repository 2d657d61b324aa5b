//! What was in effect, side by side: every fact that was read back of any target, and where targets
//! differ in it.

use super::model::{TargetInfo, value_of};
use std::collections::BTreeSet;

/// One fact of all targets but the reference's copy.
#[derive(Debug, PartialEq)]
pub struct EffectRow {
    pub name: String,
    /// By target, as in the list of columns; empty where it is not known.
    pub values: Vec<String>,
    /// Not all that know it have the same.
    pub differs: bool,
}

#[derive(Debug, Default, PartialEq)]
pub struct Effect {
    /// Targets.
    pub columns: Vec<usize>,
    /// What differs first.
    pub rows: Vec<EffectRow>,
}

pub(crate) fn effect(targets: &[TargetInfo]) -> Effect {
    let columns: Vec<usize> = (0..targets.len()).filter(|at| !targets[*at].duplicate).collect();
    let names: BTreeSet<&str> =
        columns.iter().flat_map(|at| &targets[*at].facts).map(|fact| fact.name.as_str()).collect();
    let row = |name: &str| {
        let values: Vec<String> =
            columns.iter().map(|at| value_of(&targets[*at].facts, name).unwrap_or_default().to_string()).collect();
        let known: BTreeSet<&String> = values.iter().filter(|value| !value.is_empty()).collect();
        EffectRow { name: name.to_string(), differs: known.len() > 1, values }
    };
    let mut rows: Vec<EffectRow> = names.into_iter().map(row).collect();
    rows.sort_by_key(|row| !row.differs);
    Effect { columns, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Fact;

    fn target(facts: &[(&str, &str)]) -> TargetInfo {
        let facts = facts.iter().map(|(name, value)| Fact { name: name.to_string(), value: value.to_string() });
        TargetInfo { facts: facts.collect(), ..TargetInfo::default() }
    }

    #[test]
    fn differences_come_first_and_what_is_unknown_is_none() {
        let copy = TargetInfo { duplicate: true, ..target(&[("kernel", "5.10")]) };
        let found = effect(&[target(&[("kernel", "6.1"), ("mount", "rw")]), copy, target(&[("mount", "ro")])]);
        assert_eq!(found.columns, [0, 2]);
        let rows: Vec<(&str, bool)> = found.rows.iter().map(|row| (row.name.as_str(), row.differs)).collect();
        assert_eq!(rows, [("mount", true), ("kernel", false)]);
        assert_eq!(found.rows[1].values, ["6.1", ""]);
    }
}
