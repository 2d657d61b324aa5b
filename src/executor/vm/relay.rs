//! The host's end of the pipe: an agent that has its cells done in guests.
//!
//! To the run it is an agent like any other. It prepares on the host what needs no root there (images, staged sources),
//! boots a guest for every cell, carries lines between the two, and sees the guest's end: steps that were taken in a
//! guest need no undoing, as they are gone with it.

use super::accelerator;
use super::build::{self, Guest, Initramfs, RELEASES, Recipe, Release, find_or_build};
use super::names::{BY_SERIAL, DATA_DISK, OTHER_DISK, target_disk};
use super::qemu::{Bus, Disk, Machine};
use super::running::{Marks, Running, booted_again};
use crate::agent::{self, Elsewhere, Interrupted, Link};
use crate::journal::{Begin, End, Outcome, Record};
use crate::plan::{Cell, Chosen, HostSettings, Plan, SIZE, Settings, Target};
use crate::protocol::{GuestPart, Job, Request};
use crate::stack::{Action, Place, backing, fs};
use crate::workload;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Where a target names no kernel.
const USUAL: &str = "bookworm";
/// What a guest's kernel and programs take beside what is staged.
const LEAST_MEMORY: u64 = 1 << 30;

pub fn main() -> ExitCode {
    agent::main(Some(&InGuests))
}

struct InGuests;

impl Elsewhere for InGuests {
    /// One guest a release, with the tools of all cells: fewer to make and to keep. One whose modules cannot be compiled
    /// leaves its cells skipped, with the reason, and the others are done.
    fn prepare(&self, plan: &Plan, place: &Place) -> Result<BTreeMap<String, String>> {
        let (mut facts, mut noted) = (BTreeMap::new(), Noted { host: plan.host, ..Noted::default() });
        for (kind, recipe) in kinds_and_recipes(plan)? {
            match find_or_build(&recipe, &mut |says| eprintln!("{says}")) {
                Ok(guest) => {
                    facts.insert(format!("guest {kind}"), told(&guest)?);
                    noted.guests.insert(kind, guest.name);
                }
                Err(error) if recipe.compiled.is_empty() || error.is::<Interrupted>() => return Err(error),
                Err(error) => {
                    eprintln!("cells in guests of {kind} are skipped: {error:#}");
                    noted.lacking.insert(kind, format!("{error:#}"));
                }
            }
        }
        noted.write(place)?;
        for folder in kernels(plan).into_iter().filter(|kernel| is_own(kernel)) {
            facts.insert(format!("guest {folder}"), told(&Guest::own(Path::new(folder))?)?);
        }
        Ok(facts)
    }

    fn cell(&self, request: &Request, cell: &Cell, link: &mut Link) -> Result<()> {
        let place = Place::of_run(&request.run);
        // A guest may fail before it can say a word, and its cell has a name all the same.
        link.tell(Record::Begin(Begin::of(cell, agent::now())));
        let outcome = match in_guest(request, cell, &place, link) {
            Ok(None) => return Ok(()),
            Ok(Some(reason)) => Outcome::Skipped(vec![reason]),
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        link.tell(Record::End(End { cell: cell.id.clone(), outcome, at: agent::now() }));
        Ok(())
    }
}

/// Packages with the programs that the plan's targets with such a source of modules, and its works, need.
fn tools(plan: &Plan, source: Option<&'static str>) -> BTreeSet<String> {
    let chosen = plan.works.iter().map(|work| &work.workload);
    let works = chosen.filter_map(|chosen| Some(workload::find(&chosen.name)?.needs(&chosen.settings))).flatten();
    let targets = plan.targets.iter().filter(|target| module_source(target) == source);
    let needs = targets.flat_map(agent::needs_of_target).chain(works);
    needs.filter_map(|need| need.package()).chain(source.map(String::from)).collect()
}

/// What is made for a plan: one a release, and one more where modules are to be compiled. What needs such modules brings
/// tools that may not stand beside others, as those of OpenZFS and zfs-fuse.
pub fn recipes(plan: &Plan) -> Result<Vec<Recipe>> {
    Ok(kinds_and_recipes(plan)?.into_iter().map(|(_, recipe)| recipe).collect())
}

fn kinds_and_recipes(plan: &Plan) -> Result<Vec<(String, Recipe)>> {
    let targets = plan.targets.iter().filter(|target| !is_own(kernel_of(target)));
    let kinds: BTreeSet<_> = targets.map(|target| (kernel_of(target), module_source(target))).collect();
    let recipe =
        |(release, source)| Ok((kind(release, source), Recipe::new(find_release(release)?, tools(plan, source))));
    kinds.into_iter().map(recipe).collect()
}

fn module_source(target: &Target) -> Option<&'static str> {
    fs::find(target.fs.as_deref()?)?.module_source.map(|source| source.package)
}

