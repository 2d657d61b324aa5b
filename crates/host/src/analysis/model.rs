//! The types of an analysis: numbers, enums and names, without a sentence. `wording` says them in
//! English. Indices into [`super::Model::targets`] name targets everywhere.

use super::eligibility::Veto;
use super::elimination::Race;
use super::judged_pairs::JudgedPairs;
use super::points::Series;
use pickfs_core::journal::Hardware;
use pickfs_core::metric::{self, Better, ReportTable};
use pickfs_core::plan::{Limit, Target};
use pickfs_stats::{Estimate, Finding};
use pickfs_system::units::Unit;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The panel of all phases together.
pub(crate) const WHOLE_JOB: &str = "whole job";

#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub name: String,
    pub value: String,
}

/// The value of the fact of that name.
pub fn value_of<'a>(facts: &'a [Fact], name: &str) -> Option<&'a str> {
    facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
}

#[derive(Debug, Default)]
pub struct TargetInfo {
    pub name: String,
    /// As the plan has it; `None` of results that another program measured.
    pub planned: Option<Target>,
    /// The second copy of the reference: no row, but the noise floor.
    pub duplicate: bool,
    /// Options in effect that promise less durability.
    pub weakened: Vec<String>,
    /// Effective lines that matter most, read back from the kernel; empty if unknown.
    pub mount: ReadBack,
    pub mkfs: ReadBack,
    /// What made it old or full, then how it lay before the work, as names and values; empty for a
    /// fresh one.
    pub ageing: Vec<Fact>,
    pub facts: Vec<Fact>,
    /// Of the machine that its last finished cell had for itself.
    pub hardware: Hardware,
}

/// A fact of the last finished cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadBack {
    pub value: String,
    /// An earlier cell had another value.
    pub varies: bool,
}

/// What a target clearly costs or saves apart from time, against the reference.
#[derive(Debug)]
pub struct TradeOff {
    pub target: usize,
    /// Metrics, and ratios of them.
    pub differences: Vec<(String, Estimate)>,
}

/// How parts become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combined {
    /// Geometric mean, all parts alike.
    Alike,
    /// Geometric mean, weighted.
    Weighted,
    /// Times that often, added.
    Added,
}

/// How much the verdict rests on the weights.
#[derive(Debug)]
pub struct Robustness {
    pub robust: bool,
    /// Shares of draws, 0 to 1, in which a target is best; those of 0 are left out.
    pub shares: Vec<(usize, f64)>,
    /// Share of draws in which the best is among the targets that the verdict names.
    pub stands: f64,
    pub draws: usize,
    /// The verdict names every ranked target, so no weights could name another.
    pub names_all: bool,
}

/// The best target of each file system, the fastest first. All that is said here holds together, in
/// 95 % of runs.
#[derive(Debug)]
pub struct Champions {
    /// What they are the best of: "all work", or the only work.
    pub of: String,
    /// What targets of one file system differ in, such as the names of schedulers, where file
    /// systems share such values; else empty.
    pub factor: Vec<String>,
    /// The relative difference that matters.
    pub threshold: f64,
    pub rows: Vec<Champion>,
}

#[derive(Debug)]
pub struct Champion {
    pub filesystem: String,
    pub target: usize,
    pub proof: Proof,
    /// By how much slower than the best of its file system it can be, as a share; `None` where
    /// nothing bounds it.
    pub bound: Option<f64>,
    /// All of the file system that have results, in the plan's order.
    pub members: Vec<Member>,
    /// Against the first champion; `None` for that one itself.
    pub against: Option<Comparison>,
}

/// How sure it is that a target is the best of its file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The file system has no other.
    Alone,
    /// Faster than each other.
    Faster,
    /// As good as the best; none of the others is known to be that.
    GoodEnough,
    /// So are these.
    Tie(Vec<usize>),
    /// Any of these may be better by more than matters. What was eliminated gets no further rounds.
    Open { others: Vec<usize>, eliminated: bool },
}

