//! ReiserFS (version 3).

use super::feature::{CRASH_CONSISTENCY, Found, GROW, SHRINK, changed};
use super::{Argv, Filesystem, Wish, argv, make, number_above};

pub struct Reiserfs;

impl Filesystem for Reiserfs {
    fn name(&self) -> &'static str {
        "reiserfs"
    }

    fn about(&self) -> &'static str {
        "journalling, packs small files and tails into its tree"
    }

    /// Forced twice, it asks nothing. It knows no discard.
    fn mkfs(&self, wish: &Wish) -> Argv {
        make(&["mkfs.reiserfs", "-ff", "-q"], wish)
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("mkfs.reiserfs", "reiserfsprogs"), ("debugreiserfs", "reiserfsprogs")]
    }

    fn hint(&self) -> &'static str {
        "removed in Linux 6.13; the stock kernels of Debian bullseye, bookworm and trixie have it (linux-image-amd64)"
    }

    /// Room for its journal of 8193 blocks.
    fn minimum_size(&self) -> u64 {
        33 << 20
    }

    /// fs/reiserfs/super.c of Linux: an inode counts sectors, and a volume its blocks, with 32 bits.
    fn largest_file(&self) -> Option<u64> {
        Some((2 << 40) - 4096)
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(16 << 40)
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![("debugreiserfs", argv(["debugreiserfs", &wish.device()]))]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("reiserfsprogs", argv(["mkfs.reiserfs", "-V"]))]
    }

    /// resize_reiserfs(8).
    fn features(&self) -> &'static [&'static str] {
        &[CRASH_CONSISTENCY, GROW, SHRINK]
    }

    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        let without: &[&str] = if found.mounted_with(&["nolog"]) { &[CRASH_CONSISTENCY] } else { &[] };
        changed(self.features(), without, &[])
    }

    /// Barriers and ordered data are the default, commits come every 30 s (fs/reiserfs/super.c).
    fn weakens(&self, option: &str) -> bool {
        let off = matches!(option, "barrier=none" | "nolog" | "data=writeback");
        off || number_above(option, "commit=", 30)
    }
}
