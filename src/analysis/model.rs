//! Judged tables: all that a report says, with the words and the printed numbers ready. Indices into
//! [`Model::targets`] name targets everywhere.

pub use super::device_rates::{DeviceRates, RateCurve, RateStep};
pub use super::latency_curves::{LatencyCurve, LatencyCurves};
pub use super::points::{Point, Series};
use super::raw::Raw;
pub use super::readback::{Effect, EffectRow};
use super::{
    best_per_filesystem, device_rates, diagnostics, latency_curves, missing, overall, points, raw, readback, secondary,
    tradeoffs, work,
};
use crate::analysis::{self as decide, Conclusion};
use crate::journal::{Folded, SCHEMA};
pub use crate::metric::Better;
use crate::stats::{Band, Estimate, Finding};
use crate::units::Unit;
use crate::wording::{headline, history, text as words};
use anyhow::{Result, bail};

#[derive(Debug, Default)]
pub struct Model {
    pub title: String,
    /// The run's id.
    pub run: String,
    /// RFC 3339.
    pub started: String,
    /// Version that measured.
    pub pickfs: String,
    /// Where the journal is; for the caller to fill in, who knows it.
    pub journal: String,
    /// Processor, memory, kernel and drive in one line.
    pub machine: String,
    /// All that was found out about the machine.
    pub host: Vec<Fact>,
    /// The verdict in words: one sentence for each work, and one over all works before them if there are several.
    pub headlines: Vec<String>,
    /// Who left the race when, why the run ended, and what more rounds would cost.
    pub course: Vec<String>,
    /// The one verdict over several works, or over chosen parts of one.
    pub overall: Option<Overall>,
    /// The best target of each file system, where any has several.
    pub champions: Option<Champions>,
    /// What cannot be added up, side by side.
    pub criteria: Option<Criteria>,
    /// Doubts about the run as a whole, to be shown near the top.
    pub warnings: Vec<String>,
    pub targets: Vec<TargetInfo>,
    pub works: Vec<WorkReport>,
    pub holes: Vec<Hole>,
    pub flags: Vec<FlagGroup>,
    /// What was read back of each target.
    pub effect: Effect,
    pub ledger: LedgerShares,
    /// What it was all made of.
    pub raw: Raw,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Default)]
pub struct TargetInfo {
    pub name: String,
    /// The second copy of the reference: no row, but the noise floor.
    pub duplicate: bool,
    /// Options in effect that promise less durability.
    pub weakened: Vec<String>,
    /// "weaker durability: nobarrier", or empty.
    pub note: String,
    /// Effective lines that matter most, read back from the kernel; empty if unknown.
    pub mount: String,
    pub mkfs: String,
    /// What made it old or full, and how that lay before the work; empty for a fresh one.
    pub aged: String,
    pub facts: Vec<Fact>,
}

#[derive(Debug)]
pub struct WorkReport {
    pub name: String,
    /// What ratios are against: the plan's reference, or another target if that one has no results.
    pub reference: Option<usize>,
    /// Rounds of which any cell has ended.
    pub rounds: usize,
    /// Targets that take part in the pick.
    pub ranked: Vec<usize>,
    pub verdict: Verdict,
    /// Times: the whole job first, then each phase; a job of one phase has that phase alone.
    pub phases: Vec<Panel>,
    /// One line for each phase.
    pub sentences: Vec<String>,
    /// What the time is paid with, against the reference: one line for each target that clearly differs in space,
    /// CPU or writes.
    pub trade_offs: Vec<String>,
    /// What was measured beside the time.
    pub beside: Vec<Table>,
    pub compression: Vec<Compression>,
    /// Of every phase and operation whose latencies the journal has.
    pub latencies: Vec<LatencyCurves>,
    /// Of every phase that was long enough to see the device at work.
    pub rates: Vec<DeviceRates>,
    /// "noise floor ±1.2 % (ext4 against itself)" of the whole job, or why there is none.
    pub noise: String,
}

/// One verdict over all that the plan names.
#[derive(Debug)]
pub struct Overall {
    /// "10 × tree and 1 × mail: their times add".
    pub made_of: String,
    /// `None` where there is one part, or nothing to rank.
    pub robustness: Option<Robustness>,
    /// As of one work whose only phase is all of it.
    pub work: WorkReport,
}

/// How much the verdict rests on the weights.
#[derive(Debug)]
pub struct Robustness {
    pub robust: bool,
    /// Shares of draws, 0 to 1, in which a target is best; those of 0 are left out.
    pub shares: Vec<(usize, f64)>,
    pub sentence: String,
}

/// The best target of each file system, the fastest first.
#[derive(Debug)]
pub struct Champions {
    /// What they are the best of: "all work", or the only work.
    pub of: String,
    pub rows: Vec<Champion>,
}

