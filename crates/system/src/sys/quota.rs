//! What quotas count (quotactl(2)).

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the files of a user take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaUsage {
    pub bytes: u64,
    /// Files and folders.
    pub inodes: u64,
}

/// As the file system mounted from a device counts it. An error where it counts nothing (ESRCH,
/// ENOSYS).
pub fn of_user(device: &Path, user: u32) -> io::Result<QuotaUsage> {
    let device = CString::new(device.as_os_str().as_bytes())?;
    // SAFETY: `struct dqblk` is of integers alone, for which zero is a value.
    let mut found: libc::dqblk = unsafe { std::mem::zeroed() };
    let command = libc::QCMD(libc::Q_GETQUOTA, libc::USRQUOTA);
    // SAFETY: the name ends in a zero, and Q_GETQUOTA writes one `struct dqblk`.
    match unsafe { libc::quotactl(command, device.as_ptr(), user as _, (&raw mut found).cast()) } {
        0 => Ok(QuotaUsage { bytes: found.dqb_curspace, inodes: found.dqb_curinodes }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_device_counts_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(of_user(file.path(), 0).is_err());
        assert!(of_user(Path::new("/no/such/device"), 0).is_err());
    }
}
