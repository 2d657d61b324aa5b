//! One operation of a trace, done on the file system under test.

use super::bytes::to_write;
use super::replay_dir::{Buffer, CallOutcome, LONGEST_READ, ReplayDir, nothing, room};
use super::substitute;
use pickfs_system::sys::file::sync_range;
use pickfs_trace::{Kind, Op, attribute};
use rustix::fs::{Access, Advice, AtFlags, FileType, Gid, Mode, OFlags, RawDir, SeekFrom, Timestamps, Uid};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// No other flag of open(2) is let through.
const OPEN_FLAGS: OFlags = OFlags::ACCMODE
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::TRUNC)
    .union(OFlags::APPEND)
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::DIRECT)
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::TMPFILE)
    .union(OFlags::PATH);

impl ReplayDir<'_> {
    /// Does an operation; `number` is its own, which decides what it writes.
    pub(crate) fn call(&self, number: u32, op: &Op, buffer: &mut Buffer) -> CallOutcome {
        use Kind::*;
        match op.kind {
            Open => self.open(op),
            Close => self.set_open(op.object, None).map(drop).map(|()| 0).ok_or(Errno::BADF).into(),
            Read | ReadAt | MapRead => self.read(op, buffer).into(),
            Write | WriteAt | MapWrite => self.write(number, op).into(),
            Seek => self.with_open(op.object, |file| rustix::fs::seek(file, seek_from(op)).map(|_| 0)).into(),
            List => self.with_open(op.object, |file| list(file, op.length, buffer)).into(),
            Stat | Access | ReadLink | StatFs | Advise => nothing(self.ask(op)).into(),
            MakeDir | RemoveDir | Unlink | Rename | Link | SymLink | MakeNode | LinkObject => self.change_name(op),
            Chmod | Chown | Times | Truncate => nothing(self.change(op)).into(),
            Allocate => substitute::allocate(self, op),
            CopyRange => substitute::copy_range(self, op, buffer),
            Clone => substitute::clone(self, op, buffer),
            Sync | SyncRange | SyncAll => nothing(self.sync(op)).into(),
            GetAttribute | SetAttribute | ListAttributes | RemoveAttribute => self.attribute(op),
            Spawn | Join | End => Ok(0).into(),
        }
    }

    fn open(&self, op: &Op) -> CallOutcome {
        let flags = OFlags::from_bits_truncate(op.flags as u32) & OPEN_FLAGS;
        // A pipe must not keep a replay waiting.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let open = |flags| rustix::fs::openat(self.folder(), self.name(op.path), flags, Mode::from_raw_mode(0o644));
        let (opened, replaced) = match open(flags) {
            Err(Errno::INVAL) if flags.contains(OFlags::DIRECT) && !op.failed() => (open(flags - OFlags::DIRECT), true),
            Err(Errno::OPNOTSUPP) if flags.contains(OFlags::TMPFILE) => {
                (substitute::unnamed(self, op.path, flags), true)
            }
            other => (other, false),
        };
        let result = opened.map(|file| {
            if op.object != 0 {
                self.set_open(op.object, Some(file));
            }
            0
        });
        CallOutcome { result, replaced }
    }

    fn read(&self, op: &Op, buffer: &mut Buffer) -> Result<u64, Errno> {
        let moved = |piece: &mut [u8], done: u64| {
            self.with_open(op.object, |file| match op.kind {
                Kind::Read => rustix::io::read(file, &mut *piece),
                _ => rustix::io::pread(file, &mut *piece, op.offset.saturating_add(done)),
            })
        };
        let (mut done, wanted) = (0, op.length.min(op.result.max(0) as u64 + LONGEST_READ));
        loop {
            let piece = (wanted - done).min(LONGEST_READ) as usize;
            let read = moved(room(buffer, piece), done)? as u64;
            done += read;
            if done >= wanted || read < piece as u64 {
                return Ok(done);
            }
        }
    }

    fn write(&self, number: u32, op: &Op) -> Result<u64, Errno> {
        let (mut done, wanted) = (0, to_write(op));
        loop {
            let piece = self.bytes.piece(op.flags as u8, number, wanted - done);
            let written = self.with_open(op.object, |file| match op.kind {
                Kind::Write => rustix::io::write(file, piece),
                _ => rustix::io::pwrite(file, piece, op.offset.saturating_add(done)),
            })? as u64;
            done += written;
            if done >= wanted || written == 0 {
                return Ok(done);
            }
        }
    }

    fn ask(&self, op: &Op) -> Result<(), Errno> {
        let name = self.name(op.path);
        let follow = if op.flags & 1 != 0 { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
        match op.kind {
            Kind::Stat if op.object != 0 => self.with_open(op.object, |file| rustix::fs::fstat(file)).map(drop),
            Kind::Stat => rustix::fs::statat(self.folder(), name, follow).map(drop),
            // Checks only that it exists; permissions depend on the user.
            Kind::Access => rustix::fs::accessat(self.folder(), name, Access::EXISTS, AtFlags::empty()),
            Kind::ReadLink => rustix::fs::readlinkat(self.folder(), name, Vec::new()).map(drop),
            Kind::StatFs if op.object != 0 => self.with_open(op.object, |file| rustix::fs::fstatfs(file)).map(drop),
            Kind::StatFs => rustix::fs::statfs(self.full(op.path)).map(drop),
            _ => self.with_open(op.object, |file| {
                rustix::fs::fadvise(file, op.offset, std::num::NonZeroU64::new(op.length), advice(op.flags))
            }),
        }
    }

    fn change_name(&self, op: &Op) -> CallOutcome {
        let (folder, name, other) = (self.folder(), self.name(op.path), self.name(op.other));
        let result = match op.kind {
            Kind::MakeDir => rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o755)),
            Kind::RemoveDir => rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR),
            Kind::Unlink => rustix::fs::unlinkat(folder, name, AtFlags::empty()),
            Kind::Rename if op.flags != 0 => return substitute::rename(self, op),
            Kind::Rename => rustix::fs::renameat(folder, name, folder, other),
            Kind::Link => rustix::fs::linkat(folder, name, folder, other, AtFlags::empty()),
            Kind::LinkObject => self.with_open(op.object, |file| {
                use std::os::fd::AsRawFd;
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                rustix::fs::linkat(rustix::fs::CWD, path, folder, other, AtFlags::SYMLINK_FOLLOW)
            }),
            Kind::SymLink => {
                let to = if op.other == 0 { self.elsewhere() } else { self.full(op.other) };
                rustix::fs::symlinkat(to, folder, name)
            }
            _ => match FileType::from_raw_mode(op.flags as u32) {
                FileType::RegularFile | FileType::Unknown => {
                    rustix::fs::mknodat(folder, name, FileType::RegularFile, Mode::from_raw_mode(0o644), 0)
                }
                // Devices and sockets are pipes: what matters is the entry.
                _ => rustix::fs::mknodat(folder, name, FileType::Fifo, Mode::from_raw_mode(0o644), 0),
            },
        };
        nothing(result).into()
    }

    fn change(&self, op: &Op) -> Result<(), Errno> {
        let (folder, name) = (self.folder(), self.name(op.path));
        // Its owner may always read, write and search: a replay need not be root.
        let mode = Mode::from_raw_mode((op.flags & 0o777) as u32 | 0o700);
        let (user, group): (Uid, Gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let follow = if op.flags & 1 != 0 { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
        match (op.kind, op.object) {
            (Kind::Chmod, 0) => rustix::fs::chmodat(folder, name, mode, AtFlags::empty()),
            (Kind::Chmod, object) => self.with_open(object, |file| rustix::fs::fchmod(file, mode)),
            (Kind::Chown, 0) => rustix::fs::chownat(folder, name, Some(user), Some(group), follow),
            (Kind::Chown, object) => self.with_open(object, |file| rustix::fs::fchown(file, Some(user), Some(group))),
            (Kind::Times, 0) => rustix::fs::utimensat(folder, name, &TIMES, follow),
            (Kind::Times, object) => self.with_open(object, |file| rustix::fs::futimens(file, &TIMES)),
            (_, 0) => {
                let file = rustix::fs::openat(folder, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
                rustix::fs::ftruncate(file, op.length)
            }
            (_, object) => self.with_open(object, |file| rustix::fs::ftruncate(file, op.length)),
        }
    }

    fn sync(&self, op: &Op) -> Result<(), Errno> {
        match op.kind {
            Kind::SyncAll => self.synced_folder().and_then(rustix::fs::syncfs),
            Kind::SyncRange => self.with_open(op.object, |file| {
                sync_range(file, op.offset, op.length, op.flags as u32)
                    .map_err(|error| Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO)))
            }),
            _ if op.flags & 1 != 0 => self.with_open(op.object, |file| rustix::fs::fdatasync(file)),
            _ => self.with_open(op.object, |file| rustix::fs::fsync(file)),
        }
    }

    /// syncfs(2) takes no descriptor that was opened as a path.
    fn synced_folder(&self) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(self.folder(), c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    /// A file system without them is used as programs do it: they go on without.
    fn attribute(&self, op: &Op) -> CallOutcome {
        let (name, path) = (attribute::name(op.flags), self.full(op.path));
        let (mut read, itself) = ([MaybeUninit::<u8>::uninit(); 4096], op.offset == 1);
        let value = vec![b'v'; op.length.min(64 << 10) as usize];
        let set = rustix::fs::XattrFlags::empty();
        let result = match (op.kind, op.object) {
            (Kind::GetAttribute, 0) if itself => rustix::fs::lgetxattr(path, name, &mut read).map(drop),
            (Kind::GetAttribute, 0) => rustix::fs::getxattr(path, name, &mut read).map(drop),
            (Kind::GetAttribute, object) => {
                self.with_open(object, |f| rustix::fs::fgetxattr(f, name, &mut read).map(drop))
            }
            (Kind::ListAttributes, 0) if itself => rustix::fs::llistxattr(path, &mut read).map(drop),
            (Kind::ListAttributes, 0) => rustix::fs::listxattr(path, &mut read).map(drop),
            (Kind::ListAttributes, object) => {
                self.with_open(object, |f| rustix::fs::flistxattr(f, &mut read).map(drop))
            }
            (Kind::SetAttribute, 0) if itself => rustix::fs::lsetxattr(path, name, &value, set),
            (Kind::SetAttribute, 0) => rustix::fs::setxattr(path, name, &value, set),
            (Kind::SetAttribute, object) => self.with_open(object, |f| rustix::fs::fsetxattr(f, name, &value, set)),
            (_, 0) if itself => rustix::fs::lremovexattr(path, name),
            (_, 0) => rustix::fs::removexattr(path, name),
            (_, object) => self.with_open(object, |f| rustix::fs::fremovexattr(f, name)),
        };
        match result {
            Err(Errno::OPNOTSUPP) if !op.failed() => CallOutcome { result: Ok(0), replaced: true },
            other => nothing(other).into(),
        }
    }
}

/// Times of all files that are given one: those of the recording would be names of days.
const TIMES: Timestamps = Timestamps {
    last_access: rustix::fs::Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 },
    last_modification: rustix::fs::Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 },
};

fn seek_from(op: &Op) -> SeekFrom {
    match op.flags {
        1 => SeekFrom::Current(op.offset as i64),
        2 => SeekFrom::End(op.offset as i64),
        3 => SeekFrom::Data(op.offset),
        4 => SeekFrom::Hole(op.offset),
        _ => SeekFrom::Start(op.offset),
    }
}

fn advice(number: u64) -> Advice {
    match number {
        1 => Advice::Random,
        2 => Advice::Sequential,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => Advice::Normal,
    }
}

/// One call that lists: as many entries as the program had room for.
fn list(file: &OwnedFd, length: u64, buffer: &mut Buffer) -> Result<u64, Errno> {
    let length = (length as usize).clamp(1024, 1 << 20);
    buffer.clear();
    buffer.reserve(length);
    let room = &mut buffer.spare_capacity_mut()[..length];
    let mut folder = RawDir::new(file.as_fd(), room);
    while let Some(entry) = folder.next() {
        entry?;
        if folder.is_buffer_empty() {
            break;
        }
    }
    Ok(0)
}
