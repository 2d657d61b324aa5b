//! One cell: needs, stack, provenance, the workload's phases, and everything taken down again.

use super::{ageing, git, hardware, limits, provenance};
use crate::journal::{Begin, End, Ledger, Outcome, Provenance, Record, Undo};
use crate::need::{self, Need};
use crate::plan::{Ageing, Cell, Discard, Target, allowance_ns};
use crate::probe::Subject;
use crate::process::{CELL_MARK, DAEMON_MARK, Deadline, Interrupted, listing};
use crate::protocol::{Link, Question};
use crate::stack::backing::{self, Backing};
use crate::stack::fs::{self, Filesystem, argvs};
use crate::stack::layer::{self, Below};
use crate::stack::{Action, Argv, Place, Step};
use crate::stage::{BuiltStack, Layers, Script, Stage, boot_objections};
use crate::steps::{StepResult, StepRunner, name_of};
use crate::sys::{block, devices};
use crate::workload::{self, Workload};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// What a cell is made of, by plug-in.
struct Parts {
    driver: Option<&'static Filesystem>,
    backing: &'static Backing,
    workload: &'static dyn Workload,
}

/// Runs the cell and tells how it ended; `Err` only when there is no end to tell (asked to stop, or no host). `facts` are
/// of a machine that is this cell's alone.
pub fn run(cell: &Cell, facts: BTreeMap<String, String>, place: &Place, link: &mut Link) -> Result<()> {
    link.tell(Record::Begin(Begin::of(cell, now())));
    if !facts.is_empty() {
        link.tell(Record::Provenance(Provenance { cell: cell.id.clone(), facts, ..Provenance::default() }));
    }
    let mut ledger = Ledger { cell: cell.id.clone(), ..Ledger::default() };
    let outcome = match parts(cell).map(|parts| (missing(cell, &parts, link.can(Question::Boot)), parts)) {
        Err(error) => Outcome::Failed(format!("{error:#}")),
        Ok((reasons, _)) if !reasons.is_empty() => Outcome::Skipped(reasons),
        Ok((_, parts)) => perform(cell, &parts, place, link, &mut ledger)?,
    };
    link.tell(Record::Ledger(ledger));
    link.tell(Record::End(End { cell: cell.id.clone(), outcome, at: now() }));
    Ok(())
}

/// RFC 3339.
pub fn now() -> String {
    jiff::Timestamp::now().to_string()
}

fn parts(cell: &Cell) -> Result<Parts> {
    let unknown = |kind: &str, name: &str| format!("this agent knows no {kind} `{name}`");
    let driver = match &cell.target.fs {
        Some(name) => Some(fs::find(name).with_context(|| unknown("file system", name))?),
        None => None,
    };
    let (backing, workload) = (&cell.target.backing.name, &cell.work.workload.name);
    Ok(Parts {
        driver,
        backing: backing::find(backing).with_context(|| unknown("backing", backing))?,
        workload: workload::find(workload).with_context(|| unknown("workload", workload))?,
    })
}

/// What it takes to build the stack of a target, whatever is done on it.
pub fn needs_of_target(target: &Target) -> Vec<Need> {
    let driver = target.fs.as_deref().and_then(fs::find).map(|driver| driver.needs());
    let backing = backing::find(&target.backing.name).map(|backing| backing.needs.to_vec());
    let first = driver.into_iter().chain(backing).flatten();
    first.chain(layer::needs(&target.layers)).chain(git::needs(target)).collect()
}

/// Every reason, not the first.
fn missing(cell: &Cell, parts: &Parts, can_boot: bool) -> Vec<String> {
    let mut needs: Vec<Need> = Vec::new();
    let of_work = parts.workload.needs(&cell.work.workload.settings);
    for need in needs_of_target(&cell.target).into_iter().chain(of_work) {
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    let lacks = need::missing(&needs).into_iter().map(|missing| missing.to_string());
    let cannot = if parts.workload.boots() { boot_objections(&cell.target, can_boot) } else { Vec::new() };
    lacks.chain(cannot).collect()
}

/// The programs among the needs of a workload.
fn programs(needs: Vec<Need>) -> Vec<&'static str> {
    let name = |need: Need| if let Need::Program { name, .. } = need { Some(name) } else { None };
    needs.into_iter().filter_map(name).collect()
}

