//! Files and pipes: access that bypasses the page cache, and disposal of bytes that are not needed.

use linux_raw_sys::general::file_clone_range;
use linux_raw_sys::ioctl::FICLONERANGE;
use rustix::fs::{Advice, AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Makes the next read of a file come from the device, without privileges: dirty pages are written,
/// then the clean pages are dropped. The kernel may keep pages that a process has mapped
/// (posix_fadvise(2)).
pub fn drop_file_cache(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    match rustix::fs::fdatasync(&file) {
        Ok(()) | Err(Errno::INVAL | Errno::ROFS) => {} // nothing can be dirty there
        Err(error) => return Err(error.into()),
    }
    Ok(rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// Bytes of a file whose pages are not in memory, counted without a read of them: what a program
/// that reads all of it now would get from the device.
pub fn uncached_bytes(path: &Path) -> io::Result<u64> {
    const STRETCH: u64 = 1 << 30;
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    (0..bytes)
        .step_by(STRETCH as usize)
        .try_fold(0, |sum, at| Ok(sum + uncached_in(&file, at, STRETCH.min(bytes - at))?))
}

fn uncached_in(file: &File, at: u64, length: u64) -> io::Result<u64> {
    let page = procfs::page_size() as usize;
    let length = length as usize;
    let mut states = vec![0u8; length.div_ceil(page)];
    // SAFETY: the mapping is new, known only here, and not accessed; mincore(2) fills a byte for
    // each page.
    let found = unsafe {
        let mapped =
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), at as i64);
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let found = libc::mincore(mapped, length, states.as_mut_ptr());
        let found = if found == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        libc::munmap(mapped, length);
        found
    };
    found.map(|()| (states.iter().filter(|state| **state & 1 == 0).count() * page).min(length) as u64)
}

/// An entry of a folder that was reached without a symbolic link. It keeps the folder open, so that
/// the path stays the same entry whatever is renamed or linked meanwhile.
pub struct Entry {
    folder: OwnedFd,
    name: OsString,
}

impl Entry {
    /// The error is ELOOP or ENOTDIR where a folder of the path is a link; the last part is not
    /// looked at.
    pub fn without_links(path: &Path) -> io::Result<Entry> {
        let (Some(above), Some(name)) = (path.parent().filter(|path| path.is_absolute()), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open("/", flags, Mode::empty())?;
        // Part by part: openat2(2) with RESOLVE_NO_SYMLINKS does the same, but sandboxes often
        // refuse it.
        for part in above.components().filter(|part| *part != Component::RootDir) {
            let Component::Normal(part) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            folder = rustix::fs::openat(&folder, part, flags, Mode::empty())?;
        }
        Ok(Entry { folder, name: name.into() })
    }

    /// For calls of this process that do not follow the last part.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd())).join(&self.name)
    }

    /// Metadata of the folder that the entry is in.
    pub fn folder(&self) -> io::Result<Metadata> {
        std::fs::metadata(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    /// For reading. A link, a pipe or a device, which could keep a reader waiting, is an error
    /// (ELOOP, EINVAL).
    pub fn open(&self) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }
}

/// A text of at most 4 KiB: a note of a few lines is far shorter, and what another has put in its
/// place may have no end.
pub fn beginning(note: File) -> io::Result<String> {
    let mut text = String::new();
    note.take(4096).read_to_string(&mut text)?;
    Ok(text)
}

/// Device and inode number: what a file is known by, whatever it is called.
pub fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Opens a regular file for reading, and where it `appends` for adding to it. A pipe or a device is
/// refused and not waited for; so is a link where it appends.
pub fn open_regular(path: &Path, appends: bool) -> io::Result<File> {
    let no_link = if appends { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | no_link).bits() as i32;
    let file = OpenOptions::new().read(true).append(appends).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) if appends => io::Error::other("it is a symbolic link; name the file that it leads to"),
        Some(libc::ENXIO) => not_regular(),
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// What distinguishes a file from earlier files of its name and from copies: the number of its
/// inode, and when that was made, where the file system knows it (statx(2)).
pub fn inode_and_birth(file: impl AsFd) -> io::Result<String> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted)?;
    let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let (seconds, nanoseconds) =
        if has_birth { (found.stx_btime.tv_sec, found.stx_btime.tv_nsec) } else { Default::default() };
    Ok(format!("{} {seconds}.{nanoseconds:09}", found.stx_ino))
}

