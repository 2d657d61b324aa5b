//! What can be asked of a thread while it stands still: by /proc and its memory while it lives, or
//! by what a log says.

use super::cpu_clock::CpuClock;
use super::files::Mapping;
use super::mapped;
use crate::Op;
use pickfs_system::sys::ptrace::{read_memory, read_text};
use std::cell::{Cell, RefCell};
use std::os::unix::ffi::OsStringExt;

/// Where a program is seen.
pub trait World {
    /// Up to its NUL; none where it cannot be read.
    fn text(&self, tid: i32, address: u64) -> Option<Vec<u8>>;
    /// All of it or none.
    fn memory(&self, tid: i32, address: u64, length: usize) -> Option<Vec<u8>>;
    /// The folder that relative paths start from.
    fn folder(&self, tid: i32) -> Vec<u8>;
    /// Where an open file lies.
    fn descriptor(&self, tid: i32, descriptor: i32) -> Vec<u8>;
    fn clock(&self, tid: i32) -> CpuClock;
    /// What became of a mapping, as calls; none where that cannot be seen.
    fn mapped(&self, tid: i32, mapping: &Mapping) -> Option<Vec<Op>>;
    /// Nanoseconds since anything.
    fn now(&self) -> u64;
}

/// Pieces of a program's memory, by address.
pub(crate) type Pieces = Vec<(u64, Vec<u8>)>;

/// A program that runs now.
#[derive(Default)]
pub struct Live {
    /// A call that was made without a stop is looked at: what is known of the program's memory, and
    /// when that was.
    made: RefCell<Option<Pieces>>,
    at: Cell<u64>,
}

impl Live {
    pub fn new() -> Live {
        Live::default()
    }

    /// Looks at a call that was made without a stop: at its begin with its memory, and at its end.
    pub(crate) fn look_at(&self, memory: Pieces, ns: u64) {
        *self.made.borrow_mut() = Some(memory);
        self.at.set(ns);
    }

    pub(crate) fn look_at_end(&self, ns: u64) {
        self.at.set(ns);
    }

    /// Looks at the program itself again.
    pub(crate) fn look_at_now(&self) {
        *self.made.borrow_mut() = None;
    }
}

impl World for Live {
    fn text(&self, tid: i32, address: u64) -> Option<Vec<u8>> {
        if let Some(made) = self.made.borrow().as_ref() {
            return made.iter().find(|(known, _)| *known == address).map(|(_, text)| text.clone());
        }
        read_text(tid, address).ok()
    }

    fn memory(&self, tid: i32, address: u64, length: usize) -> Option<Vec<u8>> {
        if let Some(made) = self.made.borrow().as_ref() {
            return made.iter().find(|(known, _)| *known == address)?.1.get(..length).map(<[u8]>::to_vec);
        }
        let mut bytes = vec![0; length];
        let read = read_memory(tid, address, &mut bytes).ok()?;
        (read == length).then_some(bytes)
    }

    fn folder(&self, tid: i32) -> Vec<u8> {
        link(tid, "cwd")
    }

    fn descriptor(&self, tid: i32, descriptor: i32) -> Vec<u8> {
        link(tid, &format!("fd/{descriptor}"))
    }

    fn clock(&self, tid: i32) -> CpuClock {
        CpuClock::of(tid)
    }

    fn mapped(&self, tid: i32, mapping: &Mapping) -> Option<Vec<Op>> {
        Some(mapped::operations(tid, mapping))
    }

    fn now(&self) -> u64 {
        if self.made.borrow().is_some() {
            return self.at.get();
        }
        pickfs_system::sys::clock::monotonic()
    }
}

fn link(tid: i32, what: &str) -> Vec<u8> {
    std::fs::read_link(format!("/proc/{tid}/{what}")).map(|path| path.into_os_string().into_vec()).unwrap_or_default()
}
