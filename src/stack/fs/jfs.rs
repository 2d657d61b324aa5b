//! JFS, IBM's journalling file system.

use super::feature::{CRASH_CONSISTENCY, Found, GROW, changed};
use super::{Argv, Filesystem, Wish, argv, make};

pub struct Jfs;

impl Filesystem for Jfs {
    fn name(&self) -> &'static str {
        "jfs"
    }

    fn about(&self) -> &'static str {
        "journalling, from AIX and OS/2; small and frugal"
    }

    /// mkfs.jfs knows no discard. `-q` asks nothing, which is its force.
    fn mkfs(&self, wish: &Wish) -> Argv {
        make(&["mkfs.jfs", "-q"], wish)
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("mkfs.jfs", "jfsutils"), ("jfs_tune", "jfsutils")]
    }

    fn hint(&self) -> &'static str {
        super::STOCK_KERNEL
    }

    fn minimum_size(&self) -> u64 {
        16 << 20
    }

    /// fs/jfs/super.c of Linux: addresses are of 40 bits. Old versions of jfsutils made no volume above 32 TiB.
    fn largest_file(&self) -> Option<u64> {
        Some(4 << 50)
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(4 << 50)
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![("jfs_tune", argv(["jfs_tune", "-l", &wish.device()]))]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("jfsutils", argv(["mkfs.jfs", "-V"]))]
    }

    /// The mount option `resize` enlarges, and nothing makes it smaller (Documentation/admin-guide/jfs.rst).
    fn features(&self) -> &'static [&'static str] {
        &[CRASH_CONSISTENCY, GROW]
    }

    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        let without: &[&str] = if found.mounted_with(&["nointegrity"]) { &[CRASH_CONSISTENCY] } else { &[] };
        changed(self.features(), without, &[])
    }

    /// Without the journal that keeps metadata whole (Documentation/admin-guide/jfs.rst).
    fn weakens(&self, option: &str) -> bool {
        option == "nointegrity"
    }
}
