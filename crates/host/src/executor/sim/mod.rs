//! Simulated machines: a guest of QEMU whose only clock counts instructions, with a disk that is a
//! model. Every run of a cell gives the same numbers.
//!
//! `model.c` is the model, in C because the guest's kernel has it too, with `simdisk.c` as its
//! driver; models of disks are tables of numbers with their sources. `clocks.c` makes the guest's
//! clocks go by what its processor executes, and by how many processors it stands for. Neither must
//! know what is measured.

mod archive;
mod explanation;
mod machine;
mod processor;
mod qemu;
mod region;
mod saved;

pub use explanation::Explanation;
pub use machine::{AT_ONCE, driver_sources};
pub use processor::{COMPRESSION, Calibration, Class, Processor};

use super::{Executor, Machine, vm};
use pickfs_core::plan::SettingKind::*;
use pickfs_core::plan::{MOST_PROCESSORS, Objection, PROCESSORS, Plan, Setting, Settings, Target, setting};
use pickfs_disks::whole_name;
use pickfs_system::need::Need;
use pickfs_system::units::show_bytes;
use procfs::Current;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub const NAME: &str = "sim";

/// Where a target names no disk.
const DEFAULT_DISK: &str = "nvme";

pub struct Sim {
    /// Where each cell leaves what explains its times.
    explanations: Option<PathBuf>,
}

pub static SIM: Sim = Sim { explanations: None };

impl Sim {
    /// The same machines with the same results, which also leave what explains their times in this
    /// folder.
    pub fn explaining(folder: &Path) -> Sim {
        Sim { explanations: Some(folder.into()) }
    }
}

#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    setting("disk", NameOrPath, Some(DEFAULT_DISK),
        "a model of a disk, as `pickfs list disks` shows them, or the path of a TOML file"),
    setting("disks", Texts, None,
        "models of several disks in their order, where the backing has `disks`: [\"hdd-7200\", \"nvme\"]"),
    setting("disk_fill", Text, None,
        "makes flash a drive as small as the device, of which this share holds data at the start: from \"0%\", a drive \
        that was trimmed, to \"100%\"; without it the device is a small part of an unused drive"),
    setting(machine::FLUSH, Duration, None,
        "how long the disk's own part of a flush takes, such as \"3ms\", instead of the model's time: drives of one \
        kind differ by a factor of twenty"),
    setting("dilation", NumberOrPath, Some(processor::USUAL),
        "instructions of the processor in a nanosecond, or the path of a file of `pickfs sim calibrate`"),
    setting("compression", NumberOrPath, Some(processor::USUAL_COMPRESSION),
        "how many times as fast the processor is while the kernel compresses, or the path of such a file; always 1 \
        with bullseye"),
    setting("user_mode", Number, Some(processor::USUAL_USER_MODE),
        "how many times as fast the processor is while a program executes its own instructions, and not the kernel's; \
        always 1 with bullseye"),
    setting(PROCESSORS, Within(1, MOST_PROCESSORS), Some(processor::USUAL_PROCESSORS),
        "processors that never wait for each other, which is the most that processors can give; programs see one; \
        always 1 with bullseye"),
    setting("kernel", NameOrPath, Some("bookworm"),
        "release of Debian that brings kernel and programs: bullseye (5.10), bookworm (6.1), trixie (6.12), sid; or a \
        folder with your own kernel, root and driver"),
    setting("words", Text, None, "for the kernel, such as \"preempt=full\""),
    setting("saved", Flag, None,
        "cells go on from one saved boot, which is ten seconds of processor time less each; by default with all \
        kernels of Debian's"),
    setting("memory", Size, Some("1GiB"), "without the staged data"),
    setting("memory_spread", Size, None,
        "each round has up to this much more memory, drawn from its seed"),
];

