//! UDF, the file system of DVDs, on a disk.

use super::*;

pub(crate) const UDF: Filesystem = Filesystem {
    name: "udf",
    about: "of DVDs; also on disks, and read by every system, with owners, modes and links",
    making: Making::by(|spec| make(&["mkudffs", "--media-type=hd", "--uid=0", "--gid=0"], &[], spec)),
    tools: &[("mkudffs", "udftools"), ("udfinfo", "udftools")],
    // 2^32 blocks, as large as the disk's sectors (ECMA-167, 1997): 2 TiB with 512 bytes, which most disks have.
    limits: Limits { file: Some(2 << 40), volume: Some(2 << 40), ..Limits::DEFAULT },
    facts: &[("udfinfo", &["udfinfo", DEVICE])],
    versions: &[("udftools", &["mkudffs", "--help"])],
    features: Features { more: &[CREATION_TIME], no_upper: Some(NO_ATTRIBUTES), ..Features::DEFAULT },
    ..Filesystem::DEFAULT
};