/// Opens for I/O that bypasses the page cache. With `write` also for writing, and made if it is not
/// there. Buffers, offsets and lengths must be aligned: see [`AlignedBuffer`].
pub fn open_direct(path: &Path, write: bool) -> io::Result<File> {
    let direct = OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).write(write).create(write).truncate(false).custom_flags(direct).open(path)
}

/// Bytes that a durable file takes on its device: `st_blocks` (of 512 bytes, stat(3type)) less what
/// compression of f2fs has saved of them, and of btrfs what its extents take. It may be opened, but
/// nothing of it is read.
pub fn stored_bytes(path: &Path, found: &Metadata) -> io::Result<u64> {
    let allocated = found.blocks() * 512;
    if !found.is_file() || allocated == 0 {
        return Ok(allocated);
    }
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if let Some(bytes) = super::btrfs::stored_bytes(&file, found)? {
        return Ok(bytes);
    }
    Ok(allocated.saturating_sub(super::f2fs::saved_bytes(&file)?.unwrap_or(0)))
}

/// The attribute by which files are written in place, not copied on write (`chattr +C`).
pub const IN_PLACE: &str = "nocow";

/// The attribute by which files are compressed (`chattr +c`).
pub const COMPRESSED: &str = "compressed";

/// Names of a file's or folder's attributes, which lsattr shows as letters; an error where a file
/// system has none.
pub fn attributes(path: &Path) -> io::Result<Vec<String>> {
    let flags = rustix::fs::ioctl_getflags(File::open(path)?)?;
    Ok(flags.iter_names().map(|(name, _)| name.to_lowercase()).collect())
}

/// Bytes whose address suits O_DIRECT on every device: aligned to 4 KiB.
pub struct AlignedBuffer {
    /// Longer than asked for by up to one alignment; a vector's bytes do not move when it does.
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    pub const ALIGNMENT: usize = 4096;

