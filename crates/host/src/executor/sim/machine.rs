//! The machine of the `sim` executor: QEMU for each cell, which boots, or goes on from a saved
//! guest where the plan says so, is asked nothing while it runs and hands out its records when it
//! has ended. Cells cannot disturb each other, so several are under way at once.

use super::DEFAULT_DISK;
use super::archive::Dated;
use super::explanation::Files;
use super::processor::Processor;
use super::qemu::{self, Saved};
use super::region::{Delivered, RECORDS, Region, SLEEPS, at_once, check_size};
use super::saved;
use crate::executor::vm::{
    Alike, DATA_DISK, Driver, Furnished, Guest, LEAST_MEMORY, OTHER_DISK, RECORDING_DISK, RECORDS_DISK, REQUEST_DISK,
    ROOT_DISK, Tail, find_or_save, in_the_guest, kernel_of, nth_target_disk,
};
use crate::executor::{Contact, ContactOutcome, Failure, Lifetime, Machine, Patience, agent_here};
use anyhow::{Context, Result, bail};
use pickfs_core::journal::{Provenance, Record};
use pickfs_core::plan::{Cell, PROCESSORS, Plan, SIZE, Settings, Target, disks, nearest};
use pickfs_core::protocol::{Arrival, Bundle, CellsRun, Connection, Exit, Job, Request, SIMULATED_RUN, Say};
use pickfs_disks::parameters::Words;
use pickfs_disks::{Disk, Kind, find};
use pickfs_system::process::Interrupted;
use pickfs_system::sys::disk_model::SOURCES;
use pickfs_system::units::show_duration;
use procfs::Current;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::xxh3_64;

/// Where a target finds its simulated disks.
pub(crate) fn target_disks(count: usize) -> Vec<PathBuf> {
    (0..count).map(|index| in_the_guest(&nth_target_disk(index))).collect()
}

/// The model of each disk of a target.
fn models(target: &Target) -> Result<Vec<String>> {
    let count = disks(&target.backing.settings) as usize;
    let listed = target.machine.texts("disks");
    if listed.is_empty() {
        return Ok(vec![target.machine.text("disk").unwrap_or(DEFAULT_DISK).to_string(); count]);
    }
    if listed.len() != count {
        bail!("`disks` names {} models, and the backing has {count}: give it `disks = {}`", listed.len(), listed.len());
    }
    Ok(listed.iter().map(|name| pickfs_disks::whole_name(name)).collect())
}

/// What is wrong with the models has its own complaint.
pub(crate) fn host_managed(target: &Target) -> Vec<bool> {
    let is = |name: &String| disk(name).is_ok_and(|disk| disk.kind == Kind::HostManagedDisk);
    models(target).unwrap_or_default().iter().map(is).collect()
}

/// The models' names, with their fill and flush where the plan gives them.
fn shown(names: &[String], target: &Target) -> Result<String> {
    let (fill, flush) = (fill(&target.machine)?, target.machine.number(FLUSH));
    let shown = |name: &String| {
        let disk = disk(name)?;
        let fill = fill.filter(|_| disk.can_be_used()).map(|share| format!(" {:.0} % full", share * 100.0));
        let flush = flush.filter(|_| disk.takes_flushes());
        let flush = flush.map(|ns| format!(" with a flush of {}", show_duration(ns as f64)));
        Ok(format!("{name}{}{}", fill.unwrap_or_default(), flush.unwrap_or_default()))
    };
    Ok(names.iter().map(shown).collect::<Result<Vec<_>>>()?.join(", "))
}

/// Seconds of processor that a second of a nanosecond an instruction may take, and a boot.
const SLOWDOWN: u64 = 20;
const BOOT_SECONDS: u64 = 300;
/// docs/sim-results.md has the pairs of cells that were compared.
const SAVED_ALIKE: &[&str] = &["bullseye", "bookworm", "trixie", "sid"];
/// The limit is in processor time; of the host's clock there is none that a busy machine could not
/// exceed.
const FOREVER: Duration = Duration::from_secs(7 * 24 * 3600);

