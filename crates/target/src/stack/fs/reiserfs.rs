//! ReiserFS (version 3).

use super::feature::{CRASH_CONSISTENCY, FsState, GROW, SHRINK};
use super::{DEVICE, Filesystem, Upkeep, make, number_above};

pub(crate) const REISERFS: Filesystem = Filesystem {
    name: "reiserfs",
    about: "journalling, packs small files and tails into its tree",
    // Forced twice, it asks nothing. It knows no discard.
    mkfs: |spec| make(&["mkfs.reiserfs", "-ff", "-q"], &[], spec),
    tools: &[("mkfs.reiserfs", "reiserfsprogs"), ("debugreiserfs", "reiserfsprogs")],
    hint: "removed in Linux 6.13; the stock kernels of Debian bullseye, bookworm and trixie have it (linux-image-amd64)",
    packs_tails: true,
    // Room for its journal of 8193 blocks.
    minimum_size: 33 << 20,
    // fs/reiserfs/super.c of Linux: an inode counts sectors, and a volume its blocks, with 32 bits.
    largest_file: Some((2 << 40) - 4096),
    largest_volume: Some(16 << 40),
    no_upper: Some(super::NO_TYPES),
    facts: &[("debugreiserfs", &["debugreiserfs", DEVICE])],
    upkeep: &[Upkeep::unmounted("check", &[&["reiserfsck", "--check", "--yes", "--quiet", DEVICE]])],
    versions: &[("reiserfsprogs", &["mkfs.reiserfs", "-V"])],
    // resize_reiserfs(8).
    features: &[CRASH_CONSISTENCY, GROW, SHRINK],
    features_in_effect: |driver, state: &FsState| state.without_journal_by("nolog", driver.features),
    // Barriers and ordered data are the default, commits come every 30 s (fs/reiserfs/super.c).
    weakens: |option| {
        let off = matches!(option, "barrier=none" | "nolog" | "data=writeback");
        off || number_above(option, "commit=", 30)
    },
    ..Filesystem::DEFAULT
};