/// A target among those of its file system.
#[derive(Debug)]
pub struct Member {
    pub target: usize,
    /// What it differs in from the others.
    pub value: String,
    /// Against the champion; `None` for that one itself.
    pub against: Option<Comparison>,
}

/// Ratios to the reference in every criterion; less is better in all.
#[derive(Debug)]
pub struct Criteria {
    pub names: Vec<String>,
    pub reference: usize,
    pub rows: Vec<CriteriaRow>,
}

#[derive(Debug)]
pub struct CriteriaRow {
    pub target: usize,
    /// No other target is shown to be as good in all criteria and better in one.
    pub on_front: bool,
    /// Against the reference, in each criterion.
    pub cells: Vec<Option<Estimate>>,
    /// Against each row in turn, in each criterion.
    pub others: Vec<Vec<Option<Estimate>>>,
}

#[derive(Debug, Default)]
pub struct Verdict {
    pub kind: VerdictKind,
    /// The pick, the ties, or the candidates that are left; fastest first.
    pub best: Vec<usize>,
    /// Which targets are not ranked and why, and other small print.
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    NotRanked(usize, Vec<Veto>),
    /// What limited a copy to this target.
    HeldBack(usize, String),
    /// The planned reference of this name has no results, so another stands in.
    ReferenceReplaced(String),
    /// Nothing measures what is limited.
    LimitWithoutEffect(Limit),
    WeakenedAreRanked,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerdictKind {
    Pick,
    Tie,
    Unresolved,
    TooFewRounds,
    /// One target alone: nothing to compare.
    Single,
    /// No cell has results, or fewer than two targets can be ranked.
    #[default]
    Nothing,
}

/// Panels that belong side by side: one table, one row of plots.
#[derive(Debug)]
pub struct Table {
    pub shown: ReportTable,
    /// For latencies: the phase, and the operation where the phase has several.
    pub phase: String,
    pub operation: String,
    pub panels: Vec<Panel>,
}

/// One quantity for every target: a column of a table, or a plot.
#[derive(Debug)]
pub struct Panel {
    /// "whole job", "write", "space used", "write: IOPS".
    pub name: String,
    /// "IOPS" of "write: IOPS".
    pub(crate) quantity: Option<String>,
    /// Empty if it is over all phases.
    pub phase: String,
    /// The name in the journal.
    pub metric: String,
    pub unit: Unit,
    pub better: Better,
    /// Relative differences up to it do not matter; 0.03 for 3 %.
    pub threshold: f64,
    /// The reference against itself; `None` without a duplicate in the plan.
    pub noise: Option<Estimate>,
    /// For times: which may be best, and the pick; `None` with too few rounds for that.
    pub race: Option<Race>,
    /// For times: all pairs of targets, however many there are.
    pub(crate) pairs: JudgedPairs,
    /// One for each target but the duplicate, in the plan's order.
    pub rows: Vec<Row>,
}

#[derive(Debug)]
pub struct Row {
    pub target: usize,
    pub figure: Option<Figure>,
    /// What `against` compares with.
    pub(crate) reference: Option<usize>,
    /// Against the reference; `None` for the reference itself.
    pub against: Option<Comparison>,
    /// Against every target, by its index; empty where there are too many, and where nothing is
    /// compared.
    pub others: Vec<Option<Comparison>>,
    /// The values by round; of times alone.
    pub series: Series,
    /// Why there is no figure; empty if there is one.
    pub absent: Absent,
    /// Some round of it was not proven to start from a cold cache.
    pub unproven_cache: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Absent {
    /// It is there.
    #[default]
    Present,
    NotMeasured,
    /// Its commonest hole.
    Because(HoleKind, String),
}

#[derive(Debug)]
pub struct Figure {
    /// Median of the rounds that it has.
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// What is shown: the reference's median by the paired ratio to it; the own median where
    /// nothing pairs them.
    pub centre: f64,
    /// The lowest and highest are shown multiplied by this: 1 unless it lacks rounds that the
    /// reference has.
    pub scale: f64,
    /// By name, as far as this number of rounds allows.
    pub statistics: BTreeMap<&'static str, f64>,
    pub unit: Unit,
    /// How many rounds the figure is made of, and how many it lacks of the rounds of its target.
    pub rounds: usize,
    pub missing: usize,
}

#[derive(Clone, Debug)]
pub struct Comparison {
    pub estimate: Estimate,
    /// `None` where nothing is judged.
    pub finding: Option<Finding>,
    /// Name of what it is compared with.
    pub reference: Arc<str>,
    /// What the metric is an amount of.
    pub noun: &'static str,
    /// The relative difference that matters.
    pub margin: f64,
    /// Variance of the logarithm of the ratio, by its own rounds alone: for what combines several
    /// runs. `None` without an interval.
    pub variance: Option<f64>,
    /// Two-sided p-value, where the interval leaves 1 out: for programs.
    pub p: Option<f64>,
    /// It is shown only if the scatter is symmetric, which it clearly is not.
    pub rests_on_symmetry: bool,
}

/// What `compsize` prints, for one target.
#[derive(Debug)]
pub struct Compression {
    pub target: usize,
    /// Numbers of files, extents and references.
    pub counts: Vec<(&'static str, f64)>,
    /// Total first, then one row for each type.
    pub rows: Vec<CompressionRow>,
    /// Rounds differ: the figures are medians of different values.
    pub differs: bool,
    pub rounds: usize,
}

#[derive(Debug)]
pub struct CompressionRow {
    pub kind: String,
    pub disk_bytes: f64,
    pub uncompressed_bytes: f64,
    pub referenced_bytes: f64,
}

/// Planned cells without results, of one target and one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Hole {
    /// `None`: rounds that no target has.
    pub target: Option<usize>,
    pub work: String,
    pub kind: HoleKind,
    pub why: String,
    pub rounds: usize,
    /// Rounds planned or run, whichever are more.
    pub of: usize,
    /// Rounds of the work of which any cell has ended.
    pub reached: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoleKind {
    Failed,
    Skipped,
    /// Begun, and cut off before its end.
    CutOff,
    NotRun,
}

/// Doubts of one kind, in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct FlagGroup {
    pub flag: String,
    /// Empty: whole cells.
    pub phase: String,
    /// `None`: the whole run.
    pub target: Option<usize>,
    pub count: usize,
    /// One example of why.
    pub example: String,
}

/// Where the wall time went.
#[derive(Debug, Default)]
pub struct LedgerShares {
    pub total_ns: u64,
    pub parts: Vec<LedgerPart>,
}

#[derive(Debug)]
pub struct LedgerPart {
    pub name: &'static str,
    pub ns: u64,
    pub share: f64,
}

impl Comparison {
    /// With what `reference` names; `margin` is the relative difference that matters.
    pub(crate) fn new(
        estimate: Estimate,
        finding: Option<Finding>,
        reference: &str,
        metric: &str,
        margin: f64,
    ) -> Comparison {
        let (reference, noun) = (reference.into(), metric::noun(metric));
        let (p, rests_on_symmetry) = Default::default();
        let variance = estimate.variance();
        Comparison { estimate, finding, reference, noun, margin, variance, p, rests_on_symmetry }
    }

    /// It shows which of the two is above.
    pub(crate) fn tells(&self) -> bool {
        !matches!(self.finding, None | Some(Finding::Unresolved | Finding::Tie))
    }
}

impl Row {
    /// Against any target. `None` where it was not judged: see
    /// [`super::judged_pairs::MOST_TARGETS`].
    pub fn compared_with(&self, reference: usize) -> Option<&Comparison> {
        match self.others.get(reference) {
            Some(found) => found.as_ref(),
            None => self.against.as_ref().filter(|_| self.reference == Some(reference)),
        }
    }
}
