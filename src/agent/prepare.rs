//! Once per run: backings made, sources staged in memory, host settings fixed, the drive's raw speed taken. Every
//! step stays until the host has it undone.

use super::Elsewhere;
use super::cell::folder;
use super::{drive, git, other_disk, provenance};
use crate::journal::{Ledger, Provenance, Record};
use crate::need;
use crate::plan::{Cell, Chosen, HostSettings, Plan};
use crate::protocol::GuestPart;
use crate::protocol::Link;
use crate::stack::{Action, Place, Step, backing};
use crate::steps::{StepResult, StepRunner};
use crate::sys::devices;
use crate::workload;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::time::Instant;

/// Scope of the run's own steps.
pub const SCOPE: &str = "run";
/// In the run's folder in memory: what guests get of it.
pub const STAGED: &str = "data.tar";

pub fn prepare(plan: &Plan, elsewhere: Option<&dyn Elsewhere>, place: &Place, link: &mut Link) -> Result<()> {
    let begun = Instant::now();
    let mut runner = StepRunner::new(place, SCOPE);
    let prepared = match elsewhere {
        Some(elsewhere) => for_guests(plan, elsewhere, &mut runner, link),
        None => steps(plan, &mut runner, link),
    };
    let setup_ns = begun.elapsed().as_nanos() as u64;
    link.tell(Record::Ledger(Ledger { setup_ns, ..Ledger::default() }));
    match prepared {
        Ok(()) => Ok(()),
        Err(error) => match runner.undo_all(link) {
            Ok(()) => Err(error),
            Err(undo) => Err(error.context(format!("{undo:#}"))),
        },
    }
}

fn steps(plan: &Plan, runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    runner.take(folder("make a folder in memory", runner.place.memory.clone()), link)?;
    runner.take(folder("make a folder for mount points", runner.place.mounts.clone()), link)?;
    fix_writeback(&plan.host, runner, link)?;
    let mut facts = provenance::of_host();
    let mut made = Vec::new();
    let backings = unique(plan.targets.iter().map(|target| &target.backing));
    for chosen in &backings {
        let found = prepare_backing(chosen, &mut made, runner, link)?;
        let name = told_apart(chosen, &backings);
        facts.extend(named(&name, found));
    }
    for chosen in unique(plan.works.iter().map(|work| &work.workload)) {
        stage_source(chosen, runner, false)?;
    }
    git::prepare(plan, runner)?;
    link.tell(Record::Provenance(Provenance { facts, ..Provenance::default() }));
    Ok(())
}

fn unique<'a>(all: impl Iterator<Item = &'a Chosen>) -> Vec<&'a Chosen> {
    let mut seen: Vec<&Chosen> = Vec::new();
    for chosen in all {
        if !seen.contains(&chosen) {
            seen.push(chosen);
        }
    }
    seen
}

fn named(backing: &str, facts: BTreeMap<String, String>) -> impl Iterator<Item = (String, String)> {
    facts.into_iter().map(move |(fact, value)| (format!("{backing} {fact}"), value))
}

/// "image"; "device /dev/sdb" where another disk is in the same run.
fn told_apart(chosen: &Chosen, all: &[&Chosen]) -> String {
    let place = |one: &Chosen| {
        let main = backing::find(&one.name)?.main_setting;
        one.settings.text(main).map(String::from)
    };
    let is_other = |other: &&Chosen| other.name == chosen.name && place(other) != place(chosen);
    match place(chosen).filter(|_| all.iter().any(is_other)) {
        Some(place) => format!("{} {place}", chosen.name),
        None => chosen.name.clone(),
    }
}

/// A backing whose needs are not met is left alone: its cells will be skipped with the reasons. `made` are the steps
/// of earlier ones: two that differ only in how the image is attached share it.
fn prepare_backing(
    chosen: &Chosen,
    made: &mut Vec<Step>,
    runner: &mut StepRunner,
    link: &mut Link,
) -> Result<BTreeMap<String, String>> {
    let backing =
        backing::find(&chosen.name).with_context(|| format!("this agent knows no backing `{}`", chosen.name))?;
    if !need::missing(backing.needs).is_empty() {
        return Ok(BTreeMap::new());
    }
    make_once(backing, chosen, made, runner, link)?;
    raw_speed(chosen, backing, runner, link)
}

