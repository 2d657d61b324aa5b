//! What file systems can do for their users, by name: the words that a plan may require.
//!
//! A feature is there when the file system, as made and mounted, offers it: snapshots can be taken,
//! a file can be compressed. What would take another mkfs, or another mount, is not there. Where a
//! source is not sure, the feature is left out: a wrong "no" costs a candidate, a wrong "yes" costs
//! data.

use super::MountOptions;
use crate::stack::data::list;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A name for plans, and what it promises.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    pub name: &'static str,
    pub about: &'static str,
}

/// Every feature, sorted by name.
pub const FEATURES: &[Feature] = &[
    Feature { name: CASE_FOLDING, about: "names that differ in upper and lower case alone can be one name" },
    Feature { name: CHECKSUMS, about: "checksums of data: a wrong byte from the disk is an error, not an answer" },
    Feature { name: COMPRESSION, about: "files can be kept compressed" },
    Feature { name: "crash-consistency", about: "whole again after a crash, without a check of all of it" },
    Feature { name: CREATION_TIME, about: "it is known when a file was made; tried on each, as old layouts lack it" },
    Feature { name: ENCRYPTION, about: "files can be kept encrypted, by the file system's own means" },
    Feature { name: "grow", about: "can be made larger later" },
    Feature { name: METADATA_CHECKSUMS, about: "checksums of names, inodes and the like" },
    Feature { name: "multi-device", about: "devices can be added later, without a layer below" },
    Feature { name: REFLINKS, about: "copies of files that share their blocks (cp --reflink)" },
    Feature { name: "shrink", about: "can be made smaller later" },
    Feature { name: "snapshots", about: "the state of one moment can be kept while files change" },
];

pub(crate) const CASE_FOLDING: &str = "case-folding";
pub(crate) const CHECKSUMS: &str = "checksums";
pub(crate) const COMPRESSION: &str = "compression";
pub(crate) const CREATION_TIME: &str = "creation-time";
pub(crate) const ENCRYPTION: &str = "encryption";
pub(crate) const METADATA_CHECKSUMS: &str = "metadata-checksums";
pub(crate) const REFLINKS: &str = "reflinks";
pub(crate) const NO_WHITEOUTS: &str = "FUSE cannot leave a mark where a file was renamed away (RENAME_WHITEOUT)";
pub(crate) const READ_ONLY: &str = "it is a read-only image";

pub(crate) const LINKS: &str = "hard and symbolic links";
pub(crate) const MODES: &str = "owners and modes";

/// A feature that options give or take, and what says of one that stands whether it is there.
type Depending = (&'static str, By);

/// A fact, what it always says, and a word.
type Saying = (&'static str, &'static str, &'static str);

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum By {
    /// The fact has the word; or it does not, or says nothing.
    Says(Saying),
    MaySay(Saying),
    /// mkfs was given it as a feature.
    MadeWith(&'static str),
    NotMountedWith(&'static str),
    #[serde(skip)]
    Code(fn(&FsState) -> bool),
}

impl By {
    fn is_there(self, state: &FsState) -> bool {
        match self {
            By::Says((fact, sign, word)) => state.says(fact, sign, word) == Some(true),
            By::MaySay((fact, sign, word)) => state.says(fact, sign, word) != Some(false),
            By::MadeWith(feature) => state.made_with(feature),
            By::NotMountedWith(option) => !state.mounted_with(&[option]),
            By::Code(is_there) => is_there(state),
        }
    }
}

/// What users can have of a file system.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// As its mkfs makes it by itself, sorted; names of [`FEATURES`].
    #[serde(deserialize_with = "list")]
    pub usual: &'static [&'static str],
    /// What options, or newer versions of mkfs, add; sorted.
    #[serde(deserialize_with = "list")]
    pub more: &'static [&'static str],
    #[serde(deserialize_with = "list")]
    pub(super) depending: &'static [Depending],
    /// What nearly all others keep of a file: [`LINKS`], [`MODES`].
    #[serde(deserialize_with = "list")]
    pub keeps_no: &'static [&'static str],
    /// Why overlayfs cannot have its upper folder on it: what it asks of the file system with that
    /// (Documentation/filesystems/ overlayfs.rst, "Upper and Lower"), and of its names and its kind
    /// (ovl_dentry_weird() and ovl_make_workdir() in fs/overlayfs of Linux).
    #[serde(borrow)]
    pub no_upper: Option<&'static str>,
    /// Whether one that pickfs made, with these mount options in effect, keeps what is written
    /// compressed, or may do so.
    #[serde(skip)]
    pub(crate) compresses: fn(&MountOptions) -> bool,
}

