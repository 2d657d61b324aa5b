//! EROFS: a tree packed into a read-only image, with or without compression.

use super::*;

pub(crate) const EROFS: Filesystem = Filesystem {
    name: "erofs",
    about: "a tree packed into a read-only image, in blocks of 4 KiB; of Android and container images",
    making: Making::packed(pack),
    tools: &[("mkfs.erofs", "erofs-utils"), ("dump.erofs", "erofs-utils")],
    variants: &[
        Variant::new("none", "no compression, as mkfs.erofs does by itself"),
        Variant::new("lz4", "lz4, in units of 4 KiB on the device").mkfs(&["-zlz4"]),
        Variant::new("lz4hc", "lz4 that looks longer for what repeats, in units of 4 KiB on the device")
            .mkfs(&["-zlz4hc"]),
        Variant::new("lz4hc-64k", "the same in units of up to 64 KiB").mkfs(&["-zlz4hc", "-C65536"]),
    ],
    // Documentation/filesystems/erofs.rst: 16 EiB of a file; 2^32 blocks of 4 KiB. A compact inode (fs/erofs/erofs_fs.h).
    limits: Limits { least: 1 << 20, file: Some(VFS_FILE), volume: Some(16 << 40), inode: Some(32), ..Limits::DEFAULT },
    facts: &[("dump.erofs", &["dump.erofs", "-s", DEVICE])],
    versions: &[("erofs-utils", &["dump.erofs", "-V"])],
    features: Features {
        more: &[COMPRESSION],
        depending: &[(COMPRESSION, |state| state.mkfs.iter().any(|word| word.starts_with("-z")))],
        no_upper: Some(READ_ONLY),
        ..Features::DEFAULT
    },
    ..Filesystem::DEFAULT
};

/// All that is in a folder, in the place of what the device held.
fn pack(spec: &FsSpec, folder: &str) -> Argv {
    let words = ["mkfs.erofs".to_string(), "--quiet".into()];
    words.into_iter().chain(spec.mkfs.iter().cloned()).chain([spec.device(), folder.into()]).collect()
}
