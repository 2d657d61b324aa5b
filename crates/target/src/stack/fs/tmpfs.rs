//! tmpfs: files in memory and nowhere else, as what the others can be held against.

use super::*;
use std::path::Path;

pub(crate) const TMPFS: Filesystem = Filesystem {
    name: "tmpfs",
    about: "memory alone, gone with the unmount: how fast the work itself is, without any disk",
    // There is nothing to make, and no device is asked.
    tools: &[("mount", "mount")],
    mounting: Mounting {
        command: |driver, spec| {
            let nothing = FsSpec { device: Path::new(driver.name), ..spec.clone() };
            command(driver.name, &spec.mount, &nothing)
        },
        ..Mounting::DEFAULT
    },
    // Documentation/filesystems/tmpfs.rst: `size` goes up to half of the machine's memory unless it is given.
    limits: Limits { file: Some(VFS_FILE), ..Limits::DEFAULT },
    facts: &[("df", &["df", "--output=size,iused", MOUNT_POINT])],
    versions: &[("mount", &["mount", "--version"])],
    features: Features { more: &[CREATION_TIME], ..Features::DEFAULT },
    volatile: true,
    ..Filesystem::DEFAULT
};
