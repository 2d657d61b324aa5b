//! System calls as what they ask for: which of them the filter stops, what their arguments mean,
//! and whether their end must be seen.

#![expect(non_upper_case_globals, reason = "calls have the C library's names")]

use crate::{Kind, Op, SENDFILE};
use libc::*;
use pickfs_system::sys::ptrace::Call;
use pickfs_system::sys::seccomp::Filter;

/// A place in a call's arguments that names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nothing,
    Descriptor(i32),
    /// Text at an address, from a folder on.
    Path {
        folder: i32,
        address: u64,
    },
    /// The same; where the text is empty or missing, the folder's descriptor itself is meant.
    PathOrSelf {
        folder: i32,
        address: u64,
    },
}

/// Where the number of bytes stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Given,
    /// An array of `count` `struct iovec` at an address.
    Vectors {
        address: u64,
        count: u64,
    },
    /// Two offsets: addresses of 64-bit numbers, or 0 where the file's own position is used.
    Offsets {
        from: u64,
        to: u64,
    },
}

/// A call on files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileCall {
    /// Kind, offset, length and flags; the rest is found where the call is made.
    pub op: Op,
    pub place: Place,
    pub second: Place,
    pub length: Length,
    /// Its end is not looked at: on an open file it cannot fail.
    pub assumed: bool,
    /// The address of what is written, or of an attribute's name.
    pub data: u64,
}

/// What a call asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    File(FileCall),
    /// Flags stand in memory (openat2).
    OpenHow(FileCall, u64),
    Close(i32),
    CloseRange {
        first: u32,
        last: u32,
        only_marks: bool,
    },
    Duplicate {
        from: i32,
        to: Option<i32>,
        close_on_exec: bool,
    },
    CloseOnExec {
        descriptor: i32,
        on: bool,
    },
    Folder,
    Start {
        flags: u64,
        flags_at: u64,
    },
    Execute,
    Wait,
    Map {
        descriptor: i32,
        length: u64,
        offset: u64,
        writes: bool,
    },
    Unmap {
        address: u64,
        length: u64,
    },
    /// On which processors threads may run.
    Affinity,
}

const AT_EMPTY: u64 = AT_EMPTY_PATH as u64;
const NO_FOLLOW: u64 = AT_SYMLINK_NOFOLLOW as u64;
/// [`Op::flags`] of what looks at a link itself.
pub(crate) const ITSELF: u64 = 1;
/// [`Op::flags`] of fdatasync(2).
pub(crate) const DATA_ALONE: u64 = 1;

#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[i64] = &[
    SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_rename,
    SYS_link, SYS_symlink, SYS_mknod, SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat, SYS_dup2,
    SYS_fork, SYS_vfork, SYS_getdents,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[i64] = &[];

const CALLS: &[i64] = &[
    SYS_openat, SYS_openat2, SYS_close, SYS_close_range, SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64,
    SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2, SYS_lseek, SYS_getdents64, SYS_fstat,
    SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_mkdirat, SYS_unlinkat, SYS_renameat,
    SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_mknodat, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat,
    SYS_utimensat, SYS_truncate, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_sync_file_range, SYS_sync,
    SYS_syncfs, SYS_fadvise64, SYS_readahead, SYS_copy_file_range, SYS_sendfile, SYS_getxattr, SYS_lgetxattr,
    SYS_fgetxattr, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_listxattr, SYS_llistxattr, SYS_flistxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_statfs, SYS_fstatfs, SYS_dup, SYS_dup3, SYS_chdir,
    SYS_fchdir, SYS_clone, SYS_clone3, SYS_execve, SYS_execveat, SYS_wait4, SYS_waitid, SYS_munmap,
    SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_fchmodat2,
];

const CLONE_FILE: u32 = 0x4004_9409; // FICLONE of linux/fs.h
const CLONE_RANGE: u32 = 0x4020_940d; // FICLONERANGE

/// What the filter stops at, for programs that cannot be given one.
pub(crate) fn is_watched(call: &Call) -> bool {
    with_filter(None, |filter| {
        let argument = |at: usize| call.arguments[at] as u32;
        let stops_with = || filter.stops_with.iter().find(|(number, ..)| *number == call.number);
        let stops_without = || filter.stops_without.iter().find(|(number, ..)| *number == call.number);
        filter.stops.contains(&call.number)
            || stops_with().is_some_and(|(_, at, values)| values.contains(&argument(*at)))
            || stops_without().is_some_and(|(_, at, bit)| argument(*at) & bit == 0)
    })
}

