//! Windows' NTFS by a program behind FUSE, on every kernel.

use super::ntfs::MADE;
use super::{Commit, Filesystem, MOUNT_POINT, argv, filled, mount_options};
use pickfs_system::need::Need;

pub(crate) const NTFS_3G: Filesystem = Filesystem {
    name: "ntfs-3g",
    about: "Windows' file system by a program behind FUSE",
    more_needs: &[Need::File { path: "/dev/fuse", hint: HINT }],
    tools: &[("mkntfs", "ntfs-3g"), ("ntfsinfo", "ntfs-3g"), ("ntfs-3g", "ntfs-3g")],
    hint: HINT,
    no_upper: Some(super::NO_WHITEOUTS),
    kernel_type: Some("fuseblk"),
    // Without `permissions` all files are of the one who mounted it, and changes of owners and modes do nothing (ntfs-3g(8)).
    mount: |_, spec| {
        let options: Vec<String> =
            std::iter::once("permissions".to_string()).chain(spec.mount.iter().cloned()).collect();
        mount_options::command("ntfs-3g", &options, spec)
    },
    // `syncfs(2)` writes what the kernel has of the device, and not what the program still has. An fsync of any folder
    // reaches the program, which then syncs all of the device (ntfs_fuse_fsync in src/ntfs-3g.c).
    commit: Some(Commit { words: |spec| filled(&["sync", MOUNT_POINT], spec), idle: |_| argv(["sync", "--version"]) }),
    // FUSE shows its own options and none of the program's.
    mount_mismatches: |_, _, _| Vec::new(),
    ..MADE
};

const HINT: &str = "`modprobe fuse`";
