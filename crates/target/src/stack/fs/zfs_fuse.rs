//! ZFS in a FUSE daemon, for kernels without a module for it.
//!
//! The daemon and its `zpool` meet at one fixed socket, so only one can run on a machine. Its settings are in
//! `/etc/zfs/zfsrc`, which is read back as a fact.

use super::zfs::{POOL, ZFS_GET, ZPOOL_GET, ZPOOL_STATUS, import};
use super::*;
use crate::stack::Action;
use pickfs_core::journal::Undo;
use std::path::{Path, PathBuf};

pub(crate) const ZFS_FUSE: Filesystem = Filesystem {
    name: "zfs-fuse",
    about: "ZFS (pool version 23) as a FUSE daemon",
    more_needs: &[
        Need::File { path: "/dev/fuse", hint: HINT },
        Need::NoProcess { name: "zfs-fuse", hint: "only one can run: stop it with `systemctl stop zfs-fuse`" },
    ],
    tools: &[("zfs-fuse", "zfs-fuse"), ("zpool", "zfs-fuse"), ("zfs", "zfs-fuse")],
    kernel: Kernel { name: Some("fuse"), ..Kernel::with(HINT) },
    features: Features { no_upper: Some(NO_WHITEOUTS), ..POOL.features },
    making: Making { before: start_daemon, ..POOL.making },
    mounting: Mounting {
        // From a folder with nothing but this device: all of `/dev` can be slow, and could hold a pool of the same name.
        // Without a cache file, as it was made: from there the next daemon would take up the pool of one that was killed.
        command: |_, spec| import(&devices(spec).display().to_string(), spec),
        ..POOL.mounting
    },
    // The daemon ignores `sync(2)` and `syncfs(2)`: what was written in the last 30 s is gone after a power cut.
    // Setting any property waits for a whole transaction group, with flushes.
    commit: Some(Commit {
        words: |spec| argv(["zfs", "set", "pickfs:commit=1", spec.name]),
        idle: |spec| argv(["zfs", "list", "-H", "-o", "name", spec.name]),
    }),
    facts: &[ZFS_GET, ZPOOL_GET, ZPOOL_STATUS, ("zfsrc", &["cat", "/etc/zfs/zfsrc"])],
    // No program of it prints its version. dpkg of a guest knows no package: the host knows what it unpacked.
    versions: &[("zfs-fuse", &["dpkg-query", "-W", "zfs-fuse"])],
    ..POOL
};

const HINT: &str = "`modprobe fuse`";

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

/// Beside the mount point, so that it carries the run's name.
fn devices(spec: &FsSpec) -> PathBuf {
    spec.mount_point.parent().unwrap_or(Path::new("/")).join("zfs-fuse-devices")
}
