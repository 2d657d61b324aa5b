//! ext4, ext3 and ext2, which one program makes.

use super::*;

pub(super) fn with_code(data: Filesystem) -> Filesystem {
    Filesystem { making: Making { mkfs: mke2fs, ..data.making }, ..data }
}

/// Nothing is left for the kernel to initialise in the background while a phase runs, and directory
/// hashes come from the round's seed.
fn mke2fs(driver: &Filesystem, spec: &FsSpec) -> Argv {
    let discard = if spec.discard { "discard" } else { "nodiscard" };
    let extended = format!("{discard},lazy_itable_init=0,lazy_journal_init=0,hash_seed={}", uuid(spec.seed));
    // mke2fs sees the last `-E` alone: ours would be lost.
    let mut words = argv(["mke2fs", "-t", driver.name, "-q", "-F", "-E", &extended]);
    spec::add(&mut words, &["-E"], &spec.mkfs);
    words.extend(spec.devices());
    words
}

/// The seed in a shape that mke2fs takes for a hash seed.
fn uuid(seed: u64) -> String {
    let hex = format!("{seed:016x}{:016x}", !seed);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
