//! ext3, made and driven by the same programs as ext4.

use super::Filesystem;
use super::ext4::{EXT, mke2fs};
use super::feature::CREATION_TIME;

pub(crate) const EXT3: Filesystem = Filesystem {
    name: "ext3",
    about: "ext2 with a journal, by block lists instead of extents",
    mkfs: |spec| mke2fs("ext3", spec),
    // Documentation/filesystems/ext2.rst of Linux: its blocks are those of ext2.
    largest_file: Some(2 << 40),
    largest_volume: Some(16 << 40),
    // The kernel mounts nothing as ext3 that lacks a journal or has what ext4 brought.
    more_features: &[CREATION_TIME],
    ..EXT
};
