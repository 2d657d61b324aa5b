//! Names that strace prints for numbers: calls, flags, errors.

use libc::*;

/// A call by its name, its number, and which of its arguments are flags that mean something.
pub(crate) type Named = (&'static str, i64, &'static [usize]);

macro_rules! calls {
    ($($name:ident $number:ident $flags:expr;)*) => { &[$((stringify!($name), $number, &$flags),)*] };
}

const CALLS: &[Named] = calls! {
    openat SYS_openat [2];
    openat2 SYS_openat2 [];
    close SYS_close [];
    close_range SYS_close_range [2];
    read SYS_read [];
    write SYS_write [];
    readv SYS_readv [];
    writev SYS_writev [];
    pread64 SYS_pread64 [];
    pwrite64 SYS_pwrite64 [];
    preadv SYS_preadv [];
    pwritev SYS_pwritev [];
    preadv2 SYS_preadv2 [];
    pwritev2 SYS_pwritev2 [];
    lseek SYS_lseek [2];
    getdents64 SYS_getdents64 [];
    fstat SYS_fstat [];
    newfstatat SYS_newfstatat [3];
    statx SYS_statx [2];
    faccessat SYS_faccessat [];
    faccessat2 SYS_faccessat2 [3];
    readlinkat SYS_readlinkat [];
    mkdirat SYS_mkdirat [];
    unlinkat SYS_unlinkat [2];
    renameat SYS_renameat [];
    renameat2 SYS_renameat2 [4];
    linkat SYS_linkat [4];
    symlinkat SYS_symlinkat [];
    mknodat SYS_mknodat [2];
    fchmod SYS_fchmod [];
    fchmodat SYS_fchmodat [];
    fchmodat2 SYS_fchmodat2 [3];
    fchown SYS_fchown [];
    fchownat SYS_fchownat [4];
    utimensat SYS_utimensat [3];
    truncate SYS_truncate [];
    ftruncate SYS_ftruncate [];
    fallocate SYS_fallocate [1];
    fsync SYS_fsync [];
    fdatasync SYS_fdatasync [];
    sync_file_range SYS_sync_file_range [3];
    sync SYS_sync [];
    syncfs SYS_syncfs [];
    fadvise64 SYS_fadvise64 [3];
    readahead SYS_readahead [];
    copy_file_range SYS_copy_file_range [];
    sendfile SYS_sendfile [];
    getxattr SYS_getxattr [];
    lgetxattr SYS_lgetxattr [];
    fgetxattr SYS_fgetxattr [];
    setxattr SYS_setxattr [];
    lsetxattr SYS_lsetxattr [];
    fsetxattr SYS_fsetxattr [];
    listxattr SYS_listxattr [];
    llistxattr SYS_llistxattr [];
    flistxattr SYS_flistxattr [];
    removexattr SYS_removexattr [];
    lremovexattr SYS_lremovexattr [];
    fremovexattr SYS_fremovexattr [];
    statfs SYS_statfs [];
    fstatfs SYS_fstatfs [];
    dup SYS_dup [];
    dup3 SYS_dup3 [2];
    fcntl SYS_fcntl [];
    ioctl SYS_ioctl [];
    mmap SYS_mmap [2, 3];
    munmap SYS_munmap [];
    sched_getaffinity SYS_sched_getaffinity [];
    sched_setaffinity SYS_sched_setaffinity [];
    chdir SYS_chdir [];
    fchdir SYS_fchdir [];
    clone SYS_clone [];
    clone3 SYS_clone3 [];
    execve SYS_execve [];
    execveat SYS_execveat [];
    wait4 SYS_wait4 [];
    waitid SYS_waitid [];
};

#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[Named] = calls! {
    open SYS_open [1];
    creat SYS_creat [];
    stat SYS_stat [];
    lstat SYS_lstat [];
    access SYS_access [];
    readlink SYS_readlink [];
    mkdir SYS_mkdir [];
    rmdir SYS_rmdir [];
    unlink SYS_unlink [];
    rename SYS_rename [];
    link SYS_link [];
    symlink SYS_symlink [];
    mknod SYS_mknod [1];
    chmod SYS_chmod [];
    chown SYS_chown [];
    lchown SYS_lchown [];
    utime SYS_utime [];
    utimes SYS_utimes [];
    futimesat SYS_futimesat [];
    dup2 SYS_dup2 [];
    fork SYS_fork [];
    vfork SYS_vfork [];
    getdents SYS_getdents [];
};
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[Named] = &[];

pub(crate) fn call(name: &str) -> Option<&'static Named> {
    CALLS.iter().chain(OLD_CALLS).find(|(known, ..)| *known == name)
}

macro_rules! flags {
    ($($name:ident)*) => { &[$((stringify!($name), $name as u64),)*] };
}

