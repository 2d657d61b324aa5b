//! Erasing a device takes its name twice: in the plan, and again here, typed or as `--erase`.

use super::machine::device_facts;
use crate::plan::Plan;
use crate::stack::safety;
use anyhow::Result;
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

/// True when every device of the plan was confirmed. Says what is missing when not.
pub fn confirmed(plan: &Plan, erase: &[String]) -> Result<bool> {
    for path in devices(plan) {
        let identity = safety::identity(&device_facts(&path)?.tree);
        if !erase.contains(&identity) && !typed_back(&path, &identity)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// For taking a run up again: true when no device has come into use, or holds something that neither the user named nor
/// the run itself made. Says what stands against it.
pub fn still_free(plan: &Plan) -> Result<bool> {
    let mut free = true;
    for target in plan.targets.iter().filter(|target| target.backing.name == "device") {
        let Some(path) = target.backing.settings.path("path") else { continue };
        let mut allowed = target.backing.settings.texts("signatures");
        allowed.extend(plan.targets.iter().filter_map(|target| target.fs.clone()));
        allowed.push("zfs_member".into());
        for refusal in device_facts(&path)?.refusals(&allowed) {
            eprintln!("refused: {refusal}");
            free = false;
        }
    }
    Ok(free)
}

/// Every device that the plan would erase.
pub fn devices(plan: &Plan) -> BTreeSet<PathBuf> {
    let on_device = plan.targets.iter().filter(|target| target.backing.name == "device");
    on_device.filter_map(|target| target.backing.settings.path("path")).collect()
}

fn typed_back(path: &std::path::Path, identity: &str) -> Result<bool> {
    let told = format!("everything on {} ({identity}) will be erased", path.display());
    if !std::io::stdin().is_terminal() {
        eprintln!("refused: {told}; give --erase '{identity}' to agree");
        return Ok(false);
    }
    eprint!("{told}.\nType {identity} to agree: ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let agreed = line.trim() == identity;
    if !agreed {
        eprintln!("refused: that was not {identity}; nothing was touched");
    }
    Ok(agreed)
}