const DRIVER: Driver = Driver {
    name: "simdisk",
    sources: &[
        ("Kbuild", "obj-m := simdisk.o\nsimdisk-y := driver.o model.o ftl.o zbc.o clocks.o programs.o waits.o\n"),
        ("driver.c", include_str!("simdisk.c")),
        ("clocks.c", include_str!("clocks.c")),
        ("compression.c", include_str!("compression.c")),
        ("processors.c", include_str!("processors.c")),
        ("programs.c", include_str!("programs.c")),
        ("mark.h", include_str!("mark.h")),
        ("profile.c", include_str!("profile.c")),
        ("waits.c", include_str!("waits.c")),
        ("waits.h", include_str!("waits.h")),
        SOURCES[0],
        SOURCES[1],
        SOURCES[2],
        SOURCES[3],
        SOURCES[4],
        SOURCES[5],
    ],
    plugin: "profile.c",
};

/// The driver in the folder of a kernel of the user's own.
pub(crate) const DRIVER_FILE: &str = "simdisk.ko";

/// Names of files with their texts, to be compiled for any kernel.
pub fn driver_sources() -> &'static [(&'static str, &'static str)] {
    DRIVER.sources
}

pub(crate) struct Simulations {
    furnished: Furnished,
    /// Where cells leave what explains their times.
    explanations: Option<PathBuf>,
    /// Seconds since 1970 when it was made: what is younger was staged by this run.
    since: u64,
    running: Option<Running>,
    /// Cells that will be asked for, in this order, and are not under way.
    coming: VecDeque<Request>,
    ahead: VecDeque<Ahead>,
}

struct Running {
    slot: usize,
    guest: Guest,
    console: PathBuf,
    limit_seconds: u64,
    disk: String,
    processor: Processor,
    /// Of the disks under test.
    regions: Vec<Region>,
    records: Region,
    explanation: Option<Files>,
    /// The facts of the machine are in the journal.
    is_journaled: bool,
}

/// A cell that was started before it was asked for.
struct Ahead {
    cell: String,
    contact: Contact,
    running: Running,
}

impl Ahead {
    fn has_ended(&mut self) -> bool {
        !matches!(self.contact.connection.child.try_wait(), Ok(None))
    }
}

impl Simulations {
    pub(crate) fn new(plan: &Plan, explanations: Option<PathBuf>) -> Simulations {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Simulations {
            furnished: Furnished::new(plan, Some((&DRIVER, DRIVER_FILE))),
            explanations,
            since,
            running: None,
            coming: VecDeque::new(),
            ahead: VecDeque::new(),
        }
    }

