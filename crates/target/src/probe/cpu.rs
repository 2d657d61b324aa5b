//! Busy CPU of the whole system, kernel threads included: that is where file systems compress,
//! checksum and write back, which no program's own CPU time shows.
//!
//! Busy is what is neither idle nor stolen, of all the time that the CPUs were there. The kernel
//! notes when a CPU goes to sleep and when it wakes up. /proc/timer_list shows that in nanoseconds,
//! to root; /proc/stat shows it in clock ticks (10 ms), which would be most of a short phase. The
//! ticks of busy time in /proc/stat would miss work between two ticks, and a guest whose host is
//! slow gets few of them: there all of the system was less than a part of it.

use super::{Probe, Reading, Subject, counter};
use pickfs_system::sys::clock::monotonic;
use procfs::{CpuTime, CurrentSI, KernelStats};

/// What simulated processors have done apart from the one that the kernel knows (`processors.c` of
/// the executor `sim`).
const BESIDE: &str = "/sys/module/simdisk/parameters/beside_ns";

pub(crate) const SYSTEM_WIDE_NS: &str = "cpu_system_wide_ns";

pub(super) const PROBE: Probe = Probe {
    name: "cpu",
    about: "busy CPU of the whole system, and CPU that a hypervisor gave to others, from /proc/timer_list and /proc/stat",
    read,
    only_after_writing: false,
};

fn read(_subject: &Subject) -> Vec<Reading> {
    let timers = std::fs::read_to_string("/proc/timer_list").unwrap_or_default();
    let Some((busy, stolen)) = used_by_now(&timers) else { return Vec::new() };
    let beside = std::fs::read_to_string(BESIDE).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let busy = busy + beside.unwrap_or_default();
    vec![counter(SYSTEM_WIDE_NS, busy), counter("cpu_steal_ns", stolen)]
}

/// Nanoseconds of a clock tick, which is what the kernel shows CPU times in.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / procfs::ticks_per_second().max(1)
}

fn used_by_now(timers: &str) -> Option<(f64, f64)> {
    Some(used(&KernelStats::current().ok()?, monotonic(), timers))
}

/// Nanoseconds that CPUs were busy, and that were stolen; `timers` is /proc/timer_list, or empty:
/// then `now` counts, by the same clock, which stands still as idle CPUs do while the machine is
/// suspended. The first has no zero.
fn used(stat: &KernelStats, now: u64, timers: &str) -> (f64, f64) {
    let all = &stat.total;
    let stolen = ns(all.steal.unwrap_or(0));
    let idle = |cpu: &CpuTime| ns(cpu.idle + cpu.iowait.unwrap_or(0));
    let each: Vec<f64> = stat.cpu_time.iter().map(idle).collect();
    let in_ticks = || (now as f64 * each.len() as f64, idle(all));
    let (there, idle) = exact(timers, &each).unwrap_or_else(in_ticks);
    (there - idle - stolen, stolen)
}

fn ns(ticks: u64) -> f64 {
    (ticks * tick_ns()) as f64
}

