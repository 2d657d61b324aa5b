//! NILFS2, log-structured, with continuous snapshots.

use super::feature::{CRASH_CONSISTENCY, GROW, SHRINK, SNAPSHOTS};
use super::{Argv, Filesystem, VFS_FILE, Wish, argv, make};

pub struct Nilfs2;

impl Filesystem for Nilfs2 {
    fn name(&self) -> &'static str {
        "nilfs2"
    }

    fn about(&self) -> &'static str {
        "log-structured, every checkpoint can become a snapshot"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        let keep: &[&str] = if wish.discard { &[] } else { &["-K"] };
        make(&[&["mkfs.nilfs2", "-f", "-q"], keep].concat(), wish)
    }

    /// mount.nilfs2 starts the cleaner, without which the log runs full.
    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("mkfs.nilfs2", "nilfs-tools"), ("mount.nilfs2", "nilfs-tools"), ("nilfs-tune", "nilfs-tools")]
    }

    fn hint(&self) -> &'static str {
        super::STOCK_KERNEL
    }

    fn minimum_size(&self) -> u64 {
        129 << 20
    }

    /// fs/nilfs2/the_nilfs.c of Linux; how large a volume may be, its documentation leaves open.
    fn largest_file(&self) -> Option<u64> {
        Some(VFS_FILE)
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![("nilfs-tune", argv(["nilfs-tune", "-l", &wish.device()]))]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("nilfs-tools", argv(["mkfs.nilfs2", "-V"]))]
    }

    /// nilfs-resize(8), Documentation/filesystems/nilfs2.rst. Its checksums of segments serve recovery alone: no read
    /// looks at them.
    fn features(&self) -> &'static [&'static str] {
        &[CRASH_CONSISTENCY, GROW, SHRINK, SNAPSHOTS]
    }

    /// `order=relaxed` is the default (Documentation/filesystems/nilfs2.rst).
    fn weakens(&self, option: &str) -> bool {
        option == "nobarrier"
    }
}