    fn start(&self, cell: &Cell, guest: &Guest, request: Request, slot: usize) -> Result<(Contact, Running)> {
        let common = self.furnished.bundle.folder.join("sim");
        let folder = common.join(slot.to_string());
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let names = models(&cell.target)?;
        let processor = Processor::of(&cell.target.machine)?;
        let targets = (0..).zip(&names).map(|(index, name)| target_region(cell, &folder, index, name));
        let targets = targets.collect::<Result<Vec<_>>>()?;
        let (target, words) = targets.first().context("a target without a disk")?.clone();
        let recording = self.recording(cell, &folder, &words)?;
        let records = Region::disk(&folder.join("records"), RECORDS_DISK, RECORDS, &at_once(RECORDS))?;
        let explanation = self.explanations.as_ref().map(|folder| Files::of(folder, &cell.id));
        let profile = explanation.as_ref().map(|files| files.ask(guest, &records)).transpose()?;
        let inside = self.inside(cell, names.len(), recording.is_some())?;
        let asked = serde_json::to_string(&inside)? + "\n";
        let asked = Region::content(&folder.join("request"), REQUEST_DISK, asked.as_bytes())?;
        let mut regions = vec![root_region(guest, &common)?, asked, records.clone(), target.clone()];
        let recorded = recording.map(|recording| (regions.len() - 1, add(&mut regions, recording)));
        regions.extend(targets[1..].iter().map(|(region, _)| region.clone()));
        regions.extend(self.staged_regions(cell, &common)?);
        let machine = qemu::Machine {
            memory_bytes: memory(cell) + 3 * self.furnished.staged(),
            initramfs: self.furnished.first_root(guest, &common)?,
            console: folder.join("console"),
            kernel_words: cell.target.machine.text("words").unwrap_or_default().into(),
            processor,
            regions,
            recorded,
            profile,
            saved: None,
            limit_seconds: BOOT_SECONDS + most_seconds(cell.limit_ns, processor),
        };
        let state = goes_on_from_saved(&cell.target).then(|| self.saved(guest, &machine, &common, &request.run));
        let state = state.transpose()?;
        let saved = Saved { image: folder.join("state"), monitor: folder.join("monitor") };
        let copied = state.as_ref().map(|state| std::fs::copy(state, &saved.image)).transpose();
        copied.context("cannot copy what was saved of the guest")?;
        let machine = qemu::Machine { saved: state.is_some().then_some(saved), ..machine };
        let (connection, emulator) = saved::go_on(guest, &machine, &request.run, &cell.id).inspect_err(|_| {
            // Kept, it would fail the next run as well.
            state.map(std::fs::remove_file);
        })?;
        let from = Delivered::of(connection.child.id(), emulator, &machine.console, records.file.clone());
        let running = Running {
            slot,
            guest: guest.clone(),
            console: machine.console,
            limit_seconds: machine.limit_seconds,
            disk: shown(&names, &cell.target)?,
            processor,
            regions: targets.into_iter().map(|(region, _)| region).collect(),
            records,
            explanation,
            is_journaled: false,
        };
        let patience = Patience { first_word: Some(FOREVER), ready: Some(FOREVER), grace: FOREVER };
        let connection = Connection { from: Box::new(from), ..connection };
        Ok((Contact { connection, request, patience, lifetime: Lifetime::PerJobVirtualClock }, running))
    }

    /// What the agent in the guest is asked.
    fn inside(&self, cell: &Cell, disks: usize, is_recorded: bool) -> Result<Request> {
        let arrival = Arrival {
            disks: target_disks(disks),
            archive: self.furnished.bundle.archive.as_ref().map(|_| in_the_guest(DATA_DISK)),
            tree: self.tree(cell).map(|_| in_the_guest(OTHER_DISK)),
            host: self.furnished.plan.host,
            recording: is_recorded.then(|| in_the_guest(RECORDING_DISK)),
            is_simulated: true,
        };
        let mut inner = cell.clone();
        // A kernel that takes one alone is asked for no more.
        let number = Processor::of(&cell.target.machine)?.processors;
        inner.target.machine.0.entry(PROCESSORS.into()).and_modify(|asked| *asked = number.into());
        Ok(Request { arrival: Some(arrival), ..Request::new(SIMULATED_RUN, Job::Cell(inner.into())) })
    }

    /// With what the run has staged, and the tree of the cell's work that lies on another disk.
    fn staged_regions(&self, cell: &Cell, common: &Path) -> Result<Vec<Region>> {
        let mut regions = Vec::new();
        if let Some(archive) = &self.furnished.bundle.archive {
            let open = || Ok(Dated::new(BufReader::new(reading(archive)?), self.since, qemu::DATE_SECONDS));
            regions.push(once(&common.join(DATA_DISK), DATA_DISK, open)?);
        }
        if let Some(tree) = self.tree(cell) {
            let file = common.join(format!("tree-{:016x}", xxh3_64(cell.work.name.as_bytes())));
            regions.push(once(&file, OTHER_DISK, || reading(&tree))?);
        }
        Ok(regions)
    }

