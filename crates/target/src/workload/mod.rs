//! Workloads, one file each, in one sorted list.
//!
//! A workload reads as prose: it names its phases and says what each one does. It must not know the
//! clock, the caches, the sync, the probes or the file system; the [`Stage`] owns those, so that no
//! workload can forget them.

mod command;
mod content;
mod fio;
pub mod io;
mod maintenance;
mod meta;
mod mount;
mod postgresql;
mod power;
mod recipe;
mod respond;
mod room;
mod settings;
pub mod small_files;
mod sqlite;
mod staging;
mod stream;
mod system;
pub mod trace;
mod trees;

use crate::stack::data::{commands, list};
use crate::stack::take_down::TakeDown;
use crate::stack::{Argv, Place, argv};
use crate::stage::{Phase, Stage, TimedUntil};
use anyhow::Result;
use pickfs_core::metric::Combine;
use pickfs_core::plan::{Judged, Objection, Setting, SettingKind, Settings};
use pickfs_system::need::Need;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use trees::Dataset;

/// Every workload, sorted by name.
pub static ALL: &[&dyn Workload] = &[
    &recipe::BONNIE,
    &system::boot::Boot,
    &trees::check::Check,
    &command::Command,
    &trees::containers::Containers,
    &trees::copy_in::CopyIn,
    &recipe::DUCKDB,
    &fio::Fio,
    &trees::image::Image,
    &io::Io,
    &system::kernel::Kernel,
    &power::ledger::Ledger,
    &maintenance::Maintenance,
    &meta::Crash,
    &meta::Fail,
    &meta::Hang,
    &meta::Leak,
    &meta::Healthy,
    &meta::Read,
    &meta::True,
    &mount::Mount,
    &system::packages::Packages,
    &recipe::PGBENCH,
    &recipe::GIVEN,
    &respond::Respond,
    &recipe::ROCKSDB,
    &small_files::SmallFiles,
    &trees::snapshots::Snapshots,
    &sqlite::Sqlite,
    &stream::Stream,
    &recipe::SYSBENCH,
    &trace::Replayed,
    &power::transactions::Transactions,
    &trees::tree::Tree,
    &trees::vm_image::VmImage,
    &trees::walk::Walk,
];

