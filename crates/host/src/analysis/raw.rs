//! What was measured, sample by sample and round by round, for formats that hand it on to other
//! programs. Names are those of the rest of the model, so that rows of a table and rows of samples
//! meet.

use super::model::{TargetInfo, WHOLE_JOB};
use super::plain::{plain, sanitize_json};
use super::series::{Observed, ObservedWork, Rounds};
use pickfs_core::journal::{DeviceCourse, Flag, Folded, FoldedCell, Histogram, Ledger, Outcome, Provenance, Run};
use pickfs_core::metric::{Better, Combine, MEAN_RUN_NS};
use pickfs_core::plan::OtherProcessors;
use pickfs_system::units::Unit;
use std::collections::HashMap;

/// All of it, in the order in which it was measured.
#[derive(Debug, Default)]
pub struct Raw {
    /// As in the journal, without what could steer a terminal.
    pub plan: serde_json::Value,
    /// Everything random came from it.
    pub seed: u64,
    /// The program that made the figures, where pickfs has not measured them itself; else empty.
    pub imported: String,
    /// When the run looked at its results, and what it saw; as in the journal.
    pub looks: Vec<serde_json::Value>,
    /// Time of the run that is no cell's.
    pub ledger: Ledger,
    pub cells: Vec<RawCell>,
    /// Times of every target by round: for each work the whole job first, then each phase.
    pub times: Vec<Times>,
    /// Names of phases and metrics; samples refer to them by their place.
    names: Vec<String>,
}

#[derive(Debug)]
pub struct RawCell {
    pub id: String,
    /// Counts up from 1 in the order in which cells were done.
    pub order: usize,
    pub round: u32,
    pub target: String,
    pub work: String,
    /// "done", "skipped", "failed" or "not run".
    pub outcome: &'static str,
    pub why: Vec<String>,
    /// Their cells are not named again.
    pub flags: Vec<Flag>,
    pub histograms: Vec<Histogram>,
    /// As in the journal: these three may be large, so the code that shows them makes them
    /// harmless.
    pub provenance: Provenance,
    pub ledger: Ledger,
    pub courses: Vec<DeviceCourse>,
    samples: Vec<(u32, u32, f64)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSample<'a> {
    pub phase: &'a str,
    pub metric: &'a str,
    /// In the metric's unit: nanoseconds, bytes, a share of one, or a count.
    pub value: f64,
}

/// The judged times of one target in one phase, in nanoseconds.
#[derive(Debug)]
pub struct Times {
    pub target: usize,
    pub work: String,
    /// "whole job", or the phase.
    pub phase: String,
    /// Ascending rounds with their times; never empty.
    pub rounds: Rounds,
    pub mean: f64,
    /// Standard deviation of the sample; `None` for a single round.
    pub deviation: Option<f64>,
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// Interval of the median, at 95 %: between order statistics; `None` for fewer than six rounds.
    pub interval: Option<(f64, f64)>,
}

impl Raw {
    pub(crate) fn samples<'a>(&'a self, cell: &'a RawCell) -> impl Iterator<Item = RawSample<'a>> {
        let name = |place: u32| self.names[place as usize].as_str();
        cell.samples.iter().map(move |&(phase, metric, value)| RawSample {
            phase: name(phase),
            metric: name(metric),
            value,
        })
    }
}

impl RawSample<'_> {
    pub(crate) fn unit(&self) -> &'static str {
        unit_name(Unit::of_metric(self.metric))
    }
}

/// As other programs write it.
pub(crate) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "B",
        Unit::BytesPerSecond => "B/s",
        Unit::PerSecond => "1/s",
        Unit::Share => "share of 1",
        Unit::Count => "count",
    }
}

pub(crate) fn better_name(better: Better) -> &'static str {
    match better {
        Better::Less => "less",
        Better::More => "more",
        Better::Neither => "neither",
    }
}

