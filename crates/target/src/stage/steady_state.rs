//! Work for a time: how much of it is completed each second, and whether that has become steady.
//!
//! Two targets that work for the same time do not do the same work, so the quantities of such a
//! phase are those of one GiB of work.

use anyhow::Result;
use pickfs_core::journal::FlagKind;
use pickfs_stats::{Steady, mser5};
use pickfs_system::units::show_bytes;
use std::time::Duration;

/// In less time no rate can be seen to be steady.
pub(crate) const SHORTEST_TIME: Duration = Duration::from_secs(100);

/// How often the time is doubled where the rate is not steady at its end.
const DOUBLINGS: u32 = 3;

const GIB: f64 = (1 << 30) as f64;

/// What work for a time came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SteadyRun {
    pub ran: Duration,
    pub bytes: u64,
    /// Bytes a second; or how they came, in words, where they never came at a steady rate.
    pub steady: Result<Steady, String>,
}

/// Does a piece of work, which says how many bytes it completed, again and again until `time` is
/// over; twice as long where the rate is not steady then and `may_last` so much longer.
pub(crate) fn keep(
    time: Duration,
    clock: impl Fn() -> Duration,
    may_last: impl Fn(Duration) -> bool,
    mut piece: impl FnMut() -> Result<u64>,
) -> Result<SteadyRun> {
    let (mut seconds, mut bytes, mut until, mut doublings) = (Vec::new(), 0, time, 0);
    loop {
        while clock() < until {
            let done = piece()?;
            bytes += done;
            count(&mut seconds, clock(), done);
        }
        let whole = until.as_secs() as usize;
        seconds.resize(seconds.len().max(whole), 0.0);
        let steady = match next(&seconds[..whole], doublings < DOUBLINGS && may_last(until)) {
            Next::Longer => {
                (until, doublings) = (until * 2, doublings + 1);
                continue;
            }
            Next::Steady(steady) => Ok(steady),
            Next::Never(course) => Err(course),
        };
        return Ok(SteadyRun { ran: clock(), bytes, steady });
    }
}

/// Bytes count in the second in which they were completed.
fn count(seconds: &mut Vec<f64>, at: Duration, bytes: u64) {
    let second = at.as_secs() as usize;
    seconds.resize(seconds.len().max(second + 1), 0.0);
    seconds[second] += bytes as f64;
}

/// What to do when the time is over.
#[derive(Debug, PartialEq)]
enum Next {
    Steady(Steady),
    Longer,
    Never(String),
}

/// A cliff behind the middle passes for steady, as it cannot be cut off; its halves differ, and
/// more time shows it.
fn next(seconds: &[f64], may_last: bool) -> Next {
    match mser5(seconds).filter(|steady| steady.reached && steady.mean > 0.0) {
        Some(steady) if steady.halves_differ.is_none() || !may_last => Next::Steady(steady),
        _ if may_last => Next::Longer,
        _ => Next::Never(course(seconds)),
    }
}

/// "120 MiB/s, 95.1 MiB/s, 80.2 MiB/s, 71.5 MiB/s in the quarters of 800 s".
fn course(seconds: &[f64]) -> String {
    let quarter = |k: usize| &seconds[k * seconds.len() / 4..(k + 1) * seconds.len() / 4];
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let means: Vec<String> = (0..4).map(|k| format!("{}/s", show_bytes(mean(quarter(k))))).collect();
    format!("{} in the quarters of {} s", means.join(", "), seconds.len())
}

impl SteadyRun {
    /// What one GiB is of all that was done.
    pub(crate) fn share_of_gib(&self) -> f64 {
        GIB / (self.bytes.max(1) as f64)
    }

    /// What one GiB takes at the steady rate, where there is one; whole nanoseconds, as all times
    /// are.
    pub(crate) fn time_ns(&self) -> Option<f64> {
        self.steady.as_ref().ok().map(|steady| (GIB / steady.mean * 1e9).round())
    }

    pub(crate) fn samples(&self) -> Vec<(String, f64)> {
        let mut samples = vec![("ran_ns", self.ran.as_nanos() as f64), ("ran_bytes", self.bytes as f64)];
        if let Ok(steady) = &self.steady {
            samples.push(("steady_rate_bytes_per_second", steady.mean));
            samples.push(("steady_cut_ns", steady.cut_seconds as f64 * 1e9));
        }
        samples.into_iter().map(|(metric, value)| (metric.to_string(), value)).collect()
    }

