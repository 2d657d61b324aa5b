//! F2FS, log-structured, for flash.

use super::feature::{CASE_FOLDING, COMPRESSION, CRASH_CONSISTENCY, CREATION_TIME, ENCRYPTION, FsState, GROW, changed};
use super::{DEVICE, Filesystem, HALF_SECTORS, Upkeep, Variant, make, mount_names};

pub(crate) const F2FS: Filesystem = Filesystem {
    name: "f2fs",
    about: "log-structured, made for flash; common on phones",
    mount_options: mount_names::F2FS,
    mkfs: |spec| make(&["mkfs.f2fs", "-f", "-q", "-t", if spec.discard { "1" } else { "0" }], &[], spec),
    tools: &[("mkfs.f2fs", "f2fs-tools"), ("dump.f2fs", "f2fs-tools")],
    hint: super::STOCK_KERNEL,
    variants: &[
        Variant { name: "plain", about: "as mkfs makes it", ..Variant::DEFAULT },
        // Zones are reset where blocks are discarded, so mkfs and the kernel both want that (f2fs-tools 1.15, Linux 6.1).
        Variant {
            name: "zoned",
            about: "for host-managed disks: each zone is written in order",
            mkfs: &["-m", "-t", "1"],
            mount: &["discard"],
            zoned: true,
            ..Variant::DEFAULT
        },
    ],
    minimum_size: 52 << 20,
    // Documentation/filesystems/f2fs.rst and include/linux/f2fs_fs.h of Linux: addresses are of 32 bits.
    largest_file: Some(4096 * (923 + 2 * 1018 + 2 * 1018 * 1018 + 1018 * 1018 * 1018)),
    largest_volume: Some(16 << 40),
    // Discarding while mounted is its default where the device can.
    no_discard: Some("nodiscard"),
    facts: &[("dump.f2fs", &["dump.f2fs", DEVICE])],
    mismatches: |spec, facts| {
        let is_zoned = facts.get("dump.f2fs").is_some_and(|shown| shown.contains("blkzoned"));
        let asked = F2FS.variant(spec.variant).is_some_and(|variant| variant.zoned);
        let wrong = asked && !is_zoned;
        wrong.then(|| "asked for the feature blkzoned, dump.f2fs shows nothing of it".to_string()).into_iter().collect()
    },
    upkeep: &[
        Upkeep::unmounted("check", &[&["fsck.f2fs", "--dry-run", DEVICE]]),
        Upkeep::unmounted("shrink", &[&["resize.f2fs", "-s", "-t", HALF_SECTORS, DEVICE]]),
    ],
    versions: &[("f2fs-tools", &["mkfs.f2fs", "-V"])],
    // resize.f2fs(8) says that it only enlarges, and does shrink (1.15, option -s): not promised. Several devices are a choice of mkfs, and no plan can name a second one there.
    features: &[CRASH_CONSISTENCY, GROW],
    more_features: &[CASE_FOLDING, COMPRESSION, CREATION_TIME, ENCRYPTION],
    // Each is a feature of mkfs.f2fs(8), and off unless asked for.
    features_in_effect: |driver, state: &FsState| {
        let flags = [("casefold", CASE_FOLDING), ("compression", COMPRESSION), ("encrypt", ENCRYPTION)];
        let with: Vec<&'static str> =
            flags.iter().filter(|(flag, _)| state.made_with(flag)).map(|(_, name)| *name).collect();
        changed(driver.features, &[], &with)
    },
    // No flushes, no checkpoints, or what fsync wrote thrown away after a crash (Documentation/filesystems/f2fs.rst).
    weakens: |option| {
        let flush = matches!(option, "nobarrier" | "fsync_mode=nobarrier");
        let recover = matches!(option, "disable_roll_forward" | "norecovery");
        flush || recover || option.starts_with("checkpoint=disable")
    },
    ..Filesystem::DEFAULT
};
