//! EROFS: a tree packed into a read-only image, with or without compression.

use super::feature::COMPRESSION;
use super::{DEVICE, Filesystem, FsSpec, Variant};
use crate::stack::Argv;

pub(crate) const EROFS: Filesystem = Filesystem {
    name: "erofs",
    about: "a tree packed into a read-only image, in blocks of 4 KiB; of Android and container images",
    mkfs: |spec| pack(spec, &spec.mount_point()),
    image: Some(pack),
    no_upper: Some(super::READ_ONLY),
    tools: &[("mkfs.erofs", "erofs-utils"), ("dump.erofs", "erofs-utils")],
    variants: &[
        compression("none", "no compression, as mkfs.erofs does by itself", &[]),
        compression("lz4", "lz4, in units of 4 KiB on the device", &["-zlz4"]),
        compression("lz4hc", "lz4 that looks longer for what repeats, in units of 4 KiB on the device", &["-zlz4hc"]),
        compression("lz4hc-64k", "the same in units of up to 64 KiB", &["-zlz4hc", "-C65536"]),
    ],
    minimum_size: 1 << 20,
    // Documentation/filesystems/erofs.rst: 16 EiB of a file; 2^32 blocks of 4 KiB.
    largest_file: Some(super::VFS_FILE),
    largest_volume: Some(16 << 40),
    // A compact inode (fs/erofs/erofs_fs.h).
    least_inode: Some(32),
    facts: &[("dump.erofs", &["dump.erofs", "-s", DEVICE])],
    versions: &[("erofs-utils", &["dump.erofs", "-V"])],
    more_features: &[COMPRESSION],
    features_in_effect: |_, state| {
        let asked = state.mkfs.iter().any(|word| word.starts_with("-z"));
        if asked { vec![COMPRESSION] } else { Vec::new() }
    },
    ..Filesystem::DEFAULT
};

const fn compression(name: &'static str, about: &'static str, mkfs: &'static [&'static str]) -> Variant {
    Variant { name, about, mkfs, ..Variant::DEFAULT }
}

/// All that is in a folder, in the place of what the device held.
fn pack(spec: &FsSpec, folder: &str) -> Argv {
    let words = ["mkfs.erofs".to_string(), "--quiet".into()];
    words.into_iter().chain(spec.mkfs.iter().cloned()).chain([spec.device(), folder.into()]).collect()
}
