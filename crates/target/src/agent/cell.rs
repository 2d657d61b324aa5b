//! One cell: needs, stack, provenance, the workload's phases, and everything taken down again.

use super::{ageing, git, hardware, limits, passed_on, provenance};
use crate::probe::Subject;
use crate::stack::backing;
use crate::stack::fs::feature::{COMPRESSION, LINKS};
use crate::stack::fs::{self, Filesystem, TRIM, argvs, of_kernel};
use crate::stack::layer::{self, Below};
use crate::stack::recipe::{BuiltLayer, Recipe};
use crate::stack::{Place, above};
use crate::stage::{Account, BuiltStack, Layers, Script, Spent, Stage, WORK, boot_objections, cut_objections};
use crate::steps::{StepResult, StepRunner, name_of, real};
use crate::workload::{self, Workload};
use anyhow::{Context, Result, anyhow, bail, ensure};
use pickfs_core::journal::{Begin, End, Outcome, Provenance, Record, Scope, Undo};
use pickfs_core::plan::{Ageing, Cell, Discard, Settings, Target, allowance_ns};
use pickfs_core::protocol::{Link, Question};
use pickfs_system::need::{self, Need};
use pickfs_system::process::{CELL_MARK, DAEMON_MARK, Deadline, Interrupted, kill_marked, kill_unmarked_children};
use pickfs_system::sys::devices;
use pickfs_system::units::show_bytes;
use std::collections::BTreeMap;

/// Bytes of the file that is written to a target that is tried.
const TRIAL: usize = 1 << 20;

/// Runs the cell and reports how it ended; `Err` only when there is no end to report (asked to
/// stop, or no host). `machine` is one that is this cell's alone.
pub(crate) fn run(cell: &Cell, machine: Option<Provenance>, place: &Place, link: &mut Link) -> Result<()> {
    let (mut account, at) = (Account::open(&cell.id), now());
    link.tell(Record::Begin(Begin::of(cell, at)));
    machine.into_iter().for_each(|machine| link.tell(Record::Provenance(machine)));
    let outcome = outcome(cell, place, link, &mut account, |run| run.play())?;
    let (ledger, at) = (account.close(), now());
    link.tell(Record::Ledger(ledger));
    link.tell(Record::End(End { cell: cell.id.clone(), outcome, at }));
    Ok(())
}

/// Tries the target of these cells: whether it can be built and written to, and whether each work
/// has what it needs on it.
pub(crate) fn try_out(cells: &[Cell], place: &Place, link: &mut Link) -> Result<()> {
    let (mut built, mut free) = (None, None);
    for cell in cells {
        let workload = workload::find(&cell.work.workload.name);
        let reasons = workload.map(|workload| missing(cell, workload, place, link)).unwrap_or_default();
        let outcome = match (&built, reasons) {
            (_, reasons) if !reasons.is_empty() => Outcome::Skipped(reasons),
            (Some(built), _) => Outcome::clone(built),
            (None, _) => {
                let touch = |run: &mut CellRun| run.touch().map(|found| free = found);
                let outcome = outcome(cell, place, link, &mut Account::open(&cell.id), touch)?;
                built.insert(outcome).clone()
            }
        };
        let bytes = workload.and_then(|workload| workload.bytes(&cell.work.workload.settings));
        let outcome = match (outcome, free, bytes) {
            (Outcome::Done, Some(free), Some(bytes)) if bytes > free => Outcome::Failed(format!(
                "there is room for {}, and the work puts {}; free some, or make the work smaller",
                show_bytes(free as f64),
                show_bytes(bytes as f64)
            )),
            (outcome, ..) => outcome,
        };
        link.tell(Record::End(End { cell: cell.id.clone(), outcome, at: now() }));
    }
    Ok(())
}

/// What comes of playing it so. `Err` as for [`run`].
fn outcome(
    cell: &Cell,
    place: &Place,
    link: &mut Link,
    account: &mut Account,
    play: impl FnOnce(&mut CellRun) -> Result<()>,
) -> Result<Outcome> {
    let workload = &cell.work.workload.name;
    let workload = workload::find(workload).with_context(|| format!("this agent knows no workload `{workload}`"));
    let pool = name_of(&cell.id);
    let recipe = Recipe::new(&cell.target, place, &pool, cell.seed).map_err(|why| anyhow!(why));
    Ok(match workload.and_then(|workload| Ok((workload, recipe?))) {
        Err(error) => Outcome::Failed(format!("{error:#}")),
        Ok((workload, recipe)) => match missing(cell, workload, place, link) {
            reasons if !reasons.is_empty() => Outcome::Skipped(reasons),
            _ => {
                let deadline = Deadline::start(&cell.id, cell.limit_ns);
                let runner = StepRunner::new(place, Scope::Cell(cell.id.clone()));
                CellRun { cell, workload, recipe, runner, link, deadline, account }.perform(play)?
            }
        },
    })
}

