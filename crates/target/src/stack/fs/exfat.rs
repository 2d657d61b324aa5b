//! exFAT, for large cards and sticks that every system reads.

use super::feature::{CASE_FOLDING, CREATION_TIME};
use super::{DEVICE, Filesystem, LINKS, MODES, Upkeep, VFS_FILE, make};

pub(crate) const EXFAT: Filesystem = Filesystem {
    name: "exfat",
    about: "FAT's successor for large cards and sticks, read by Windows and macOS too",
    mkfs: |spec| make(&["mkfs.exfat"], &[], spec),
    tools: &[("mkfs.exfat", "exfatprogs"), ("dump.exfat", "exfatprogs")],
    // Sizes have 64 bits, of which a signed offset counts 63; 2^32 - 11 clusters of at most 32 MiB (Microsoft, exFAT file system
    // specification, 2019).
    largest_file: Some(VFS_FILE),
    largest_volume: Some(((1 << 32) - 11) << 25),
    facts: &[("dump.exfat", &["dump.exfat", DEVICE])],
    upkeep: &[Upkeep::unmounted("check", &[&["fsck.exfat", "-n", DEVICE]])],
    versions: &[("exfatprogs", &["mkfs.exfat", "-V"])],
    // Clusters are as large as the volume asks for, and of the last one only the file's own pages are read.
    packs_tails: true,
    features: &[CASE_FOLDING],
    more_features: &[CREATION_TIME],
    no_upper: Some(super::NAMES_DIFFER),
    keeps_no: &[LINKS, MODES],
    ..Filesystem::DEFAULT
};
