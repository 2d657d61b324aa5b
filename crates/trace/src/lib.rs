//! Recordings of what a program does to its files: the format `.pktrace`, and what can be asked of
//! one without a file system.
//!
//! A trace has no names and no contents: names are numbers, text is nowhere but in the header,
//! which the format's own types fill. A trace comes from anybody, so [`read`] holds it for hostile:
//! what it lets through cannot name a place outside of the folder it is replayed in, and every
//! number in it is within its bounds.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod columns;
mod edit;
mod file;
mod not_recorded;
mod op;
mod paths;
pub mod record;
pub mod shipped;
mod stats;
mod writer;

pub use edit::{cut, scale};
pub use file::{is_one, read};
pub use not_recorded::NotRecorded;
pub use op::{Class, Kind, MOST_ERRNO, Op, SENDFILE, Target, attribute};
pub use paths::{Names, Numbering, PathNode, Paths};
pub use stats::{ClassCount, Stats};
pub use writer::Writer;

use serde::{Deserialize, Serialize};

/// What a trace says of itself, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format.
    pub schema: u32,
    pub made_by: String,
    pub kernel: String,
    /// What the first folder lay on.
    pub file_system: String,
    /// Folders that were watched.
    pub roots: u32,
    /// Threads, each from 0 on.
    pub threads: u32,
    /// From the start of the program to its end, with what recording cost.
    pub wall_ns: u64,
    /// User and system time of the program, with what the stops cost.
    pub cpu_ns: u64,
    /// How often it was stopped.
    pub stops: u64,
    /// Calls on files at which it was stopped, wherever the files lie, and calls that were seen
    /// without a stop.
    #[serde(default)]
    pub stopped_calls: u64,
    #[serde(default)]
    pub unstopped_calls: u64,
    /// CPU time between two calls that is the stops' and not the program's: taken off each time to
    /// think.
    pub stop_cost_ns: u64,
    /// What the program had read from block devices.
    pub device_read_bytes: u64,
    /// Bytes of opened files of the first tree that were not in memory when it began; none in
    /// recordings of old versions.
    #[serde(default)]
    pub uncached_bytes: Option<u64>,
    /// Calls on files that lie elsewhere, which are not recorded.
    pub elsewhere: u64,
    /// Calls on the watched files that have no place in the format.
    pub not_recorded: u64,
    /// Why so; recordings of old versions do not say.
    #[serde(default, skip_serializing_if = "NotRecorded::is_none")]
    pub reasons: NotRecorded,
    /// The program's exit code; minus the signal that ended it.
    pub exit: i32,
}

/// The only one there is.
pub const SCHEMA: u32 = 1;

/// Which bytes a file has, as [`Op`]s that write it and the first tree say: how well they can be
/// compressed.
pub const CLASSES: u8 = 4;

/// What was there when the recording began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: u32,
    pub what: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Directory,
    /// With content of a class.
    File {
        bytes: u64,
        class: u8,
    },
    /// A file that was seen in a listing and never opened: it gets its size, and no bytes.
    Hollow {
        bytes: u64,
    },
    /// To a path of the trace, or elsewhere.
    Link {
        to: Option<u32>,
    },
    /// A further name of a file that comes before.
    HardLink {
        to: u32,
    },
    /// A pipe, a socket, a device: made as a pipe.
    Node,
}

/// A recording, read and checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub header: Header,
    pub paths: Paths,
    /// Folders before what is in them.
    pub tree: Vec<Entry>,
    /// In the order in which they ended.
    pub ops: Vec<Op>,
}

impl Trace {
    /// Bytes that the first tree holds.
    pub fn tree_bytes(&self) -> u64 {
        let bytes = |entry: &Entry| if let EntryKind::File { bytes, .. } = entry.what { bytes } else { 0 };
        self.tree.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// At least half of what was there and was opened was not in memory. Old recordings know only
    /// what the program had read from devices, wherever it lay; programs that are loaded count
    /// there too, so little says nothing.
    pub fn began_cold(&self) -> bool {
        const LEAST: u64 = 1 << 20;
        let cold = self.header.uncached_bytes.unwrap_or(self.header.device_read_bytes);
        self.tree_bytes() >= LEAST && cold >= self.tree_bytes() / 2
    }
}

/// A duration rounded to five binary digits that count: no more is meant, and it makes a trace a
/// third smaller.
pub(crate) fn coarse(ns: u64) -> u64 {
    let spare = (64 - ns.leading_zeros()).saturating_sub(5);
    if spare == 0 { ns } else { ns.saturating_add(1 << (spare - 1)) >> spare << spare }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_elsewhere_makes_no_start_cold() {
        const MIB: u64 = 1 << 20;
        let file = Entry { path: 1, what: EntryKind::File { bytes: 4 * MIB, class: 0 } };
        for (device_read_bytes, uncached_bytes, cold) in [
            (229 * MIB, Some(0), false),
            (0, Some(3 * MIB), true),
            (229 * MIB, Some(MIB), false),
            (229 * MIB, None, true),
            (0, None, false),
        ] {
            let header = Header { device_read_bytes, uncached_bytes, ..Header::default() };
            let trace = Trace { header, tree: vec![file], ..Trace::default() };
            assert_eq!(trace.began_cold(), cold, "{device_read_bytes} {uncached_bytes:?}");
        }
    }

    #[test]
    fn durations_lose_little() {
        for ns in [0, 1, 31, 32, 33, 100, 1_000, 123_456, 999_999_999, u64::MAX / 2] {
            let error = coarse(ns).abs_diff(ns) as f64 / ns.max(1) as f64;
            assert!(error <= 1.0 / 32.0, "{ns} {}", coarse(ns));
        }
        assert_eq!((coarse(17), coarse(65)), (17, 64));
    }
}
