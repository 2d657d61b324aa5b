//! btrfs, with the compressions, metadata profiles and copy-on-write switches that people compare.

use super::*;

pub(crate) const BTRFS: Filesystem = Filesystem {
    name: "btrfs",
    about: "copy on write, with checksums, snapshots, compression and several devices",
    tools: &[("mkfs.btrfs", "btrfs-progs"), ("btrfs", "btrfs-progs"), ("chattr", "e2fsprogs"), ("lsattr", "e2fsprogs")],
    making: Making {
        options: MkfsOptions { folders: &["-r", "--rootdir"], programs: &[] },
        // New files take "no copy on write" from their directory, so the empty root is the place to set it
        // (btrfs(5), FILE ATTRIBUTES).
        in_place: Some(|spec| {
            let asked = spec.nodatacow || spec.variant == Some(NOCOW);
            asked.then(|| argv(["chattr", "+C", &spec.mount_point()]))
        }),
        takes_several: true,
        ..Making::by(|spec| make(&["mkfs.btrfs", "-f", "-q"], &["-K"], spec))
    },
    variants: VARIANTS,
    // Of data; those of metadata remain (btrfs(5), MOUNT OPTIONS).
    without: &[Without { what: "checksums", mkfs: &[], mount: &["nodatasum"] }],
    // mkfs.btrfs says the least itself, for metadata in two copies, its default. btrfs(5): 16 EiB by its format, of which the
    // VFS leaves 8 EiB to a file.
    limits: Limits { least: 109 << 20, file: Some(VFS_FILE), volume: Some(u64::MAX), ..Limits::DEFAULT },
    mounting: Mounting {
        // Devices are named one by one: who scans devices for their file systems may not have come to them yet, or not be
        // there.
        command: |driver, spec| {
            let others = spec.more_devices.iter().map(|device| format!("device={}", device.display()));
            let options = with_discard(driver.mounting.no_discard, spec).into_iter().chain(others);
            command(driver.name, &options.collect::<Vec<_>>(), spec)
        },
        // Since kernel 6.2 `discard=async` is the default where the device can discard.
        no_discard: Some("nodiscard"),
        options: mount_names::BTRFS,
        // Level 0 is the default one (btrfs(5), COMPRESSION), which the kernel shows by its number.
        spellings: &[
            ("compress=lzo:0", "compress=lzo"),
            ("compress=zlib:0", "compress=zlib"),
            ("compress=zstd:0", "compress=zstd"),
            ("compress-force=zlib:0", "compress-force=zlib"),
            ("compress-force=zstd:0", "compress-force=zstd"),
        ],
        // The default commit interval is 30 s. `notreelog` and `flushoncommit` promise more, not less.
        weakens: |option| option == "nobarrier" || number_above(option, "commit=", 30),
        ..Mounting::DEFAULT
    },
    mismatches: profile_mismatches,
    facts: &[
        ("btrfs profiles", &["btrfs", "filesystem", "df", "-b", MOUNT_POINT]),
        ("btrfs super block", &["btrfs", "inspect-internal", "dump-super", DEVICE]),
        ("root attributes", &["lsattr", "-d", MOUNT_POINT]),
    ],
    // btrfs(5), FILESYSTEM FEATURES, and `mkfs.btrfs -O list-all`.
    kernel: Kernel { since: SINCE, ..Kernel::DEFAULT },
    versions: &[("btrfs-progs", &["btrfs", "--version"])],
    upkeep: &[
        Upkeep::mounted("balance", &[&["btrfs", "balance", "start", "--full-balance", MOUNT_POINT]]),
        Upkeep::unmounted("check", &[&["btrfs", "check", "--readonly", DEVICE]]),
        DEDUP,
        Upkeep::mounted("defrag", &[&["btrfs", "filesystem", "defragment"]]),
        // Else the kernel would still know the device as its own (btrfs-device(8)).
        Upkeep::unmounted("degraded", &[&["btrfs", "device", "scan", "--forget", LAST], ANOTHER_LAST]).of(REDUNDANT),
        Upkeep {
            before: (true, &[&["btrfs", "filesystem", "resize", HALF, MOUNT_POINT]]),
            ..Upkeep::mounted("grow", &[&["btrfs", "filesystem", "resize", "max", MOUNT_POINT]])
        },
        Upkeep::mounted(
            "quota",
            &[&["btrfs", "quota", "enable", MOUNT_POINT], &["btrfs", "quota", "rescan", "-w", MOUNT_POINT]],
        ),
        // Meanwhile new chunks may have got a copy less; soft: only those.
        Upkeep::mounted(
            "rebuild",
            &[
                &["btrfs", "replace", "start", "-B", "-f", "-K", COUNT, LAST, MOUNT_POINT],
                &["btrfs", "balance", "start", "-dconvert={variant},soft", "-mconvert={variant},soft", MOUNT_POINT],
            ],
        )
        .of(REDUNDANT),
        Upkeep::mounted("scrub", &[&["btrfs", "scrub", "start", "-B", MOUNT_POINT]]),
        // Of several devices only the first (btrfs-filesystem(8)).
        Upkeep::mounted("shrink", &[&["btrfs", "filesystem", "resize", HALF, MOUNT_POINT]]),
    ],
    // A cleaner in the kernel gives the room back after the commit (btrfs-subvolume(8)); `list -d` shows what it has left.
    snapshots: Some(Snapshots {
        take: |spec, number| {
            argv(["btrfs", "subvolume", "snapshot", "-r", &spec.mount_point(), &snapshot(spec, number)])
        },
        send: |spec, number| argv(["btrfs", "send", "--quiet", &snapshot(spec, number)]),
        delete: |spec, number| argv(["btrfs", "subvolume", "delete", "--commit-after", &snapshot(spec, number)]),
        receive: |spec| argv(["btrfs", "receive", "--quiet", &spec.mount_point()]),
        received: |spec| snapshot(spec, 0).into(),
        // As for a root file system: a copy that can be written to is what the next mount shows (btrfs-subvolume(8)).
        roll_back: |spec, number| {
            let copy = spec.mount_point.join("rolled-back").display().to_string();
            let taken = argv(["btrfs", "subvolume", "snapshot", &snapshot(spec, number), &copy]);
            vec![taken, argv(["btrfs", "subvolume", "set-default", &copy])]
        },
        mounts_to_roll_back: true,
        freed: Some(Freed {
            program: |spec| argv(["btrfs", "subvolume", "list", "-d", &spec.mount_point()]),
            is_free: |printed| printed.trim().is_empty(),
        }),
        // `btrfs filesystem du` counts what one alone holds, which is nothing where two are alike; quotas, which count
        // groups, would change the times.
        exclusive: None,
    }),
    // btrfs(5), btrfs-device(8), btrfs-filesystem(8).
    features: Features {
        usual: &[
            CHECKSUMS, COMPRESSION, CRASH_CONSISTENCY, GROW, METADATA_CHECKSUMS, MULTI_DEVICE, REFLINKS, SHRINK,
            SNAPSHOTS,
        ],
        more: &[CREATION_TIME],
        compresses: |shown| shown.keys().any(|option| option.starts_with("compress")),
        depending: &[(CHECKSUMS, has_checksums), (COMPRESSION, has_checksums)],
        ..Features::DEFAULT
    },
    tunables: Tunables(include_str!("btrfs/tunables.toml")),
    ..Filesystem::DEFAULT
};

