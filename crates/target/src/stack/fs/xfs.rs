//! XFS.

use super::feature::{CRASH_CONSISTENCY, CREATION_TIME, FsState, GROW, METADATA_CHECKSUMS, REFLINKS, changed};
use super::oldest_kernel::Needed::{ToRead, ToWrite};
use super::{DEDUP, DEVICE, Filesystem, FreeSpace, MOUNT_POINT, Upkeep, VFS_FILE, Variant, make, mount_names};
use pickfs_system::need::Need;

pub(crate) const XFS: Filesystem = Filesystem {
    name: "xfs",
    about: "journalling, for large files and many processors",
    mount_options: mount_names::XFS,
    mkfs: |spec| make(&["mkfs.xfs", "-f", "-q"], &["-K"], spec),
    free_space: Some(FreeSpace { program: &["xfs_db", "-r", "-c", "freesp -s", DEVICE], extents: free_extents }),
    tools: &[("mkfs.xfs", "xfsprogs"), ("xfs_info", "xfsprogs")],
    variants: &[
        Variant { name: "plain", about: "as mkfs makes it", ..Variant::DEFAULT },
        // Data are in a realtime section on the zones, metadata on conventional ones before them (Linux 6.15, xfsprogs 6.15).
        Variant {
            name: "zoned",
            about: "for host-managed disks, from Linux 6.15 on: each zone is written in order",
            mkfs: &["-r", "zoned=1"],
            zoned: true,
            ..Variant::DEFAULT
        },
    ],
    // mkfs.xfs refuses less since xfsprogs 5.19.
    minimum_size: 300 << 20,
    // fs/xfs/xfs_super.c of Linux for files. Red Hat and Oracle give 8 EiB for both, and support less.
    largest_file: Some(VFS_FILE),
    largest_volume: Some(VFS_FILE),
    facts: &[("xfs_info", &["xfs_info", MOUNT_POINT])],
    mismatches: |spec, facts| {
        let is_zoned =
            facts.get("xfs_info").is_some_and(|shown| shown.split_whitespace().any(|word| word == "zoned=1"));
        let asked = XFS.variant(spec.variant).is_some_and(|variant| variant.zoned);
        let wrong = asked && !is_zoned;
        wrong.then(|| "asked for zoned=1, xfs_info shows nothing of it".to_string()).into_iter().collect()
    },
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
    versions: &[("xfsprogs", &["mkfs.xfs", "-V"])],
    // xfs_growfs(8) takes away no more than the unused end of the last allocation group: that is no shrinking.
    features: &[CRASH_CONSISTENCY, GROW],
    more_features: &[CREATION_TIME, METADATA_CHECKSUMS, REFLINKS],
    // Old versions of mkfs.xfs left them out by default, so they count where xfs_info(8) shows them. Its folding of
    // case (ascii-ci) knows ASCII alone and does not count.
    features_in_effect: |driver, state: &FsState| {
        let flags = [("crc=1", METADATA_CHECKSUMS), ("reflink=1", REFLINKS)];
        let shown = |flag: &str| state.says("xfs_info", "meta-data=", flag) == Some(true);
        let with: Vec<&'static str> = flags.iter().filter(|(flag, _)| shown(flag)).map(|(_, name)| *name).collect();
        changed(driver.features, &[], &with)
    },
    // Gone since Linux 4.19, but older kernels take it.
    weakens: |option| option == "nobarrier",
    ..Filesystem::DEFAULT
};

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
