//! Once per run: backings made, sources staged in memory, host settings fixed, the drive's raw
//! speed taken. Every step stays until the host has it undone.

use super::cell::needs_of_target;
use super::{drive, git, other_disk, provenance};
use crate::stack::backing::Elsewhere;
use crate::stack::{Place, Step, above, backing, fs, layer, recipe};
use crate::steps::{StepResult, StepRunner};
use crate::workload;
use anyhow::{Context, Result, bail};
use pickfs_core::journal::{BackingHardware, Ledger, Provenance, Record, Scope};
use pickfs_core::plan::{Cell, Chosen, Plan, SIZE, Settings, Target, Work};
use pickfs_core::protocol::{
    Arrival, Bundle, CellsRun, GUEST_FACTS, Link, ModuleSource, ModulesOf, Say, TargetBundle, WorkBundle,
};
use pickfs_system::need;
use pickfs_system::process::argv;
use pickfs_system::sys::devices;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// In the run's folder in memory: what machines elsewhere get of it.
const STAGED: &str = "data.tar";

pub(crate) fn prepare(plan: &Plan, cells: CellsRun, place: &Place, link: &mut Link) -> Result<()> {
    let begun = Instant::now();
    let mut runner = StepRunner::new(place, Scope::Run);
    let prepared = match cells {
        CellsRun::Here => here(plan, &mut runner, link).map(|()| None),
        CellsRun::Elsewhere => elsewhere(plan, &mut runner, link).map(Some),
    };
    let setup_ns = begun.elapsed().as_nanos() as u64;
    link.tell(Record::Ledger(Ledger { setup_ns, ..Ledger::default() }));
    match prepared {
        Ok(bundle) => {
            bundle.into_iter().for_each(|bundle| link.report(&Say::Prepared(Box::new(bundle))));
            Ok(())
        }
        Err(error) => match runner.undo_all(link) {
            Ok(()) => Err(error),
            Err(undo) => Err(error.context(format!("{undo:#}"))),
        },
    }
}

