//! What people turn of f2fs. Defaults are from its documentation and its source (Linux 6.18, f2fs-tools 1.15): they were not read back.

use super::super::tunables::*;
use pickfs_core::plan::Tunable;

const OF_MKFS: Tunable = Tunable { source: "mkfs.f2fs(8)", fact: "dump.f2fs", ..MKFS };
const OF_MOUNT: Tunable = Tunable { source: "Documentation/filesystems/f2fs.rst of Linux", ..MOUNT };
/// What the documentation leaves open.
const OF_SOURCE: Tunable = Tunable { source: "fs/f2fs/super.c of Linux, default_options()", ..MOUNT };

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "overprovision",
        about: "percent of the disk that is kept for cleaning",
        values: &[
            value("5", &["-o", "5"]),
            value("10", &["-o", "10"]).weakens(Space, "a tenth is kept back"),
            value("20", &["-o", "20"]).weakens(Space, "a fifth is kept back"),
        ],
        default: Depends("what suits the size of the disk"),
        ..OF_MKFS
    },
    Tunable {
        name: "section",
        about: "segments of 2 MiB that are cleaned together",
        values: &[
            value("1", &["-s", "1"]).shown("Segments per section = 1"),
            value("4", &["-s", "4"]).shown("Segments per section = 4"),
            value("16", &["-s", "16"]).shown("Segments per section = 16"),
        ],
        default: Is("1"),
        ..OF_MKFS
    },
    Tunable {
        name: "active_logs",
        about: "logs that are written at the same time",
        values: &[value("2", &["active_logs=2"]), value("4", &["active_logs=4"]), value("6", &["active_logs=6"])],
        default: Is("6"),
        ..OF_MOUNT
    },
    Tunable {
        name: "alloc_mode",
        about: "where new segments are taken from",
        values: &[value("default", &["alloc_mode=default"]), value("reuse", &["alloc_mode=reuse"])],
        default: Depends("default; reuse on the smallest volumes"),
        ..OF_MOUNT
    },
    Tunable {
        name: "atgc",
        about: "cleaning looks at the age of data",
        values: &[value("off", &[]), value("on", &["atgc"])],
        default: Is("off"),
        since: "Linux 5.10",
        change: MountAgain,
        ..OF_MOUNT
    },
    ATIME,
    Tunable {
        name: "background_gc",
        about: "cleaning while the disk is idle",
        values: &[
            value("off", &["background_gc=off"]),
            value("on", &["background_gc=on"]),
            value("sync", &["background_gc=sync"]),
        ],
        default: Is("on"),
        ..OF_MOUNT
    },
    Tunable {
        name: "barrier",
        about: "the disk's cache is flushed",
        values: &[
            value("off", &["nobarrier"]).weakens(Durability, "what was synced may be lost with a power cut"),
            value("on", &["barrier"]),
        ],
        default: Is("on"),
        ..OF_MOUNT
    },
    Tunable {
        name: "checkpoint_merge",
        about: "one thread of the kernel makes the checkpoints that several programs wait for",
        values: &[value("off", &["nocheckpoint_merge"]), value("on", &["checkpoint_merge"])],
        default: Is("on"),
        since: "Linux 5.12",
        ..OF_SOURCE
    },
    Tunable {
        name: "discard_unit",
        about: "what is discarded at a time",
        values: &[
            value("block", &["discard_unit=block"]),
            value("segment", &["discard_unit=segment"]),
            value("section", &["discard_unit=section"]),
        ],
        default: Depends("block; section on zoned disks"),
        since: "Linux 5.15",
        change: MountAgain,
        ..OF_MOUNT
    },
    Tunable {
        name: "extent_cache",
        about: "a cache of where the parts of files lie",
        values: &[value("off", &["noextent_cache"]), value("on", &["extent_cache"])],
        default: Is("on"),
        change: MountAgain,
        ..OF_MOUNT
    },
    Tunable {
        name: "flush_merge",
        about: "flushes that several programs wait for are sent as one",
        values: &[value("off", &["noflush_merge"]), value("on", &["flush_merge"])],
        default: Is("on"),
        ..OF_SOURCE
    },
    Tunable {
        name: "fsync_mode",
        about: "what an fsync promises",
        values: &[
            value("nobarrier", &["fsync_mode=nobarrier"])
                .weakens(Durability, "what was synced may be lost with a power cut"),
            value("posix", &["fsync_mode=posix"]),
            value("strict", &["fsync_mode=strict"]),
        ],
        default: Is("posix"),
        ..OF_MOUNT
    },
    Tunable {
        name: "gc_merge",
        about: "cleaning that a program waits for is done by the thread of the kernel",
        values: &[value("off", &["nogc_merge"]), value("on", &["gc_merge"])],
        default: Depends("off by its documentation"),
        since: "Linux 5.13",
        ..OF_MOUNT
    },
    Tunable {
        name: "inline_data",
        about: "the smallest files lie in their inodes",
        values: &[value("off", &["noinline_data"]), value("on", &["inline_data"])],
        default: Is("on"),
        ..OF_MOUNT
    },
    Tunable { default: Is("on"), source: OF_SOURCE.source, ..LAZYTIME },
    Tunable {
        name: "mode",
        about: "whether holes within segments are written to",
        values: &[value("adaptive", &["mode=adaptive"]), value("lfs", &["mode=lfs"])],
        default: Depends("adaptive; lfs on zoned disks"),
        change: MountAgain,
        ..OF_MOUNT
    },
];