/// Build, prove, play, take down. Teardown comes whatever happened before.
fn perform(cell: &Cell, parts: &Parts, place: &Place, link: &mut Link, ledger: &mut Ledger) -> Result<Outcome> {
    let mut runner = StepRunner::new(place, &cell.id);
    let deadline = Deadline::start(&cell.id, cell.limit_ns);
    let played = play(cell, parts, &mut runner, link, &deadline, ledger);
    let timely = deadline.check();
    drop(deadline);
    let begun = Instant::now();
    let mut leaked = crate::process::kill_marked(&format!("{CELL_MARK}={}", cell.id), &[]).unwrap_or_default();
    leaked.extend(crate::process::kill_unmarked_children(DAEMON_MARK));
    let undone = runner.undo_all(link);
    ledger.teardown_ns += begun.elapsed().as_nanos() as u64;
    let played = match (timely, played) {
        (Err(late), Err(error)) if !error.is::<Interrupted>() && !told(&error, &late) => {
            Err(late.context(format!("{error:#}")))
        }
        (_, played) => played,
    };
    match (played, undone) {
        (Err(error), _) if error.is::<Interrupted>() => Err(error),
        (Err(error), Ok(())) => Ok(Outcome::Failed(format!("{error:#}"))),
        (Err(error), Err(undo)) => Ok(Outcome::Failed(format!("{error:#}; and {undo:#}"))),
        (Ok(()), Err(undo)) => Ok(Outcome::Failed(format!("{undo:#}"))),
        (Ok(()), Ok(())) if !leaked.is_empty() => Ok(Outcome::Failed(format!(
            "the workload left running: {}; killed, as its work was not over",
            leaked.join(", ")
        ))),
        (Ok(()), Ok(())) => Ok(Outcome::Done),
    }
}

fn told(error: &anyhow::Error, late: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.to_string() == late.to_string())
}

fn play(
    cell: &Cell,
    parts: &Parts,
    runner: &mut StepRunner,
    link: &mut Link,
    deadline: &Deadline,
    ledger: &mut Ledger,
) -> Result<()> {
    let begun = Instant::now();
    let stack = build(cell, parts, runner, link)?;
    ledger.setup_ns += begun.elapsed().as_nanos() as u64;
    let begun = Instant::now();
    let mut found = provenance::of_cell(cell, &stack, runner)?;
    let used = parts.workload.versions(&cell.work.workload.settings);
    found.facts.extend(versions(used, &runner.run));
    let (mismatches, features) = (found.mismatches.clone(), found.facts.get("features").cloned());
    ledger.checks_ns += begun.elapsed().as_nanos() as u64;
    // Only what is as asked for is worth ageing; how that went belongs to what is in effect.
    let aged = match mismatches.as_slice() {
        [] => aged(cell, &stack, runner, link, deadline, ledger).map(|facts| found.facts.extend(facts)),
        _ => Err(anyhow!("the stack is not what the plan asked for: {}", mismatches.join("; "))),
    };
    link.tell(Record::Provenance(found));
    aged?;
    let settings = &cell.work.workload.settings;
    let script = Script {
        name: parts.workload.name(),
        phases: parts.workload.phases_of_cell(settings, runner.place),
        programs: programs(parts.workload.needs(settings)),
        warm_up: parts.workload.warm_up(settings, runner.place),
        repeats: cell.work.repeats.0,
        trim: cell.target.discard == Discard::Trim,
    };
    let mut stage = Stage::new(script, &stack, runner, link, deadline, ledger);
    parts.workload.run(&mut stage, settings)?;
    let begun = Instant::now();
    let (facts, largest) = limits::of(&stack.root, features.as_ref());
    link.tell(Record::Provenance(Provenance { cell: cell.id.clone(), facts, largest, ..Provenance::default() }));
    ledger.checks_ns += begun.elapsed().as_nanos() as u64;
    Ok(())
}