    /// Zeros.
    pub fn new(length: usize) -> AlignedBuffer {
        let memory = vec![0; length + Self::ALIGNMENT];
        let start = memory.as_ptr().align_offset(Self::ALIGNMENT);
        AlignedBuffer { memory, start, length }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

/// Reads to the end and throws away; returns how many bytes there were. From a pipe nothing is
/// copied: splice(2) moves the pages into /dev/null, so that the reader costs the writer as little
/// as can be.
pub fn discard_pipe(reader: impl AsFd) -> io::Result<u64> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    let mut total = 0;
    loop {
        match rustix::pipe::splice(&reader, None, &nowhere, None, 1 << 20, SpliceFlags::MOVE) {
            Ok(0) => return Ok(total),
            Ok(bytes) => total += bytes as u64,
            Err(Errno::INTR) => {}
            Err(Errno::INVAL) if total == 0 => return discard_by_reading(reader), // not a pipe
            Err(error) => return Err(error.into()),
        }
    }
}

fn discard_by_reading(reader: impl AsFd) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut total = 0;
    loop {
        match rustix::io::read(&reader, &mut buffer) {
            Ok(0) => return Ok(total),
            Ok(bytes) => total += bytes as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Asks the kernel to give a pipe room for `bytes` bytes; returns the room that it got. Without
/// privileges the limit is /proc/sys/fs/pipe-max-size, usually 1 MiB.
pub fn set_pipe_size(pipe: impl AsFd, bytes: usize) -> io::Result<usize> {
    Ok(rustix::pipe::fcntl_setpipe_size(pipe, bytes)?)
}

/// sync_file_range(2): begins or awaits writing of a part of a file.
pub fn sync_range(file: impl AsFd, offset: u64, length: u64, flags: u32) -> io::Result<()> {
    // SAFETY: the call takes numbers alone; the descriptor is borrowed and so open.
    match unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), offset as i64, length as i64, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// ioctl_ficlonerange(2): `length` bytes of a file, 0 for all to its end, share their blocks with
/// another one.
pub fn clone_range(source: impl AsFd, from: u64, length: u64, sink: impl AsFd, to: u64) -> Result<(), Errno> {
    let src_fd = source.as_fd().as_raw_fd().into();
    let mut range = file_clone_range { src_fd, src_offset: from, src_length: length, dest_offset: to };
    // SAFETY: it reads the four numbers alone; both descriptors are borrowed and so open.
    let done = unsafe { super::ioctl(sink, FICLONERANGE, &raw mut range) };
    done.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Gives the kernel's pool of random numbers these bytes, as good as eight bits each. Only root
/// may.
pub fn add_entropy(bytes: &[u8; 64]) -> io::Result<()> {
    /// `_IOW('R', 3, int[2])` of linux/random.h.
    const RNDADDENTROPY: u32 = 0x4008_5203;
    #[repr(C)]
    struct Pool {
        bits: i32,
        size: i32,
        bytes: [u8; 64],
    }
    let mut pool = Pool { bits: 512, size: 64, bytes: *bytes };
    // SAFETY: it reads two integers and as many bytes as the second one says.
    unsafe { super::ioctl(File::options().write(true).open("/dev/random")?, RNDADDENTROPY, &raw mut pool) }
}

/// Has the kernel's generator of random numbers begin anew from its pool. Only root may.
pub fn reseed() -> io::Result<()> {
    /// `_IO('R', 7)` of linux/random.h.
    const RNDRESEEDCRNG: u32 = 0x5207;
    // SAFETY: it takes no argument.
    unsafe { super::ioctl(File::options().write(true).open("/dev/random")?, RNDRESEEDCRNG, std::ptr::null_mut::<u8>()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::ReadWriteFlags;
    use std::io::{IoSliceMut, Write};
    use std::os::unix::fs::FileExt;

    /// True when the file's first page is cached: then a read that may not wait succeeds.
    fn cached(path: &Path) -> bool {
        let mut page = [0; 4096];
        let file = File::open(path).unwrap();
        rustix::io::preadv2(&file, &mut [IoSliceMut::new(&mut page)], 0, ReadWriteFlags::NOWAIT).is_ok()
    }

    #[test]
    fn a_dropped_file_comes_from_the_device() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
        if rustix::fs::statfs(folder.path()).unwrap().f_type == 0x0102_1994 {
            return pickfs_test_support::not_run("the temporary folder is in memory, where nothing can be dropped");
        }
        assert!(cached(&path));
        // A page that the kernel is looking at stays for the moment.
        let dropped = (0..50).any(|_| {
            drop_file_cache(&path).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            !cached(&path)
        });
        assert!(dropped);
    }

    /// A pipe would be waited for, and a device never end.
    #[test]
    fn only_a_regular_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "text").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        for appends in [false, true] {
            assert!(open_regular(&path("file"), appends).is_ok());
            for other in [path("pipe"), path("socket"), "/dev/zero".into(), "/dev".into()] {
                let error = open_regular(&other, appends).unwrap_err().to_string();
                let is_folder = other == Path::new("/dev") && appends;
                assert!(is_folder || error == "it is not a regular file", "{}: {error}", other.display());
            }
        }
        assert!(open_regular(&path("link"), false).is_ok());
        assert!(open_regular(&path("link"), true).unwrap_err().to_string().contains("symbolic link"));
    }

    #[test]
    fn a_copy_and_a_file_made_again_are_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("file"), folder.path().join("copy"));
        std::fs::write(&path, "text").unwrap();
        let of = |path: &Path| inode_and_birth(File::open(path).unwrap()).unwrap();
        let first = of(&path);
        std::fs::copy(&path, &copy).unwrap();
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        assert_eq!(of(&folder.path().join("moved")), first);
        std::fs::rename(&copy, &path).unwrap();
        assert_ne!(of(&path), first);
    }

    #[test]
    fn aligned_buffers_suit_direct_io() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut buffer = AlignedBuffer::new(8192);
        buffer.fill(b'y');
        assert_eq!((buffer.len(), buffer.as_ptr() as usize % AlignedBuffer::ALIGNMENT), (8192, 0));
        match open_direct(&path, true) {
            Ok(file) => file.write_all_at(&buffer, 4096).unwrap(),
            Err(error) => return pickfs_test_support::not_run(format!("direct I/O is refused here: {error}")),
        }
        let mut back = AlignedBuffer::new(4096);
        open_direct(&path, false).unwrap().read_exact_at(&mut back, 8192).unwrap();
        assert_eq!(back[..], buffer[..4096]);
    }

    #[test]
    fn attributes_are_named_as_they_are_looked_for() {
        let flags = rustix::fs::IFlags::NOCOW | rustix::fs::IFlags::COMPRESSED;
        assert_eq!(flags.iter_names().map(|(name, _)| name.to_lowercase()).collect::<Vec<_>>(), [COMPRESSED, IN_PLACE]);
    }

    #[test]
    fn every_byte_is_discarded_and_counted() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        assert!(set_pipe_size(&reader, 65536).unwrap() >= 65536);
        let sender = std::thread::spawn(move || writer.write_all(&vec![1; 3_000_001]));
        assert_eq!(discard_pipe(&reader).unwrap(), 3_000_001);
        sender.join().unwrap().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"not a pipe").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        assert_eq!(discard_pipe(&file).unwrap(), 10);
    }
}