/// What is constant about a workload: data in its own file, but for what is code (`described!`).
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Description {
    pub name: &'static str,
    /// One sentence for `pickfs list workloads`.
    pub about: &'static str,
    #[serde(skip)]
    pub settings: &'static [Setting],
    /// The setting that a bare value stands for in a plan.
    pub main_setting: &'static str,
    /// Settings by which a plan chooses what is run, or what that loads, apart from commands.
    #[serde(deserialize_with = "list")]
    pub choose_programs: &'static [&'static str],
    /// The timed parts, in order.
    #[serde(deserialize_with = "list")]
    pub phases: &'static [Phase],
    /// Programs that it needs, with the packages that bring them.
    #[serde(deserialize_with = "list")]
    pub programs: &'static [(&'static str, &'static str)],
    /// Commands that print versions of what is used.
    #[serde(deserialize_with = "commands")]
    pub versions: &'static [&'static [&'static str]],
    /// It makes hard or symbolic links, whatever tree it works with.
    pub makes_links: bool,
    /// The tree of files that it works on, where each of its cells has one.
    #[serde(skip)]
    pub dataset: Option<fn(&Settings) -> Dataset>,
    /// It takes snapshots of the file system under test.
    pub takes_snapshots: bool,
    /// It packs a read-only image, and needs a file system that is one.
    pub makes_image: bool,
    /// It mounts overlayfs itself, on folders of the file system under test.
    pub mounts_overlayfs: bool,
    /// It boots a machine from the target, which not every target can carry ([`Stage::boot`]).
    pub boots: bool,
    /// It opens images that lie on the file system under test ([`Stage::open_disk`]).
    pub opens_disks: bool,
    /// How the times of its judged phases become one quantity, and what that is called: phases that
    /// have no unit in common have no sum.
    pub judged: (Combine, &'static str),
    /// About how many seconds a cell takes with its defaults, on a fast disk and two processors,
    /// with all that it waits for: as measured, mostly in examples/, which have the time of a
    /// round. 0 where that depends on what the user names.
    pub seconds: u64,
}

/// Of a workload whose phases have no unit in common.
const MEAN_OF_PHASES: (Combine, &str) = (Combine::GeometricMean, pickfs_core::plan::MEAN_OF_PHASES);

impl Description {
    pub(crate) const EMPTY: Description = Description {
        name: "",
        about: "",
        settings: &[],
        main_setting: "",
        choose_programs: &[],
        phases: &[],
        programs: &[],
        versions: &[],
        makes_links: false,
        dataset: None,
        takes_snapshots: false,
        makes_image: false,
        mounts_overlayfs: false,
        boots: false,
        opens_disks: false,
        judged: (Combine::Sum, ""),
        seconds: 0,
    };

    fn read(text: &'static str) -> Description {
        toml::from_str(text).unwrap_or_else(|error| panic!("a workload came broken: {error}"))
    }
}

impl Default for Description {
    fn default() -> Description {
        Description::EMPTY
    }
}

/// A workload's description: its file next to the code, the rows of its settings, of one list or
/// several, and the tree of files that it works on.
macro_rules! described {
    ($file:literal, [$($rows:expr),+] $(, $dataset:path)?) => {{
        static READ: std::sync::LazyLock<Description> = std::sync::LazyLock::new(|| Description {
            settings: [$($rows),+].concat().leak(),
            $(dataset: Some($dataset),)?
            ..Description::read(include_str!($file))
        });
        &READ
    }};
    ($file:literal, $rows:expr $(, $dataset:path)?) => {
        described!($file, [$rows] $(, $dataset)?)
    };
}
use described;

/// A named job. What depends on settings is asked with none by `pickfs list` and `pickfs doctor`,
/// which stands for the defaults.
pub trait Workload: Sync {
    fn description(&self) -> &'static Description;

    /// Runs the phases, in order.
    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()>;

    fn name(&self) -> &'static str {
        self.description().name
    }

    fn about(&self) -> &'static str {
        self.description().about
    }

    fn settings(&self) -> &'static [Setting] {
        self.description().settings
    }

    fn main_setting(&self) -> &'static str {
        self.description().main_setting
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        self.description().phases.to_vec()
    }

    fn judged(&self, settings: &Settings) -> Judged {
        judged(&self.phases(settings), self.description().judged)
    }

    /// Commands of the work that its user chose with it, with the purpose of each; without commands
    /// that are settings.
    fn chosen_commands(&self, _settings: &Settings) -> Vec<(&'static str, Argv)> {
        Vec::new()
    }

    /// The same for a cell, on the machine that does it, once sources are staged.
    fn phases_of_cell(&self, settings: &Settings, _place: &Place) -> Vec<Phase> {
        self.phases(settings)
    }

    fn needs(&self, _settings: &Settings) -> Vec<Need> {
        programs(self.description().programs)
    }

    /// Programs that print versions of what is used, by name.
    fn versions(&self, _settings: &Settings) -> Vec<(&'static str, Argv)> {
        self.description().versions.iter().map(|words| (words[0], argv(*words))).collect()
    }

    /// What is run after caches were dropped, so that a cold phase does not pay for loading
    /// programs: in addition to the programs of `needs`, which are asked for their version.
    fn warm_up(&self, _settings: &Settings, _place: &Place) -> Vec<Argv> {
        Vec::new()
    }

    /// The tree of files that it works on, staged in memory before any cell.
    fn dataset(&self, settings: &Settings) -> Option<Dataset> {
        self.description().dataset.map(|of| of(settings))
    }

    /// What cannot be done with these settings, each right in itself.
    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        self.dataset(settings).map(|dataset| dataset.objections()).unwrap_or_default()
    }

    /// Why what it works on cannot be had here, where nothing has brought it yet: its cells are
    /// skipped, and no other work's.
    fn lacks(&self, _settings: &Settings, _place: &Place) -> Option<String> {
        None
    }

    /// Once per run, before any cell: stage sources in memory under `place.memory`.
    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        self.dataset(settings).map_or(Ok(()), |dataset| dataset.prepare(place))
    }

    /// Bytes that the work puts on the file system at its fullest, where that is known before the
    /// run.
    fn bytes(&self, settings: &Settings) -> Option<u64> {
        self.dataset(settings)?.bytes()
    }

    /// About how many seconds a cell takes on a fast disk, which a budget and a forecast are made
    /// of; 0 where that is unknown.
    fn seconds(&self, settings: &Settings) -> u64 {
        let by_default = self.description().seconds;
        match (self.bytes(settings), self.bytes(&Settings::default())) {
            (Some(bytes), Some(usual)) if usual > 0 && by_default > 0 => {
                (by_default as f64 * bytes as f64 / usual as f64).ceil() as u64
            }
            _ => by_default,
        }
    }

    /// Folders elsewhere on the machine that a cell needs, made before it and removed after it with
    /// all that is in them; their names carry the run's.
    fn folders(&self, _settings: &Settings, _place: &Place) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What is brought from another disk than the one under test, for guests, which get such their
    /// own disk.
    fn other_disk(&self, _settings: &Settings, _place: &Place) -> Option<OtherDisk> {
        None
    }

    /// What its programs leave when they are killed, and the file in which they note it, for work
    /// in the folder `root`: taken down when all of them have ended.
    fn take_down(&self, _settings: &Settings, _root: &Path) -> Option<(&'static TakeDown, PathBuf)> {
        None
    }

    /// Bytes of room for a recording of all that the target's disk is given, where the work needs
    /// one ([`Stage::cut_power`]).
    fn recording(&self, _settings: &Settings) -> Option<u64> {
        None
    }

    /// What the file system must have programs for ([`Stage::upkeep`]).
    fn upkeep(&self, _settings: &Settings) -> Vec<&'static str> {
        Vec::new()
    }
}