/// Hands the filter to `with`: what is here stops, and only that, unless its instruction ends at an
/// address. io_uring is as if the kernel did not have it, as calls made through it cannot be seen;
/// programs that use it have another way for such kernels.
pub(crate) fn with_filter<T>(passes: Option<u64>, with: impl FnOnce(&Filter) -> T) -> T {
    let stops = [CALLS, OLD_CALLS].concat();
    let fcntl = [F_DUPFD as u32, F_DUPFD_CLOEXEC as u32, F_SETFD as u32];
    with(&Filter {
        stops: &stops,
        stops_with: &[(SYS_fcntl, 1, &fcntl), (SYS_ioctl, 1, &[CLONE_FILE, CLONE_RANGE])],
        stops_without: &[(SYS_mmap, 3, MAP_ANONYMOUS as u32)],
        refuses: &[SYS_io_uring_setup],
        passes,
    })
}

/// What a call asks for; none where that is nothing to record.
pub(crate) fn request(call: &Call) -> Option<Request> {
    opening(call)
        .or_else(|| moving(call))
        .or_else(|| asking(call))
        .or_else(|| naming(call))
        .or_else(|| changing(call))
        .or_else(|| attributes(call))
        .or_else(|| bookkeeping(call))
        .or_else(|| old(call))
}

fn plain(kind: Kind, place: Place) -> FileCall {
    let op = Op::new(kind);
    FileCall { op, place, second: Place::Nothing, length: Length::Given, assumed: false, data: 0 }
}

fn on_path(kind: Kind, folder: u64, address: u64) -> FileCall {
    plain(kind, Place::Path { folder: folder as i32, address })
}

fn on_file(kind: Kind, descriptor: u64) -> FileCall {
    plain(kind, Place::Descriptor(descriptor as i32))
}

/// From the process's own folder on.
const HERE: u64 = AT_FDCWD as u32 as u64;

impl FileCall {
    fn flags(mut self, flags: u64) -> FileCall {
        self.op.flags = flags;
        self
    }

    fn range(mut self, offset: u64, length: u64) -> FileCall {
        (self.op.offset, self.op.length) = (offset, length);
        self
    }

    fn second(mut self, folder: u64, address: u64) -> FileCall {
        self.second = Place::Path { folder: folder as i32, address };
        self
    }

    fn vectors(mut self, address: u64, count: u64) -> FileCall {
        self.length = Length::Vectors { address, count };
        self
    }

    fn data(mut self, address: u64) -> FileCall {
        self.data = address;
        self
    }

    /// The flags of an `...at` call: a link itself, and an empty path.
    fn at_flags(self, flags: u64) -> FileCall {
        let place = match self.place {
            Place::Path { folder, address } if flags & AT_EMPTY != 0 => Place::PathOrSelf { folder, address },
            other => other,
        };
        FileCall { place, ..self }.flags(if flags & NO_FOLLOW != 0 { ITSELF } else { 0 })
    }

    fn assumed(self) -> FileCall {
        FileCall { assumed: true, ..self }
    }
}

fn opening(call: &Call) -> Option<Request> {
    let [a, b, c, ..] = call.arguments;
    Some(match call.number {
        SYS_openat => Request::File(on_path(Kind::Open, a, b).flags(c)),
        SYS_openat2 => Request::OpenHow(on_path(Kind::Open, a, b), c),
        SYS_close => Request::Close(a as i32),
        SYS_close_range => {
            let only_marks = c & u64::from(CLOSE_RANGE_CLOEXEC) != 0;
            Request::CloseRange { first: a as u32, last: b as u32, only_marks }
        }
        _ => return None,
    })
}

