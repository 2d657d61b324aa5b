//! Programs of drivers beside mkfs and mount: what makes data durable, takes snapshots and lists free space.

use super::spec::filled;
use super::{Argv, FsSpec};
use std::path::PathBuf;

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

/// Programs that take, send and delete snapshots of the whole file system, each of its own number, and go back to one.
#[derive(Clone, Copy)]
pub struct Snapshots {
    pub take: fn(&FsSpec, u64) -> Argv,
    /// Prints one as a stream.
    pub send: fn(&FsSpec, u64) -> Argv,
    pub delete: fn(&FsSpec, u64) -> Argv,
    /// Makes the first one anew of its stream, which is its input. None may be there.
    pub receive: fn(&FsSpec) -> Argv,
    /// The mount point of what was received.
    pub received: fn(&FsSpec) -> PathBuf,
    /// The newest is what is mounted from then on, to be written to.
    pub roll_back: fn(&FsSpec, u64) -> Vec<Argv>,
    /// Whether it takes a mount to see that.
    pub mounts_to_roll_back: bool,
    /// Where the room of deleted ones is given back later.
    pub freed: Option<Freed>,
    /// Prints the bytes that would be free without all of them; where there is none, extents are counted.
    pub exclusive: Option<fn(&FsSpec) -> Argv>,
}

/// How it is learnt that the room of deleted snapshots is free.
#[derive(Clone, Copy)]
pub struct Freed {
    pub program: fn(&FsSpec) -> Argv,
    pub is_free: IsFree,
}

/// Reads it in what the program printed.
pub type IsFree = fn(&str) -> bool;

/// What an administrator does with the whole of a file system now and then: check, grow, rebuild, scrub, balance, quota, trim.
#[derive(Clone, Copy)]
pub struct Upkeep {
    pub operation: &'static str,
    /// Variants with this operation; if none is named, all of them.
    pub variants: &'static [&'static str],
    /// Whether it is done while the file system is mounted.
    pub is_mounted: bool,
    /// Run before, while it is mounted or not, as here: what makes it half as large, whose bytes are [`HALF`].
    pub(super) before: (bool, Words),
    pub(super) programs: Words,
}

/// Programs one after the other.
type Words = &'static [&'static [&'static str]];

impl Upkeep {
    /// While it is mounted, and after nothing else.
    pub(super) const fn mounted(operation: &'static str, programs: Words) -> Upkeep {
        Upkeep { operation, variants: &[], is_mounted: true, before: (true, &[]), programs }
    }

    /// Only with these variants.
    pub(super) const fn of(self, variants: &'static [&'static str]) -> Upkeep {
        Upkeep { variants, ..self }
    }

    /// While it is not.
    pub(super) const fn unmounted(operation: &'static str, programs: Words) -> Upkeep {
        Upkeep { is_mounted: false, ..Upkeep::mounted(operation, programs) }
    }

    pub fn programs(&self, spec: &FsSpec) -> Vec<Argv> {
        self.programs.iter().map(|words| filled(words, spec)).collect()
    }

    /// Whether it is mounted meanwhile, and what makes it so small.
    pub fn before(&self, spec: &FsSpec, bytes: u64) -> (bool, Vec<Argv>) {
        let half = format!("{}K", bytes >> 10);
        let fill = |words: &&[&str]| {
            filled(words, spec).into_iter().map(|word| if word == HALF { half.clone() } else { word }).collect()
        };
        (self.before.0, self.before.1.iter().map(fill).collect())
    }
}

/// A new disk in the place of the last one: all zeros, by plain writes, so that an image keeps its blocks.
pub(super) const ANOTHER_LAST: &[&str] = &["shred", "--iterations=0", "--zero", super::LAST];

/// Whole files, and pieces of 128 KiB, that are there twice become one (duperemove(8)).
pub(super) const DEDUP: Upkeep = Upkeep::mounted("dedup", &[&["duperemove", "-d", "-r", "-q", super::MOUNT_POINT]]);

/// Stands for so many KiB, as in `2048K`.
pub(super) const HALF: &str = "{half}";

/// What is on a disk has it: unmounted and mounted.
pub const MOUNT: Upkeep = Upkeep::unmounted("mount", &[]);

/// Every mounted file system that can discard has it.
pub const TRIM: Upkeep = Upkeep::mounted("trim", &[&["fstrim", super::MOUNT_POINT]]);