/// A tree that is to be on its own disk.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherDisk {
    pub tree: PathBuf,
    /// Where the disk's image goes: the run's folder in memory, or another that carries the run's
    /// name.
    pub folder: PathBuf,
}

/// What the programs of any work can leave.
pub(crate) const TAKE_DOWNS: &[&TakeDown] = &[&postgresql::SEGMENT];

/// Those for users, without the ones that test pickfs itself.
pub fn for_users() -> impl Iterator<Item = &'static dyn Workload> {
    ALL.iter().copied().filter(|workload| is_for_users(*workload))
}

pub fn is_for_users(workload: &dyn Workload) -> bool {
    !workload.name().starts_with(meta::PREFIX)
}

/// Settings by which a plan chooses what a workload runs, or what that loads.
pub fn that_choose_programs(workload: &dyn Workload) -> impl Iterator<Item = &'static Setting> {
    let named = workload.description().choose_programs;
    let chooses = |row: &&Setting| matches!(row.kind, SettingKind::Words) || named.contains(&row.name);
    workload.settings().iter().filter(chooses)
}

/// The workload of that name.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    ALL.iter().copied().find(|workload| workload.name() == name)
}

/// By the phases that are declared so.
fn judged(phases: &[Phase], (combine, name): (Combine, &str)) -> Judged {
    let timed: Vec<&Phase> = phases.iter().filter(|phase| phase.timed != TimedUntil::Parts).collect();
    let judged: Vec<String> = timed.iter().filter(|phase| phase.judged).map(|phase| phase.name.to_string()).collect();
    // Where all or none of them are, it is all.
    let some = !judged.is_empty() && judged.len() < timed.len();
    Judged { combine, name: name.into(), phases: if some { judged } else { Vec::new() }, ..Judged::default() }
}

fn programs(list: &[(&'static str, &'static str)]) -> Vec<Need> {
    list.iter().map(|(name, package)| Need::Program { name, package }).collect()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