/// RFC 3339.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// What it takes to build the stack of a target, whatever is done on it.
pub fn needs_of_target(target: &Target) -> Vec<Need> {
    let driver = target.fs.as_deref().and_then(fs::find).map(|driver| driver.needs());
    let backing = backing::find(&target.backing.name).map(|backing| backing.needs.to_vec());
    let first = driver.into_iter().chain(backing).flatten();
    first.chain(layer::needs(&target.layers)).chain(above::needs(target)).chain(git::needs(target)).collect()
}

/// What operations on the whole file system take of the kernel.
fn needs_of_upkeep(target: &Target, operations: &[&str]) -> Vec<Need> {
    let Some(driver) = target.fs.as_deref().and_then(fs::find) else { return Vec::new() };
    let found = operations.iter().filter_map(|operation| driver.upkeep(operation, target.variant.as_deref()));
    found.flat_map(|upkeep| upkeep.needs).cloned().collect()
}

/// Every reason, not the first.
fn missing(cell: &Cell, workload: &dyn Workload, place: &Place, link: &Link) -> Vec<String> {
    let mut needs: Vec<Need> = Vec::new();
    let of_work = workload.needs(&cell.work.workload.settings);
    let of_upkeep = needs_of_upkeep(&cell.target, &workload.upkeep(&cell.work.workload.settings));
    for need in needs_of_target(&cell.target).into_iter().chain(of_work).chain(of_upkeep) {
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    let lacks = need::missing(&needs).into_iter().map(|missing| missing.to_string());
    let boots = workload.description().boots;
    let cannot = if boots { boot_objections(&cell.target, link.can(Question::Boot)) } else { Vec::new() };
    let records = workload.recording(&cell.work.workload.settings).is_some();
    let unrecorded = if records { cut_objections(&cell.target, link.recording().is_some()) } else { Vec::new() };
    let unsourced = workload.lacks(&cell.work.workload.settings, place);
    lacks.chain(unsourced).chain(cannot).chain(unrecorded).chain(unsupported_by(cell, workload, place)).collect()
}

/// Links that the work makes and the file system cannot hold, snapshots that it does not take, and
/// images that are only read.
fn unsupported_by(cell: &Cell, workload: &dyn Workload, place: &Place) -> Option<String> {
    let driver = cell.target.fs.as_deref().and_then(fs::find);
    match (driver.is_some_and(|driver| driver.making.image.is_some()), workload.description().makes_image) {
        (true, false) => {
            return Some(format!("{} is a read-only image, which only the work `image` packs", cell.target.name));
        }
        (false, true) => return Some(format!("{} is no read-only image: take erofs or squashfs", cell.target.name)),
        _ => {}
    }
    if let Some(why) = unfit_above(&cell.target, workload, &cell.work.workload.settings) {
        return Some(why);
    }
    if workload.description().takes_snapshots && driver.is_none_or(|driver| driver.snapshots.is_none()) {
        return Some(format!("snapshots of {} cannot be taken by pickfs", cell.target.name));
    }
    let upkeep = workload.upkeep(&cell.work.workload.settings);
    if let Some(lacking) = lacking_upkeep(&cell.target, driver, &upkeep) {
        return Some(lacking);
    }
    let driver = driver.filter(|driver| driver.features.keeps_no.contains(&LINKS))?;
    if workload.description().makes_links {
        return Some(format!("{} keeps no {LINKS}, and `{}` makes some", driver.name, workload.name()));
    }
    let tree = workload.dataset(&cell.work.workload.settings)?.staging(place).folder;
    let link = pickfs_trees::first_link(&tree)?;
    let (fs, shown) = (driver.name, link.strip_prefix(&tree).unwrap_or(&link).display());
    Some(format!(
        "{fs} keeps no {LINKS}, and the tree has some, such as `{shown}`: take a tree without, such as `like = \"photos\"`"
    ))
}

/// What the work does itself that layers above the file system do not go with.
fn unfit_above(target: &Target, workload: &dyn Workload, settings: &Settings) -> Option<String> {
    let layers = target.layers_above();
    let (first, description) = (&layers.first()?.name, workload.description());
    if description.mounts_overlayfs {
        return Some(format!("`{}` mounts overlayfs itself, and {first} cannot be its upper layer", workload.name()));
    }
    if description.takes_snapshots {
        return Some(format!("snapshots are of the file system below {first}, and not of what the work sees"));
    }
    let served = layers.iter().find(|chosen| above::find(&chosen.name).is_some_and(|layer| layer.is_served))?;
    (!workload.upkeep(settings).is_empty()).then(|| {
        format!(
            "`{}` works on the file system below {}, whose program it cannot start again",
            workload.name(),
            served.name
        )
    })
}

/// The plan's check has read them; a plan of a journal has not passed it.
fn refuse_words(target: &Target, driver: &Filesystem) -> Result<()> {
    let wrong = target.wrong_words(driver.making.options);
    ensure!(wrong.is_empty(), "nothing was made: {}; only the backing of a plan may name a device", wrong.join("; "));
    let mut folders = target.folders_of_mkfs(driver.making.options);
    match folders.find(|folder| !std::path::Path::new(folder).is_dir()) {
        Some(folder) => bail!("nothing was made: {folder} is no folder, and mkfs is only given folders to read"),
        None => Ok(()),
    }
}

/// Trimming punches holes into an image, and whatever is written next would fill them, on the next
/// target.
fn lacking_upkeep(target: &Target, driver: Option<&Filesystem>, operations: &[&str]) -> Option<String> {
    let variant = target.variant.as_deref();
    let lacks = |operation: &&&str| driver.is_none_or(|driver| driver.upkeep(operation, variant).is_none());
    if let Some(operation) = operations.iter().find(lacks) {
        return Some(format!(
            "{} has no `{operation}` that pickfs knows: leave it out of the settings of the work",
            target.name
        ));
    }
    if target.discard == Discard::Trim && driver.is_some() && lacks(&&TRIM.operation) {
        return Some(format!("no program discards the free space of {}: take discard = \"fresh\"", target.name));
    }
    let trims = operations.contains(&TRIM.operation) && target.discard == Discard::None;
    trims.then(|| "`trim` leaves the next target another device: give all targets discard = \"fresh\"".to_string())
}

/// The programs among the needs of a workload.
fn programs(needs: Vec<Need>) -> Vec<&'static str> {
    let name = |need: Need| if let Need::Program { name, .. } = need { Some(name) } else { None };
    needs.into_iter().filter_map(name).collect()
}

