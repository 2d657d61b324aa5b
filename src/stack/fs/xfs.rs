//! XFS.

use super::feature::{CRASH_CONSISTENCY, CREATION_TIME, Found, GROW, METADATA_CHECKSUMS, REFLINKS, changed};
use super::{Argv, Filesystem, VFS_FILE, Wish, argv, make};

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

    fn free_space(&self, wish: &Wish) -> Option<Argv> {
        Some(argv(["xfs_db", "-r", "-c", "freesp -s", &wish.device()]))
    }

    fn tools(&self) -> &'static [(&'static str, &'static str)] {
        &[("mkfs.xfs", "xfsprogs"), ("xfs_info", "xfsprogs")]
    }

    /// mkfs.xfs refuses less since xfsprogs 5.19.
    fn minimum_size(&self) -> u64 {
        300 << 20
    }

    /// fs/xfs/xfs_super.c of Linux for files. Red Hat and Oracle give 8 EiB for both, and support less.
    fn largest_file(&self) -> Option<u64> {
        Some(VFS_FILE)
    }

    fn largest_volume(&self) -> Option<u64> {
        Some(VFS_FILE)
    }

    fn facts(&self, wish: &Wish) -> Vec<(&'static str, Argv)> {
        vec![("xfs_info", argv(["xfs_info", &wish.mount_point()]))]
    }

    fn versions(&self) -> Vec<(&'static str, Argv)> {
        vec![("xfsprogs", argv(["mkfs.xfs", "-V"]))]
    }

    /// xfs_growfs(8) takes away no more than the unused end of the last allocation group: that is no shrinking.
    fn features(&self) -> &'static [&'static str] {
        &[CRASH_CONSISTENCY, GROW]
    }

    fn more_features(&self) -> &'static [&'static str] {
        &[CREATION_TIME, METADATA_CHECKSUMS, REFLINKS]
    }

    /// Old versions of mkfs.xfs left them out by default, so they count where xfs_info(8) shows them. Its folding of
    /// case (ascii-ci) knows ASCII alone and does not count.
    fn features_in_effect(&self, found: &Found) -> Vec<&'static str> {
        let flags = [("crc=1", METADATA_CHECKSUMS), ("reflink=1", REFLINKS)];
        let shown = |flag: &str| found.says("xfs_info", "meta-data=", flag) == Some(true);
        let with: Vec<&'static str> = flags.iter().filter(|(flag, _)| shown(flag)).map(|(_, name)| *name).collect();
        changed(self.features(), &[], &with)
    }

    /// Gone since Linux 4.19, but older kernels take it.
    fn weakens(&self, option: &str) -> bool {
        option == "nobarrier"
    }
}
