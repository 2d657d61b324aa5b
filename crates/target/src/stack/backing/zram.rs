//! A disk in compressed memory: the file system's own cost, and that of compressing every block
//! below it.

use super::{Backing, Elsewhere};
use crate::stack::{Action, Step};
use pickfs_core::journal::Undo;

pub(super) fn with_code(data: Backing) -> Backing {
    Backing {
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
        ..data
    }
}

/// In the run's folder in memory: the number that the kernel gave the disk.
const NOTE: &str = "zram";
