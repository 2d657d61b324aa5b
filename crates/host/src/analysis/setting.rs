//! What the first lines of a report name: the disks below the targets, and how much data a work
//! puts on them.

use super::plain::plain;
use super::series::ObservedWork;
use pickfs_core::journal::Folded;
use pickfs_core::plan::{Plan, Target};
use pickfs_system::units::show_duration;

/// A backing of one or several targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Name of the backing: "image", "memory", "device", "directory".
    pub backing: String,
    /// Size of an image, where the plan has one.
    pub bytes: Option<u64>,
    /// Folder or device; empty where the plan has none.
    pub path: String,
    /// The model that simulates it.
    pub model: Option<String>,
    /// The kernel's name of the drive below an image or a directory, if the run found it.
    pub drive: Option<String>,
}

/// Medians of a target that has both, of what lay on it after the phases that write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Data {
    /// What the plan names: a trace, a profile, or the last word of a path. Empty for the usual
    /// one.
    pub name: String,
    pub files: Option<f64>,
    pub bytes: Option<f64>,
}

/// Each backing of the plan once, in the order of the targets.
pub(crate) fn disks(plan: &Plan, folded: &Folded) -> Vec<Disk> {
    let (mut disks, hardware): (Vec<Disk>, _) = (Vec::new(), folded.hardware());
    for target in &plan.targets {
        let (name, settings) = (&target.backing.name, &target.backing.settings);
        let path = ["path", "dir"].into_iter().find_map(|key| settings.text(key)).unwrap_or_default();
        let below = hardware.backing(name).and_then(|backing| backing.disk_below.as_ref());
        let drive = below.map(|disk| plain(&disk.device));
        let model = model(target);
        let disk = Disk { backing: plain(name), bytes: settings.number("size"), path: plain(path), model, drive };
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    disks
}

/// What simulates a target's disks, if anything does: "nvme", "nvme with a flush of 3 ms".
pub(crate) fn model(target: &Target) -> Option<String> {
    let flush = target.machine.number("disk_flush").map(|ns| format!(" with a flush of {}", show_duration(ns as f64)));
    named_model(target).map(|model| model + &flush.unwrap_or_default())
}

fn named_model(target: &Target) -> Option<String> {
    match &target.machine.texts("disks")[..] {
        [] => target.machine.text("disk").map(plain),
        names => Some(plain(&names.join(" and "))),
    }
}

/// The kernels that cells ran on where guests have their own; empty where the host's did it all.
pub(crate) fn kernels(folded: &Folded) -> Vec<String> {
    let mut kernels: Vec<String> = folded
        .cells
        .iter()
        .filter_map(|cell| cell.provenance.facts.get("kernel"))
        .map(|kernel| plain(kernel))
        .collect();
    kernels.sort();
    kernels.dedup();
    kernels
}

/// Settings that say which data a work has.
const NAMED_BY: [&str; 4] = ["trace", "source", "job", "like"];

pub(crate) fn data(plan: &Plan, work: &ObservedWork) -> Data {
    // The most that lies there at the end of a judged phase: an image is made empty before anything
    // is in it, and a folder of many files comes after few large ones.
    let median_of = |phase: &str, metric: &str| {
        let rounds = (0..work.cells.len()).flat_map(|at| work.series(at, phase, metric));
        pickfs_stats::median(&rounds.map(|(_, value)| value).collect::<Vec<f64>>())
    };
    let most = |metric: &str, judged: bool| {
        let phases = work.phases().into_iter().filter(|phase| !judged || work.judges(phase));
        phases.filter_map(|phase| median_of(phase, metric)).max_by(f64::total_cmp)
    };
    let known = |metric: &str| most(metric, true).or_else(|| most(metric, false)).filter(|value| *value > 0.0);
    let planned = plan.works.iter().find(|planned| planned.name == work.name);
    let given = |name: &str| planned?.workload.settings.text(name);
    let last_word = |text: &str| text.trim_end_matches('/').rsplit('/').next().map(plain);
    let name = NAMED_BY.into_iter().find_map(given).and_then(last_word).unwrap_or_default();
    Data { name, files: known("space_files"), bytes: known("space_apparent_bytes") }
}
