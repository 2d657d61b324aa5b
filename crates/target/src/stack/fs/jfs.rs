//! JFS, IBM's journalling file system.

use super::*;

pub(crate) const JFS: Filesystem = Filesystem {
    name: "jfs",
    about: "journalling, from AIX and OS/2; small and frugal",
    // mkfs.jfs knows no discard. `-q` asks nothing, which is its force.
    making: Making::by(|spec| make(&["mkfs.jfs", "-q"], &[], spec)),
    tools: &[("mkfs.jfs", "jfsutils"), ("jfs_tune", "jfsutils")],
    kernel: Kernel::with(STOCK_KERNEL),
    // fs/jfs/super.c of Linux: addresses are of 40 bits. Old versions of jfsutils made no volume above 32 TiB.
    limits: Limits { file: Some(4 << 50), volume: Some(4 << 50), ..Limits::DEFAULT },
    facts: &[("jfs_tune", &["jfs_tune", "-l", DEVICE])],
    // Seen on kernel 6.1 after the first cut, where `jfs_fsck -a` had replayed the journal, which the kernel leaves to it.
    uncut: Some("its driver may read a folder for ever that the cut has damaged (dtReadFirst: dtree page corrupt)"),
    upkeep: &[Upkeep::unmounted("check", &[&["jfs_fsck", "-n", "-f", DEVICE]])],
    versions: &[("jfsutils", &["mkfs.jfs", "-V"])],
    // The mount option `resize` enlarges, and nothing makes it smaller (Documentation/admin-guide/jfs.rst).
    features: Features {
        usual: &[CRASH_CONSISTENCY, GROW],
        depending: &[(CRASH_CONSISTENCY, |state| !state.mounted_with(&["nointegrity"]))],
        no_upper: Some(NO_TYPES),
        ..Features::DEFAULT
    },
    // Without the journal that keeps metadata whole (Documentation/admin-guide/jfs.rst).
    mounting: Mounting { weakens: |option| option == "nointegrity", ..Mounting::DEFAULT },
    ..Filesystem::DEFAULT
};
