//! What we mean to measure: targets, workloads, rounds. Read from TOML or the short command line,
//! with all complaints at once; expanded into cells.
//!
//! This room must not know any plug-in: names of file systems, backings and workloads stay text
//! here, and what is allowed is handed in as a [`Catalogue`].
//!
//! Must not know: `journal`.

mod age;
mod args;
mod complaint;
#[cfg(test)]
mod example;
mod expand;
mod flag;
mod flags;
mod fs_flag;
mod keys;
mod machine;
mod matrix;
mod queue;
mod read;
pub mod recipe;
mod recipe_source;
mod schema;
mod setting;
mod table;
mod target;
mod tunable;
mod value;
mod verdict_spec;
mod words;
mod written;

pub(crate) use age::Age;
pub use age::{Ageing, SIZE, allowance_ns, capacity, seconds_of_ageing};
pub use args::{PlanArgs, USUAL_TARGETS, image_size};
pub use complaint::{Complaint, Remedy, Source, meant, nearest, render, render_flags};
pub use expand::{
    Cell, FIXED_CLOCKS, MOST_PROCESSORS, OtherProcessors, PROCESSORS, SPEED, at_other_speeds, cell_id, expand, order,
    orders, processors,
};
pub use flags::{PlanFlags, fixed_flag_names, flag_names};
pub use keys::{ALL as KEYS, Key, KeyTable, WORK, page, page_of};
pub use queue::{NAMES as QUEUE_SETTINGS, SYSCTLS};
pub use read::from_toml;
pub use recipe_source::{inlined, recipe_files};
pub use schema::schema;
pub use setting::{MORE_DEVICES, Setting, SettingKind, Settings, disks, leaked, setting};
pub use tunable::{
    Change, FactForm, SCHEDULER, Tunable, TunableDefault, TunableKind, TunableValue, Tunables, Weakened, join,
};
pub use words::MkfsOptions;

use crate::metric::Combine;
use pickfs_stats::{LAST_LOOK, Schedule};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole of a plan file, checked, defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    pub title: String,
    /// Everything random in a run comes from it.
    pub seed: u64,
    /// Name of the target that the others are compared with; by default the first target.
    pub reference: String,
    /// Rank targets with weakened durability among the others.
    pub rank_weakened: bool,
    pub executor: String,
    /// Cells at once; 0 is as many as there are processors, where cells cannot disturb each other.
    pub jobs: u32,
    /// By default simulations share the machine, and others have it for themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// Of simulations: one more round each on other processors, to see whether the pick holds.
    #[serde(skip_serializing_if = "is_false")]
    pub other_speeds: bool,
    pub targets: Vec<Target>,
    pub works: Vec<Work>,
    pub verdict: VerdictSpec,
    pub stop: Stop,
    pub host: HostSettings,
    /// When the run looks at its results, where `stop` names no number of rounds, and how long the
    /// reference's copy is measured. Journals that do not say are of ten looks.
    #[serde(default = "ten_looks")]
    pub looks: Schedule,
}

/// What a run needs of the machine that it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    Alone,
    /// With others that share it.
    Shared,
}

fn ten_looks() -> Schedule {
    Schedule::Ten
}

/// A fixed number of rounds is at most this.
pub(crate) const MOST_ROUNDS: u32 = 1000;

/// Weights and counts: far apart enough for any work, and near enough that sums of costs stay
/// finite.
const AMOUNTS: std::ops::RangeInclusive<f64> = 1e-6..=1e12;

impl Plan {
    /// A value that cannot be run and that no checked plan has; `None` if there is none. A
    /// journal's plan may hold anything.
    pub fn out_of_range(&self) -> Option<String> {
        let rounds = self.stop.rounds.filter(|rounds| !(1..=MOST_ROUNDS).contains(rounds));
        rounds.map(|rounds| format!("{rounds} rounds")).or_else(|| self.bad_statistics_setting())
    }

    /// The same of what verdicts are made with: it would lead to what is no number.
    pub fn bad_statistics_setting(&self) -> Option<String> {
        let mut amounts = self.verdict.parts.iter().map(|part| part.amount);
        let mut shares = self.stop.precision.into_iter().chain([self.stop.threshold]);
        let amount = amounts.find(|amount| !AMOUNTS.contains(amount));
        let share = shares.find(|share| !(*share > 0.0 && share.is_finite()));
        let amount = amount.map(|amount| format!("a weight or count of {amount}"));
        amount.or_else(|| share.map(|share| format!("a precision or threshold of {share}")))
    }
}

