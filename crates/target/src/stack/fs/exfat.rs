//! exFAT, for large cards and sticks that every system reads.

use super::vfat::VFAT;
use super::*;

pub(crate) const EXFAT: Filesystem = Filesystem {
    name: "exfat",
    about: "FAT's successor for large cards and sticks, read by Windows and macOS too",
    making: Making::by(|spec| make(&["mkfs.exfat"], &[], spec)),
    tools: &[("mkfs.exfat", "exfatprogs"), ("dump.exfat", "exfatprogs")],
    // Sizes have 64 bits, of which a signed offset counts 63; 2^32 - 11 clusters of at most 32 MiB (Microsoft, exFAT file system
    // specification, 2019). They are as large as the volume asks for, and of the last one only the file's own pages are read.
    limits: Limits { file: Some(VFS_FILE), volume: Some(((1 << 32) - 11) << 25), packs_tails: true, ..Limits::DEFAULT },
    facts: &[("dump.exfat", &["dump.exfat", DEVICE])],
    upkeep: &[Upkeep::unmounted("check", &[&["fsck.exfat", "-n", DEVICE]])],
    versions: &[("exfatprogs", &["mkfs.exfat", "-V"])],
    features: VFAT.features,
    ..Filesystem::DEFAULT
};
