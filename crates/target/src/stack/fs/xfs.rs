//! XFS.

use super::*;

pub(crate) const XFS: Filesystem = Filesystem {
    name: "xfs",
    about: "journalling, for large files and many processors",
    making: Making::by(|spec| make(&["mkfs.xfs", "-f", "-q"], &["-K"], spec)),
    // `nobarrier` is gone since Linux 4.19, but older kernels take it.
    mounting: Mounting { options: mount_names::XFS, ..Mounting::DEFAULT },
    free_space: Some(FreeSpace { program: &["xfs_db", "-r", "-c", "freesp -s", DEVICE], extents: free_extents }),
    tools: &[("mkfs.xfs", "xfsprogs"), ("xfs_info", "xfsprogs")],
    variants: &[
        Variant::new("plain", "as mkfs makes it"),
        // Data are in a realtime section on the zones, metadata on conventional ones before them (Linux 6.15, xfsprogs 6.15).
        Variant::new("zoned", "for host-managed disks, from Linux 6.15 on: each zone is written in order")
            .mkfs(&["-r", "zoned=1"])
            .zoned("xfs_info", "zoned=1"),
    ],
    // mkfs.xfs refuses less since xfsprogs 5.19. fs/xfs/xfs_super.c of Linux for files. Red Hat and Oracle give 8 EiB for both,
    // and support less.
    limits: Limits { least: 300 << 20, file: Some(VFS_FILE), volume: Some(VFS_FILE), ..Limits::DEFAULT },
    facts: &[("xfs_info", &["xfs_info", MOUNT_POINT])],
    upkeep: &[
        Upkeep::unmounted("check", &[&["xfs_repair", "-n", DEVICE]]),
        DEDUP,
        Upkeep::mounted("defrag", &[&["xfs_fsr"]]),
        // The mount counts all that is there (xfs_quota(8), QUOTA OVERVIEW).
        Upkeep {
            mounted_with: &["uquota", "gquota"],
            needs: &[QUOTA],
            counts_users: true,
            ..Upkeep::unmounted("quota", &[])
        },
    ],
    // mkfs.xfs(8), and fs/xfs/libxfs/xfs_format.h of Linux through its history.
    kernel: Kernel {
        since: &[
            ("", ToRead, "2.6"),
            ("crc=1", ToRead, "3.10"),
            ("sparse=1", ToRead, "4.2"),
            ("bigtime=1", ToRead, "5.10"),
            ("nrext64=1", ToRead, "5.19"),
            ("exchange=1", ToRead, "6.10"),
            ("parent=1", ToRead, "6.10"),
            ("metadir=1", ToRead, "6.13"),
            ("zoned=1", ToRead, "6.15"),
            ("finobt=1", ToWrite, "3.16"),
            ("rmapbt=1", ToWrite, "4.8"),
            ("reflink=1", ToWrite, "4.9"),
            ("inobtcount=1", ToWrite, "5.10"),
        ],
        ..Kernel::DEFAULT
    },
    versions: &[("xfsprogs", &["mkfs.xfs", "-V"])],
    // xfs_growfs(8) takes away no more than the unused end of the last allocation group: that is no shrinking.
    features: Features {
        usual: &[CRASH_CONSISTENCY, GROW],
        more: &[CREATION_TIME, METADATA_CHECKSUMS, REFLINKS],
        // Old versions of mkfs.xfs left them out by default, so they count where xfs_info(8) shows them. Its folding of
        // case (ascii-ci) knows ASCII alone and does not count.
        depending: &[
            (METADATA_CHECKSUMS, |state| is_shown(state, "crc=1")),
            (REFLINKS, |state| is_shown(state, "reflink=1")),
        ],
        ..Features::DEFAULT
    },
    tunables: Tunables(include_str!("xfs/tunables.toml")),
    ..Filesystem::DEFAULT
};

fn is_shown(state: &FsState, flag: &str) -> bool {
    state.says("xfs_info", "meta-data=", flag) == Some(true)
}

const QUOTA: Need = Need::KernelFunction {
    what: "quotas of xfs (CONFIG_XFS_QUOTA)",
    function: "xfs_qm_mount_quotas",
    module: "xfs",
    hint: "leave `quota` out of `operations`, or run it on Debian's kernel, here or in a guest (executor = \"vm\")",
};

/// `freesp -s` of xfs_db(8), which counts in blocks.
fn free_extents(text: &str, block: u64) -> Option<(f64, f64)> {
    let mean = super::number(text, "average free extent size")? * block as f64;
    Some((super::number(text, "total free extents")?, mean))
}
