//! F2FS, log-structured, for flash.

use super::feature::{CASE_FOLDING, COMPRESSION, CRASH_CONSISTENCY, CREATION_TIME, ENCRYPTION, Found, GROW, changed};
use super::{Argv, Filesystem, Wish, argv, make};

pub struct F2fs;

impl Filesystem for F2fs {
    fn name(&self) -> &'static str {
        "f2fs"
    }

    fn about(&self) -> &'static str {
        "log-structured, made for flash; common on phones"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        make(&["mkfs.f2fs", "-f", "-q", "-t", if wish.discard { "1" } else { "0" }], wish)
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("mkfs.f2fs", "f2fs-tools"), ("dump.f2fs", "f2fs-tools")]
    }

    fn hint(&self) -> &'static str {
        super::STOCK_KERNEL
    }

    fn minimum_size(&self) -> u64 {
        52 << 20
    }

    /// Documentation/filesystems/f2fs.rst and include/linux/f2fs_fs.h of Linux: addresses are of 32 bits.
    fn largest_file(&self) -> Option<u64> {
        Some(4096 * (923 + 2 * 1018 + 2 * 1018 * 1018 + 1018 * 1018 * 1018))
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(16 << 40)
    }

    /// Discarding while mounted is its default where the device can.
    fn no_discard(&self) -> Option<&'static str> {
        Some("nodiscard")
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![("dump.f2fs", argv(["dump.f2fs", &wish.device()]))]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("f2fs-tools", argv(["mkfs.f2fs", "-V"]))]
    }

    /// resize.f2fs(8) only enlarges. Several devices are a choice of mkfs, and no plan can name a second one there.
    fn features(&self) -> &'static [&'static str] {
        &[CRASH_CONSISTENCY, GROW]
    }

    fn more_features(&self) -> &'static [&'static str] {
        &[CASE_FOLDING, COMPRESSION, CREATION_TIME, ENCRYPTION]
    }

    /// Each is a feature of mkfs.f2fs(8), and off unless asked for.
    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        let flags = [("casefold", CASE_FOLDING), ("compression", COMPRESSION), ("encrypt", ENCRYPTION)];
        let with: Vec<&'static str> =
            flags.iter().filter(|(flag, _)| found.made_with(flag)).map(|(_, name)| *name).collect();
        changed(self.features(), &[], &with)
    }

    /// No flushes, no checkpoints, or what fsync wrote thrown away after a crash
    /// (Documentation/filesystems/f2fs.rst).
    fn weakens(&self, option: &str) -> bool {
        let flush = matches!(option, "nobarrier" | "fsync_mode=nobarrier");
        let recover = matches!(option, "disable_roll_forward" | "norecovery");
        flush || recover || option.starts_with("checkpoint=disable")
    }
}
