//! The lines of a journal. Nanoseconds and bytes are integers; a metric's unit is the end of its
//! name.

use super::hardware::Hardware;
use crate::plan::{Cell, OtherProcessors, Plan, Stop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Raised when a reader of old journals would misunderstand new ones.
pub const SCHEMA: u32 = 2;

/// The name of a run becomes part of paths, of marks and of names of devices: no other is acted on.
pub fn is_run_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Run(Box<Run>),
    Step(StepTaken),
    Undone(Undone),
    Provenance(Provenance),
    Begin(Begin),
    Sample(Sample),
    Histogram(Histogram),
    DeviceCourse(DeviceCourse),
    Flag(Flag),
    Ledger(Ledger),
    End(End),
    Look(Look),
    Unfit(Unfit),
    /// The run was taken up again with another aim.
    Aim(Stop),
    /// A cell checks the verdict on another processor; comes before it begins.
    Speed(Speed),
    Chain(Link),
}

impl Record {
    /// The cell of which an agent saw this; empty for what it saw of the whole run. `None` for what
    /// it did to its machine, and for what the host alone writes.
    pub fn cell(&self) -> Option<&str> {
        match self {
            Record::Begin(begin) => Some(&begin.cell),
            Record::Provenance(provenance) => Some(&provenance.cell),
            Record::Sample(sample) => Some(&sample.cell),
            Record::Histogram(histogram) => Some(&histogram.cell),
            Record::DeviceCourse(course) => Some(&course.cell),
            Record::Flag(flag) => Some(&flag.cell),
            Record::Ledger(ledger) => Some(&ledger.cell),
            Record::End(end) => Some(&end.cell),
            Record::Run(_)
            | Record::Step(_)
            | Record::Undone(_)
            | Record::Look(_)
            | Record::Unfit(_)
            | Record::Aim(_)
            | Record::Speed(_)
            | Record::Chain(_) => None,
        }
    }
}

/// The cell has other processors than the plan's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    pub cell: String,
    #[serde(flatten)]
    pub processors: OtherProcessors,
}

/// What stands in the journal before this line, as the SHA-256 of its bytes, and the version that
/// wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub before: String,
    pub pickfs: String,
}

/// A target was tried before the first round, and a work cannot be done on it: it has no further
/// cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unfit {
    pub target: String,
    pub work: String,
    pub outcome: Outcome,
}

/// First line of every journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    pub schema: u32,
    pub pickfs: String,
    pub id: String,
    /// RFC 3339.
    pub started: String,
    pub plan: Plan,
    /// What other program has measured it, and in which file; empty, and not written, for a run of
    /// pickfs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub imported: String,
}

/// What a step belongs to: it is taken back when that ends. A journal has it as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Scope {
    Run,
    /// The measurement of the disks before any cell.
    RawSpeed,
    /// A cell's id, where the journal is none of a stranger.
    Cell(String),
}

impl std::ops::Deref for Scope {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Scope::Run => "run",
            Scope::RawSpeed => "raw-speed",
            Scope::Cell(id) => id,
        }
    }
}

impl From<String> for Scope {
    fn from(text: String) -> Scope {
        [Scope::Run, Scope::RawSpeed].into_iter().find(|scope| **scope == *text).unwrap_or(Scope::Cell(text))
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> String {
        scope.to_string()
    }
}

/// Written before the step runs, so that any process that survives can take it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepTaken {
    pub scope: Scope,
    /// Counts up within a scope; undo goes down.
    pub number: u32,
    pub says: String,
    /// The program or path, as the dry run shows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub does: String,
    /// None where nothing is left to take back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undone {
    pub scope: Scope,
    pub number: u32,
}

