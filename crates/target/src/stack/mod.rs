//! What a storage stack is made of: backings, layers and file systems, one file each.
//!
//! Plug-ins here DESCRIBE steps (argv and undo); they run nothing and open nothing. They must not
//! know the host, the clock or the work. What is described can be printed, tested without root,
//! journaled and undone.
//!
//! Must not know: `agent`, `probe`, `stage`, `workload`.

pub mod above;
pub mod backing;
pub(crate) mod data;
pub mod fs;
pub mod layer;
pub mod recipe;
pub mod safety;
pub(crate) mod take_down;
pub mod zones;

pub use above::AboveMount;
use pickfs_core::journal::Undo;
use pickfs_core::plan::Tunables;
pub(crate) use pickfs_system::process::{Argv, argv};
use pickfs_system::units::show_bytes;
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

/// What people turn of a device's queue and of the kernel's memory.
pub const MACHINE: Tunables = Tunables(include_str!("tunables.toml"));

/// One step of building a stack, and how to take it back.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// In words, for the dry run and the journal.
    pub says: String,
    pub action: Action,
    pub undo: Option<Undo>,
}

/// What a step does; the agent does it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Run(Argv),
    /// Mounts a file system; what that leaves running belongs to it.
    Mount(Argv),
    /// Attaches an image of the run to a loop device, for all that lies above.
    AttachImage {
        image: PathBuf,
        /// Past the page cache of the file system that the image lies on.
        direct: bool,
    },
    /// This block device is there already.
    UseDevice(PathBuf),
    /// The device of which the kernel's `uevent` gives the name, under a name that is known before
    /// it is there.
    LinkDevice {
        uevent: PathBuf,
        link: PathBuf,
    },
    /// A mapping of that name over the whole of a device; the words are device-mapper's, behind the
    /// length.
    MapWhole {
        device: PathBuf,
        name: String,
        words: Argv,
    },
    /// This directory, on a file system that is there already, is where the work goes.
    UseDirectory(PathBuf),
    MakeDirectory(PathBuf),
    /// A file of `bytes` incompressible bytes, every block of it allocated and written.
    MakeImage {
        path: PathBuf,
        bytes: u64,
    },
    /// A new disk in compressed memory. The file gets the number that the kernel gives it.
    MakeZram {
        note: PathBuf,
        algorithm: String,
        bytes: u64,
    },
    /// The folder that the work owns, as mkdir(1) makes it: users of servers get into it too.
    MakeWorkFolder(PathBuf),
    /// Discards every block of a device.
    Discard(PathBuf),
    /// Writes a kernel setting; restoring the value before is the undo. Of this and a setting that
    /// it switches off, if one is named, the one that was in force is restored.
    Set {
        path: PathBuf,
        value: String,
        instead_of: Option<PathBuf>,
    },
    /// Writes a setting of a device's queue, which is found when the device is there; restored as
    /// one of the kernel.
    SetQueue {
        device: PathBuf,
        name: String,
        value: String,
    },
    /// Has a setting of a device's queue restored that another one will change.
    KeepQueue {
        device: PathBuf,
        name: String,
    },
    /// Starts a program that stays, and waits until the given program succeeds.
    Daemon {
        argv: Argv,
        ready: Argv,
    },
}

/// A loop device on an image, which the program prints. Its sector size is left to the kernel.
pub(crate) fn attach_words(image: &Path, direct: bool) -> Argv {
    let direct = if direct { "--direct-io=on" } else { "--direct-io=off" };
    argv(["losetup", "--find", "--show", direct, &image.display().to_string()])
}

impl Action {
    /// The device that is known before it is there, for what lies above.
    fn device(&self) -> Option<PathBuf> {
        match self {
            Action::UseDevice(device) | Action::LinkDevice { link: device, .. } => Some(device.clone()),
            Action::MapWhole { name, .. } => Some(Path::new("/dev/mapper").join(name)),
            _ => None,
        }
    }
}

/// For the dry run and the journal.
impl Display for Action {
    fn fmt(&self, out: &mut Formatter) -> std::fmt::Result {
        match self {
            Action::Run(argv) | Action::Mount(argv) | Action::Daemon { argv, .. } => write!(out, "{}", argv.join(" ")),
            Action::AttachImage { image, direct } => write!(out, "{}", attach_words(image, *direct).join(" ")),
            Action::UseDevice(path)
            | Action::UseDirectory(path)
            | Action::MakeDirectory(path)
            | Action::MakeWorkFolder(path)
            | Action::Discard(path) => write!(out, "{}", path.display()),
            Action::LinkDevice { uevent, link } => write!(out, "{} to that of {}", link.display(), uevent.display()),
            Action::MapWhole { device, words, .. } => write!(out, "{}, {}", device.display(), words.join(" ")),
            Action::MakeImage { path, bytes } => write!(out, "{} ({})", path.display(), show_bytes(*bytes as f64)),
            Action::MakeZram { algorithm, bytes, .. } => {
                write!(out, "/sys/class/zram-control/hot_add ({}, {algorithm})", show_bytes(*bytes as f64))
            }
            Action::Set { path, value, .. } => write!(out, "{value} to {}", path.display()),
            Action::SetQueue { device, name, value } => write!(out, "{name} of {} to {value}", device.display()),
            Action::KeepQueue { device, name } => write!(out, "{name} of {}", device.display()),
        }
    }
}