impl Default for Features {
    fn default() -> Features {
        Features { usual: &[], more: &[], depending: &[], keeps_no: &[], no_upper: None, compresses: |_| false }
    }
}

impl Features {
    /// The features of one that stands, sorted.
    pub fn in_effect(&self, state: &FsState) -> Vec<&'static str> {
        let is_fixed = |name: &&&str| self.depending.iter().all(|(depending, _)| depending != *name);
        let there = self.depending.iter().filter(|(_, by)| by.is_there(state)).map(|(name, _)| *name);
        let mut all: Vec<&'static str> = self.usual.iter().filter(is_fixed).copied().chain(there).collect();
        all.sort();
        all
    }
}

/// A file system that stands, as far as is known.
#[derive(Clone, Copy, Debug)]
pub struct FsState<'a> {
    /// Words for mkfs; none where we did not make it.
    pub mkfs: &'a [String],
    /// Mount options, as asked and as the kernel shows them.
    pub mount: &'a [String],
    pub variant: Option<&'a str>,
    /// As the target asks for it.
    pub nodatacow: bool,
    /// What the driver's programs said, by the names of [`super::Filesystem`]'s facts; nothing
    /// where we did not make it.
    pub facts: &'a BTreeMap<String, String>,
}

impl FsState<'_> {
    pub(crate) fn mounted_with(&self, options: &[&str]) -> bool {
        self.mount.iter().any(|option| options.contains(&option.as_str()))
    }

    pub(crate) fn made_with(&self, feature: &str) -> bool {
        self.switched(feature) == Some(true)
    }

    /// Whether `-O a,b`, as one word or two, switched a feature on or off; the last mention counts.
    pub(super) fn switched(&self, feature: &str) -> Option<bool> {
        let mut words = self.mkfs.iter();
        let mut on = None;
        while let Some(word) = words.next() {
            let Some(rest) = word.trim_start().strip_prefix("-O") else { continue };
            let list = if rest.trim().is_empty() { words.next().map_or("", String::as_str) } else { rest };
            for name in list.split(',').map(str::trim) {
                let is_off = name == "none" || name.strip_prefix('^') == Some(feature);
                on = if name == feature || is_off { Some(!is_off) } else { on };
            }
        }
        on
    }

    /// Whether a word stands in what a program said; `None` where it printed nothing, or something
    /// else altogether: then `sign`, which it always says, is not in it either.
    pub(crate) fn says(&self, fact: &str, sign: &str, word: &str) -> Option<bool> {
        let text = self.facts.get(fact).filter(|text| text.contains(sign))?;
        Some(text.split(|c: char| c.is_whitespace() || c == ',').any(|found| found == word))
    }
}