fn aged(
    cell: &Cell,
    stack: &BuiltStack,
    runner: &StepRunner,
    link: &mut Link,
    deadline: &Deadline,
    ledger: &mut Ledger,
) -> Result<BTreeMap<String, String>> {
    let begun = Instant::now();
    let facts = ageing::age(cell, stack, runner, link, deadline);
    if Ageing::of(&cell.target).is_some() {
        ledger.ageing_ns += begun.elapsed().as_nanos() as u64;
        deadline.at_most(cell.limit_ns.saturating_sub(allowance_ns(&cell.target)));
    }
    facts
}

/// Backing, discard, scheduler, mkfs, mount: every step with its undo.
fn build(cell: &Cell, parts: &Parts, runner: &mut StepRunner, link: &mut Link) -> Result<BuiltStack> {
    let memory = runner.place.memory.join("cell");
    link.check()?;
    runner.take(folder("make a folder in memory", memory), link)?;
    for path in parts.workload.folders(&cell.work.workload.settings, runner.place) {
        runner.take(folder("make a folder for the work", path), link)?;
    }
    let given = runner.take_all((parts.backing.steps)(&cell.target.backing.settings, runner.place), link)?;
    let mut stack = BuiltStack {
        driver: parts.driver,
        target: cell.target.clone(),
        device: None,
        more_devices: Vec::new(),
        layers: Layers::default(),
        flushes_lost: false,
        mount_point: runner.place.mount_point(),
        root: PathBuf::new(),
        subject: Subject::default(),
        pool: name_of(&cell.id),
        seed: cell.seed,
    };
    match (given, parts.driver) {
        (StepResult::Devices(devices), Some(driver)) => {
            let (devices, layers) = layered(&cell.target, devices, &stack.pool, runner, link)?;
            stack.layers = layers;
            let mut devices = devices.into_iter();
            stack.device = devices.next();
            stack.more_devices = devices.collect();
            let variant = stack.target.variant.as_deref();
            if let Some(wrong) = fs::objection_to_devices(driver, variant, 1 + stack.more_devices.len()) {
                bail!("{}; {}", wrong.message, wrong.remedy);
            }
            let disks = hardware::disks(stack.device.as_deref(), &stack.more_devices);
            stack.flushes_lost = hardware::loses_flushes(&stack.target, &disks);
            ready_device(&stack, &disks, runner, link)?;
            make_and_mount(&stack, driver, runner, link)?;
            stack.root = stack.mount_point.join("work");
            std::fs::create_dir(&stack.root).context("cannot make a folder on the new file system")?;
        }
        (StepResult::Directory(directory), None) => {
            stack.mount_point = devices::mount_of(&directory.canonicalize()?)?.mount_point;
            stack.root = directory;
        }
        _ => bail!("backing {} and file system {:?} do not go together", parts.backing.name, cell.target.fs),
    }
    stack.subject = subject(&stack)?;
    for note in parts.workload.segment_notes(&stack.root) {
        runner.promise("start a server with shared memory", Undo::RemoveSegment(note), link)?;
    }
    Ok(stack)
}

