//! How long a machine may take to boot, to begin its cell, and to do it.

use crate::executor::Patience;
use pickfs_system::units::show_duration;
use std::time::{Duration, Instant};

/// How far a machine has come, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) enum BootState {
    Started(Instant),
    Spoken(Instant),
    Begun(Instant),
}

impl BootState {
    /// Why the machine is to be ended, if it has been there for too long. `all` is since its start.
    /// Time in which it `starved` of processors is not held against one that boots.
    pub(super) fn overdue(
        self,
        now: Instant,
        patience: Patience,
        limit: Option<Duration>,
        all: Duration,
        starved: impl Fn() -> Duration,
    ) -> Option<String> {
        let shown = |duration: Duration| show_duration(duration.as_nanos() as f64);
        let late = |at, patience: Duration, what: &str| {
            let taken = now.duration_since(at);
            let late = taken > patience && taken.saturating_sub(starved()) > patience;
            late.then(|| format!("{what} within {}; killed", shown(patience)))
        };
        match (self, patience.first_word, patience.ready) {
            (BootState::Started(at), Some(patience), _) => late(at, patience, "the machine did not boot"),
            (BootState::Spoken(at), _, Some(patience)) => late(at, patience, "the agent did not begin its cell"),
            (state, first, ready) => {
                let limit = limit?;
                let taken = match state {
                    BootState::Begun(at) if first.is_some() || ready.is_some() => now.duration_since(at),
                    _ => all,
                };
                let why = || format!("the time limit of {} passed and the agent did not answer; killed", shown(limit));
                (taken > limit + patience.grace).then(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stretch_has_its_own_patience() {
        let (limit, then) = (Duration::from_secs(60), Instant::now());
        let seconds = Duration::from_secs;
        let patience = Patience { first_word: Some(seconds(180)), ready: Some(seconds(170)), grace: seconds(30) };
        let rows = [
            (BootState::Started(then), seconds(180), "did not boot within"),
            (BootState::Spoken(then), seconds(170), "did not begin its cell within"),
            (BootState::Begun(then), limit + seconds(30), "the time limit of 60.0 s passed"),
        ];
        for (state, length, says) in rows {
            let overdue = |now, starved| state.overdue(now, patience, Some(limit), seconds(10_000), || starved);
            assert_eq!(overdue(then + length, Duration::ZERO), None);
            let late = then + length + Duration::from_millis(50);
            let why = overdue(late, Duration::ZERO).unwrap();
            assert!(why.contains(says), "{why}");
            let boots = !matches!(state, BootState::Begun(_));
            assert_eq!(overdue(late, Duration::from_millis(50)).is_none(), boots, "a cell has its limit in any case");
            assert!(overdue(late + length, length - Duration::from_millis(50)).is_some());
        }
        let none = || Duration::ZERO;
        let here = |all| BootState::Spoken(then).overdue(then, Patience::default(), Some(limit), all, none);
        assert!(here(seconds(70)).is_none() && here(seconds(71)).is_some());
        assert_eq!(BootState::Begun(then).overdue(then, Patience::default(), None, seconds(10_000), none), None);
    }
}
