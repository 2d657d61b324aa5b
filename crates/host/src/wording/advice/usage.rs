//! How file systems are made and changed by hand, a row each.

pub(super) struct Usage {
    pub(super) name: &'static str,
    /// Without what only a measurement wants, such as words against questions and discards.
    pub(super) mkfs: &'static str,
    /// As `mount -t` takes it, where that is not the name.
    kind: &'static str,
    /// Mount options with which one that is mounted can be mounted anew; names, without their
    /// values.
    remounts: &'static [&'static str],
    /// Words of mkfs that `tune2fs` takes too, and its features.
    tunes: &'static [&'static str],
    /// Its fsck(8) repairs something when the machine starts. Those of xfs and btrfs do nothing;
    /// others have none, or one that checks all of it each time.
    pub(super) is_checked: bool,
    /// Mount options are properties.
    pub(super) is_pool: bool,
}

const USUAL: Usage =
    Usage { name: "", mkfs: "", kind: "", remounts: &[], tunes: &[], is_checked: false, is_pool: false };

/// Sorted by name; without images that are packed once.
pub(super) const USAGE: &[Usage] = &[
    Usage { name: "bcachefs", mkfs: "bcachefs format", ..USUAL },
    Usage { name: "btrfs", mkfs: "mkfs.btrfs", remounts: BTRFS, ..USUAL },
    Usage { name: "exfat", mkfs: "mkfs.exfat", is_checked: true, ..USUAL },
    Usage { name: "ext2", mkfs: "mkfs.ext2", tunes: TUNE2FS, is_checked: true, ..USUAL },
    Usage { name: "ext3", mkfs: "mkfs.ext3", remounts: EXT, tunes: TUNE2FS, is_checked: true, ..USUAL },
    Usage { name: "ext4", mkfs: "mkfs.ext4", remounts: EXT, tunes: TUNE2FS, is_checked: true, ..USUAL },
    Usage { name: "f2fs", mkfs: "mkfs.f2fs", is_checked: true, ..USUAL },
    Usage { name: "jfs", mkfs: "mkfs.jfs", is_checked: true, ..USUAL },
    Usage { name: "nilfs2", mkfs: "mkfs.nilfs2", ..USUAL },
    Usage { name: "ntfs", mkfs: "mkntfs -Q", ..USUAL },
    Usage { name: "ntfs-3g", mkfs: "mkntfs -Q", ..USUAL },
    Usage { name: "ntfs3", mkfs: "mkntfs -Q", ..USUAL },
    Usage { name: "reiser4", mkfs: "mkfs.reiser4", ..USUAL },
    Usage { name: "reiserfs", mkfs: "mkfs.reiserfs", is_checked: true, ..USUAL },
    Usage { name: "tmpfs", remounts: &["nr_inodes", "size"], ..USUAL },
    Usage { name: "udf", mkfs: "mkudffs --media-type=hd", ..USUAL },
    Usage { name: "vfat", mkfs: "mkfs.fat", is_checked: true, ..USUAL },
    Usage { name: "xfs", mkfs: "mkfs.xfs", ..USUAL },
    Usage { name: "zfs", mkfs: "zpool create", is_pool: true, ..USUAL },
];

/// mount(8), FILESYSTEM-INDEPENDENT MOUNT OPTIONS, without options that only a first mount takes.
const ANY: &[&str] = &[
    "lazytime", "noatime", "nodev", "nodiratime", "noexec", "nolazytime", "nosuid", "relatime", "ro", "rw",
    "strictatime", "sync",
];
/// btrfs(5), MOUNT OPTIONS.
const BTRFS: &[&str] = &[
    "autodefrag", "barrier", "commit", "compress", "compress-force", "datacow", "datasum", "discard", "flushoncommit",
    "max_inline", "noautodefrag", "nobarrier", "nodatacow", "nodatasum", "nodiscard", "noflushoncommit", "nossd",
    "notreelog", "ssd", "treelog",
];
/// ext4(5); `data=` and `nodelalloc` only a first mount takes.
const EXT: &[&str] = &[
    "auto_da_alloc", "barrier", "commit", "delalloc", "discard", "noauto_da_alloc", "nobarrier", "nodiscard", "stripe",
];
/// tune2fs(8): options, and features behind `-O`.
const TUNE2FS: &[&str] = &[
    "-L", "-m", "-r", "casefold", "dir_index", "encrypt", "fast_commit", "has_journal", "large_dir", "large_file",
    "metadata_csum", "project", "quota", "sparse_super", "uninit_bg", "verity",
];

impl Usage {
    pub(super) fn kind(&self) -> &'static str {
        if self.kind.is_empty() { self.name } else { self.kind }
    }

    pub(super) fn remounts(&self, option: &str) -> bool {
        let name = option.split('=').next().unwrap_or_default();
        self.remounts.contains(&name) || ANY.contains(&name)
    }

    /// Whether an option of mkfs and its value can be given to one that is there.
    pub(super) fn tunes(&self, option: &str, value: &str) -> bool {
        let known = |word: &str| self.tunes.contains(&word);
        match option {
            "-O" => !self.tunes.is_empty() && value.split(',').all(|feature| known(feature.trim_start_matches('^'))),
            _ => known(option),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(USAGE.is_sorted_by_key(|usage| usage.name));
        assert!([ANY, BTRFS, EXT, TUNE2FS].iter().all(|names| names.is_sorted()));
    }
}
