//! Workloads, one file each, in one sorted list.
//!
//! A workload reads as prose: it names its phases and says what each one does. It must not know the clock, the
//! caches, the sync, the probes or the file system; the [`Stage`] owns those, so that no workload can forget them.

mod archive;
mod bonnie;
mod boot;
mod check;
mod command;
mod copy_in;
mod dataset;
mod fio;
pub mod io;
mod kernel;
mod manager;
mod meta_crash;
mod meta_fail;
mod meta_hang;
mod meta_leak;
mod meta_ok;
mod meta_read;
mod meta_true;
mod packages;
mod pgbench;
mod postgres;
mod props;
mod respond;
pub mod small_files;
mod sqlite;
mod stream;
mod tree;
mod walk;

use crate::agent::Stage;
use crate::need::Need;
use crate::plan::{Objection, Setting, Settings};
use crate::stack::{Argv, Place};
use anyhow::Result;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Every workload, sorted by name.
pub const ALL: &[&dyn Workload] = &[
    &bonnie::Bonnie,
    &boot::Boot,
    &check::Check,
    &command::Command,
    &copy_in::CopyIn,
    &fio::Fio,
    &io::Io,
    &kernel::Kernel,
    &meta_crash::MetaCrash,
    &meta_fail::MetaFail,
    &meta_hang::MetaHang,
    &meta_leak::MetaLeak,
    &meta_ok::MetaOk,
    &meta_read::MetaRead,
    &meta_true::MetaTrue,
    &packages::Packages,
    &pgbench::Pgbench,
    &respond::Respond,
    &small_files::SmallFiles,
    &sqlite::Sqlite,
    &stream::Stream,
    &tree::Tree,
    &walk::Walk,
];

/// A named job.
pub trait Workload: Sync {
    fn name(&self) -> &'static str;
    /// One sentence for `pickfs list workloads`.
    fn about(&self) -> &'static str;
    /// Runs the phases, in order.
    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()>;

    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    /// The setting that a bare value stands for in a plan.
    fn main_setting(&self) -> &'static str {
        ""
    }

    /// The timed parts, in order. Without settings, as `pickfs list` asks, those of the defaults.
    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        Vec::new()
    }

    /// Without settings, as `pickfs list` and `pickfs doctor` ask, those of the defaults.
    fn needs(&self, _settings: &Settings) -> Vec<Need> {
        Vec::new()
    }

    /// Programs that print versions of what is used.
    fn versions(&self, _settings: &Settings) -> Vec<(&'static str, Argv)> {
        Vec::new()
    }

    /// What is run after caches were dropped, so that a cold phase does not pay for loading programs: beside the
    /// programs of `needs`, which are asked for their version.
    fn warm_up(&self, _settings: &Settings, _place: &Place) -> Vec<Argv> {
        Vec::new()
    }

    /// What cannot be done with these settings, each right in itself.
    fn objections(&self, _settings: &Settings) -> Vec<Objection> {
        Vec::new()
    }

    /// Once per run, before any cell: stage sources in memory under `place.memory`.
    fn prepare(&self, _settings: &Settings, _place: &Place) -> Result<()> {
        Ok(())
    }

    /// Folders elsewhere on the machine that a cell needs, made before it and removed after it with all that is in
    /// them; their names carry the run's.
    fn folders(&self, _settings: &Settings, _place: &Place) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What is brought from another disk than the one under test, for guests, which get such a disk of their own.
    fn other_disk(&self, _settings: &Settings, _place: &Place) -> Option<OtherDisk> {
        None
    }

    /// Files below `root`, the folder that it works in, where PostgreSQL servers note the segments of System V shared
    /// memory that they leave when they are killed: removed when all of its programs have ended.
    fn segment_notes(&self, _root: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// A machine is booted from the target, which not every target can carry ([`Stage::boot`]).
    fn boots(&self) -> bool {
        false
    }

    /// Bytes that the work puts on the file system at its fullest, where that is known before the run.
    fn bytes(&self, _settings: &Settings) -> Option<u64> {
        None
    }
}

/// A tree that is to be on a disk of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherDisk {
    pub tree: PathBuf,
    /// Where the disk's image goes: the run's folder in memory, or another that carries the run's name.
    pub folder: PathBuf,
}

/// A timed part of a workload.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Owned where it hangs on settings; no `/` in it.
    pub name: Cow<'static, str>,
    pub about: &'static str,
    pub starts: Starts,
    /// What a cold start must make the device read; the proof that it was cold.
    pub reads: Reads,
    pub judged: Judged,
}

impl Phase {
    /// It leaves the file system as it found it, and can be repeated on it.
    pub fn only_reads(&self) -> bool {
        self.judged == Judged::Returned
    }

    /// A part of the phase named in `starts`, timed by the work itself: see [`crate::agent::Part`].
    pub const fn part(name: Cow<'static, str>, about: &'static str) -> Phase {
        Phase { name, about, starts: Starts::Within, reads: Reads::Told, judged: Judged::ByParts }
    }
}

/// What a phase reads of what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Every byte of every file.
    Data,
    /// Names and inodes, at most.
    Names,
    /// What the work says with [`crate::agent::Timed::reads_at_least`]; without that, nothing is proved.
    Told,
    /// Nobody knows how much: that the device read anything is all that can be asked for.
    Unknown,
}

/// The cache state that a phase starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// On the file system as the stage made it.
    Fresh,
    /// Nothing cached: unmounted, caches dropped, mounted again; proved by what the device then reads.
    Cold,
    /// As the phase before left it.
    Warm,
    /// Inside of a phase that is judged by its parts.
    Within,
}

/// Which of the two times is the phase's `time_ns`. Both are always measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Until the work returned: for phases that only read, and so can be repeated.
    Returned,
    /// Until what was written is durable: for writing.
    Durable,
    /// It has no time of its own, only its parts have: for a program that does one thing after the other and times each.
    ByParts,
}

/// The workload of that name.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    ALL.iter().copied().find(|workload| workload.name() == name)
}
