//! A clock for single operations that costs next to nothing: the processor's own count, where the
//! kernel keeps its time by that too, and the kernel's monotonic clock everywhere else.

#![expect(clippy::disallowed_methods, reason = "compares the clocks of kernel and processor")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long the processor's count is held against the kernel's clock: 4 ms, so that the 50 ns that
/// reading both may take apart are one part in 80,000.
const COMPARED: Duration = Duration::from_millis(4);

/// Counts ticks; one look is a few nanoseconds, where `Instant::now` takes 20 and more.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// By the processor's count; else a tick is a nanosecond.
    counts: bool,
    /// Nanoseconds of 2^32 ticks.
    scale: u64,
}

impl Clock {
    /// That of this machine; the first call takes 4 ms, to find how fast it ticks.
    pub fn of_machine() -> Clock {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(
            || if kernel_trusts_the_count() { compared() } else { Clock { counts: false, scale: 1 << 32 } },
        )
    }

    /// In ticks since some time in the past.
    #[inline(always)]
    pub fn now(self) -> u64 {
        if self.counts { count() } else { monotonic() }
    }

    #[inline(always)]
    pub fn nanoseconds(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }
}

/// Has the calling thread use so much of a processor's time, whatever else the machine does.
/// Returns how much it was: a little more.
pub fn use_processor(ns: u64) -> u64 {
    const LOOPS: u32 = 16;
    let begun = thread_ns();
    loop {
        let used = thread_ns().saturating_sub(begun);
        if used >= ns {
            return used;
        }
        (0..LOOPS).for_each(|_| std::hint::spin_loop());
    }
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The kernel has checked that it ticks evenly and alike on all processors, and goes on checking.
fn kernel_trusts_the_count() -> bool {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64") && std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc")
}

fn compared() -> Clock {
    let (begun, from) = (Instant::now(), count());
    while begun.elapsed() < COMPARED {
        std::hint::spin_loop();
    }
    let (ticks, ns) = (count().wrapping_sub(from), begun.elapsed().as_nanos());
    Clock { counts: true, scale: ((ns << 32) / u128::from(ticks.max(1))) as u64 }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn count() -> u64 {
    // SAFETY: every x86_64 has the instruction; where a kernel forbids it, it is not the kernel's
    // clock source either.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn count() -> u64 {
    monotonic()
}

/// Nanoseconds by the kernel's monotonic clock, which counts from its start.
pub fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both clocks span the same time, whichever it is that ticks.
    #[test]
    fn it_agrees_with_the_kernels_clock() {
        for clock in [Clock::of_machine(), Clock { counts: false, scale: 1 << 32 }] {
            let (before, from) = (Instant::now(), clock.now());
            let inner = Instant::now();
            std::thread::sleep(Duration::from_millis(20));
            let least = inner.elapsed().as_nanos() as f64;
            let took = clock.nanoseconds(clock.now() - from) as f64;
            let most = before.elapsed().as_nanos() as f64;
            assert!(took >= least * 0.999 && took <= most * 1.001, "{took} ns, not between {least} and {most}");
        }
    }

    #[test]
    fn ticks_become_nanoseconds_without_overflow() {
        let clock = Clock { counts: true, scale: 1 << 31 };
        assert_eq!([0, 1, 2, 3_000_000_000].map(|ticks| clock.nanoseconds(ticks)), [0, 0, 1, 1_500_000_000]);
        assert_eq!(clock.nanoseconds(u64::MAX), u64::MAX >> 1);
    }
}
