//! The owner of a guest's function, a row each. The first row that fits counts.

/// What the processor did, as tables and sentences call it.
pub(crate) const PROGRAM: &str = "the program";
/// Functions that only a program runs which serves files by FUSE.
pub(crate) const SERVES: [&str; 2] = ["fuse_dev_do_read", "fuse_dev_do_write"];
const COPY: &str = "copying to and from user space";
const VFS: &str = "page cache and VFS";
const LOOKUP: &str = "lookup in trees and directories";
const TREE: &str = "tree and directory changes";
const ALLOCATION: &str = "allocation of space";
const LOG: &str = "journal, log and transactions";
const CHECKSUMS: &str = "checksums";
pub(crate) const COMPRESSION: &str = "compression";
const ENCRYPTION: &str = "encryption";
const ACCOUNTING: &str = "space accounting";
const QUOTAS: &str = "quotas and back references";
const DATA: &str = "the file system's reads and writes";
const FILE_SYSTEM: &str = "the file system, other";
pub(crate) const LAYER: &str = "layers below the file system";
const BLOCK: &str = "block layer";
const DRIVER: &str = "the simulated disk's driver";
/// Known by what calls it.
pub(crate) const LOOP: &str = "the loop device and its file";
const MEMORY: &str = "memory management";
const PROCESSES: &str = "process start and exit";
const SCHEDULER: &str = "scheduler and idle";
const TIMERS: &str = "interrupts and timers";
const LOCKS: &str = "locks and waiting";
const ROOT: &str = "the guest's own root";
const MOVES: &str = "moves in memory, of any caller";
const ENTRY: &str = "system calls, entry and exit";
pub(crate) const OTHER: &str = "other";