/// Without copy on write, or without checksums of data, nothing is compressed either (btrfs(5), MOUNT OPTIONS).
fn has_checksums(state: &FsState) -> bool {
    let in_place = state.nodatacow || state.variant == Some(NOCOW);
    !in_place && !state.mounted_with(&["nodatacow", "nodatasum"])
}

const SINCE: &[oldest_kernel::Since] = &[
    ("", ToRead, "2.6.29"),
    ("MIXED_BACKREF", ToRead, "2.6.31"),
    ("DEFAULT_SUBVOL", ToRead, "2.6.34"),
    ("MIXED_GROUPS", ToRead, "2.6.37"),
    ("COMPRESS_LZO", ToRead, "2.6.38"),
    ("BIG_METADATA", ToRead, "3.4"),
    ("EXTENDED_IREF", ToRead, "3.7"),
    ("RAID56", ToRead, "3.9"),
    ("SKINNY_METADATA", ToRead, "3.10"),
    ("NO_HOLES", ToRead, "3.14"),
    ("COMPRESS_ZSTD", ToRead, "4.14"),
    ("METADATA_UUID", ToRead, "5.0"),
    ("RAID1C34", ToRead, "5.5"),
    ("ZONED", ToRead, "5.12"),
    ("RAID_STRIPE_TREE", ToRead, "6.7"),
    ("SIMPLE_QUOTA", ToRead, "6.7"),
    ("FREE_SPACE_TREE_VALID", ToWrite, "4.9"),
    ("VERITY", ToWrite, "5.15"),
    ("BLOCK_GROUP_TREE", ToWrite, "6.1"),
];

