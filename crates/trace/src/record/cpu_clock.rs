//! CPU time of another thread, so that think time can be distinguished from time spent waiting, and
//! from the recorder's own.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Reads a thread's CPU time; 0 where the kernel does not count it (CONFIG_SCHED_INFO).
#[derive(Debug)]
pub struct CpuClock(Option<File>);

impl CpuClock {
    pub(crate) fn of(tid: i32) -> CpuClock {
        CpuClock(File::open(format!("/proc/{tid}/schedstat")).ok())
    }

    /// The clock of a thread that is not there: always 0.
    pub(crate) fn none() -> CpuClock {
        CpuClock(None)
    }

    /// In nanoseconds, exact while the thread stands still: the first number of
    /// /proc/PID/schedstat.
    pub(crate) fn now(&self) -> u64 {
        let mut text = [0; 64];
        let Some(length) = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()) else { return 0 };
        let digits = text[..length].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |value: u64, digit| value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
    }
}
