//! Whether the machine was steady enough for the conclusions: the reference against its second
//! copy, drifts and jumps, several modes, and how many of many comparisons may be chance. Doubts
//! are reported; no value is ever dropped.

use super::judgement::Analysis;
use super::model::*;
use super::panel::ReportInput;
use super::plain::plain;
use super::processor::{OtherSpeed, other_speeds};
use super::series::{ObservedWork, is_simulated};
use super::setting;
use super::work::WorkReport;
use super::yardstick::Unreliable;
use pickfs_core::journal::{GuestProcessor, Outcome, Run, SCHEMA};
use pickfs_core::metric::Combine;
use pickfs_core::plan::{Target, processors};
use std::collections::BTreeSet;

/// A reference that ranges over more than this is no fixed point.
const WIDE_RANGE: f64 = 0.10;

/// Steps of a clock that are worth a word, as a share of the least time.
const COARSE: f64 = 0.005;

/// An autocorrelation that is worth a word: it widens bounds by a third.
const RESEMBLES: f64 = 0.3;

/// A doubt about the run as a whole.
#[derive(Clone, Debug)]
pub enum Warning {
    /// From the exports of another program, or from one of pickfs.
    Imported(String),
    /// The processor of a guest was emulated.
    EmulatedProcessor,
    /// Guests were simulated.
    Simulated {
        /// Models of disks.
        disks: Vec<String>,
        /// Instructions in a nanosecond, as the plan has it: a number, or the path of a file.
        processors: Vec<String>,
        /// How many processors, each number once, ascending.
        numbers: Vec<u64>,
        /// None where it was not asked for, or has not been tried.
        other_speeds: Option<Vec<OtherSpeed>>,
    },
    /// In a simulation: the first of each is measured to be faster, and the others only without the
    /// kernel's workers.
    Overturned(Vec<(usize, Vec<usize>)>),
    /// The journal is of a newer pickfs.
    NewerJournal,
    UnreadableLines(usize),
    /// Steps that were not undone.
    Leftovers(usize),
    /// No difference is called clear.
    Unreliable {
        reference: String,
        why: Unreliable,
    },
    /// The noise floor of whole jobs, in the median over the works, is above the difference that
    /// matters; both as shares of one.
    NoiseAboveMargin {
        floor: f64,
        margin: f64,
    },
    /// The reference surely differs from its second copy by this share: every bound is wider by it.
    Contradiction {
        reference: String,
        by: f64,
    },
    /// Rounds resemble those before them, by this autocorrelation: every bound is wider for it, or
    /// nothing is concluded yet.
    Dependent {
        by: f64,
        waits: bool,
    },
    /// Times of a coarse clock, whose steps are this share of the least: every bound is wider by
    /// it.
    Ticks(f64),
    /// Times of zero or less, of which no ratio can be made.
    LeftOut {
        work: String,
        target: usize,
        rounds: usize,
        of: usize,
    },
    /// A ranked target lacks rounds that others have, and none of its cells failed.
    Lacks {
        work: String,
        target: usize,
        rounds: usize,
        of: usize,
    },
    /// Failures fall on one target: failed and all cells of it, and of the others.
    FailsMoreOften {
        target: usize,
        own: (u64, u64),
        others: (u64, u64),
    },
    Drifts {
        work: String,
        target: usize,
        how: Drift,
    },
    /// The times of a target have several modes, in logarithms of nanoseconds.
    SeveralModes {
        work: String,
        target: usize,
        modes: Vec<pickfs_stats::Mode>,
    },
}

/// What the absolute times of the reference do over the rounds.
#[derive(Clone, Debug)]
pub enum Drift {
    Trend,
    /// From one level to another, after this round.
    Change(u32),
    /// Largest minus smallest over the median.
    Range(f64),
}

