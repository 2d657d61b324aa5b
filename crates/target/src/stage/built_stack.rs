//! The stack that a cell works on, once it is built and mounted.

use crate::probe::Subject;
use crate::stack::fs::{Filesystem, FsSpec, of_kernel};
use crate::stack::layer::Opening;
use crate::stack::{AboveMount, Argv};
use crate::steps::StepRunner;
use anyhow::{Context, Result};
use pickfs_core::plan::Target;
use pickfs_system::sys::devices;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Goes, of which the shortest counts: others on the machine can only make them longer.
const COMMIT_STARTS: usize = 3;

/// The folder of the work, wherever it lies.
pub const WORK: &str = "work";

/// A stack that stands: backing, layers and file system, built and mounted.
#[derive(Default)]
pub struct BuiltStack {
    pub driver: Option<&'static Filesystem>,
    pub target: Target,
    pub device: Option<PathBuf>,
    /// The other devices of a file system on several.
    pub more_devices: Vec<PathBuf>,
    /// The disks of the backing, below all layers.
    pub disks: Vec<PathBuf>,
    /// Where a layer logs all writes: its mapping, and the disk with the log.
    pub log_of_writes: Option<(String, PathBuf)>,
    /// What the layers say of themselves, once they stand.
    pub layers: Layers,
    /// The device has a cache, and the kernel takes it for one without.
    pub flushes_lost: bool,
    pub mount_point: PathBuf,
    /// Above the mounted file system, the lowest first.
    pub above: Vec<AboveMount>,
    /// The folder that the work owns.
    pub root: PathBuf,
    pub subject: Subject,
    pub pool: String,
    pub seed: u64,
}

/// Facts of the layers, and what in them is not as the plan asked for.
#[derive(Default)]
pub struct Layers {
    /// How another machine opens them.
    pub openings: Vec<Opening>,
    pub facts: BTreeMap<String, String>,
    pub mismatches: Vec<String>,
}

impl Layers {
    /// Two layers of a kind have facts of the same name.
    pub(crate) fn take(&mut self, facts: BTreeMap<String, String>, number: usize) {
        for (name, value) in facts {
            let taken = self.facts.contains_key(&name);
            self.facts.insert(if taken { format!("{name} (layer {number})") } else { name }, value);
        }
    }
}

