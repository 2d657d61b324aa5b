//! What can be asked of a thread while it stands still: by /proc and its memory while it lives, or by what a log says.

use super::cpu_clock::CpuClock;
use super::files::Mapping;
use super::mapped;
use crate::sys::ptrace::{read_memory, read_text};
use crate::trace::Op;
use std::os::unix::ffi::OsStringExt;
use std::time::Instant;

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

/// A program that runs now.
pub struct Live(Instant);

impl Live {
    pub fn new() -> Live {
        Live(Instant::now())
    }
}

impl World for Live {
    fn text(&self, tid: i32, address: u64) -> Option<Vec<u8>> {
        read_text(tid, address).ok()
    }

    fn memory(&self, tid: i32, address: u64, length: usize) -> Option<Vec<u8>> {
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
        self.0.elapsed().as_nanos() as u64
    }
}

fn link(tid: i32, what: &str) -> Vec<u8> {
    std::fs::read_link(format!("/proc/{tid}/{what}")).map(|path| path.into_os_string().into_vec()).unwrap_or_default()
}
