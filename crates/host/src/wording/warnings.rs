//! Doubts, gaps and costs of a run in words.

use super::text::{counted, listed, percent};
use crate::analysis::{
    Absent, Combined, Compression, Drift, FlagGroup, Hole, HoleKind, LedgerPart, LedgerShares, Model, OtherSpeed,
    Overall, PickCheck, ReadBack, ReportTable, Robustness, Table, TargetInfo, Unreliable, Warning, value_of,
};
use pickfs_core::plan::OtherProcessors;
use pickfs_stats::Sums;
use pickfs_system::units::{Unit, show_bytes, show_duration, show_share};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// Facts about the machine that open a report, if they are known.
const MACHINE: [&str; 6] = ["cpu", "memory", "kernel", "drive", "backing", "executor"];

impl Model {
    /// Processor, memory, kernel and drive in one line; of a simulation the kernel alone.
    pub(crate) fn machine(&self) -> String {
        if self.is_simulated() {
            return self.kernel().map(|kernel| format!("kernel {kernel}")).unwrap_or_default();
        }
        let shown = MACHINE.iter().filter_map(|name| {
            let value = value_of(&self.host, name)?;
            Some(if ["memory", "kernel"].contains(name) { format!("{name} {value}") } else { value.to_string() })
        });
        shown.collect::<Vec<_>>().join(" · ")
    }

    /// What was not measured, and why.
    pub(crate) fn not_measured(&self) -> Vec<String> {
        self.holes.iter().map(|hole| hole.sentence(self)).collect()
    }

    /// Each target that promises less durability, with the options that do.
    pub(crate) fn weakened(&self) -> Vec<String> {
        let weakened = self.targets.iter().filter(|target| !target.weakened.is_empty());
        weakened.map(|target| format!("{}: {}", target.name, target.weakened.join(", "))).collect()
    }

    /// Doubts about the run as a whole.
    pub fn warnings(&self) -> Vec<String> {
        self.doubts.iter().map(|warning| sentence(warning, &self.targets)).collect()
    }
}

fn simulated(disks: &[String], processors: &[String], numbers: &[u64], other_speeds: Option<&[OtherSpeed]>) -> String {
    let disks = disks.join(", ");
    let dilation = if processors.is_empty() { "1".to_string() } else { processors.join(", ") };
    let pick = other_speeds.map(at_other_speeds).unwrap_or_default();
    let (number, but) = match numbers {
        [] | [1] => ("one processor".to_string(), "which cannot show what several processors gain"),
        several => {
            let several = several.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ");
            (format!("{several} processors"), "which never wait for each other: the most that processors can give")
        }
    };
    format!(
        "simulated on models of disks ({disks}): {number} of {dilation} instructions a nanosecond, {but}; intervals are over \
         seeds, and real disks and processors differ from models{pick}"
    )
}

/// "with twice the speed", "with 16 processors".
fn named(other: OtherProcessors) -> String {
    match other.processors {
        Some(number) => counted(number as usize, "processor"),
        None if other.times < 1.0 => "half the speed".to_string(),
        None => "twice the speed".to_string(),
    }
}

/// "; the pick depends on the processor: with twice the speed, btrfs is 5 % faster than the pick".
fn at_other_speeds(found: &[OtherSpeed]) -> String {
    let faster = |other: &OtherSpeed| match &other.pick {
        PickCheck::No { faster, by } => {
            Some(format!("with {}, {faster} is {} faster than the pick", named(other.processors), percent(*by)))
        }
        PickCheck::Yes | PickCheck::Unknown => None,
    };
    let changes: Vec<String> = found.iter().filter_map(faster).collect();
    let are =
        |pick: PickCheck| found.iter().filter(move |other| other.pick == pick).map(|other| named(other.processors));
    let unknown: Vec<String> = are(PickCheck::Unknown).collect();
    let unknown = if unknown.is_empty() {
        String::new()
    } else {
        format!("; with {} the pick was not checked, cells are missing", listed(&unknown))
    };
    let same = listed(&are(PickCheck::Yes).collect::<Vec<_>>());
    match (changes.is_empty(), same.is_empty()) {
        (false, _) => format!("; the pick depends on the processor: {}{unknown}", changes.join("; ")),
        (true, false) => format!("; the pick is the same with {same}{unknown}"),
        (true, true) => unknown,
    }
}

