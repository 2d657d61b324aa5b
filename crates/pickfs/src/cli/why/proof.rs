//! The proof by removal: both targets are simulated once more without a named cause, and the
//! difference must change by its part.

use super::{Compared, Explained, Resimulation};
use anyhow::{Context, Result};
use pickfs_core::plan::{Cell, FIXED_CLOCKS, Plan, SPEED, Target, order};
use pickfs_host::analysis::owners::{Breakdown, FASTER, FREE, Proof, Removal};
use pickfs_host::executor::sim::{AT_ONCE, COMPRESSION, Processor};
use pickfs_host::run::tell;
use pickfs_host::wording::why::removed;
use pickfs_system::units::show_duration;
use pickfs_system::visible::visible_lines;
use pickfs_target::stack::fs::{self, parts::Without};
use std::time::Duration;

/// A cell without a cause.
struct AblatedCell<'c> {
    of: &'c Explained,
    removal: Removal,
    without: Target,
}

impl AblatedCell<'_> {
    fn is(&self, of: &Explained, removal: &Removal) -> bool {
        std::ptr::eq(self.of, of) && self.removal == *removal
    }
}

/// Adds to each difference what became of it without each of its causes.
pub(super) fn prove(compared: &mut [Compared], again: &Resimulation, each: Duration) -> Result<()> {
    let mut all: Vec<AblatedCell> = Vec::new();
    for one in compared.iter().filter(|one| is_to_prove(one, again.plan)) {
        for removal in removals(one) {
            for cell in one.cells {
                let is_new = !all.iter().any(|taken| taken.is(cell, &removal));
                if let Some(without) = without(&removal, cell).filter(|_| is_new) {
                    all.push(AblatedCell { of: cell, removal: removal.clone(), without });
                }
            }
        }
    }
    if all.is_empty() {
        return Ok(());
    }
    let (count, time) = (all.len(), show_duration((each * all.len() as u32).as_nanos() as f64));
    tell(&format!(
        "{count} more simulations without the causes prove them, in about {time}; --no-proof leaves them out"
    ));
    let found = simulated(all, again)?;
    for one in compared.iter_mut().filter(|one| is_to_prove(one, again.plan)) {
        let proofs = removals(one).iter().filter_map(|removal| proof(one, removal, &found)).collect();
        one.difference.proofs = proofs;
    }
    Ok(())
}

fn is_to_prove(compared: &Compared, plan: &Plan) -> bool {
    compared.agrees && compared.difference.has_causes(plan.stop.threshold)
}

fn removals(compared: &Compared) -> Vec<Removal> {
    compared.difference.removals(|owner| can_do_without(compared.cells, owner))
}

/// Where only one of the two that spend time in it can do without it, the difference would not
/// change by the difference of their parts.
fn can_do_without(cells: [&Explained; 2], owner: &str) -> bool {
    let spends = |cell: &Explained| cell.phases.iter().any(|phase| Removal::Switch(owner.into()).concerns(phase));
    cells.iter().all(|cell| switch(&cell.target, owner).is_some() || !spends(cell))
}

/// How a file system does without what an owner's instructions are for. One with its own options
/// may be another one without them.
fn switch(target: &Target, owner: &str) -> Option<&'static Without> {
    let is_plain = target.variant.is_none() && target.mkfs.is_empty() && target.mount.is_empty();
    let driver = target.fs.as_deref().filter(|_| is_plain).and_then(fs::find)?;
    driver.without.iter().find(|without| without.what == owner)
}

/// None where it would be the same target.
fn without(removal: &Removal, cell: &Explained) -> Option<Target> {
    if !cell.phases.iter().any(|phase| removal.concerns(phase)) {
        return None;
    }
    let mut target = cell.target.clone();
    let machine = &mut target.machine.0;
    match removal {
        Removal::Requests(_) => drop(machine.insert(AT_ONCE.into(), removal.kinds().into())),
        Removal::Layers if target.layers.is_empty() => return None,
        Removal::Layers => target.layers.clear(),
        Removal::Switch(owner) => {
            let Without { mkfs, mount, .. } = switch(&cell.target, owner)?;
            target.mkfs.extend(mkfs.iter().map(|word| word.to_string()));
            target.mount.extend(mount.iter().map(|word| word.to_string()));
        }
        Removal::Compression if cell.target.machine.text("kernel") == Some(FIXED_CLOCKS) => return None,
        Removal::Compression => drop(machine.insert(COMPRESSION.into(), FREE.into())),
        Removal::Processor => drop(machine.insert(SPEED.into(), FASTER.into())),
    }
    Some(target)
}