/// Nanoseconds that the CPUs were there, and of these idle, from the text of /proc/timer_list;
/// nothing if it has other CPUs than `idle`, each CPU's idle nanoseconds by /proc/stat. The list
/// counts a sleep when it ends, and does not show whether one goes on: the sleep that began last is
/// added where that comes nearer to /proc/stat, which counts it.
fn exact(timers: &str, idle: &[f64]) -> Option<(f64, f64)> {
    let number = |line: &str, name: &str| {
        line.strip_prefix(name)?.trim_start_matches([' ', ':']).split(' ').next()?.parse().ok()
    };
    let now: f64 = timers.lines().find_map(|line| number(line, "now at"))?;
    let each: Vec<&str> = timers.split("\ncpu: ").skip(1).collect();
    let sum = each.iter().zip(idle).map(|(cpu, shown)| {
        let of = |name| cpu.lines().find_map(|line| number(line.trim_start(), name));
        let ended: f64 = of(".idle_sleeptime")? + of(".iowait_sleeptime")?;
        let now_too = ended + (now - of(".idle_entrytime")?).max(0.0);
        Some(if (now_too - shown).abs() < (ended - shown).abs() { now_too } else { ended })
    });
    let sum = sum.sum::<Option<f64>>()?;
    (each.len() == idle.len()).then_some((now * idle.len() as f64, sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::sys::process::own_usage;
    use procfs::FromBufReadSI;

    /// Two CPUs, `now` in nanoseconds; the others are in hundredths of a second.
    fn used_at(now: u64, user: u64, idle: u64, waiting: u64, stolen: u64) -> (f64, f64) {
        let text = format!(
            "cpu  {user} 0 0 {idle} {waiting} 0 0 {stolen} 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1 1 1\n\
             ctxt 1\nbtime 1\nprocesses 1\n"
        );
        let stat = KernelStats::from_buf_read(text.as_bytes(), procfs::current_system_info()).unwrap();
        used(&stat, now, "")
    }

    #[test]
    fn sleeps_are_counted_in_nanoseconds_whether_they_ended_or_go_on() {
        let cpu = |number: u32, entry: u64, idle: u64| {
            format!(
                "cpu: {number}\n clock 0:\n  .idle_entrytime : {entry} nsecs\n  .idle_sleeptime : {idle} nsecs\n  \
                 .iowait_sleeptime: 1000000 nsecs\n\n"
            )
        };
        let list = |first: u64, second: u64| {
            let cpus = cpu(0, first, 40_123_456_789) + &cpu(1, second, 90_000_000_000);
            format!("Timer List Version: v0.10\nnow at 100000000123 nsecs\n\n{cpus}\nTick Device: mode:     1\n")
        };
        // The first woke up 3 ms ago, and the second sleeps since 5 s.
        let timers = list(99_997_000_123, 95_000_000_123);
        assert_eq!(exact(&timers, &[40.12e9, 95.0e9]), Some((200_000_000_246.0, 135_125_456_789.0)));
        // Both have been busy since then.
        assert_eq!(exact(&timers, &[40.12e9, 90.0e9]), Some((200_000_000_246.0, 130_125_456_789.0)));
        for (text, idle) in
            [(timers.as_str(), &[40e9][..]), (&timers, &[1e9, 1e9, 1e9]), ("", &[1e9]), ("now at 5 nsecs", &[1e9])]
        {
            assert_eq!(exact(text, idle), None);
        }
    }

    #[test]
    fn lost_ticks_are_busy_all_the_same_and_waiting_and_stolen_time_are_not() {
        let difference =
            |(busy, stolen): (f64, f64), (before, before_stolen): (f64, f64)| [busy - before, stolen - before_stolen];
        let before = used_at(100_000_000_000, 700, 12_000, 50, 0);
        // 10.004 seconds of two CPUs, of which six idle, one waiting for a disk and two stolen; the
        // kernel saw one tick.
        let after = used_at(110_004_000_000, 701, 12_600, 150, 200);
        assert_eq!(difference(after, before), [11.008e9, 2e9]);
    }

    /// Idle and stolen time are whole ticks then, and a clock of ticks would be off by up to one
    /// for each CPU.
    #[test]
    fn without_root_the_time_that_cpus_were_there_is_finer_than_a_tick() {
        let is_finer = |_| used_by_now("").is_some_and(|(busy, _)| busy % tick_ns() as f64 != 0.0);
        assert!((0..100).any(is_finer));
    }

    #[test]
    fn the_system_is_at_least_as_busy_as_we_are() {
        let used = || own_usage().user_ns + own_usage().system_ns;
        let (system, own) = (read(&Subject::default())[0].value, used());
        while used() < own + 300_000_000 {
            std::hint::black_box(own_usage());
        }
        let seen = read(&Subject::default())[0].value - system;
        assert!(seen >= 200e6, "{seen} ns of at least 300e6");
    }
}