fn sentence(warning: &Warning, targets: &[TargetInfo]) -> String {
    let name = |target: &usize| &targets[*target].name;
    match warning {
        Warning::Imported(from) if from == "pickfs" => {
            "imported from pickfs: read from a report of a run, not from its journal".to_string()
        }
        Warning::Imported(from) => format!(
            "imported from {from}: how it was measured is not known here, and results that do not say that they were \
             measured in rounds have no interval"
        ),
        Warning::EmulatedProcessor => "the processor of the guests was emulated (tcg): times are those of an emulated \
                                       processor, and ratios may differ on real hardware"
            .to_string(),
        Warning::Simulated { disks, processors, numbers, other_speeds } => {
            simulated(disks, processors, numbers, other_speeds.as_deref())
        }
        Warning::Overturned(found) => overturned(found, targets),
        Warning::NewerJournal => "the journal is of a newer pickfs; some of it may be missing here".to_string(),
        Warning::UnreadableLines(lines) => {
            format!("{} of the journal cannot be read (a crash tears at most the last one)", counted(*lines, "line"))
        }
        Warning::Leftovers(steps) => {
            format!("{} of the run not undone; to undo: pickfs clean", counted(*steps, "step"))
        }
        Warning::Unreliable { reference, why } => {
            format!(
                "{}, so no difference is called clear; close other programs and run again",
                unreliable(why, reference)
            )
        }
        Warning::NoiseAboveMargin { floor, margin } => noisy(*floor, *margin),
        Warning::Contradiction { reference, by } => contradiction(reference, *by),
        Warning::Ticks(by) => format!(
            "times are multiples of a unit that is {} of the least: smaller differences cannot be seen, and every bound is \
             wider by that",
            percent(*by)
        ),
        Warning::Dependent { by, waits } => dependent(*by, *waits),
        Warning::LeftOut { work, target, rounds, of } => format!("{work}: {}", left_out(name(target), *rounds, *of)),
        Warning::Lacks { work, target, rounds, of } => format!("{work}: {}", lacks(name(target), *rounds, *of)),
        Warning::FailsMoreOften { target, own, others } => format!(
            "{} failed in {} of {}, the others in {} of {}: unlikely to be chance (Fisher's exact test, p < 0.05)",
            name(target),
            own.0,
            counted(own.1 as usize, "cell"),
            others.0,
            others.1
        ),
        Warning::Drifts { work, target, how } => format!("{work}: {}", drifts(name(target), how)),
        Warning::SeveralModes { work, target, modes } => {
            let mode = |mode: &pickfs_stats::Mode| {
                format!("{} in {} of the rounds", Unit::Nanoseconds.show(mode.centre.exp()), percent(mode.share))
            };
            let modes: Vec<String> = modes.iter().map(mode).collect();
            let (name, modes) = (name(target), listed(&modes));
            format!("{work}: {name} has several modes, {modes}; its median means little")
        }
    }
}

/// Rounds help little against it: four times as many halve it.
const VERY_NOISY: f64 = 0.5;

fn noisy(floor: f64, margin: f64) -> String {
    let need = if floor > VERY_NOISY { "a quieter machine" } else { "a quieter machine or more rounds" };
    let floor = if floor > 1.0 { "more than 100 %".into() } else { percent(floor) };
    format!(
        "this machine is noisy: the same file system measured twice can seem to differ by {floor}, more than the {} that \
         matter; smaller differences need {need}",
        percent(margin)
    )
}

/// "...: xfs over ext4 and f2fs; ext4 over f2fs".
fn overturned(found: &[(usize, Vec<usize>)], targets: &[TargetInfo]) -> String {
    let name = |at: &usize| targets[*at].name.clone();
    let one = |(faster, others): &(usize, Vec<usize>)| {
        format!("{} over {}", name(faster), listed(&others.iter().map(name).collect::<Vec<_>>()))
    };
    format!(
        "the one simulated processor serves kernel workers and programs in turn, which errs against targets with much work for \
         workers: without the workers' time the order of these turns round, so it is left open: {}",
        found.iter().map(one).collect::<Vec<_>>().join("; ")
    )
}

/// "this machine was busy: ...".
pub(crate) fn unreliable(why: &Unreliable, reference: &str) -> String {
    match why {
        Unreliable::Busy { phases, of } => format!(
            "this machine was busy: other programs used the processor or the disk in {phases} of {}",
            counted(*of, "phase")
        ),
        Unreliable::TwinsDiffer { apart, of } => format!(
            "unreliable environment: two identical {reference} targets differ in {apart} of {} (chance would give \
             about 1 in 20)",
            counted(*of, "phase")
        ),
    }
}

fn drifts(name: &str, how: &Drift) -> String {
    let what = match how {
        Drift::Trend => "drifted over the rounds".to_string(),
        Drift::Change(round) => format!("changed from one level to another after round {round}"),
        Drift::Range(range) => format!("ranges over {} of its median", percent(*range)),
    };
    format!("{name} {what}; paired comparisons remain valid, absolute times may not")
}

fn left_out(name: &str, rounds: usize, of: usize) -> String {
    let of = counted(of, "round");
    format!("{name} has times of zero or less in {rounds} of {of}: no ratio can be made of those, so they are left out")
}

