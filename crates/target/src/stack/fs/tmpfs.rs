//! tmpfs: files in memory and nowhere else, as what the others can be held against.

use super::feature::CREATION_TIME;
use super::{Filesystem, FsSpec, MOUNT_POINT, VFS_FILE, mount_options};
use std::path::Path;

pub(crate) const TMPFS: Filesystem = Filesystem {
    name: "tmpfs",
    about: "memory alone, gone with the unmount: how fast the work itself is, without any disk",
    // There is nothing to make, and no device is asked.
    tools: &[("mount", "mount")],
    mount: |driver, spec| {
        let nothing = FsSpec { device: Path::new("tmpfs"), ..spec.clone() };
        mount_options::command(driver.kernel_type(), &spec.mount, &nothing)
    },
    // Documentation/filesystems/tmpfs.rst: `size` goes up to half of the machine's memory unless it is given.
    largest_file: Some(VFS_FILE),
    facts: &[("df", &["df", "--output=size,iused", MOUNT_POINT])],
    versions: &[("mount", &["mount", "--version"])],
    more_features: &[CREATION_TIME],
    volatile: true,
    ..Filesystem::DEFAULT
};
