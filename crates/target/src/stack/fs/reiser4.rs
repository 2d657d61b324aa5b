//! Reiser4. No stock kernel ever had it, so on most machines its row says what would be needed.

use super::*;

pub(crate) const REISER4: Filesystem = Filesystem {
    name: "reiser4",
    about: "atomic transactions in a dancing tree, by plug-ins; never merged into Linux",
    making: Making::by(|spec| {
        let discard: &[&str] = if spec.discard { &["-d"] } else { &[] };
        make(&[&["mkfs.reiser4", "-f", "-y"], discard].concat(), &[], spec)
    }),
    tools: &[("mkfs.reiser4", "reiser4progs"), ("debugfs.reiser4", "reiser4progs")],
    kernel: Kernel::with("no stock kernel ever had it; build one with the patch from reiser4.wiki.kernel.org"),
    limits: Limits { least: 1 << 20, ..Limits::DEFAULT },
    facts: &[("debugfs.reiser4", &["debugfs.reiser4", "-f", "-y", DEVICE])],
    versions: &[("reiser4progs", &["mkfs.reiser4", "-V"])],
    // Every change is atomic. Compression is a plug-in that versions of mkfs choose differently, so it is left out;
    // reiser4progs have no program that resizes.
    features: Features { usual: &[CRASH_CONSISTENCY], ..Features::DEFAULT },
    mounting: Mounting {
        // Atoms are committed when 600 s old (Documentation/filesystems/reiser4.txt of the patch).
        weakens: |option| option == "no_write_barrier" || number_above(option, "tmgr.atom_max_age=", 600),
        ..Mounting::DEFAULT
    },
    ..Filesystem::DEFAULT
};
