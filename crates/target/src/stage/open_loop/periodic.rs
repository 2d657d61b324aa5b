//! Operations at fixed times, whatever the ones before took: as independent people and programs
//! ask.
//!
//! A latency counts from the time at which the operation was due. One that takes three seconds
//! makes those late that were due meanwhile, and their waiting counts; a loop that waits for each
//! operation would have left them out ("coordinated omission"). Operations that were due before the
//! end are done and counted, however late, unless all shall stop.

use super::{BlockingWorker, Latencies, run_worker};
use anyhow::{Context, Result};
use std::sync::atomic::AtomicUsize;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;
const SLOW: u64 = 100_000_000;

type Operation<'a> = Box<dyn FnMut(u64) -> Result<()> + Send + 'a>;

/// An operation that is due again and again.
pub(crate) struct Periodic<'a> {
    period_ns: u64,
    /// When the first one is due.
    first_ns: u64,
    operation: Operation<'a>,
}

impl<'a> Periodic<'a> {
    /// `operation` is given its number, from 0 on.
    pub(crate) fn new(
        period: Duration,
        first: Duration,
        operation: impl FnMut(u64) -> Result<()> + Send + 'a,
    ) -> Periodic<'a> {
        Periodic {
            period_ns: (period.as_nanos() as u64).max(1),
            first_ns: first.as_nanos() as u64,
            operation: Box::new(operation),
        }
    }
}

/// How long operations of one kind took, and how many were late.
#[derive(Clone, Debug)]
pub(crate) struct PeriodicLog {
    pub latencies: Latencies,
    /// How long operations were due.
    pub ran_ns: u64,
    /// See [`stalled_ns`].
    pub stall_ns: u64,
    pub over_100ms: u64,
    pub over_1s: u64,
}

/// When an operation was due and when it was completed.
#[derive(Clone, Copy, Debug)]
struct Done {
    due: u64,
    completed: u64,
}

/// Time since the start, and its end, which is decided elsewhere.
trait Clock {
    fn now(&self) -> u64;
    /// Waits until that time; false if the end came before.
    fn wait_until(&self, due: u64) -> bool;
    /// The end, once it has come.
    fn end(&self) -> Option<u64>;
}

/// Fails when all shall stop, or the time for all is over.
type Limits<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// A thread with one kind of operation.
struct Caller<'a, 'b, C> {
    operation: &'a mut Operation<'b>,
    clock: &'a C,
    limits: Limits<'a>,
    done: Vec<Done>,
}

impl<C: Clock> BlockingWorker for Caller<'_, '_, C> {
    fn now(&mut self) -> u64 {
        self.clock.now()
    }

    fn wait_until(&mut self, then: u64) -> Result<bool> {
        Ok(self.clock.wait_until(then))
    }

    /// The limits are asked each time: the rest after the end may take longer than any limit.
    fn operate(&mut self, operation: usize) -> Result<()> {
        (self.limits)()?;
        (self.operation)(operation as u64)
    }

    fn completed(&mut self, due: u64, now: u64) {
        self.done.push(Done { due, completed: now });
    }
}

/// One operation at least; all that are due before the end.
fn keep(periodic: &mut Periodic, clock: &impl Clock, limits: Limits) -> Result<PeriodicLog> {
    let (period_ns, first_ns) = (periodic.period_ns, periodic.first_ns);
    let mut caller = Caller { operation: &mut periodic.operation, clock, limits, done: Vec::new() };
    let log = run_worker(|number| Some(first_ns + number as u64 * period_ns), &AtomicUsize::new(0), &mut caller)?;
    let over = |limit: u64| caller.done.iter().filter(|done| done.completed - done.due > limit).count() as u64;
    Ok(PeriodicLog {
        latencies: log.latencies,
        ran_ns: clock.end().unwrap_or_else(|| clock.now()),
        stall_ns: stalled_ns(&caller.done, period_ns),
        over_100ms: over(SLOW),
        over_1s: over(SECOND),
    })
}

/// The sum of the seconds, cut from the start on, in which nothing was completed although something
/// was waiting all through (or for all but one period, where operations are due more often than
/// once a second), or in which what was completed had taken more than a second in the median.
fn stalled_ns(all: &[Done], period: u64) -> u64 {
    let slack = if period < SECOND { period } else { 0 };
    let last = all.iter().map(|done| done.completed).max().unwrap_or(0);
    let stalled = |second: &u64| {
        let (start, end) = (second * SECOND, (second + 1) * SECOND);
        let within = all.iter().filter(|done| (start..end).contains(&done.completed));
        let mut taken: Vec<u64> = within.map(|done| done.completed - done.due).collect();
        taken.sort_unstable();
        match taken.len() {
            0 => all.iter().any(|done| done.due <= start + slack && done.completed >= end),
            count => taken[(count - 1) / 2] > SECOND,
        }
    };
    (0..=last / SECOND).filter(stalled).count() as u64 * SECOND
}

