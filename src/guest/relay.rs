//! The host's end of the pipe: an agent that has its cells done in guests.
//!
//! To the run it is an agent like any other. It prepares on the host what needs no root there (images, staged sources),
//! boots a guest for every cell, carries lines between the two, and sees the guest's end: steps that were taken in a
//! guest need no undoing, as they are gone with it.

use super::initramfs::Initramfs;
use super::qemu::{self, Bus, Disk, Machine};
use super::recipe::{RELEASES, Recipe, Release};
use super::{Guest, accelerator, find_or_build};
use crate::agent::{self, Elsewhere, Interrupted, Link};
use crate::journal::{Answer, Cell, End, GuestPart, Job, Outcome, Record, Request, Say};
use crate::need::Need;
use crate::plan::{Chosen, Plan, Settings, Target};
use crate::stack::{Action, Place, backing, fs, layer};
use crate::sys::process::{self, Signal};
use crate::workload;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// From the start of QEMU until the agent's first word, emulated on a busy machine.
const BOOT_PATIENCE: Duration = Duration::from_secs(180);
const TICK: Duration = Duration::from_millis(50);
/// Where a target names no kernel.
const USUAL: &str = "bookworm";
/// What a guest's kernel and programs take beside what is staged.
const LEAST_MEMORY: u64 = 1 << 30;

pub fn main() -> ExitCode {
    agent::main_with(&InGuests)
}

struct InGuests;

impl Elsewhere for InGuests {
    /// One guest a release, with the tools of all cells: fewer to make and to keep.
    fn prepare(&self, plan: &Plan, place: &Place) -> Result<BTreeMap<String, String>> {
        let mut facts = BTreeMap::new();
        let tools = tools(plan);
        for release in releases(plan) {
            let recipe = Recipe::new(find_release(&release)?, tools.iter().cloned());
            let guest = find_or_build(&recipe, &mut |says| eprintln!("{says}"))?;
            std::fs::write(note_of(&release, place), &guest.name)?;
            facts.insert(format!("guest {release}"), format!("{} {}", guest.name, accelerator::find(&guest)?.told()));
        }
        Ok(facts)
    }

