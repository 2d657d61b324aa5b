//! SquashFS: a tree packed into a read-only image, compressed.

use super::*;

pub(crate) const SQUASHFS: Filesystem = Filesystem {
    name: "squashfs",
    about: "a tree packed into a read-only image, compressed in blocks of 128 KiB; of live systems and snaps",
    making: Making { options: MkfsOptions { folders: &[], programs: PROGRAMS }, ..Making::packed(pack) },
    tools: &[("mksquashfs", "squashfs-tools"), ("unsquashfs", "squashfs-tools")],
    variants: &[
        Variant::new("gzip", "zlib at level 9, as mksquashfs does by itself").mkfs(&["-comp", "gzip"]),
        Variant::new("lz4", "lz4").mkfs(&["-comp", "lz4"]),
        Variant::new("lzo", "lzo").mkfs(&["-comp", "lzo"]),
        Variant::new("xz", "xz").mkfs(&["-comp", "xz"]),
        Variant::new("zstd", "zstd at level 15, as mksquashfs does by itself").mkfs(&["-comp", "zstd"]),
    ],
    // Documentation/filesystems/squashfs.rst: 2 TiB in the table of 2.x, 16 EiB since 4.0 for both. An inode of a plain file is
    // 32 bytes at least before it is compressed (fs/squashfs/squashfs_fs.h).
    limits: Limits { least: 1 << 20, file: Some(VFS_FILE), volume: Some(u64::MAX), inode: Some(4), ..Limits::DEFAULT },
    facts: &[("unsquashfs", &["unsquashfs", "-s", DEVICE])],
    versions: &[("squashfs-tools", &["mksquashfs", "-version"])],
    features: Features { usual: &[COMPRESSION], no_upper: Some(READ_ONLY), ..Features::DEFAULT },
    mismatches: |spec, facts| {
        let asked = spec.variant.unwrap_or("gzip");
        let shown = facts.get("unsquashfs").and_then(|text| {
            text.lines().find_map(|line| line.strip_prefix("Compression ")).map(|rest| rest.trim().to_string())
        });
        // Options of the target's own may name another.
        let own = spec.mkfs.iter().filter(|word| *word == "-comp").count() > usize::from(spec.variant.is_some());
        let shown = shown.unwrap_or_else(|| "nothing".into());
        let wrong = !own && shown != asked;
        wrong.then(|| format!("asked for compression {asked}, unsquashfs shows {shown}")).into_iter().collect()
    },
    ..Filesystem::DEFAULT
};

/// Pseudo files get their content from programs, and a test of an action may be one (mksquashfs(1), its short forms too).
const PROGRAMS: &[&str] = &[
    "-p", "-pf", "-a", "-action", "-action-file", "-af", "-fa", "-faf", "-false-action", "-false-action-file",
    "-log-action", "-log-action-file", "-ta", "-taf", "-true-action", "-true-action-file", "-va", "-vaf",
];

/// All that is in a folder, in the place of what the device held.
fn pack(spec: &FsSpec, folder: &str) -> Argv {
    let words = ["mksquashfs".to_string(), folder.into(), spec.device()];
    let options = ["-noappend", "-no-progress", "-quiet"].map(String::from);
    words.into_iter().chain(options).chain(spec.mkfs.iter().cloned()).collect()
}
