//! What the disks do just now, and what used the processors in the last cell.

use pickfs_core::journal::Folded;
use pickfs_core::metric::{CPU_FOREIGN_NS, CPU_GROSS_NS};
use std::collections::BTreeMap;
use std::time::Instant;

/// The busiest are shown.
const MOST_DEVICES: usize = 3;
const SECTOR: u64 = 512;
const SHORT_NS: f64 = 1e8;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceRate {
    pub name: String,
    /// Bytes a second.
    pub read: f64,
    pub written: f64,
}

/// Sectors read and written by device, when last seen.
#[derive(Default)]
pub(super) struct Machine {
    seen: Option<(Instant, BTreeMap<String, [u64; 2]>)>,
}

impl Machine {
    /// Since the last call, the busiest first; none at the first call.
    pub(super) fn rates(&mut self) -> Vec<DeviceRate> {
        let stats = procfs::diskstats().unwrap_or_default();
        let now = stats.into_iter().map(|stat| (stat.name, [stat.sectors_read, stat.sectors_written])).collect();
        let before = self.seen.replace((Instant::now(), now));
        let (Some((then, before)), Some((at, now))) = (before, &self.seen) else { return Vec::new() };
        rates(&before, now, at.duration_since(then).as_secs_f64())
    }
}

fn rates(before: &BTreeMap<String, [u64; 2]>, now: &BTreeMap<String, [u64; 2]>, seconds: f64) -> Vec<DeviceRate> {
    let rate = |(name, after): (&String, &[u64; 2])| {
        let before = before.get(name)?;
        let rate = |at: usize| after[at].saturating_sub(before[at]) as f64 * SECTOR as f64 / seconds.max(1e-3);
        Some(DeviceRate { name: name.clone(), read: rate(0), written: rate(1) })
    };
    let mut rates: Vec<DeviceRate> =
        now.iter().filter_map(rate).filter(|rate| rate.read + rate.written > 0.0).collect();
    rates.sort_by(|a, b| (b.read + b.written).total_cmp(&(a.read + a.written)));
    rates.truncate(MOST_DEVICES);
    rates
}

/// Shares of one processor's time over the phases of a cell: 2.0 are two whole processors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProcessorShares {
    pub work: f64,
    /// The kernel's workers, and interrupts.
    pub kernel: f64,
    pub others: f64,
}

impl ProcessorShares {
    /// `None` where its phases have no such counts, or were so short that the kernel's ticks of 10
    /// ms say nothing.
    pub(super) fn of_cell(folded: &Folded, cell: &str) -> Option<ProcessorShares> {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (_, metric, value) in folded.samples(folded.find_cell(cell)?) {
            *sums.entry(metric).or_default() += value;
        }
        let [time, work, gross, others] =
            ["time_ns", "cpu_workload_ns", CPU_GROSS_NS, CPU_FOREIGN_NS].map(|name| sums.get(name).copied());
        let (time, work, others) = (time.filter(|ns| *ns > SHORT_NS)?, work?, others.unwrap_or(0.0));
        let kernel = (gross? - work - others).max(0.0);
        Some(ProcessorShares { work: work / time, kernel: kernel / time, others: others / time })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_what_went_since_and_the_busiest_come_first() {
        let seen = |rows: &[(&str, [u64; 2])]| rows.iter().map(|(name, counts)| (name.to_string(), *counts)).collect();
        let before = seen(&[("sda", [10, 0]), ("sdb", [0, 0]), ("sdc", [5, 5])]);
        let now = seen(&[("new", [9, 9]), ("sda", [12, 0]), ("sdb", [0, 100]), ("sdc", [5, 5])]);
        let found = rates(&before, &now, 2.0);
        let wanted = [("sdb", 0.0, 25600.0), ("sda", 512.0, 0.0)].map(|(name, read, written)| DeviceRate {
            name: name.into(),
            read,
            written,
        });
        assert_eq!(found, wanted);
    }
}
