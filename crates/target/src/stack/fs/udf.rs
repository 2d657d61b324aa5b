//! UDF, the file system of DVDs, on a disk.

use super::feature::CREATION_TIME;
use super::{DEVICE, Filesystem, make};

pub(crate) const UDF: Filesystem = Filesystem {
    name: "udf",
    about: "of DVDs; also on disks, and read by every system, with owners, modes and links",
    mkfs: |spec| make(&["mkudffs", "--media-type=hd", "--uid=0", "--gid=0"], &[], spec),
    tools: &[("mkudffs", "udftools"), ("udfinfo", "udftools")],
    // 2^32 blocks, as large as the disk's sectors (ECMA-167, 1997): 2 TiB with 512 bytes, which most disks have.
    largest_file: Some(2 << 40),
    largest_volume: Some(2 << 40),
    no_upper: Some(super::NO_ATTRIBUTES),
    facts: &[("udfinfo", &["udfinfo", DEVICE])],
    versions: &[("udftools", &["mkudffs", "--help"])],
    more_features: &[CREATION_TIME],
    ..Filesystem::DEFAULT
};
