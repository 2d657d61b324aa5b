//! Busy CPU of the whole system, kernel threads included: that is where file systems compress, checksum and write
//! back, which no program's own CPU time shows.
//!
//! /proc/stat counts in clock ticks (10 ms) per CPU. On kernels that account by ticks, work that always runs between
//! two ticks is missed; over a phase of seconds the doubt is a tick per CPU.

use super::{Probe, Reading, Subject, counter};
use procfs::{CpuTime, CurrentSI};

pub struct Cpu;

impl Probe for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn about(&self) -> &'static str {
        "busy CPU of the whole system, and CPU that a hypervisor gave to others, from /proc/stat"
    }

    fn read(&self, _subject: &Subject) -> Vec<Reading> {
        let Ok(stat) = procfs::KernelStats::current() else { return Vec::new() };
        let (busy, stolen) = ticks(&stat.total);
        let ns = |ticks: u64| (ticks * tick_ns()) as f64;
        vec![counter("cpu_system_wide_ns", ns(busy)), counter("cpu_steal_ns", ns(stolen))]
    }
}

/// Nanoseconds of a clock tick, which is what the kernel shows CPU times in.
pub fn tick_ns() -> u64 {
    1_000_000_000 / procfs::ticks_per_second().max(1)
}

/// Ticks that CPUs were busy, and that were stolen. Time of guests is in `user` and `nice` already (proc_stat(5)).
fn ticks(cpu: &CpuTime) -> (u64, u64) {
    let interrupts = cpu.irq.unwrap_or(0) + cpu.softirq.unwrap_or(0);
    (cpu.user + cpu.nice + cpu.system + interrupts, cpu.steal.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process::own_usage;
    use procfs::FromBufReadSI;

    #[test]
    fn guests_are_not_counted_twice_and_waiting_is_not_busy() {
        let text = "cpu  100 20 3 9999 8888 4 5 60 70 80\ncpu0 1 1 1 1 1 1 1 1 1 1\nctxt 1\nbtime 1\nprocesses 1\n";
        let stat = procfs::KernelStats::from_buf_read(text.as_bytes(), procfs::current_system_info()).unwrap();
        assert_eq!(ticks(&stat.total), (132, 60));
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