    fn cell(&self, request: &Request, cell: &Cell, link: &mut Link) -> Result<()> {
        let place = Place::of_run(&request.run);
        match in_guest(request, cell, &place, link) {
            Err(error) if error.is::<Interrupted>() => Err(error),
            Err(error) => {
                let outcome = Outcome::Failed(format!("{error:#}"));
                link.tell(Record::End(End { cell: cell.id.clone(), outcome, at: agent::now() }));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Packages with the programs that the plan's file systems and workloads need.
fn tools(plan: &Plan) -> BTreeSet<String> {
    let drivers = plan.targets.iter().filter_map(|target| fs::find(target.fs.as_deref()?));
    let works =
        plan.works.iter().filter_map(|work| Some((workload::find(&work.workload.name)?, &work.workload.settings)));
    let layers = plan.targets.iter().flat_map(|target| layer::needs(&target.layers));
    let needs = layers
        .chain(drivers.flat_map(|driver| driver.needs()))
        .chain(works.flat_map(|(work, settings)| work.needs(settings)));
    let package = |need: Need| match need {
        Need::Program { package, .. } => Some(package.to_string()),
        _ => None,
    };
    needs.filter_map(package).collect()
}

fn releases(plan: &Plan) -> BTreeSet<String> {
    plan.targets.iter().map(|target| release_of(target).to_string()).collect()
}

fn release_of(target: &Target) -> &str {
    target.machine.text("kernel").unwrap_or(USUAL)
}

fn find_release(name: &str) -> Result<&'static Release> {
    let names: Vec<&str> = RELEASES.iter().map(|release| release.name).collect();
    let found = RELEASES.iter().find(|release| release.name == name);
    found.with_context(|| format!("there is no kernel `{name}`; use one of {}", names.join(", ")))
}

/// Where the name of the run's guest is noted.
fn note_of(release: &str, place: &Place) -> PathBuf {
    place.memory.join(format!("guest-{release}"))
}

fn guest_of(cell: &Cell, place: &Place) -> Result<Guest> {
    let noted = std::fs::read_to_string(note_of(release_of(&cell.target), place));
    let name = noted.context("the run's guest is not noted; was the run prepared?")?;
    let found = super::all()?.into_iter().find(|guest| guest.name == name);
    found.with_context(|| format!("the guest {name} is gone; begin the run again"))
}

fn in_guest(request: &Request, cell: &Cell, place: &Place, link: &mut Link) -> Result<()> {
    let guest = guest_of(cell, place)?;
    let folder = place.memory.join("guest");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let machine = machine(cell, place, &guest, &folder)?;
    let inside = Request { guest: Some(GuestPart { data: machine.data.is_some() }), ..inside(request, cell) };
    let mut running = Running::start(&guest, &machine, &inside, &request.run, &cell.id)?;
    let ended = running.carry(link, Duration::from_nanos(cell.limit_ns));
    running.end();
    ended.map_err(|error| match error.is::<Interrupted>() {
        true => error,
        false => error.context(format!("the guest's console ends with: {}", last_lines(&machine.console))),
    })
}

/// The cell as the guest's agent gets it: the image is a disk there.
fn inside(request: &Request, cell: &Cell) -> Request {
    let mut cell = cell.clone();
    let disks = disks(&cell.target.backing);
    if disks > 0 {
        let path = |index| serde_json::Value::from(format!("/dev/disk/by-id/{}", super::target_disk(index)));
        let more: Vec<_> = (1..disks).map(path).collect();
        let settings = [("path".to_string(), path(0)), (backing::MORE_DEVICES.to_string(), more.into())];
        cell.target.backing = Chosen { name: "device".into(), settings: Settings(settings.into()) };
    }
    Request { run: request.run.clone(), job: Job::Cell(Box::new(cell)), guest: None }
}

fn machine(cell: &Cell, place: &Place, guest: &Guest, folder: &Path) -> Result<Machine> {
    let data = Some(place.memory.join("data.tar")).filter(|path| path.exists());
    let staged = data.as_ref().and_then(|path| path.metadata().ok()).map_or(0, |found| found.len());
    let initramfs = folder.join(format!("initramfs-{}", guest.name));
    if !initramfs.exists() {
        write_initramfs(&initramfs, guest)?;
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
        initramfs,
        console: folder.join("console"),
        kernel_words: said.text("words").unwrap_or_default().into(),
    })
}

/// Those that preparing made.
fn files(chosen: &Chosen, place: &Place) -> Result<Vec<PathBuf>> {
    match chosen.name.as_str() {
        "memory" => Ok(Vec::new()),
        "image" => {
            let backing = backing::find("image").context("no backing `image`")?;
            let steps = backing.prepare(&chosen.settings, place);
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

fn disks(chosen: &Chosen) -> usize {
    match chosen.name.as_str() {
        "image" => chosen.settings.number("disks").unwrap_or(1).max(1) as usize,
        "device" => 1,
        _ => 0,
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
        let copy =
            if at.contains("ld-linux") { "agent/loader".to_string() } else { format!("agent/lib/{}", base(&at)) };
        made.file(&at, &content)?;
        made.file(&copy, &content)?;
    }
    made.file("init", &program)?;
    made.file("agent/start", &program)?;
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

fn last_lines(console: &Path) -> String {
    let text = std::fs::read(console).unwrap_or_default();
    agent::last_words(&text)
}

/// A guest under way.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Running {
    fn start(guest: &Guest, machine: &Machine, request: &Request, run: &str, cell: &str) -> Result<Running> {
        let words = qemu::command(guest, machine);
        // It ends with us, whatever ends us.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(&words).env(agent::RUN_MARK, run).env(agent::CELL_MARK, cell);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot start QEMU")?;
        let mut stdin = child.stdin.take().context("no pipe to the guest")?;
        let stdout = child.stdout.take().context("no pipe from the guest")?;
        let line = serde_json::to_string(request)? + "\n";
        stdin.write_all(line.as_bytes()).context("QEMU does not take the request")?;
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Running { child, stdin: Some(stdin), lines })
    }

    /// Until the cell has ended, or the guest has.
    fn carry(&mut self, link: &mut Link, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut spoken = false;
        loop {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => {
                    spoken = true;
                    if self.pass_on(&line, link)? {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the guest ended before its cell did"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            agent::check_stop()?;
            if !spoken && begun.elapsed() > BOOT_PATIENCE {
                bail!("the guest did not boot within {BOOT_PATIENCE:?}");
            }
            if begun.elapsed() > limit + BOOT_PATIENCE {
                bail!("the time limit passed, and the guest did not answer");
            }
        }
    }

    /// True when that was the cell's end.
    fn pass_on(&mut self, line: &str, link: &mut Link) -> Result<bool> {
        let said: Say = serde_json::from_str(line).with_context(|| format!("the guest said `{line}`"))?;
        match said {
            // Gone with the guest: nobody need undo them.
            Say::Tell(Record::Undone(_)) => Ok(false),
            Say::Ask(Record::Step(_)) => self.answer().map(|()| false),
            Say::Tell(record) => {
                let ends = matches!(record, Record::End(_));
                link.tell(record);
                Ok(ends)
            }
            Say::Ask(record) => {
                link.ask(record)?;
                self.answer().map(|()| false)
            }
        }
    }

    fn answer(&mut self) -> Result<()> {
        let answer = serde_json::to_string(&Answer::Written)? + "\n";
        let stdin = self.stdin.as_mut().context("the guest's pipe is closed")?;
        stdin.write_all(answer.as_bytes()).context("the guest does not take answers")
    }

    /// It may switch itself off; else it is ended.
    fn end(&mut self) {
        self.stdin = None;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = process::kill(self.child.id() as i32, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = process::kill(self.child.id() as i32, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
