//! NILFS2, log-structured, with continuous snapshots.

use super::feature::{CRASH_CONSISTENCY, GROW, SHRINK, SNAPSHOTS};
use super::{DEVICE, Filesystem, VFS_FILE, make};

pub(crate) const NILFS2: Filesystem = Filesystem {
    name: "nilfs2",
    about: "log-structured, every checkpoint can become a snapshot",
    mkfs: |spec| make(&["mkfs.nilfs2", "-f", "-q"], &["-K"], spec),
    // mount.nilfs2 starts the cleaner, without which the log runs full.
    tools: &[("mkfs.nilfs2", "nilfs-tools"), ("mount.nilfs2", "nilfs-tools"), ("nilfs-tune", "nilfs-tools")],
    hint: super::STOCK_KERNEL,
    minimum_size: 129 << 20,
    // fs/nilfs2/the_nilfs.c of Linux; how large a volume may be, its documentation leaves open.
    largest_file: Some(VFS_FILE),
    no_upper: Some(super::NO_ATTRIBUTES),
    facts: &[("nilfs-tune", &["nilfs-tune", "-l", DEVICE])],
    versions: &[("nilfs-tools", &["mkfs.nilfs2", "-V"])],
    // nilfs-resize(8), Documentation/filesystems/nilfs2.rst. Its checksums of segments serve recovery alone: no read
    // looks at them.
    features: &[CRASH_CONSISTENCY, GROW, SHRINK, SNAPSHOTS],
    // `order=relaxed` is the default (Documentation/filesystems/nilfs2.rst).
    weakens: |option| option == "nobarrier",
    ..Filesystem::DEFAULT
};
