//! Windows' NTFS by a program behind FUSE, on every kernel.

use super::ntfs::MADE;
use super::*;

pub(crate) const NTFS_3G: Filesystem = Filesystem {
    name: "ntfs-3g",
    about: "Windows' file system by a program behind FUSE",
    more_needs: &[Need::File { path: "/dev/fuse", hint: HINT }],
    tools: &[("mkntfs", "ntfs-3g"), ("ntfsinfo", "ntfs-3g"), ("ntfs-3g", "ntfs-3g")],
    kernel: Kernel { name: Some("fuseblk"), ..Kernel::with(HINT) },
    features: Features { no_upper: Some(NO_WHITEOUTS), ..MADE.features },
    mounting: Mounting {
        // Without `permissions` all files are of the one who mounted it, and changes of owners and modes do nothing (ntfs-3g(8)).
        command: |driver, spec| {
            let options = ["permissions".to_string()].into_iter().chain(spec.mount.iter().cloned());
            command(driver.name, &options.collect::<Vec<_>>(), spec)
        },
        // FUSE shows its own options and none of the program's.
        mismatches: |_, _, _, _| Vec::new(),
        ..Mounting::DEFAULT
    },
    // `syncfs(2)` writes what the kernel has of the device, and not what the program still has. An fsync of any folder
    // reaches the program, which then syncs all of the device (ntfs_fuse_fsync in src/ntfs-3g.c).
    commit: Some(Commit { words: |spec| filled(&["sync", MOUNT_POINT], spec), idle: |_| argv(["sync", "--version"]) }),
    ..MADE
};

const HINT: &str = "`modprobe fuse`";
