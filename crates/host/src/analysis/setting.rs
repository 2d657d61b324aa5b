//! What the first lines of a report name: the disks below the targets, and how much data a work
//! puts on them.

use super::plain::plain;
use super::series::ObservedWork;
use pickfs_core::journal::Folded;
use pickfs_core::metric::Combine;
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
    let listed = target.machine.0.get("disks").and_then(|given| given.as_array());
    let listed = listed.map(|names| names.iter().filter_map(|name| name.as_str()).collect::<Vec<_>>());
    let listed = listed.filter(|names| !names.is_empty()).map(|names| plain(&names.join(" and ")));
    listed.or_else(|| target.machine.text("disk").map(plain))
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
    // A phase that is not judged may come before the data: that of an image that is made empty.
    let first_judged = |metric: &str| {
        let rounds = |phase: &str| (0..work.cells.len()).map(|at| work.series(at, phase, metric)).collect::<Vec<_>>();
        let phases = work.phases().into_iter().filter(|phase| work.judges(phase));
        phases.map(rounds).find(|series| series.iter().any(|rounds| !rounds.is_empty()))
    };
    let median = |metric: &str| {
        let series = first_judged(metric).unwrap_or_else(|| work.over_phases(metric, Combine::First));
        let values: Vec<f64> = series.iter().flatten().map(|(_, value)| *value).collect();
        pickfs_stats::median(&values).filter(|value| *value > 0.0)
    };
    let planned = plan.works.iter().find(|planned| planned.name == work.name);
    let given = |name: &str| planned?.workload.settings.text(name);
    let last_word = |text: &str| text.trim_end_matches('/').rsplit('/').next().map(plain);
    let name = NAMED_BY.into_iter().find_map(given).and_then(last_word).unwrap_or_default();
    Data { name, files: median("space_files"), bytes: median("space_apparent_bytes") }
}
