//! What people turn of xfs. Defaults were read back from xfsprogs 6.1.0 and Linux 6.18 (`xfs_info`, /proc/mounts).

use super::super::tunables::*;
use pickfs_core::plan::Tunable;

const OF_MKFS: Tunable = Tunable { source: "mkfs.xfs(8)", fact: "xfs_info", ..MKFS };
const OF_MOUNT: Tunable = Tunable { source: "xfs(5)", change: MountAgain, ..MOUNT };

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "agcount",
        about: "allocation groups, which are written side by side",
        values: &[
            value("2", &["-d", "agcount=2"]).shown("agcount=2"),
            value("8", &["-d", "agcount=8"]).shown("agcount=8").excludes(&["log_size"]),
            value("16", &["-d", "agcount=16"]).shown("agcount=16").excludes(&["log_size"]),
        ],
        default: Depends("4 on less than 4 TiB; more on larger disks, and on arrays"),
        ..OF_MKFS
    },
    Tunable {
        name: "bigtime",
        about: "times up to the year 2486",
        values: &[
            value("off", &["-m", "bigtime=0"]).shown("bigtime=0").weakens(Features, "no dates after 2038"),
            value("on", &["-m", "bigtime=1"]).shown("bigtime=1"),
        ],
        default: Is("on"),
        change: Unmounted("xfs_admin -O bigtime=1 DEVICE"),
        since: "Linux 5.10; on by default since xfsprogs 5.15",
        ..OF_MKFS
    },
    Tunable {
        name: "block_size",
        about: "bytes of a block",
        values: &[
            value("1024", &["-b", "size=1024"]).shown("data = bsize=1024").excludes(&["inode_size", "sector_size"]),
            value("2048", &["-b", "size=2048"]).shown("data = bsize=2048").excludes(&["inode_size", "sector_size"]),
            value("4096", &["-b", "size=4096"]).shown("data = bsize=4096"),
        ],
        default: Is("4096"),
        ..OF_MKFS
    },
    Tunable {
        name: "directory_block_size",
        about: "bytes of a block of a folder",
        values: &[
            value("4096", &["-n", "size=4096"]).shown("naming =version 2 bsize=4096"),
            value("16384", &["-n", "size=16384"]).shown("naming =version 2 bsize=16384"),
            value("65536", &["-n", "size=65536"]).shown("naming =version 2 bsize=65536"),
        ],
        default: Is("4096"),
        ..OF_MKFS
    },
    Tunable {
        name: "finobt",
        about: "an index of free inodes",
        values: &[
            value("off", &["-m", "finobt=0,inobtcount=0"]).shown("finobt=0"),
            value("on", &["-m", "finobt=1"]).shown("finobt=1"),
        ],
        default: Is("on"),
        since: "Linux 3.16",
        ..OF_MKFS
    },
    Tunable {
        name: "inode_size",
        about: "bytes of an inode",
        values: &[
            value("512", &["-i", "size=512"]).shown("isize=512"),
            value("1024", &["-i", "size=1024"]).shown("isize=1024"),
            value("2048", &["-i", "size=2048"]).shown("isize=2048"),
        ],
        default: Is("512"),
        ..OF_MKFS
    },
    Tunable {
        name: "log_size",
        about: "size of the log",
        values: &[
            value("64m", &["-l", "size=64m"]),
            value("128m", &["-l", "size=128m"]),
            value("256m", &["-l", "size=256m"]).excludes(&["stripe"]),
        ],
        default: Depends("by the device: 64 MiB of 2 GiB, a 2048th of the device from 128 GiB on"),
        ..OF_MKFS
    },
    Tunable {
        name: "log_stripe",
        about: "bytes to which writes of the log are rounded up",
        values: &[
            value("32k", &["-l", "su=32k"]).excludes(&["logbsize"]),
            value("256k", &["-l", "su=256k"]).excludes(&["logbsize"]),
        ],
        default: Depends("none; the stripe unit of an array below"),
        ..OF_MKFS
    },
    Tunable {
        name: "nrext64",
        about: "counters for more extents of a file",
        values: &[
            value("off", &["-i", "nrext64=0"]).shown("nrext64=0"),
            value("on", &["-i", "nrext64=1"]).shown("nrext64=1"),
        ],
        default: Depends("off; on in later versions of mkfs.xfs"),
        change: Unmounted("xfs_admin -O nrext64=1 DEVICE"),
        since: "Linux 5.19, xfsprogs 5.19",
        ..OF_MKFS
    },
    Tunable {
        name: "reflink",
        about: "files that share blocks",
        values: &[
            value("off", &["-m", "reflink=0"]).shown("reflink=0").weakens(Features, "no reflinks, no deduplication"),
            value("on", &["-m", "reflink=1"]).shown("reflink=1"),
        ],
        default: Is("on"),
        since: "Linux 4.9; on by default since xfsprogs 5.1",
        ..OF_MKFS
    },
    Tunable {
        name: "rmapbt",
        about: "an index from blocks to their owners, for checks while mounted",
        values: &[
            value("off", &["-m", "rmapbt=0"]).shown("rmapbt=0"),
            value("on", &["-m", "rmapbt=1"]).shown("rmapbt=1"),
        ],
        default: Depends("off; on in later versions of mkfs.xfs"),
        since: "Linux 4.8",
        ..OF_MKFS
    },
    Tunable {
        name: "sector_size",
        about: "bytes of the smallest write",
        values: &[
            value("512", &["-s", "size=512"]).shown("sectsz=512"),
            value("4096", &["-s", "size=4096"]).shown("sectsz=4096"),
        ],
        default: Depends("the physical sectors of the device"),
        ..OF_MKFS
    },
    Tunable {
        name: "stripe",
        about: "chunk and width of the array below",
        values: &[value("4 x 64 KiB", &["-d", "su=64k,sw=4"]).excludes(&["logbsize"])],
        default: Depends("what the device says, mostly none"),
        ..OF_MKFS
    },
    Tunable {
        name: "allocsize",
        about: "what is allocated ahead at the end of a file that grows",
        values: &[
            value("4k", &["allocsize=4k"]),
            value("64k", &["allocsize=64k"]),
            value("1m", &["allocsize=1m"]),
            value("64m", &["allocsize=64m"]),
        ],
        default: Depends("by the size of the file and the free space"),
        ..OF_MOUNT
    },
    ATIME,
    Tunable {
        name: "discard",
        about: "freed blocks are discarded soon",
        values: &[value("off", &["nodiscard"]), value("on", &["discard"])],
        default: Is("off"),
        ..OF_MOUNT
    },
    Tunable {
        name: "filestreams",
        about: "files of one folder lie in one allocation group",
        values: &[value("off", &[]), value("on", &["filestreams"])],
        default: Is("off"),
        ..OF_MOUNT
    },
    Tunable {
        name: "inode",
        about: "where inodes may lie: anywhere, or where their numbers have 32 bits",
        values: &[value("32", &["inode32"]), value("64", &["inode64"])],
        default: Is("64"),
        change: Remount,
        since: "the default since Linux 3.7",
        ..OF_MOUNT
    },
    Tunable {
        name: "largeio",
        about: "the best size of a read or write is given as a whole stripe, or `allocsize`",
        values: &[value("off", &["nolargeio"]), value("on", &["largeio"])],
        default: Is("off"),
        ..OF_MOUNT
    },
    LAZYTIME,
    Tunable {
        name: "logbsize",
        about: "size of a buffer of the log in memory",
        values: &[
            value("16k", &["logbsize=16k"]),
            value("32k", &["logbsize=32k"]),
            value("64k", &["logbsize=64k"]),
            value("256k", &["logbsize=256k"]),
        ],
        default: Is("32k"),
        ..OF_MOUNT
    },
    Tunable {
        name: "logbufs",
        about: "buffers of the log in memory",
        values: &[value("2", &["logbufs=2"]), value("4", &["logbufs=4"]), value("8", &["logbufs=8"])],
        default: Is("8"),
        ..OF_MOUNT
    },
    Tunable {
        name: "swalloc",
        about: "files that grow are allocated in whole stripes",
        values: &[value("off", &[]), value("on", &["swalloc"])],
        default: Is("off"),
        ..OF_MOUNT
    },
    Tunable {
        name: "wsync",
        about: "making and removing names is written at once",
        values: &[value("off", &[]), value("on", &["wsync"])],
        default: Is("off"),
        ..OF_MOUNT
    },
];