/// How to take a step back: data, so that it can be journaled, shown and done by another process.
/// Each is idempotent: undoing what never happened is no error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// Unmount whatever is mounted exactly here, in the run's folder for mounts.
    Unmount(PathBuf),
    /// Detach every loop device whose backing file is this image of the run.
    DetachLoops(PathBuf),
    /// Remove a tree that we made; refused while anything is mounted in it, or if its path does not
    /// carry the run's name.
    RemoveTree(PathBuf),
    /// Write a saved setting of the kernel back.
    Restore {
        path: PathBuf,
        value: String,
        /// The value that the step set; if another one is in force, another process has set it
        /// since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set: Option<Knob>,
    },
    /// Kill every process of the run whose environment holds this `NAME=value`.
    KillMarked(String),
    /// Remove the disk in compressed memory whose number is in this file.
    RemoveZram(PathBuf),
    /// Remove the device mapper's mapping of that name.
    RemoveMapping(String),
    /// Take down what one plug-in alone knows how to, by that plug-in's word for it.
    #[serde(untagged)]
    TakeDown(BTreeMap<String, Made>),
}

/// A setting of the kernel, and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knob {
    pub path: PathBuf,
    pub value: String,
}

/// What a plug-in has made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Made {
    /// Its name, or the file where its name is noted.
    Named(String),
    /// With the devices that it is made of.
    Of {
        #[serde(alias = "device", alias = "uuid")]
        name: String,
        members: Vec<PathBuf>,
    },
}

impl Made {
    pub fn name(&self) -> &str {
        match self {
            Made::Named(name) | Made::Of { name, .. } => name,
        }
    }

    pub fn members(&self) -> &[PathBuf] {
        match self {
            Made::Named(_) => &[],
            Made::Of { members, .. } => members,
        }
    }
}

/// Facts of programs that are used begin with this; the program's or its package's name follows.
pub const VERSION: &str = "version ";
/// Facts: the words that mkfs and mount got by the plan, those of a variant first, with blanks and
/// commas between them.
pub const MKFS_WORDS: &str = "mkfs options";
pub const MOUNT_WORDS: &str = "mount options";
/// The fact of a copy that names the side which limited it.
pub const HELD_BACK: &str = "what held the copy back";
/// Fact of cells that cut the power: which promises were broken, by what the disk lost, and the
/// first of them.
pub const BROKEN_PROMISES: &str = "broken promises";

/// What was in effect, read back from the machine. `cell` is empty for what holds for the whole
/// run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Provenance {
    #[schemars(skip)]
    pub cell: String,
    pub facts: BTreeMap<String, String>,
    /// What the plan asked for and the kernel does not show; samples of such a cell are refused.
    pub mismatches: Vec<String>,
    /// Options in effect that promise less durability than the file system's default.
    pub weakened: Vec<String>,
    /// Bytes of the largest that the file system takes, by a name of [`crate::plan::HOLDS`]: tried,
    /// or documented where it was not; nothing where neither.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub largest: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Hardware::is_empty")]
    pub hardware: Hardware,
}

/// A cell starts: forget what was seen for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    pub cell: String,
    pub round: u32,
    pub target: String,
    pub work: String,
    /// RFC 3339.
    #[serde(default)]
    pub at: String,
}

impl Begin {
    pub fn of(cell: &Cell, at: String) -> Begin {
        let (target, work) = (cell.target.name.clone(), cell.work.name.clone());
        Begin { cell: cell.id.clone(), round: cell.round, target, work, at }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub cell: String,
    pub phase: String,
    /// The unit is the end of the name, see [`pickfs_system::units::Unit::of_metric`].
    pub metric: String,
    #[serde(serialize_with = "whole_when_whole")]
    pub value: f64,
}

/// Latencies of one kind of operation in a phase, every one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    #[serde(default)]
    #[schemars(skip)]
    pub cell: String,
    pub phase: String,
    /// `latency` where the phase has one kind alone.
    pub operation: String,
    /// Nanoseconds; HdrHistogram V2, deflated, in base64.
    pub encoded: String,
}

/// What the device did while a phase was played, in steps of time that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCourse {
    #[serde(default)]
    #[schemars(skip)]
    pub cell: String,
    pub phase: String,
    /// Nanoseconds from the start of the phase to the end of each step.
    pub until_ns: Vec<u64>,
    /// In each step.
    pub read_bytes: Vec<u64>,
    pub write_bytes: Vec<u64>,
}

/// A doubt about a cell or a phase of it; the value stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flag {
    #[serde(default)]
    #[schemars(skip)]
    pub cell: String,
    /// Empty: the whole cell.
    #[serde(default)]
    pub phase: String,
    /// A short fixed word: `not-cold`, `foreign-io`, `foreign-cpu`, `not-settled` ... Other
    /// programs may write others.
    pub flag: String,
    pub why: String,
}

