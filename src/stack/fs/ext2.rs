//! ext2, made and driven by the same programs as ext4.

use super::ext4::{TOOLS, dumpe2fs, mke2fs, mke2fs_version, weakens_journal};
use super::feature::{CREATION_TIME, GROW, SHRINK};
use super::{Argv, Filesystem, Wish, argv};

pub struct Ext2;

impl Filesystem for Ext2 {
    fn name(&self) -> &'static str {
        "ext2"
    }

    fn about(&self) -> &'static str {
        "without a journal: fast to make, slow to check after a crash"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        mke2fs("ext2", wish)
    }

    fn free_space(&self, wish: &Wish) -> Option<Argv> {
        Some(argv(["e2freefrag", &wish.device()]))
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        TOOLS
    }

    fn minimum_size(&self) -> u64 {
        1 << 20
    }

    /// Documentation/filesystems/ext2.rst of Linux.
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

    /// resize2fs(8).
    fn features(&self) -> &'static [&'static str] {
        &[GROW, SHRINK]
    }

    fn more_features(&self) -> &'static [&'static str] {
        &[CREATION_TIME]
    }

    fn weakens(&self, option: &str) -> bool {
        weakens_journal(option)
    }
}