fn make_once(
    backing: &backing::Backing,
    chosen: &Chosen,
    made: &mut Vec<Step>,
    runner: &mut StepRunner,
    link: &mut Link,
) -> Result<()> {
    for step in (backing.prepare)(&chosen.settings, runner.place) {
        if !made.contains(&step) {
            runner.take(step.clone(), link)?;
            made.push(step);
        }
    }
    Ok(())
}

/// The backing as the cells will see it, looked at, measured and taken down again.
fn raw_speed(
    chosen: &Chosen,
    backing: &backing::Backing,
    runner: &mut StepRunner,
    link: &mut Link,
) -> Result<BTreeMap<String, String>> {
    let mut probe = StepRunner::new(runner.place, "raw-speed");
    let given = probe.take_all((backing.steps)(&chosen.settings, runner.place), link);
    let measured = given.and_then(|given| measure_raw(&given));
    let undone = probe.undo_all(link);
    let speed = measured.with_context(|| format!("cannot take the raw speed of backing {}", chosen.name))?;
    undone.map(|_| speed)
}

fn measure_raw(given: &StepResult) -> Result<BTreeMap<String, String>> {
    let (number, speed) = match given {
        StepResult::Devices(devices) => {
            let device = devices.first().context("no device")?;
            (devices::device_number(device), drive::device_speed(device)?)
        }
        StepResult::Directory(directory) => (devices::disk_of_file(directory), drive::directory_speed(directory)?),
        StepResult::Nothing => bail!("it gave neither device nor directory"),
    };
    let mut facts: BTreeMap<String, String> = number.map(provenance::of_backing).unwrap_or_default();
    facts.extend(speed.into_iter().map(|(name, value)| (format!("raw {name}"), value)));
    Ok(facts)
}

/// A work whose needs are not met is left alone: its cells will be skipped with the reasons. For guests, which may have
/// what this host lacks, it is tried all the same: only what staging itself needs must be here.
fn stage_source(chosen: &Chosen, runner: &StepRunner, for_guests: bool) -> Result<()> {
    let workload =
        workload::find(&chosen.name).with_context(|| format!("this agent knows no workload `{}`", chosen.name))?;
    let lacks: Vec<String> = need::missing(&workload.needs(&chosen.settings)).iter().map(ToString::to_string).collect();
    if !lacks.is_empty() && !for_guests {
        return Ok(());
    }
    let staged = workload.prepare(&chosen.settings, runner.place);
    let staged = match lacks.as_slice() {
        [] => staged,
        lacks => staged.with_context(|| format!("this host lacks {}", lacks.join("; "))),
    };
    staged.with_context(|| format!("cannot stage the source of {}", chosen.name))
}

/// Bytes, not shares of whatever memory is free, and the same for all; the kernel's default shares of the memory
/// there is, unless the plan says otherwise. Without root they stay as they are, and are recorded.
fn fix_writeback(host: &HostSettings, runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    use procfs::Current;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let memory = procfs::Meminfo::current().context("cannot read /proc/meminfo")?.mem_total;
    let page = 4096;
    let share = |part: u64| memory / part / page * page;
    let values = [
        ("dirty_background_bytes", "dirty_background_ratio", host.dirty_background_bytes.unwrap_or(share(10))),
        ("dirty_bytes", "dirty_ratio", host.dirty_bytes.unwrap_or(share(5))),
    ];
    for (bytes, ratio, value) in values {
        save_pair(bytes, ratio, runner, link)?;
        crate::steps::set(&knob(bytes), &value.to_string())?;
    }
    for (name, value) in [("dirty_expire_centisecs", "3000"), ("dirty_writeback_centisecs", "500")] {
        let says = format!("fix vm.{name}");
        runner.take(Step::new(says, Action::Set { path: knob(name), value: value.into() }), link)?;
    }
    Ok(())
}

