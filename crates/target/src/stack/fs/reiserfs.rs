//! ReiserFS (version 3).

use super::*;

pub(crate) const REISERFS: Filesystem = Filesystem {
    name: "reiserfs",
    about: "journalling, packs small files and tails into its tree",
    // Forced twice, it asks nothing. It knows no discard.
    making: Making::by(|spec| make(&["mkfs.reiserfs", "-ff", "-q"], &[], spec)),
    tools: &[("mkfs.reiserfs", "reiserfsprogs"), ("debugreiserfs", "reiserfsprogs")],
    kernel: Kernel::with(
        "removed in Linux 6.13; the stock kernels of Debian bullseye, bookworm and trixie have it (linux-image-amd64)",
    ),
    limits: Limits {
        // Room for its journal of 8193 blocks.
        least: 33 << 20,
        // fs/reiserfs/super.c of Linux: an inode counts sectors, and a volume its blocks, with 32 bits.
        file: Some((2 << 40) - 4096),
        volume: Some(16 << 40),
        packs_tails: true,
        ..Limits::DEFAULT
    },
    facts: &[("debugreiserfs", &["debugreiserfs", DEVICE])],
    upkeep: &[Upkeep::unmounted("check", &[&["reiserfsck", "--check", "--yes", "--quiet", DEVICE]])],
    versions: &[("reiserfsprogs", &["mkfs.reiserfs", "-V"])],
    // resize_reiserfs(8).
    features: Features {
        usual: &[CRASH_CONSISTENCY, GROW, SHRINK],
        depending: &[(CRASH_CONSISTENCY, |state| !state.mounted_with(&["nolog"]))],
        no_upper: Some(NO_TYPES),
        ..Features::DEFAULT
    },
    mounting: Mounting {
        // Barriers and ordered data are the default, commits come every 30 s (fs/reiserfs/super.c).
        weakens: |option| {
            let off = matches!(option, "barrier=none" | "nolog" | "data=writeback");
            off || number_above(option, "commit=", 30)
        },
        ..Mounting::DEFAULT
    },
    ..Filesystem::DEFAULT
};
