//! What people turn of ext4. Defaults were read back from e2fsprogs 1.47.0 and Linux 6.18 (`dumpe2fs`, /proc/fs/ext4).

use super::super::tunables::*;
use pickfs_core::plan::{Tunable, TunableKind};

const OF_MKFS: Tunable = Tunable { source: "mke2fs(8)", fact: "dumpe2fs", ..MKFS };
/// mke2fs sees the last `-O` and the last `-E` alone.
const FEATURE: Tunable = Tunable {
    kind: TunableKind::MkfsList,
    change: Unmounted("tune2fs {} DEVICE"),
    source: "ext4(5), mke2fs(8), tune2fs(8)",
    ..OF_MKFS
};
const OF_MOUNT: Tunable = Tunable { source: "ext4(5)", ..MOUNT };

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "block_size",
        about: "bytes of a block",
        values: &[
            value("1024", &["-b", "1024"]).shown("Block size: 1024"),
            value("2048", &["-b", "2048"]).shown("Block size: 2048"),
            value("4096", &["-b", "4096"]).shown("Block size: 4096"),
        ],
        default: Depends("4096, and 1024 on less than 512 MiB (/etc/mke2fs.conf)"),
        ..OF_MKFS
    },
    Tunable {
        name: "cluster_size",
        about: "bytes that are allocated at once (bigalloc)",
        values: &[
            value("off", &["-O", "^bigalloc"]).lacks("bigalloc"),
            value("16384", &["-O", "bigalloc", "-C", "16384"])
                .shown("Cluster size: 16384")
                .weakens(Space, "a small file takes a whole cluster")
                .excludes(&["inode_ratio"]),
            value("65536", &["-O", "bigalloc", "-C", "65536"])
                .shown("Cluster size: 65536")
                .weakens(Space, "a small file takes a whole cluster")
                .excludes(&["inode_ratio"]),
        ],
        default: Is("off"),
        since: "Linux 3.2",
        change: OnlyNew,
        ..FEATURE
    },
    Tunable {
        name: "dir_index",
        about: "folders are hashed trees, and not lists",
        values: &[
            value("off", &["-O", "^dir_index"]).lacks("dir_index"),
            value("on", &["-O", "dir_index"]).shown("dir_index"),
        ],
        default: Is("on"),
        ..FEATURE
    },
    Tunable {
        name: "fast_commit",
        about: "an fsync writes what has changed, and not whole blocks of metadata",
        values: &[
            value("off", &["-O", "^fast_commit"]).lacks("fast_commit"),
            value("on", &["-O", "fast_commit"]).shown("fast_commit"),
        ],
        default: Is("off"),
        since: "Linux 5.10, e2fsprogs 1.46",
        ..FEATURE
    },
    Tunable {
        name: "flex_bg",
        about: "groups of blocks whose metadata lie together",
        values: &[
            value("off", &["-O", "^flex_bg"]).lacks("flex_bg"),
            value("16", &["-G", "16"]).shown("Flex block group size: 16"),
            value("64", &["-G", "64"]).shown("Flex block group size: 64"),
            value("256", &["-G", "256"]).shown("Flex block group size: 256"),
        ],
        default: Is("16"),
        change: OnlyNew,
        ..FEATURE
    },
    Tunable {
        name: "has_journal",
        about: "a journal of metadata",
        values: &[
            value("off", &["-O", "^has_journal"])
                .lacks("has_journal")
                .weakens(Durability, "after a crash it must be checked, and may have lost files")
                .excludes(&["commit", "data", "journal_async_commit", "journal_size", "orphan_file"]),
            value("on", &["-O", "has_journal"]).shown("has_journal"),
        ],
        default: Is("on"),
        ..FEATURE
    },
    Tunable {
        name: "inline_data",
        about: "the smallest files lie in their inodes",
        values: &[
            value("off", &["-O", "^inline_data"]).lacks("inline_data"),
            value("on", &["-O", "inline_data"]).shown("inline_data"),
        ],
        default: Is("off"),
        since: "Linux 3.8",
        change: OnlyNew,
        ..FEATURE
    },
    Tunable {
        name: "inode_ratio",
        about: "bytes of the device for each inode that is made",
        values: &[
            value("4096", &["-i", "4096"]).weakens(Space, "4 times as many inodes"),
            value("16384", &["-i", "16384"]),
            value("65536", &["-i", "65536"]).weakens(Features, "a quarter of the files"),
        ],
        default: Depends("16384; 4096 on less than 512 MiB, 32768 from 4 TiB, 65536 from 16 TiB on (/etc/mke2fs.conf)"),
        ..OF_MKFS
    },
    Tunable {
        name: "inode_size",
        about: "bytes of an inode",
        values: &[
            value("128", &["-I", "128"])
                .shown("Inode size: 128")
                .weakens(Features, "no dates after 2038, no creation time, no times below a second")
                .excludes(&["inline_data"]),
            value("256", &["-I", "256"]).shown("Inode size: 256"),
            value("512", &["-I", "512"]).shown("Inode size: 512"),
            value("1024", &["-I", "1024"]).shown("Inode size: 1024"),
        ],
        default: Is("256"),
        ..OF_MKFS
    },
    Tunable {
        name: "journal_size",
        about: "size of the journal",
        values: &[
            value("16M", &["-J", "size=16"]).shown("Total journal size: 16M"),
            value("64M", &["-J", "size=64"]).shown("Total journal size: 64M"),
            value("256M", &["-J", "size=256"]).shown("Total journal size: 256M"),
        ],
        default: Depends("by the device: 16 MiB of 600 MiB, 64 MiB of 2 GiB, 128 MiB of 20 GiB"),
        change: Unmounted("tune2fs -O ^has_journal DEVICE; tune2fs {} DEVICE"),
        ..OF_MKFS
    },
    Tunable {
        name: "metadata_csum",
        about: "checksums of metadata",
        values: &[
            value("off", &["-O", "^metadata_csum"])
                .lacks("metadata_csum")
                .weakens(Checksums, "damaged metadata may be taken for good"),
            value("on", &["-O", "metadata_csum"]).shown("metadata_csum"),
        ],
        default: Is("on"),
        since: "Linux 3.18; on by default since e2fsprogs 1.44",
        ..FEATURE
    },
    Tunable {
        name: "orphan_file",
        about: "files that are deleted while open are noted in a file, and not in one list",
        values: &[
            value("off", &["-O", "^orphan_file"]).lacks("orphan_file"),
            value("on", &["-O", "orphan_file"]).shown("orphan_file"),
        ],
        default: Depends("on with the mke2fs.conf of e2fsprogs 1.47, off with that of Debian 12"),
        since: "Linux 5.15, e2fsprogs 1.47",
        ..FEATURE
    },
    Tunable {
        name: "reserved",
        about: "percent of the blocks that only root can use",
        values: &[
            value("0", &["-m", "0"]).shown("Reserved block count: 0"),
            value("1", &["-m", "1"]),
            value("5", &["-m", "5"]),
        ],
        default: Is("5"),
        change: Mounted("tune2fs {} DEVICE"),
        ..OF_MKFS
    },
    Tunable {
        name: "stripe",
        about: "blocks of a chunk and of a stripe of the array below",
        values: &[value("4 x 64 KiB", &["-E", "stride=16,stripe_width=64"]).shown("RAID stripe width: 64")],
        default: Depends("what the device says, mostly none"),
        change: Unmounted("tune2fs {} DEVICE"),
        ..FEATURE
    },
    ATIME,
    Tunable {
        name: "auto_da_alloc",
        about: "a file that replaces another by rename or truncate is written first",
        values: &[
            value("off", &["noauto_da_alloc"])
                .weakens(Durability, "after a crash a replaced file may be empty where a program did no fsync"),
            value("on", &["auto_da_alloc"]),
        ],
        default: Is("on"),
        ..OF_MOUNT
    },
    Tunable {
        name: "barrier",
        about: "the disk's cache is flushed where the journal needs it",
        values: &[
            value("off", &["nobarrier"]).weakens(Durability, "what was synced may be lost with a power cut"),
            value("on", &["barrier"]),
        ],
        default: Is("on"),
        ..OF_MOUNT
    },
    Tunable {
        name: "commit",
        about: "seconds after which the journal is written at the latest",
        values: &[
            value("1", &["commit=1"]),
            value("5", &["commit=5"]),
            value("30", &["commit=30"]).weakens(Durability, "a crash takes up to 30 s of work without fsync"),
            value("60", &["commit=60"]).weakens(Durability, "a crash takes up to 60 s of work without fsync"),
        ],
        default: Is("5"),
        ..OF_MOUNT
    },
    Tunable {
        name: "data",
        about: "what becomes of file data when metadata are journaled",
        values: &[
            value("writeback", &["data=writeback"])
                .weakens(Durability, "after a crash files may hold old data of others"),
            value("ordered", &["data=ordered"]),
            value("journal", &["data=journal"]).excludes(&["delalloc", "dioread"]),
        ],
        default: Is("ordered"),
        change: MountAgain,
        ..OF_MOUNT
    },
    Tunable {
        name: "delalloc",
        about: "blocks are chosen when data are written out, and not before",
        values: &[value("off", &["nodelalloc"]), value("on", &["delalloc"])],
        default: Is("on"),
        change: MountAgain,
        ..OF_MOUNT
    },
    Tunable {
        name: "dioread",
        about: "whether reads past the page cache take the inode's lock",
        values: &[value("lock", &["dioread_lock"]), value("nolock", &["dioread_nolock"])],
        default: Is("nolock"),
        since: "the default since Linux 5.6",
        ..OF_MOUNT
    },
    Tunable {
        name: "discard",
        about: "freed blocks are discarded at once",
        values: &[value("off", &["nodiscard"]), value("on", &["discard"])],
        default: Is("off"),
        ..OF_MOUNT
    },
    Tunable {
        name: "inode_readahead_blks",
        about: "blocks of the inode table that are read ahead",
        values: &[
            value("0", &["inode_readahead_blks=0"]),
            value("32", &["inode_readahead_blks=32"]),
            value("256", &["inode_readahead_blks=256"]),
        ],
        default: Is("32"),
        ..OF_MOUNT
    },
    Tunable {
        name: "journal_async_commit",
        about: "the commit block is not waited for; not with data=ordered",
        values: &[
            value("off", &[]),
            value("on", &["journal_async_commit", "data=writeback"])
                .weakens(Durability, "as data=writeback, and a commit may be found incomplete")
                .excludes(&["data"]),
        ],
        default: Is("off"),
        change: MountAgain,
        ..OF_MOUNT
    },
    Tunable {
        name: "journal_ioprio",
        about: "I/O priority of the journal's writes, 0 the highest; no program shows it",
        values: &[
            value("0", &["journal_ioprio=0"]),
            value("3", &["journal_ioprio=3"]),
            value("7", &["journal_ioprio=7"]),
        ],
        default: Is("3"),
        ..OF_MOUNT
    },
    LAZYTIME,
    Tunable {
        name: "max_batch_time",
        about: "microseconds that a sync waits at most for others to join it",
        values: &[
            value("0", &["max_batch_time=0"]),
            value("15000", &["max_batch_time=15000"]),
            value("60000", &["max_batch_time=60000"]),
        ],
        default: Is("15000"),
        ..OF_MOUNT
    },
    Tunable {
        name: "prefetch_block_bitmaps",
        about: "bitmaps of free blocks are read soon after the mount",
        values: &[value("off", &["no_prefetch_block_bitmaps"]), value("on", &["prefetch_block_bitmaps"])],
        default: Is("on"),
        since: "Linux 5.8; on by default since 5.14",
        source: "fs/ext4/super.c of Linux",
        ..OF_MOUNT
    },
];
