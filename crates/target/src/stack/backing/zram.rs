//! A disk in compressed memory: the file system's own cost, and that of compressing every block below it.

use super::{Backing, Elsewhere};
use crate::stack::{Action, Step};
use pickfs_core::journal::Undo;
use pickfs_core::plan::{Setting, SettingKind};
use pickfs_system::need::Need;

pub(crate) const ZRAM: Backing = Backing {
    name: "zram",
    about: "a disk in compressed memory (zram), empty at first",
    settings: &[
        Setting {
            name: "size",
            kind: SettingKind::Size,
            default: Some("2GiB"),
            about: "how large the disk is; what is written to it takes memory, compressed",
        },
        Setting {
            name: "algorithm",
            kind: SettingKind::Choice(&["842", "deflate", "lz4", "lz4hc", "lzo", "lzo-rle", "zstd"]),
            default: Some("lzo-rle"),
            about: "what compresses it, of what the kernel has",
        },
    ],
    main_setting: "size",
    needs: &[
        Need::Root,
        Need::Program { name: "modprobe", package: "kmod" },
        Need::Driver {
            what: "zram",
            module: "zram",
            sign: "/sys/class/zram-control",
            hint: "boot Debian's stock kernel (linux-image-amd64), or use guests, which have it (--executor vm)",
        },
    ],
    // A new disk for each cell: it holds nothing, as every block of the one before is gone.
    steps: |settings, place| {
        let note = place.memory.join(NOTE);
        let make = Action::MakeZram {
            note: note.clone(),
            algorithm: settings.text("algorithm").unwrap_or_default().into(),
            bytes: settings.number("size").unwrap_or_default(),
        };
        vec![
            Step::run("load zram", ["modprobe", "zram", "num_devices=0"]),
            Step::new("make a disk in compressed memory", make).undo(Undo::RemoveZram(note)),
        ]
    },
    elsewhere: Elsewhere::MadeThere,
    ..Backing::DEFAULT
};

/// In the run's folder in memory: the number that the kernel gave the disk.
const NOTE: &str = "zram";
