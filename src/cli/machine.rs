//! What this machine says to a plan's settings, before anything is touched: paths that are not there, no room, and
//! devices that must not be erased.

#![expect(clippy::disallowed_types, reason = "asks lsblk")]

use crate::executor::vm as guest;
use crate::plan::{Objection, Settings};
use crate::stack::safety;
use crate::workload;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Objections to a backing's settings, by the backing's name.
pub fn backing_objections(name: &str, settings: &Settings) -> Vec<Objection> {
    let found = match name {
        "image" => image(settings),
        "directory" => directory(settings, "path"),
        "device" => return device_objections(settings),
        "memory" => room(settings, Path::new("/dev/shm"), "size"),
        _ => None,
    };
    found.into_iter().collect()
}

/// Objections to a workload's settings, by the workload's name: its own, and paths to read must be there.
pub fn workload_objections(name: &str, settings: &Settings) -> Vec<Objection> {
    let own = workload::find(name).map(|workload| workload.objections(settings)).unwrap_or_default();
    own.into_iter().chain(missing_source(settings)).collect()
}

/// Objections to what a plan tells of a target's machine, by the executor's name.
pub fn executor_objections(name: &str, settings: &Settings) -> Vec<Objection> {
    let kernel = settings.text("kernel").filter(|_| name == "vm");
    let objection = kernel.and_then(guest::objection_to);
    objection.map(|(message, remedy)| Objection::new("kernel", message, &remedy)).into_iter().collect()
}

fn missing_source(settings: &Settings) -> Option<Objection> {
    let source = settings.path("source")?;
    let missing = std::fs::read_dir(&source).err();
    missing.map(|error| {
        let message = format!("cannot read the source {}: {error}", source.display());
        Objection::new("source", message, "name a directory that is there, or leave `source` out for a generated tree")
    })
}

fn image(settings: &Settings) -> Option<Objection> {
    directory(settings, "dir").or_else(|| room(settings, &settings.path("dir")?, "size"))
}

fn directory(settings: &Settings, setting: &'static str) -> Option<Objection> {
    use rustix::fs::{Access, access};
    let path = settings.path(setting)?;
    if !path.is_dir() {
        let message = format!("{} is no directory", path.display());
        return Some(Objection::new(setting, message, "make it first, or name another"));
    }
    let refused = access(&path, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let message = format!("cannot write to {}: {refused}", path.display());
    Some(Objection::new(setting, message, "name a directory of your own"))
}

fn room(settings: &Settings, folder: &Path, setting: &'static str) -> Option<Objection> {
    let wanted = settings.number("size")?;
    let found = rustix::fs::statvfs(folder).ok()?;
    let free = found.f_bavail * found.f_frsize;
    let show = |bytes: u64| crate::units::show_bytes(bytes as f64);
    let message = format!("{} has {} free, the image takes {}", folder.display(), show(free), show(wanted));
    (free < wanted).then(|| Objection::new(setting, message, "give a smaller size, or another place"))
}

/// Symlinks and by-id names are resolved first; then `lsblk` and `wipefs` are asked and every refusal is given.
fn device_objections(settings: &Settings) -> Vec<Objection> {
    let Some(path) = settings.path("path") else {
        return vec![Objection::new(
            "path",
            "no device is named".into(),
            "give `path`, best a name under /dev/disk/by-id",
        )];
    };
    match device_facts(&path).map(|facts| facts.refusals(&settings.texts("signatures"))) {
        Ok(refusals) => refusals.into_iter().map(|why| Objection::refusal("path", why)).collect(),
        Err(error) => vec![Objection::new("path", format!("{error:#}"), "name a block device; `lsblk` lists them")],
    }
}

/// What `lsblk`, `wipefs` and the kernel say of a device.
pub struct DeviceFacts {
    pub tree: String,
    parents: String,
    signatures: String,
    swaps: String,
}

impl DeviceFacts {
    /// Every reason not to erase it; `allowed` signatures are none.
    pub fn refusals(&self, allowed: &[String]) -> Vec<String> {
        safety::refusals(&self.tree, &self.parents, &self.signatures, &self.swaps, allowed)
    }
}

pub fn device_facts(path: &Path) -> Result<DeviceFacts> {
    use std::os::unix::fs::FileTypeExt;
    let real = path.canonicalize().with_context(|| format!("there is no {}", path.display()))?;
    anyhow::ensure!(real.metadata()?.file_type().is_block_device(), "{} is no block device", path.display());
    let columns = "NAME,PATH,KNAME,TYPE,SIZE,MOUNTPOINTS,FSTYPE,SERIAL,WWN,MODEL,RO,PARTTYPENAME";
    let lsblk =
        |extra: &[&str]| program(Command::new("lsblk").args(["-J", "-b", "-o", columns]).args(extra).arg(&real));
    let tree = lsblk(&[])?;
    // All of them by wipefs, as lsblk knows no signatures where no udev runs.
    let signatures = program(Command::new("wipefs").args(["--json", "--no-act"]).args(safety::paths(&tree)))?;
    Ok(DeviceFacts {
        parents: lsblk(&["-s"])?,
        tree,
        signatures,
        swaps: std::fs::read_to_string("/proc/swaps").unwrap_or_default(),
    })
}

fn program(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.env("LC_ALL", "C").output().with_context(|| format!("cannot run {shown}"))?;
    anyhow::ensure!(output.status.success(), "{shown}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
