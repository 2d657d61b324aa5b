//! XFS.

use super::{Argv, Filesystem, Wish, argv, make};

pub struct Xfs;

impl Filesystem for Xfs {
    fn name(&self) -> &'static str {
        "xfs"
    }

    fn about(&self) -> &'static str {
        "journalling, for large files and many processors"
    }

    fn mkfs(&self, wish: &Wish) -> Argv {
        let keep: &[&str] = if wish.discard { &[] } else { &["-K"] };
        make(&[&["mkfs.xfs", "-f", "-q"], keep].concat(), wish)
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("mkfs.xfs", "xfsprogs"), ("xfs_info", "xfsprogs")]
    }

    /// mkfs.xfs refuses less since xfsprogs 5.19.
    fn minimum_size(&self) -> u64 {
        300 << 20
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![("xfs_info", argv(["xfs_info", &wish.mount_point()]))]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("xfsprogs", argv(["mkfs.xfs", "-V"]))]
    }

    /// Gone since Linux 4.19, but older kernels take it.
    fn weakens(&self, option: &str) -> bool {
        option == "nobarrier"
    }
}