impl Plan {
    /// Where the reference is out, the first target that is not takes its place, and the hidden
    /// copy is one of that.
    pub(crate) fn replace_reference(&mut self, is_out: impl Fn(&Target) -> bool) {
        let is_reference = |target: &&Target| target.name == self.reference;
        if !self.targets.iter().find(is_reference).is_some_and(&is_out) {
            return;
        }
        let Some(next) = self.targets.iter().find(|target| !target.duplicate && !is_out(target)).cloned() else {
            return;
        };
        self.reference = next.name.clone();
        self.targets.iter_mut().filter(|target| target.duplicate).for_each(|copy| *copy = next.again());
    }
}

impl Target {
    /// The hidden second copy.
    pub fn again(&self) -> Target {
        Target { name: format!("{} (again)", self.name), duplicate: true, ..self.clone() }
    }
}

/// One thing compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    pub name: String,
    pub backing: Chosen,
    /// Name of a file system driver; `None` takes an existing directory.
    pub fs: Option<String>,
    /// A named set of options of the driver, such as btrfs `zstd:1`.
    pub variant: Option<String>,
    pub mkfs: Vec<String>,
    pub mount: Vec<String>,
    /// Files are written in place where the file system would write elsewhere (`chattr +C`). Not
    /// written where it is false, so that other targets keep their ids.
    #[serde(skip_serializing_if = "is_false")]
    pub nodatacow: bool,
    /// Another word for overlayfs as the lowest layer above. Not written where it is false, as
    /// `nodatacow`.
    #[serde(skip_serializing_if = "is_false")]
    pub overlay: bool,
    /// What lies between the file system and the work, the lowest first. Not written where there is
    /// nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<Chosen>,
    /// I/O scheduler of the device under the file system; `None` leaves it alone.
    pub scheduler: Option<String>,
    /// Settings of that device's queue, each as the text that its file gets. Not written where
    /// there are none.
    #[serde(skip_serializing_if = "Settings::is_empty")]
    pub queue: Settings,
    /// Settings of the kernel below /proc/sys/vm, each as text, while the target has its turn. Not
    /// written where there are none.
    #[serde(skip_serializing_if = "Settings::is_empty")]
    pub sysctl: Settings,
    /// What lies between the backing and the file system, the lowest first. Not written where there
    /// is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Chosen>,
    /// The executor's settings of the machine that does it, such as its kernel; checked, with
    /// defaults. Not written where the executor has no such settings.
    #[serde(skip_serializing_if = "Settings::is_empty")]
    pub machine: Settings,
    /// What makes it old before the work. Not written where there is none, nor is `fill`: a fresh
    /// target keeps its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Age>,
    /// The share of its size that is filled before the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<f64>,
    pub discard: Discard,
    /// The hidden second copy of the reference (A/A'), which gives the noise floor.
    pub duplicate: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A plug-in by name, with its checked settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chosen {
    pub name: String,
    pub settings: Settings,
}

/// Which unused blocks the drive is asked to discard (METHOD S4); the same for all targets of a
/// plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// Nothing is ever discarded: every target meets the same, used blocks.
    #[default]
    None,
    /// The whole range is discarded before mkfs.
    Fresh,
    /// As `fresh`, and what is free before each phase that starts on an empty file system.
    Trim,
}

/// One `[[work]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Unique in the plan; by default the workload's name.
    pub name: String,
    pub workload: Chosen,
    /// How often phases that only read are done on one file system. Repeats sharpen a round's one
    /// observation; they are never rounds. Not written when it is 1, so that a cell without repeats
    /// keeps its id.
    #[serde(skip_serializing_if = "is_once")]
    pub repeats: Repeats,
    /// Not written where it is the time of all phases.
    #[serde(skip_serializing_if = "Judged::is_whole_job")]
    pub judged: Judged,
}

/// The one quantity that a work is judged by, as its workload declares it: made of the times of
/// some of its phases. The other phases are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Judged {
    pub combine: Combine,
    /// Empty: all that have times.
    pub phases: Vec<String>,
    /// What it is called; empty for the whole job.
    pub name: String,
    /// Of results of another program: what it shows first, which reports show in place of the
    /// times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<Headline>,
}