/// By which cells find their guest: `bookworm`, `bookworm with zfs-dkms`.
fn kind(release: &str, source: Option<&str>) -> String {
    let with = source.map(|source| format!(" with {source}")).unwrap_or_default();
    format!("{release}{with}")
}

fn kernels(plan: &Plan) -> BTreeSet<&str> {
    plan.targets.iter().map(kernel_of).collect()
}

/// A release's name, or the folder of a guest of the user's own.
fn kernel_of(target: &Target) -> &str {
    target.machine.text("kernel").unwrap_or(USUAL)
}

/// What stands against a `kernel` of a plan, and what to do.
pub fn objection_to(kernel: &str) -> Option<(String, String)> {
    let names: Vec<String> = RELEASES.iter().map(|release| format!("`{}`", release.name)).collect();
    let all = format!("use one of {}, or the path of a folder with a kernel and a root of your own", names.join(", "));
    if !is_own(kernel) {
        return find_release(kernel).err().map(|error| (format!("{error}"), all));
    }
    let wrong = Guest::own(Path::new(kernel)).err()?;
    Some((format!("{wrong:#}"), "a guest's folder holds vmlinuz and root.squashfs; docs/vm.md has the rest".into()))
}

fn is_own(kernel: &str) -> bool {
    kernel.contains('/')
}

fn find_release(name: &str) -> Result<&'static Release> {
    let found = RELEASES.iter().find(|release| release.name == name);
    found.with_context(|| format!("there is no kernel `{}`", name.escape_debug()))
}

fn told(guest: &Guest) -> Result<String> {
    let kernel = guest.kernel_release().map(|release| format!(", kernel {release}")).unwrap_or_default();
    Ok(format!("{}{kernel}, {}", guest.name, accelerator::find(guest)?.told()))
}

/// What cells must know of the run: each is done by an agent of its own.
#[derive(Default, Serialize, Deserialize)]
struct Noted {
    /// Names of guests by their kinds.
    guests: BTreeMap<String, String>,
    /// Why there is none, by kind.
    #[serde(default)]
    lacking: BTreeMap<String, String>,
    host: HostSettings,
}

impl Noted {
    fn path(place: &Place) -> PathBuf {
        place.memory.join("guests.json")
    }

    fn write(&self, place: &Place) -> Result<()> {
        Ok(std::fs::write(Noted::path(place), serde_json::to_vec(self)?)?)
    }