/// Prefixes of functions that only one module has.
pub(crate) const MODULES: [(&str, &str); 7] = [
    ("ext4_", "ext4"),
    ("jbd2_", "jbd2"),
    ("xfs_", "xfs"),
    ("xlog_", "xfs"),
    ("btrfs_", "btrfs"),
    ("f2fs_", "f2fs"),
    ("bch2_", "bcachefs"),
];
/// Module, or none for the kernel itself, where `*` is any; symbols, with `*` for any letters;
/// owner.
type Row = (&'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("simdisk", &["*"], DRIVER),
    ("squashfs", &["*"], ROOT),
    ("overlay", &["*"], ROOT),
    ("", &["squashfs_*", "ovl_*"], ROOT),
    ("", &["_raw_*", "__raw_*", "__rcu_read_*"], LOCKS),
    ("", &["error_*", "exit_to_user*", "irq_fpu*", "kernel_fpu*"], ENTRY),
    ("*", &["blake2s_*", "chacha_*"], OTHER),
    // Whole modules; labels of assembly in them have names such as "full_block".
    ("crc*", &["*"], CHECKSUMS),
    ("libcrc*", &["*"], CHECKSUMS),
    ("xxhash*", &["*"], CHECKSUMS),
    ("blake2b*", &["*"], CHECKSUMS),
    ("sha256*", &["*"], CHECKSUMS),
    ("zstd_*", &["*"], COMPRESSION),
    ("lzo*", &["*"], COMPRESSION),
    ("lz4*", &["*"], COMPRESSION),
    ("zlib_*", &["*"], COMPRESSION),
    ("aes*", &["*"], ENCRYPTION),
    ("xts", &["*"], ENCRYPTION),
    ("cbc", &["*"], ENCRYPTION),
    ("essiv", &["*"], ENCRYPTION),
    ("gf128mul", &["*"], ENCRYPTION),
    ("ghash*", &["*"], ENCRYPTION),
    ("crypt*", &["*"], ENCRYPTION),
    ("", &["aes_*", "*skcipher*", "crypto_aes*", "crypto_cipher*", "crypto_aead*", "xts_*", "gf128mul*"], ENCRYPTION),
    ("bfq", &["*"], BLOCK),
    ("kyber*", &["*"], BLOCK),
    ("mq_deadline", &["*"], BLOCK),
    // What many call: checksums and compression are named wherever they are.
    ("*", &["*crc32*", "crc_*", "crc16*", "*csum*", "*cksum*", "*checksum*", "xxh64*", "xxh32*", "blake2b*", "crypto_shash*", "sha256*", "__sha256*"], CHECKSUMS),
    ("*", &["ZSTD_*", "zstd_*", "HUF_*", "FSE_*", "HIST_*", "LZ4_*", "LZ4HC_*", "lz4_*", "lzo1x_*", "lzo_*", "lzorle*", "zlib_*", "inflate_*",
        "deflate_*", "longest_match*", "*compress*", "xz_dec*", "BIT_*", "heuristic*"], COMPRESSION),
    // File systems, by what the function is for.
    ("btrfs", &["*qgroup*", "*ulist_*", "*backref*", "*prelim*", "find_parent_nodes", "*find_all_roots*", "*find_all_leafs*", "resolve_indirect*", "maybe_fs_roots",
        "btrfs_get_fs_root_commit_root"], QUOTAS),
    ("jbd2", &["*"], LOG),
    ("ext4", &["*journal*", "ext4_*commit*", "ext4_sync_file*", "ext4_fc_*"], LOG),
    ("xfs", &["xlog_*", "xfs_log_*", "xfs_trans_*", "*cil*", "xfs_*_item_*", "xfs_ail*", "xfsaild*", "xfs_buf_item*", "xfs_defer*"], LOG),
    ("btrfs", &["*transaction*", "*tree_log*", "*_log_*", "btrfs_log*", "*log_root*", "btrfs_commit*", "*delayed_ref*", "btrfs_sync_file*", "write_ctree*",
        "write_all_supers", "wait_dev*", "record_root*", "*_trans_*", "add_delayed*"], LOG),
    ("f2fs", &["*checkpoint*", "*_cp_*", "*sync_*"], LOG),
    ("btrfs", &["free_extent_buffer*", "*free_path*"], TREE),
    ("btrfs", &["free_extent_map*", "free_extent_state*"], DATA),
    ("ext4", &["ext4_mb_*", "mb_*", "*new_blocks*", "*free_blocks*", "ext4_new_inode*", "__ext4_new_inode*", "ext4_free_inode*", "*bitmap*", "ext4_inode_to_goal*",
        "find_group*", "ext4_discard_pre*", "*prealloc*"], ALLOCATION),
    ("xfs", &["xfs_alloc*", "xfs_free_*", "xfs_ialloc*", "xfs_dialloc*", "xfs_difree*", "xfs_bmap_*alloc*", "xfs_inobt*", "xfs_extent_busy*", "xfs_rmap*",
        "xfs_refcount*", "xfs_filestream*", "xfs_perag*"], ALLOCATION),
    ("btrfs", &["*free_extent*", "*free_space*", "*reserve_extent*", "*alloc_reserved*", "*alloc_tree_block*", "*block_group*", "*find_free*", "*free_tree_block*",
        "*chunk*", "*discard*", "tree_insert_offset", "tree_search_offset", "*bitmap*", "cluster*", "btrfs_*_cluster*"], ALLOCATION),
    ("f2fs", &["*segment*", "*allocate*", "*_seg_*", "*sit_*", "*nid*", "*curseg*", "*victim*", "*gc*"], ALLOCATION),
    ("ext4", &["*reserve*", "*quota*", "ext4_da_release*", "ext4_da_update*", "*free_clusters"], ACCOUNTING),
    ("xfs", &["*quota*", "xfs_qm*", "xfs_mod_*", "*reserve*", "xfs_icsb*"], ACCOUNTING),
    ("btrfs", &["*space_info*", "*block_rsv*", "*reserve*", "*delalloc_release*", "*delalloc_space*", "*flush_space*", "*outstanding*",
        "btrfs_calc*", "*set_delalloc*", "*clear_delalloc*", "btrfs_get_alloc_profile"], ACCOUNTING),
    ("", &["percpu_counter*", "__percpu_counter*", "dquot*", "__dquot*", "inode_*_bytes", "__inode_*_bytes"], ACCOUNTING),
    ("ext4", &["*lookup*", "*find_entry*", "dx_*", "*htree*", "*readdir*", "*dirhash*", "ext4fs_*", "str2hashbuf*", "*search_dir*", "*iget*", "*get_inode_loc*",
        "*ext_find_extent*", "ext4_find_extent*", "*es_lookup*", "*_check_dir*", "ext4_bread*", "ext4_getblk", "*xattr_get*", "*xattr_find*", "ext4_match*"], LOOKUP),
    ("xfs", &["*lookup*", "xfs_dir2_*get*", "xfs_readdir", "xfs_iread*", "xfs_iget*", "xfs_da_hash*", "xfs_da3_node_look*", "xfs_btree_lookup*", "xfs_dir2_leaf_search*",
        "xfs_btree_read*", "xfs_btree_key*", "xfs_buf_*get*", "xfs_buf_read*", "xfs_buf_find*", "xfs_attr_get*", "xfs_imap*", "xfs_iext_look*"], LOOKUP),
    ("btrfs", &["*search_slot*", "*lookup*", "*bin_search*", "*readdir*", "*read_locked_inode*", "btrfs_iget*", "*read_block_for_search*", "*find_extent_buffer*",
        "*next_leaf*", "*prev_leaf*", "*previous*", "*search*", "*key_cmp*", "*comp_cpu_keys*", "*comp_keys*", "btrfs_get_64", "btrfs_get_32", "btrfs_get_16", "btrfs_get_8",
        "btrfs_get_token*", "btrfs_name_hash", "*read_extent_buffer", "*memcmp_extent*", "reada_*", "*unlock_up*", "*release_path*", "*free_path*", "*find_root*"], LOOKUP),
    ("f2fs", &["*lookup*", "*find_*", "*readdir*", "*iget*", "*get_node_page*", "*dentry_hash*", "*get_dnode*"], LOOKUP),
    ("ext4", &["*dir*", "*dentry*", "*entry*", "ext4_ext_*", "__ext4_ext*", "*es_*", "ext4_*link*", "ext4_create", "ext4_*rename*", "*orphan*", "*truncate*",
        "*mark_inode*", "*mark_iloc*", "*update_inode*", "*evict*", "*setattr*", "*xattr*", "ext4_do_update*", "ext4_fill_raw*"], TREE),
    ("xfs", &["xfs_btree_*", "xfs_bmbt*", "xfs_bmap*", "xfs_dir*", "xfs_da*", "xfs_attr*", "xfs_iext*", "xfs_create*", "xfs_remove*", "xfs_rename*", "xfs_*link*",
        "xfs_inactive*", "xfs_iunlink*", "xfs_itruncate*", "xfs_ifree*", "xfs_setattr*", "xfs_bunmap*", "__xfs_bunmap*", "*inodegc*"], TREE),
    ("btrfs", &["*insert*", "*del_*", "*delete*", "*split*", "*push_*", "*balance*", "*cow_block*", "*set_extent_buffer*", "*memmove_extent*", "*memcpy_extent*",
        "*copy_extent_buffer*", "*write_extent_buffer*", "btrfs_set_*", "*setup_items*", "*update_inode*", "*fill_inode*", "*drop_extents*", "*truncate*", "*orphan*",
        "*unlink*", "btrfs_create", "btrfs_mkdir", "btrfs_rename*", "*new_inode*", "*add_link*", "*evict*", "*delayed_*", "*extend_item*", "*ref_*",
        "*fixup*", "*eb_*", "*extent_buffer*", "*tree_block*", "*dirty_inode*", "*tree_mod*", "*root_node*", "*header*", "*node_key*"], TREE),
    ("f2fs", &["*dentry*", "*dir*", "*node*", "*inode*", "*truncate*", "*unlink*", "*xattr*"], TREE),
    ("ext4", &["*page*", "*folio*", "*bio*", "*end_io*", "*write*", "*read*", "*map_blocks*", "*iomap*", "*get_block*"], DATA),
    ("xfs", &["*ioend*", "*end_io*", "*write*", "*read*", "*map_blocks*", "*iomap*", "xfs_buf*", "*file_*"], DATA),
    ("btrfs", &["*bio*", "*page*", "*folio*", "*end_io*", "*ordered*", "*extent_state*", "*extent_bit*", "*extent_io*", "*extent_map*", "*em_*", "*cow_file*", "*run_delalloc*",
        "*async*", "*submit*", "*write*", "*read*", "*delalloc*", "*lock_extent*", "*file_*", "*work*", "*extent_lock*", "*extent_tree*", "tree_search*", "*rb_*"], DATA),
    ("f2fs", &["*bio*", "*page*", "*folio*", "*write*", "*read*", "*data*"], DATA),
    ("ext4", &["*"], FILE_SYSTEM),
    ("xfs", &["*"], FILE_SYSTEM),
    ("btrfs", &["*"], FILE_SYSTEM),
    ("f2fs", &["*"], FILE_SYSTEM),
    ("mbcache", &["*"], FILE_SYSTEM),
    ("zfs", &["*"], FILE_SYSTEM),
    ("spl", &["*"], FILE_SYSTEM),
    ("bcachefs", &["*"], FILE_SYSTEM),
    ("nilfs2", &["*"], FILE_SYSTEM),
    ("jfs", &["*"], FILE_SYSTEM),
    ("reiserfs", &["*"], FILE_SYSTEM),
    ("dm_*", &["*"], LAYER),
    ("raid*", &["*"], LAYER),
    ("md_mod", &["*"], LAYER),
    ("bcache", &["*"], LAYER),
    // The kernel itself.
    ("", &["copy_user*", "_copy_*user*", "copy_*user*", "rep_movs*", "*_iter_copy*", "copy_page_*iter*", "_copy_*iter*", "copyin*", "copyout*", "fault_in*",
        "clear_user*", "__clear_user*", "strncpy_from_user*", "strnlen_user*", "*get_user*", "*put_user*", "*iov_iter*", "*copy_from_iter*"], COPY),
    ("", &["blk_*", "__blk*", "bio_*", "__bio*", "submit_bio*", "__submit_bio*", "dd_*", "*elv_*", "elevator*", "*plug*", "*bvec*", "sbitmap*", "__sbitmap*", "disk_*", "part_*",
        "*rq_qos*", "wbt_*", "blkdev*", "bdev_*", "blkcg*", "__rq_*", "block_*", "guard_bio*", "*diskstat*", "deadline_*", "ioc_*", "mempool*", "*_merge_bio*", "__get_request*",
        "blkg*", "rq_*", "update_io_ticks", "*_io_acct*", "attempt_merge", "should_fail_bio"], BLOCK),
    ("dm_mod", &["*"], LAYER),
    ("", &["*exec*", "load_elf*", "elf_*", "*fork*", "copy_process*", "copy_mm*", "dup_mm*", "dup_task*", "do_exit*", "exit_*", "release_task*", "wait_*task*", "do_wait*",
        "kernel_clone*", "__do_sys_clone*", "mm_release*", "begin_new*", "setup_new*", "copy_page_range*", "copy_pte*", "free_task*", "*signal*", "*pid*", "ptrace*", "taskstats*", "acct_*", "*zap_*",
        "unmap_page_range", "unmap_vmas*", "free_pgd*", "free_pgtables", "exit_mmap", "__mmdrop", "*rlimit*", "sched_exec", "*binfmt*"], PROCESSES),
    ("", &["*fault*", "handle_mm*", "__handle_mm*", "do_anonymous*", "*vma*", "*mmap*", "*munmap*", "*brk*", "*slab*", "kmem*", "__kmem*", "kmalloc*", "__kmalloc*", "kfree*", "*kfree",
        "kvfree*", "kvmalloc*", "vmalloc*", "vfree*", "*alloc_pages*", "get_page_from*", "*free_page*", "free_unref*", "free_pcp*", "free_one_page*", "rmqueue*", "__rmqueue*",
        "*lru*", "*shrink*", "*pte*", "*pmd*", "*pud*", "*p4d*", "*pgd*", "*tlb*", "clear_page*", "*memcg*", "mem_cgroup*", "__mod_*_state", "mod_*_state", "__mod_lruvec*",
        "*obj_cgroup*", "*rmap*", "*anon*", "*maple*", "mas_*", "mtree*", "___slab*", "__slab*", "setup_object*", "*charge*", "post_alloc*", "prep_*", "*compound*", "__alloc*",
        "workingset*", "kswapd*", "*vmstat*", "*_zone*", "zone_*", "*_objects", "discard_slab", "allocate_slab", "*unmap*", "new_slab", "*percpu*alloc*", "pcpu_*", "kvmemdup",
        "kmemdup*", "kstrdup*", "krealloc*", "ksize", "*should_fail*", "*user_pages*", "gup_*", "cache_from_obj", "*mem_cgroup*", "mt_*", "policy_node*", "PageHeadHuge", "*swap_cache", "*object_size", "*heap_object", "__virt_addr*", "*cgroup_throttle*",
        "*shmem_is_huge", "do_set_pte", "filemap_map_pages", "next_uptodate*", "cond_accept_memory", "access_error"], MEMORY),
    ("", &["*filemap*", "*folio*", "*page_cache*", "*pagecache*", "find_get*", "__find_get*", "pagevec*", "*readahead*", "*ra_*", "force_page_*", "xas_*", "__xas*", "xa_*", "__xa_*",
        "xarray*", "*writeback*", "*balance_dirty*", "wb_*", "*_wb_*", "*dirty*", "*truncate_*", "*inode*", "*dentry*", "d_*", "__d_*", "*lookup*", "path_*", "*link_path*", "walk_*",
        "step_into*", "*namei*", "*filename*", "getname*", "putname*", "vfs_*", "do_sys_*", "ksys_*", "*file*", "fput*", "__fput*", "fget*", "__fget*", "fdget*", "__fdget*",
        "generic_*", "*write*", "*read*", "iomap*", "*buffer*", "*bh*", "*bread*", "filldir*", "iterate_dir*", "*getdents*", "*stat*", "*open*", "*close*", "*unlink*", "*rename*", "*mkdir*",
        "*rmdir*", "*mnt*", "*mount*", "dput*", "dget*", "iput*", "iget*", "__iget*", "*fsnotify*", "*security*", "apparmor*", "*selinux*", "*cap_*", "*permission*", "may_*", "*xattr*",
        "*acl*", "*super*", "sb_*", "*sync*", "splice*", "pipe_*", "*splice*", "*mapping*", "page_*", "set_page*", "*_page", "*pages", "*fsync*", "legitimize*", "complete_walk", "pick_link",
        "terminate_walk", "*nameidata*", "unlazy*", "try_to_unlazy*", "lockref*", "mb_cache*", "touch_atime", "*_time", "hash_name", "full_name_hash", "set_root", "nd_*", "in_group_p",
        "*_access*", "*common_lsm*", "lock*_fs*", "*utimes*", "*chown*", "*chmod*", "notify_change", "*notify*", "do_dentry*", "do_fcntl", "*fd", "*_fd_*", "mark_page*", "__cleancache*",
        "wake_up_page*", "*end_page*", "*dcache*", "shmem*", "tomoyo*", "map_id*", "common_perm*", "atime_needs*", "fscrypt*", "wbc_*", "__getblk*", "*ioprio", "*radix_tree*", "*rstat*", "make_vfs*id", "rw_verify_area"], VFS),
    ("", &["*sched*", "*schedule*", "*switch*", "pick_*", "*enqueue*", "*dequeue*", "update_curr*", "*_fair*", "*load_avg*", "*idle*", "try_to_wake*", "ttwu*", "__ttwu*", "wake_up*",
        "__wake_up*", "*wakeup*", "default_wake*", "autoremove*", "*cfs*", "*_rq*", "*runtime*", "*vruntime*", "native_safe_halt", "*cpuidle*", "*psi_*", "psi*", "*cpuacct*", "*worker*", "*work*",
        "kthread*", "*queue_*", "*swait*", "complete", "complete_all", "*completion*", "set_next*", "put_prev*", "place_*", "*resched*", "check_preempt*", "reweight*", "update_*",
        "*yield*", "*nohz*", "menu_*", "*cpu_startup*", "do_idle", "*rt_*", "*_dl_*", "cpuset*", "prepare_to_wait*", "finish_wait*", "*io_wait*", "*bit_wait*", "wait_*", "bit_*", "delayacct*",
        "task_*", "sched*", "*affine*", "select_task*", "*cpumask*"], SCHEDULER),
    ("", &["*timer*", "*tick_*", "*ktime*", "*clock*", "*irq*", "*interrupt*", "*apic*", "*sysvec*", "*softirq*", "*hrtimer*", "*rcu*", "note_gp*", "*jiffies*", "read_tsc", "native_sched*",
        "*lapic*", "rb_*", "__rb_*", "timerqueue*", "native_write_msr", "native_*msr*", "*hres*", "*timekeep*", "run_local*", "account_*", "*cputime*", "*trace*", "error_*", "idtentry*",
        "*kprobe*", "*kretprobe*", "*optimized*", "*perf*", "pvclock*", "*xapic*", "native_apic*", "*delay*", "*_tsc*", "enqueue_hrtimer"], TIMERS),
    ("", &["*lock*", "*mutex*", "*sem_*", "*sema*", "down_*", "up_*", "*rwsem*", "rwsem*", "*osq*", "*preempt*", "__init_waitqueue*", "*refcount*", "*atomic*", "*llist*", "*list_*", "*might*",
        "__cond_resched", "add_wait*", "remove_wait*", "*wait*", "*futex*", "*lockdep*", "up", "down", "*xchg*"], LOCKS),
    ("", &["entry_*", "do_syscall*", "syscall_*", "*entry*", "x64_sys*", "__x64*", "ret_from*", "swapgs*", "common_interrupt*", "asm_*", "native_iret*", "exit_to_user*", "*retpoline*",
        "__x86*", "paranoid*", "restore_*", "*retbleed*", "srso*", "zen_*", "fpu*", "*fpregs*", "*xsave*", "*xstate*", "save_fpregs*", "__fentry__", "*return_thunk*", "sync_regs", "arch_exit_to_user*"], ENTRY),
    ("", &["memcpy*", "__memcpy*", "memset*", "__memset*", "memmove*", "__memmove*", "memcmp*", "memchr*", "str*", "*_str*", "clear_page*", "copy_page*", "__memcpy_*", "*hweight*", "*find_*bit*"], MOVES),
];