fn lacks(name: &str, rounds: usize, of: usize) -> String {
    let of = counted(of, "round");
    format!(
        "{name} lacks {rounds} of {of} that other targets have; if they were slow, it is slower than shown, so its bounds count \
         them as slower than all others"
    )
}

fn contradiction(reference: &str, by: f64) -> String {
    format!(
        "{reference} measured twice in the same rounds differs from itself by {}: every bound is wider by that, which covers \
         such differences only up to this size",
        percent(by)
    )
}

fn dependent(by: f64, waits: bool) -> String {
    let so = if waits {
        "rounds are too few to say how much, so nothing more is concluded from them yet"
    } else {
        "every bound is wider for that"
    };
    format!("rounds are not independent, each resembles the one before (autocorrelation {by:.1}): {so}")
}

impl Hole {
    /// All of it in one line.
    pub(crate) fn sentence(&self, model: &Model) -> String {
        let work = if model.works.len() > 1 { format!(" ({})", self.work) } else { String::new() };
        let Some(target) = self.target else {
            return format!("{} of {} planned rounds{work} not run", self.rounds, self.of);
        };
        let often = match self.rounds {
            all if all == self.reached => "in every round".to_string(),
            some => format!("in {some} of {}", counted(self.reached, "round")),
        };
        let colon = if self.why.is_empty() { "" } else { ": " };
        format!("{}{work}: {} {often}{colon}{}", model.targets[target].name, self.kind.word(), self.why)
    }
}

impl HoleKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            HoleKind::Failed => "failed",
            HoleKind::Skipped => "skipped",
            HoleKind::CutOff => "begun and cut off",
            HoleKind::NotRun => "not run",
        }
    }
}

impl Absent {
    /// "failed"; empty where nothing is absent.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Absent::Present => "",
            Absent::NotMeasured => "not measured",
            Absent::Because(kind, _) => kind.word(),
        }
    }

    /// "failed: no space left".
    pub(crate) fn why(&self) -> String {
        match self {
            Absent::Because(kind, why) if !why.is_empty() => format!("{}: {why}", kind.word()),
            _ => self.word().to_string(),
        }
    }
}

/// A sentence for each kind of doubt, as a run on a busy machine has hundreds: "foreign-io (ext4:
/// read, write; xfs: read): 9 times, such as ...".
pub(crate) fn suspicious_readings(model: &Model) -> Vec<String> {
    model.flags.chunk_by(|a, b| a.flag == b.flag).map(|kind| of_one_kind(kind, model)).collect()
}

fn of_one_kind(kind: &[FlagGroup], model: &Model) -> String {
    let [first, _, ..] = kind else { return kind.iter().map(|one| one.sentence(model)).collect() };
    let mut phases: BTreeMap<Option<usize>, Vec<&str>> = BTreeMap::new();
    kind.iter().for_each(|one| phases.entry(one.target).or_default().push(&one.phase));
    let place = |(target, phases): (Option<usize>, Vec<&str>)| {
        let name = target.map_or("the run", |target| &model.targets[target].name);
        let phases: Vec<&str> = phases.into_iter().filter(|phase| !phase.is_empty()).collect();
        if phases.is_empty() { name.to_string() } else { format!("{name}: {}", phases.join(", ")) }
    };
    let places: Vec<String> = phases.into_iter().map(place).collect();
    let count: usize = kind.iter().map(|one| one.count).sum();
    format!("{} ({}): {count} times, such as {}", first.flag, places.join("; "), first.example)
}

impl FlagGroup {
    /// "not-cold (ext4, read): 3 times, such as ...".
    pub(crate) fn sentence(&self, model: &Model) -> String {
        let whose = self.target.map_or("the run", |target| &model.targets[target].name);
        let place = if self.phase.is_empty() { whose.to_string() } else { format!("{whose}, {}", self.phase) };
        let often = if self.count > 1 { format!("{} times, such as ", self.count) } else { String::new() };
        format!("{} ({place}): {often}{}", self.flag, self.example)
    }
}

impl TargetInfo {
    /// "weaker durability: nobarrier", or empty.
    pub(crate) fn note(&self) -> String {
        if self.weakened.is_empty() {
            String::new()
        } else {
            format!("weaker durability: {}", self.weakened.join(", "))
        }
    }

    /// What made it old or full, and how that lay before the work: "churn 5x; layout 0.8; used 60
    /// %"; empty for a fresh one.
    pub(crate) fn aged(&self) -> String {
        let named = |fact: &crate::analysis::Fact| match fact.name.as_str() {
            "by" => fact.value.clone(),
            name => format!("{name} {}", fact.value),
        };
        self.ageing.iter().map(named).collect::<Vec<_>>().join("; ")
    }
}

impl Display for ReadBack {
    fn fmt(&self, out: &mut Formatter) -> std::fmt::Result {
        write!(out, "{}{}", self.value, if self.varies { " (not the same in all rounds)" } else { "" })
    }
}

