//! The native estimate: the run's cells once more on this machine, while perf(1) looks at what its
//! processors execute. These rounds are in no result.

use super::{Compared, Exit, Pair};
use anyhow::{Context, Result, bail};
use pickfs_core::journal::{Folded, Outcome, fold_file};
use pickfs_core::plan::{Plan, Stop};
use pickfs_host::analysis::owners::{self, Breakdown, Difference, Sampling};
use pickfs_host::executor::Executor;
use pickfs_host::executor::sampled::{self, Sampled, Samples};
use pickfs_host::run::{self, Finish, Lines};
use pickfs_host::wording::why as words;
use pickfs_system::process::Interrupted;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Samples are few in a short phase.
const ROUNDS: u32 = 5;
/// Then some in which perf also sees tasks go to sleep. That costs time where tasks change often,
/// so these rounds name idle time alone.
const ROUNDS_OF_WAITS: u32 = 2;

/// A difference by samples.
#[derive(Serialize)]
pub(super) struct Estimate {
    pub(super) difference: Difference,
    /// Of each time, the share that has no owner.
    unowned_shares: [f64; 2],
}

/// The targets of a run of this machine that are to be compared, without what decides.
/// What perf lacks is an error before anything is simulated.
pub(super) fn plan(plan: &Plan, pairs: &[Pair]) -> Result<Plan> {
    if plan.executor != "local" {
        return Err(Exit::usage("--here is for runs of this machine, without --sim and --vm"));
    }
    if let Some(missing) = sampled::NEEDS.iter().find_map(|need| need.check().err()) {
        bail!("--here: {missing}");
    }
    let is_asked = |name: &String| pairs.iter().flatten().any(|asked| asked == name);
    let targets = plan.targets.iter().filter(|target| !target.duplicate && is_asked(&target.name));
    let stop = Stop { precision: None, budget_ns: None, ..plan.stop };
    Ok(Plan { targets: targets.cloned().collect(), stop, ..plan.clone() })
}

/// Adds to each difference what samples say of it.
pub(super) fn estimate(compared: &mut [Compared], plan: &Plan, folder: &Path) -> Result<()> {
    let mut seen = Seen::run(plan, ROUNDS, Sampled { folder: folder.join("executed"), sees_sleep: false })?;
    seen.name_waits(&Seen::run(plan, ROUNDS_OF_WAITS, Sampled { folder: folder.join("waits"), sees_sleep: true })?);
    for one in compared {
        let phases = one.cells.map(|cell| seen.0.get(&(cell.target.name.clone(), cell.work.clone())));
        if let [Some(of), Some(reference)] = phases {
            one.here = Estimate::of([of, reference], &one.phases, one.difference.noise);
        }
    }
    Ok(())
}

/// The phases of each target and work that were sampled, the mean of all rounds.
struct Seen(BTreeMap<(String, String), Vec<Breakdown>>);

impl Seen {
    fn run(plan: &Plan, rounds: u32, executor: Sampled) -> Result<Seen> {
        std::fs::create_dir(&executor.folder).context("cannot make a folder for samples")?;
        let folder = executor.folder.clone();
        let plan = Plan { stop: Stop { rounds: Some(rounds), ..plan.stop }, ..plan.clone() };
        let journal = folder.join("run.jsonl");
        // Executors are for the whole program's life, and so is this one.
        let executor: &'static dyn Executor = Box::leak(Box::new(executor));
        if run::aside(&plan, &[executor], &journal, &mut Lines::default())? == Finish::Stopped {
            bail!(Interrupted);
        }
        Seen::read(&fold_file(&journal)?, &folder)
    }

    /// By the same phases of other rounds.
    fn name_waits(&mut self, others: &Seen) {
        for (cell, phases) in &mut self.0 {
            for phase in phases {
                let of = others.0.get(cell).into_iter().flatten().find(|other| other.phase == phase.phase);
                of.into_iter().for_each(|other| owners::name_waits(phase, other));
            }
        }
    }

    fn read(folded: &Folded, folder: &Path) -> Result<Seen> {
        let symbols = std::fs::read_to_string("/proc/kallsyms").context("cannot read /proc/kallsyms")?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let sampling = Sampling { host: std::process::id(), processors, period_ns: sampled::PERIOD_NS };
        let mut seen: BTreeMap<_, Vec<Breakdown>> = BTreeMap::new();
        for cell in folded.cells.iter().filter(|cell| cell.outcome == Some(Outcome::Done)) {
            let Samples { text, clocks } = Samples::read(folder, &cell.id)?;
            let found = owners::sampled(&text, &clocks, &symbols, sampling)?;
            seen.entry((cell.target.clone(), cell.work.clone())).or_default().extend(found);
        }
        Ok(Seen(seen.into_iter().map(|(of, phases)| (of, owners::means(phases))).collect()))
    }
}

impl Estimate {
    /// None where a phase was not seen.
    fn of(both: [&Vec<Breakdown>; 2], phases: &[&str], noise: Option<[f64; 2]>) -> Option<Estimate> {
        let [one, other] = both.map(|of| Breakdown::of(of, phases));
        let (one, other) = (one?, other?);
        let mut difference = owners::between(&one, &other)?;
        difference.noise = noise;
        difference.phase = format!("{}, sampled here", difference.phase);
        Some(Estimate { difference, unowned_shares: [&one, &other].map(owners::unowned) })
    }

    pub(super) fn sentences(&self, names: [&str; 2], simulated: &Difference, threshold: f64) -> String {
        words::estimate(&self.difference, simulated, names, self.unowned_shares, threshold) + "\n"
    }
}
