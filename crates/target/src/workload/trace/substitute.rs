//! What programs do where a file system does not have a call: the C library's and cp's ways. Each
//! time is counted.

use super::replay_dir::{Buffer, CallOutcome, LONGEST_READ, ReplayDir, nothing, room};
use pickfs_system::sys::file::clone_range;
use pickfs_trace::{Op, SENDFILE};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::OwnedFd;

/// A call that a target does not have fails with one of these.
fn is_missing(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::XDEV | Errno::NOTTY)
}

fn or_else(op: &Op, result: Result<u64, Errno>, instead: impl FnOnce() -> Result<u64, Errno>) -> CallOutcome {
    match result {
        Err(error) if is_missing(error) && !op.failed() => CallOutcome { result: instead(), replaced: true },
        other => other.into(),
    }
}

/// posix_fallocate(3) of the C library writes a byte into each block; of other modes nothing is
/// left.
pub(crate) fn allocate(replay_dir: &ReplayDir, op: &Op) -> CallOutcome {
    const BLOCK: usize = 4096;
    let mode = allocation(op);
    let done = replay_dir.with_open(op.object, |file| rustix::fs::fallocate(file, mode, op.offset, op.length));
    or_else(op, nothing(done), || {
        replay_dir.with_open(op.object, |file| {
            if mode != FallocateFlags::empty() {
                return Ok(0);
            }
            let (end, size) = (op.offset + op.length, rustix::fs::fstat(file)?.st_size as u64);
            for at in (op.offset.max(size)..end).step_by(BLOCK) {
                rustix::io::pwrite(file, &[0], at)?;
            }
            nothing(if end > size { rustix::fs::ftruncate(file, end) } else { Ok(()) })
        })
    })
}

/// renameat2(2) with flags: without them, where the target does not know them.
pub(crate) fn rename(replay_dir: &ReplayDir, op: &Op) -> CallOutcome {
    let (folder, from, to) = (replay_dir.folder(), replay_dir.name(op.path), replay_dir.name(op.other));
    let done = rustix::fs::renameat_with(folder, from, folder, to, rename_flags(op));
    or_else(op, nothing(done), || {
        if !rename_flags(op).contains(RenameFlags::EXCHANGE) {
            return nothing(rustix::fs::renameat(folder, from, folder, to));
        }
        let aside = CString::new("exchanged").unwrap_or_default();
        rustix::fs::renameat(folder, from, folder, &aside)?;
        rustix::fs::renameat(folder, to, folder, from)?;
        nothing(rustix::fs::renameat(folder, &aside, folder, to))
    })
}

/// O_TMPFILE: a file whose name is removed at once. It cannot get another name later.
pub(crate) fn unnamed(replay_dir: &ReplayDir, path: u32, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = (flags - OFlags::TMPFILE) | OFlags::CREATE | OFlags::EXCL;
    let name = [replay_dir.name(path).as_bytes(), b"/unnamed"].concat();
    let name = CString::new(name).unwrap_or_default();
    let file = rustix::fs::openat(replay_dir.folder(), &name, flags, Mode::from_raw_mode(0o600))?;
    rustix::fs::unlinkat(replay_dir.folder(), &name, AtFlags::empty())?;
    Ok(file)
}

/// copy_file_range(2), and sendfile(2), which reads and writes where the other may share blocks.
pub(crate) fn copy_range(replay_dir: &ReplayDir, op: &Op, buffer: &mut Buffer) -> CallOutcome {
    let (has_from, has_to) = (op.flags & 1 != 0, op.flags & 2 != 0);
    let done = both(replay_dir, op.object, op.other, |source, sink| {
        let (mut from, mut to) = (op.offset, op.flags >> 2);
        let (from, to) = (has_from.then_some(&mut from), has_to.then_some(&mut to));
        if !has_to && op.flags & SENDFILE != 0 {
            return rustix::fs::sendfile(sink, source, from, op.length as usize).map(|bytes| bytes as u64);
        }
        rustix::fs::copy_file_range(source, from, sink, to, op.length as usize).map(|bytes| bytes as u64)
    });
    or_else(op, done, || {
        let ranges = (has_from.then_some(op.offset), has_to.then_some(op.flags >> 2));
        both(replay_dir, op.object, op.other, |source, sink| by_hand(source, sink, ranges, op.length, buffer))
    })
}

/// FICLONE, which is FICLONERANGE of all: the bytes are copied.
pub(crate) fn clone(replay_dir: &ReplayDir, op: &Op, buffer: &mut Buffer) -> CallOutcome {
    let done = both(replay_dir, op.other, op.object, |source, sink| {
        nothing(clone_range(source, op.offset, op.length, sink, op.flags))
    });
    or_else(op, done, || {
        both(replay_dir, op.other, op.object, |source, sink| {
            let length = if op.length == 0 { rustix::fs::fstat(source)?.st_size as u64 } else { op.length };
            nothing(by_hand(source, sink, (Some(op.offset), Some(op.flags)), length, buffer))
        })
    })
}

fn both<T>(
    replay_dir: &ReplayDir,
    source: u32,
    sink: u32,
    work: impl FnOnce(&OwnedFd, &OwnedFd) -> Result<T, Errno>,
) -> Result<T, Errno> {
    replay_dir.with_open(source, |source| replay_dir.with_open(sink, |sink| work(source, sink)))
}

/// From and to these offsets, or where the files stand.
fn by_hand(
    source: &OwnedFd,
    sink: &OwnedFd,
    (from, to): (Option<u64>, Option<u64>),
    length: u64,
    buffer: &mut Buffer,
) -> Result<u64, Errno> {
    let mut done = 0;
    while done < length {
        let piece = (length - done).min(LONGEST_READ / 16) as usize;
        let piece = room(buffer, piece);
        let read = match from {
            Some(from) => rustix::io::pread(source, &mut *piece, from + done)?,
            None => rustix::io::read(source, &mut *piece)?,
        };
        if read == 0 {
            break;
        }
        match to {
            Some(to) => rustix::io::pwrite(sink, &piece[..read], to + done)?,
            None => rustix::io::write(sink, &piece[..read])?,
        };
        done += read as u64;
    }
    Ok(done)
}

/// fallocate(2)'s mode.
fn allocation(op: &Op) -> FallocateFlags {
    FallocateFlags::from_bits_truncate(op.flags as u32)
}

/// renameat2(2)'s flags.
fn rename_flags(op: &Op) -> RenameFlags {
    RenameFlags::from_bits_truncate(op.flags as u32)
}