impl Step {
    pub(crate) fn new(says: impl Into<String>, action: Action) -> Step {
        Step { says: says.into(), action, undo: None }
    }

    pub(crate) fn run<S: AsRef<str>>(says: impl Into<String>, words: impl IntoIterator<Item = S>) -> Step {
        Step::new(says, Action::Run(argv(words)))
    }

    /// Makes a folder, which goes with all that is in it.
    pub fn folder(says: impl Into<String>, path: PathBuf) -> Step {
        Step::new(says, Action::MakeDirectory(path.clone())).undo(Undo::RemoveTree(path))
    }

    pub(crate) fn undo(mut self, undo: Undo) -> Step {
        self.undo = Some(undo);
        self
    }
}

/// Where a run may put things on a machine. Every path carries the run's name, which is what makes
/// removing them safe.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// `pickfs-<run id>`.
    pub name: String,
    /// A folder in memory (tmpfs), for staged sources and RAM copies.
    pub memory: PathBuf,
    /// Where file systems under test are mounted.
    pub mounts: PathBuf,
}

impl Place {
    pub fn of_run(run: &str) -> Place {
        Place::of_agent(run, rustix::process::geteuid().is_root())
    }

    /// The place of an agent that is root or not.
    pub fn of_agent(run: &str, root: bool) -> Place {
        let name = format!("pickfs-{run}");
        let mounts = if root { Path::new("/run").join(&name) } else { std::env::temp_dir().join(&name) };
        Place { memory: Path::new("/dev/shm").join(&name), mounts, name }
    }

    /// Where the file system under test of the cell that runs now is mounted.
    pub fn mount_point(&self) -> PathBuf {
        self.mounts.join("target")
    }

    /// Where a layer above the file system under test shows it, by its number from below.
    pub(crate) fn above(&self, number: usize) -> PathBuf {
        self.mounts.join(if number == 0 { "above".into() } else { format!("above{number}") })
    }

    /// Where the file system in an image is mounted that lies on the one under test.
    pub(crate) fn inside(&self) -> PathBuf {
        self.mounts.join("inside")
    }

    /// The file as which a server shows what such an image holds.
    pub(crate) fn export(&self) -> PathBuf {
        self.mounts.join("export")
    }

    /// In a guest, where the disk is mounted that a tree is brought from.
    pub(crate) fn other_disk(&self) -> PathBuf {
        self.mounts.join("other-disk")
    }
}

/// How layers and file systems take down what they alone know.
pub(crate) fn take_downs() -> impl Iterator<Item = &'static take_down::TakeDown> {
    let layers = layer::ALL.iter().filter_map(|layer| layer.take_down);
    let above = above::ALL.iter().filter_map(|layer| layer.take_down).chain([above::NETWORK]);
    layers.chain(above).chain(fs::ALL.iter().filter_map(|driver| driver.mounting.take_down))
}

/// A step as one line, for tests: what it does and how it is taken back.
#[cfg(test)]
fn sentence(step: &Step) -> String {
    let does = match &step.action {
        Action::Run(argv) | Action::Mount(argv) => format!("run {}", argv.join(" ")),
        Action::AttachImage { .. } => format!("device from {}", step.action),
        Action::UseDevice(path) => format!("device {}", path.display()),
        Action::LinkDevice { uevent, link } => {
            format!("link {} to the device of {}", link.display(), uevent.display())
        }
        Action::MapWhole { device, name, words } => format!("map {} as {name}: {}", device.display(), words.join(" ")),
        Action::UseDirectory(path) => format!("directory {}", path.display()),
        Action::MakeDirectory(path) | Action::MakeWorkFolder(path) => format!("make directory {}", path.display()),
        Action::Discard(path) => format!("discard {}", path.display()),
        Action::SetQueue { .. } => format!("set {}", step.action),
        Action::KeepQueue { .. } => format!("keep {}", step.action),
        Action::MakeImage { path, bytes } => format!("make image {} of {bytes}", path.display()),
        Action::MakeZram { note, algorithm, bytes } => {
            format!("zram of {bytes} with {algorithm}, noted in {}", note.display())
        }
        Action::Set { path, value, .. } => format!("set {} to {value}", path.display()),
        Action::Daemon { argv, ready } => format!("start {} until {}", argv.join(" "), ready.join(" ")),
    };
    step.undo.as_ref().map_or(does.clone(), |undo| format!("{does}; back: {}", undo_words(undo)))
}

#[cfg(test)]
fn undo_words(undo: &Undo) -> String {
    match undo {
        Undo::Unmount(path) => format!("unmount {}", path.display()),
        Undo::DetachLoops(path) => format!("detach loops of {}", path.display()),
        Undo::RemoveTree(path) => format!("remove tree {}", path.display()),
        Undo::Restore { path, value, .. } => format!("restore {} to {value}", path.display()),
        Undo::KillMarked(mark) => format!("kill {mark}"),
        Undo::RemoveMapping(name) => format!("remove mapping {name}"),
        Undo::RemoveZram(note) => format!("remove the zram disk noted in {}", note.display()),
        Undo::TakeDown(all) => {
            let all = all.iter().map(|(word, made)| format!("{} {}", word.replace('_', " "), made.name()));
            all.collect::<Vec<_>>().join(", ")
        }
    }
}
