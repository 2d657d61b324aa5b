//! The one layout of our JSON: what `pickfs report` and `pickfs compare` write with `--format
//! json`, what `pickfs import` reads again, and what the files in schema/ are generated from (`make
//! schema`).
//!
//! A reader of old files must not misunderstand new ones: members may be added, and [`SCHEMA`]
//! counts up when that is not enough. What an import does not need (all that is judged again) it
//! does not read, so that old files stay readable. This room must not know how anything is judged
//! or printed.
//!
//! Must not know: `analysis`, `executor`, `run`.

use pickfs_core::journal::{DeviceCourse, Flag, Histogram, Ledger, Provenance};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Of this layout.
pub(crate) const SCHEMA: u32 = 1;

/// What `pickfs report --format json` writes. Times are nanoseconds, sizes bytes, shares of one; a
/// metric's unit is the end of its name. What is not known is null or left out. `schema` counts up
/// when a reader of old files would misunderstand new ones; members may be added without that.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(title = "A report of pickfs")]
pub(crate) struct Report<'a> {
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    pub run: Run,
    #[serde(skip_deserializing)]
    pub verdict: Verdict,
    /// How to come to the pick; null where there is none, or where nothing is known of it.
    #[serde(skip_deserializing)]
    pub to_use: Option<ToUse>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    pub targets: Vec<Target>,
    #[serde(skip_deserializing)]
    pub overall: Option<Work>,
    #[serde(skip_deserializing)]
    pub works: Vec<Work>,
    /// The best target of each file system, the fastest first; empty where none has several.
    #[serde(skip_deserializing)]
    pub best_of_each: Vec<BestOfFilesystem>,
    /// Of phases that `pickfs why` has explained.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<Explained>,
    #[serde(skip_deserializing)]
    pub not_measured: Vec<Missing>,
    #[serde(skip_deserializing)]
    pub doubts: Vec<Doubt>,
    #[serde(skip_deserializing)]
    pub ledger: TimeSpent,
    #[serde(default, serialize_with = "harmless")]
    pub run_ledger: Ledger,
    /// As the journal has it: checked, with all defaults.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub plan: Value,
    /// Interim analyses of the run; as the journal has them.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub looks: Vec<Value>,
    /// One target, one work, one round each; in the order in which they were done.
    #[schemars(with = "Vec<Cell<'a>>")]
    pub cells: List<'a, Cell<'a>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Run {
    pub id: String,
    #[serde(default)]
    pub title: String,
    /// RFC 3339; empty if it is not known.
    pub started: String,
    /// The version that measured.
    pub pickfs: String,
    /// Random seed.
    #[serde(default)]
    pub seed: u64,
    /// The other program whose figures these are; empty for a run of pickfs.
    #[serde(default)]
    pub imported: String,
    #[serde(default)]
    pub machine: String,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Verdict {
    pub headlines: Vec<String>,
    /// What makes the differences, where `pickfs why` was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    pub course: Vec<String>,
    pub warnings: Vec<String>,
}

/// `/dev/DISK`, `/mnt/FOLDER`, `UUID-OF-DISK` and `POOL` stand for what only the reader knows.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ToUse {
    pub target: String,
    pub steps: Vec<Step>,
    /// What the lines do not change, and what the choice costs.
    pub notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Step {
    /// "new disk", "mount", "fstab", "then", "existing" or "scheduler".
    pub when: &'static str,
    pub command: String,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Target {
    pub name: String,
    /// The second copy of the reference, which gives the noise floor.
    pub duplicate: bool,
    pub weakened: Vec<String>,
    pub mkfs: String,
    pub mount: String,
    pub aged: String,
    pub facts: BTreeMap<String, String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Work {
    pub name: String,
    pub reference: Option<String>,
    pub rounds: usize,
    pub ranked: Vec<String>,
    pub verdict: WorkVerdict,
    pub sentences: Vec<String>,
    pub trade_offs: Vec<String>,
    pub noise: String,
    pub times: Vec<Quantity>,
    pub beside: Vec<Table>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkVerdict {
    #[schemars(extend("enum" = ["pick", "tie", "unresolved", "too few rounds", "single", "nothing"]))]
    pub kind: &'static str,
    pub headline: String,
    pub best: Vec<String>,
    /// What to take now, whatever is best.
    pub pick: Option<String>,
    /// By how much slower than the best the pick can be, as a share, in 95 % of runs.
    pub at_most_slower: Option<f64>,
    pub notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Table {
    pub title: String,
    pub quantities: Vec<Quantity>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Quantity {
    pub name: String,
    /// Empty: over all phases.
    pub phase: String,
    pub metric: String,
    #[schemars(extend("enum" = ["ns", "B", "B/s", "1/s", "share of 1", "count"]))]
    pub unit: &'static str,
    #[schemars(extend("enum" = ["less", "more", "neither"]))]
    pub better: &'static str,
    /// Relative differences up to it do not matter.
    #[schemars(with = "Option<f64>")]
    pub threshold: f64,
    pub noise: Option<Estimate>,
    /// The pick, and the targets that may be as good.
    pub may_be_best: Option<Vec<String>>,
    /// Targets slower than the pick, all of these together in 95 % of runs.
    pub slower: Option<Vec<String>>,
    /// Targets that left before it was settled whether they are slower than the pick.
    pub left_early: Option<Vec<String>>,
    pub rows: Vec<Row>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Row {
    pub target: String,
    pub figure: Option<Figure>,
    pub against_reference: Option<Comparison>,
    /// Why there is no figure; empty if there is one.
    pub absent: String,
    /// By how much slower than the best it can be, as a share: all such bounds hold together in 95
    /// % of runs.
    pub at_most_slower: Option<f64>,
    pub cache_state_unproven: bool,
}

/// Its intervals hold together with those of all other file systems.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BestOfFilesystem {
    pub filesystem: String,
    pub best: String,
    #[schemars(extend("enum" = ["alone", "faster", "good enough", "tie", "open"]))]
    pub proof: &'static str,
    /// That tie with it, or may be better.
    pub others: Vec<String>,
    /// By how much slower than the best of its file system it can be, as a share.
    pub at_most_slower: Option<f64>,
    /// Against the best of the first file system; null for that one.
    pub against_first: Option<Comparison>,
    /// Each other target of the file system against its best.
    pub members: BTreeMap<String, Comparison>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Figure {
    pub median: Number,
    pub least: Number,
    pub most: Number,
    pub rounds: usize,
    pub missing: usize,
    /// Others in the same unit, by name.
    pub statistics: BTreeMap<&'static str, Number>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Comparison {
    pub estimate: Estimate,
    #[schemars(extend("enum" = [null, "higher", "lower", "tie", "probably higher", "probably lower", "unresolved", "too few rounds"]))]
    pub finding: Option<&'static str>,
    pub words: String,
    /// Two-sided p-value, where the interval leaves 1 out.
    pub p: Option<f64>,
    /// Significant only if the noise were symmetric; here it is skewed.
    pub rests_on_symmetry: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Estimate {
    /// This over the reference; for noise the copy over the original.
    #[schemars(with = "Option<f64>")]
    pub ratio: f64,
    /// Null: too few rounds for an interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    #[schemars(range(min = 0, max = 1))]
    pub level: f64,
    pub method: &'static str,
    pub rounds: usize,
    #[schemars(with = "Option<f64>")]
    pub share_above: f64,
}

/// What two targets took in a phase, or in all phases of a work, and what that is made of, in a
/// simulation of the first round. Times of parts and the rest sum to the whole, and so do shares,
/// which are of the reference's time.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Explained {
    pub work: String,
    pub phase: String,
    pub target: String,
    pub reference: String,
    /// The model of a disk, where the run was no simulation.
    pub simulated_on: Option<String>,
    pub target_ns: f64,
    pub reference_ns: f64,
    /// By how much the target takes longer.
    pub share: f64,
    /// The largest difference first.
    pub parts: Vec<ExplainedPart>,
    /// What has no owner.
    pub target_rest_ns: f64,
    pub reference_rest_ns: f64,
    pub rest_share: f64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ExplainedPart {
    /// The owner of processor time, or what an idle processor waited for.
    pub owner: String,
    #[schemars(extend("enum" = ["busy", "idle"]))]
    pub state: &'static str,
    pub share: f64,
    pub target: ExplainedTime,
    pub reference: ExplainedTime,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ExplainedTime {
    pub ns: f64,
    /// That ended, also where nothing waited for them.
    pub requests: u64,
    /// What the disk did for the requests, where it was waited for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parts_ns: BTreeMap<&'static str, f64>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Missing {
    /// Null: rounds that no target has.
    pub target: Option<String>,
    pub work: String,
    #[schemars(extend("enum" = ["failed", "skipped", "begun and cut off", "not run"]))]
    pub kind: &'static str,
    pub why: String,
    pub rounds: usize,
    pub of: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Doubt {
    pub flag: String,
    pub phase: String,
    pub target: Option<String>,
    pub count: usize,
    pub example: String,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct TimeSpent {
    pub total_ns: u64,
    pub parts_ns: BTreeMap<&'static str, u64>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Cell<'a> {
    pub id: String,
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub order: usize,
    pub round: u32,
    pub target: String,
    pub work: String,
    #[schemars(extend("enum" = ["done", "skipped", "failed", "not run"]))]
    pub outcome: Cow<'a, str>,
    #[serde(default)]
    pub why: Vec<String>,
    #[serde(default, serialize_with = "harmless")]
    pub flags: Vec<Flag>,
    #[serde(default, serialize_with = "harmless")]
    pub histograms: Vec<Histogram>,
    /// What was in effect in this cell, read back. Exports of early versions have none.
    #[serde(default, serialize_with = "harmless")]
    #[schemars(with = "Provenance")]
    pub provenance: Option<Provenance>,
    #[serde(default, serialize_with = "harmless")]
    pub ledger: Ledger,
    /// What the device read and wrote in steps of each phase.
    #[serde(default, serialize_with = "harmless")]
    pub device_courses: Vec<DeviceCourse>,
    /// Phase, metric, value. Several of one phase and metric are repeats: one observation together.
    #[schemars(with = "Vec<Sample<'a>>")]
    pub samples: List<'a, Sample<'a>>,
}

/// `["write", "time_ns", 12]`: short, as there are many.
pub(crate) type Sample<'a> = (Cow<'a, str>, Cow<'a, str>, Number);

/// What `pickfs compare --format json` writes. Times are nanoseconds; ratios are new over old.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "A comparison of two runs by pickfs")]
pub(crate) struct RunComparison {
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// Exit codes 0, 3 and 4.
    #[schemars(extend("enum" = ["fine", "regression", "inconclusive"]))]
    pub gate: &'static str,
    pub headline: String,
    /// What the intervals do not hold.
    pub caveat: String,
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub threshold: f64,
    /// By how much slower any whole job is at most, as a share, at 95 %; null where too few rounds
    /// say.
    pub at_most_slower: Option<f64>,
    /// Earlier runs.
    pub old_runs: usize,
    pub times: Vec<TimeChange>,
    /// Targets and works that only one run has.
    pub missing: Vec<String>,
    pub not_the_same: Vec<FactChange>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct TimeChange {
    pub target: String,
    pub work: String,
    pub phase: String,
    pub old_median_ns: Option<f64>,
    pub new_median_ns: Option<f64>,
    pub old_rounds: usize,
    pub new_rounds: usize,
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub level: Option<f64>,
    pub method: Option<&'static str>,
    /// It counts for the gate: a whole job, or the only phase.
    pub decides: bool,
    #[schemars(extend("enum" = ["slower", "faster", "no slower", "open"]))]
    pub says: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FactChange {
    pub name: String,
    pub old: String,
    pub new: String,
}

/// Written without a point where it is whole, as in the journal, and as null where it is not
/// finite.
#[derive(Clone, Copy, JsonSchema)]
pub(crate) struct Number(#[schemars(with = "Option<f64>")] pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            whole if whole.fract() == 0.0 && whole.abs() < 9e15 => serializer.serialize_i64(whole as i64),
            other => serializer.serialize_f64(other),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        Option::deserialize(deserializer).map(|value| Number(value.unwrap_or(f64::NAN)))
    }
}

/// A list that is written piece by piece, as a million samples should not be in memory twice, and
/// read whole.
pub(crate) enum List<'a, T> {
    Each(Box<dyn Fn() -> Box<dyn Iterator<Item = T> + 'a> + 'a>),
    Whole(Vec<T>),
}

impl<'a, T> List<'a, T> {
    pub(crate) fn each<I: Iterator<Item = T> + 'a>(items: impl Fn() -> I + 'a) -> List<'a, T> {
        List::Each(Box::new(move || Box::new(items())))
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            List::Each(items) => items().collect(),
            List::Whole(items) => items,
        }
    }
}

impl<T: Serialize> Serialize for List<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            List::Each(items) => serializer.collect_seq(items()),
            List::Whole(items) => serializer.collect_seq(items),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<'_, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(List::Whole)
    }
}

/// A record of the journal, or a list of them, without what could steer a terminal, and without the
/// name of the cell, which stands above.
fn harmless<S: Serializer>(records: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    let mut value = crate::wording::text::sanitize_json(serde_json::to_value(records).unwrap_or_default());
    let each = match &mut value {
        Value::Array(list) => list.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    each.iter_mut().filter_map(Value::as_object_mut).for_each(|fields| drop(fields.remove("cell")));
    value.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::generate::SchemaSettings;

    /// The files in schema/ are what the types above say; `make schema` writes them.
    #[test]
    fn the_schemas_are_those_of_the_types() {
        let generator = || SchemaSettings::draft2020_12().for_serialize().into_generator();
        let schemas = [
            ("report", generator().into_root_schema_for::<Report>()),
            ("compare", generator().into_root_schema_for::<RunComparison>()),
        ];
        for (name, mut schema) in schemas {
            let file = format!("schema/{name}-{SCHEMA}.schema.json");
            schema.insert("$id".into(), format!("https://pickfs.invalid/{file}").into());
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(&file);
            if std::env::var_os("PICKFS_WRITE_SCHEMA").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            assert!(std::fs::read_to_string(&path).unwrap() == text, "{file} is out of date: run `make schema`");
        }
    }
}