/// The machine's own clock, shared by all kinds.
struct Wall {
    begun: Instant,
    end: Mutex<Option<u64>>,
    ended: Condvar,
}

impl Wall {
    fn finish(&self) {
        let mut end = self.lock();
        end.get_or_insert(self.now());
        self.ended.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<u64>> {
        // What a thread that panicked may have left is a time or none, and either can be read.
        self.end.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Clock for Wall {
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn wait_until(&self, due: u64) -> bool {
        let mut end = self.lock();
        loop {
            if let Some(end) = *end {
                return due < end;
            }
            let left = due.saturating_sub(self.now());
            if left == 0 {
                return true;
            }
            let waited = self.ended.wait_timeout(end, Duration::from_nanos(left));
            end = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    fn end(&self) -> Option<u64> {
        *self.lock()
    }
}

/// Ends the time in every case, so that no thread waits for ever.
struct Finish<'a>(&'a Wall);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// All kinds for as long as the work lasts, which can ask whether an operation has failed.
pub(crate) fn beside(
    kinds: &mut [Periodic],
    limits: Limits,
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<()>,
) -> Result<Vec<PeriodicLog>> {
    let wall = Wall { begun: Instant::now(), end: Mutex::new(None), ended: Condvar::new() };
    std::thread::scope(|scope| {
        let finish = Finish(&wall);
        let threads: Vec<_> = kinds
            .iter_mut()
            .map(|periodic| {
                let wall = &wall;
                scope.spawn(move || {
                    let kept = keep(periodic, wall, limits);
                    if kept.is_err() {
                        wall.finish();
                    }
                    kept
                })
            })
            .collect();
        let worked = work(&|| wall.end().is_some());
        drop(finish);
        let joined = threads.into_iter().map(|thread| thread.join().ok().context("a thread of operations panicked")?);
        let kept: Result<Vec<PeriodicLog>> = joined.collect();
        worked.and(kept)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    const MS: u64 = 1_000_000;
    const NONE: Limits<'static> = &|| Ok(());

    /// A clock that stands still unless a caller waits or works, and an end that is known.
    struct Virtual {
        now: AtomicU64,
        end: u64,
    }

    impl Virtual {
        fn until(end: u64) -> Virtual {
            Virtual { now: AtomicU64::new(0), end }
        }
    }

    impl Clock for Virtual {
        fn now(&self) -> u64 {
            self.now.load(Relaxed)
        }

        fn wait_until(&self, due: u64) -> bool {
            self.now.fetch_max(due.min(self.end), Relaxed);
            due < self.end
        }

        fn end(&self) -> Option<u64> {
            Some(self.end)
        }
    }

    /// Operations every so often for a time, each taking what is said of the time at which it
    /// begins.
    fn kept(period_ms: u64, seconds: u64, takes_ms: impl Fn(u64) -> u64 + Sync) -> PeriodicLog {
        let clock = Virtual::until(seconds * SECOND);
        let work = |_| {
            clock.now.fetch_add(takes_ms(clock.now() / MS) * MS, Relaxed);
            Ok(())
        };
        keep(&mut Periodic::new(Duration::from_millis(period_ms), Duration::ZERO, work), &clock, NONE).unwrap()
    }

    #[test]
    fn a_stall_of_known_length_is_in_the_tail() {
        // Nothing is completed from 10 s to 13 s: an operation in these three seconds of sixty
        // waits for their end, so one in a hundred waits longer than 3 s - 60 s / 100.
        let kept = kept(50, 60, |now| if (10_000..13_000).contains(&now) { 13_000 - now } else { 1 });
        let (p99, wanted) = (kept.latencies.quantile(0.99) as f64, 2.4e9);
        assert!((p99 / wanted - 1.0).abs() < 0.05, "{p99}");
        // Three seconds without a completion, and the next, in which the median had waited for more
        // than one.
        assert_eq!((kept.latencies.count(), kept.stall_ns), (1200, 4 * SECOND));
        let near = |found: u64, wanted: u64| found.abs_diff(wanted) <= 2;
        assert!(near(kept.over_100ms, 59) && near(kept.over_1s, 41), "{kept:?}");
        assert!(kept.latencies.quantile(0.5) < 2 * MS);
    }

    #[test]
    fn what_is_slow_all_the_time_is_a_stall_and_what_is_rare_is_none() {
        // Each takes longer than it may: the queue grows, and after some seconds all wait for more
        // than one.
        let slow = kept(50, 60, |_| 60);
        assert!(slow.stall_ns >= 50 * SECOND && slow.latencies.count() == 1200, "{slow:?}");
        // Periodic 20 s an operation of 0.4 s: most seconds complete nothing, and nothing is
        // stalled.
        let rare = kept(20_000, 60, |_| 400);
        assert_eq!((rare.latencies.count(), rare.stall_ns, rare.over_100ms, rare.over_1s), (3, 0, 3, 0));
        // One of 3 s is due at the start of a second, and waits all through three.
        let long = kept(20_000, 60, |now| if now == 20_000 { 3000 } else { 400 });
        assert!((2 * SECOND..=4 * SECOND).contains(&long.stall_ns), "{long:?}");
    }

    #[test]
    fn all_that_was_due_before_the_end_is_done() {
        let clock = Virtual::until(10 * SECOND);
        let count = AtomicU64::new(0);
        let mut every = Periodic::new(Duration::from_millis(100), Duration::from_millis(50), |_| {
            count.fetch_add(1, Relaxed);
            Ok(())
        });
        let kept = keep(&mut every, &clock, NONE).unwrap();
        assert_eq!((kept.latencies.count(), kept.ran_ns), (100, 10 * SECOND));
        drop(every);
        assert_eq!(count.into_inner(), 100);
        // The end comes before the first is due: one is still done, and its latency is not
        // negative.
        let clock = Virtual::until(1000);
        let mut every = Periodic::new(Duration::from_secs(20), Duration::from_secs(1), |_| Ok(()));
        let kept = keep(&mut every, &clock, NONE).unwrap();
        assert_eq!(kept.latencies.count(), 1);
    }

    #[test]
    fn what_is_left_after_the_end_knows_limits() {
        // Each takes twice as long as it may, so that half are left at the end; the limit is two
        // seconds behind it.
        let clock = Virtual::until(10 * SECOND);
        let mut every = Periodic::new(Duration::from_millis(100), Duration::ZERO, |_| {
            clock.now.fetch_add(200 * MS, Relaxed);
            Ok(())
        });
        let limits = || if clock.now() < 12 * SECOND { Ok(()) } else { anyhow::bail!("its time is over") };
        let kept = keep(&mut every, &clock, &limits).map(drop);
        assert_eq!(kept.unwrap_err().to_string(), "its time is over");
        drop(every);
        assert_eq!(clock.now(), 12 * SECOND);
        // And the threads ask them.
        let mut kinds = [Periodic::new(Duration::from_millis(1), Duration::ZERO, |_| Ok(()))];
        let stopped = beside(&mut kinds, &|| anyhow::bail!("stopped"), |_| Ok(())).map(drop);
        assert_eq!(stopped.unwrap_err().to_string(), "stopped");
    }

    #[test]
    fn who_fails_ends_the_others_and_the_work_is_told_first() {
        let fails = |at: u64| move |number: u64| if number == at { anyhow::bail!("no room") } else { Ok(()) };
        let second = Duration::from_millis(1);
        let until_failed = |failed: &dyn Fn() -> bool| {
            while !failed() {
                std::thread::yield_now();
            }
            Ok(())
        };
        let mut kinds = [Periodic::new(second, second, fails(5)), Periodic::new(second, second, |_| Ok(()))];
        assert_eq!(beside(&mut kinds, NONE, until_failed).unwrap_err().to_string(), "no room");
        let mut kinds = [Periodic::new(second, second, |_| Ok(()))];
        let failing = |_: &dyn Fn() -> bool| anyhow::bail!("the work failed");
        assert_eq!(beside(&mut kinds, NONE, failing).unwrap_err().to_string(), "the work failed");
        let mut kinds = [Periodic::new(second, Duration::ZERO, |_| Ok(()))];
        let kept = beside(&mut kinds, NONE, |_| {
            std::thread::sleep(Duration::from_millis(30));
            Ok(())
        });
        let kept = kept.unwrap().remove(0);
        assert_eq!(kept.latencies.count(), kept.ran_ns.div_ceil(1_000_000));
    }
}
