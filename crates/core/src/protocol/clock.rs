//! Whether a guest's clock goes as the host's: an emulated one can go many times too fast on a busy
//! machine, and nothing in the guest would show it.

use jiff::{SignedDuration, Timestamp};
use std::time::{Duration, Instant};

/// Share of the time between two words by which the clocks may differ, in addition to the time that
/// a word takes on its way.
const TOLERANCE: f64 = 0.02;
const ON_THE_WAY: Duration = Duration::from_millis(300);

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct ClockPair {
    guest: Timestamp,
    host: Instant,
}

impl ClockPair {
    /// Now on the host's, and what the guest says that it is there (RFC 3339); `None` if that is no
    /// time.
    pub fn now(guest: &str) -> Option<ClockPair> {
        Some(ClockPair { guest: guest.parse().ok()?, host: Instant::now() })
    }

    /// What is wrong with the guest's clock, if it went differently since.
    pub fn drift(self, later: ClockPair) -> Option<String> {
        drift_between(later.guest.duration_since(self.guest), later.host.duration_since(self.host))
    }
}

pub fn drift_between(guest: SignedDuration, host: Duration) -> Option<String> {
    let (guest, host) = (guest.as_secs_f64(), host.as_secs_f64());
    let much = (guest - host).abs() > ON_THE_WAY.as_secs_f64() + TOLERANCE * host;
    much.then(|| {
        format!(
            "the guest's clock counted {guest:.1} s while the host's counted {host:.1} s, so none of its times is one; \
             run it on a machine with less to do, or with KVM"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_goes_too_fast_or_too_slow_or_back_is_told() {
        let ms = SignedDuration::from_millis;
        for (guest, host, differs) in [
            (10_000, 10_000, false),
            (10_000, 10_450, false),
            (10_000, 10_600, true),
            (10_600, 10_000, true),
            (200, 1, false),
            (1000, 100, true),
            (-5000, 10, true),
        ] {
            assert_eq!(drift_between(ms(guest), Duration::from_millis(host)).is_some(), differs, "{guest} {host}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        assert!(ClockPair::now("2026-11-21T12:00:00.5Z").is_some());
        assert!(ClockPair::now("noon").is_none());
    }
}
