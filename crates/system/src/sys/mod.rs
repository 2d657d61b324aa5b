//! The only room with `unsafe` or ioctl: what Linux offers and neither the standard library nor
//! rustix wraps.
//!
//! Plain functions of files, devices and processes. It must not know what is compared, what was
//! planned or where results go: a caller gets bytes, counts and `io::Error`, and gives them a
//! meaning.

#![expect(unsafe_code, reason = "small functions that are safe to call, each with the reason why it is sound")]

pub mod block;
pub mod btrfs;
pub mod clock;
pub mod devices;
pub mod disk_model;
pub mod extents;
pub mod f2fs;
pub mod file;
pub mod lz4;
pub mod mark;
pub mod own_folder;
pub mod process;
pub mod ptrace;
pub mod quota;
pub mod rings;
pub mod seccomp;
pub mod stdio;
pub mod thread_pool;
pub mod uring;

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// One ioctl.
///
/// # Safety
///
/// `argument` must be what the kernel expects of `request`: valid for the kernel's reads and writes
/// during the call, or null where the request takes no argument.
unsafe fn ioctl<T>(file: impl AsFd, request: u32, argument: *mut T) -> io::Result<()> {
    // The request's type differs between C libraries (unsigned long, int), hence the cast.
    // SAFETY: the caller vouches for the argument; the descriptor is borrowed and so open.
    match unsafe { libc::ioctl(file.as_fd().as_raw_fd(), request as _, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
