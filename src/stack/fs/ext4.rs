//! ext4, and what its elders ext2 and ext3 share with it.

use super::feature::{
    CASE_FOLDING, CRASH_CONSISTENCY, CREATION_TIME, ENCRYPTION, Found, GROW, METADATA_CHECKSUMS, SHRINK, changed,
};
use super::{Argv, Filesystem, Wish, argv, make, number_above};

pub struct Ext4;

impl Filesystem for Ext4 {
    fn name(&self) -> &'static str {
        "ext4"
    }

    fn about(&self) -> &'static str {
        "journalling, the default of Debian's installer"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        mke2fs("ext4", wish)
    }

    fn free_space(&self, wish: &Wish) -> Option<Argv> {
        Some(argv(["e2freefrag", &wish.device()]))
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        TOOLS
    }

    fn minimum_size(&self) -> u64 {
        JOURNAL_MINIMUM
    }

    /// Documentation/filesystems/ext4/blocks.rst of Linux: extents hold 2^32 blocks of a file and lie within 2^48 blocks.
    fn largest_file(&self) -> Option<u64> {
        Some(16 << 40)
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(1 << 60)
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        dumpe2fs(wish)
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        mke2fs_version()
    }

    fn features(&self) -> &'static [&'static str] {
        JOURNALLING
    }

    fn more_features(&self) -> &'static [&'static str] {
        &[CASE_FOLDING, CREATION_TIME, ENCRYPTION, METADATA_CHECKSUMS]
    }

    /// What the super block says (ext4(5), FILE SYSTEM FEATURES). Where nobody read it, there is a journal, as nearly
    /// always.
    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        let has = |flag: &str| found.says("dumpe2fs", "Filesystem features:", flag);
        let flags = [("casefold", CASE_FOLDING), ("encrypt", ENCRYPTION), ("metadata_csum", METADATA_CHECKSUMS)];
        let with: Vec<&'static str> =
            flags.iter().filter(|(flag, _)| has(flag) == Some(true)).map(|(_, name)| *name).collect();
        let without: &[&str] = if has("has_journal") == Some(false) { &[CRASH_CONSISTENCY] } else { &[] };
        changed(JOURNALLING, without, &with)
    }

    fn weakens(&self, option: &str) -> bool {
        weakens_journal(option)
    }
}

pub(super) const TOOLS: &[(&str, &str)] = &[("mke2fs", "e2fsprogs"), ("dumpe2fs", "e2fsprogs")];

/// On less, mke2fs leaves the journal out and says so only in a warning.
pub(super) const JOURNAL_MINIMUM: u64 = 2 << 20;

/// resize2fs(8).
pub(super) const JOURNALLING: &[&str] = &[CRASH_CONSISTENCY, GROW, SHRINK];

/// Nothing is left for the kernel to initialise in the background while a phase runs, and directory hashes come from
/// the round's seed.
pub(super) fn mke2fs(kind: &str, wish: &Wish) -> Argv {
    let discard = if wish.discard { "discard" } else { "nodiscard" };
    let extended = format!("{discard},lazy_itable_init=0,lazy_journal_init=0,hash_seed={}", uuid(wish.seed));
    make(&["mke2fs", "-t", kind, "-q", "-F", "-E", &extended], wish)
}

/// The seed in a shape that mke2fs takes for a hash seed.
fn uuid(seed: u64) -> String {
    let hex = format!("{seed:016x}{:016x}", !seed);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

pub(super) fn dumpe2fs(wish: &Wish) -> Vec<(&'static str, Argv)> {
    vec![("dumpe2fs", argv(["dumpe2fs", "-h", &wish.device()]))]
}

pub(super) fn mke2fs_version() -> Vec<(&'static str, Argv)> {
    vec![("mke2fs", argv(["mke2fs", "-V"]))]
}

/// A commit interval over the default 5 s; no barriers; old data after a crash where new were promised (ext4(5)).
pub(super) fn weakens_journal(option: &str) -> bool {
    let weak = ["nobarrier", "barrier=0", "journal_async_commit", "data=writeback", "noauto_da_alloc"];
    weak.contains(&option) || number_above(option, "commit=", 5)
}
