//! The last output of a program that may write a lot: a guest's console, or QEMU itself.

use anyhow::{Context, Result};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Enough for the whole of a kernel's panic.
const KEPT: usize = 64 << 10;
/// For what lies in a pipe whose writer is gone; one that was never opened has no end.
const PATIENCE: Duration = Duration::from_millis(500);
/// Most characters of a line in a cause.
const LONGEST: usize = 200;
/// How a kernel begins to tell of trouble; what comes then is mostly registers.
const TROUBLE: [&str; 6] = ["Kernel panic", "BUG:", "Oops:", "Out of memory", "I/O error", "pickfs init:"];
const MOST_TROUBLES: usize = 3;

#[derive(Default)]
struct TailBuffer {
    bytes: VecDeque<u8>,
    said: u64,
}

/// Read by a thread, so that the writer never waits and the memory that it takes is bounded.
pub(crate) struct Tail {
    kept: Arc<Mutex<TailBuffer>>,
    ended: Receiver<()>,
}

impl Tail {
    pub(crate) fn of<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Tail {
        let kept: Arc<Mutex<TailBuffer>> = Arc::default();
        let (end, ended) = mpsc::channel();
        let shared = kept.clone();
        std::thread::spawn(move || {
            if let Ok(mut reader) = open() {
                let mut piece = [0; 4096];
                while let Ok(read @ 1..) = reader.read(&mut piece) {
                    shared.lock().unwrap_or_else(PoisonError::into_inner).take(&piece[..read]);
                }
            }
            // The receiver may be gone.
            let _ = end.send(());
        });
        Tail { kept, ended }
    }

    /// The tail of a named pipe that is made here; opening it waits for the writer.
    pub(crate) fn of_pipe(path: &Path) -> Result<Tail> {
        let _ = std::fs::remove_file(path);
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .with_context(|| format!("cannot make the pipe {}", path.display()))?;
        let path: PathBuf = path.into();
        Ok(Tail::of(move || File::open(path)))
    }

    /// When the writer is gone: until all that it said is here.
    pub(crate) fn finish(&self) {
        let _ = self.ended.recv_timeout(PATIENCE);
    }

    /// Bytes so far.
    pub(crate) fn said(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).said
    }

    /// Among what is kept.
    pub(crate) fn has_said(&self, text: &str) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).contains(text)
    }

    /// What matters of all output behind the first `since` bytes; `None` if there is nothing.
    pub(crate) fn words(&self, since: u64) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = kept.said.saturating_sub(since).min(kept.bytes.len() as u64) as usize;
        let bytes: Vec<u8> = kept.bytes.iter().skip(kept.bytes.len() - wanted).copied().collect();
        last_words(&String::from_utf8_lossy(&bytes))
    }
}

impl TailBuffer {
    fn take(&mut self, bytes: &[u8]) {
        self.said += bytes.len() as u64;
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..over);
    }
}

/// The first lines of trouble, and the last three.
fn last_words(text: &str) -> Option<String> {
    let lines: Vec<String> = text.lines().map(plain).filter(|line| !line.is_empty()).collect();
    let (earlier, last) = lines.split_at(lines.len().saturating_sub(3));
    let troubles = earlier.iter().filter(|line| TROUBLE.iter().any(|mark| line.contains(mark)));
    let excerpt: Vec<&str> = troubles.take(MOST_TROUBLES).chain(last).map(String::as_str).collect();
    (!excerpt.is_empty()).then(|| excerpt.join(" / "))
}

/// Without what would move a terminal's cursor, and not longer than a line.
pub(crate) fn plain(line: &str) -> String {
    line.trim().chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_of_a_console_is_told() {
        let rows = [
            ("", None),
            ("\r\n\n", None),
            ("a\r\nb\n\nc\nd\n", Some("b / c / d")),
            ("\u{1b}[2Ja\u{7}\n", Some("[2Ja")),
            (
                "x\n[ 1.0] Kernel panic - not syncing: crash\nRIP\nRAX\nRBX\nOffset\n",
                Some("[ 1.0] Kernel panic - not syncing: crash / RAX / RBX / Offset"),
            ),
            (
                "BUG: 1\nBUG: 2\nOops: 3\nBUG: 4\na\nb\nI/O error\n",
                Some("BUG: 1 / BUG: 2 / Oops: 3 / a / b / I/O error"),
            ),
        ];
        for (text, wanted) in rows {
            assert_eq!(last_words(text).as_deref(), wanted, "{text:?}");
        }
        assert_eq!(plain(&"x".repeat(1 << 20)).len(), LONGEST);
    }

    #[test]
    fn however_much_is_said_little_is_kept() {
        let flood = "flooded\n".repeat(KEPT) + "the end\n";
        let all = flood.len() as u64;
        let tail = Tail::of(move || Ok(io::Cursor::new(flood)));
        tail.finish();
        assert_eq!((tail.said(), tail.kept.lock().unwrap().bytes.len()), (all, KEPT));
        assert_eq!(tail.words(0).as_deref(), Some("flooded / flooded / the end"));
        assert_eq!(tail.words(all - 8).as_deref(), Some("the end"));
        assert_eq!(tail.words(all), None);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_one_that_nobody_opens_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("console");
        // One of an earlier guest is in the way.
        std::fs::write(&path, "old\n").unwrap();
        let tail = Tail::of_pipe(&path).unwrap();
        std::fs::write(&path, "new\n").unwrap();
        tail.finish();
        assert_eq!(tail.words(0).as_deref(), Some("new"));
        let silent = Tail::of_pipe(&path).unwrap();
        silent.finish();
        assert_eq!(silent.words(0), None);
    }
}