/// A figure that another program shows first, in its own unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Headline {
    pub phase: String,
    pub metric: String,
    /// "write: read IOPS".
    pub name: String,
}

impl Headline {
    /// "read IOPS" of "write: read IOPS"; `None` where the name does not begin with the phase.
    pub fn quantity(&self) -> Option<&str> {
        self.name.strip_prefix(&self.phase)?.strip_prefix(": ")
    }
}

/// What a work is judged by whose phases have no unit in common.
pub const MEAN_OF_PHASES: &str = "geometric mean of the phases";

impl Judged {
    pub fn mean_of_phases() -> Judged {
        Judged { combine: Combine::GeometricMean, name: MEAN_OF_PHASES.into(), ..Judged::default() }
    }

    pub fn is_whole_job(&self) -> bool {
        *self == Judged::default()
    }
}

/// A number of repeats, by default 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats(pub u32);

impl Default for Repeats {
    fn default() -> Self {
        Repeats(1)
    }
}

fn is_once(repeats: &Repeats) -> bool {
    *repeats == Repeats::default()
}

/// What the one verdict is made of, and what a target must fulfil to be in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictSpec {
    /// What the amounts of `parts` are. Journals have it as true for counts.
    #[serde(rename = "costs")]
    pub amounts: Amounts,
    /// Empty: every work matters alike.
    pub parts: Vec<VerdictTerm>,
    /// Features that a target must have, such as `snapshots`.
    pub require: Vec<String>,
    /// Bytes that a target must be able to hold, by a name of [`HOLDS`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub holds: BTreeMap<String, u64>,
    pub limits: Vec<Limit>,
}

impl VerdictSpec {
    /// True where amounts are counts.
    pub fn has_counts(&self) -> bool {
        self.amounts == Amounts::Counts
    }
}

/// What the amounts of a verdict's terms are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Amounts {
    /// How much each term matters.
    #[default]
    Weights,
    /// How often each term is done: costs add.
    Counts,
}

impl From<bool> for Amounts {
    fn from(counts: bool) -> Amounts {
        if counts { Amounts::Counts } else { Amounts::Weights }
    }
}

impl From<Amounts> for bool {
    fn from(amounts: Amounts) -> bool {
        amounts == Amounts::Counts
    }
}

/// What has a largest size in every file system: the bytes of one file, of one name, and of all of
/// it.
pub(crate) const HOLDS: [&str; 3] = [FILE, NAME, VOLUME];
pub const FILE: &str = "file";
pub const NAME: &str = "name";
pub const VOLUME: &str = "volume";

/// A work, or one phase of it, and its share in the verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictTerm {
    pub work: String,
    /// `None`: the whole work.
    pub phase: Option<String>,
    /// A count or a weight; above 0.
    pub amount: f64,
}

/// A target whose median is above it is out of the verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// `None`: in any phase, or over all of them, as the metric is shown.
    pub phase: Option<String>,
    /// The name in the journal, with its unit at the end.
    pub metric: String,
    /// In the metric's unit.
    pub at_most: f64,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stop {
    /// Exactly this number of rounds, judged at their end. `None`: interim analyses after each
    /// round from 3 to 40 decide when it is enough.
    pub rounds: Option<u32>,
    /// Go on until every comparison is known to so much to either side, as a share; `None`: until
    /// there is a decision.
    pub precision: Option<f64>,
    /// Targets shown to be slower than another leave further rounds.
    pub race: bool,
    /// No further round is begun after this many nanoseconds.
    pub budget_ns: Option<u64>,
    /// A cell that takes longer is killed and has failed.
    pub cell_ns: u64,
    /// The smallest relative difference in time worth acting on, as a share.
    pub threshold: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { rounds: None, precision: None, race: true, budget_ns: None, cell_ns: 600_000_000_000, threshold: 0.03 }
    }
}

impl Stop {
    /// No more rounds than this are ever run.
    pub fn most_rounds(&self) -> u32 {
        self.rounds.unwrap_or(LAST_LOOK)
    }
}