/// Of bytes and ratio only the one that is not 0 is in force; writing it back switches the other off. Both may be 0:
/// a ratio of nothing is in force then.
fn save_pair(bytes: &str, ratio: &str, runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    let in_force = [bytes, ratio].into_iter().find(|name| devices::content(knob(name)).is_some_and(|v| v != "0"));
    let name = in_force.unwrap_or(ratio);
    let value = devices::content(knob(name)).unwrap_or_default();
    let says = format!("save vm.{name}");
    runner.take(Step::new(says, Action::Set { path: knob(name), value }), link)?;
    Ok(())
}

fn knob(name: &str) -> std::path::PathBuf {
    format!("/proc/sys/vm/{name}").into()
}

/// On the host of guests: images and staged sources, packed for guests to unpack; nothing that needs root.
fn for_guests(plan: &Plan, elsewhere: &dyn Elsewhere, runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    runner.take(folder("make a folder in memory", runner.place.memory.clone()), link)?;
    let (image, mut made) = (backing::find("image").context("no backing `image`")?, Vec::new());
    let chosen = unique(plan.targets.iter().map(|target| &target.backing));
    for chosen in chosen.into_iter().filter(|chosen| chosen.name == image.name) {
        make_once(image, chosen, &mut made, runner, link)?;
    }
    for chosen in unique(plan.works.iter().map(|work| &work.workload)) {
        stage_source(chosen, runner, true)?;
    }
    git::prepare(plan, runner)?;
    pack_staged(runner)?;
    other_disk::make(&plan.works, runner, link)?;
    let mut facts = provenance::of_host();
    facts.extend(elsewhere.prepare(plan, runner.place)?);
    link.tell(Record::Provenance(Provenance { facts, ..Provenance::default() }));
    Ok(())
}

/// All that is in the run's memory so far, as the archive that becomes a disk of guests; none where there is nothing.
fn pack_staged(runner: &StepRunner) -> Result<()> {
    let memory = &runner.place.memory;
    let list = std::fs::read_dir(memory)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = list.collect();
    if !names.is_empty() {
        let [memory, archive] = [memory.clone(), memory.join(STAGED)].map(|path| path.display().to_string());
        let words = ["tar", "-c", "-f", &archive, "-C", &memory, "--"].into_iter().map(String::from);
        runner.output(&words.chain(names).collect())?;
    }
    Ok(())
}

/// In a guest, before its one cell: what the run has prepared elsewhere is brought here, and the knobs are set. The
/// guest goes when the cell is done, so nothing is kept for undoing.
pub fn in_guest(part: &GuestPart, cell: &Cell, place: &Place, link: &mut Link) -> Result<BTreeMap<String, String>> {
    let mut runner = StepRunner::new(place, SCOPE);
    runner.take(folder("make a folder in memory", place.memory.clone()), link)?;
    runner.take(folder("make a folder for mount points", place.mounts.clone()), link)?;
    fix_writeback(&part.host, &mut runner, link)?;
    if let Some(data) = &part.data {
        let [data, memory] = [data, &place.memory].map(|path| path.display().to_string());
        runner.output(&crate::stack::argv(["tar", "-x", "-f", &data, "-C", &memory]))?;
    }
    if let Some(device) = &part.other_disk {
        other_disk::mount(device, &runner)?;
    }
    let mut facts = provenance::of_host();
    let backing = &cell.target.backing;
    let found = prepare_backing(backing, &mut Vec::new(), &mut runner, link)?;
    facts.extend(named(&backing.name, found));
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn disks_of_one_kind_are_told_apart() {
        let one = |name: &str, settings: serde_json::Value| Chosen {
            name: name.into(),
            settings: crate::plan::Settings(settings.as_object().unwrap().clone().into_iter().collect()),
        };
        let all = [
            one("image", json!({"dir": "/a", "size": 1})),
            one("image", json!({"dir": "/a", "size": 2})),
            one("device", json!({"path": "/dev/sda"})),
            one("device", json!({"path": "/dev/sdb"})),
        ];
        let all: Vec<&Chosen> = all.iter().collect();
        let names: Vec<String> = all.iter().map(|chosen| told_apart(chosen, &all)).collect();
        assert_eq!(names, ["image", "image", "device /dev/sda", "device /dev/sdb"]);
    }
}