fn moving(call: &Call) -> Option<Request> {
    use Kind::{CopyRange, Read, ReadAt, Seek, Write, WriteAt};
    let [a, b, c, d, e, _] = call.arguments;
    let file = match call.number {
        SYS_read => on_file(Read, a).range(0, c),
        SYS_write => on_file(Write, a).range(0, c).data(b),
        SYS_pread64 => on_file(ReadAt, a).range(d, c),
        SYS_pwrite64 => on_file(WriteAt, a).range(d, c).data(b),
        SYS_readv => on_file(Read, a).vectors(b, c),
        SYS_writev => on_file(Write, a).vectors(b, c),
        // An offset of -1 is the file's own position.
        SYS_preadv2 if d as i64 == -1 => on_file(Read, a).vectors(b, c),
        SYS_pwritev2 if d as i64 == -1 => on_file(Write, a).vectors(b, c),
        SYS_preadv | SYS_preadv2 => on_file(ReadAt, a).range(d, 0).vectors(b, c),
        SYS_pwritev | SYS_pwritev2 => on_file(WriteAt, a).range(d, 0).vectors(b, c),
        SYS_lseek => FileCall { assumed: c <= SEEK_END as u64, ..on_file(Seek, a).range(b, 0).flags(c) },
        SYS_copy_file_range => {
            let offsets = Length::Offsets { from: b, to: d };
            let second = Place::Descriptor(c as i32);
            FileCall { second, length: offsets, ..on_file(CopyRange, a).range(0, e) }
        }
        SYS_sendfile => {
            let offsets = Length::Offsets { from: c, to: 0 };
            let second = Place::Descriptor(a as i32);
            FileCall { second, length: offsets, ..on_file(CopyRange, b).range(0, d).flags(SENDFILE) }
        }
        SYS_ioctl => {
            let second = Place::Descriptor(c as i32);
            FileCall { second, ..on_file(Kind::Clone, a) }.data(if b as u32 == CLONE_RANGE { c } else { 0 })
        }
        _ => return None,
    };
    Some(Request::File(file))
}

fn asking(call: &Call) -> Option<Request> {
    use Kind::{Access, Advise, List, ReadLink, Stat, StatFs};
    let [a, b, c, d, ..] = call.arguments;
    let file = match call.number {
        SYS_fstat => on_file(Stat, a).assumed(),
        SYS_newfstatat => on_path(Stat, a, b).at_flags(d),
        SYS_statx => on_path(Stat, a, b).at_flags(c),
        SYS_faccessat => on_path(Access, a, b).flags(c),
        SYS_faccessat2 => on_path(Access, a, b).at_flags(d & !NO_FOLLOW).flags(c),
        SYS_readlinkat => on_path(ReadLink, a, b),
        SYS_getdents64 => on_file(List, a).range(0, c),
        SYS_fadvise64 => on_file(Advise, a).range(b, c).flags(d).assumed(),
        SYS_readahead => on_file(Advise, a).range(b, c).flags(POSIX_FADV_WILLNEED as u64).assumed(),
        SYS_statfs => on_path(StatFs, HERE, a),
        SYS_fstatfs => on_file(StatFs, a).assumed(),
        _ => return None,
    };
    Some(Request::File(file))
}

fn naming(call: &Call) -> Option<Request> {
    use Kind::{Link, MakeDir, MakeNode, RemoveDir, Rename, SymLink, Unlink};
    let [a, b, c, d, e, _] = call.arguments;
    let file = match call.number {
        SYS_mkdirat => on_path(MakeDir, a, b).flags(c & 0o7777),
        SYS_unlinkat if c & AT_REMOVEDIR as u64 != 0 => on_path(RemoveDir, a, b),
        SYS_unlinkat => on_path(Unlink, a, b),
        SYS_renameat => on_path(Rename, a, b).second(c, d),
        SYS_renameat2 => on_path(Rename, a, b).second(c, d).flags(e),
        SYS_linkat => on_path(Link, a, b).at_flags(e & AT_EMPTY).second(c, d),
        SYS_symlinkat => on_path(SymLink, b, c).data(a),
        SYS_mknodat => on_path(MakeNode, a, b).flags(c),
        _ => return None,
    };
    Some(Request::File(file))
}

