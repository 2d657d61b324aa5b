//! Programs of drivers beside mkfs and mount: what makes data durable, takes snapshots and lists free space.

use super::spec::filled;
use super::{Argv, FsSpec};

/// A program that lists the free space of the device, which it only reads.
#[derive(Clone, Copy)]
pub struct FreeSpace {
    pub(super) program: &'static [&'static str],
    /// Number and mean bytes of free extents in what it prints; the file system's blocks are of the given bytes.
    pub extents: fn(&str, u64) -> Option<(f64, f64)>,
}

impl FreeSpace {
    pub fn program(&self, spec: &FsSpec) -> Argv {
        filled(self.program, spec)
    }
}

/// A program that makes data durable.
#[derive(Clone, Copy)]
pub struct Commit {
    pub words: fn(&FsSpec) -> Argv,
    /// The same program with nothing to write or to wait for: what this takes is no time of the file system's.
    pub idle: fn(&FsSpec) -> Argv,
}

/// Programs that take, send and delete snapshots of the whole file system, each of its own number.
#[derive(Clone, Copy)]
pub struct Snapshots {
    pub take: fn(&FsSpec, u64) -> Argv,
    /// Prints one as a stream.
    pub send: fn(&FsSpec, u64) -> Argv,
    pub delete: fn(&FsSpec, u64) -> Argv,
    /// Where the room of deleted ones is given back later.
    pub freed: Option<Freed>,
}

/// How it is learnt that the room of deleted snapshots is free.
#[derive(Clone, Copy)]
pub struct Freed {
    pub program: fn(&FsSpec) -> Argv,
    pub is_free: IsFree,
}

/// Reads it in what the program printed.
pub type IsFree = fn(&str) -> bool;
