//! A file in memory, as a loop device: the rest is the file system's own cost.

use super::{Backing, Elsewhere, LOOP_CONTROL, LOSETUP, attach, image_bytes, image_in, room};
use crate::stack::{Action, Place, Step};
use pickfs_core::journal::Undo;
use pickfs_core::plan::Settings;
use pickfs_system::need::Need;
use std::path::{Path, PathBuf};

pub(super) fn with_code(data: Backing) -> Backing {
    Backing {
        needs: &[
            Need::Root,
            LOSETUP,
            LOOP_CONTROL,
            Need::Kernel { filesystem: "tmpfs", hint: "run it on a kernel with tmpfs" },
        ],
        // A separate tmpfs, so that its size and its page size are ours: huge pages would come and
        // go by luck.
        prepare: |settings, place| {
            let (folder, bytes) = (folder(settings, place), image_bytes(settings));
            let options = format!("size={},mode=700,huge=never", bytes + SLACK);
            let mount = ["mount", "-t", "tmpfs", "-o", &options, "pickfs", &folder.display().to_string()];
            vec![
                Step::folder("make a mount point for memory", folder.clone()),
                Step::run("mount memory", mount).undo(Undo::Unmount(folder.clone())),
                Step::new("write the image", Action::MakeImage { path: image_in(&folder, settings), bytes }),
            ]
        },
        // Never direct: there is no second cache below to pass by, tmpfs takes it since Linux 6.6
        // only, and on 6.18 it wrote at a fifth of the rate.
        steps: |settings, place| vec![attach(&image_in(&folder(settings, place), settings), false)],
        objection: |settings| room::room(settings, Path::new("/dev/shm"), "size"),
        elsewhere: Elsewhere::MadeThere,
        ..data
    }
}

/// For the folder's own pages.
const SLACK: u64 = 1 << 20;

/// One for each size: a second mount on the same folder would hide the first one's image.
fn folder(settings: &Settings, place: &Place) -> PathBuf {
    place.mounts.join(format!("memory-{}", image_bytes(settings)))
}
