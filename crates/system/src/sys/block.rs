//! Block devices: their size, their buffers, discarding.

use super::ioctl;
use linux_raw_sys::ioctl::{BLKDISCARD, BLKFLSBUF, BLKGETSIZE64};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes out and forgets what the kernel buffers of the device itself, as `blockdev --flushbufs`.
/// A file system's own caches are not in there.
pub fn flush_buffers(device: &Path) -> io::Result<()> {
    let device = File::open(device)?;
    // SAFETY: BLKFLSBUF takes no argument.
    unsafe { ioctl(&device, BLKFLSBUF, std::ptr::null_mut::<u8>()) }
}

/// The device's size in bytes.
pub fn size_of_device(device: &Path) -> io::Result<u64> {
    let device = File::open(device)?;
    let mut bytes = 0u64;
    // SAFETY: BLKGETSIZE64 writes one u64.
    unsafe { ioctl(&device, BLKGETSIZE64, &raw mut bytes) }?;
    Ok(bytes)
}

/// Opens a device as mount(2) claims it: refused (EBUSY) while anybody has it, and refused to
/// others while this is open.
pub fn open_exclusive(device: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device)
}

/// What a loop device is attached to.
#[derive(Clone, Copy, Debug)]
pub struct LoopStatus {
    /// Device and inode number of the file, as stat(2) gives them.
    pub file: (u64, u64),
    /// `major:minor` of the block device, where the file is one.
    pub device: Option<(u32, u32)>,
}

/// `LOOP_GET_STATUS64` of loop(4); ENXIO where the device is attached to nothing.
pub fn loop_status(device: &Path) -> io::Result<LoopStatus> {
    const LOOP_GET_STATUS64: u32 = 0x4C05;
    /// Size of `struct loop_info64` in linux/loop.h; it begins with device, inode, and the device
    /// that the file is.
    const BYTES: usize = 232;
    let device = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(device)?;
    let mut status = [0u64; BYTES / size_of::<u64>()];
    // SAFETY: LOOP_GET_STATUS64 writes one loop_info64, which is as long as this.
    unsafe { ioctl(&device, LOOP_GET_STATUS64, &raw mut status) }?;
    let [device, inode, number, ..] = status;
    let below = (number != 0).then(|| (rustix::fs::major(number), rustix::fs::minor(number)));
    Ok(LoopStatus { file: (device, inode), device: below })
}

/// Attaches a file to a loop device that has none, past the page cache where `direct` says so and
/// the file system can. The kernel detaches it with its last user, of which the file that comes
/// back is one: nothing is left of it, however this process ends (`LO_FLAGS_AUTOCLEAR` of loop(4),
/// `LOOP_CONFIGURE` of Linux 5.8). EBUSY where another was faster.
///
/// Its sectors have 4096 bytes: else the kernel takes what direct I/O needs on this very file,
/// which on XFS is more for one that shares blocks, and a file system that was made on the one
/// could not be mounted on the other.
pub fn attach_loop(device: &Path, file: &File, direct: bool) -> io::Result<File> {
    const LOOP_CONFIGURE: u32 = 0x4C0A;
    const AUTOCLEAR: u32 = 4;
    const DIRECT_IO: u32 = 16;
    /// Where `lo_flags` lies in `struct loop_info64`, in words of 32 bits.
    const FLAGS: usize = 13;
    /// `struct loop_config` of linux/loop.h.
    #[repr(C)]
    struct Config {
        file: u32,
        block_size: u32,
        info: [u32; 58],
        reserved: [u64; 8],
    }
    let device = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(device)?;
    let mut config = Config { file: file.as_raw_fd() as u32, block_size: 4096, info: [0; 58], reserved: [0; 8] };
    config.info[FLAGS] = if direct { AUTOCLEAR | DIRECT_IO } else { AUTOCLEAR };
    // SAFETY: LOOP_CONFIGURE reads one loop_config, which is as long as this.
    unsafe { ioctl(&device, LOOP_CONFIGURE, &raw mut config) }?;
    Ok(device)
}

/// Declares `bytes` bytes of the device from `from` on as unused: their content is lost. Both must
/// be multiples of the logical block. The device is opened exclusively, as by blkdiscard(8), so
/// that a mounted one is refused (EBUSY).
pub fn discard(device: &Path, from: u64, bytes: u64) -> io::Result<()> {
    let device = OpenOptions::new().read(true).write(true).custom_flags(libc::O_EXCL).open(device)?;
    let mut range = [from, bytes];
    // SAFETY: BLKDISCARD reads two u64, start and length.
    unsafe { ioctl(&device, BLKDISCARD, &raw mut range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_file_is_no_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(flush_buffers(file.path()).is_err());
        assert!(size_of_device(file.path()).is_err());
        assert!(discard(file.path(), 0, 4096).is_err());
        assert!(loop_status(file.path()).is_err());
        assert!(attach_loop(file.path(), file.as_file(), false).is_err());
    }
}