/// Where the wall time of a cell went, in nanoseconds; the parts sum to it. `cell` is `run` for
/// preparing and undoing the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ledger {
    #[schemars(skip)]
    pub cell: String,
    pub setup_ns: u64,
    /// Making the file system old or full; left out where nothing was.
    #[serde(skip_serializing_if = "is_nothing")]
    pub ageing_ns: u64,
    pub settle_ns: u64,
    pub phases_ns: u64,
    /// Verification, probes and provenance, and whatever else a work does outside of its phases.
    pub checks_ns: u64,
    pub teardown_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub cell: String,
    pub outcome: Outcome,
    /// RFC 3339.
    #[serde(default)]
    pub at: String,
}

/// "Not run" is the absence of an `End`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    /// Every reason, not the first.
    Skipped(Vec<String>),
    Failed(String),
}

/// The run looked at its results and decided whether to go on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// After this round.
    pub round: u32,
    /// The chance of losing a true best that this look has spent.
    pub alpha: f64,
    /// Targets that may still be the best.
    pub best: Vec<String>,
    /// What to take now; empty where nothing can be said yet.
    pub pick: String,
    /// By how much slower than the best the pick can be, as a share, in 95 % of runs over all
    /// looks.
    pub at_most_slower: Option<f64>,
    /// Targets that take part in no further round.
    pub leaving: Vec<Leaving>,
    /// Why the run ends here; `None`: it goes on.
    pub end: Option<StopReason>,
    /// About this number of rounds in all would be needed for a decision, or for the precision
    /// asked for.
    pub rounds_needed: Option<u32>,
    /// How long the missing rounds would take.
    pub needed_ns: Option<u64>,
    /// RFC 3339.
    pub at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Leaving {
    pub target: String,
    pub why: LeaveReason,
}

/// Why a target takes part in no further round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaveReason {
    /// It is shown to be slower than this target.
    SlowerThan(String),
    /// It is out of the verdict, and no further round can change that.
    #[default]
    Vetoed,
}

/// Why a run has enough rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The pick is as good as was asked for, whichever target is best.
    Decided,
    /// Every comparison is as narrow as was asked for.
    Precise,
    /// All rounds of the plan.
    Rounds,
    /// The plan's budget of time is used up.
    Budget,
    /// No two targets can be compared.
    Nothing,
}

impl StopReason {
    /// False where a run that is taken up goes on to its next look.
    pub fn is_final(self) -> bool {
        self != StopReason::Budget
    }
}

fn is_nothing(ns: &u64) -> bool {
    *ns == 0
}

/// Integers without a point, so that bytes and nanoseconds are integers in the file too.
fn whole_when_whole<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// serde_json is off by the last bit at times, unless its feature `float_roundtrip` is on: a
    /// plan would differ from itself.
    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [118_446_744_073_709_551_616.0_f64, 0.1 + 0.2, 5e-324, f64::MAX] {
            let written = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&written).unwrap(), number, "{written}");
        }
    }

    #[test]
    fn a_scope_is_text_in_a_journal() {
        for (text, scope) in [
            ("run", Scope::Run),
            ("raw-speed", Scope::RawSpeed),
            ("a1", Scope::Cell("a1".into())),
            ("", Scope::Cell("".into())),
        ] {
            assert_eq!(serde_json::to_value(&scope).unwrap(), text);
            assert_eq!(serde_json::from_value::<Scope>(text.into()).unwrap(), scope);
        }
    }

    /// An agent's word on a cell is taken from machines that go with it; a step would be undone on
    /// the host.
    #[test]
    fn what_is_done_to_a_machine_is_of_no_cell() {
        let end = Record::End(End { cell: "a".into(), outcome: Outcome::Done, at: String::new() });
        assert_eq!(end.cell(), Some("a"));
        let (scope, says, does) = (Scope::Cell("a".into()), String::new(), String::new());
        let step = StepTaken { scope: scope.clone(), number: 1, says, does, undo: None };
        assert_eq!(Record::Step(step).cell(), None);
        assert_eq!(Record::Undone(Undone { scope, number: 1 }).cell(), None);
    }
}
