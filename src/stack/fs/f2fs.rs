//! F2FS, log-structured, for flash.

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

    /// No flushes, no checkpoints, or what fsync wrote thrown away after a crash
    /// (Documentation/filesystems/f2fs.rst).
    fn weakens(&self, option: &str) -> bool {
        let flush = matches!(option, "nobarrier" | "fsync_mode=nobarrier");
        let recover = matches!(option, "disable_roll_forward" | "norecovery");
        flush || recover || option.starts_with("checkpoint=disable")
    }
}