const NOCOW: &str = "nocow";
const REDUNDANT: &[&str] = &["raid1", "raid10", "raid1c3"];

fn snapshot(spec: &FsSpec, number: u64) -> String {
    spec.mount_point.join(format!("snapshot-{number}")).display().to_string()
}

/// Mount options are written as the kernel shows them, so that they can be found again in `/proc/self/mountinfo`. For
/// the least devices of a profile see mkfs.btrfs(8), PROFILES; of four devices and more, a `raid10` is more than a `raid1`.
const VARIANTS: &[Variant] = &[
    Variant::new("none", "no compression, as mkfs makes it"),
    Variant::new("lzo", "compressed with lzo: the cheapest").mount(&["compress=lzo"]),
    Variant::new("zlib", "compressed with zlib at level 3").mount(&["compress=zlib:3"]),
    Variant::new("zstd:1", "compressed with zstd, fast").mount(&["compress=zstd:1"]),
    Variant::new("zstd:3", "compressed with zstd, its default").mount(&["compress=zstd:3"]),
    Variant::new(NOCOW, "data written in place, without checksums (chattr +C)"),
    Variant::new("single", "one copy of metadata").mkfs(&["-m", "single"]),
    Variant::new("dup", "two copies of metadata").mkfs(&["-m", "dup"]),
    Variant::new("raid0", "data striped over all devices, two copies of metadata on two of them")
        .mkfs(&["-m", "raid1", "-d", "raid0"])
        .devices(2),
    Variant::new("raid1", "two copies of everything, on two devices").mkfs(&["-m", "raid1", "-d", "raid1"]).devices(2),
    Variant::new("raid1c3", "three copies of everything, on three devices")
        .mkfs(&["-m", "raid1c3", "-d", "raid1c3"])
        .devices(3),
    Variant::new("raid10", "two copies of everything, striped over all devices")
        .mkfs(&["-m", "raid10", "-d", "raid10"])
        .devices(4),
    // Kernels before 6.7, and mkfs.btrfs 6.2, take one copy of each only (btrfs(5), ZONED MODE).
    Variant::new("zoned", "for host-managed disks: each zone is written in order, one copy of everything")
        .mkfs(&["-O", "zoned", "-m", "single", "-d", "single"])
        .zoned("btrfs super block", "ZONED"),
];

/// What a variant says of profiles must be what the kernel shows.
fn profile_mismatches(spec: &FsSpec, facts: &Facts) -> Vec<String> {
    let shown = facts.get("btrfs profiles").map(String::as_str).unwrap_or_default();
    let pairs = BTRFS.variant(spec.variant).map(|variant| variant.mkfs).unwrap_or_default().chunks_exact(2);
    let contradicts = |pair: &[&str]| {
        let (what, shown) = match pair[0] {
            "-m" => ("Metadata", profile(shown, "Metadata")),
            "-d" => ("Data", profile(shown, "Data")),
            _ => return None,
        };
        let (asked, shown) = (pair[1], shown.unwrap_or("nothing"));
        (!shown.eq_ignore_ascii_case(asked)).then(|| format!("asked for {what} {asked}, the kernel shows {shown}"))
    };
    pairs.filter_map(contradicts).collect()
}

/// `Metadata, RAID1: total=...` of `btrfs filesystem df`.
fn profile<'a>(shown: &'a str, what: &str) -> Option<&'a str> {
    let line = shown.lines().find_map(|line| line.trim().strip_prefix(what)?.strip_prefix(", "))?;
    line.split_once(':').map(|(profile, _)| profile)
}