const FLAGS: &[(&str, u64)] = flags! {
    O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_NOCTTY O_TRUNC O_APPEND O_NONBLOCK O_DSYNC O_ASYNC O_DIRECT O_DIRECTORY O_NOFOLLOW
    O_NOATIME O_CLOEXEC O_SYNC O_PATH O_TMPFILE
    AT_FDCWD AT_SYMLINK_NOFOLLOW AT_REMOVEDIR AT_SYMLINK_FOLLOW AT_NO_AUTOMOUNT AT_EMPTY_PATH AT_EACCESS AT_STATX_SYNC_AS_STAT
    AT_STATX_FORCE_SYNC AT_STATX_DONT_SYNC
    SEEK_SET SEEK_CUR SEEK_END SEEK_DATA SEEK_HOLE
    RENAME_NOREPLACE RENAME_EXCHANGE RENAME_WHITEOUT
    S_IFREG S_IFDIR S_IFLNK S_IFCHR S_IFBLK S_IFIFO S_IFSOCK S_ISUID S_ISGID S_ISVTX
    FALLOC_FL_KEEP_SIZE FALLOC_FL_PUNCH_HOLE FALLOC_FL_COLLAPSE_RANGE FALLOC_FL_ZERO_RANGE FALLOC_FL_INSERT_RANGE
    FALLOC_FL_UNSHARE_RANGE
    SYNC_FILE_RANGE_WAIT_BEFORE SYNC_FILE_RANGE_WRITE SYNC_FILE_RANGE_WAIT_AFTER
    POSIX_FADV_NORMAL POSIX_FADV_RANDOM POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED POSIX_FADV_DONTNEED POSIX_FADV_NOREUSE
    PROT_NONE PROT_READ PROT_WRITE PROT_EXEC PROT_GROWSDOWN PROT_GROWSUP
    MAP_SHARED MAP_PRIVATE MAP_SHARED_VALIDATE MAP_FIXED MAP_ANONYMOUS MAP_GROWSDOWN MAP_DENYWRITE MAP_EXECUTABLE MAP_LOCKED
    MAP_NORESERVE MAP_POPULATE MAP_NONBLOCK MAP_STACK MAP_HUGETLB MAP_SYNC MAP_FIXED_NOREPLACE
    CLONE_VM CLONE_FS CLONE_FILES CLONE_SIGHAND CLONE_PIDFD CLONE_PTRACE CLONE_VFORK CLONE_PARENT CLONE_THREAD CLONE_NEWNS
    CLONE_SYSVSEM CLONE_SETTLS CLONE_PARENT_SETTID CLONE_CHILD_CLEARTID CLONE_DETACHED CLONE_UNTRACED CLONE_CHILD_SETTID
    CLONE_NEWCGROUP CLONE_NEWUTS CLONE_NEWIPC CLONE_NEWUSER CLONE_NEWPID CLONE_NEWNET CLONE_IO
    CLOSE_RANGE_UNSHARE CLOSE_RANGE_CLOEXEC FD_CLOEXEC F_DUPFD F_DUPFD_CLOEXEC F_SETFD
};

/// Their numbers depend on the machine or are not in the C library.
const MORE: &[(&str, u64)] =
    &[("O_LARGEFILE", 0), ("MAP_32BIT", 0), ("O_ACCMODE", 3), ("CLONE_INTO_CGROUP", 0), ("CLONE_CLEAR_SIGHAND", 0)];

/// `A|B|0x4`; none where one of them is not known. The signal of a process's end is no flag.
pub(crate) fn flags(text: &str) -> Option<u64> {
    let one = |name: &str| {
        let known = FLAGS.iter().chain(MORE).find(|(known, _)| *known == name).map(|(_, value)| *value);
        known.or_else(|| super::line::number(name)).or_else(|| name.starts_with("SIG").then_some(0))
    };
    // Behind `/*` stands what the number means.
    let text = text.split("/*").next().unwrap_or_default();
    text.split('|').try_fold(0, |all, name| Some(all | one(name.trim())?))
}

macro_rules! errors {
    ($($name:ident)*) => { &[$((stringify!($name), $name),)*] };
}

const ERRORS: &[(&str, i32)] = errors! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST EXDEV ENODEV
    ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG
    ENOLCK ENOSYS ENOTEMPTY ELOOP ENODATA EOVERFLOW EILSEQ EUSERS EOPNOTSUPP ETIMEDOUT ESTALE EDQUOT ECANCELED EUCLEAN EKEYREJECTED
    ENOKEY
};

/// Errors that only calls on other things than files come to are EIO: nothing of them is kept.
pub(crate) fn error(name: &str) -> i32 {
    ERRORS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(if name == "ENOTSUP" { EOPNOTSUPP } else { EIO }, |(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::calls::with_filter;

    #[test]
    fn every_call_that_is_watched_has_its_name() {
        with_filter(None, |filter| {
            let with = filter.stops_with.iter().map(|(number, ..)| *number);
            let without = filter.stops_without.iter().map(|(number, ..)| *number);
            for number in filter.stops.iter().copied().chain(with).chain(without) {
                assert!(CALLS.iter().chain(OLD_CALLS).any(|(_, known, _)| *known == number), "call {number}");
            }
        });
    }

    #[test]
    fn flags_are_numbers_again() {
        assert_eq!(flags("O_WRONLY|O_CREAT|O_TRUNC"), Some((O_WRONLY | O_CREAT | O_TRUNC) as u64));
        assert_eq!(flags("CLONE_VM|0x4|SIGCHLD"), Some(CLONE_VM as u64 | 4));
        assert_eq!((flags("0x400 /* AT_??? */"), flags("O_WHAT"), flags("")), (Some(0x400), None, None));
        assert_eq!((error("ENOENT"), error("ENOTSUP"), error("EOHO")), (ENOENT, EOPNOTSUPP, EIO));
    }
}