/// Writeback knobs, fixed for the run and restored after it, and how deeply processors may sleep.
/// `None` is the kernel's default share of memory, written as bytes, and sleep as the machine has
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSettings {
    pub dirty_bytes: Option<u64>,
    pub dirty_background_bytes: Option<u64>,
    /// Nanoseconds after which unwritten data must be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_expire_ns: Option<u64>,
    /// Microseconds that an idle processor may take to wake up, while cells run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_latency_us: Option<u32>,
}

/// Why layers above cannot be on one target, although each could lie on the one below it.
pub type Clash = fn(&[Chosen]) -> Option<String>;

/// What exists, as data: handed in by `cli`, which knows the plug-ins.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    pub filesystems: Vec<FilesystemEntry>,
    pub backings: Vec<Entry>,
    pub layers: Vec<Entry>,
    pub above: Vec<Entry>,
    /// Why a layer above cannot lie on a file system or on another layer above, both by name.
    pub cannot_lie: Option<fn(&str, &str) -> Option<&'static str>>,
    pub clash: Option<Clash>,
    pub workloads: Vec<Entry>,
    /// With what a target can tell each of its machine.
    pub executors: Vec<Entry>,
    /// Those of them whose cells cannot disturb each other.
    pub simulators: Vec<&'static str>,
    /// What the machine of an executor has against a target as a whole, once its parts are right in
    /// themselves.
    pub unfit: Option<fn(&str, &Target) -> Option<Objection>>,
    /// Chosen on the command line: it goes before what a plan says.
    pub executor: Option<String>,
    /// What a file system may be required to have.
    pub features: Vec<&'static str>,
    /// What can be turned of layers, of a device's queue and of the kernel; of file systems, see
    /// their entries.
    pub tunables: Vec<Tunables>,
}

/// A file system driver, as far as a plan needs to know it.
#[derive(Clone, Debug)]
pub struct FilesystemEntry {
    pub name: &'static str,
    pub variants: Vec<&'static str>,
    /// Bytes of the smallest device that its mkfs takes.
    pub minimum_size: u64,
    /// Copy on write can be switched off for data.
    pub takes_nodatacow: bool,
    pub mkfs_options: MkfsOptions,
    /// Names of the mount options that are documented; empty where they are not known here.
    pub mount_options: &'static [&'static str],
    pub tunables: Tunables,
    /// The objection to this number of devices, by the driver's name and with this variant.
    pub devices: fn(&str, Option<&str>, usize) -> Option<Objection>,
}

/// A backing or workload, as far as a plan needs to know it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: &'static str,
    /// Words by which users may look for it; `None` for plug-ins that test pickfs itself and are
    /// never proposed.
    pub about: Option<&'static str>,
    pub settings: &'static [Setting],
    /// The setting that a bare value stands for: `directory = "/mnt/a"` is `directory = { path =
    /// "/mnt/a" }`.
    pub main_setting: &'static str,
    /// False for a backing that brings its own file system (an existing directory).
    pub makes_filesystem: bool,
    /// What the machine has against these settings, by the entry's name; asked once they are right
    /// in themselves.
    pub objections: fn(&str, &Settings) -> Vec<Objection>,
    /// For a layer, by its name: how many devices lie above it with this number below, or why that
    /// cannot be.
    pub above: fn(&str, &Settings, usize) -> Result<usize, String>,
    /// Bytes that the work puts on a file system, by the entry's name, where that is known.
    pub bytes: fn(&str, &Settings) -> Option<u64>,
    /// Names of a workload's phases with these settings, in order.
    pub phases: fn(&str, &Settings) -> Vec<String>,
    pub judged: fn(&str, &Settings) -> Judged,
}

/// What a machine has against a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Objection {
    pub setting: &'static str,
    pub message: String,
    pub remedy: Remedy,
    /// It would be unsafe, not only impossible.
    pub refusal: bool,
}

impl Objection {
    pub fn new(setting: &'static str, message: String, remedy: &str) -> Objection {
        Objection { setting, message, remedy: remedy.into(), refusal: false }
    }

    /// With an example of what to write: the path of a key, and a value in TOML.
    pub fn such_as(setting: &'static str, message: String, before: &str, path: &[&str], value: &str) -> Objection {
        Objection { remedy: Remedy::write(before, path, value), ..Objection::new(setting, message, "") }
    }

    pub fn refusal(setting: &'static str, message: String) -> Objection {
        let remedy = "nothing was touched; name another device, or free this one first".into();
        Objection { setting, message, remedy, refusal: true }
    }
}
