//! NILFS2, log-structured, with continuous snapshots.

use super::*;

pub(crate) const NILFS2: Filesystem = Filesystem {
    name: "nilfs2",
    about: "log-structured, every checkpoint can become a snapshot",
    making: Making::by(|spec| make(&["mkfs.nilfs2", "-f", "-q"], &["-K"], spec)),
    // mount.nilfs2 starts the cleaner, without which the log runs full.
    tools: &[("mkfs.nilfs2", "nilfs-tools"), ("mount.nilfs2", "nilfs-tools"), ("nilfs-tune", "nilfs-tools")],
    kernel: Kernel::with(STOCK_KERNEL),
    // fs/nilfs2/the_nilfs.c of Linux; how large a volume may be, its documentation leaves open.
    limits: Limits { least: 129 << 20, file: Some(VFS_FILE), ..Limits::DEFAULT },
    facts: &[("nilfs-tune", &["nilfs-tune", "-l", DEVICE])],
    versions: &[("nilfs-tools", &["mkfs.nilfs2", "-V"])],
    // nilfs-resize(8), Documentation/filesystems/nilfs2.rst. Its checksums of segments serve recovery alone: no read
    // looks at them.
    features: Features {
        usual: &[CRASH_CONSISTENCY, GROW, SHRINK, SNAPSHOTS],
        no_upper: Some(NO_ATTRIBUTES),
        ..Features::DEFAULT
    },
    ..Filesystem::DEFAULT
};
