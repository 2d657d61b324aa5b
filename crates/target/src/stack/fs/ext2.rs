//! ext2, made and driven by the same programs as ext4.

use super::ext4::{EXT, mke2fs};
use super::*;

pub(crate) const EXT2: Filesystem = Filesystem {
    name: "ext2",
    about: "without a journal: fast to make, slow to check after a crash",
    making: Making { mkfs: |spec| mke2fs("ext2", spec), ..EXT.making },
    // Documentation/filesystems/ext2.rst of Linux.
    limits: Limits { least: 1 << 20, file: Some(2 << 40), volume: Some(16 << 40), ..Limits::DEFAULT },
    preen: &["e2fsck", "-p", DEVICE],
    // resize2fs(8).
    features: Features { usual: &[GROW, SHRINK], more: &[CREATION_TIME], ..Features::DEFAULT },
    ..EXT
};