/// A cell while it is done.
struct CellRun<'a> {
    cell: &'a Cell,
    workload: &'static dyn Workload,
    recipe: Recipe<'a>,
    runner: StepRunner<'a>,
    link: &'a mut Link,
    deadline: Deadline,
    account: &'a mut Account,
}

impl CellRun<'_> {
    /// Build, prove, play, take down. Teardown comes whatever happened before.
    fn perform(mut self, play: impl FnOnce(&mut Self) -> Result<()>) -> Result<Outcome> {
        let played = play(&mut self);
        let timely = self.deadline.check();
        drop(self.deadline);
        self.account.enter(Spent::Teardown);
        let mark = format!("{CELL_MARK}={}", self.cell.id);
        let (mut leaked, mut unkilled) = (Vec::new(), Vec::new());
        for killed in [kill_marked(&mark), kill_unmarked_children(DAEMON_MARK)] {
            match killed {
                Ok(ended) => leaked.extend(ended),
                Err(error) => unkilled.push(error.into()),
            }
        }
        let undone = self.runner.undo_all(self.link);
        let played = match (timely, played) {
            (Err(late), Err(error)) if !error.is::<Interrupted>() && !is_caused_by(&error, &late) => {
                Err(late.context(format!("{error:#}")))
            }
            (_, played) => played,
        };
        if played.as_ref().is_err_and(|error| error.is::<Interrupted>()) {
            return Err(played.expect_err("it was one"));
        }
        let causes = played.err().into_iter().chain(unkilled).chain(undone.err());
        let causes: Vec<String> = causes.map(|cause| format!("{cause:#}")).collect();
        Ok(match (causes.as_slice(), leaked.as_slice()) {
            ([], []) => Outcome::Done,
            ([], leaked) => Outcome::Failed(format!(
                "the workload left running: {}; killed, as its work was not over",
                leaked.join(", ")
            )),
            (causes, _) => Outcome::Failed(causes.join("; and ")),
        })
    }

    /// Builds the stack as a cell does and writes a file. Bytes that are free, where they are as
    /// many as can be written.
    fn touch(&mut self) -> Result<Option<u64>> {
        let stack = self.build()?;
        let wrong = provenance::of_cell(self.cell, &stack, &self.runner)?.mismatches;
        ensure!(wrong.is_empty(), "the stack is not what the plan asked for: {}", wrong.join("; "));
        if stack.driver.is_some_and(|driver| driver.making.image.is_some()) {
            return Ok(None);
        }
        let trial = stack.root.join("trial");
        std::fs::write(&trial, vec![b'x'; TRIAL])
            .and_then(|()| std::fs::File::open(&trial)?.sync_all())
            .and_then(|()| std::fs::remove_file(&trial))
            .with_context(|| format!("cannot write to {}", stack.root.display()))?;
        let found = rustix::fs::statvfs(&stack.root)?;
        let may_compress = match stack.driver {
            Some(driver) => {
                let mount = devices::mount_of(&stack.mount_point.canonicalize()?)?;
                (driver.features.compresses)(&devices::effective_options(&mount))
            }
            // Files of a folder may have the attribute.
            None => of_kernel(&stack.subject.filesystem).is_some_and(|fs| fs.features.usual.contains(&COMPRESSION)),
        };
        let blocks = if rustix::process::geteuid().is_root() { found.f_bfree } else { found.f_bavail };
        Ok((!may_compress).then_some(blocks * found.f_frsize))
    }

    fn play(&mut self) -> Result<()> {
        let stack = self.build()?;
        self.account.enter(Spent::Checks);
        let settings = &self.cell.work.workload.settings;
        let mut provenance = provenance::of_cell(self.cell, &stack, &self.runner)?;
        provenance.facts.extend(provenance::versions(self.workload.versions(settings), &self.runner.run));
        let features = provenance.facts.get("features").cloned();
        // Only what is as asked for is worth ageing; how that went belongs to what is in effect.
        let aged = match provenance.mismatches.as_slice() {
            [] => passed_on::tried(&stack, &self.runner, &mut provenance)
                .and_then(|()| self.age(&stack))
                .map(|facts| provenance.facts.extend(facts)),
            mismatches => Err(anyhow!("the stack is not what the plan asked for: {}", mismatches.join("; "))),
        };
        self.link.tell(Record::Provenance(provenance));
        aged?;
        let place = self.runner.place;
        let script = Script {
            name: self.workload.name(),
            phases: self.workload.phases_of_cell(settings, place),
            programs: programs(self.workload.needs(settings)),
            warm_up: self.workload.warm_up(settings, place),
            repeats: self.cell.work.repeats.0,
            trim: self.cell.target.discard == Discard::Trim,
        };
        // What others have written to a folder that was there already is on its way, and would
        // count as the work's.
        stack.make_durable(&self.runner)?;
        let mut stage = Stage::new(script, &stack, &self.runner, self.link, &self.deadline, self.account);
        self.workload.run(&mut stage, settings)?;
        let (facts, largest) = limits::of(&stack.root, features.as_ref(), || stack.make_durable(&self.runner));
        let cell = self.cell.id.clone();
        self.link.tell(Record::Provenance(Provenance { cell, facts, largest, ..Provenance::default() }));
        Ok(())
    }

    fn age(&mut self, stack: &BuiltStack) -> Result<BTreeMap<String, String>> {
        let is_aged = Ageing::of(&self.cell.target).is_some();
        let before = self.account.enter(if is_aged { Spent::Ageing } else { Spent::Checks });
        let facts = ageing::age(self.cell, stack, &self.runner, self.link, &self.deadline);
        self.account.enter(before);
        if is_aged {
            self.deadline.at_most(self.cell.limit_ns.saturating_sub(allowance_ns(&self.cell.target)));
        }
        facts
    }

    /// Takes the steps of the recipe, each with its undo.
    fn build(&mut self) -> Result<BuiltStack> {
        if let Some(driver) = self.recipe.driver {
            refuse_words(&self.cell.target, driver)?;
            // A word of mkfs or mount without a slash names nothing here.
            let here = &self.runner.place.mounts;
            std::env::set_current_dir(here).with_context(|| format!("cannot enter {}", here.display()))?;
        }
        let folders = self.workload.folders(&self.cell.work.workload.settings, self.runner.place);
        let given = self.runner.take_all(self.recipe.below(folders), self.link)?;
        let mut stack = BuiltStack {
            driver: self.recipe.driver,
            target: self.cell.target.clone(),
            mount_point: self.runner.place.mount_point(),
            above: self.recipe.above.clone(),
            pool: name_of(&self.cell.id),
            seed: self.cell.seed,
            ..BuiltStack::default()
        };
        match (given, self.recipe.driver) {
            (StepResult::Devices(devices), Some(_)) => {
                stack.disks = devices.clone();
                let on = self.recipe.on_devices(devices).map_err(|why| anyhow!(why))?;
                self.runner.take_all(on.layer_steps, self.link)?;
                stack.layers = read_back(&on.layers, &self.runner);
                let logs = on.layers.iter().find(|built| built.layer.logs);
                stack.log_of_writes = logs.and_then(|built| Some((built.name.clone(), built.devices.last()?.clone())));
                let mut devices = on.devices.into_iter();
                stack.device = devices.next();
                stack.more_devices = devices.collect();
                let disks = hardware::disks(stack.device.as_deref(), &stack.more_devices);
                stack.flushes_lost = hardware::loses_flushes(&stack.target, &disks);
                self.runner.take_all(on.filesystem_steps, self.link)?;
                let is_image = self.recipe.driver.is_some_and(|driver| driver.making.image.is_some());
                let at = stack.seen_at();
                stack.root = if is_image { at.into() } else { at.join(WORK) };
            }
            (StepResult::Directory(directory), None) => {
                stack.mount_point = devices::mount_of(&directory.canonicalize()?)?.mount_point;
                stack.root = directory;
            }
            _ => bail!(
                "backing {} and file system {:?} do not go together",
                self.recipe.backing.name,
                self.cell.target.fs
            ),
        }
        stack.subject = subject(&stack)?;
        if let Some((take_down, note)) = self.workload.take_down(&self.cell.work.workload.settings, &stack.root) {
            self.runner.take_downs.push(take_down);
            let undo = take_down.of(real(&note).display().to_string());
            self.runner.promise("start what may leave something", undo, self.link)?;
        }
        if self.workload.description().opens_disks {
            let place = self.runner.place;
            for (says, at) in [("show an image", place.export()), ("mount what is inside", place.inside())] {
                self.runner.promise(says, Undo::Unmount(at), self.link)?;
            }
        }
        Ok(stack)
    }
}

