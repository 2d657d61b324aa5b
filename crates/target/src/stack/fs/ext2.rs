//! ext2, made and driven by the same programs as ext4.

use super::ext4::{EXT, mke2fs};
use super::feature::{CREATION_TIME, GROW, SHRINK};
use super::{DEVICE, Filesystem};

pub(crate) const EXT2: Filesystem = Filesystem {
    name: "ext2",
    about: "without a journal: fast to make, slow to check after a crash",
    mkfs: |spec| mke2fs("ext2", spec),
    minimum_size: 1 << 20,
    // Documentation/filesystems/ext2.rst of Linux.
    largest_file: Some(2 << 40),
    largest_volume: Some(16 << 40),
    preen: &["e2fsck", "-p", DEVICE],
    // resize2fs(8).
    features: &[GROW, SHRINK],
    more_features: &[CREATION_TIME],
    ..EXT
};