fn here(plan: &Plan, runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    runner.take_all(recipe::of_run(runner.place, &plan.host, memory_if_root()?), link)?;
    let mut found = Provenance { facts: provenance::of_host(), ..Provenance::default() };
    let mut earlier = Earlier::default();
    let backings = unique(plan.targets.iter().map(|target| &target.backing));
    for chosen in &backings {
        let name = told_apart(chosen, &backings);
        link.doing(&format!("preparing: {name}, made and its raw speed read"));
        let backing = prepare_backing(chosen, &mut earlier, runner, link)?;
        backing.into_iter().for_each(|backing| backing.add_to(&mut found, &name));
    }
    for chosen in unique(plan.works.iter().map(|work| &work.workload)) {
        link.doing(&format!("preparing: what `{}` works on, brought into memory", chosen.name));
        stage_source(chosen, runner, CellsRun::Here)?;
    }
    git::prepare(plan, runner)?;
    link.tell(Record::Provenance(found));
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

/// What a backing was seen to be.
#[derive(Clone, Debug, PartialEq)]
struct SeenBacking {
    hardware: BackingHardware,
    facts: BTreeMap<String, String>,
}

impl SeenBacking {
    fn add_to(self, found: &mut Provenance, name: &str) {
        found.facts.extend(self.facts.into_iter().map(|(fact, value)| (format!("{name} {fact}"), value)));
        found.hardware.backings.push(BackingHardware { backing: name.to_string(), ..self.hardware });
    }
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

/// Of the backings before.
#[derive(Default)]
struct Earlier {
    /// Two that differ only in how the image is attached share it.
    made: Vec<Step>,
    /// Of disks with folders: one disk has one raw speed, though every reading differs.
    folders: BTreeMap<(u32, u32), SeenBacking>,
}

/// A backing whose needs are not met is left alone: its cells will be skipped with the reasons.
fn prepare_backing(
    chosen: &Chosen,
    earlier: &mut Earlier,
    runner: &mut StepRunner,
    link: &mut Link,
) -> Result<Option<SeenBacking>> {
    let backing =
        backing::find(&chosen.name).with_context(|| format!("this agent knows no backing `{}`", chosen.name))?;
    if !need::missing(backing.needs).is_empty() {
        return Ok(None);
    }
    make_once(backing, chosen, &mut earlier.made, runner, link)?;
    raw_speed(chosen, backing, &mut earlier.folders, (runner, link)).map(Some)
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
    folders: &mut BTreeMap<(u32, u32), SeenBacking>,
    (runner, link): (&StepRunner, &mut Link),
) -> Result<SeenBacking> {
    let mut probe = StepRunner::new(runner.place, Scope::RawSpeed);
    let given = probe.take_all((backing.steps)(&chosen.settings, runner.place), link);
    let readings = if link.is_simulated() { drive::ONE } else { drive::USUAL };
    let measured = given.and_then(|given| once_a_disk(&given, folders, || measure_raw(&given, readings)));
    let undone = probe.undo_all(link);
    let speed = measured.with_context(|| format!("cannot take the raw speed of backing {}", chosen.name))?;
    undone.map(|_| speed)
}

fn once_a_disk(
    given: &StepResult,
    folders: &mut BTreeMap<(u32, u32), SeenBacking>,
    measure: impl FnOnce() -> Result<SeenBacking>,
) -> Result<SeenBacking> {
    let disk = if let StepResult::Directory(folder) = given { devices::disk_of_file(folder) } else { None };
    if let Some(known) = disk.and_then(|disk| folders.get(&disk)) {
        return Ok(known.clone());
    }
    let found = measure()?;
    folders.extend(disk.map(|disk| (disk, found.clone())));
    Ok(found)
}

fn measure_raw(given: &StepResult, readings: drive::Readings) -> Result<SeenBacking> {
    let (number, (speed, in_words)) = match given {
        StepResult::Devices(devices) => {
            let device = devices.first().context("no device")?;
            (devices::device_number(device), drive::device_speed(device, readings)?)
        }
        StepResult::Directory(directory) => {
            (devices::disk_of_file(directory), drive::directory_speed(directory, readings)?)
        }
        StepResult::Nothing => bail!("it gave neither device nor directory"),
    };
    let (hardware, mut facts) = number.map(provenance::of_backing).unwrap_or_default();
    facts.extend(in_words.into_iter().map(|(name, value)| (name.to_string(), value)));
    Ok(SeenBacking { hardware: BackingHardware { raw_speed: Some(speed), ..hardware }, facts })
}

/// A work whose needs are not met is left alone: its cells will be skipped with the reasons.
/// Machines elsewhere may have what this one lacks, so for them it is tried nevertheless: only what
/// staging itself needs must be here.
fn stage_source(chosen: &Chosen, runner: &StepRunner, cells: CellsRun) -> Result<()> {
    let workload =
        workload::find(&chosen.name).with_context(|| format!("this agent knows no workload `{}`", chosen.name))?;
    let lacks: Vec<String> = need::missing(&workload.needs(&chosen.settings)).iter().map(ToString::to_string).collect();
    let is_lacking = !lacks.is_empty() || workload.lacks(&chosen.settings, runner.place).is_some();
    if is_lacking && cells == CellsRun::Here {
        return Ok(());
    }
    let staged = workload.prepare(&chosen.settings, runner.place);
    let staged = match lacks.as_slice() {
        [] => staged,
        lacks => staged.with_context(|| format!("this host lacks {}", lacks.join("; "))),
    };
    staged.with_context(|| format!("cannot stage the source of {}", chosen.name))
}

/// Bytes of memory, where settings of the kernel may be changed: without root they are only
/// recorded.
fn memory_if_root() -> Result<Option<u64>> {
    use procfs::Current;
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    Ok(Some(procfs::Meminfo::current().context("cannot read /proc/meminfo")?.mem_total))
}

/// For machines elsewhere: images and staged sources, packed; nothing that needs root, and nothing
/// is set or mounted.
fn elsewhere(plan: &Plan, runner: &mut StepRunner, link: &mut Link) -> Result<Bundle> {
    runner.take(recipe::folder_in_memory(runner.place), link)?;
    let mut made = Vec::new();
    for chosen in unique(plan.targets.iter().map(|target| &target.backing)) {
        let given = backing::find(&chosen.name).filter(|found| matches!(found.elsewhere, Elsewhere::Disks(_)));
        if let Some(backing) = given {
            make_once(backing, chosen, &mut made, runner, link)?;
        }
    }
    for chosen in unique(plan.works.iter().map(|work| &work.workload)) {
        link.doing(&format!("preparing: what `{}` works on, brought into memory", chosen.name));
        stage_source(chosen, runner, CellsRun::Elsewhere)?;
    }
    git::prepare(plan, runner)?;
    let archive = pack_staged(runner)?;
    other_disk::make(&plan.works, runner, link)?;
    link.tell(Record::Provenance(Provenance { facts: provenance::of_host(), ..Provenance::default() }));
    Ok(Bundle { archive, ..bundle(plan, runner.place) })
}

/// What separate machines must be given for the cells of a plan, once it is made.
pub fn bundle(plan: &Plan, place: &Place) -> Bundle {
    let target = |target: &Target| TargetBundle {
        disks: disks(&target.backing, place),
        packages: packages(needs_of_target(target)),
        module_source: target
            .fs
            .as_deref()
            .and_then(|name| fs::find(name)?.kernel.module_source)
            .map(|source| source.package.into()),
    };
    let work = |work: &Work| WorkBundle {
        packages: workload::find(&work.workload.name)
            .map_or_else(Vec::new, |found| packages(found.needs(&work.workload.settings))),
        tree: other_disk::image(work, place),
        recording: workload::find(&work.workload.name).and_then(|found| found.recording(&work.workload.settings)),
    };
    Bundle {
        folder: place.memory.clone(),
        archive: None,
        module_sources: fs::ALL.iter().filter_map(|fs| fs.kernel.module_source).map(module_source).collect(),
        modules: modules(),
        targets: plan.targets.iter().map(|each| (each.name.clone(), target(each))).collect(),
        works: plan.works.iter().map(|each| (each.name.clone(), work(each))).collect(),
    }
}

/// `fs-TYPE` is what the kernel itself asks for at a mount.
fn modules() -> Vec<ModulesOf> {
    let of_filesystem = |fs: &&fs::Filesystem| {
        let prefix = if fs.kernel.module_source.is_some() { "" } else { "fs-" };
        ModulesOf { packages: packages(fs.needs()), modules: vec![format!("{prefix}{}", fs.kernel_type())] }
    };
    let of_layer = |layer: &&layer::Layer| {
        let modules = layer.modules.iter().map(|name| name.to_string()).collect();
        ModulesOf { packages: packages(layer.needs.to_vec()), modules }
    };
    let of_above = |layer: &&above::Above| {
        let modules = layer.modules.iter().map(|name| name.to_string()).collect();
        ModulesOf { packages: packages(layer.needs.to_vec()), modules }
    };
    let layers = layer::ALL.iter().map(of_layer).chain(above::ALL.iter().map(of_above));
    fs::ALL.iter().map(of_filesystem).chain(layers).collect()
}

fn packages(needs: Vec<need::Need>) -> Vec<String> {
    needs.into_iter().filter_map(need::Need::package).collect()
}

fn module_source(source: fs::parts::ModuleSource) -> ModuleSource {
    ModuleSource { package: source.package.into(), tools: source.tools.into() }
}

/// Files and devices that are the disks of a backing elsewhere: none where the machine makes it
/// itself; no answer where it cannot be taken elsewhere.
fn disks(chosen: &Chosen, place: &Place) -> Option<Vec<PathBuf>> {
    match backing::find(&chosen.name)?.elsewhere {
        Elsewhere::Never => None,
        Elsewhere::MadeThere => Some(Vec::new()),
        Elsewhere::Disks(disks) => Some(disks(&chosen.settings, place)),
    }
}

/// All that is in the run's memory so far, as an archive; none where there is nothing.
fn pack_staged(runner: &StepRunner) -> Result<Option<PathBuf>> {
    let memory = &runner.place.memory;
    let list = std::fs::read_dir(memory)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = list.collect();
    names.sort();
    if names.is_empty() {
        return Ok(None);
    }
    let archive = memory.join(STAGED);
    let [memory, shown] = [memory, &archive].map(|path| path.display().to_string());
    // By name: else they lie in the order in which they happened to be made, and in each guest as
    // well. Without root all files are this user's, whose number would reach the guest: there they
    // are root's, like files that root stages.
    let mut words = vec!["tar", "-c", "--sort=name", "-f", &shown, "-C", &memory];
    if !rustix::process::geteuid().is_root() {
        words.extend(["--owner=root:0", "--group=root:0"]);
    }
    words.push("--");
    runner.output(&words.into_iter().map(String::from).chain(names).collect())?;
    Ok(Some(archive))
}

/// On a machine that was made for this one cell: what was prepared elsewhere is brought here, and
/// the settings are made. The machine goes when the cell is done, so nothing is kept for undoing.
/// The cell on this machine, and the machine's description.
pub(crate) fn arrive(arrival: &Arrival, cell: &Cell, place: &Place, link: &mut Link) -> Result<(Cell, Provenance)> {
    let cell = Cell { target: on_disks(&cell.target, &arrival.disks), ..cell.clone() };
    let mut runner = StepRunner::new(place, Scope::Run);
    runner.take_all(recipe::of_run(place, &arrival.host, memory_if_root()?), link)?;
    if let Some(archive) = &arrival.archive {
        let [archive, memory] = [archive, &place.memory].map(|path| path.display().to_string());
        runner.output(&argv(["tar", "-x", "-f", &archive, "-C", &memory]))?;
    }
    if let Some(device) = &arrival.tree {
        other_disk::mount(device, &runner)?;
    }
    let mut facts = provenance::of_host();
    let of_init = std::fs::read(GUEST_FACTS).ok().and_then(|text| serde_json::from_slice(&text).ok());
    facts.extend::<BTreeMap<_, _>>(of_init.unwrap_or_default());
    let mut machine = Provenance { cell: cell.id.clone(), facts, ..Provenance::default() };
    let backing = prepare_backing(&cell.target.backing, &mut Earlier::default(), &mut runner, link)?;
    backing.into_iter().for_each(|backing| backing.add_to(&mut machine, &cell.target.backing.name));
    Ok((cell, machine))
}

/// The target as the agent of a machine sees it that gives its disks these names.
pub fn on_machine(target: &Target, place: &Place, disk_names: impl Fn(usize) -> Vec<PathBuf>) -> Target {
    on_disks(target, &disk_names(disks(&target.backing, place).map_or(0, |disks| disks.len())))
}

/// The target on this machine: what are files and devices elsewhere are these disks here. The size
/// stays, as the time that is allowed for ageing comes from it.
pub fn on_disks(target: &Target, disks: &[PathBuf]) -> Target {
    let mut target = target.clone();
    if let Some((first, more)) = disks.split_first() {
        let size = target.backing.settings.0.remove(SIZE).map(|size| (SIZE.to_string(), size));
        let text = |path: &PathBuf| serde_json::Value::from(path.display().to_string());
        let more: Vec<_> = more.iter().map(text).collect();
        let settings = [("path".to_string(), text(first)), (backing::MORE_DEVICES.to_string(), more.into())];
        let settings = settings.into_iter().chain(size).collect();
        target.backing = Chosen { name: "device".into(), settings: Settings(settings) };
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::journal::Hardware;
    use pickfs_core::plan::allowance_ns;
    use serde_json::json;

    #[test]
    fn disks_of_one_kind_are_told_apart() {
        let one = |name: &str, settings: serde_json::Value| Chosen {
            name: name.into(),
            settings: Settings(settings.as_object().unwrap().clone().into_iter().collect()),
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

    #[test]
    fn what_was_seen_of_a_backing_is_noted_in_types_and_in_words() {
        let here = tempfile::tempdir_in("/var/tmp").unwrap();
        let seen = measure_raw(&StepResult::Directory(here.path().into()), drive::ONE).unwrap();
        let mut found = Provenance::default();
        seen.add_to(&mut found, "directory");
        let typed = found.hardware.backing("directory").expect("a backing");
        let read = Hardware::default();
        let read = read.or_in_words(&found.facts);
        let words = read.backing("directory").expect("its words");
        let disk = |of: &BackingHardware| {
            of.disk().map(|disk| (disk.device.clone(), disk.model.trim().to_string(), disk.rotational))
        };
        assert_eq!(disk(typed), disk(words));
        let speeds = |of: &BackingHardware| {
            let speed = of.raw_speed.expect("a speed");
            [speed.random_read_ns.expect("a read"), speed.buffered_bytes_per_second.expect("a rate")]
        };
        let near = speeds(typed).into_iter().zip(speeds(words)).all(|(one, other)| (one / other - 1.0).abs() < 0.01);
        assert!(near, "{found:?}");
    }

    #[test]
    fn folders_on_one_disk_have_one_raw_speed() {
        let here = tempfile::tempdir_in("/var/tmp").unwrap();
        let (one, other) = (here.path().join("one"), here.path().join("other"));
        [&one, &other].iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let (mut folders, mut readings) = (BTreeMap::new(), 0);
        let mut speed = |folder: &PathBuf| {
            let measure = || {
                readings += 1;
                let facts = BTreeMap::from([("raw buffered reads".to_string(), format!("{readings} MiB/s"))]);
                Ok(SeenBacking { hardware: BackingHardware::default(), facts })
            };
            once_a_disk(&StepResult::Directory(folder.clone()), &mut folders, measure).unwrap()
        };
        let same = speed(&one) == speed(&other);
        assert_eq!(same, devices::disk_of_file(&one).is_some());
    }

    #[test]
    fn a_target_has_its_disks_elsewhere_and_as_long_for_ageing() {
        let given = serde_json::json!({"dir": "/somewhere", "size": 1 << 30, "disks": 2});
        let settings = Settings(given.as_object().unwrap().clone().into_iter().collect());
        let backing = Chosen { name: "image".into(), settings };
        let here = Target { backing, fill: Some(0.5), ..Target::default() };
        let there = on_disks(&here, &["/dev/a".into(), "/dev/b".into()]);
        assert_eq!(there.backing.name, "device");
        assert_eq!(there.backing.settings.path("path").unwrap(), PathBuf::from("/dev/a"));
        assert_eq!(there.backing.settings.texts(backing::MORE_DEVICES).len(), 1);
        assert_eq!(allowance_ns(&there), allowance_ns(&here));
        assert_eq!(on_disks(&here, &[]), here);
    }
}