impl ReadBack {
    pub(crate) fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

impl LedgerShares {
    /// "81 % of 2.4 min was inside phases".
    pub(crate) fn sentence(&self) -> String {
        let Some(phases) = self.parts.first() else { return String::new() };
        format!("{} of {} was inside phases", phases.shown(), show_duration(self.total_ns as f64))
    }
}

impl LedgerPart {
    pub(crate) fn shown(&self) -> String {
        format!("{:.0} %", self.share * 100.0)
    }
}

impl Table {
    pub(crate) fn title(&self) -> String {
        match self.shown {
            ReportTable::Latency if self.operation.is_empty() => format!("Latency: {}", self.phase),
            ReportTable::Latency => format!("Latency: {}, {}", self.phase, self.operation),
            shown => table_title(shown).to_string(),
        }
    }

    /// True for warnings that few readers need; short formats leave them out.
    pub(crate) fn is_detail(&self) -> bool {
        self.shown == ReportTable::Details
    }
}

fn table_title(shown: ReportTable) -> &'static str {
    match shown {
        ReportTable::Times => "Times",
        ReportTable::Throughput => "Throughput",
        ReportTable::Space => "Space",
        ReportTable::Layout => "Layout of what was written",
        ReportTable::Cpu => "CPU",
        ReportTable::Device => "Disk activity",
        ReportTable::Durability => "Until the data was safe",
        ReportTable::Latency => "Latency",
        ReportTable::Workload => "Measured by the workload itself",
        ReportTable::Details => "Details",
        ReportTable::Compression => "Compression",
    }
}

impl Compression {
    /// "1500 files, 2100 regular extents, 2200 references, 310 inline extents".
    pub(crate) fn summary(&self) -> String {
        let shown = |(name, count): &(&str, f64)| format!("{count:.0} {}", name.replace('_', " "));
        self.counts.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

impl crate::analysis::CompressionRow {
    /// Its kind, disk usage as a share of the size without compression, "45 %", then the sizes on
    /// disk, without compression, and referenced.
    pub(crate) fn cells(&self) -> [String; 5] {
        let share = self.disk_bytes / self.uncompressed_bytes;
        let percent = if share.is_finite() { show_share(share) } else { String::new() };
        let [disk, all, referenced] = [self.disk_bytes, self.uncompressed_bytes, self.referenced_bytes].map(show_bytes);
        [self.kind.clone(), percent, disk, all, referenced]
    }
}

impl Overall {
    /// "10 × tree and 1 × mail: their times add", "tree counts 2, mail counts 1: geometric mean of
    /// the times".
    pub(crate) fn made_of(&self) -> String {
        let part = |(name, amount): &(String, f64)| match self.combined {
            Combined::Added => format!("{amount} × {name}"),
            _ => format!("{name} counts {amount}"),
        };
        let parts = listed(&self.parts.iter().map(part).collect::<Vec<_>>());
        match self.combined {
            Combined::Alike => {
                format!("all {} workloads weighted equally (geometric mean of times)", self.parts.len())
            }
            Combined::Weighted => format!("{parts}: geometric mean of the times"),
            Combined::Added => format!("{parts}: their times add"),
        }
    }
}

impl Overall {
    /// "All rounds added up, relative to ext4: xfs 1.14 (0.98–1.30)"; empty where times do not add.
    pub fn sums_shown(&self, model: &Model) -> String {
        let reference = self.work.reference.map_or("", |at| &model.targets[at].name);
        let shown = |(target, sums): &(usize, Sums)| {
            let range = sums.interval.map(|(low, high)| format!(" ({low:.2}–{high:.2})")).unwrap_or_default();
            format!("{} {:.2}{range}", model.targets[*target].name, sums.ratio)
        };
        let each: Vec<String> = self.sums.iter().map(shown).collect();
        if each.is_empty() {
            return String::new();
        }
        format!("all rounds added up, relative to {reference}: {}", listed(&each))
    }
}

impl Robustness {
    pub(crate) fn sentence(&self, model: &Model) -> String {
        let share = |(target, share): &(usize, f64)| format!("{} {}", model.targets[*target].name, percent(*share));
        let each = self.shares.iter().map(share).collect::<Vec<_>>().join(", ");
        let (draws, stands) = (self.draws, percent(self.stands));
        match (self.names_all, self.robust) {
            (true, _) => format!("fastest in {draws} random variations of the weights and rounds: {each}"),
            (false, true) => format!(
                "robust: in {stands} of {draws} random variations of the weights and rounds one of those named is fastest"
            ),
            (false, false) => format!(
                "not robust: in {stands} of {draws} random variations of the weights and rounds one of those named is \
                 fastest; fastest: {each}"
            ),
        }
    }
}