/// The value of a property in what `zfs get all` or `zpool get all` printed.
pub(super) fn shown_property<'a>(facts: &'a BTreeMap<String, String>, fact: &str, name: &str) -> Option<&'a str> {
    let mut rows = facts.get(fact)?.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.find(|row| row.get(1) == Some(&name))?.get(2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::{ALL, find, of_kernel};
    use super::*;

    #[test]
    fn the_list_is_sorted_and_described_and_drivers_keep_to_it() {
        assert!(FEATURES.is_sorted_by(|a, b| a.name < b.name));
        assert!(FEATURES.iter().all(|feature| !feature.about.is_empty() && !feature.about.ends_with('.')));
        assert!(FEATURES.iter().all(|feature| !feature.name.contains(char::is_whitespace)), "a fact splits at blanks");
        for fs in ALL.iter() {
            let features = fs.features.usual;
            assert!(features.is_sorted_by(|a, b| a < b), "{}", fs.name);
            let more = fs.features.more;
            assert!(more.is_sorted_by(|a, b| a < b) && !more.iter().any(|name| features.contains(name)), "{}", fs.name);
            let all = || features.iter().chain(more);
            assert!(all().all(|name| FEATURES.iter().any(|known| known.name == *name)), "{}", fs.name);
        }
    }

    /// What stands of a driver: mkfs words, mount options, variant, one fact.
    fn in_effect(fs: &str, mkfs: &str, mount: &str, variant: Option<&str>, fact: (&str, &str)) -> Vec<&'static str> {
        let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        let facts = BTreeMap::from([(fact.0.to_string(), fact.1.to_string())]);
        let (mkfs, mount) = (words(mkfs), words(mount));
        find(fs).unwrap().features.in_effect(&FsState {
            mkfs: &mkfs,
            mount: &mount,
            variant,
            nodatacow: false,
            facts: &facts,
        })
    }

    /// A driver, mkfs words, mount options, a fact with its name; what it has not, what it has.
    type Case = (&'static str, &'static str, &'static str, (&'static str, &'static str), &'static str, &'static str);

    const PLAIN: (&str, &str) = ("", "");
    const DUMPE2FS: (&str, &str) =
        ("dumpe2fs", "Filesystem features:      has_journal metadata_csum extent casefold\n");
    const NO_JOURNAL: (&str, &str) = ("dumpe2fs", "Filesystem features:      ext_attr encrypt\n");
    const XFS: (&str, &str) = ("xfs_info", "meta-data=/dev/x isize=512\n  = crc=1  finobt=1\n  = reflink=1 bigtime=1");
    const OLD_XFS: (&str, &str) = ("xfs_info", "meta-data=/dev/x isize=256\n  = crc=0  finobt=0\n  = reflink=0");
    const ZFS: (&str, &str) =
        ("zfs get", "NAME  PROPERTY  VALUE\npk  checksum  off  local\npk  casesensitivity  insensitive  -");
    const ZPOOL: (&str, &str) = ("zpool get", "NAME PROPERTY VALUE\npk  feature@encryption  enabled  local");

    #[rustfmt::skip]
    const CASES: &[Case] = &[
        ("bcachefs", "", "rw", PLAIN, "encryption", "checksums compression snapshots"),
        ("bcachefs", "--encrypted", "", PLAIN, "", "encryption"),
        ("bcachefs", "", "nocow", PLAIN, "checksums compression", "metadata-checksums"),
        ("bcachefs", "--data_checksum=none --metadata_checksum=none", "", PLAIN, "checksums metadata-checksums", "snapshots"),
        ("bcachefs", "--data_checksum none", "metadata_checksum=none", PLAIN, "checksums metadata-checksums", "reflinks"),
        ("btrfs", "", "rw compress=zstd:1 noatime", PLAIN, "encryption", "checksums compression reflinks shrink snapshots"),
        ("btrfs", "", "nodatacow", PLAIN, "checksums compression", "metadata-checksums snapshots"),
        ("btrfs", "", "nodatasum", PLAIN, "checksums compression", "metadata-checksums"),
        ("ext2", "", "", DUMPE2FS, "crash-consistency snapshots", "grow shrink"),
        ("ext3", "", "", DUMPE2FS, "checksums metadata-checksums case-folding", "crash-consistency"),
        ("ext4", "", "", DUMPE2FS, "checksums encryption", "case-folding crash-consistency metadata-checksums"),
        ("ext4", "", "", NO_JOURNAL, "crash-consistency metadata-checksums case-folding", "encryption grow"),
        ("ext4", "", "", PLAIN, "metadata-checksums encryption", "crash-consistency grow shrink"),
        ("ext4", "", "", ("dumpe2fs", "dumpe2fs: Permission denied"), "metadata-checksums", "crash-consistency"),
        ("f2fs", "", "", PLAIN, "compression encryption case-folding shrink multi-device", "crash-consistency grow"),
        ("f2fs", "-O extra_attr,compression,encrypt", "", PLAIN, "case-folding", "compression encryption"),
        ("f2fs", "-Ocasefold -C utf8", "", PLAIN, "compression", "case-folding"),
        ("jfs", "", "nointegrity", PLAIN, "crash-consistency", "grow"),
        ("nilfs2", "", "", PLAIN, "checksums reflinks", "grow shrink snapshots"),
        ("reiserfs", "", "nolog", PLAIN, "crash-consistency", "grow shrink"),
        ("xfs", "", "", XFS, "checksums shrink snapshots", "metadata-checksums reflinks"),
        ("xfs", "", "", OLD_XFS, "metadata-checksums reflinks", "crash-consistency grow"),
        ("xfs", "", "", PLAIN, "metadata-checksums reflinks", "crash-consistency"),
        ("zfs", "", "", ZFS, "checksums encryption reflinks", "case-folding metadata-checksums"),
        ("zfs", "", "", ZPOOL, "case-folding", "checksums encryption"),
        ("zfs-fuse", "", "", ZFS, "checksums encryption case-folding", "compression snapshots"),
    ];

    #[test]
    fn options_and_what_is_read_back_take_and_give_features() {
        for (fs, mkfs, mount, fact, without, with) in CASES {
            let found = in_effect(fs, mkfs, mount, None, *fact);
            assert!(found.is_sorted_by(|a, b| a < b), "{fs} {mkfs} {mount}: {found:?}");
            for name in without.split_whitespace() {
                assert!(!found.contains(&name), "{fs} {mkfs} {mount} {fact:?} has no {name}: {found:?}");
            }
            let driver = find(fs).unwrap();
            let listed = |name: &&str| driver.features.usual.contains(name) || driver.features.more.contains(name);
            assert!(found.iter().all(listed), "{fs} {mkfs} {mount}: {found:?}");
            for name in with.split_whitespace() {
                assert!(found.contains(&name), "{fs} {mkfs} {mount} {fact:?} has {name}: {found:?}");
            }
        }
    }

    #[test]
    fn nocow_of_btrfs_has_no_checksums_and_the_other_variants_have() {
        for variant in find("btrfs").unwrap().variants {
            let found = in_effect("btrfs", "", "", Some(variant.name), PLAIN);
            assert_eq!(found.contains(&CHECKSUMS), variant.name != "nocow", "{}", variant.name);
            assert_eq!(found.contains(&COMPRESSION), variant.name != "nocow", "{}", variant.name);
        }
    }

    #[test]
    fn btrfs_without_copy_on_write_has_no_checksums() {
        let found = FsState { mkfs: &[], mount: &[], variant: None, nodatacow: true, facts: &BTreeMap::new() };
        let features = find("btrfs").unwrap().features.in_effect(&found);
        assert!(!features.contains(&CHECKSUMS) && !features.contains(&COMPRESSION) && features.contains(&"snapshots"));
    }

    #[test]
    fn blocks_are_cloned_by_zfs_where_pool_and_module_both_let_it() {
        let reflinks = |enabled: &str, module: &str| {
            let pool = format!("NAME PROPERTY VALUE\npk  feature@block_cloning  {enabled}  local");
            let facts = [("zpool get", pool.as_str()), ("zfs_bclone_enabled", module)];
            let facts = facts.map(|(name, text)| (name.to_string(), text.to_string())).into();
            let found = FsState { mkfs: &[], mount: &[], variant: None, nodatacow: false, facts: &facts };
            find("zfs").unwrap().features.in_effect(&found).contains(&REFLINKS)
        };
        assert_eq!(
            [
                reflinks("active", "1"),
                reflinks("active", "0"),
                reflinks("disabled", "1"),
                reflinks("enabled", "cat: no")
            ],
            [true, false, false, false]
        );
    }

    #[test]
    fn the_last_word_about_a_feature_counts() {
        let made = |mkfs: &str| {
            let mkfs: Vec<String> = mkfs.split_whitespace().map(String::from).collect();
            FsState { mkfs: &mkfs, mount: &[], variant: None, nodatacow: false, facts: &BTreeMap::new() }
                .made_with("encrypt")
        };
        assert!(made("-O encrypt") && made("-Oquota,encrypt") && made("-q -O ^encrypt -O encrypt"));
        assert!(
            !made("") && !made("-O encrypted") && !made("encrypt") && !made("-O encrypt -O a,^encrypt") && !made("-O")
        );
    }

    #[test]
    fn a_mount_is_known_by_its_kernel_type() {
        assert_eq!(of_kernel("btrfs").map(|fs| fs.name), Some("btrfs"));
        assert!(of_kernel("fuse").is_none(), "anything may be behind FUSE");
        assert!(of_kernel("overlay").is_none());
    }
}
