//! What this machine has against settings of a plan, before anything is touched: paths that are not
//! there, no room, and devices that must not be erased.

use crate::stack::backing;
use crate::stack::safety::{self, Users};
use crate::workload;
use anyhow::{Context, Result};
use pickfs_core::plan::{Chosen, Objection, Settings};
use pickfs_core::protocol::{Check, Checked, Erasure};
use pickfs_system::process::writers_of;
use pickfs_system::sys::{block, devices};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Asks this machine.
pub fn check(question: &Check) -> Checked {
    let text = |objection: Objection| {
        if objection.refusal { objection.message } else { format!("{}: {}", objection.message, objection.remedy) }
    };
    Checked { reasons: objections(question).into_iter().map(text).collect(), erases: erases(question) }
}

/// Every reason against these settings.
pub fn objections(question: &Check) -> Vec<Objection> {
    let chosen = match question {
        Check::Workload(chosen) => return of_workload(chosen),
        Check::Backing(chosen) => chosen,
    };
    let (settings, erased) = (&chosen.settings, erased(chosen));
    if !erased.is_empty() {
        return erased.iter().flat_map(|path| of_device(path, settings)).collect();
    }
    backing::find(&chosen.name).and_then(|backing| (backing.objection)(settings)).into_iter().collect()
}

/// The devices that a backing would erase; one that cannot be examined is named by its path.
fn erases(question: &Check) -> Vec<Erasure> {
    let Check::Backing(chosen) = question else { return Vec::new() };
    let erasure = |path: PathBuf| match device_facts(&path) {
        Ok(DeviceFacts { node, instance, tree, .. }) => {
            Erasure { identity: safety::identity(&tree), node, instance, path }
        }
        Err(_) => Erasure { identity: path.display().to_string(), node: path.clone(), instance: String::new(), path },
    };
    erased(chosen).into_iter().map(erasure).collect()
}

fn erased(chosen: &Chosen) -> Vec<PathBuf> {
    backing::find(&chosen.name).map(|backing| (backing.erases)(&chosen.settings)).unwrap_or_default()
}

/// The workload's own, and paths to read must be there.
fn of_workload(chosen: &Chosen) -> Vec<Objection> {
    let own = workload::find(&chosen.name).map(|workload| workload.objections(&chosen.settings)).unwrap_or_default();
    own.into_iter().chain(missing_source(&chosen.settings)).collect()
}

/// Symlinks and by-id names are resolved first; then `lsblk` and `wipefs` are asked and every
/// refusal is given.
fn of_device(path: &Path, settings: &Settings) -> Vec<Objection> {
    match device_facts(path).map(|facts| facts.refusals(&settings.texts("signatures"))) {
        Ok(refusals) => refusals.into_iter().map(|why| Objection::refusal("path", why)).collect(),
        Err(error) => vec![Objection::new("path", format!("{error:#}"), "name a block device; `lsblk` lists them")],
    }
}

fn missing_source(settings: &Settings) -> Option<Objection> {
    let source = settings.path("source")?;
    let missing = std::fs::read_dir(&source).err();
    missing.map(|error| {
        let message = format!("cannot read the source {}: {error}", source.display());
        Objection::new("source", message, "name a directory that is there, or leave it out for a generated tree")
    })
}

/// What `lsblk`, `wipefs` and the kernel say of a device.
struct DeviceFacts {
    /// As the kernel names it, and what it is.
    node: PathBuf,
    instance: String,
    tree: String,
    parents: String,
    signatures: String,
    users: Users,
}

impl DeviceFacts {
    /// Every reason not to erase it; `allowed` signatures are none.
    fn refusals(&self, allowed: &[String]) -> Vec<String> {
        safety::refusals(&self.tree, &self.parents, &self.signatures, &self.users, allowed)
    }
}

fn device_facts(path: &Path) -> Result<DeviceFacts> {
    let real = path.canonicalize().with_context(|| format!("there is no {}", path.display()))?;
    anyhow::ensure!(real.metadata()?.file_type().is_block_device(), "{} is no block device", path.display());
    let columns = "NAME,PATH,KNAME,MAJ:MIN,TYPE,SIZE,MOUNTPOINTS,FSTYPE,SERIAL,WWN,MODEL,RO,PARTTYPENAME";
    let lsblk =
        |extra: &[&str]| program(Command::new("lsblk").args(["-J", "-b", "-o", columns]).args(extra).arg(&real));
    let (tree, parents) = (lsblk(&[])?, lsblk(&["-s"])?);
    // All of them by wipefs, as lsblk knows no signatures where no udev runs.
    let signatures = program(Command::new("wipefs").args(["--json", "--no-act"]).args(safety::paths(&tree)))?;
    let number = devices::device_number(&real).with_context(|| format!("no number of {}", path.display()))?;
    let users = users(&real, safety::numbers(&tree, &parents));
    // The kernel's own name: another one may lie in a folder where it can be replaced.
    let node = devices::node(number).filter(|node| devices::device_number(node) == Some(number)).unwrap_or(real);
    Ok(DeviceFacts { node, instance: devices::instance(number), tree, parents, signatures, users })
}

/// By numbers, as names may be links or other nodes. `numbers` are of the device and of all that it
/// is a part of.
fn users(device: &Path, numbers: Vec<(u32, u32)>) -> Users {
    let lower: Vec<(u32, u32)> = numbers.iter().flat_map(|number| devices::all_below_loop(*number)).collect();
    let numbers = [numbers, lower.clone()].concat();
    let own = |node: &Path| devices::device_number(node).is_some_and(|number| numbers.contains(&number));
    let loops = devices::loops_on(&numbers).into_iter().filter(|(_, node)| !own(node));
    let lower_nodes = lower.into_iter().filter_map(devices::node);
    let nodes: Vec<PathBuf> = [device.to_path_buf()].into_iter().chain(lower_nodes).collect();
    let (writers, claimed) =
        lasting(|| (writers_of(&numbers), nodes.iter().filter_map(|node| claimed(node)).collect()));
    Users {
        swaps: std::fs::read_to_string("/proc/swaps").unwrap_or_default(),
        loops: loops.map(|(below, node)| (below, node.display().to_string())).collect(),
        writers,
        claimed,
    }
}

/// What is still there after a second. Others come and go, such as a `losetup` that tries a device
/// which another one has just got.
fn lasting<A, B>(look: impl Fn() -> (Vec<A>, Vec<B>)) -> (Vec<A>, Vec<B>) {
    let mut seen = look();
    for _ in 0..10 {
        if seen.0.is_empty() && seen.1.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        seen = look();
    }
    seen
}

fn claimed(node: &Path) -> Option<String> {
    let is_busy = |error: std::io::Error| error.kind() == std::io::ErrorKind::ResourceBusy;
    block::open_exclusive(node).is_err_and(is_busy).then(|| node.display().to_string())
}

fn program(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.env("LC_ALL", "C").output().with_context(|| format!("cannot run {shown}"))?;
    anyhow::ensure!(output.status.success(), "{shown}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
