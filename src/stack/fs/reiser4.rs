//! Reiser4. No stock kernel ever had it, so on most machines its row says what would be needed.

use super::feature::CRASH_CONSISTENCY;
use super::{Argv, Filesystem, Wish, argv, make, number_above};

pub struct Reiser4;

impl Filesystem for Reiser4 {
    fn name(&self) -> &'static str {
        "reiser4"
    }

    fn about(&self) -> &'static str {
        "atomic transactions in a dancing tree, by plug-ins; never merged into Linux"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        let discard: &[&str] = if wish.discard { &["-d"] } else { &[] };
        make(&[&["mkfs.reiser4", "-f", "-y"], discard].concat(), wish)
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("mkfs.reiser4", "reiser4progs"), ("debugfs.reiser4", "reiser4progs")]
    }

    fn hint(&self) -> &'static str {
        "no stock kernel ever had it; build one with the patch from reiser4.wiki.kernel.org"
    }

    fn minimum_size(&self) -> u64 {
        1 << 20
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![("debugfs.reiser4", argv(["debugfs.reiser4", "-f", "-y", &wish.device()]))]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("reiser4progs", argv(["mkfs.reiser4", "-V"]))]
    }

    /// Every change is atomic. Compression is a plug-in that versions of mkfs choose differently, so it is left out;
    /// reiser4progs have no program that resizes.
    fn features(&self) -> &'static [&'static str] {
        &[CRASH_CONSISTENCY]
    }

    /// Atoms are committed when 600 s old (Documentation/filesystems/reiser4.txt of the patch).
    fn weakens(&self, option: &str) -> bool {
        option == "no_write_barrier" || number_above(option, "tmgr.atom_max_age=", 600)
    }
}
