//! Devices that the run erases are looked at before each cell, also those of guests: one that has come into use since, that
//! carries what neither the user named nor the run made, or is another disk under the same name, is not touched.

use super::supervise::Supervisor;
use crate::plan::{Cell, Chosen, Plan};
use crate::protocol::{Check, Erasure};
use anyhow::Result;

pub struct Guard {
    /// By backing, what was agreed to be erased.
    agreed: Vec<(Chosen, Vec<Erasure>)>,
}

impl Guard {
    pub fn new(supervisor: &mut Supervisor) -> Result<Guard> {
        let mut backings: Vec<Chosen> = Vec::new();
        for target in supervisor.plan().targets {
            if !backings.contains(&target.backing) {
                backings.push(target.backing);
            }
        }
        let checked = supervisor.check(backings.iter().cloned().map(Check::Backing).collect())?;
        let erased = backings.into_iter().zip(checked.into_iter().map(|checked| checked.erases));
        Ok(Guard { agreed: erased.filter(|(_, erases)| !erases.is_empty()).collect() })
    }

    /// What stands against erasing the device of a cell; nothing for a cell that erases none.
    pub fn refusals(&self, cell: &Cell, supervisor: &mut Supervisor) -> Result<Vec<String>> {
        let Some((backing, agreed)) = self.agreed.iter().find(|(backing, _)| *backing == cell.target.backing) else {
            return Ok(Vec::new());
        };
        let again = again(backing, &supervisor.plan());
        let mut refused = Vec::new();
        for checked in supervisor.check(vec![Check::Backing(again)])? {
            refused.extend(checked.reasons);
            let others = agreed.iter().filter(|erasure| !checked.erases.contains(erasure));
            refused.extend(others.map(|lost| format!("{} is not {} any more", lost.path.display(), lost.identity)));
        }
        Ok(refused)
    }
}

/// The backing as it may be after cells of the plan: with what their file systems and layers leave on it, as wipefs names
/// that.
pub fn again(backing: &Chosen, plan: &Plan) -> Chosen {
    let mut backing = backing.clone();
    let filesystems = plan.targets.iter().filter_map(|target| target.fs.clone());
    let others = ["zfs_member", "crypto_LUKS", "LVM2_member", "linux_raid_member", "DM_integrity"].map(String::from);
    let made: Vec<String> = backing.settings.texts("signatures").into_iter().chain(filesystems).chain(others).collect();
    backing.settings.0.insert("signatures".into(), made.into());
    backing
}
