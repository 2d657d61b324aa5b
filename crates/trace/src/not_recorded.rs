//! Why calls on the watched files are not in a trace.

use super::Header;
use serde::{Deserialize, Serialize};

/// Calls, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotRecorded {
    /// Through io_uring, which is not seen; of a program that ran already it cannot be refused.
    pub io_uring: u64,
    /// A copy or a clone inside the kernel between a watched folder and another one.
    pub partly_elsewhere: u64,
    /// Mappings of files, of which a log does not show what was read and written.
    pub mapped: u64,
    /// On a file that was open before the log began.
    pub opened_before: u64,
    /// Of a thread that was not followed yet.
    pub unknown_thread: u64,
    /// At an offset or with a length that no file can have.
    pub beyond_files: u64,
}

impl NotRecorded {
    pub(crate) fn is_none(&self) -> bool {
        *self == NotRecorded::default()
    }

    /// What each is called, the same whether one call or many are meant.
    fn rows(&self) -> [(u64, &'static str); 6] {
        [
            (self.io_uring, "through io_uring"),
            (self.partly_elsewhere, "for a clone or copy between these folders and others"),
            (self.mapped, "through memory (mmap), whose reads and writes a log does not show"),
            (self.opened_before, "on files that were open before the log began"),
            (self.unknown_thread, "by threads that were not followed yet"),
            (self.beyond_files, "at an offset or with a length that no file can have"),
        ]
    }
}

impl Header {
    pub(crate) fn miss(&mut self, reason: impl FnOnce(&mut NotRecorded) -> &mut u64) {
        self.not_recorded += 1;
        *reason(&mut self.reasons) += 1;
    }

    /// In words, behind `lead`: "2 through io_uring, 1 by threads that were not followed yet".
    /// Empty where that is not known.
    pub fn why_not_recorded(&self, lead: &str) -> String {
        let rows = self.reasons.rows().into_iter().filter(|(calls, _)| *calls > 0);
        let words: Vec<String> = rows.map(|(calls, why)| format!("{calls} {why}")).collect();
        if words.is_empty() { String::new() } else { format!("{lead}{}", words.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_that_is_missed_has_its_reason() {
        let mut header = Header { not_recorded: 3, ..Header::default() };
        assert_eq!(header.why_not_recorded(": "), "");
        header.miss(|reasons| &mut reasons.io_uring);
        header.miss(|reasons| &mut reasons.unknown_thread);
        header.miss(|reasons| &mut reasons.io_uring);
        assert_eq!(header.why_not_recorded(": "), ": 2 through io_uring, 1 by threads that were not followed yet");
        let known: u64 = header.reasons.rows().iter().map(|(calls, _)| calls).sum();
        assert_eq!((header.not_recorded, known), (6, 3));
        let text = serde_json::to_string(&header).expect("JSON");
        assert_eq!(serde_json::from_str::<Header>(&text).expect("a header"), header);
    }
}
