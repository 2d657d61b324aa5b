//! What people turn of bcachefs. Defaults are from its source (fs/bcachefs/opts.h of Linux 6.12): they were not read back.

use super::super::tunables::*;
use pickfs_core::plan::Tunable;

const SOURCE: &str = "fs/bcachefs/opts.h of Linux";
const OF_FORMAT: Tunable = Tunable { source: SOURCE, fact: "bcachefs super block", ..MKFS };
const OF_MOUNT: Tunable = Tunable { source: SOURCE, ..MOUNT };
/// Known to `format` too; what is there already stays as it is.
const FOR_NEW: Tunable = Tunable { change: NewFiles("mount -o remount,{} FOLDER"), ..OF_MOUNT };

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "block_size",
        about: "bytes of a block",
        values: &[value("512", &["--block_size=512"]), value("4096", &["--block_size=4096"])],
        default: Depends("4096, or the sectors of the disk"),
        ..OF_FORMAT
    },
    Tunable {
        name: "btree_node_size",
        about: "bytes of a node of the trees",
        values: &[
            value("64k", &["--btree_node_size=64k"]),
            value("128k", &["--btree_node_size=128k"]),
            value("256k", &["--btree_node_size=256k"]),
        ],
        default: Depends("256k, less where the buckets of the disk are smaller"),
        ..OF_FORMAT
    },
    ATIME,
    Tunable {
        name: "background_compression",
        about: "files are compressed later, in the background",
        values: &[
            value("none", &["background_compression=none"]),
            value("lz4", &["background_compression=lz4"]),
            value("zstd", &["background_compression=zstd"]),
        ],
        default: Is("none"),
        ..FOR_NEW
    },
    Tunable {
        name: "compression",
        about: "files are compressed as they are written",
        values: &[
            value("none", &["compression=none"]),
            value("lz4", &["compression=lz4"]),
            value("gzip", &["compression=gzip"]),
            value("zstd", &["compression=zstd"]),
        ],
        default: Is("none"),
        ..FOR_NEW
    },
    Tunable {
        name: "data_checksum",
        about: "algorithm of the checksums of data",
        values: &[
            value("none", &["data_checksum=none"]).weakens(Checksums, "no checksums of data"),
            value("crc32c", &["data_checksum=crc32c"]),
            value("xxhash", &["data_checksum=xxhash"]),
        ],
        default: Is("crc32c"),
        ..FOR_NEW
    },
    Tunable {
        name: "inodes_32bit",
        about: "numbers of inodes have 32 bits",
        values: &[value("off", &["noinodes_32bit"]), value("on", &["inodes_32bit"])],
        default: Is("on"),
        ..FOR_NEW
    },
    Tunable {
        name: "journal_flush_delay",
        about: "milliseconds after which the journal is flushed at the latest",
        values: &[
            value("100", &["journal_flush_delay=100"]),
            value("1000", &["journal_flush_delay=1000"]),
            value("5000", &["journal_flush_delay=5000"])
                .weakens(Durability, "a crash takes up to 5 s of work without fsync"),
        ],
        default: Is("1000"),
        ..OF_MOUNT
    },
    Tunable {
        name: "journal_flush_disabled",
        about: "an fsync does not flush the journal",
        values: &[
            value("off", &[]),
            value("on", &["journal_flush_disabled"])
                .weakens(Durability, "a crash takes what was synced in the last second"),
        ],
        default: Is("off"),
        ..OF_MOUNT
    },
    Tunable {
        name: "journal_reclaim_delay",
        about: "milliseconds between two looks for journal to free",
        values: &[
            value("10", &["journal_reclaim_delay=10"]),
            value("100", &["journal_reclaim_delay=100"]),
            value("1000", &["journal_reclaim_delay=1000"]),
        ],
        default: Is("100"),
        ..OF_MOUNT
    },
    Tunable {
        name: "nocow",
        about: "files are written in place",
        values: &[
            value("off", &[]),
            value("on", &["nocow"])
                .weakens(Checksums, "no checksums of data, no compression, no encryption")
                .excludes(&["background_compression", "compression", "data_checksum"]),
        ],
        default: Is("off"),
        ..FOR_NEW
    },
];
