//! What a guest is made of: a release of Debian, its kernel, and the packages with the tools that
//! are used.

use pickfs_core::protocol::ModuleSource;
use std::collections::BTreeSet;

/// Releases of Debian that guests can be made of, sorted: 12 with kernel 6.1, 11 with 5.10,
/// unstable, 13 with 6.12.
pub const RELEASES: &[&str] = &["bookworm", "bullseye", "sid", "trixie"];

/// What every guest needs to run an agent: its kernel, libraries, programs of daily use, and what
/// loads modules.
const BASE: &[&str] = &[
    "base-files", "base-passwd", "bash", "coreutils", "dash", "findutils", "grep", "kmod", "libc-bin", "libc6",
    "linux-image-amd64", "mount", "passwd", "procps", "sed", "tar", "util-linux",
];

/// A release whose kernel has a file system, the package with its tools, which only another suite
/// of Debian's archive has, and that suite. All that the package needs is in the release.
const BORROWED: &[(&str, &str, &str)] = &[("trixie", "bcachefs-tools", "experimental")];

#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    pub release: &'static str,
    /// Sorted; the kernel among them.
    pub packages: BTreeSet<String>,
    pub compiled: Vec<ModuleSource>,
}

impl Recipe {
    /// Tools that are sources of kernel modules are compiled, and their own tools come with them.
    pub fn new(
        release: &'static str,
        tools: impl IntoIterator<Item = String>,
        module_sources: &[ModuleSource],
    ) -> Recipe {
        let base = BASE.iter().map(|name| name.to_string());
        let is_source = |name: &String| module_sources.iter().any(|source| source.package == *name);
        let (sources, tools): (BTreeSet<String>, BTreeSet<String>) = tools.into_iter().partition(is_source);
        let compiled = module_sources.iter().filter(|source| sources.contains(&source.package)).cloned();
        let compiled: Vec<ModuleSource> = compiled.collect();
        let beside = compiled.iter().map(|source| source.tools.to_string());
        let packages = base.chain(tools).chain(beside).collect();
        Recipe { release, packages, compiled }
    }

    /// In words that a build follows exactly; what it hashes to is the guest's name.
    pub(crate) fn text(&self) -> String {
        let packages: Vec<&str> = self.packages.iter().map(String::as_str).collect();
        let compiled = self.compiled.iter().map(|source| format!("compiled {}\n", source.package));
        let compiled: String = compiled.collect();
        let borrowed = self.borrowed().map(|(name, suite)| format!("borrowed {name} from {suite}\n"));
        let borrowed: String = borrowed.collect();
        format!("format 2\nrelease {}\npackages {}\n{compiled}{borrowed}", self.release, packages.join(" "))
    }

    /// Packages that come from another suite than the release, and that suite.
    pub(crate) fn borrowed(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_wanted = |row: &&(&str, &str, &str)| row.0 == self.release && self.packages.contains(row.1);
        BORROWED.iter().filter(is_wanted).map(|(_, name, suite)| (*name, *suite))
    }

    /// Components of Debian's archive; contrib is only asked for where something is compiled.
    pub(crate) fn components(&self) -> &'static str {
        if self.compiled.is_empty() { "main" } else { "main,contrib" }
    }

    /// `bookworm-1f2e3d4c5b6a7988`.
    pub(crate) fn name(&self) -> String {
        format!("{}-{:016x}", self.release, xxhash_rust::xxh3::xxh3_64(self.text().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zfs() -> ModuleSource {
        ModuleSource { package: "zfs-dkms".into(), tools: "zfsutils-linux".into() }
    }

    #[test]
    fn the_same_tools_in_any_order_are_the_same_guest() {
        let recipe = |tools: &[&str]| Recipe::new(RELEASES[0], tools.iter().map(|name| name.to_string()), &[zfs()]);
        assert_eq!(recipe(&["xfsprogs", "btrfs-progs"]).name(), recipe(&["btrfs-progs", "xfsprogs", "tar"]).name());
        assert_ne!(recipe(&["xfsprogs"]).name(), recipe(&[]).name());
        assert_ne!(recipe(&[]).name(), Recipe::new(RELEASES[1], [], &[]).name());
        assert!(RELEASES.is_sorted());
    }

    #[test]
    fn what_only_another_suite_has_is_borrowed_by_name() {
        for (release, tools, lines) in [
            ("trixie", &["bcachefs-tools", "xfsprogs"][..], "borrowed bcachefs-tools from experimental\n"),
            ("trixie", &["xfsprogs"], ""),
            ("sid", &["bcachefs-tools"], ""),
        ] {
            let recipe = Recipe::new(release, tools.iter().map(|name| name.to_string()), &[]);
            assert_eq!(recipe.text().lines().skip(3).map(|line| format!("{line}\n")).collect::<String>(), lines);
        }
        assert!(BORROWED.iter().all(|(release, ..)| RELEASES.contains(release)));
    }

    #[test]
    fn what_is_compiled_makes_another_guest_and_brings_its_tools() {
        let recipe = |tools: &[&str]| Recipe::new(RELEASES[0], tools.iter().map(|name| name.to_string()), &[zfs()]);
        let (with, without) = (recipe(&["zfs-dkms"]), recipe(&["zfsutils-linux"]));
        assert_eq!(with.packages, without.packages);
        assert!(with.packages.contains("zfsutils-linux") && !with.packages.contains("zfs-dkms"));
        assert_ne!(with.name(), without.name());
        assert!(with.text().ends_with("\ncompiled zfs-dkms\n") && !without.text().contains("compiled"));
        assert_eq!((with.components(), without.components()), ("main,contrib", "main"));
        assert_eq!(recipe(&["zfs-dkms", "xfsprogs"]), recipe(&["xfsprogs", "zfs-dkms", "zfsutils-linux"]));
    }
}