/// Doubts about the journal, the environment, and each work.
pub(crate) fn warnings(case: &ReportInput, run: &Run, works: &[WorkReport]) -> Vec<Warning> {
    let analysis = case.analysis;
    let reference = analysis.twins.map_or("", |(reference, _)| analysis.observed.targets[reference]);
    let race = analysis.verdict.contest.race.as_ref();
    let apart = race.map(|race| race.contradiction).filter(|by| *by > 0.0);
    let of_machine = [
        race.map(|race| race.tick).filter(|by| *by >= COARSE).map(Warning::Ticks),
        apart.map(|by| Warning::Contradiction { reference: plain(reference), by }),
        race.filter(|race| race.autocorrelation >= RESEMBLES)
            .map(|race| Warning::Dependent { by: race.autocorrelation, waits: race.waits }),
        noise_above_margin(works, analysis.plan.stop.threshold),
    ];
    let of_work = works.iter().zip(&analysis.observed.works).flat_map(|(report, observed)| {
        let doubts = drift(report, observed).into_iter().chain(several_modes(report, observed, case.targets));
        doubts.chain(left_out(report, observed, case))
    });
    // It decides which targets can be picked, so it comes first.
    let works = works.iter().zip(&analysis.observed.works);
    let lacking = works.flat_map(|(report, observed)| lacking(report, observed, case));
    let of_machine = of_machine.into_iter().flatten();
    let of_run = of_journal(analysis, run).into_iter().chain(of_machine).chain(uneven_failures(case));
    let unreliable = analysis.unreliable.map(|why| Warning::Unreliable { reference: plain(reference), why });
    lacking.chain(unreliable).chain(of_run).chain(of_work).collect()
}

fn of_journal(analysis: &Analysis, run: &Run) -> Vec<Warning> {
    let folded = analysis.folded;
    let is_imported = !run.imported.is_empty();
    let is_emulated = folded.hardware().guests.iter().any(|guest| guest.processor == GuestProcessor::Tcg);
    let (unreadable, leftovers) = (folded.unreadable as usize, folded.leftovers.len());
    let doubts = [
        is_imported.then(|| Warning::Imported(plain(&run.imported))),
        is_emulated.then_some(Warning::EmulatedProcessor),
        is_simulated(folded).then(|| Warning::Simulated {
            disks: each_once(run, setting::model),
            processors: each_once(run, |target| {
                let given = target.machine.0.get("dilation")?;
                Some(plain(given.as_str().unwrap_or(&given.to_string())))
            }),
            numbers: run
                .plan
                .targets
                .iter()
                .map(|target| processors(&target.machine))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            other_speeds: other_speeds(analysis),
        }),
        overturned(analysis),
        (run.schema > SCHEMA).then_some(Warning::NewerJournal),
        (unreadable > 0).then_some(Warning::UnreadableLines(unreadable)),
        (leftovers > 0).then_some(Warning::Leftovers(leftovers)),
    ];
    doubts.into_iter().flatten().collect()
}

/// On all that the verdict is about.
fn overturned(analysis: &Analysis) -> Option<Warning> {
    let (ranked, pairs) = (&analysis.verdict.ranked, &analysis.verdict.contest.pairs);
    let faster = |at: usize| {
        let others = ranked.iter().copied().filter(|other| pairs.overturned(at, *other) == Some(*other));
        Some((at, others.collect::<Vec<usize>>())).filter(|(_, others)| !others.is_empty())
    };
    let found: Vec<(usize, Vec<usize>)> = ranked.iter().filter_map(|at| faster(*at)).collect();
    (!found.is_empty()).then_some(Warning::Overturned(found))
}

/// What the targets have, each once.
fn each_once(run: &Run, of: impl Fn(&Target) -> Option<String>) -> Vec<String> {
    let mut all: Vec<String> = run.plan.targets.iter().filter_map(of).collect();
    all.sort();
    all.dedup();
    all
}

/// Failures that fall on one target are what it does; failures that fall on all alike are the
/// machine's.
fn uneven_failures(case: &ReportInput) -> Vec<Warning> {
    let counts: Vec<(u64, u64)> = (0..case.targets.len()).map(|target| failed_and_done(case, target)).collect();
    let (failed, done) = counts.iter().fold((0, 0), |(failed, done), own| (failed + own.0, done + own.1));
    let uneven = |(target, (own_failed, own_done)): (usize, &(u64, u64))| {
        let others = (failed - own_failed, done - own_done);
        let p = pickfs_stats::fisher_exact(*own_failed, *own_done, others.0, others.1);
        let (own, others) = ((*own_failed, own_failed + own_done), (others.0, others.0 + others.1));
        let more_often = own.0 * others.1 > others.0 * own.1;
        (p < 0.05 && more_often).then_some(Warning::FailsMoreOften { target, own, others })
    };
    counts.iter().enumerate().filter_map(uneven).collect()
}

