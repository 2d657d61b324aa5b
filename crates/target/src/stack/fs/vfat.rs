//! FAT32 with long names: what every camera, car and firmware reads.

use super::*;

pub(crate) const VFAT: Filesystem = Filesystem {
    name: "vfat",
    about: "FAT with long names: read by cameras, cars and every firmware",
    // `-I` takes a whole disk too; it asks nothing. What it makes (FAT12, 16 or 32) goes by the size; `-F 32` in `mkfs` says it.
    making: Making::by(|spec| make(&["mkfs.fat", "-I"], &[], spec)),
    tools: &[("mkfs.fat", "dosfstools"), ("fsck.fat", "dosfstools")],
    // A file's size has 32 bits; 2^28 clusters of at most 64 KiB, and 2^32 sectors of 512 bytes (Microsoft, FAT32 File System
    // Specification 1.03, 2000). They are as large as the volume asks for, and of the last one only the file's own pages are
    // read.
    limits: Limits { file: Some((4 << 30) - 1), volume: Some(2 << 40), packs_tails: true, ..Limits::DEFAULT },
    facts: &[("fsck.fat", &["fsck.fat", "-n", "-v", DEVICE])],
    upkeep: &[Upkeep::unmounted("check", &[&["fsck.fat", "-n", DEVICE]])],
    versions: &[("dosfstools", &["mkfs.fat", "--help"])],
    features: Features {
        usual: &[CASE_FOLDING],
        more: &[CREATION_TIME],
        no_upper: Some(NAMES_DIFFER),
        keeps_no: &[LINKS, MODES],
        ..Features::DEFAULT
    },
    ..Filesystem::DEFAULT
};