    fn read(place: &Place) -> Result<Noted> {
        let text =
            std::fs::read(Noted::path(place)).context("the run's guests are not noted; was the run prepared?")?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// The guest of a cell, or why the run has none.
fn guest_of(cell: &Cell, noted: &Noted) -> Result<Result<Guest, String>> {
    let kernel = kernel_of(&cell.target);
    if is_own(kernel) {
        return Guest::own(Path::new(kernel)).map(Ok);
    }
    let kind = kind(kernel, module_source(&cell.target));
    if let Some(reason) = noted.lacking.get(&kind) {
        return Ok(Err(reason.clone()));
    }
    let name = noted.guests.get(&kind).with_context(|| format!("the run has no guest of {kind}"))?;
    let found = build::all()?.into_iter().find(|guest| guest.name == *name);
    found.map(Ok).with_context(|| format!("the guest {name} is gone; begin the run again"))
}

/// Why the cell was skipped, where it was.
fn in_guest(request: &Request, cell: &Cell, place: &Place, link: &mut Link) -> Result<Option<String>> {
    let noted = Noted::read(place)?;
    let guest = match guest_of(cell, &noted)? {
        Ok(guest) => guest,
        Err(reason) => return Ok(Some(reason)),
    };
    let folder = place.memory.join("guest");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let machine = machine(cell, place, &guest, &folder)?;
    let data = machine.data.as_ref().map(|_| in_the_guest(DATA_DISK));
    let other_disk = machine.other_disk.as_ref().map(|_| in_the_guest(OTHER_DISK));
    let part = GuestPart { data, other_disk, host: noted.host };
    let cell_there = Cell { target: on_its_disks(&cell.target, machine.disks.len()), ..cell.clone() };
    let there = Request { run: request.run.clone(), job: Job::Cell(Box::new(cell_there)), guest: Some(part) };
    let limit = Duration::from_nanos(cell.limit_ns);
    let carried = booted_again(|boot| {
        let marks = Marks { run: &request.run, cell: &cell.id, boot };
        Running::start(&guest, &machine, &there, marks)?.carry(link, limit)
    });
    carried.map(|()| None)
}

/// The target as the guest's agent gets it: files and devices of the host are so many disks there. The size stays, as the
/// time that is allowed for ageing comes from it.
fn on_its_disks(target: &Target, disks: usize) -> Target {
    let mut target = target.clone();
    if disks > 0 {
        let size = target.backing.settings.0.remove(SIZE).map(|size| (SIZE.to_string(), size));
        let path = |index| serde_json::Value::from(in_the_guest(&target_disk(index)).display().to_string());
        let more: Vec<_> = (1..disks).map(path).collect();
        let settings = [("path".to_string(), path(0)), (backing::MORE_DEVICES.to_string(), more.into())];
        let settings = settings.into_iter().chain(size).collect();
        target.backing = Chosen { name: "device".into(), settings: Settings(settings) };
    }
    target
}

/// Where init puts the disk with that serial number.
fn in_the_guest(serial: &str) -> PathBuf {
    Path::new(BY_SERIAL).join(serial)
}

fn machine(cell: &Cell, place: &Place, guest: &Guest, folder: &Path) -> Result<Machine> {
    let data = Some(place.memory.join(agent::STAGED)).filter(|path| path.exists());
    let staged = data.as_ref().and_then(|path| path.metadata().ok()).map_or(0, |found| found.len());
    let initramfs = folder.join(format!("initramfs-{:016x}", xxhash_rust::xxh3::xxh3_64(guest.name.as_bytes())));
    if !initramfs.exists() {
        // A cell that was stopped here must not leave half of it to the next.
        let partial = folder.join("initramfs.partial");
        write_initramfs(&partial, guest)?;
        std::fs::rename(&partial, &initramfs)?;
    }
    let said = &cell.target.machine;
    let all = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let cache = said.text("cache").unwrap_or("none").to_string();
    let disks = files(&cell.target.backing, place)?.into_iter();
    Ok(Machine {
        accelerator: accelerator::find(guest)?.name,
        memory_bytes: said.number("memory").unwrap_or(LEAST_MEMORY) + 3 * staged,
        processors: said.number("processors").unwrap_or(all) as u32,
        bus: Bus::of(said.text("bus")),
        disks: disks.map(|file| Disk { file, cache: cache.clone() }).collect(),
        data,
        other_disk: other_disk(cell, place),
        initramfs,
        console: folder.join("console"),
        kernel_words: said.text("words").unwrap_or_default().into(),
        boots: false,
    })
}

/// QEMU passes the host's cache by, but a memory file system has no other place.
fn other_disk(cell: &Cell, place: &Place) -> Option<Disk> {
    let file = agent::image_of_other_disk(&cell.work, place)?;
    let cache = if file.starts_with(&place.memory) { "unsafe" } else { "none" };
    Some(Disk { file, cache: cache.into() })
}

/// Those that preparing made.
fn files(chosen: &Chosen, place: &Place) -> Result<Vec<PathBuf>> {
    match chosen.name.as_str() {
        "memory" => Ok(Vec::new()),
        "image" => {
            let backing = backing::find("image").context("no backing `image`")?;
            let steps = (backing.prepare)(&chosen.settings, place);
            let made = steps.into_iter().filter_map(|step| match step.action {
                Action::MakeImage { path, .. } => Some(path),
                _ => None,
            });
            Ok(made.collect())
        }
        "device" => Ok(chosen.settings.path("path").into_iter().collect()),
        other => bail!("a guest cannot have the backing `{other}`; use image, memory or device"),
    }
}

/// This program, its libraries, and the modules that come before the root.
pub(super) fn write_initramfs(path: &Path, guest: &Guest) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let program = std::fs::read(&own).with_context(|| format!("cannot read {}", own.display()))?;
    let mut made = Initramfs::create(path)?;
    let mut order = String::new();
    for module in guest.modules()? {
        let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
        made.file(&format!("modules/{name}"), &std::fs::read(&module)?)?;
        order.push_str(&format!("{name}\n"));
    }
    made.file("modules/order", order.as_bytes())?;
    for (at, file) in libraries(&own)? {
        let content = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let kept =
            if at.contains("ld-linux") { "agent/loader".to_string() } else { format!("agent/lib/{}", base(&at)) };
        made.file(&kept, &content)?;
        made.link(&at, &format!("/{kept}"))?;
    }
    made.file("agent/start", &program)?;
    made.link("init", "/agent/start")?;
    made.finish()
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Where the program's loader looks for each library, and the file; none for a static program.
fn libraries(program: &Path) -> Result<Vec<(String, PathBuf)>> {
    let out = Command::new("ldd").arg(program).output().context("cannot run ldd")?;
    let said = String::from_utf8_lossy(&out.stdout);
    let paths = said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(paths.map(|path| (path.to_string(), PathBuf::from(path))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::allowance_ns;

    #[test]
    fn a_target_has_its_disks_in_the_guest_and_as_long_for_ageing() {
        let given = serde_json::json!({"dir": "/somewhere", "size": 1 << 30, "disks": 2});
        let settings = Settings(given.as_object().unwrap().clone().into_iter().collect());
        let backing = Chosen { name: "image".into(), settings };
        let here = Target { backing, fill: Some(0.5), ..Target::default() };
        let there = on_its_disks(&here, 2);
        assert_eq!(there.backing.name, "device");
        assert_eq!(there.backing.settings.path("path").unwrap(), in_the_guest(&target_disk(0)));
        assert_eq!(there.backing.settings.texts(backing::MORE_DEVICES).len(), 1);
        assert_eq!(allowance_ns(&there), allowance_ns(&here));
        assert_eq!(on_its_disks(&here, 0), here);
    }

    fn target(fs: &str, kernel: Option<&str>) -> Target {
        let mut target = Target { fs: Some(fs.into()), ..Target::default() };
        if let Some(kernel) = kernel {
            target.machine = Settings([("kernel".to_string(), kernel.into())].into());
        }
        target
    }

    #[test]
    fn what_needs_modules_of_its_own_has_a_guest_of_its_own() {
        let targets =
            [("ext4", None), ("zfs-fuse", None), ("zfs", None), ("zfs", Some("trixie")), ("xfs", Some("./own"))];
        let targets = targets.map(|(fs, kernel)| target(fs, kernel)).to_vec();
        let made = kinds_and_recipes(&Plan { targets, ..Plan::default() }).expect("recipes");
        let names: Vec<&str> = made.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(names, ["bookworm", "bookworm with zfs-dkms", "trixie with zfs-dkms"]);
        let has = |index: usize, name: &str| made[index].1.packages.contains(name);
        assert!(
            has(0, "zfs-fuse") && has(0, "e2fsprogs") && !has(0, "zfsutils-linux") && made[0].1.compiled.is_empty()
        );
        assert!(has(1, "zfsutils-linux") && !has(1, "zfs-fuse") && made[1].1.compiled.len() == 1);
    }
}