/// Whether functions have such an owner.
pub fn is_owner(name: &str) -> bool {
    ROWS.iter().any(|(_, _, owner)| *owner == name)
}

/// The owner of a function of the kernel's, by its name and its module.
pub(crate) fn owner(symbol: &str, module: &str) -> &'static str {
    // What a compiler has split off: "a.part.0", "a.cold".
    let symbol = symbol.split('.').next().unwrap_or(symbol);
    let fits = |(of, symbols, _): &&Row| fits(of, module) && symbols.iter().any(|pattern| fits(pattern, symbol));
    ROWS.iter().find(fits).map_or(OTHER, |(_, _, owner)| owner)
}

/// `*` stands for any letters, and none.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return text.ends_with(piece);
        }
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_letters() {
        for (pattern, text, wanted) in [
            ("*", "", true),
            ("", "a", false),
            ("ab", "ab", true),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("*ab*", "cabd", true),
            ("a*b*c", "a-bb-c", true),
            ("a*b*c", "ac-b", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, text), wanted, "{pattern} {text}");
        }
    }

    /// Of each owner one that the kernel surely has.
    #[test]
    fn functions_have_the_owners_that_their_authors_would_name() {
        for (symbol, module, wanted) in [
            ("wake", "simdisk", DRIVER),
            ("squashfs_readahead", "squashfs", ROOT),
            ("crc32c_pcl_intel_update", "crc32c_intel", CHECKSUMS),
            ("btrfs_csum_one_bio", "btrfs", CHECKSUMS),
            ("xfs_buf_update_cksum", "xfs", CHECKSUMS),
            ("aesni_xts_encrypt", "aesni_intel", ENCRYPTION),
            ("bfq_dispatch_request", "bfq", BLOCK),
            ("ZSTD_compressBlock_fast.part.0", "zstd_compress", COMPRESSION),
            ("jbd2_journal_commit_transaction", "jbd2", LOG),
            ("xlog_write", "xfs", LOG),
            ("btrfs_commit_transaction", "btrfs", LOG),
            ("ext4_mb_new_blocks", "ext4", ALLOCATION),
            ("find_free_extent", "btrfs", ALLOCATION),
            ("xfs_alloc_ag_vextent", "xfs", ALLOCATION),
            ("btrfs_block_rsv_release", "btrfs", ACCOUNTING),
            ("btrfs_qgroup_account_extent", "btrfs", QUOTAS),
            ("ulist_add_merge", "btrfs", QUOTAS),
            ("prelim_ref_insert", "btrfs", QUOTAS),
            ("btrfs_add_delayed_ref_head", "btrfs", LOG),
            ("ext4_htree_fill_tree", "ext4", LOOKUP),
            ("btrfs_search_slot", "btrfs", LOOKUP),
            ("xfs_dir_lookup", "xfs", LOOKUP),
            ("btrfs_insert_empty_items", "btrfs", TREE),
            ("ext4_add_entry", "ext4", TREE),
            ("xfs_btree_insert", "xfs", TREE),
            ("ext4_readpage", "ext4", DATA),
            ("delay_map", "dm_delay", LAYER),
            ("copy_user_generic_string", "", COPY),
            ("blk_mq_submit_bio", "", BLOCK),
            ("load_elf_binary", "", PROCESSES),
            ("kmem_cache_alloc", "", MEMORY),
            ("filemap_read", "", VFS),
            ("link_path_walk", "", VFS),
            ("__schedule", "", SCHEDULER),
            ("hrtimer_interrupt", "", TIMERS),
            ("mutex_lock", "", LOCKS),
            ("entry_SYSCALL_64", "", ENTRY),
            ("_raw_spin_lock_irqsave", "", LOCKS),
            ("full_block", "crc32c_intel", CHECKSUMS),
            ("free_extent_buffer", "btrfs", TREE),
            ("nothing_like_it", "", OTHER),
        ] {
            assert_eq!(owner(symbol, module), wanted, "{symbol} [{module}]");
        }
    }
}
