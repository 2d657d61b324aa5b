//! Busy CPU of the whole system, kernel threads included: that is where file systems compress, checksum and write
//! back, which no program's own CPU time shows.
//!
//! Busy is what is neither idle nor stolen, of all the time that the CPUs were there. The kernel notes when a CPU goes to
//! sleep and when it wakes up, and shows that in clock ticks (10 ms). The ticks of busy time in /proc/stat would miss
//! work between two ticks, and a guest whose host is slow gets few of them: there all of the system was less than a part of it.

use super::{Probe, Reading, Subject, counter};
use procfs::{Current, CurrentSI, KernelStats, Uptime};

pub(crate) struct Cpu;

/// What simulated processors have done beside the one that the kernel knows (`processors.c` of the executor `sim`).
const BESIDE: &str = "/sys/module/simdisk/parameters/beside_ns";

pub(crate) const SYSTEM_WIDE_NS: &str = "cpu_system_wide_ns";

impl Probe for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn about(&self) -> &'static str {
        "busy CPU of the whole system, and CPU that a hypervisor gave to others, from /proc/stat"
    }

    fn read(&self, _subject: &Subject) -> Vec<Reading> {
        let (Ok(stat), Ok(up)) = (KernelStats::current(), Uptime::current()) else { return Vec::new() };
        let (busy, stolen) = used(&stat, up.uptime);
        let beside = std::fs::read_to_string(BESIDE).ok().and_then(|text| text.trim().parse::<f64>().ok());
        let busy = busy + beside.unwrap_or_default();
        vec![counter(SYSTEM_WIDE_NS, busy), counter("cpu_steal_ns", stolen)]
    }
}

/// Nanoseconds of a clock tick, which is what the kernel shows CPU times in.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / procfs::ticks_per_second().max(1)
}

/// Nanoseconds that CPUs were busy, and that were stolen, `up` seconds after the boot. The first
/// has no zero.
fn used(stat: &KernelStats, up: f64) -> (f64, f64) {
    let all = &stat.total;
    let ns = |ticks: u64| (ticks * tick_ns()) as f64;
    let stolen = ns(all.steal.unwrap_or(0));
    let there = (up * 1e9).round() * stat.cpu_time.len() as f64;
    (there - ns(all.idle + all.iowait.unwrap_or(0)) - stolen, stolen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::sys::process::own_usage;
    use procfs::FromBufReadSI;

    /// Two CPUs, `up` seconds after the boot; the others are in hundredths of a second.
    fn used_at(up: f64, user: u64, idle: u64, waiting: u64, stolen: u64) -> (f64, f64) {
        let text = format!(
            "cpu  {user} 0 0 {idle} {waiting} 0 0 {stolen} 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1 1 1\n\
             ctxt 1\nbtime 1\nprocesses 1\n"
        );
        let stat = KernelStats::from_buf_read(text.as_bytes(), procfs::current_system_info()).unwrap();
        used(&stat, up)
    }

    #[test]
    fn lost_ticks_are_busy_all_the_same_and_waiting_and_stolen_time_are_not() {
        let difference =
            |(busy, stolen): (f64, f64), (before, before_stolen): (f64, f64)| [busy - before, stolen - before_stolen];
        let before = used_at(100.0, 700, 12_000, 50, 0);
        // Ten seconds of two CPUs, of which six idle, one waiting for a disk and two stolen; the kernel saw one tick.
        let after = used_at(110.0, 701, 12_600, 150, 200);
        assert_eq!(difference(after, before), [11e9, 2e9]);
    }

    #[test]
    fn the_system_is_at_least_as_busy_as_we_are() {
        let used = || own_usage().user_ns + own_usage().system_ns;
        let (system, own) = (Cpu.read(&Subject::default())[0].value, used());
        while used() < own + 300_000_000 {
            std::hint::black_box(own_usage());
        }
        let seen = Cpu.read(&Subject::default())[0].value - system;
        assert!(seen >= 200e6, "{seen} ns of at least 300e6");
    }
}
