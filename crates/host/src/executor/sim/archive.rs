//! The archive with what was staged, as a simulation gets it: files that this run has made get the
//! simulation's date. Their real one would be another in each run, and with it what lies on the
//! disk.

use std::io::{self, Read};

const BLOCK: usize = 512;
const MTIME: std::ops::Range<usize> = 136..148;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const SIZE: std::ops::Range<usize> = 124..136;
const MAGIC: std::ops::Range<usize> = 257..262;

/// A tar archive (POSIX.1-1988 "ustar", as GNU tar writes it) while it is read.
pub(crate) struct Dated<R> {
    archive: R,
    /// Seconds since 1970 from which on a file is of this run, and the time that it gets.
    since: u64,
    date: u64,
    block: [u8; BLOCK],
    /// Bytes of the block that were given out.
    given: usize,
    /// Blocks of a file's content that come before the next header.
    content: u64,
}

impl<R: Read> Dated<R> {
    pub(crate) fn new(archive: R, since: u64, date: u64) -> Dated<R> {
        Dated { archive, since, date, block: [0; BLOCK], given: BLOCK, content: 0 }
    }

    /// False at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        let mut filled = 0;
        while filled < BLOCK {
            match self.archive.read(&mut self.block[filled..])? {
                0 if filled == 0 => return Ok(false),
                0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends within a block")),
                read => filled += read,
            }
        }
        match self.content {
            0 if self.block[MAGIC] == *b"ustar" => self.header(),
            0 => {}
            _ => self.content -= 1,
        }
        self.given = 0;
        Ok(true)
    }

    fn header(&mut self) {
        self.content = number(&self.block[SIZE]).unwrap_or_default().div_ceil(BLOCK as u64);
        if number(&self.block[MTIME]).is_some_and(|time| time >= self.since) {
            self.block[MTIME].copy_from_slice(format!("{:011o}\0", self.date).as_bytes());
            self.block[CHECKSUM].fill(b' ');
            let sum: u32 = self.block.iter().map(|byte| u32::from(*byte)).sum();
            self.block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}

impl<R: Read> Read for Dated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == BLOCK && !self.next_block()? {
            return Ok(0);
        }
        let count = buffer.len().min(BLOCK - self.given);
        buffer[..count].copy_from_slice(&self.block[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

/// Octal digits, or, where these do not suffice, big endian behind a set bit (GNU tar).
fn number(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        return Some(field[field.len() - 8..].iter().fold(0, |all, byte| (all << 8) | u64::from(*byte)));
    }
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A real archive, listed by tar again.
    #[test]
    fn files_of_this_run_get_the_date_and_others_keep_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |words: &[&str]| {
            let out = Command::new(words[0]).args(&words[1..]).current_dir(folder.path()).env("TZ", "UTC").output();
            let out = out.expect("the program starts");
            assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        std::fs::write(folder.path().join("old"), "x".repeat(1500)).expect("a file");
        std::fs::write(folder.path().join("new"), "ustar".repeat(300)).expect("a file");
        run(&["touch", "-d", "@1000000000", "old"]);
        run(&["touch", "-d", "@1700000000", "new"]);
        run(&["tar", "-cf", "a.tar", "old", "new"]);
        let mut dated = Vec::new();
        let archive = std::fs::File::open(folder.path().join("a.tar")).expect("opened");
        Dated::new(archive, 1_600_000_000, 1_767_225_600).read_to_end(&mut dated).expect("read");
        std::fs::write(folder.path().join("b.tar"), dated).expect("written");
        let listed = run(&["tar", "-tvf", "b.tar"]);
        let lines: Vec<&str> = listed.lines().collect();
        assert!(lines[0].contains("2001-09-09 01:46 old") && lines[1].contains("2026-01-01 00:00 new"), "{listed}");
        std::fs::create_dir(folder.path().join("out")).expect("a folder");
        run(&["tar", "-xf", "b.tar", "-C", "out"]);
        run(&["cmp", "new", "out/new"]);
        run(&["cmp", "old", "out/old"]);
    }
}
