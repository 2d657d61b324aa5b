//! ext3, made and driven by the same programs as ext4.

use super::ext4::{EXT, mke2fs};
use super::*;

pub(crate) const EXT3: Filesystem = Filesystem {
    name: "ext3",
    about: "ext2 with a journal, by block lists instead of extents",
    making: Making { mkfs: |spec| mke2fs("ext3", spec), ..EXT.making },
    // Documentation/filesystems/ext2.rst of Linux: its blocks are those of ext2.
    limits: Limits { file: Some(2 << 40), volume: Some(16 << 40), ..EXT.limits },
    // The kernel mounts nothing as ext3 that lacks a journal or has what ext4 brought.
    features: Features { more: &[CREATION_TIME], ..EXT.features },
    ..EXT
};
