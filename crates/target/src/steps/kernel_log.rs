//! What the kernel wrote to its log while a program ran: mount(8) shows the number of an error, and
//! the log has the reason.

use rustix::fs::OFlags;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

const LOG: &str = "/dev/kmsg";
/// Bytes: no record is longer (`PRINTK_MESSAGE_MAX` of the kernel, and earlier
/// `CONSOLE_EXT_LOG_MAX`).
const LONGEST: usize = 8192;
/// `LOGLEVEL_WARNING` of the kernel: less is worse.
const WARNING: u64 = 4;
const SHOWN: usize = 3;

/// The kernel's log from one moment on. Where it may not be read, nothing is found in it.
pub(crate) struct KernelLog {
    log: Option<File>,
}

impl KernelLog {
    pub(crate) fn from_now() -> KernelLog {
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut log = File::options().read(true).custom_flags(flags).open(LOG).ok();
        log = log.filter(|mut log| log.seek(SeekFrom::End(0)).is_ok());
        KernelLog { log }
    }

    /// The first three warnings and errors since then. What others do at the same time is among
    /// them.
    pub(crate) fn complaints(self) -> Vec<String> {
        self.log.map_or_else(Vec::new, complaints)
    }
}

/// Each read gives one record (Documentation/ABI/testing/dev-kmsg).
fn complaints(mut log: impl Read) -> Vec<String> {
    let (mut found, mut record) = (Vec::new(), vec![0; LONGEST]);
    while found.len() < SHOWN {
        match log.read(&mut record) {
            Ok(length) if length > 0 => {
                found.extend(complaint(&String::from_utf8_lossy(&record[..length])).map(String::from));
            }
            // Records that we had not read yet were overwritten.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            _ => break,
        }
    }
    found
}

/// The text of a record, if the kernel wrote it as a warning or worse. The number before the first
/// comma is eight times the facility, of which the kernel's is 0, and the level.
fn complaint(record: &str) -> Option<&str> {
    let (head, text) = record.lines().next()?.split_once(';')?;
    let level: u64 = head.split(',').next()?.parse().ok()?;
    (level <= WARNING).then_some(text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a record at each read, as the kernel does.
    struct Log(Vec<Result<&'static str, ErrorKind>>);

    impl Read for Log {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let record = self.0.pop().unwrap_or(Err(ErrorKind::WouldBlock))?;
            buffer[..record.len()].copy_from_slice(record.as_bytes());
            Ok(record.len())
        }
    }

    #[test]
    fn warnings_and_errors_of_the_kernel_are_found() {
        let mut records = vec![
            Ok("6,339,5140900,-;NET: Registered PF_INET6 protocol family\n"),
            Ok(
                "3,340,5150900,-;EXT4-fs (sima): VFS: Found ext4 filesystem with invalid superblock checksum.\n SUBSYSTEM=block\n",
            ),
            Err(ErrorKind::BrokenPipe),
            Ok("11,341,5150901,-;written by a program\n"),
            Ok("4,342,5150902,-;second\n"),
            Ok("no record"),
            Ok("1,343,5150903,-;third; with a semicolon\n"),
            Ok("2,344,5150904,-;fourth\n"),
        ];
        records.reverse();
        let found = complaints(Log(records));
        let first = "EXT4-fs (sima): VFS: Found ext4 filesystem with invalid superblock checksum.";
        assert_eq!(found, [first, "second", "third; with a semicolon"]);
        assert!(complaints(Log(Vec::new())).is_empty());
    }
}
