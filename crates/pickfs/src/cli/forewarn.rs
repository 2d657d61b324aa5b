//! What can be known before a run of why it will end without a pick.

use pickfs_core::plan::{Plan, Target};
use pickfs_target::stack::fs::{self, FsSpec};
use std::collections::BTreeMap;
use std::path::Path;

/// A sentence for each.
pub(crate) fn warnings(plan: &Plan) -> Vec<String> {
    let targets: Vec<&Target> = plan.targets.iter().filter(|target| !target.duplicate).collect();
    match targets.as_slice() {
        [one] => {
            vec![format!("{} is the only target, so nothing can be picked; name others to compare it with", one.name)]
        }
        all => without_features(plan, all).into_iter().collect(),
    }
}

/// No target has all that is required.
fn without_features(plan: &Plan, targets: &[&Target]) -> Option<String> {
    let required = &plan.verdict.require;
    let lacks = |target: &&Target| {
        let driver = fs::find(target.fs.as_deref()?)?;
        let spec = FsSpec::new(driver, target, Path::new("DEVICE"), Path::new("/"));
        Some(!lacking(driver, &spec, required).is_empty())
    };
    let none = targets.iter().all(|target| lacks(target) == Some(true));
    let list = required.join(", ");
    none.then(|| format!("no target can be picked, as none has all of: {list}; `pickfs list features` shows which do"))
}

/// What is required and is not available; what depends on mkfs defaults is known only after a run.
pub(crate) fn lacking<'r>(driver: &fs::Filesystem, spec: &FsSpec, required: &'r [String]) -> Vec<&'r String> {
    let facts = BTreeMap::new();
    let sure = driver.features.in_effect(&spec.state(&facts));
    let can = |name: &String| sure.iter().chain(driver.features.more).any(|feature| feature == name);
    required.iter().filter(|name| !can(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::catalogue::catalogue;
    use pickfs_core::plan::from_toml;

    #[test]
    fn what_can_have_no_pick_is_known_before() {
        for (targets, require, wanted) in [
            ("ext4", "", "ext4 is the only target"),
            ("ext4 xfs", "", ""),
            ("ext4 xfs", "snapshots", "none has all of: snapshots; "),
            ("ext4 btrfs", "snapshots", ""),
            ("ext4 btrfs", "snapshots encryption", "none has all of: encryption, snapshots; "),
        ] {
            let target = |fs: &str| format!("[[target]]\nfs = '{fs}'\n");
            let required: Vec<String> = require.split_whitespace().map(|name| format!("'{name}'")).collect();
            let verdict = format!("[verdict]\nrequire = [{}]\n", required.join(", "));
            let verdict = if required.is_empty() { String::new() } else { verdict };
            let targets: String = targets.split(' ').map(target).collect();
            let text =
                format!("[backing]\nmemory = '1GiB'\n{targets}[[work]]\nworkload = 'tree'\nscale = 0.1\n{verdict}");
            let plan = from_toml(&text, "", Path::new("/"), &catalogue()).unwrap();
            let said = warnings(&plan).join("\n");
            assert!(said.contains(wanted) && wanted.is_empty() == said.is_empty(), "{text}: {said}");
        }
    }
}
