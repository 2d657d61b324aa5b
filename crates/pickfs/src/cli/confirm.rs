//! Erasing a device takes its name twice: in the plan, and again here, typed or as `--erase`.

use anyhow::Result;
use pickfs_core::plan::{Chosen, Plan, Settings};
use pickfs_core::protocol::{Check, Checked, Erasure};
use pickfs_host::executor;
use pickfs_host::run;
use pickfs_target::agent;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The devices of the plan, when every one was confirmed. Says what is missing when not.
pub(crate) fn confirmed(plan: &Plan, erase: &[String]) -> Result<Option<Vec<Erasure>>> {
    let erasures = erasures(plan)?;
    for erasure in &erasures {
        if !erase.contains(&erasure.identity) && !typed_back(erasure)? {
            return Ok(None);
        }
    }
    Ok(Some(erasures))
}

/// For taking a run up again: true when no device has come into use, or holds something that
/// neither the user named nor the run itself made. Says what stands against it.
pub(crate) fn still_free(plan: &Plan) -> Result<bool> {
    let mut free = true;
    for checked in check(plan, |chosen| *chosen = run::taken_up_again(chosen, plan))? {
        for reason in checked.reasons.iter().filter(|_| !checked.erases.is_empty()) {
            eprintln!("refused: {reason}");
            free = false;
        }
    }
    Ok(free)
}

/// Every device that the plan would erase, as the machine with the disks knows it; sorted by path.
pub(crate) fn erasures(plan: &Plan) -> Result<Vec<Erasure>> {
    let checked = check(plan, |_| ())?;
    let by_path: BTreeMap<_, _> =
        checked.into_iter().flat_map(|checked| checked.erases).map(|erasure| (erasure.path.clone(), erasure)).collect();
    Ok(by_path.into_values().collect())
}

/// True when a device outside of any plan may be written to and was confirmed. Says what is missing
/// when not.
pub(crate) fn scratch(device: &Path, erase: &[String]) -> Result<bool> {
    let settings = Settings([("path".to_string(), device.display().to_string().into())].into());
    let checked = agent::check(&Check::Backing(Chosen { name: "device".to_string(), settings }));
    checked.reasons.iter().for_each(|reason| eprintln!("refused: {reason}"));
    for erasure in checked.erases.iter().filter(|_| checked.reasons.is_empty()) {
        if !erase.contains(&erasure.identity) && !typed_back(erasure)? {
            return Ok(false);
        }
    }
    Ok(checked.reasons.is_empty())
}

/// Every device that the plan would erase, for the dry run.
pub(crate) fn devices(plan: &Plan) -> BTreeSet<PathBuf> {
    let checked = plan.targets.iter().map(|target| agent::check(&Check::Backing(target.backing.clone())));
    checked.flat_map(|checked| checked.erases).map(|erasure| erasure.path).collect()
}

fn check(plan: &Plan, change: impl Fn(&mut Chosen)) -> Result<Vec<Checked>> {
    let mut backings: Vec<Chosen> = plan.targets.iter().map(|target| target.backing.clone()).collect();
    backings.dedup();
    backings.iter_mut().for_each(change);
    run::check(plan, executor::ALL, backings.into_iter().map(Check::Backing).collect())
}

fn typed_back(Erasure { path, identity, .. }: &Erasure) -> Result<bool> {
    let warning = format!("everything on {} ({identity}) will be erased", path.display());
    if !std::io::stdin().is_terminal() {
        eprintln!("refused: {warning}; give --erase '{identity}' to agree");
        return Ok(false);
    }
    eprint!("{warning}.\nType {identity} to agree: ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let agreed = line.trim() == identity;
    if !agreed {
        eprintln!("refused: that was not {identity}; nothing was touched");
    }
    Ok(agreed)
}