fn changing(call: &Call) -> Option<Request> {
    use Kind::{Allocate, Chmod, Chown, Sync, SyncAll, SyncRange, Times, Truncate};
    let [a, b, c, d, e, _] = call.arguments;
    let file = match call.number {
        SYS_fchmod => on_file(Chmod, a).flags(b & 0o7777),
        SYS_fchmodat => on_path(Chmod, a, b).flags(c & 0o7777),
        SYS_fchmodat2 => on_path(Chmod, a, b).at_flags(d & AT_EMPTY).flags(c & 0o7777),
        SYS_fchown => on_file(Chown, a),
        SYS_fchownat => on_path(Chown, a, b).at_flags(e),
        SYS_utimensat => {
            let flags = if b == 0 { AT_EMPTY } else { 0 } | d;
            on_path(Times, a, b).at_flags(flags)
        }
        SYS_truncate => on_path(Truncate, HERE, a).range(0, b),
        SYS_ftruncate => on_file(Truncate, a).range(0, b),
        SYS_fallocate => on_file(Allocate, a).range(c, d).flags(b),
        SYS_fsync => on_file(Sync, a),
        SYS_fdatasync => on_file(Sync, a).flags(DATA_ALONE),
        SYS_sync_file_range => on_file(SyncRange, a).range(b, c).flags(d),
        SYS_syncfs => on_file(SyncAll, a),
        SYS_sync => plain(SyncAll, Place::Nothing),
        _ => return None,
    };
    Some(Request::File(file))
}

fn attributes(call: &Call) -> Option<Request> {
    use Kind::{GetAttribute, ListAttributes, RemoveAttribute, SetAttribute};
    let [a, b, c, d, ..] = call.arguments;
    let itself = |file: FileCall| file.range(1, 0);
    let file = match call.number {
        SYS_getxattr => on_path(GetAttribute, HERE, a).data(b).range(0, d),
        SYS_lgetxattr => itself(on_path(GetAttribute, HERE, a).data(b)).range(1, d),
        SYS_fgetxattr => on_file(GetAttribute, a).data(b).range(0, d),
        SYS_setxattr => on_path(SetAttribute, HERE, a).data(b).range(0, d),
        SYS_lsetxattr => on_path(SetAttribute, HERE, a).data(b).range(1, d),
        SYS_fsetxattr => on_file(SetAttribute, a).data(b).range(0, d),
        SYS_listxattr => on_path(ListAttributes, HERE, a).range(0, c),
        SYS_llistxattr => on_path(ListAttributes, HERE, a).range(1, c),
        SYS_flistxattr => on_file(ListAttributes, a).range(0, c),
        SYS_removexattr => on_path(RemoveAttribute, HERE, a).data(b),
        SYS_lremovexattr => itself(on_path(RemoveAttribute, HERE, a).data(b)),
        SYS_fremovexattr => on_file(RemoveAttribute, a).data(b),
        _ => return None,
    };
    Some(Request::File(file))
}

/// Calls that show which descriptor is which file, and which process started which.
fn bookkeeping(call: &Call) -> Option<Request> {
    let [a, b, c, d, e, f] = call.arguments;
    Some(match call.number {
        SYS_dup => Request::Duplicate { from: a as i32, to: None, close_on_exec: false },
        SYS_dup3 => Request::Duplicate { from: a as i32, to: Some(b as i32), close_on_exec: c & O_CLOEXEC as u64 != 0 },
        SYS_fcntl if b == F_SETFD as u64 => {
            Request::CloseOnExec { descriptor: a as i32, on: c & FD_CLOEXEC as u64 != 0 }
        }
        SYS_fcntl => Request::Duplicate { from: a as i32, to: None, close_on_exec: b == F_DUPFD_CLOEXEC as u64 },
        SYS_chdir | SYS_fchdir => Request::Folder,
        SYS_clone => Request::Start { flags: a, flags_at: 0 },
        SYS_clone3 => Request::Start { flags: 0, flags_at: a },
        SYS_execve | SYS_execveat => Request::Execute,
        SYS_wait4 | SYS_waitid => Request::Wait,
        SYS_mmap => {
            let is_shared = [MAP_SHARED, MAP_SHARED_VALIDATE].contains(&(d as i32 & MAP_TYPE));
            let writes = c & PROT_WRITE as u64 != 0 && is_shared;
            Request::Map { descriptor: e as i32, length: b, offset: f, writes }
        }
        SYS_munmap => Request::Unmap { address: a, length: b },
        SYS_sched_getaffinity | SYS_sched_setaffinity => Request::Affinity,
        _ => return None,
    })
}

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
fn old(call: &Call) -> Option<Request> {
    use Kind::{Access, Chmod, Chown, Link, List, MakeDir, MakeNode, Open, ReadLink, RemoveDir, Rename, Stat, SymLink};
    let [a, b, c, ..] = call.arguments;
    let here = |kind| on_path(kind, HERE, a);
    let file = match call.number {
        SYS_open => here(Open).flags(b),
        SYS_creat => here(Open).flags((O_CREAT | O_WRONLY | O_TRUNC) as u64),
        SYS_stat => here(Stat),
        SYS_lstat => here(Stat).flags(ITSELF),
        SYS_access => here(Access).flags(b),
        SYS_readlink => here(ReadLink),
        SYS_mkdir => here(MakeDir).flags(b & 0o7777),
        SYS_rmdir => here(RemoveDir),
        SYS_unlink => here(Kind::Unlink),
        SYS_rename => here(Rename).second(HERE, b),
        SYS_link => here(Link).second(HERE, b),
        SYS_symlink => on_path(SymLink, HERE, b).data(a),
        SYS_mknod => here(MakeNode).flags(b),
        SYS_chmod => here(Chmod).flags(b & 0o7777),
        SYS_chown => here(Chown),
        SYS_lchown => here(Chown).flags(ITSELF),
        SYS_utime | SYS_utimes => here(Kind::Times),
        SYS_futimesat => on_path(Kind::Times, a, b),
        SYS_getdents => on_file(List, a).range(0, c),
        SYS_dup2 => return Some(Request::Duplicate { from: a as i32, to: Some(b as i32), close_on_exec: false }),
        SYS_fork => return Some(Request::Start { flags: 0, flags_at: 0 }),
        SYS_vfork => return Some(Request::Start { flags: (CLONE_VM | CLONE_VFORK) as u64, flags_at: 0 }),
        _ => return None,
    };
    Some(Request::File(file))
}

