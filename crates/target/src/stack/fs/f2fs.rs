//! F2FS, log-structured, for flash.

use super::*;

pub(crate) const F2FS: Filesystem = Filesystem {
    name: "f2fs",
    about: "log-structured, made for flash; common on phones",
    making: Making::by(|spec| make(&["mkfs.f2fs", "-f", "-q", "-t", if spec.discard { "1" } else { "0" }], &[], spec)),
    tools: &[("mkfs.f2fs", "f2fs-tools"), ("dump.f2fs", "f2fs-tools")],
    kernel: Kernel::with(STOCK_KERNEL),
    variants: &[
        Variant::new("plain", "as mkfs makes it"),
        // Zones are reset where blocks are discarded, so mkfs and the kernel both want that (f2fs-tools 1.15, Linux 6.1).
        Variant::new("zoned", "for host-managed disks: each zone is written in order")
            .mkfs(&["-m", "-t", "1"])
            .mount(&["discard"])
            .zoned("dump.f2fs", "blkzoned"),
    ],
    // Documentation/filesystems/f2fs.rst and include/linux/f2fs_fs.h of Linux: addresses are of 32 bits.
    limits: Limits {
        least: 52 << 20,
        file: Some(4096 * (923 + 2 * 1018 + 2 * 1018 * 1018 + 1018 * 1018 * 1018)),
        volume: Some(16 << 40),
        ..Limits::DEFAULT
    },
    facts: &[("dump.f2fs", &["dump.f2fs", DEVICE])],
    upkeep: &[
        Upkeep::unmounted("check", &[&["fsck.f2fs", "--dry-run", DEVICE]]),
        Upkeep::unmounted("shrink", &[&["resize.f2fs", "-s", "-t", HALF_SECTORS, DEVICE]]),
    ],
    versions: &[("f2fs-tools", &["mkfs.f2fs", "-V"])],
    // resize.f2fs(8) says that it only enlarges, and does shrink (1.15, option -s): not promised. Several devices are a choice of mkfs, and no plan can name a second one there.
    features: Features {
        usual: &[CRASH_CONSISTENCY, GROW],
        more: &[CASE_FOLDING, COMPRESSION, CREATION_TIME, ENCRYPTION],
        // Each is a feature of mkfs.f2fs(8), and off unless asked for.
        depending: &[
            (CASE_FOLDING, |state| state.made_with("casefold")),
            (COMPRESSION, |state| state.made_with("compression")),
            (ENCRYPTION, |state| state.made_with("encrypt")),
        ],
        ..Features::DEFAULT
    },
    mounting: Mounting {
        // Discarding while mounted is its default where the device can.
        no_discard: Some("nodiscard"),
        options: mount_names::F2FS,
        // No flushes, no checkpoints, or what fsync wrote thrown away after a crash (Documentation/filesystems/f2fs.rst).
        weakens: |option| {
            let flush = matches!(option, "nobarrier" | "fsync_mode=nobarrier");
            let recover = matches!(option, "disable_roll_forward" | "norecovery");
            flush || recover || option.starts_with("checkpoint=disable")
        },
        ..Mounting::DEFAULT
    },
    tunables: Tunables(include_str!("f2fs/tunables.toml")),
    ..Filesystem::DEFAULT
};
