//! Takes the steps that plug-ins describe, journals each undo before its step, and takes them back.

use super::image;
use super::kernel_log::KernelLog;
use super::own::{Own, name_of, real};
use super::setting;
use super::undo;
use super::zram;
use crate::stack::take_down::TakeDown;
use crate::stack::{Action, Argv, Place, Step, argv};
use anyhow::{Context, Result, bail};
use pickfs_core::journal::{Knob, Record, Scope, StepTaken, Undo, Undone};
use pickfs_core::protocol::Link;
use pickfs_system::process::{self, CELL_MARK, DAEMON_MARK, EndOfOrphan, Mark, RUN_MARK, check_stop, exposed};
use pickfs_system::sys::{block, devices};
use rustix::fs::MemfdFlags;
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const DAEMON_PATIENCE: Duration = Duration::from_secs(20);
/// Most bytes that are read of what a daemon wrote before it ended.
const MOST_SAID: u64 = 1 << 16;

/// What a step gave to those above it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StepResult {
    Nothing,
    Devices(Vec<PathBuf>),
    Directory(PathBuf),
}

impl StepResult {
    /// Devices come together; anything else is the last that was given.
    fn and(self, more: StepResult) -> StepResult {
        match (self, more) {
            (StepResult::Devices(all), StepResult::Devices(more)) => StepResult::Devices([all, more].concat()),
            (_, more) => more,
        }
    }
}

pub struct StepRunner<'a> {
    pub place: &'a Place,
    pub run: String,
    scope: Scope,
    taken: Vec<StepTaken>,
    /// Disks of the plan that are used directly.
    disks: Vec<PathBuf>,
    /// How what workloads leave is taken down.
    pub(crate) take_downs: Vec<&'static TakeDown>,
    daemons: Vec<std::process::Child>,
    /// Of what mounts leave running.
    awaited: RefCell<Vec<EndOfOrphan>>,
}