#[cfg(not(target_arch = "x86_64"))]
fn old(_: &Call) -> Option<Request> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_stops_means_something() {
        with_filter(None, |filter| {
            let all = filter.stops.iter().chain(filter.stops_with.iter().map(|(call, ..)| call));
            for number in all.chain(filter.stops_without.iter().map(|(call, ..)| call)) {
                let call = Call { number: *number, arguments: [3, 4, 5, 0, 0, 0] };
                assert!(request(&call).is_some(), "call {number} stops for nothing");
            }
            let mut sorted = filter.stops.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), filter.stops.len());
        });
    }

    #[test]
    fn what_is_watched_without_a_filter_is_what_the_filter_stops() {
        let watched = |number, arguments| is_watched(&Call { number, arguments });
        assert!(watched(SYS_read, [0; 6]) && !watched(SYS_brk, [0; 6]) && !watched(SYS_io_uring_enter, [0; 6]));
        assert!(
            watched(SYS_fcntl, [3, F_SETFD as u64, 0, 0, 0, 0]) && !watched(SYS_fcntl, [3, F_GETFL as u64, 0, 0, 0, 0])
        );
        assert!(watched(SYS_mmap, [0, 1, 1, 2, 3, 0]) && !watched(SYS_mmap, [0, 1, 1, 0x22, 3, 0]));
    }

    #[test]
    fn arguments_are_where_they_belong() {
        let file = |number, arguments| match request(&Call { number, arguments }) {
            Some(Request::File(file)) => file,
            other => panic!("{other:?}"),
        };
        let read = file(SYS_pread64, [3, 0x1000, 10, 20, 0, 0]);
        assert_eq!((read.op.kind, read.op.offset, read.op.length), (Kind::ReadAt, 20, 10));
        let stat = file(SYS_newfstatat, [4, 0x1000, 0, AT_EMPTY | NO_FOLLOW, 0, 0]);
        assert_eq!((stat.place, stat.op.flags), (Place::PathOrSelf { folder: 4, address: 0x1000 }, ITSELF));
        let rename = file(SYS_renameat2, [HERE, 1, 5, 2, 1, 0]);
        assert_eq!(rename.second, Place::Path { folder: 5, address: 2 });
        assert_eq!(rename.place, Place::Path { folder: AT_FDCWD, address: 1 });
        let futimens = file(SYS_utimensat, [7, 0, 0, 0, 0, 0]);
        assert_eq!(futimens.place, Place::PathOrSelf { folder: 7, address: 0 });
    }
}