fn is_caused_by(error: &anyhow::Error, late: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.to_string() == late.to_string())
}

/// What the layers say of themselves, once they stand.
fn read_back(layers: &[BuiltLayer], runner: &StepRunner) -> Layers {
    let (mut all, memory) = (Layers::default(), runner.place.memory.join("cell"));
    for (number, BuiltLayer { layer, settings, name, devices }) in layers.iter().enumerate() {
        let below = Below { devices, name, memory: &memory };
        all.openings.extend(layer.opens.map(|opens| opens(&below)));
        for (fact, words) in layer.facts(&below) {
            let shown = runner.listing(&words);
            all.mismatches.extend(layer.mismatches(settings, &shown));
            all.take([(fact, shown)].into(), number + 1);
        }
        all.facts.extend(provenance::versions(argvs(layer.versions), &runner.run));
    }
    all
}

fn subject(stack: &BuiltStack) -> Result<Subject> {
    let device = match &stack.device {
        Some(device) => devices::device_number(device),
        None => devices::disk_of_file(&stack.root),
    };
    let beside = match device.filter(|_| stack.device.is_none()) {
        Some(first) => devices::members_of_btrfs(first).into_iter().filter(|member| *member != first).collect(),
        None => stack.more_devices.iter().filter_map(|device| devices::device_number(device)).collect(),
    };
    Ok(Subject {
        device,
        beside,
        below: device.and_then(devices::below),
        mount_point: stack.stored(),
        filesystem: devices::mount_of(&stack.stored().canonicalize()?)?.fs_type,
    })
}