/// Builds the layers, the lowest first; what lies above the last.
fn layered(
    target: &Target,
    mut devices: Vec<PathBuf>,
    pool: &str,
    runner: &mut StepRunner,
    link: &mut Link,
) -> Result<(Vec<PathBuf>, Layers)> {
    let (mut said, memory) = (Layers::default(), runner.place.memory.join("cell"));
    for (number, chosen) in target.layers.iter().enumerate() {
        let found = layer::find(&chosen.name);
        let layer = found.with_context(|| format!("this agent knows no layer `{}`", chosen.name))?;
        layer::above(layer, &chosen.settings, devices.len())
            .map_err(|why| anyhow!("{why}; give the backing `disks`, or choose another level or layer"))?;
        let beside = devices.split_off(layer::taken(&chosen.settings, devices.len()));
        let name = format!("{pool}l{number}");
        let below = Below { devices: &devices, name: &name, memory: &memory };
        let given = runner.take_all((layer.steps)(&chosen.settings, &below), link)?;
        let StepResult::Devices(above) = given else { bail!("layer {} gave no device", chosen.name) };
        let (fact, words) = (layer.fact)(&below);
        let shown = runner.listing(&words);
        said.mismatches.extend((layer.mismatches)(&chosen.settings, &shown));
        said.take([(fact.to_string(), shown)].into(), number + 1);
        said.facts.extend(versions(argvs(layer.versions), &runner.run));
        devices = [above, beside].concat();
    }
    Ok((devices, said))
}

pub fn folder(says: &str, path: PathBuf) -> Step {
    Step::new(says, Action::MakeDirectory(path.clone())).undo(Undo::RemoveTree(path))
}

/// Discards as declared, and the scheduler. With `none` the drivers keep mkfs and mount from discarding.
fn ready_device(stack: &BuiltStack, disks: &[(u32, u32)], runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    for device in stack.device.iter().chain(&stack.more_devices).filter(|_| stack.target.discard != Discard::None) {
        block::discard(device, 0, block::size_of_device(device)?)
            .context("cannot discard the device; use discard = \"none\"")?;
    }
    disks.iter().try_for_each(|number| set_queue(&stack.target, *number, runner, link))
}

/// The scheduler first: it brings a number of requests of its own.
fn set_queue(target: &Target, number: (u32, u32), runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    if let Some(scheduler) = &target.scheduler {
        let path = devices::queue_file(number, "scheduler").context("the device has no I/O scheduler to set")?;
        let set = Action::Set { path, value: scheduler.clone() };
        runner.take(Step::new("set the I/O scheduler", set), link)?;
    }
    for (name, value) in &target.queue.0 {
        let path = devices::queue_file(number, name);
        let path = path.with_context(|| format!("the device's queue has no `{name}`; leave it out of `queue`"))?;
        let set = Action::Set { path, value: value.as_str().unwrap_or_default().into() };
        runner.take(Step::new(format!("set the queue's {name}"), set), link)?;
    }
    Ok(())
}

fn make_and_mount(stack: &BuiltStack, driver: &Filesystem, runner: &mut StepRunner, link: &mut Link) -> Result<()> {
    let spec = stack.spec();
    runner.take_all((driver.before)(&spec), link)?;
    runner.take(folder("make the mount point", stack.mount_point.clone()), link)?;
    let make = Step::new(format!("make {}", driver.name), Action::Run((driver.mkfs)(&spec)));
    if driver.mkfs_mounts {
        runner.take(make.undo((driver.undo)(&spec)), link)?;
    } else {
        runner.take(make, link)?;
        let mount = Step::new(format!("mount {}", driver.name), Action::Mount(driver.mount(&spec)));
        runner.take(mount.undo((driver.undo)(&spec)), link)?;
    }
    if let Some(words) = driver.in_place.and_then(|in_place| in_place(&spec)) {
        runner.output(&words)?;
    }
    Ok(())
}

fn subject(stack: &BuiltStack) -> Result<Subject> {
    let device = match &stack.device {
        Some(device) => devices::device_number(device),
        None => devices::disk_of_file(&stack.root),
    };
    Ok(Subject {
        device,
        beside: stack.more_devices.iter().filter_map(|device| devices::device_number(device)).collect(),
        below: device.and_then(devices::below),
        mount_point: stack.root.clone(),
        filesystem: devices::mount_of(&stack.root.canonicalize()?)?.fs_type,
    })
}

/// Versions of the programs that a cell uses, by name.
pub fn versions(programs: Vec<(&'static str, Argv)>, run: &str) -> Vec<(String, String)> {
    programs.into_iter().map(|(name, words)| (format!("version {name}"), listing(&words, run))).collect()
}