fn failed_and_done(case: &ReportInput, target: usize) -> (u64, u64) {
    let cells = case.analysis.observed.works.iter().flat_map(|work| work.cells[target].values());
    cells.fold((0, 0), |(failed, done), cell| match cell.outcome {
        Some(Outcome::Failed(_)) => (failed + 1, done),
        Some(Outcome::Done) => (failed, done + 1),
        _ => (failed, done),
    })
}

/// The noise floor is the half-width of the comparison of two same things: of whole jobs, in the
/// median over the works.
fn noise_above_margin(works: &[WorkReport], margin: f64) -> Option<Warning> {
    let whole_jobs = works.iter().filter_map(|work| work.phases.first()?.noise.as_ref()?.half_width());
    let halves: Vec<f64> = whole_jobs.collect();
    let floor = pickfs_stats::median(&halves)?;
    (floor > margin.ln_1p()).then(|| Warning::NoiseAboveMargin { floor: floor.exp_m1(), margin })
}

/// Pairs cancel what a round does to all its targets, so verdicts stand; absolute numbers may not.
fn drift(report: &WorkReport, observed: &ObservedWork) -> Option<Warning> {
    let target = report.reference?;
    let (rounds, times): (Vec<u32>, Vec<f64>) =
        observed.over_phases("time_ns", Combine::Sum)[target].iter().copied().unzip();
    let how = match pickfs_stats::changes_at(&times) {
        _ if pickfs_stats::drifts(&times) => Drift::Trend,
        Some(at) => Drift::Change(rounds[at.saturating_sub(1)]),
        None => {
            let range = pickfs_stats::relative_range(&times);
            Drift::Range(range.filter(|range| times.len() >= 3 && *range > WIDE_RANGE)?)
        }
    };
    Some(Warning::Drifts { work: report.name.clone(), target, how })
}

/// Warnings about the targets that are shown.
fn left_out(report: &WorkReport, observed: &ObservedWork, case: &ReportInput) -> Vec<Warning> {
    let of_target = |target: usize| {
        let times = observed.phases().into_iter().flat_map(|phase| observed.series(target, phase, "time_ns"));
        let no_ratio = times.filter(|(_, time)| *time <= 0.0 || !time.is_finite());
        let rounds = no_ratio.map(|(round, _)| round).collect::<BTreeSet<u32>>().len();
        let (work, of) = (report.name.clone(), observed.rounds.len());
        (rounds > 0).then_some(Warning::LeftOut { work, target, rounds, of })
    };
    (0..case.targets.len()).filter(|target| !case.targets[*target].duplicate).filter_map(of_target).collect()
}

fn lacking(report: &WorkReport, observed: &ObservedWork, case: &ReportInput) -> Vec<Warning> {
    let times = observed.over_phases("time_ns", Combine::Sum);
    let lacking = case.analysis.observed.lacking(&[observed], &times);
    let of_target = |target: usize| {
        let asked = observed.rounds.iter().filter(|round| case.analysis.observed.is_asked(target, **round));
        let (work, rounds, of) = (report.name.clone(), lacking[target].len(), asked.count());
        (rounds > 0).then_some(Warning::Lacks { work, target, rounds, of })
    };
    report.ranked.iter().copied().filter_map(of_target).collect()
}

/// Two modes are two answers, and a median between them would be none. In logarithms, as times are
/// compared by ratio.
fn several_modes(report: &WorkReport, observed: &ObservedWork, targets: &[TargetInfo]) -> Vec<Warning> {
    let times = observed.over_phases("time_ns", Combine::Sum);
    let of = |target: usize| {
        let logs: Vec<f64> = times[target].iter().map(|(_, time)| time.ln()).collect();
        Some(Warning::SeveralModes { work: report.name.clone(), target, modes: pickfs_stats::modes(&logs)? })
    };
    (0..targets.len()).filter(|target| !targets[*target].duplicate).filter_map(of).collect()
}
