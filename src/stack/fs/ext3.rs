//! ext3, made and driven by the same programs as ext4.

use super::ext4::{JOURNAL_MINIMUM, JOURNALLING, TOOLS, dumpe2fs, mke2fs, mke2fs_version, weakens_journal};
use super::feature::CREATION_TIME;
use super::{Argv, Filesystem, Wish, argv};

pub struct Ext3;

impl Filesystem for Ext3 {
    fn name(&self) -> &'static str {
        "ext3"
    }

    fn about(&self) -> &'static str {
        "ext2 with a journal, by block lists instead of extents"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        mke2fs("ext3", wish)
    }

    fn free_space(&self, wish: &Wish) -> Option<Argv> {
        Some(argv(["e2freefrag", &wish.device()]))
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        TOOLS
    }

    fn minimum_size(&self) -> u64 {
        JOURNAL_MINIMUM
    }

    /// Documentation/filesystems/ext2.rst of Linux: its blocks are those of ext2.
    fn largest_file(&self) -> Option<u64> {
        Some(2 << 40)
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(16 << 40)
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        dumpe2fs(wish)
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        mke2fs_version()
    }

    /// resize2fs(8). The kernel mounts nothing as ext3 that lacks a journal or has what ext4 brought.
    fn features(&self) -> &'static [&'static str] {
        JOURNALLING
    }

    fn more_features(&self) -> &'static [&'static str] {
        &[CREATION_TIME]
    }

    fn weakens(&self, option: &str) -> bool {
        weakens_journal(option)
    }
}
