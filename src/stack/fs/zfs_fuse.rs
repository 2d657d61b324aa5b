//! ZFS in a FUSE daemon, for kernels without a module for it.
//!
//! The daemon and its `zpool` meet at one fixed socket, so only one can run on a machine. Its settings are in
//! `/etc/zfs/zfsrc`, which is read back as a fact.

use super::feature::{Found, changed};
use super::zfs::{
    MINIMUM, POOL, POOLS, create, export, least_devices, mismatches, properties, weakens_dataset, without_checksums,
};
use super::{Argv, Filesystem, VFS_FILE, Variant, Wish, argv};
use crate::journal::Undo;
use crate::need::Need;
use crate::stack::{Action, Step};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub struct ZfsFuse;

impl Filesystem for ZfsFuse {
    fn name(&self) -> &'static str {
        "zfs-fuse"
    }

    fn about(&self) -> &'static str {
        "ZFS (pool version 23) as a FUSE daemon"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        create(wish)
    }

    fn needs(&self) -> Vec<Need> {
        let mut needs = vec![
            Need::Root,
            Need::Kernel { filesystem: self.kernel_type(), hint: self.hint() },
            Need::File { path: "/dev/fuse", hint: self.hint() },
            Need::NoProcess { name: "zfs-fuse", hint: "only one can run: stop it with `systemctl stop zfs-fuse`" },
        ];
        needs.extend(super::programs(self.tools()));
        needs
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("zfs-fuse", "zfs-fuse"), ("zpool", "zfs-fuse"), ("zfs", "zfs-fuse")]
    }

    fn hint(&self) -> &'static str {
        "`modprobe fuse`"
    }

    fn kernel_type(&self) -> &'static str {
        "fuse"
    }

    fn variants(&self) -> &'static [Variant] {
        POOLS
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn least_devices(&self, variant: Option<&str>) -> usize {
        least_devices(variant)
    }

    fn mismatches(&self, wish: &Wish, facts: &BTreeMap<String, String>) -> Vec<String> {
        mismatches(wish, facts)
    }

    fn minimum_size(&self) -> u64 {
        MINIMUM
    }

    /// The format is that of zfs.
    fn largest_file(&self) -> Option<u64> {
        Some(VFS_FILE)
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(u64::MAX)
    }

    /// The unmount is for a daemon that was killed: its mount stays, dead, until somebody takes it away.
    fn before(&self, wish: &Wish) -> Vec<Step> {
        let folder = devices(wish);
        let daemon = argv(["zfs-fuse", "--no-daemon", "--no-kstat-mount"]);
        let make = Step::new("make a folder for `zpool import` to look in", Action::MakeDirectory(folder.clone()));
        let mut steps = vec![make.undo(Undo::RemoveTree(folder.clone()))];
        for (index, device) in wish.devices().iter().enumerate() {
            let name = if index == 0 { "device".to_string() } else { format!("device{}", index + 1) };
            let link = folder.join(name).display().to_string();
            steps.push(
                Step::run("put the device there", ["ln", "-sfn", device, &link])
                    .undo(Undo::Unmount(wish.mount_point.into())),
            );
        }
        steps.push(
            Step::new("start the ZFS daemon", Action::Daemon { argv: daemon, ready: argv(["zpool", "list"]) })
                .undo(Undo::KillMarked(format!("PICKFS_DAEMON={}", wish.name))),
        );
        steps
    }

    fn mkfs_mounts(&self) -> bool {
        true
    }

    /// From a folder with nothing but this device: all of `/dev` can be slow, and could hold a pool of the same name.
    /// Without a cache file, as it was made: from there the next daemon would take up the pool of one that was killed.
    fn mount(&self, wish: &Wish) -> Argv {
        argv(["zpool", "import", "-o", "cachefile=none", "-d", &devices(wish).display().to_string(), wish.name])
    }

    fn unmount(&self, wish: &Wish) -> Argv {
        export(wish)
    }

    fn undo(&self, wish: &Wish) -> Undo {
        Undo::ExportPool(wish.name.into())
    }

    /// The daemon ignores `sync(2)` and `syncfs(2)`: what was written in the last 30 s is gone after a power cut.
    /// Setting any property waits for a whole transaction group, with flushes.
    fn commit(&self, wish: &Wish) -> Option<Argv> {
        Some(argv(["zfs", "set", "pickfs:commit=1", wish.name]))
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        let mut facts = properties(wish);
        facts.push(("zfsrc", argv(["cat", "/etc/zfs/zfsrc"])));
        facts
    }

    /// No program of it prints its version.
    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("zfs-fuse", argv(["dpkg-query", "-W", "zfs-fuse"]))]
    }

    fn features(&self) -> &'static [&'static str] {
        POOL
    }

    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        changed(POOL, without_checksums(found), &[])
    }

    fn weakens(&self, option: &str) -> bool {
        weakens_dataset(option)
    }
}

/// Beside the mount point, so that it carries the run's name.
fn devices(wish: &Wish) -> PathBuf {
    wish.mount_point.parent().unwrap_or(Path::new("/")).join("zfs-fuse-devices")
}
