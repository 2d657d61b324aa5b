//! What compression saves of a file on f2fs, which neither `stat(2)` nor `statfs(2)` show.

use super::ioctl;
use linux_raw_sys::general::F2FS_SUPER_MAGIC;
use linux_raw_sys::ioctl::F2FS_IOC_GET_COMPRESS_BLOCKS;
use rustix::fs::fstatfs;
use std::fs::File;
use std::io;

/// Bytes of a file's or folder's `st_blocks` that nothing is written to, as compression saved them:
/// the kernel keeps them for the file until they are released, and this is 0 from then on
/// (fs/f2fs/file.c). `None` where compression is not to be asked about: on other file systems, on
/// f2fs made without it, and before Linux 5.7.
pub fn saved_bytes(file: &File) -> io::Result<Option<u64>> {
    let found = fstatfs(file)?;
    if found.f_type != i64::from(F2FS_SUPER_MAGIC) {
        return Ok(None);
    }
    let mut blocks = 0u64;
    // SAFETY: F2FS_IOC_GET_COMPRESS_BLOCKS writes one u64.
    match unsafe { ioctl(file, F2FS_IOC_GET_COMPRESS_BLOCKS, &raw mut blocks) } {
        Ok(()) => Ok(Some(blocks * found.f_bsize as u64)),
        Err(error) => unless_asked_in_vain(error),
    }
}

/// A file that is not compressed is no error, nor is a file system that cannot compress.
fn unless_asked_in_vain(error: io::Error) -> io::Result<Option<u64>> {
    match error.raw_os_error() {
        Some(libc::EINVAL) => Ok(Some(0)),
        Some(libc::EOPNOTSUPP | libc::ENOTTY) => Ok(None),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_answered_is_an_error() {
        let rows = [
            (libc::EINVAL, Some(Some(0))),
            (libc::EOPNOTSUPP, Some(None)),
            (libc::ENOTTY, Some(None)),
            (libc::EIO, None),
        ];
        for (number, wanted) in rows {
            assert_eq!(unless_asked_in_vain(io::Error::from_raw_os_error(number)).ok(), wanted, "{number}");
        }
    }

    #[test]
    fn other_file_systems_are_not_asked() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(saved_bytes(&file).unwrap(), None);
    }
}
