//! Names of mount options: those that every file system takes (mount(8) of util-linux 2.41), and those of ext2 to ext4, xfs,
//! btrfs and f2fs (ext4(5), xfs(5), btrfs(5), Documentation/filesystems of Linux 6.18), with options that are gone.

/// In front of what each has of its own.
macro_rules! named {
    ($($name:literal)*) => {
        &[
            "async", "atime", "context", "defaults", "defcontext", "dev", "diratime", "dirsync", "exec", "fscontext", "group",
            "iversion", "lazytime", "loud", "mand", "nodev", "noatime", "nodiratime", "noexec", "noiversion", "nolazytime",
            "nomand", "norelatime", "nostrictatime", "nosuid", "nosymfollow", "nouser", "owner", "relatime", "remount",
            "ro", "rootcontext", "rw", "silent", "strictatime", "suid", "symfollow", "sync", "user", "users",
            $($name),*
        ]
    };
}

pub(crate) const EXT: &[&str] = named!(
    "abort" "acl" "auto_da_alloc" "barrier" "bh" "block_validity" "bsddf" "bsdgroups" "check" "commit" "data" "data_err" "dax"
    "debug" "debug_want_extra_isize" "delalloc" "dioread_lock" "dioread_nolock" "discard" "errors" "fc_debug_force"
    "fc_debug_max_replay" "grpid" "grpjquota" "grpquota" "i_version" "init_itable" "inlinecrypt" "inode_readahead_blks"
    "journal" "journal_async_commit" "journal_checksum" "journal_dev" "journal_ioprio" "journal_path" "jqfmt"
    "max_batch_time" "max_dir_size_kb" "mb_optimize_scan" "mbcache" "mblk_io_submit" "min_batch_time" "minixdf" "no_mbcache"
    "no_prefetch_block_bitmaps" "noacl" "noauto_da_alloc" "nobarrier" "nobh" "noblock_validity" "nocheck" "nodelalloc"
    "nodioread_nolock" "nodiscard" "nogrpid" "noinit_itable" "nojournal_checksum" "noload" "nombcache"
    "nomblk_io_submit" "noquota" "norecovery" "noreservation" "nouid32" "nouser_xattr" "nowarn_on_error" "oldalloc" "orlov"
    "prefetch_block_bitmaps" "prjquota" "quota" "reservation" "resgid" "resuid" "sb" "stripe" "sysvgroups"
    "test_dummy_encryption" "user_xattr" "usrjquota" "usrquota" "warn_on_error"
);

pub(crate) const XFS: &[&str] = named!(
    "allocsize" "attr2" "barrier" "bsdgroups" "dax" "discard" "filestreams" "gqnoenforce" "gquota" "grpid" "grpquota" "ikeep"
    "inode32" "inode64" "largeio" "lifetime" "logbsize" "logbufs" "logdev" "max_atomic_write" "max_open_zones" "noalign"
    "noattr2" "nobarrier" "nodiscard" "nogrpid" "noikeep" "nolargeio" "nolifetime" "noquota" "norecovery" "nouuid"
    "pqnoenforce" "pquota" "prjquota" "qnoenforce" "quota" "rtdev" "sunit" "swalloc" "swidth" "sysvgroups" "uqnoenforce"
    "uquota" "usrquota" "wsync"
);

pub(crate) const BTRFS: &[&str] = named!(
    "acl" "alloc_start" "autodefrag" "barrier" "check_int" "check_int_data" "check_int_print_mask" "clear_cache" "commit"
    "compress" "compress-force" "datacow" "datasum" "degraded" "device" "discard" "enospc_debug" "fatal_errors"
    "flushoncommit" "fragment" "inode_cache" "max_inline" "metadata_ratio" "noacl" "noautodefrag" "nobarrier"
    "noclear_cache" "nodatacow" "nodatasum" "nodiscard" "noenospc_debug" "noflushoncommit" "noinode_cache" "nologreplay"
    "norecovery" "nospace_cache" "nossd" "nossd_spread" "notreelog" "recovery" "ref_tracker" "ref_verify"
    "rescan_uuid_tree" "rescue" "skip_balance" "space_cache" "ssd" "ssd_spread" "subvol" "subvolid" "subvolrootid"
    "thread_pool" "treelog" "usebackuproot" "user_subvol_rm_allowed"
);

pub(crate) const F2FS: &[&str] = named!(
    "acl" "active_logs" "age_extent_cache" "alloc_mode" "atgc" "background_gc" "barrier" "checkpoint" "checkpoint_merge"
    "compress_algorithm" "compress_cache" "compress_chksum" "compress_extension" "compress_log_size" "compress_mode"
    "data_flush" "disable_ext_identify" "disable_roll_forward" "discard" "discard_unit" "errors" "extent_cache" "fastboot"
    "fault_injection" "fault_type" "flush_merge" "fsync_mode" "gc_merge" "grpjquota" "grpquota" "heap" "inline_data"
    "inline_dentry" "inline_xattr" "inline_xattr_size" "inlinecrypt" "io_bits" "jqfmt" "lookup_mode" "memory" "mode" "no_heap"
    "noacl" "nobarrier" "nocheckpoint_merge" "nocompress_extension" "nodiscard" "noextent_cache" "noflush_merge" "nogc_merge"
    "noinline_data" "noinline_dentry" "noinline_xattr" "noquota" "norecovery" "nouser_xattr" "prjjquota" "prjquota" "quota"
    "reserve_node" "reserve_root" "resgid" "resuid" "test_dummy_encryption" "user_xattr" "usrjquota" "usrquota" "whint_mode"
);

#[cfg(test)]
mod tests {
    use crate::stack::fs;

    /// Variants and defaults of our own are no slips.
    #[test]
    fn what_drivers_mount_with_is_known() {
        for driver in fs::ALL.iter().filter(|driver| !driver.mounting.options.is_empty()) {
            let options = driver.variants.iter().flat_map(|variant| variant.mount).chain(&driver.mounting.no_discard);
            for option in options {
                let name = option.split('=').next().unwrap_or_default();
                assert!(driver.mounting.options.contains(&name), "{}: {option}", driver.name);
            }
        }
    }
}
