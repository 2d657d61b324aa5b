//! ZFS in a FUSE daemon, which is started before anything is made.

use super::zfs::{import, pool};
use super::*;
use crate::stack::Action;
use pickfs_core::journal::Undo;
use std::path::{Path, PathBuf};

pub(super) fn with_code(data: Filesystem) -> Filesystem {
    let pool = pool(data);
    Filesystem {
        making: Making { before: start_daemon, ..pool.making },
        mounting: Mounting {
            // From a folder with nothing but this device: all of `/dev` can be slow, and could hold
            // a pool of the same name. Without a cache file, as at its creation: from there the
            // next daemon would take up the pool of one that was killed.
            command: |_, spec| import(&devices(spec).display().to_string(), spec),
            ..pool.mounting
        },
        ..pool
    }
}

/// The unmount is for a daemon that was killed: its mount stays, dead, until it is unmounted.
fn start_daemon(spec: &FsSpec) -> Vec<Step> {
    let folder = devices(spec);
    let daemon = argv(["zfs-fuse", "--no-daemon", "--no-kstat-mount"]);
    let mut steps = vec![Step::folder("make a folder for `zpool import` to look in", folder.clone())];
    for (index, device) in spec.devices().iter().enumerate() {
        let name = if index == 0 { "device".to_string() } else { format!("device{}", index + 1) };
        let link = folder.join(name).display().to_string();
        let put = Step::run("put the device there", ["ln", "-sfn", device, &link]);
        steps.push(put.undo(Undo::Unmount(spec.mount_point.into())));
    }
    let start = Step::new("start the ZFS daemon", Action::Daemon { argv: daemon, ready: argv(["zpool", "list"]) });
    steps.push(start.undo(Undo::KillMarked(format!("PICKFS_DAEMON={}", spec.name))));
    steps
}

/// Next to the mount point, so that it carries the run's name.
fn devices(spec: &FsSpec) -> PathBuf {
    spec.mount_point.parent().unwrap_or(Path::new("/")).join("zfs-fuse-devices")
}