#[derive(Debug)]
pub struct Champion {
    /// File system and variant.
    pub group: String,
    pub target: usize,
    /// How many of the group have results.
    pub members: usize,
    /// Of the group, who ties with it.
    pub ties: Vec<usize>,
    /// Of the group, who is not told apart from it.
    pub open: Vec<usize>,
    /// Against the first champion; `None` for that one itself.
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
    /// "0.88 (0.84–0.92)".
    pub cells: Vec<String>,
    /// Against each row in turn, in each criterion.
    pub others: Vec<Vec<Trade>>,
}

/// A ratio in one criterion; nothing where none can be made.
#[derive(Clone, Debug, Default)]
pub struct Trade {
    /// "0.88 (0.84–0.92)", or a dash.
    pub shown: String,
    pub estimate: Option<Estimate>,
}

#[derive(Debug)]
pub struct Verdict {
    pub kind: VerdictKind,
    pub headline: String,
    /// The pick, the ties, or the candidates that are left; fastest first.
    pub best: Vec<usize>,
    /// Who is not ranked and why, and other small print.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    Pick,
    Tie,
    Unresolved,
    /// The reference differs from itself.
    Refused,
    TooFewRounds,
    /// One target alone: nothing to compare.
    Single,
    /// No cell has results.
    Nothing,
}

/// Panels that belong side by side: one table, one row of plots.
#[derive(Debug)]
pub struct Table {
    pub title: String,
    /// Of interest to few; short formats leave it out.
    pub detail: bool,
    pub panels: Vec<Panel>,
}

/// One quantity for every target: a column of a table, or a plot.
#[derive(Debug)]
pub struct Panel {
    /// "whole job", "write", "space used".
    pub name: String,
    /// Empty if it is over all phases.
    pub phase: String,
    /// The name in the journal.
    pub metric: String,
    pub unit: Unit,
    pub better: Better,
    /// Relative differences that do not matter here.
    pub band: Band,
    /// "±3 %".
    pub threshold_shown: String,
    /// The reference against itself; `None` without a duplicate in the plan.
    pub noise: Option<Noise>,
    /// Why nothing is judged here, when nothing is.
    pub refused: Option<String>,
    /// Who may be best; `None` where nobody is ranked.
    pub best: Option<Best>,
    /// One for each target but the duplicate, in the plan's order.
    pub rows: Vec<Row>,
}

#[derive(Debug)]
pub struct Noise {
    pub estimate: Estimate,
    /// "±1.2 %", or "unknown".
    pub shown: String,
}

#[derive(Debug)]
pub struct Best {
    /// Nobody of these is shown to be slower than any other target; fastest first.
    pub members: Vec<usize>,
    /// Members that left the race: no pick, but nobody who is ranked is shown to be faster.
    pub gone: Vec<usize>,
    pub conclusion: Conclusion,
    /// False: too few rounds to allow for the number of comparisons.
    pub corrected: bool,
    /// Rounds that every ranked target has.
    pub rounds: usize,
    /// About so many more would tell the members apart.
    pub more_rounds: Option<u32>,
}

