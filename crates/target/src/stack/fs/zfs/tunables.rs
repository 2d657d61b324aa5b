//! What people turn of ZFS. Defaults are from the manual of OpenZFS 2.4: they were not read back.

use super::super::tunables::*;
use pickfs_core::plan::{Tunable, TunableKind};

/// In a plan, properties of the dataset are mount options.
const PROPERTY: Tunable = Tunable { source: "zfsprops(7)", change: Mounted("zfs set {} POOL"), ..MOUNT };
const FOR_NEW: Tunable = Tunable { change: NewFiles("zfs set {} POOL"), ..PROPERTY };
const PARAMETER: Tunable =
    Tunable { kind: TunableKind::Module(super::MODULE), source: "zfs(4)", change: Write, ..MKFS };

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "ashift",
        about: "smallest write to the disk, as a power of two",
        values: &[
            value("9", &["-o", "ashift=9"]),
            value("12", &["-o", "ashift=12"]),
            value("13", &["-o", "ashift=13"]),
        ],
        default: Depends("what the disk says of its sectors"),
        source: "zpoolprops(7)",
        ..MKFS
    },
    Tunable {
        name: "atime",
        about: "when reading a file writes the time of that",
        values: &[
            value("off", &["atime=off"]).weakens(Features, "no time of the last access"),
            value("on", &["atime=on"]),
        ],
        default: Is("on"),
        ..PROPERTY
    },
    Tunable {
        name: "checksum",
        about: "algorithm of the checksums of data",
        values: &[
            value("off", &["checksum=off"]).weakens(Checksums, "no checksums of data"),
            value("on", &["checksum=on"]),
            value("sha256", &["checksum=sha256"]),
            value("edonr", &["checksum=edonr"]),
        ],
        default: Is("on"),
        ..FOR_NEW
    },
    Tunable {
        name: "compression",
        about: "files are compressed",
        values: &[
            value("off", &["compression=off"]),
            value("lz4", &["compression=lz4"]),
            value("zstd", &["compression=zstd"]),
            value("zstd-9", &["compression=zstd-9"]),
            value("gzip", &["compression=gzip"]),
        ],
        default: Depends("on, which is lz4, since OpenZFS 2.2; off before"),
        ..FOR_NEW
    },
    Tunable {
        name: "dnodesize",
        about: "bytes of an inode, for attributes in it",
        values: &[value("legacy", &["dnodesize=legacy"]), value("auto", &["dnodesize=auto"])],
        default: Is("legacy"),
        ..FOR_NEW
    },
    Tunable {
        name: "logbias",
        about: "whether the intent log is for short waits or for many bytes",
        values: &[value("latency", &["logbias=latency"]), value("throughput", &["logbias=throughput"])],
        default: Is("latency"),
        ..PROPERTY
    },
    Tunable {
        name: "primarycache",
        about: "what is cached in memory",
        values: &[
            value("none", &["primarycache=none"]),
            value("metadata", &["primarycache=metadata"]),
            value("all", &["primarycache=all"]),
        ],
        default: Is("all"),
        ..PROPERTY
    },
    Tunable {
        name: "recordsize",
        about: "bytes of the largest block of a file",
        values: &[
            value("8K", &["recordsize=8K"]),
            value("16K", &["recordsize=16K"]),
            value("128K", &["recordsize=128K"]),
            value("1M", &["recordsize=1M"]),
        ],
        default: Is("128K"),
        ..FOR_NEW
    },
    Tunable {
        name: "redundant_metadata",
        about: "metadata that have a further copy",
        values: &[
            value("some", &["redundant_metadata=some"]).weakens(Features, "a damaged block may take several files"),
            value("most", &["redundant_metadata=most"])
                .weakens(Features, "a damaged block may take about 1000 blocks of data"),
            value("all", &["redundant_metadata=all"]),
        ],
        default: Is("all"),
        ..FOR_NEW
    },
    Tunable {
        name: "sync",
        about: "what an fsync waits for",
        values: &[
            value("disabled", &["sync=disabled"])
                .weakens(Durability, "a crash takes what was synced in the last seconds"),
            value("standard", &["sync=standard"]),
            value("always", &["sync=always"]),
        ],
        default: Is("standard"),
        ..PROPERTY
    },
    Tunable {
        name: "xattr",
        about: "where extended attributes lie: in the inode (sa), or in files of their own (dir)",
        values: &[value("dir", &["xattr=dir"]), value("sa", &["xattr=sa"])],
        default: Depends("sa in the newest versions, dir before"),
        ..FOR_NEW
    },
    Tunable {
        name: "zfs_dirty_data_max",
        about: "bytes that may be unwritten before writers wait",
        values: &[value("256 MiB", &["268435456"]), value("1 GiB", &["1073741824"])],
        default: Depends("a tenth of memory"),
        ..PARAMETER
    },
    Tunable {
        name: "zfs_prefetch_disable",
        about: "nothing is read ahead",
        values: &[value("0", &["0"]), value("1", &["1"])],
        default: Is("0"),
        ..PARAMETER
    },
    Tunable {
        name: "zfs_txg_timeout",
        about: "seconds after which a transaction group is written at the latest",
        values: &[
            value("1", &["1"]),
            value("5", &["5"]),
            value("30", &["30"]).weakens(Durability, "a crash takes up to 30 s of work without fsync"),
        ],
        default: Is("5"),
        ..PARAMETER
    },
    Tunable {
        name: "zfs_vdev_async_write_max_active",
        about: "writes that a disk gets at once",
        values: &[value("3", &["3"]), value("10", &["10"]), value("32", &["32"])],
        default: Is("10"),
        ..PARAMETER
    },
];