    /// A guest like this one that has booted, in a file.
    fn saved(&self, guest: &Guest, machine: &qemu::Machine, folder: &Path, run: &str) -> Result<PathBuf> {
        let sizes: Vec<u64> = machine.regions.iter().map(|region| region.bytes).collect();
        let qemu::Machine { memory_bytes, kernel_words, processor, recorded, .. } = machine;
        let words = format!("counted {memory_bytes} {sizes:?} {recorded:?} {processor:?} {kernel_words}");
        // Of the regions only the guest's root is looked at before.
        let alike = Alike { guest, initramfs: &machine.initramfs, words, is_lasting: true };
        find_or_save(&alike, folder, |file| {
            let blank = |region: &Region| region.blank(&folder.join(format!("blank-{}", region.bytes)));
            let (root, others) = machine.regions.split_first().context("a machine without a root")?;
            let others = others.iter().map(blank).collect::<Result<Vec<_>>>()?;
            let machine = qemu::Machine {
                regions: [vec![root.clone()], others.clone()].concat(),
                profile: None,
                saved: Some(Saved { image: file.into(), monitor: folder.join("monitor") }),
                limit_seconds: BOOT_SECONDS,
                ..machine.clone()
            };
            saved::make(guest, &machine, run)?;
            // Of the same size, two are one.
            others.iter().for_each(|blank| drop(std::fs::remove_file(&blank.file)));
            Ok(())
        })
    }

    /// Starts what comes next, as long as there are processors for it.
    fn start_ahead(&mut self) {
        let jobs = self.jobs();
        loop {
            let busy = usize::from(self.running.is_some())
                + self.ahead.iter_mut().map(|ahead| usize::from(!ahead.has_ended())).sum::<usize>();
            // Each that has ended keeps its disk until it is asked for.
            if busy >= jobs || self.ahead.len() >= 2 * jobs {
                return;
            }
            let Some(request) = self.coming.pop_front() else { return };
            let Job::Cell(cell) = &request.job else { continue };
            let cell = cell.clone();
            let Ok(Ok(guest)) = self.furnished.guest_of(&cell.target) else { continue };
            match self.start(&cell, &guest, request, self.free_slot()) {
                Ok((contact, running)) => self.ahead.push_back(Ahead { cell: cell.id.clone(), contact, running }),
                Err(error) if error.is::<Interrupted>() => return,
                // What fails fails again when it is asked for, and is reported then.
                Err(_) => {}
            }
        }
    }

    fn free_slot(&self) -> usize {
        let is_taken = |slot: &usize| {
            self.running.iter().chain(self.ahead.iter().map(|ahead| &ahead.running)).any(|r| r.slot == *slot)
        };
        (0..).find(|slot| !is_taken(slot)).unwrap_or_default()
    }