impl<'a> StepRunner<'a> {
    pub fn new(place: &'a Place, scope: Scope) -> StepRunner<'a> {
        let run = place.name.trim_start_matches("pickfs-").to_string();
        StepRunner {
            place,
            run,
            scope,
            taken: Vec::new(),
            disks: Vec::new(),
            take_downs: Vec::new(),
            daemons: Vec::new(),
            awaited: RefCell::default(),
        }
    }

    pub(crate) fn marks(&self) -> [Mark<'_>; 2] {
        [(RUN_MARK, &self.run), (CELL_MARK, &self.scope)]
    }

    /// Runs a program that is no step: it leaves nothing to undo.
    pub fn output(&self, argv: &Argv) -> Result<String> {
        process::output(argv, &self.marks())
    }

    /// Mounts a file system; how long it took. What that leaves running, such as nilfs2's cleaner,
    /// belongs to the file system and ends with it. An error has what the kernel wrote to its log.
    pub fn mount(&self, argv: &Argv) -> Result<Duration> {
        let (log, begun) = (KernelLog::from_now(), Instant::now());
        let mounted = process::output(argv, &[(RUN_MARK, &self.run), (DAEMON_MARK, &name_of(&self.scope))]);
        let took = begun.elapsed();
        self.await_orphans();
        let Err(error) = mounted else { return Ok(took) };
        let complaints = log.complaints();
        Err(if complaints.is_empty() {
            error
        } else {
            error.context(format!("kernel log: {}", complaints.join(" / ")))
        })
    }

    /// Our own daemons are waited for by [`StepRunner::reap`].
    fn await_orphans(&self) {
        let mut awaited = self.awaited.borrow_mut();
        awaited.retain(|end| !end.has_come());
        let own = self.daemons.iter().map(|child| child.id() as i32);
        let spared: Vec<i32> = own.chain(awaited.iter().map(|end| end.process)).collect();
        awaited.extend(process::await_orphans(&format!("{DAEMON_MARK}={}", name_of(&self.scope)), &spared));
    }

    /// What a program says of itself, whatever its exit code.
    pub(crate) fn listing(&self, argv: &Argv) -> String {
        process::listing(argv, &self.run)
    }

    pub(crate) fn take_all(&mut self, steps: Vec<Step>, link: &mut Link) -> Result<StepResult> {
        let mut given = StepResult::Nothing;
        for step in steps {
            match self.take(step, link)? {
                StepResult::Nothing => {}
                something => given = given.and(something),
            }
        }
        Ok(given)
    }

    /// Journals the step with its undo, then does it.
    pub(crate) fn take(&mut self, step: Step, link: &mut Link) -> Result<StepResult> {
        check_stop()?;
        link.check()?;
        let does = step.action.to_string();
        let cannot = format!("cannot {}", step.says);
        // A setting of a queue is one of the kernel, once its device is there.
        let action = match step.action {
            Action::SetQueue { device, name, value } => Action::Set {
                path: queue_file(&device, &name).with_context(|| cannot.clone())?,
                value,
                instead_of: None,
            },
            action => action,
        };
        let undo = match &action {
            Action::Set { path, value, instead_of } => Some(restore(path, value, instead_of.as_deref())?),
            Action::KeepQueue { device, name } => Some(restore(&queue_file(device, name)?, "", None)?),
            _ => step.undo,
        };
        self.journal(&step.says, does, undo, link)?;
        self.act(&action).context(cannot)
    }

    /// Journals the undo of what another process will do, or may.
    pub(crate) fn promise(&mut self, says: &str, undo: Undo, link: &mut Link) -> Result<()> {
        self.journal(says, String::new(), Some(undo), link)
    }

    fn journal(&mut self, says: &str, does: String, undo: Option<Undo>, link: &mut Link) -> Result<()> {
        let number = self.taken.len() as u32 + 1;
        let undo = undo.map(without_links);
        let taken = StepTaken { scope: self.scope.clone(), number, says: says.into(), does, undo };
        link.ask(Record::Step(taken.clone()))?;
        self.taken.push(taken);
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<StepResult> {
        match action {
            Action::Run(argv) => {
                self.output(argv)?;
            }
            Action::Mount(argv) => self.mount(argv).map(drop)?,
            Action::AttachImage { image, direct } => {
                let device = image::attach(image, *direct, |words| self.output(words))?;
                return Ok(StepResult::Devices(vec![device]));
            }
            Action::UseDevice(path) => {
                unused(path)?;
                self.disks.push(path.clone());
                return Ok(StepResult::Devices(vec![path.clone()]));
            }
            Action::LinkDevice { uevent, link } => return link_device(uevent, link),
            Action::MapWhole { device, name, words } => return self.map_whole(device, name, words),
            Action::UseDirectory(path) => return Ok(StepResult::Directory(path.clone())),
            Action::MakeDirectory(path) => make_directory(path)?,
            Action::MakeWorkFolder(path) => std::fs::create_dir(path)?,
            Action::MakeImage { path, bytes } => image::make(path, *bytes)?,
            Action::MakeZram { note, algorithm, bytes } => {
                return Ok(StepResult::Devices(vec![zram::make(note, algorithm, *bytes)?]));
            }
            Action::Discard(device) => {
                block::discard(device, 0, block::size_of_device(device)?).context("use discard = \"none\"")?
            }
            Action::Set { path, value, .. } => setting::set(path, value)?,
            Action::SetQueue { .. } => unreachable!("it was made a setting of the kernel"),
            Action::KeepQueue { .. } => {}
            Action::Daemon { argv, ready } => self.start_daemon(argv, ready, DAEMON_PATIENCE)?,
        }
        Ok(StepResult::Nothing)
    }

    fn map_whole(&self, device: &Path, name: &str, words: &Argv) -> Result<StepResult> {
        let bytes = block::size_of_device(device).with_context(|| format!("no size of {}", device.display()))?;
        let table = format!("0 {} {}", bytes / 512, words.join(" "));
        self.output(&argv(["dmsetup", "create", name, "--table", &table]))?;
        Ok(StepResult::Devices(vec![Path::new("/dev/mapper").join(name)]))
    }

    /// A daemon carries its own mark, not the cell's, and lives until its undo kills it. One that
    /// ends before it is ready gives what it wrote as the error: something else may have its place,
    /// and answer in its stead.
    pub(super) fn start_daemon(&mut self, argv: &Argv, ready: &Argv, patience: Duration) -> Result<()> {
        let (name, shown) = (name_of(&self.scope), argv.join(" "));
        let mut said = File::from(rustix::fs::memfd_create("daemon", MemfdFlags::CLOEXEC)?);
        let mut command = process::command(argv, &[(RUN_MARK, &self.run), (DAEMON_MARK, &name)])?;
        let child = command.stdout(said.try_clone()?).stderr(said.try_clone()?).spawn();
        let number = self.daemons.len();
        self.daemons.push(child.with_context(|| format!("cannot start `{shown}`"))?);
        let mut last_words = || -> Result<String> {
            let mut text = Vec::new();
            said.rewind()?;
            Read::by_ref(&mut said).take(MOST_SAID).read_to_end(&mut text)?;
            Ok(process::last_words(&text))
        };
        let begun = Instant::now();
        loop {
            let answer = self.output(ready);
            if let Some(status) = self.daemons[number].try_wait()? {
                bail!("`{shown}` ended with {status}: {}", last_words()?);
            }
            match answer {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() > patience => {
                    return Err(error.context(format!("`{shown}` did not become ready: {}", last_words()?)));
                }
                Err(_) => {}
            }
            check_stop()?;
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Takes every step back, last first, whatever fails on the way; all failures together are the
    /// error.
    pub(crate) fn undo_all(&mut self, link: &mut Link) -> Result<()> {
        let mut failures = Vec::new();
        while let Some(taken) = self.taken.pop() {
            let Some(undo) = &taken.undo else { continue };
            let own = Own { run: &self.run, disks: &self.disks, take_downs: &self.take_downs };
            match undo::one(undo, &taken.scope, &own) {
                Ok(()) => link.tell(Record::Undone(Undone { scope: taken.scope, number: taken.number })),
                Err(error) => failures.push(format!("{}: {error:#}", taken.says)),
            }
            self.reap();
        }
        if !failures.is_empty() {
            bail!("could not undo {}; `pickfs clean` will try again", failures.join("; "));
        }
        Ok(())
    }

    fn reap(&mut self) {
        self.daemons.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
    }
}

/// Its paths without symbolic links.
fn without_links(undo: Undo) -> Undo {
    match undo {
        Undo::Unmount(path) => Undo::Unmount(real(&path)),
        Undo::DetachLoops(path) => Undo::DetachLoops(real(&path)),
        Undo::RemoveTree(path) => Undo::RemoveTree(real(&path)),
        Undo::RemoveZram(path) => Undo::RemoveZram(real(&path)),
        other => other,
    }
}

/// The scheduler, say, of a device that is there by now.
fn queue_file(device: &Path, name: &str) -> Result<PathBuf> {
    let path = devices::device_number(device).and_then(|number| devices::queue_file(number, name));
    path.with_context(|| match name {
        "scheduler" => "the device has no I/O scheduler to set".to_string(),
        _ => format!("the device's queue has no `{name}`; leave it out of `queue`"),
    })
}

/// Of two settings that switch each other off only the one that is not 0 is in force; writing it
/// back switches the other off. Both may be 0: the second is in force then.
fn restore(path: &Path, value: &str, instead_of: Option<&Path>) -> Result<Undo> {
    let in_force = |path: &&Path| devices::content(path).is_some_and(|value| value != "0");
    let saved = match instead_of {
        Some(other) => [path, other].into_iter().find(in_force).unwrap_or(other),
        None => path,
    };
    let before = setting::in_force(saved).with_context(|| format!("cannot read {}", saved.display()))?;
    // A queue may round what it is given.
    let set = path.starts_with("/proc").then(|| Knob { path: path.into(), value: value.into() });
    Ok(Undo::Restore { path: saved.into(), value: before, set })
}

/// The kernel's own word that nothing has the device, a mount of many devices included: an
/// exclusive open. It is not kept open: discards and mkfs claim the device themselves, and would be
/// refused.
fn unused(device: &Path) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let opened = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device);
    opened.map(drop).with_context(|| format!("{} is in use; free it first", device.display()))
}

/// The link lies in a folder that the cell removes.
fn link_device(uevent: &Path, link: &Path) -> Result<StepResult> {
    let shown = std::fs::read_to_string(uevent).with_context(|| format!("cannot read {}", uevent.display()))?;
    let name = shown.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    let name = name.with_context(|| format!("{} names no device", uevent.display()))?;
    std::os::unix::fs::symlink(Path::new("/dev").join(name), link)
        .with_context(|| format!("cannot make {}", link.display()))?;
    unused(link).map(|()| StepResult::Devices(vec![link.to_path_buf()]))
}

/// Only the last part: where the folder above has gone, its file system has too, and another must
/// not be measured in its place.
fn make_directory(path: &Path) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    // A stranger's folder in a shared place would let him change what is put into it.
    if let Some(exposed) = path.parent().and_then(exposed) {
        bail!("{}; {}", exposed.message, exposed.remedy);
    }
    let own = rustix::process::geteuid().as_raw();
    let there = || path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && there() => Ok(()),
        made => made.with_context(|| format!("{} is not to be made; is the folder above there?", path.display())),
    }
}