impl BuiltStack {
    pub fn spec(&self) -> FsSpec<'_> {
        let driver = self.driver.expect("only a stack with its own file system has a spec");
        let device = self.device.as_deref().unwrap_or(Path::new(""));
        let mut spec = FsSpec::new(driver, &self.target, device, &self.mount_point);
        spec.more_devices = &self.more_devices;
        spec.seed = self.seed;
        spec.name = &self.pool;
        spec
    }

    /// Where what the work writes lies on the file system itself, which layers above show
    /// elsewhere: the folder of the work, or the one that a layer above keeps it in under other
    /// names.
    pub fn stored(&self) -> PathBuf {
        self.above.iter().rev().fold(self.root.clone(), |seen, mount| mount.stored(&seen))
    }

    /// All of them keep names, so that a file of the work has a path on the file system itself.
    pub(crate) fn keeps_names(&self) -> bool {
        self.above.iter().all(|mount| mount.layer.keeps_names)
    }

    /// Where the work sees it mounted.
    pub fn seen_at(&self) -> &Path {
        self.above.last().map_or(&self.mount_point, AboveMount::mount_point)
    }

    /// Brings a file system that is not mounted to all its mount points.
    pub fn mount(&self, spec: &FsSpec) -> Vec<Argv> {
        let first = self.driver.map(|driver| driver.mount(spec));
        first.into_iter().chain(self.above.iter().flat_map(AboveMount::mount)).collect()
    }

    /// Takes it from there.
    pub fn unmount(&self) -> Vec<Argv> {
        let last = self.driver.map(|driver| driver.mounting.unmount(&self.spec()));
        self.above.iter().rev().flat_map(AboveMount::unmount).chain(last).collect()
    }

    /// Programs for what is done with an unmounted file system, which is then mounted as a spec has
    /// it.
    pub(crate) fn aside(&self, programs: Vec<Argv>, then: &FsSpec) -> Vec<Argv> {
        [self.unmount(), programs, self.mount(then)].concat()
    }

    /// Returns when all that was written is durable: `syncfs(2)`, from the highest mount down to
    /// the file system itself, and what the driver adds to it.
    pub fn make_durable(&self, engine: &StepRunner) -> Result<()> {
        let passes_not = self.above.iter().rev().filter(|mount| !mount.layer.passes_sync);
        let below = passes_not.map(|mount| mount.below());
        std::iter::once(self.root.as_path()).chain(below).try_for_each(sync)?;
        self.commit().map_or(Ok(()), |words| engine.output(&words).map(drop))
    }

    /// The program that the driver adds to `syncfs(2)`.
    pub(crate) fn commit(&self) -> Option<Argv> {
        self.driver?.commit.map(|commit| commit.words(&self.spec()))
    }

    /// What the file system lies on, and the disks below all layers, each once.
    pub(crate) fn all_devices(&self) -> Vec<&Path> {
        let mut all: Vec<&Path> = self.device.iter().chain(&self.more_devices).map(PathBuf::as_path).collect();
        let below: Vec<&Path> = self.disks.iter().map(PathBuf::as_path).filter(|disk| !all.contains(disk)).collect();
        all.extend(below);
        all
    }

    /// Whether what lies below may have data of the unmounted file system in memory: layers, some
    /// of which have caches, or the file system that an image lies on.
    pub(crate) fn is_cached_below(&self) -> bool {
        let mut devices = self.device.iter().chain(&self.more_devices);
        !self.target.layers.is_empty() || devices.any(|device| is_cached_image(device))
    }

    /// What starting the program that makes data durable takes, the least of some goes; nothing
    /// where `syncfs(2)` does. A cold start has dropped the program as well, and here it comes
    /// back.
    pub(crate) fn commit_start(&self, engine: &StepRunner) -> Result<Duration> {
        let Some(commit) = self.driver.and_then(|driver| driver.commit) else { return Ok(Duration::ZERO) };
        let one = || {
            let begun = Instant::now();
            engine.output(&commit.idle(&self.spec())).map(|_| begun.elapsed())
        };
        (0..COMMIT_STARTS).try_fold(Duration::MAX, |least, _| Ok(least.min(one()?)))
    }
}

fn sync(at: &Path) -> Result<()> {
    let opened = std::fs::File::open(at).with_context(|| format!("cannot open {}", at.display()))?;
    rustix::fs::syncfs(&opened).with_context(|| format!("syncfs failed on {}", at.display()))
}

/// A loop device that reads through the page cache of its file.
pub(super) fn is_buffered(device: &Path) -> bool {
    is_direct(device) == Some(false)
}

/// Of a loop device alone.
fn is_direct(device: &Path) -> Option<bool> {
    let shown = devices::content(devices::sys_path(devices::device_number(device)?).join("loop/dio"))?;
    Some(shown == "1")
}

/// Not where the image is memory itself, and not where reads pass by all caches on their way to a
/// disk.
fn is_cached_image(device: &Path) -> bool {
    let Some((number, file)) = devices::device_number(device).zip(devices::loop_file(device)) else { return false };
    let passes_by = is_direct(device) == Some(true) && devices::below(number).is_some();
    let is_memory =
        || devices::mount_of(&file).is_ok_and(|mount| of_kernel(&mount.fs_type).is_some_and(|fs| fs.volatile));
    !passes_by && !is_memory()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disk_below_layers_is_known_and_none_twice() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        for (more_devices, disks, expected) in [
            (&["/dev/loop1"][..], &["/dev/loop0", "/dev/loop1"][..], &["/dev/md0", "/dev/loop1", "/dev/loop0"][..]),
            (&[], &["/dev/md0"], &["/dev/md0"]),
        ] {
            let (more_devices, disks) = (paths(more_devices), paths(disks));
            let stack = BuiltStack { device: Some("/dev/md0".into()), more_devices, disks, ..BuiltStack::default() };
            assert_eq!(stack.all_devices(), paths(expected));
        }
    }
}