/// The settings of a machine with a disk of this model, as a plan has them that says no more.
pub fn usual(model: &str) -> Settings {
    let number = |text: &str| text.parse::<f64>().unwrap_or(1.0).into();
    let (dilation, compression) = (number(processor::USUAL), number(processor::USUAL_COMPRESSION));
    let user_mode = number(processor::USUAL_USER_MODE);
    let text = |text: &str| Value::from(text);
    let pairs = [
        ("compression", compression),
        ("dilation", dilation),
        ("disk", text(model)),
        ("kernel", text("bookworm")),
        ("memory", vm::LEAST_MEMORY.into()),
        (PROCESSORS, processor::USUAL_PROCESSORS.parse::<u64>().unwrap_or(1).into()),
        ("user_mode", user_mode),
    ];
    Settings(pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

impl Executor for Sim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "a simulated machine with a simulated disk for every cell; the same numbers on every host, without root"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn machine(&self, plan: &Plan) -> Box<dyn Machine> {
        Box::new(machine::Simulations::new(plan, self.explanations.clone()))
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let remedy = "`pickfs list disks` shows the models that come with pickfs";
        let disk = settings.text("disk").and_then(|name| machine::disk(name).err());
        let disk = disk.map(|error| Objection::new("disk", format!("{error:#}"), remedy));
        let wrong = settings.texts("disks").into_iter().filter_map(|name| machine::disk(&whole_name(&name)).err());
        let disk = disk.into_iter().chain(wrong.map(|error| Objection::new("disks", format!("{error:#}"), remedy)));
        let processor = settings.0.get("dilation").and_then(|given| processor::dilation(given).err());
        let remedy = "give a number from 0.1 to 15, or let `pickfs sim calibrate FILE` write the file";
        let processor = processor.map(|error| Objection::new("dilation", format!("{error:#}"), remedy));
        let compression = settings.0.get("compression").and_then(|given| processor::compression(given).err());
        let remedy = "give a number from 1 to 100, or let `pickfs sim calibrate FILE` write the file";
        let compression = compression.map(|error| Objection::new("compression", format!("{error:#}"), remedy));
        let user_mode = settings.0.get("user_mode").and_then(|given| processor::user_mode(given).err());
        let user_mode = user_mode.map(|error| Objection::new("user_mode", format!("{error:#}"), "give 1 to 10"));
        let disk = disk.chain(objection_to_fill(settings)).chain(objection_to_flush(settings));
        disk.chain(processor)
            .chain(compression)
            .chain(user_mode)
            .chain(objection_to_memory(settings))
            .chain(settings.text("kernel").and_then(objection_to_kernel))
            .collect()
    }

    fn host_managed(&self, target: &Target) -> Vec<bool> {
        machine::host_managed(target)
    }

    fn disk_names(&self, disks: usize) -> Vec<PathBuf> {
        machine::target_disks(disks)
    }

    fn brings_its_own(&self) -> bool {
        true
    }

    fn simulates(&self) -> bool {
        true
    }

    fn needs(&self) -> Vec<Need> {
        let mut needs = vm::Vm.needs();
        needs.push(Need::Program { name: "qemu-img", package: "qemu-utils" });
        needs
    }
}

/// A guest with less does not boot.
const LEAST_BOOTED: u64 = 256 << 20;

/// QEMU takes the memory from this machine's as the guest uses it.
fn objection_to_memory(settings: &Settings) -> Option<Objection> {
    let memory = settings.number("memory")?;
    let here = procfs::Meminfo::current().map_or(u64::MAX, |here| here.mem_total);
    let why = match memory {
        LEAST_BOOTED.. if memory <= here => return None,
        LEAST_BOOTED.. => format!("this machine has {} itself", show_bytes(here as f64)),
        _ => format!("a guest needs {}", show_bytes(LEAST_BOOTED as f64)),
    };
    let message = format!("a guest cannot have {} of memory: {why}", show_bytes(memory as f64));
    Some(Objection::new("memory", message, "leave it out, which is 1 GiB, or give a size that is possible"))
}

/// Where no disk of the plan is flash, a fill would change nothing.
fn objection_to_fill(settings: &Settings) -> Option<Objection> {
    let remedy =
        "write `disk_fill = \"90%\"`, with a model of flash that has a `spare_percent`, such as sata-ssd or nvme";
    let fill = match machine::fill(settings) {
        Err(error) => return Some(Objection::new("disk_fill", format!("{error:#}"), remedy)),
        Ok(fill) => fill,
    };
    let names = disk_names(settings);
    let is_flash = |name: &String| machine::disk(&whole_name(name)).is_ok_and(|disk| disk.can_be_used());
    (fill.is_some() && !names.iter().any(is_flash))
        .then(|| Objection::new("disk_fill", format!("{} has no fill: it is no flash", names.join(", ")), remedy))
}

/// Of which at least one takes flushes.
fn objection_to_flush(settings: &Settings) -> Option<Objection> {
    let ns = settings.number(machine::FLUSH)?;
    let names = disk_names(settings);
    let with = |name: &String| machine::with_flush(machine::disk(&whole_name(name))?, Some(ns));
    if let Some(error) = names.iter().find_map(|name| with(name).and_then(|disk| disk.words(0, 0)).err()) {
        return Some(Objection::new(machine::FLUSH, format!("{error:#}"), "give a shorter time, such as \"3ms\""));
    }
    let takes = |name: &String| machine::disk(&whole_name(name)).is_ok_and(|disk| disk.takes_flushes());
    let why = || format!("{} takes no flush: what it has answered is durable", names.join(", "));
    (!names.iter().any(takes)).then(|| Objection::new(machine::FLUSH, why(), "leave it out, or name another disk"))
}

fn disk_names(settings: &Settings) -> Vec<String> {
    let names = settings.texts("disks");
    if names.is_empty() { vec![settings.text("disk").unwrap_or(DEFAULT_DISK).to_string()] } else { names }
}

/// The disk's driver is compiled with Debian's headers of the kernel; a kernel of the user's own
/// brings it.
fn objection_to_kernel(kernel: &str) -> Option<Objection> {
    let objection = vm::objection_to(kernel);
    if objection.is_some() || !vm::is_own(kernel) || Path::new(kernel).join(machine::DRIVER_FILE).is_file() {
        return objection;
    }
    let why = format!("there is no {kernel}/{}, the simulated disk's driver for this kernel", machine::DRIVER_FILE);
    Some(Objection::new(
        "kernel",
        why,
        "`pickfs disk driver FOLDER` writes its source; compile it with this kernel's headers",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_machine_has_all_that_a_plan_gives_it() {
        let usual = usual("nvme");
        let given = SETTINGS.iter().filter(|setting| setting.default.is_some()).map(|setting| setting.name);
        let lacking: Vec<&str> = given.filter(|name| !usual.0.contains_key(*name)).collect();
        assert_eq!(lacking, [""; 0]);
        assert_eq!(usual.number(PROCESSORS), Some(8));
    }
}
