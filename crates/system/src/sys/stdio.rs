//! Files by the C library's streams, a character at a time: what programs do that know nothing of
//! blocks.

use std::ffi::{CString, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A `FILE`, with the C library's own buffer.
pub struct Stream(*mut libc::FILE);

impl Stream {
    /// A new file to write, or nothing where there is one.
    pub fn create(path: &Path) -> io::Result<Stream> {
        Stream::open(path, c"wx")
    }

    pub fn read(path: &Path) -> io::Result<Stream> {
        Stream::open(path, c"r")
    }

    fn open(path: &Path, mode: &std::ffi::CStr) -> io::Result<Stream> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: both are strings that end in a zero byte and live during the call.
        let stream = unsafe { libc::fopen(path.as_ptr(), mode.as_ptr()) };
        if stream.is_null() { Err(io::Error::last_os_error()) } else { Ok(Stream(stream)) }
    }

    /// putc(3) as a function, which locks the stream.
    #[inline(always)]
    pub fn put(&mut self, byte: u8) -> io::Result<()> {
        // SAFETY: the stream is open until this is dropped or closed, which takes it away.
        match unsafe { libc::fputc(c_int::from(byte), self.0) } {
            libc::EOF => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// getc(3) as a function, which locks the stream; nothing at the end of the file.
    #[inline(always)]
    pub fn get(&mut self) -> io::Result<Option<u8>> {
        // SAFETY: as in `put`.
        match unsafe { libc::fgetc(self.0) } {
            libc::EOF => self.at_its_end(),
            byte => Ok(Some(byte as u8)),
        }
    }

    #[cold]
    fn at_its_end(&mut self) -> io::Result<Option<u8>> {
        let cause = io::Error::last_os_error();
        // SAFETY: as in `put`.
        if unsafe { libc::ferror(self.0) } != 0 { Err(cause) } else { Ok(None) }
    }

    /// Writes what is still in the buffer; an error that only shows now would be lost by dropping.
    pub fn close(self) -> io::Result<()> {
        let stream = std::mem::ManuallyDrop::new(self);
        // SAFETY: it is open, and cannot be used or closed again.
        if unsafe { libc::fclose(stream.0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: it is open, and this is its end.
        unsafe { libc::fclose(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_can_be_got() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..70_000u32).map(|number| (number % 256) as u8).collect();
        let mut stream = Stream::create(&path).unwrap();
        bytes.iter().for_each(|byte| stream.put(*byte).unwrap());
        stream.close().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        let mut stream = Stream::read(&path).unwrap();
        let mut found = Vec::new();
        while let Some(byte) = stream.get().unwrap() {
            found.push(byte);
        }
        assert_eq!(found, bytes);
        assert!(Stream::create(&path).is_err(), "a file that is there was taken for a new one");
    }

    #[test]
    fn a_full_device_is_an_error() {
        if !Path::new("/dev/full").exists() {
            return pickfs_test_support::not_run("there is no /dev/full");
        }
        let open = || Stream::open(Path::new("/dev/full"), c"w").unwrap();
        let mut stream = open();
        stream.put(1).unwrap();
        assert_eq!(stream.close().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        let mut stream = open();
        assert!((0..1 << 20).any(|_| stream.put(1).is_err()));
        let mut folder = Stream::read(Path::new("/")).unwrap();
        assert_eq!(folder.get().unwrap_err().raw_os_error(), Some(libc::EISDIR));
    }
}
