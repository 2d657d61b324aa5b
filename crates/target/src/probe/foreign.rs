//! CPU of processes that have nothing to do with the measurement: the reason to doubt a run.
//!
//! A process is foreign if it is neither a kernel thread (those work for the file system) nor our
//! parent, which started the measurement, nor descended from that. Under init there is no such
//! parent, and our own descendants are the family.
//!
//! The sum is over processes that are there and their children that ended: what a process used goes
//! to its parent when that has waited for it, so the short-lived processes of a build are seen too.
//! A process that is never waited for takes its CPU out of the sum, so the difference is a lower
//! bound and may even be negative: the stage clamps it at zero. A daemon of the workload whose
//! parent died counts as foreign, unless the agent adopts orphans.

use super::cpu::tick_ns;
use super::{Probe, Reading, Subject, counter};
use pickfs_system::sys::process::{Parents, Stat, all_processes};

/// The kernel's PF_KTHREAD (include/linux/sched.h), as proc_pid_stat(5) shows it.
const KERNEL_THREAD: u64 = 0x0020_0000;
const INIT: i32 = 1;

pub(crate) const CPU_NS: &str = "foreign_cpu_ns";

pub(super) const PROBE: Probe = Probe {
    name: "foreign",
    about: "CPU of processes that do not belong to the measurement (a lower bound)",
    read,
    only_after_writing: false,
};

pub fn read(_subject: &Subject) -> Vec<Reading> {
    let processes: Vec<Stat> = all_processes().into_iter().filter_map(Stat::of).collect();
    let (own, parent) = (std::process::id() as i32, std::os::unix::process::parent_id() as i32);
    let head = if parent > INIT { parent } else { own };
    vec![counter(CPU_NS, (foreign_ticks(&processes, head) * tick_ns()) as f64)]
}

/// Ticks of all processes but kernel threads, `head` and its descendants.
fn foreign_ticks(processes: &[Stat], head: i32) -> u64 {
    let parents = Parents::among(processes);
    let descends = |stat: &Stat| parents.line(stat.pid).any(|pid| pid == head);
    let foreign = |stat: &&Stat| stat.flags & KERNEL_THREAD == 0 && !descends(stat);
    processes.iter().filter(foreign).map(|stat| stat.ticks + stat.children_ticks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: i32, parent: i32, flags: u64, ticks: u64) -> Stat {
        Stat { pid, name: "x".into(), state: 'S', parent, flags, ticks, children_ticks: 0, began: 0 }
    }

    #[test]
    fn who_ended_still_counts_at_its_parent() {
        let shell = stat(80, 1, 0, 5);
        let before = [shell.clone(), stat(90, 80, 0, 100)];
        // The first child ended after 40 ticks more, a second one lived and ended in between
        // with 7.
        let after = [Stat { children_ticks: 147, ..shell }];
        assert_eq!(foreign_ticks(&after, 50) - foreign_ticks(&before, 50), 47);
    }

    #[test]
    fn family_and_kernel_are_not_foreign() {
        let processes = [
            stat(1, 0, 0, 1),
            stat(2, 0, KERNEL_THREAD, 10),
            stat(3, 2, KERNEL_THREAD | 0x40, 100),
            stat(50, 1, 0, 1000),     // our parent
            stat(60, 50, 0, 10_000),  // we
            stat(70, 60, 0, 100_000), // the workload
            stat(80, 1, 0x40, 1_000_000),
            stat(90, 80, 0, 10_000_000),
        ];
        assert_eq!(foreign_ticks(&processes, 50), 11_000_001);
        assert_eq!(foreign_ticks(&processes, 60), 11_001_001);
    }

    #[test]
    fn a_ring_of_parents_ends() {
        assert_eq!(foreign_ticks(&[stat(5, 6, 0, 1), stat(6, 5, 0, 2)], 7), 3);
    }
}
