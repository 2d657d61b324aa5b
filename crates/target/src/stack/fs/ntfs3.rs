//! Windows' NTFS by the driver that Linux has had since 5.15.

use super::ntfs::MADE;
use super::*;

pub(crate) const NTFS3: Filesystem = Filesystem {
    name: "ntfs3",
    about: "Windows' file system by the driver of Linux 5.15 and later",
    kernel: Kernel::with("Linux 5.15 and later can have it; of Debian's kernels that of trixie (6.12) does"),
    ..MADE
};