    /// Why the rate is missing, or in doubt.
    pub(crate) fn doubt(&self) -> Option<(FlagKind, String)> {
        match &self.steady {
            Err(course) => Some((FlagKind::NeverSteady, course.clone())),
            Ok(steady) => steady.halves_differ.map(|apart| {
                let percent = apart.exp_m1() * 100.0;
                (FlagKind::HalvesDiffer, format!("the halves of the steady part are {percent:.0} % apart"))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const MIB: f64 = (1 << 20) as f64;

    fn steady(mean: f64) -> Next {
        Next::Steady(Steady { cut_seconds: 0, mean, reached: true, halves_differ: None })
    }

    #[test]
    fn the_shortest_time_is_the_shortest_that_can_be_judged() {
        let seconds = SHORTEST_TIME.as_secs() as usize;
        assert!(mser5(&vec![1.0; seconds]).is_some() && mser5(&vec![1.0; seconds - 1]).is_none());
    }

    #[test]
    fn what_to_do_when_the_time_is_over() {
        let down = || (0..400).map(|t| MIB * f64::from(900 - t / 100 * 100)).collect::<Vec<_>>();
        let course = "900 MiB/s, 800 MiB/s, 700 MiB/s, 600 MiB/s in the quarters of 400 s";
        let idle = "0 B/s, 0 B/s, 0 B/s, 0 B/s in the quarters of 100 s";
        let late = || (0..100).map(|t| if t < 75 { 2.0 } else { 1.0 }).collect::<Vec<_>>();
        let apart = mser5(&late()).expect("long enough");
        assert!(apart.reached && apart.halves_differ.is_some(), "{apart:?}");
        let cases = [
            (vec![5.0; 100], true, steady(5.0)),
            (vec![5.0; 100], false, steady(5.0)),
            (down(), true, Next::Longer),
            (down(), false, Next::Never(course.into())),
            (late(), true, Next::Longer),
            (late(), false, Next::Steady(apart)),
            (vec![5.0; 99], true, Next::Longer),
            (vec![0.0; 100], true, Next::Longer),
            (vec![0.0; 100], false, Next::Never(idle.into())),
        ];
        for (seconds, may_last, wanted) in cases {
            assert_eq!(next(&seconds, may_last), wanted, "{} s, {may_last}", seconds.len());
        }
    }

    /// `seconds_per_mib` at a time; at most `limit` seconds in all.
    fn kept(time: u64, limit: u64, seconds_per_mib: impl Fn(f64) -> f64) -> SteadyRun {
        let now = Cell::new(0.0);
        let clock = || Duration::from_secs_f64(now.get());
        let may_last = |more: Duration| clock() + more <= Duration::from_secs(limit);
        let piece = || {
            now.set(now.get() + seconds_per_mib(now.get()));
            Ok(1 << 20)
        };
        keep(Duration::from_secs(time), clock, may_last, piece).unwrap()
    }

    #[test]
    fn time_is_doubled_until_the_rate_is_steady_or_there_is_no_more() {
        let cliff = |at: f64| move |now: f64| if now < at { 0.01 } else { 0.04 };
        let slower_and_slower = |now: f64| 0.001 * (1.0 + now);
        let cases: [(SteadyRun, u64, Option<f64>); 5] = [
            (kept(100, 10_000, |_| 0.02), 100, Some(50.0)),
            (kept(100, 10_000, cliff(60.0)), 200, Some(25.0)),
            (kept(100, 10_000, cliff(90.0)), 200, Some(25.0)),
            (kept(100, 10_000, slower_and_slower), 800, None),
            (kept(100, 450, slower_and_slower), 400, None),
        ];
        for (run, ran, rate) in cases {
            assert_eq!(run.ran.as_secs(), ran, "{run:?}");
            assert_eq!(run.steady.is_ok(), rate.is_some(), "{run:?}");
            let near = |(found, wanted): (f64, f64)| (found / MIB / wanted - 1.0).abs() < 0.02;
            assert!(run.steady.as_ref().ok().map(|steady| steady.mean).zip(rate).is_none_or(near), "{run:?}");
            assert_eq!(run.doubt().map(|(flag, _)| flag), rate.is_none().then_some(FlagKind::NeverSteady));
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let failing = || Err(anyhow::anyhow!("no space left"));
        assert!(keep(SHORTEST_TIME, || Duration::ZERO, |_| true, failing).is_err());
    }

    #[test]
    fn the_time_of_one_gib_is_the_inverse_of_the_rate() {
        let found = Steady { cut_seconds: 5, mean: 256.0 * MIB, reached: true, halves_differ: Some(0.1) };
        let run = SteadyRun { ran: Duration::from_secs(100), bytes: 4 << 30, steady: Ok(found) };
        assert_eq!((run.share_of_gib(), run.time_ns()), (0.25, Some(4e9)));
        let wanted = [
            ("ran_ns", 1e11),
            ("ran_bytes", 4.0 * GIB),
            ("steady_rate_bytes_per_second", 256.0 * MIB),
            ("steady_cut_ns", 5e9),
        ];
        assert_eq!(run.samples(), wanted.map(|(metric, value)| (metric.to_string(), value)));
        assert_eq!(run.doubt(), Some((FlagKind::HalvesDiffer, "the halves of the steady part are 11 % apart".into())));
        let never = SteadyRun { steady: Err("down and down".into()), ..run };
        assert_eq!((never.time_ns(), never.samples().len()), (None, 2));
    }
}