pub(crate) fn raw(run: &Run, folded: &Folded, observed: &Observed, targets: &[TargetInfo]) -> Raw {
    let mut raw = Raw {
        plan: sanitize_json(serde_json::to_value(&run.plan).unwrap_or_default()),
        seed: run.plan.seed,
        imported: plain(&run.imported),
        looks: folded.looks.iter().map(|look| sanitize_json(serde_json::to_value(look).unwrap_or_default())).collect(),
        ledger: folded.ledger.clone(),
        ..Raw::default()
    };
    let mut places = Places::default();
    let begun =
        folded.cells.iter().filter(|cell| !cell.target.is_empty() && folded.processors(cell) == OtherProcessors::NONE);
    raw.cells = begun.enumerate().map(|(at, cell)| raw_cell(at, cell, folded, &mut places)).collect();
    raw.names = places.names;
    raw.times = observed.works.iter().flat_map(|work| times_of(work, targets)).collect();
    raw
}

fn raw_cell(at: usize, cell: &FoldedCell, folded: &Folded, places: &mut Places) -> RawCell {
    let (outcome, why) = match &cell.outcome {
        None => ("not run", Vec::new()),
        Some(Outcome::Done) => ("done", Vec::new()),
        Some(Outcome::Skipped(why)) => ("skipped", why.iter().map(|why| plain(why)).collect()),
        Some(Outcome::Failed(why)) => ("failed", vec![plain(why)]),
    };
    let flag = |flag: &Flag| Flag {
        cell: String::new(),
        phase: plain(&flag.phase),
        flag: plain(&flag.flag),
        why: plain(&flag.why),
    };
    let mut place = |interned: u32| places.of(interned, folded);
    RawCell {
        id: plain(&cell.id),
        order: at + 1,
        round: cell.round,
        target: plain(&cell.target),
        work: plain(&cell.work),
        outcome,
        why,
        flags: cell.flags.iter().map(flag).collect(),
        histograms: cell.histograms.iter().map(plain_histogram).collect(),
        provenance: cell.provenance.clone(),
        ledger: cell.ledger.clone(),
        courses: cell.courses.clone(),
        samples: folded.series(cell).iter().map(|s| (place(s.phase), place(s.metric), s.value)).collect(),
    }
}

fn plain_histogram(found: &Histogram) -> Histogram {
    Histogram {
        cell: plain(&found.cell),
        phase: plain(&found.phase),
        operation: plain(&found.operation),
        encoded: found.encoded.chars().filter(|c: &char| c.is_ascii_alphanumeric() || "+/=".contains(*c)).collect(),
    }
}

/// Journal's names -> plain ones, each made once.
#[derive(Default)]
struct Places {
    names: Vec<String>,
    by_interned: HashMap<u32, u32>,
}

impl Places {
    fn of(&mut self, interned: u32, folded: &Folded) -> u32 {
        *self.by_interned.entry(interned).or_insert_with(|| {
            self.names.push(plain(folded.name(interned)));
            self.names.len() as u32 - 1
        })
    }
}

fn times_of(work: &ObservedWork, targets: &[TargetInfo]) -> Vec<Times> {
    if !work.judged.headlines.is_empty() && work.judged.headlines[0].metric != MEAN_RUN_NS {
        // Rates that were made into times are no times of anything.
        return Vec::new();
    }
    let phases = work.phases();
    // What is no sum of times is none of them.
    let is_sum = phases.len() > 1 && work.judged.is_whole_job();
    let whole = is_sum.then(|| (WHOLE_JOB, work.over_phases("time_ns", Combine::Sum)));
    let each = phases.iter().map(|phase| (*phase, work.in_phase(phase, "time_ns")));
    let shown = |target: &usize| !targets[*target].duplicate;
    let of_phase = |(phase, series): (&str, Vec<Rounds>)| {
        let found = series.into_iter().enumerate().filter(|(target, _)| shown(target));
        found.filter_map(|(target, rounds)| times(target, work.name, phase, rounds)).collect::<Vec<_>>()
    };
    whole.into_iter().chain(each).flat_map(of_phase).collect()
}

fn times(target: usize, work: &str, phase: &str, rounds: Rounds) -> Option<Times> {
    let values: Vec<f64> = rounds.iter().map(|(_, value)| *value).collect();
    Some(Times {
        target,
        work: plain(work),
        phase: plain(phase),
        mean: pickfs_stats::mean(&values)?,
        deviation: pickfs_stats::standard_deviation(&values),
        median: pickfs_stats::median(&values)?,
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        interval: pickfs_stats::order_statistic_interval(&values, 0.95),
        rounds,
    })
}