    /// The plan's number, else one a processor, as far as they fit into half of the memory that is
    /// free now.
    fn jobs(&self) -> usize {
        if self.furnished.plan.jobs > 0 {
            return self.furnished.plan.jobs as usize;
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let free = procfs::Meminfo::current().ok().and_then(|memory| memory.mem_available);
        let fitting =
            free.map_or(1, |free| free / 2 / (most_memory(&self.furnished.plan) + 3 * self.furnished.staged()));
        processors.min((self.started() as u64 + fitting) as usize).max(1)
    }

    fn started(&self) -> usize {
        usize::from(self.running.is_some()) + self.ahead.len()
    }

    /// Where the work wants all recorded that its disk is given.
    fn recording(&self, cell: &Cell, folder: &Path, words: &Words) -> Result<Option<Region>> {
        let room = self.furnished.bundle.works.get(&cell.work.name).and_then(|work| work.recording);
        room.map(|bytes| Region::recording(&folder.join("recording"), RECORDING_DISK, bytes, words)).transpose()
    }

    fn tree(&self, cell: &Cell) -> Option<PathBuf> {
        self.furnished.bundle.works.get(&cell.work.name)?.tree.clone()
    }
}

/// An empty disk of the size that the plan gives its backing. Platter angle and place on the disk
/// are drawn from the round's seed, so they are the same for all targets of a round. With the words
/// of the model.
fn target_region(cell: &Cell, folder: &Path, index: u64, name: &str) -> Result<(Region, Words)> {
    let backing = &cell.target.backing;
    if !["image", "memory"].contains(&backing.name.as_str()) {
        bail!("a simulated disk has the size of the backing `memory` or `image`");
    }
    let bytes = check_size(backing.settings.number(SIZE).context("the backing has no size")?)?;
    let disk = with_flush(disk(name)?, cell.target.machine.number(FLUSH))?;
    let sectors = disk.words(0, 0)?[pickfs_disks::parameters::at("SECTORS")];
    let spare = sectors.checked_sub(bytes / 512).with_context(|| format!("{name} is smaller than {bytes} bytes"))?;
    let draw = |salt: u64| drawn(cell, salt + 16 * index);
    // In the first twentieth of the disk, at a multiple of a MiB.
    let start = draw(1) % (spare / 20).max(1) / 2048 * 2048;
    let words = match fill(&cell.target.machine)?.filter(|_| disk.can_be_used()) {
        Some(filled) => disk.used(start, bytes / 512, filled).with_context(|| format!("the disk {name}"))?,
        None if disk.kind == Kind::HostManagedDisk => {
            disk.zoned(start, draw(2), bytes / 512).with_context(|| format!("the disk {name}"))?
        }
        None => disk.words(start, draw(2))?,
    };
    let serial = nth_target_disk(index as usize);
    let region = Region::disk(&folder.join(&serial), &serial, bytes, &words)?;
    let at_once = cell.target.machine.0.get(AT_ONCE).and_then(|kinds| kinds.as_array()).into_iter().flatten();
    region.answer_at_once(&at_once.filter_map(|kind| kind.as_str()).collect::<Vec<_>>())?;
    Ok((region, words))
}

/// Of machines that explain others alone, so no plan has it: kinds of requests that take no time.
pub const AT_ONCE: &str = "at_once";

/// In the settings of a machine.
pub(super) const FLUSH: &str = "disk_flush";

/// The disk with a flush of this many nanoseconds, if it takes any.
pub(super) fn with_flush(disk: Disk, ns: Option<u64>) -> Result<Disk> {
    match ns.filter(|_| disk.takes_flushes()) {
        Some(ns) => disk.with("flush_us", ns as f64 / 1e3),
        None => Ok(disk),
    }
}

/// The share of flash that holds data at the start.
pub(crate) fn fill(machine: &Settings) -> Result<Option<f64>> {
    let Some(given) = machine.text("disk_fill") else { return Ok(None) };
    let number = given.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    let share = number.with_context(|| format!("a fill is from 0% to 100%, not `{}`", given.escape_debug()))? / 100.0;
    Ok(Some(share))
}

/// Where the plan does not say: kernels for which states that were saved one by one were seen to be
/// the same.
fn goes_on_from_saved(target: &Target) -> bool {
    let is_said = target.machine.0.get("saved").and_then(|said| said.as_bool());
    is_said.unwrap_or_else(|| SAVED_ALIKE.contains(&kernel_of(target)))
}

/// Of QEMU's processor time, for simulated time in which all processors work.
fn most_seconds(limit_ns: u64, processor: Processor) -> u64 {
    let speed = processor.dilation.max(1.0) * processor.user_mode * processor.processors as f64;
    (SLOWDOWN as f64 * speed * limit_ns as f64 / 1e9).ceil() as u64
}

/// From the round's seed: the same for all targets of a round.
fn drawn(cell: &Cell, salt: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(&cell.seed.to_le_bytes(), salt)
}

/// Without what is staged; rounds differ where the plan says so, in steps of a MiB.
fn memory(cell: &Cell) -> u64 {
    let (least, spread) = memory_range(&cell.target.machine);
    least + ((drawn(cell, 3) % (spread + 1)) << 20)
}

/// The least in bytes, and how many MiB more it may be.
fn memory_range(machine: &Settings) -> (u64, u64) {
    let spread = machine.number("memory_spread").unwrap_or_default() >> 20;
    (machine.number("memory").unwrap_or(LEAST_MEMORY), spread)
}

/// Of the guest that has most.
fn most_memory(plan: &Plan) -> u64 {
    let most = |target: &Target| {
        let (least, spread) = memory_range(&target.machine);
        least + (spread << 20)
    };
    plan.targets.iter().map(most).max().unwrap_or(LEAST_MEMORY)
}

/// The region's place.
fn add(regions: &mut Vec<Region>, region: Region) -> usize {
    regions.push(region);
    regions.len() - 1
}

/// One of ours by its name, or one in a file.
pub(crate) fn disk(name: &str) -> Result<Disk> {
    if let Some(disk) = find(name) {
        return Ok(disk);
    }
    if !name.contains('/') && !Path::new(name).exists() {
        let near = nearest(name, pickfs_disks::ALL.iter().map(|entry| entry.name));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        bail!("there is no model of a disk `{name}`{near}");
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read the model of a disk {name}"))?;
    Disk::parse(&text).with_context(|| format!("in {name}"))
}

fn reading(file: &Path) -> Result<File> {
    File::open(file).with_context(|| format!("cannot read {}", file.display()))
}

fn root_region(guest: &Guest, folder: &Path) -> Result<Region> {
    let (root, _) = guest.root()?;
    once(&folder.join(format!("root-{:016x}", xxh3_64(guest.name.as_bytes()))), ROOT_DISK, || reading(&root))
}

/// A region that is the same for all cells of a run.
fn once<R: Read>(file: &Path, serial: &str, open: impl FnOnce() -> Result<R>) -> Result<Region> {
    if file.is_file() {
        return Ok(Region { file: file.into(), bytes: file.metadata()?.len() });
    }
    let partial = file.with_extension("partial");
    let made = Region::content(&partial, serial, open()?)?;
    std::fs::rename(&partial, file)?;
    Ok(Region { file: file.into(), ..made })
}

impl Machine for Simulations {
    fn cells(&self) -> CellsRun {
        CellsRun::Elsewhere
    }

    /// What is no cell is done here.
    fn reach(&mut self, request: Request) -> Result<ContactOutcome> {
        self.running = None;
        let Job::Cell(cell) = &request.job else {
            if matches!(request.job, Job::Undo { .. }) {
                // A cell that is started meanwhile would write into the folder that is removed.
                self.coming.clear();
            }
            return Ok(ContactOutcome::Agent(Box::new(Contact::lasting(agent_here(&request.run)?, request))));
        };
        let cell = cell.clone();
        let guest = match self.furnished.guest_of(&cell.target)? {
            Ok(guest) => guest,
            Err(reason) => return Ok(ContactOutcome::Nowhere(vec![reason])),
        };
        self.coming.retain(|coming| !matches!(&coming.job, Job::Cell(coming) if coming.id == cell.id));
        let (contact, running) = match self.ahead.iter().position(|ahead| ahead.cell == cell.id) {
            Some(at) => self.ahead.remove(at).map(|ahead| (ahead.contact, ahead.running)).context("it is there")?,
            None => self.start(&cell, &guest, request, self.free_slot())?,
        };
        self.running = Some(running);
        self.start_ahead();
        Ok(ContactOutcome::Agent(Box::new(contact)))
    }

    fn expect(&mut self, requests: Vec<Request>) {
        let cell = |request: &Request| if let Job::Cell(cell) = &request.job { cell.id.clone() } else { String::new() };
        let expected: BTreeSet<String> = requests.iter().map(cell).collect();
        self.ahead.retain(|ahead| expected.contains(&ahead.cell));
        let is_ahead = |id: String| self.ahead.iter().any(|ahead| ahead.cell == id);
        self.coming = requests.into_iter().filter(|request| !is_ahead(cell(request))).collect();
    }

    /// A cell that fails before it has said anything is the same in each run, too.
    fn date(&self) -> Option<&'static str> {
        Some(qemu::DATE_OF_RECORDS)
    }

    fn meanwhile(&mut self) {
        self.start_ahead();
    }

    fn furnish(&mut self, bundle: Bundle, say: &mut dyn FnMut(&str)) -> Result<Provenance> {
        self.furnished.furnish(bundle, say)
    }

    /// All of it is said when the machine has ended, so its disk is as the cell has left it.
    fn overhear(&mut self, said: &mut Say) {
        let (Some(running), Say::Tell(Record::Provenance(found))) = (&mut self.running, said) else { return };
        running.guest.add_versions(&mut found.facts);
        if std::mem::replace(&mut running.is_journaled, true) {
            return;
        }
        if let Some(files) = &running.explanation {
            // The reader notices what is missing.
            let _ = files.take(&running.records);
        }
        found.facts.insert("simulated disk".into(), running.disk.clone());
        found.facts.insert("simulated processor".into(), running.processor.shown());
        if let Ok(digests) = running.regions.iter().map(Region::digest).collect::<Result<Vec<_>>>() {
            found.facts.insert("simulated disk's content".into(), digests.join(", "));
        }
    }

    fn explain(&mut self, why: String, exit: &Exit) -> Failure {
        let Some(running) = &self.running else { return Failure::Final(why) };
        let console = running.console.clone();
        let tail = Tail::of(move || File::open(console));
        let mut whole = crate::executor::vm::explained(&why, exit, &tail);
        if exit.status.is_some_and(|status| !status.success()) {
            whole.push_str(&format!("; QEMU may take {} s of processor time", running.limit_seconds));
        }
        // A guest that sleeps was ended by us, and would sleep again.
        if crate::executor::vm::is_killed(exit) && !whole.contains(SLEEPS) {
            Failure::Killed(whole)
        } else {
            Failure::Final(whole)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_of_the_plans_is_the_disks() {
        for (name, asked, ns) in
            [("nvme", Some(3_000_000), 3_000_000), ("nvme", None, 300_000), ("hdd-7200", Some(1_000), 1_000)]
        {
            let disk = with_flush(disk(name).expect("it"), asked).expect("a disk");
            assert_eq!(disk.words(0, 0).expect("words")[pickfs_disks::parameters::at("FLUSH_NS")], ns, "{name}");
        }
        // No flush is sent to it.
        let none = disk("none").expect("it");
        assert_eq!(with_flush(none.clone(), Some(1)).expect("a disk").parameters, none.parameters);
    }

    /// As many guests as fit are under way at once.
    #[test]
    fn the_memory_of_a_guest_is_what_the_plan_gives_it() {
        let target = |pairs: &[(&str, u64)]| {
            let machine = pairs.iter().map(|(name, value)| (name.to_string(), (*value).into())).collect();
            Target { machine: Settings(machine), ..Target::default() }
        };
        assert_eq!(most_memory(&Plan { targets: vec![target(&[])], ..Plan::default() }), LEAST_MEMORY);
        let large = target(&[("memory", 3 << 30), ("memory_spread", 1 << 30)]);
        let plan = Plan { targets: vec![target(&[]), large.clone()], ..Plan::default() };
        assert_eq!(most_memory(&plan), 4 << 30);
        let drawn = (0..1000).map(|seed| memory(&Cell { seed, target: large.clone(), ..Cell::default() }));
        assert!(drawn.into_iter().all(|bytes| (3 << 30..=4 << 30).contains(&bytes)));
    }
}
