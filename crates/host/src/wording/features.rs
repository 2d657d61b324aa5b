//! What users can have of the targets, and what these can hold: as found on the file systems that
//! were compared.

use crate::analysis::{Model, TargetInfo, value_of};
use std::collections::BTreeSet;

const FEATURES: &str = "features";
const LIMITS: [&str; 7] = [
    "tried: longest name",
    "tried: largest file",
    "documented: largest file",
    "documented: largest volume",
    "tried: reflinks",
    "oldest kernel that reads it",
    "oldest kernel that writes it",
];

/// A row for each feature and limit that any target has, a column for each target, after a row of
/// names; nothing where nothing is known.
pub(crate) fn rows(model: &Model) -> Vec<Vec<String>> {
    let targets: Vec<&TargetInfo> = model.targets.iter().filter(|target| !target.duplicate).collect();
    let mut names: Vec<&str> = targets.iter().flat_map(|target| features(target).unwrap_or_default()).collect();
    names.sort_unstable();
    names.dedup();
    let row = |name: &str, cell: &dyn Fn(&TargetInfo) -> String| {
        std::iter::once(name.to_string()).chain(targets.iter().map(|target| cell(target))).collect::<Vec<_>>()
    };
    let has = |target: &TargetInfo, name: &str| match features(target) {
        None => "unknown",
        Some(all) if all.contains(&name) => "yes",
        Some(_) => "-",
    };
    let of_features = names.iter().map(|name| row(name, &|target| has(target, name).into()));
    let of_limits = LIMITS
        .iter()
        .filter(|limit: &&&str| targets.iter().any(|target| value_of(&target.facts, limit).is_some()))
        .map(|limit| row(limit, &|target| value_of(&target.facts, limit).unwrap_or("unknown").into()));
    let rows: Vec<Vec<String>> = of_features.chain(of_limits).collect();
    let head = row("", &|target| target.name.clone());
    if rows.is_empty() { rows } else { std::iter::once(head).chain(rows).collect() }
}

/// What another target has, and this one has not.
pub(super) fn lacked<'m>(model: &'m Model, target: &TargetInfo) -> Vec<&'m str> {
    let Some(own) = features(target) else { return Vec::new() };
    let others =
        model.targets.iter().filter(|other| !other.duplicate).flat_map(|other| features(other).unwrap_or_default());
    let lacked: BTreeSet<&str> = others.filter(|name| !own.contains(name)).collect();
    lacked.into_iter().collect()
}

fn features(target: &TargetInfo) -> Option<Vec<&str>> {
    Some(value_of(&target.facts, FEATURES)?.split(' ').filter(|name| !name.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Fact;

    fn target(name: &str, facts: &[(&str, &str)]) -> TargetInfo {
        let fact = |(name, value): &(&str, &str)| Fact { name: name.to_string(), value: value.to_string() };
        TargetInfo { name: name.into(), facts: facts.iter().map(fact).collect(), ..TargetInfo::default() }
    }

    #[test]
    fn each_feature_and_limit_has_a_row() {
        let ext4 = target("ext4", &[("features", "grow shrink"), ("tried: largest file", "16.0 TiB")]);
        let btrfs = target("btrfs", &[("features", "grow snapshots"), ("seed", "1")]);
        let unknown = target("folder", &[]);
        let again = TargetInfo { duplicate: true, ..target("ext4 (again)", &[("features", "odd")]) };
        let found = rows(&Model { targets: vec![ext4, btrfs, unknown, again], ..Model::default() });
        let lines: Vec<String> = found.iter().map(|row| row.join("|")).collect();
        assert_eq!(
            lines,
            [
                "|ext4|btrfs|folder",
                "grow|yes|yes|unknown",
                "shrink|yes|-|unknown",
                "snapshots|-|yes|unknown",
                "tried: largest file|16.0 TiB|unknown|unknown",
            ]
        );
        assert!(rows(&Model::default()).is_empty());
    }
}
