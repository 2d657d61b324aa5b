//! Devices that the run erases: only ones that the user has agreed to, and each is looked at before
//! each cell, also those of guests. One that has come into use since, that carries what neither the
//! user named nor the run made, or is another disk under the same name, is not touched.

use anyhow::{Result, ensure};
use pickfs_core::plan::{Cell, Chosen, Plan};
use pickfs_core::protocol::{Check, Checked, Erasure};

/// Asks the machine with the disks.
pub(crate) type Ask<'a> = &'a mut dyn FnMut(Vec<Check>) -> Result<Vec<Checked>>;

#[derive(Default)]
pub(crate) struct Guard {
    /// By backing, what was agreed to be erased.
    agreed: Vec<(Chosen, Vec<Erasure>)>,
}

impl Guard {
    /// A guard for a plan whose devices the user has seen and agreed to: a name may lead elsewhere
    /// by now.
    pub(crate) fn new(plan: &Plan, agreed: &[Erasure], ask: Ask) -> Result<Guard> {
        let mut backings: Vec<Chosen> = Vec::new();
        for target in &plan.targets {
            if !backings.contains(&target.backing) {
                backings.push(target.backing.clone());
            }
        }
        let checked = ask(backings.iter().cloned().map(Check::Backing).collect())?;
        for lost in checked.iter().flat_map(|checked| &checked.erases) {
            let (shown, identity) = (lost.path.display(), &lost.identity);
            ensure!(
                agreed.contains(lost),
                "nothing was touched: {shown} is {identity} now, and to erase that was not agreed; begin again"
            );
        }
        let erased = backings.into_iter().zip(checked.into_iter().map(|checked| checked.erases));
        Ok(Guard { agreed: erased.filter(|(_, erases)| !erases.is_empty()).collect() })
    }

    /// The cell as it may be done, its device named without links, which could be changed after
    /// this look; or what stands against erasing it.
    pub(crate) fn passed(&self, cell: &Cell, plan: &Plan, ask: Ask) -> Result<Result<Cell, Vec<String>>> {
        let Some((backing, agreed)) = self.agreed.iter().find(|(backing, _)| *backing == cell.target.backing) else {
            return Ok(Ok(cell.clone()));
        };
        let mut refused = Vec::new();
        for checked in ask(vec![Check::Backing(again(backing, plan))])? {
            refused.extend(checked.reasons);
            let others = agreed.iter().filter(|erasure| !checked.erases.contains(erasure));
            refused.extend(others.map(|lost| format!("{} is not {} any more", lost.path.display(), lost.identity)));
        }
        Ok(if refused.is_empty() { Ok(without_links(cell, agreed)) } else { Err(refused) })
    }
}

fn without_links(cell: &Cell, agreed: &[Erasure]) -> Cell {
    let mut cell = cell.clone();
    let settings = &mut cell.target.backing.settings;
    let path = settings.path("path");
    if let Some(erasure) = agreed.iter().find(|erasure| Some(&erasure.path) == path.as_ref()) {
        settings.0.insert("path".into(), erasure.node.display().to_string().into());
    }
    cell
}

/// The backing as it may be after cells of the plan: with what their file systems and layers leave
/// on it, as wipefs names that.
pub fn again(backing: &Chosen, plan: &Plan) -> Chosen {
    let mut backing = backing.clone();
    let filesystems = plan.targets.iter().filter_map(|target| target.fs.clone());
    let others = ["zfs_member", "crypto_LUKS", "LVM2_member", "linux_raid_member", "DM_integrity"].map(String::from);
    let made: Vec<String> = backing.settings.texts("signatures").into_iter().chain(filesystems).chain(others).collect();
    backing.settings.0.insert("signatures".into(), made.into());
    backing
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::{Settings, Target};

    fn erasure(node: &str, instance: &str) -> Erasure {
        Erasure { path: "/srv/disk".into(), identity: "S1".into(), node: node.into(), instance: instance.into() }
    }

    fn erases(erasure: Erasure) -> impl FnMut(Vec<Check>) -> Result<Vec<Checked>> {
        move |_| Ok(vec![Checked { reasons: Vec::new(), erases: vec![erasure.clone()] }])
    }

    #[test]
    fn a_name_that_leads_to_another_disk_is_refused() {
        let settings = Settings([("path".to_string(), "/srv/disk".into())].into());
        let backing = Chosen { name: "device".into(), settings };
        let target = Target { backing, ..Target::default() };
        let plan = Plan { targets: vec![target.clone()], ..Plan::default() };
        let cell = Cell { target, ..Cell::default() };
        let agreed = erasure("/dev/sda", "8:0 of disk 3");
        // Another number with the same serial, and the same name in another disk's place.
        for other in [erasure("/dev/sdb", "8:16 of disk 4"), erasure("/dev/sda", "8:0 of disk 5")] {
            assert!(Guard::new(&plan, std::slice::from_ref(&agreed), &mut erases(other.clone())).is_err());
            let guard = Guard::new(&plan, std::slice::from_ref(&agreed), &mut erases(agreed.clone())).unwrap();
            let refused = guard.passed(&cell, &plan, &mut erases(other)).unwrap().unwrap_err();
            assert_eq!(refused, ["/srv/disk is not S1 any more"]);
            let passed = guard.passed(&cell, &plan, &mut erases(agreed.clone())).unwrap().unwrap();
            assert_eq!(passed.target.backing.settings.text("path"), Some("/dev/sda"));
        }
        assert!(Guard::new(&plan, &[], &mut erases(agreed)).is_err());
    }
}
