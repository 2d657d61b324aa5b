//! What people turn below and beside file systems: of a device's queue, of the kernel's memory, of layers.

use super::fs::tunables::{MKFS, value};
use super::layer;
use pickfs_core::plan::Change::Write;
use pickfs_core::plan::TunableDefault::{Depends, Is};
use pickfs_core::plan::Weakened::Durability;
use pickfs_core::plan::{SCHEDULER, Tunable, TunableKind};

/// All of them: queue, kernel, layers.
pub fn of_machine() -> Vec<Tunable> {
    let of_layers = layer::ALL.iter().flat_map(|layer| layer.tunables);
    QUEUE.iter().chain(SYSCTL).chain(of_layers).copied().collect()
}

const OF_QUEUE: Tunable = Tunable {
    kind: TunableKind::Queue,
    change: Write,
    source: "Documentation/ABI/stable/sysfs-block of Linux",
    ..MKFS
};

const OF_KERNEL: Tunable = Tunable {
    kind: TunableKind::Sysctl,
    change: Write,
    source: "Documentation/admin-guide/sysctl/vm.rst of Linux",
    ..MKFS
};

const QUEUE: &[Tunable] = &[
    Tunable {
        name: "max_sectors_kb",
        about: "KiB of the largest request",
        values: &[value("128", &["128"]), value("512", &["512"])],
        default: Depends("1280, or what the device can where that is less; 4096 from Linux 6.14 on"),
        source: "Documentation/ABI/stable/sysfs-block, include/linux/blkdev.h of Linux",
        ..OF_QUEUE
    },
    Tunable {
        name: "nomerges",
        about: "0: neighbouring requests are merged; 1: only with the last one; 2: never",
        values: &[value("0", &["0"]), value("1", &["1"]), value("2", &["2"])],
        default: Is("0"),
        ..OF_QUEUE
    },
    Tunable {
        name: "nr_requests",
        about: "requests that wait for a device at most",
        values: &[value("32", &["32"]), value("64", &["64"])],
        default: Depends("256 with a scheduler, else the depth of the device's queue"),
        source: "Documentation/ABI/stable/sysfs-block, block/blk-mq.c of Linux",
        ..OF_QUEUE
    },
    Tunable {
        name: "read_ahead_kb",
        about: "KiB that are read ahead of a program that reads in order",
        values: &[value("0", &["0"]), value("128", &["128"]), value("512", &["512"]), value("4096", &["4096"])],
        default: Depends("128; more where the device names a larger optimal size"),
        ..OF_QUEUE
    },
    Tunable {
        name: "rq_affinity",
        about: "which processor ends a request: 0 any, 1 one of the group that began it, 2 the very one",
        values: &[value("0", &["0"]), value("1", &["1"]), value("2", &["2"])],
        default: Is("1"),
        ..OF_QUEUE
    },
    Tunable {
        name: SCHEDULER,
        about: "how requests are ordered",
        values: &[
            value("none", &["none"]),
            value("mq-deadline", &["mq-deadline"]),
            value("kyber", &["kyber"]),
            value("bfq", &["bfq"]),
        ],
        default: Depends("mq-deadline for devices with one queue, none for those with several; distributions differ"),
        source: "Documentation/block of Linux, block/elevator.c",
        ..OF_QUEUE
    },
    Tunable {
        name: "wbt_lat_usec",
        about: "microseconds that a read may take before writes back are slowed down; 0: never slowed down",
        values: &[value("0", &["0"]), value("2000", &["2000"]), value("75000", &["75000"])],
        default: Depends("2000 on devices that do not rotate, 75000 on others; off with bfq"),
        since: "Linux 4.10",
        source: "Documentation/ABI/stable/sysfs-block, block/blk-wbt.c of Linux",
        ..OF_QUEUE
    },
    Tunable {
        name: "write_cache",
        about: "what the kernel takes the device's cache for; `write through` sends no flushes",
        values: &[
            value("write through", &["write through"])
                .weakens(Durability, "what was synced may be lost with a power cut, where the device has a cache"),
            value("write back", &["write back"]),
        ],
        default: Depends("what the device says"),
        ..OF_QUEUE
    },
];

const SYSCTL: &[Tunable] = &[
    Tunable {
        name: "dirty_background_bytes",
        about: "bytes that may be unwritten before the kernel begins to write them",
        values: &[value("16 MiB", &["16777216"]), value("64 MiB", &["67108864"]), value("256 MiB", &["268435456"])],
        default: Depends("a tenth of memory in every run of pickfs; without it 10 % of what is free"),
        ..OF_KERNEL
    },
    Tunable {
        name: "dirty_bytes",
        about: "bytes that may be unwritten before writers wait",
        values: &[value("64 MiB", &["67108864"]), value("256 MiB", &["268435456"]), value("1 GiB", &["1073741824"])],
        default: Depends("a fifth of memory in every run of pickfs; without it 20 % of what is free"),
        ..OF_KERNEL
    },
    Tunable {
        name: "dirty_expire_centisecs",
        about: "hundredths of a second after which data must be written",
        values: &[
            value("500", &["500"]),
            value("3000", &["3000"]),
            value("12000", &["12000"]).weakens(Durability, "a crash takes up to two minutes of work without fsync"),
        ],
        default: Is("3000"),
        ..OF_KERNEL
    },
    Tunable {
        name: "dirty_writeback_centisecs",
        about: "hundredths of a second between two looks for data to write",
        values: &[value("100", &["100"]), value("500", &["500"]), value("1500", &["1500"])],
        default: Is("500"),
        ..OF_KERNEL
    },
    Tunable {
        name: "swappiness",
        about: "how soon memory of programs is swapped out for file data",
        values: &[value("10", &["10"]), value("60", &["60"]), value("100", &["100"])],
        default: Is("60"),
        ..OF_KERNEL
    },
    Tunable {
        name: "vfs_cache_pressure",
        about: "how soon inodes and names leave memory for file data",
        values: &[value("50", &["50"]), value("100", &["100"]), value("200", &["200"])],
        default: Is("100"),
        ..OF_KERNEL
    },
];
