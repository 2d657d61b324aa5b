//! What people turn of btrfs. Defaults were read back from btrfs-progs 6.2 and Linux 6.18 (`dump-super`, `btrfs filesystem df`,
//! /proc/mounts).

use super::super::tunables::*;
use pickfs_core::plan::{Tunable, TunableKind};

const OF_MKFS: Tunable = Tunable { source: "mkfs.btrfs(8)", fact: "btrfs super block", ..MKFS };
const OF_MOUNT: Tunable = Tunable { source: "btrfs(5)", ..MOUNT };

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "block-group-tree",
        about: "block groups in a tree of their own, for a faster mount",
        values: &[
            value("off", &["-O", "^block-group-tree"]).lacks("BLOCK_GROUP_TREE"),
            value("on", &["-O", "block-group-tree"]).shown("BLOCK_GROUP_TREE"),
        ],
        default: Depends("off; on since btrfs-progs 6.19"),
        change: Unmounted("btrfstune --convert-to-block-group-tree DEVICE"),
        since: "Linux 6.1, btrfs-progs 6.3",
        ..OF_MKFS
    },
    Tunable {
        name: "checksum",
        about: "algorithm of the checksums of data and metadata",
        values: &[
            value("crc32c", &["--csum", "crc32c"]).shown("csum_type 0"),
            value("xxhash", &["--csum", "xxhash"]).shown("csum_type 1"),
            value("sha256", &["--csum", "sha256"]).shown("csum_type 2"),
            value("blake2", &["--csum", "blake2"]).shown("csum_type 3"),
        ],
        default: Is("crc32c"),
        since: "Linux 5.5",
        ..OF_MKFS
    },
    Tunable {
        name: "data",
        about: "copies of data",
        values: &[
            value("single", &["-d", "single"]),
            value("dup", &["-d", "dup"]).weakens(Space, "two copies of all data"),
        ],
        default: Is("single"),
        change: Mounted("btrfs balance start -f -dconvert={value} FOLDER"),
        fact: "btrfs profiles",
        ..OF_MKFS
    },
    Tunable {
        name: "free-space-tree",
        about: "free space is kept in a tree, and not in files of each block group (space_cache=v1)",
        values: &[
            value("off", &["-R", "^free-space-tree"]).lacks("FREE_SPACE_TREE"),
            value("on", &["-R", "free-space-tree"]).shown("FREE_SPACE_TREE"),
        ],
        default: Is("on"),
        change: Unmounted("mount -o clear_cache,space_cache=v2 DEVICE FOLDER"),
        since: "Linux 4.9; on by default since btrfs-progs 5.15",
        ..OF_MKFS
    },
    Tunable {
        name: "metadata",
        about: "copies of metadata",
        values: &[
            value("single", &["-m", "single"])
                .weakens(Features, "damaged metadata cannot be repaired from a second copy"),
            value("dup", &["-m", "dup"]),
        ],
        default: Is("dup"),
        change: Mounted("btrfs balance start -f -mconvert={value} FOLDER"),
        since: "dup is the default for every disk since btrfs-progs 5.15",
        fact: "btrfs profiles",
        ..OF_MKFS
    },
    Tunable {
        name: "mixed",
        about: "data and metadata in the same block groups, for small disks; nodes of 4096 bytes",
        values: &[
            value("off", &[]).lacks("MIXED_GROUPS"),
            value("on", &["-M"])
                .shown("MIXED_GROUPS")
                .weakens(Features, "one copy of metadata")
                .excludes(&["data", "metadata", "nodesize"]),
        ],
        default: Is("off"),
        since: "Linux 2.6.37",
        ..OF_MKFS
    },
    Tunable {
        name: "no-holes",
        about: "holes of files need no entry",
        values: &[
            value("off", &["-O", "^no-holes"]).lacks("NO_HOLES"),
            value("on", &["-O", "no-holes"]).shown("NO_HOLES"),
        ],
        default: Is("on"),
        change: Unmounted("btrfstune -n DEVICE"),
        since: "Linux 3.14; on by default since btrfs-progs 5.15",
        ..OF_MKFS
    },
    Tunable {
        name: "nodesize",
        about: "bytes of a node of the trees",
        values: &[
            value("4096", &["-n", "4096"]).shown("nodesize 4096"),
            value("16384", &["-n", "16384"]).shown("nodesize 16384"),
            value("32768", &["-n", "32768"]).shown("nodesize 32768"),
            value("65536", &["-n", "65536"]).shown("nodesize 65536"),
        ],
        default: Is("16384"),
        ..OF_MKFS
    },
    ATIME,
    Tunable {
        name: "autodefrag",
        about: "files with small random writes are written anew in the background",
        values: &[value("off", &["noautodefrag"]), value("on", &["autodefrag"])],
        default: Is("off"),
        ..OF_MOUNT
    },
    Tunable {
        name: "barrier",
        about: "the disk's cache is flushed before the super block is written",
        values: &[
            value("off", &["nobarrier"]).weakens(Durability, "the file system may be lost with a power cut"),
            value("on", &["barrier"]),
        ],
        default: Is("on"),
        ..OF_MOUNT
    },
    Tunable {
        name: "commit",
        about: "seconds after which a transaction is written at the latest",
        values: &[
            value("5", &["commit=5"]),
            value("30", &["commit=30"]),
            value("60", &["commit=60"]).weakens(Durability, "a crash takes up to 60 s of work without fsync"),
            value("120", &["commit=120"]).weakens(Durability, "a crash takes up to 120 s of work without fsync"),
        ],
        default: Is("30"),
        since: "Linux 3.12",
        ..OF_MOUNT
    },
    Tunable {
        name: "compress",
        about: "files are compressed where that makes them smaller",
        values: &[
            value("off", &["compress=no"]),
            value("lzo", &["compress=lzo"]),
            value("zlib:3", &["compress=zlib:3"]),
            value("zstd:1", &["compress=zstd:1"]),
            value("zstd:3", &["compress=zstd:3"]),
            value("zstd:9", &["compress=zstd:9"]),
        ],
        default: Is("off"),
        since: "zstd: Linux 4.14; levels: Linux 5.1",
        ..OF_MOUNT
    },
    Tunable {
        name: "compress-force",
        about: "as `compress`, without a look whether a file becomes smaller",
        values: &[
            value("off", &[]),
            value("zstd:1", &["compress-force=zstd:1"]).excludes(&["compress"]),
            value("zstd:3", &["compress-force=zstd:3"]).excludes(&["compress"]),
        ],
        default: Is("off"),
        since: "zstd: Linux 4.14; levels: Linux 5.1",
        ..OF_MOUNT
    },
    Tunable {
        name: "datasum",
        about: "checksums of data",
        values: &[
            value("off", &["nodatasum"]).weakens(Checksums, "no checksums of data, and no compression").excludes(&[
                "compress",
                "compress-force",
                "nodatacow",
            ]),
            value("on", &["datasum"]),
        ],
        default: Is("on"),
        change: MountAgain,
        ..OF_MOUNT
    },
    Tunable {
        name: "discard",
        about: "freed blocks are discarded: later, at once, or not",
        values: &[value("none", &["nodiscard"]), value("async", &["discard=async"]), value("sync", &["discard=sync"])],
        default: Depends(
            "async where the device can (Linux 6.2); none while pickfs measures, unless the plan has `discard`",
        ),
        ..OF_MOUNT
    },
    Tunable {
        name: "flushoncommit",
        about: "a commit writes the data of all files too",
        values: &[value("off", &["noflushoncommit"]), value("on", &["flushoncommit"])],
        default: Is("off"),
        ..OF_MOUNT
    },
    LAZYTIME,
    Tunable {
        name: "max_inline",
        about: "bytes up to which a file lies within metadata",
        values: &[
            value("0", &["max_inline=0"]),
            value("2048", &["max_inline=2048"]),
            value("4095", &["max_inline=4095"]),
        ],
        default: Is("2048"),
        ..OF_MOUNT
    },
    Tunable {
        name: "metadata_ratio",
        about: "block groups of data after which one of metadata is allocated; 0: as needed",
        values: &[
            value("0", &["metadata_ratio=0"]),
            value("1", &["metadata_ratio=1"]),
            value("4", &["metadata_ratio=4"]),
        ],
        default: Is("0"),
        ..OF_MOUNT
    },
    Tunable {
        name: "nodatacow",
        about: "files are written in place (chattr +C of the root folder)",
        kind: TunableKind::Attribute,
        values: &[
            value("off", &[]),
            value("on", &["+C"]).weakens(Checksums, "no checksums of data, and no compression").excludes(&[
                "compress",
                "compress-force",
                "datasum",
            ]),
        ],
        default: Is("off"),
        change: NewFiles("chattr +C FOLDER"),
        ..OF_MOUNT
    },
    Tunable {
        name: "ssd",
        about: "how free space is chosen",
        values: &[value("nossd", &["nossd"]), value("ssd", &["ssd"]), value("ssd_spread", &["ssd_spread"])],
        default: Depends("ssd where the kernel says that the device does not rotate, else nossd"),
        ..OF_MOUNT
    },
    Tunable {
        name: "thread_pool",
        about: "the most threads of each kind of work, such as compression",
        values: &[value("1", &["thread_pool=1"]), value("4", &["thread_pool=4"]), value("8", &["thread_pool=8"])],
        default: Depends("processors + 2, at most 8"),
        ..OF_MOUNT
    },
    Tunable {
        name: "treelog",
        about: "an fsync writes a log, and not a whole commit",
        values: &[value("off", &["notreelog"]), value("on", &["treelog"])],
        default: Is("on"),
        ..OF_MOUNT
    },
];
