//! Which guests a plan needs: one a release, and one more where modules are to be compiled.

use super::build::{Guest, RELEASES, Recipe};
use anyhow::{Context, Result};
use pickfs_core::plan::{Objection, Plan, Target};
use pickfs_core::protocol::Bundle;
use std::collections::BTreeSet;
use std::path::Path;

/// Where a target names no kernel.
const USUAL: &str = "bookworm";

/// The guests that a plan needs, with the tools of all its cells: fewer to make and to keep. What
/// needs its own modules brings tools that may conflict with others, such as the tools of OpenZFS
/// and zfs-fuse.
pub fn recipes(plan: &Plan, bundle: &Bundle) -> Result<Vec<Recipe>> {
    Ok(kinds_and_recipes(plan, bundle)?.into_iter().map(|(_, recipe)| recipe).collect())
}

pub(crate) fn kinds_and_recipes(plan: &Plan, bundle: &Bundle) -> Result<Vec<(String, Recipe)>> {
    let targets = plan.targets.iter().filter(|target| !is_own(kernel_of(target)));
    let kinds: BTreeSet<_> = targets.map(|target| (kernel_of(target), module_source(target, bundle))).collect();
    let recipe = |(release, source)| {
        Ok((
            kind(release, source),
            Recipe::new(find_release(release)?, tools(plan, bundle, source), &bundle.module_sources),
        ))
    };
    kinds.into_iter().map(recipe).collect()
}

/// Packages with the programs that the plan's targets with such a source of modules, and its works,
/// need.
fn tools(plan: &Plan, bundle: &Bundle, source: Option<&str>) -> BTreeSet<String> {
    let targets = plan.targets.iter().filter(|target| module_source(target, bundle) == source);
    let of_targets = targets.filter_map(|target| Some(&bundle.targets.get(&target.name)?.packages)).flatten();
    let of_works = bundle.works.values().flat_map(|work| &work.packages);
    of_targets.chain(of_works).cloned().chain(source.map(String::from)).collect()
}

fn module_source<'b>(target: &Target, bundle: &'b Bundle) -> Option<&'b str> {
    bundle.targets.get(&target.name)?.module_source.as_deref()
}

/// The kind of guest that a target's cells run in: `bookworm`, `bookworm with zfs-dkms`.
pub(crate) fn kind_of(target: &Target, bundle: &Bundle) -> String {
    kind(kernel_of(target), module_source(target, bundle))
}

fn kind(release: &str, source: Option<&str>) -> String {
    let with = source.map(|source| format!(" with {source}")).unwrap_or_default();
    format!("{release}{with}")
}

/// Folders with guests of the user's own that the plan names.
pub(crate) fn own_kernels(plan: &Plan) -> BTreeSet<&str> {
    plan.targets.iter().map(kernel_of).filter(|kernel| is_own(kernel)).collect()
}

/// A release's name, or the folder of a guest of the user's own.
pub(crate) fn kernel_of(target: &Target) -> &str {
    target.machine.text("kernel").unwrap_or(USUAL)
}

pub(crate) fn is_own(kernel: &str) -> bool {
    kernel.contains('/')
}

/// What stands against a `kernel` of a plan, and what to do.
pub(crate) fn objection_to(kernel: &str) -> Option<Objection> {
    let names: Vec<String> = RELEASES.iter().map(|release| format!("`{release}`")).collect();
    if !is_own(kernel) {
        let remedy = format!("use one of {}, or the path of a folder with your own kernel and root", names.join(", "));
        return find_release(kernel).err().map(|error| Objection::new("kernel", error.to_string(), &remedy));
    }
    let wrong = Guest::own(Path::new(kernel)).err()?;
    let remedy = "a guest's folder holds vmlinuz and root.squashfs; docs/vm.md has the rest";
    Some(Objection::new("kernel", format!("{wrong:#}"), remedy))
}

fn find_release(name: &str) -> Result<&'static str> {
    let found = RELEASES.iter().copied().find(|release| *release == name);
    found.with_context(|| format!("there is no kernel `{}`", name.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Settings;
    use pickfs_core::protocol::{ModuleSource, TargetBundle};

    fn target(name: &str, kernel: Option<&str>) -> Target {
        let machine = kernel.map(|kernel| Settings([("kernel".to_string(), kernel.into())].into()));
        Target { name: name.into(), machine: machine.unwrap_or_default(), ..Target::default() }
    }

    #[test]
    fn what_needs_modules_of_its_own_has_a_guest_of_its_own() {
        let rows = [
            ("ext4", None, "e2fsprogs", None),
            ("fuse", None, "zfs-fuse", None),
            ("zfs", None, "zfsutils-linux", Some("zfs-dkms")),
            ("zfs trixie", Some("trixie"), "zfsutils-linux", Some("zfs-dkms")),
            ("xfs", Some("./own"), "xfsprogs", None),
        ];
        let bundle = |packages: &str, source: Option<&str>| TargetBundle {
            packages: vec![packages.into()],
            module_source: source.map(String::from),
            ..TargetBundle::default()
        };
        let targets = rows.iter().map(|(name, .., packages, source)| (name.to_string(), bundle(packages, *source)));
        let zfs = ModuleSource { package: "zfs-dkms".into(), tools: "zfsutils-linux".into() };
        let bundle = Bundle { targets: targets.collect(), module_sources: vec![zfs], ..Bundle::default() };
        let targets = rows.iter().map(|(name, kernel, ..)| target(name, *kernel)).collect();
        let made = kinds_and_recipes(&Plan { targets, ..Plan::default() }, &bundle).expect("recipes");
        let names: Vec<&str> = made.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(names, ["bookworm", "bookworm with zfs-dkms", "trixie with zfs-dkms"]);
        let has = |index: usize, name: &str| made[index].1.packages.contains(name);
        assert!(
            has(0, "zfs-fuse") && has(0, "e2fsprogs") && !has(0, "zfsutils-linux") && made[0].1.compiled.is_empty()
        );
        assert!(has(1, "zfsutils-linux") && !has(1, "zfs-fuse") && made[1].1.compiled.len() == 1);
    }
}