#[derive(Debug)]
pub struct Row {
    pub target: usize,
    pub figure: Option<Figure>,
    /// Against the reference; `None` for the reference itself.
    pub against: Option<Comparison>,
    /// Against every target, by its index; empty where nothing is compared, or there are too many targets.
    pub others: Vec<Option<Comparison>>,
    /// The values by round; of times alone.
    pub series: Series,
    /// Why there is no figure; empty if there is one.
    pub absent: Absent,
    /// Some round of it was not proven to start from a cold cache.
    pub unproven_cache: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Absent {
    /// "failed".
    pub word: &'static str,
    /// "failed: no space left".
    pub why: String,
}

#[derive(Debug)]
pub struct Figure {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// How many rounds the figure is made of, and how many it lacks of those that its target was there for.
    pub rounds: usize,
    pub missing: usize,
    /// The median with its unit.
    pub shown: String,
    /// "1.19–1.24 s".
    pub range: String,
    /// "10", or "8, 2 missing".
    pub rounds_shown: String,
}

#[derive(Clone, Debug)]
pub struct Comparison {
    pub estimate: Estimate,
    /// `None` where nothing is judged.
    pub finding: Option<Finding>,
    /// "0.88 (0.84–0.92)".
    pub shown: String,
    /// One character: `=` tie, `~` probably, `?` unresolved; empty when the interval says it.
    pub mark: &'static str,
    /// "takes 12 % less time than ext4 (95 % interval 8–16 %)".
    pub words: String,
    /// "12 % less time than ext4 (8–16 %)"; both are empty where nothing is judged.
    pub brief: String,
    /// Two-sided p-value, where the interval leaves 1 out: only for telling how many of many comparisons are chance.
    pub p: Option<f64>,
    /// It does not stand when all comparisons of its work are made at once.
    pub may_be_chance: bool,
    /// It is shown only if the scatter is symmetric, which it clearly is not.
    pub rests_on_symmetry: bool,
}

/// What `compsize` prints, for one target.
#[derive(Debug)]
pub struct Compression {
    pub target: usize,
    /// "1500 files, 2100 regular extents (2200 references), 310 inline".
    pub summary: String,
    /// Total first, then one row for each type.
    pub rows: Vec<CompressionRow>,
    /// Rounds differ: the figures are medians of different values.
    pub differs: bool,
    pub rounds: usize,
}

#[derive(Debug)]
pub struct CompressionRow {
    pub kind: String,
    /// Disk usage of what it would be without compression: "45 %".
    pub percent: String,
    pub disk: String,
    pub uncompressed: String,
    pub referenced: String,
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
    /// All of it in one line.
    pub sentence: String,
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
    pub sentence: String,
}

/// Where the wall time went.
#[derive(Debug, Default)]
pub struct LedgerShares {
    pub total_ns: u64,
    /// "81 % of 2.4 min was inside phases".
    pub sentence: String,
    pub parts: Vec<LedgerPart>,
}

#[derive(Debug)]
pub struct LedgerPart {
    pub name: &'static str,
    pub ns: u64,
    pub share: f64,
    pub shown: String,
}

/// Judges a folded journal.
pub fn model(folded: &Folded) -> Result<Model> {
    let Some(run) = &folded.run else {
        bail!("this journal has no `run` record, so it does not say what was to be measured");
    };
    if let Some(absurdity) = run.plan.absurd_measure() {
        bail!("this journal's plan has {absurdity}, which no plan can have; the journal is damaged or not a journal");
    }
    let observed = decide::observe(folded, &run.plan);
    let targets = missing::targets(folded, &run.plan, &observed);
    let holes = missing::holes(folded, &run.plan, &observed, &targets);
    let level = decide::level(&run.plan, folded, observed.last_round());
    let refused = work::refusal(&run.plan, &observed, level);
    let case = work::Case { plan: &run.plan, observed: &observed, targets: &targets, holes: &holes, level, refused };
    let mut model = Model {
        title: words::plain(&run.plan.title),
        run: words::plain(&run.id),
        started: words::plain(&run.started),
        pickfs: words::plain(&run.pickfs),
        machine: missing::machine(folded),
        host: missing::facts(&folded.host),
        flags: missing::flags(folded, &observed, &targets),
        ledger: missing::ledger(folded),
        warnings: warnings(folded, run.schema),
        course: history::course(folded, &run.plan, &observed),
        overall: overall::overall(&case),
        criteria: tradeoffs::criteria(&case),
        ..Model::default()
    };
    model.warnings.extend(diagnostics::warnings(&case));
    for work in &observed.works {
        let mut report = work::work(&case, work);
        secondary::fill(&mut report, work, &case);
        diagnostics::mark_chance(&mut report);
        points::fill(&mut report, work);
        report.latencies = latency_curves::latencies(work, &targets);
        report.rates = device_rates::rates(work, &targets);
        model.warnings.extend(diagnostics::drift(&report, work, &targets));
        model.warnings.extend(diagnostics::modes(&report, work, &targets));
        model.works.push(report);
    }
    let judged = model.overall.as_ref().map(|overall| &overall.work).or(model.works.first());
    model.champions = judged.and_then(|report| best_per_filesystem::champions(&case, report));
    model.effect = readback::effect(&targets);
    model.raw = raw::raw(run, folded, &observed, &targets);
    model.targets = targets;
    model.headlines = headline::headlines(&model, &run.plan);
    model.holes = holes;
    Ok(model)
}

/// "guest bookworm": "bookworm-1f2e3d4c5b6a7988 tcg (why)".
fn emulated(folded: &Folded) -> bool {
    let guests = folded.host.iter().filter(|(name, _)| name.starts_with("guest "));
    guests.map(|(_, value)| value.split(' ').nth(1)).any(|accelerator| accelerator == Some("tcg"))
}

/// A run of pickfs that was exported and read again has kept its rounds, its order and what was in effect.
fn foreign(imported: &str) -> Option<String> {
    let from = words::plain(imported);
    match imported {
        "" => None,
        "pickfs" => Some("imported from pickfs: read from a report of a run, not from its journal".into()),
        _ => Some(format!(
            "imported from {from}: how it was measured is not known here, and what does not say that it was measured in \
             rounds has no interval"
        )),
    }
}

fn warnings(folded: &Folded, schema: u32) -> Vec<String> {
    let mut warnings = Vec::new();
    let imported = folded.run.as_ref().map_or("", |run| &run.imported);
    warnings.extend(foreign(imported));
    if emulated(folded) {
        let doubt = "the processor of the guests was emulated (tcg): times are those of an emulated processor, and ratios \
                     may differ on real hardware";
        warnings.push(doubt.to_string());
    }
    if schema > SCHEMA {
        warnings.push("the journal is of a newer pickfs; some of it may be missing here".to_string());
    }
    if folded.unreadable > 0 {
        let lines = words::counted(folded.unreadable as usize, "line");
        warnings.push(format!("{lines} of the journal cannot be read (a crash tears at most the last one)"));
    }
    if !folded.leftovers.is_empty() {
        let steps = words::counted(folded.leftovers.len(), "step");
        warnings.push(format!("{steps} of the run not taken back; `pickfs clean` does it"));
    }
    warnings
}
