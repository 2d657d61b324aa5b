//! What kind of disk a run was on, from the hardware and the fastest of several readings.

use super::model::TargetInfo;
use super::plain::plain;
use pickfs_core::journal::{BackingHardware, Folded, RawSpeed};
use std::collections::BTreeMap;

/// Slower than this at one random read, an arm moves: the fastest disks that turn need about 3 ms.
const SEEK_NS: f64 = 2e6;
/// No flash is read faster over any bus; memory is.
const MEMORY_NS: f64 = 8e3;
/// Bytes a second: SATA's 6 Gbit/s carry at most 600 MB/s.
const SATA: f64 = 620e6;

/// A backing whose speed was read before all cells, or before a target's last one.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredDisk {
    pub backing: String,
    pub class: DiskClass,
    /// Empty where it has none.
    pub model: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskClass {
    /// The backing is the machine's memory.
    Memory,
    AsFastAsMemory,
    Seeking,
    Sata,
    FasterThanSata,
    Unknown,
}

/// By the names of the backings.
pub(crate) fn measured(folded: &Folded, targets: &[TargetInfo]) -> Vec<MeasuredDisk> {
    let of_run = folded.hardware();
    let of_targets = targets.iter().flat_map(|target| &target.hardware.backings);
    let mut all: BTreeMap<&str, &BackingHardware> = BTreeMap::new();
    all.extend(of_run.backings.iter().chain(of_targets).map(|one| (one.backing.as_str(), one)));
    all.into_values().filter_map(of_backing).collect()
}

fn of_backing(found: &BackingHardware) -> Option<MeasuredDisk> {
    let speed = found.raw_speed?;
    let disk = found.disk();
    let class = match found.backing.as_str() {
        "memory" => DiskClass::Memory,
        _ => class(speed, disk.and_then(|disk| disk.rotational)),
    };
    let model = disk.map(|disk| plain(&disk.model)).unwrap_or_default();
    Some(MeasuredDisk { backing: plain(&found.backing), class, model })
}

/// What does not turn does not seek, however busy the machine was. Virtual disks call themselves
/// turning, so that alone proves nothing.
fn class(speed: RawSpeed, rotational: Option<bool>) -> DiskClass {
    match (speed.random_read_ns, speed.buffered_bytes_per_second) {
        (Some(random), _) if random >= SEEK_NS && rotational != Some(false) => DiskClass::Seeking,
        (Some(random), _) if random <= MEMORY_NS => DiskClass::AsFastAsMemory,
        (Some(_), Some(onward)) if onward <= SATA => DiskClass::Sata,
        (Some(_), Some(_)) => DiskClass::FasterThanSata,
        _ => DiskClass::Unknown,
    }
}
