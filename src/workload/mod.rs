//! Workloads, one file each, in one sorted list.
//!
//! A workload reads as prose: it names its phases and says what each one does. It must not know the clock, the
//! caches, the sync, the probes or the file system; the [`Stage`] owns those, so that no workload can forget them.
//!
//! Must not know: `analysis`, `executor`, `render`, `run`, `wording`.

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

use crate::need::Need;
use crate::plan::{Objection, Setting, Settings};
use crate::stack::{Argv, Place};
use crate::stage::{Phase, Stage};
use anyhow::Result;
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

/// The workload of that name.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    ALL.iter().copied().find(|workload| workload.name() == name)
}
