//! Ports of x86 machines.

use std::io;

/// Writes a byte. Only root may.
#[cfg(target_arch = "x86_64")]
pub fn write(port: u16, byte: u8) -> io::Result<()> {
    // SAFETY: it changes what this thread may do with one port, and reads no memory.
    if unsafe { libc::ioperm(port.into(), 1, 1) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the instruction touches neither memory nor stack.
    unsafe { std::arch::asm!("out dx, al", in("dx") port, in("al") byte, options(nomem, nostack)) };
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
pub fn write(_port: u16, _byte: u8) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