/// Each with its phases; without where it could not be simulated.
fn simulated<'c>(
    all: Vec<AblatedCell<'c>>,
    again: &Resimulation,
) -> Result<Vec<(AblatedCell<'c>, Option<Vec<Breakdown>>)>> {
    let targets = all.iter().map(|taken| taken.without.clone()).collect();
    let plan = Plan { targets, ..again.plan.clone() };
    let known = order(&plan, 1);
    let cell = |taken: &AblatedCell| {
        let is_it = |cell: &&Cell| cell.target == taken.without && cell.work.name == taken.of.work;
        known.iter().find(is_it).cloned().context("a plan without a cell")
    };
    let cells = all.iter().map(cell).collect::<Result<Vec<_>>>()?;
    for taken in &all {
        let (name, work) = (&taken.of.target.name, &taken.of.work);
        tell(&visible_lines(&format!("simulating {name} ({work}): {}", removed(&taken.removal))));
    }
    let (phases, _) = super::simulated(&cells, again, &plan)?;
    let kept = |(taken, phases): (AblatedCell<'c>, Result<Vec<Breakdown>>)| match phases {
        Ok(phases) => (taken, Some(phases)),
        Err(error) => {
            tell(&visible_lines(&format!("{} is not proved: {error:#}", removed(&taken.removal))));
            (taken, None)
        }
    };
    Ok(all.into_iter().zip(phases).map(kept).collect())
}

/// None where nothing was taken away from either.
fn proof(compared: &Compared, removal: &Removal, found: &[(AblatedCell, Option<Vec<Breakdown>>)]) -> Option<Proof> {
    let cells = compared.cells;
    let taken = cells.map(|cell| found.iter().find(|(taken, _)| taken.is(cell, removal)));
    if taken.iter().all(Option::is_none) {
        return None;
    }
    let part = |phases: &[Breakdown]| Breakdown::of(phases, &compared.phases);
    let without = |at: usize| match taken[at] {
        Some((_, phases)) => part(phases.as_deref()?),
        None => part(&cells[at].phases),
    };
    let before = [part(&cells[0].phases)?, part(&cells[1].phases)?];
    let after = [without(0)?, without(1)?];
    let compression = cells.map(|cell| Processor::of(&cell.target.machine).map_or(1.0, |found| found.compression));
    Some(Proof::of(removal, before.each_ref(), after.each_ref(), compression))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Chosen;
    use pickfs_host::analysis::owners::{Spent, State, is_owner};
    use serde_json::json;

    fn cell(fs: &str, owners: &[(State, &str)]) -> Explained {
        let spent =
            |(state, owner): &(State, &str)| ((*state, owner.to_string()), Spent { ns: 1.0, ..Spent::default() });
        let phases = vec![Breakdown { owners: owners.iter().map(spent).collect(), ..Breakdown::default() }];
        let target = Target { name: fs.into(), fs: Some(fs.into()), ..Target::default() };
        Explained { target, work: "tree".into(), phases, sameness: None }
    }

    #[test]
    fn file_systems_can_do_without_what_the_table_of_owners_knows() {
        for driver in fs::ALL.iter() {
            for without in driver.without {
                assert!(is_owner(without.what), "{}: {}", driver.name, without.what);
                assert!(!(without.mkfs.is_empty() && without.mount.is_empty()), "{}: {}", driver.name, without.what);
            }
        }
    }

    #[test]
    fn each_removal_changes_the_target_that_has_the_cause() {
        let all = [
            (State::Idle, "metadata reads"),
            (State::Idle, "a timer of layers below the file system"),
            (State::Busy, "checksums"),
            (State::Busy, "compression"),
        ];
        let mut cell = cell("btrfs", &all);
        let machine = |removal: Removal, name: &str| {
            without(&removal, &cell).and_then(|found| found.machine.0.get(name).cloned())
        };
        assert_eq!(machine(Removal::Requests("metadata reads".into()), AT_ONCE), Some(json!(["RM"])));
        assert_eq!(machine(Removal::Requests("flushes".into()), AT_ONCE), None, "it has none");
        assert_eq!(machine(Removal::Processor, SPEED), Some(json!(2.0)));
        assert_eq!(machine(Removal::Compression, COMPRESSION), Some(json!(100.0)));
        let sums = Removal::Switch("checksums".into());
        assert_eq!(without(&sums, &cell).map(|found| found.mount), Some(vec!["nodatasum".to_string()]));
        assert!(without(&Removal::Layers, &cell).is_none(), "there are none");
        cell.target.layers = vec![Chosen { name: "delay".into(), ..Chosen::default() }];
        assert_eq!(without(&Removal::Layers, &cell).map(|found| found.layers.len()), Some(0));
        // With compression it would do without that, too.
        cell.target.variant = Some("zstd:1".into());
        assert!(without(&sums, &cell).is_none());
    }

    #[test]
    fn what_only_one_can_do_without_is_not_switched_off() {
        const LOG: &str = "journal, log and transactions";
        let sums = [(State::Busy, "checksums"), (State::Busy, LOG)];
        for (one, other, owner, wanted) in [
            (cell("ext4", &sums), cell("btrfs", &sums), "checksums", true),
            (cell("ext4", &sums), cell("xfs", &sums), LOG, false),
            (cell("xfs", &sums), cell("ext4", &sums), LOG, false),
            (cell("ext4", &sums), cell("xfs", &[]), LOG, true),
            (cell("xfs", &sums), cell("f2fs", &[]), LOG, false),
        ] {
            assert_eq!(can_do_without([&one, &other], owner), wanted, "{} {}", one.target.name, other.target.name);
        }
    }
}
