//! The results of the rounds so far, and whether to go on: which targets may take part in the
//! verdict, one value a round for every target, the race between them, and the interim analyses
//! that end a run.
//!
//! Asked by the run after each look and by reports at the end, so that the two cannot tell
//! different stories. It must not know how cells are run, nor how anything is worded or printed; it
//! reads neither files nor clocks. The same journal in, the same decision out.
//!
//! Must not know: `executor`, `import`, `render`, `run`.

mod best_per_filesystem;
mod between_machines;
mod between_runs;
mod by_round;
mod changes_on_machines;
mod composite;
mod device_rates;
mod diagnostics;
mod disk_class;
mod durability;
mod eligibility;
mod elimination;
mod extent;
mod fidelity;
mod history;
mod judged_pairs;
mod judgement;
mod latency;
mod latency_curves;
mod levels;
#[cfg(test)]
mod made_up;
mod missing;
mod model;
mod overall;
pub mod owners;
mod panel;
pub(crate) mod plain;
mod points;
mod processor;
pub(crate) mod raw;
mod readback;
mod repeats;
mod score;
mod secondary;
mod series;
mod setting;
mod stopping;
mod tradeoffs;
mod tuned;
mod work;
mod yardstick;

pub(crate) use between_machines::{AcrossMachines, AcrossRow, AcrossVerdict, between_machines};
pub use between_runs::{Accepted, Changes, Gate, Measured, changes, is_history};
pub(crate) use between_runs::{Change, Difference, Doubt, Field, OnlyIn, Part, differences};
pub use changes_on_machines::changes_on_machines;
pub(crate) use changes_on_machines::{ChangeOnMachines, ChangesOnMachines};
pub(crate) use device_rates::{DeviceRates, RateStep};
pub(crate) use diagnostics::Drift;
pub use diagnostics::Warning;
pub(crate) use disk_class::{DiskClass, MeasuredDisk};
pub(crate) use durability::{Durability, Loss, LossKind};
pub(crate) use eligibility::Veto;
pub(crate) use elimination::{HigherTotal, Race};
pub use extent::implausible;
pub(crate) use fidelity::Agreement;
pub use fidelity::{Counterpart, agreement, between_halves, compression, figures};
pub(crate) use history::{Ending, History};
use judgement::Analysis;
pub(crate) use latency_curves::LatencyCurves;
pub(crate) use levels::{Level, levels, shifts};
pub use model::*;
pub(crate) use overall::{ALL_WORK, Overall};
pub(crate) use points::{Point, Series};
pub(crate) use processor::{OtherSpeed, PickCheck};
pub(crate) use raw::{Raw, Times};
pub(crate) use readback::{Effect, EffectRow};
pub(crate) use repeats::RepeatsAdvice;
pub use repeats::repeats_advice;
pub use score::{Costs, Miss, Score, score};
pub(crate) use series::is_simulated;
pub use series::observe;
pub(crate) use setting::Disk;
pub use stopping::look;
pub use tuned::logs_of_targets;
pub use work::WorkReport;
pub(crate) use yardstick::{MUCH_CPU, Unreliable, is_busy};

use anyhow::{Result, bail};
use panel::ReportInput;
use pickfs_core::journal::Folded;
pub use pickfs_core::metric::{Better, ReportTable};
use pickfs_core::plan::{Plan, Target};
pub(crate) use pickfs_stats::FEWEST_MACHINES;
use plain::plain;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Model {
    pub title: String,
    /// The run's id.
    pub run: String,
    /// RFC 3339.
    pub started: String,
    /// Version that measured.
    pub pickfs: String,
    /// Where the journal is; the caller fills it in.
    pub journal: String,
    /// What each phase of a work does, where known; the caller fills it in, as it knows the
    /// workloads.
    pub phases: BTreeMap<(String, String), String>,
    /// What `pickfs why` has found out, if it is kept next to the journal; for the caller to fill
    /// in.
    pub why: Option<owners::Kept>,
    /// All that was found out about the machine.
    pub host: Vec<Fact>,
    /// Where the targets lie.
    pub disks: Vec<Disk>,
    /// Those whose speed was read.
    pub measured_disks: Vec<MeasuredDisk>,
    /// Kernels of guests, where cells ran in them.
    pub kernels: Vec<String>,
    /// Cells that the plan asks for at most, and whether it may be done with fewer.
    pub planned_cells: usize,
    pub may_need_fewer: bool,
    /// Which targets were eliminated when, why the run ended, and what more rounds would cost.
    pub history: History,
    /// The one verdict over several works, or over chosen parts of one.
    pub overall: Option<Overall>,
    /// The best target of each file system, where any has several.
    pub champions: Option<Champions>,
    /// What cannot be added up, side by side.
    pub criteria: Option<Criteria>,
    /// Doubts about the run as a whole, to be shown near the top.
    pub doubts: Vec<Warning>,
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

impl Model {
    /// All work together where that is judged, then each.
    pub fn reports(&self) -> impl Iterator<Item = &WorkReport> {
        self.overall.iter().map(|overall| &overall.work).chain(&self.works)
    }
}

/// Judges a folded journal.
pub fn model(folded: &Folded) -> Result<Model> {
    let run = folded.begun()?;
    let plan = &run.plan;
    if let Some(words) = implausible(folded, plan) {
        bail!("this journal has {words}, which no run can have; it is damaged or not a journal");
    }
    let observed = observe(folded, plan);
    let targets = missing::targets(folded, plan, &observed);
    let holes = missing::holes(folded, plan, &observed, &targets);
    let looks = stopping::looks_made(plan, folded, observed.last_round());
    let analysis = Analysis::of(plan, folded, observed, looks);
    let (case, observed) = (ReportInput { analysis: &analysis, targets: &targets, holes: &holes }, &analysis.observed);
    let overall = overall::overall(&case);
    let works: Vec<WorkReport> = observed.works.iter().map(|observed| work::work(&case, observed)).collect();
    let judged = overall.as_ref().map(|overall| &overall.work).or(works.first());
    Ok(Model {
        title: plain(&plan.title),
        run: plain(&run.id),
        started: plain(&run.started),
        pickfs: plain(&run.pickfs),
        journal: String::new(),
        phases: BTreeMap::new(),
        why: None,
        planned_cells: planned_cells(plan),
        may_need_fewer: plan.stop.rounds.is_none(),
        host: missing::facts(&folded.host),
        disks: setting::disks(plan, folded),
        measured_disks: disk_class::measured(folded, &targets),
        kernels: setting::kernels(folded),
        flags: missing::flags(folded, observed, &targets),
        ledger: missing::ledger(folded),
        doubts: diagnostics::warnings(&case, run, &works),
        history: history::history(&analysis),
        criteria: tradeoffs::criteria(&case),
        champions: judged.and_then(|report| best_per_filesystem::champions(&case, report)),
        effect: readback::effect(&targets),
        raw: raw::raw(run, folded, observed, &targets),
        overall,
        works,
        holes,
        targets,
    })
}

/// The reference's copy takes part in the first rounds alone.
fn planned_cells(plan: &Plan) -> usize {
    let rounds = plan.stop.most_rounds();
    let copied = plan.looks.copied_rounds().map_or(rounds, |copied| copied.min(rounds));
    let rounds_of = |target: &Target| if target.duplicate { copied as usize } else { rounds as usize };
    plan.works.len() * plan.targets.iter().map(rounds_of).sum::<usize>()
}
