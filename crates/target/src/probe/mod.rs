//! What is read around a phase, one file a probe, in one sorted list.
//!
//! A probe reads counters or states of the machine and gives them names that end in their unit. It
//! must not know which phase runs, nor write anything; the stage takes the differences.
//!
//! Must not know: `agent`, `stage`, `workload`.

pub mod compression;
pub(crate) mod cpu;
pub mod device;
pub(crate) mod flash;
pub mod foreign;
pub(crate) mod layout;
pub(crate) mod memory;
pub(crate) mod pressure;
mod saved;
pub mod shares;
pub mod space;
pub(crate) mod swap;
pub(crate) mod zram;

use std::path::PathBuf;

/// Every probe, sorted by name.
pub const ALL: &[Probe] = &[
    compression::PROBE,
    cpu::PROBE,
    device::PROBE,
    flash::PROBE,
    foreign::PROBE,
    layout::PROBE,
    memory::PROBE,
    pressure::PROBE,
    space::PROBE,
    swap::PROBE,
    zram::PROBE,
];

/// What a phase is measured on.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// `major:minor` of the device under the file system; `None` where there is none (tmpfs).
    pub device: Option<(u32, u32)>,
    /// The other devices of a file system on several.
    pub beside: Vec<(u32, u32)>,
    /// `major:minor` of the disk below a loop device.
    pub below: Option<(u32, u32)>,
    pub mount_point: PathBuf,
    /// As mountinfo spells it.
    pub filesystem: String,
}

impl Subject {
    /// All that the file system lies on.
    pub(crate) fn devices(&self) -> Vec<(u32, u32)> {
        self.device.iter().chain(&self.beside).copied().collect()
    }
}

/// How a reading becomes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counts up: the sample is after minus before.
    Counter,
    /// The sample is what is found after the phase.
    State,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub metric: String,
    pub kind: Kind,
    pub value: f64,
}

/// Something that can be read before and after a phase.
pub struct Probe {
    pub name: &'static str,
    /// One sentence for `pickfs list probes`.
    pub about: &'static str,
    /// Empty where the machine does not offer it.
    pub read: fn(&Subject) -> Vec<Reading>,
    /// Read only after phases that wrote, as it walks the tree (outside the timer).
    pub only_after_writing: bool,
}

/// A counter's reading.
pub(crate) fn counter(metric: impl Into<String>, value: f64) -> Reading {
    Reading { metric: metric.into(), kind: Kind::Counter, value }
}

/// A state's reading.
pub(crate) fn state(metric: impl Into<String>, value: f64) -> Reading {
    Reading { metric: metric.into(), kind: Kind::State, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_list_is_sorted_and_described() {
        assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
        assert!(ALL.iter().all(|probe| !probe.about.ends_with('.') && !probe.about.contains('\n')));
    }

    #[test]
    fn metrics_are_finite_and_named_once() {
        let subject = Subject { mount_point: std::env::temp_dir().join("pickfs-nowhere"), ..Subject::default() };
        let readings: Vec<Reading> = ALL.iter().flat_map(|probe| (probe.read)(&subject)).collect();
        let names: BTreeSet<&str> = readings.iter().map(|reading| reading.metric.as_str()).collect();
        assert_eq!(names.len(), readings.len());
        assert!(readings.iter().all(|reading| reading.value.is_finite() && reading.value >= 0.0), "{readings:?}");
    }
}
