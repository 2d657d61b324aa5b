//! When operations begin, and what each one's latency is: closed loops, and open loops on an
//! absolute schedule.
//!
//! No clock and no file here: both are handed in, so that the accounts can be tested against known
//! answers. In an open loop an operation's latency counts from when it was to begin, however late
//! it did: what waits behind a stall is counted with the stall (no coordinated omission).

mod periodic;

pub(super) use periodic::beside;
pub(crate) use periodic::{Periodic, PeriodicLog};

use super::Latencies;
use anyhow::Result;
use pickfs_system::random::Random;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What says when the next operation begins.
#[derive(Clone, Copy)]
pub(crate) enum Arrivals<'a> {
    /// This number of operations, each as soon as there is room for it.
    Closed(usize),
    /// One at each of these times, in nanoseconds.
    Open(&'a [u64]),
}

impl Arrivals<'_> {
    fn count(&self) -> usize {
        match self {
            Arrivals::Closed(count) => *count,
            Arrivals::Open(due) => due.len(),
        }
    }

    /// When that operation is due; in a closed loop it is always now.
    fn due(&self, operation: usize, now: u64) -> u64 {
        match self {
            Arrivals::Closed(_) => now,
            Arrivals::Open(due) => due[operation],
        }
    }
}

/// How operations of an open loop follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spacing {
    Even,
    /// Like requests of many independent users.
    Poisson,
}

/// Times of `count` operations at a rate a second, in nanoseconds from the start; the same for the
/// same seed.
pub(crate) fn schedule(rate: f64, count: usize, spacing: Spacing, seed: u64) -> Vec<u64> {
    let (gap, mut random, mut at) = (1e9 / rate, Random::new(seed, 0), 0.0);
    let mut next = |number: usize| match spacing {
        Spacing::Even => number as f64 * gap,
        Spacing::Poisson => {
            at -= ((random.bits() >> 11) as f64 + 1.0).log2() * gap * std::f64::consts::LN_2
                - 53.0 * std::f64::consts::LN_2 * gap;
            at
        }
    };
    (0..count).map(|number| next(number) as u64).collect()
}

/// How long operations took, and how well their schedule was kept.
#[derive(Clone, Debug, Default)]
pub struct OpenLoopLog {
    pub latencies: Latencies,
    /// How much later than it could have the loop itself began an operation.
    pub lag: Latencies,
    /// Operations that began late because all that could do them was busy.
    pub waited: u64,
    /// When the last operation ended, in nanoseconds from the start.
    pub ended: u64,
    /// Latencies of making durable what was written before.
    pub syncs: Latencies,
}

impl OpenLoopLog {
    /// An operation begins now; `free` is since when there was room for it.
    fn begins(&mut self, due: u64, free: u64, now: u64) {
        self.lag.record(now.saturating_sub(due.max(free)));
        self.waited += u64::from(free > due);
    }

    fn ends(&mut self, due: u64, now: u64) {
        self.latencies.record(now.saturating_sub(due));
        self.ended = self.ended.max(now);
    }

    pub(crate) fn add(&mut self, other: &OpenLoopLog) {
        self.latencies.add(&other.latencies);
        self.lag.add(&other.lag);
        self.syncs.add(&other.syncs);
        self.waited += other.waited;
        self.ended = self.ended.max(other.ended);
    }
}

/// What does operations and does not wait for them: a ring, or what a test makes up.
pub(crate) trait Queue {
    /// Nanoseconds since its own moment.
    fn now(&mut self) -> u64;
    fn has_room(&self) -> bool;
    fn in_flight(&self) -> usize;
    /// Begins an operation, which is known by when it was due.
    fn begin(&mut self, operation: usize, due: u64) -> Result<()>;
    /// Waits until something has ended, or until then; adds when each that has ended was due.
    fn wait(&mut self, until: Option<u64>, ended: &mut Vec<u64>) -> Result<()>;
}

/// A loop asks whether it may go on once in this many turns.
const ASKS: usize = 64;

/// Does all operations. One look at the clock between a wait and what follows from it.
pub(crate) fn run_queue(
    arrivals: Arrivals,
    queue: &mut impl Queue,
    may_go_on: impl Fn() -> Result<()>,
) -> Result<OpenLoopLog> {
    let (count, open) = (arrivals.count(), matches!(arrivals, Arrivals::Open(_)));
    let (mut log, mut ended, mut next, mut turns) = (OpenLoopLog::default(), Vec::new(), 0, 0);
    let mut now = queue.now();
    let mut free = 0;
    while next < count || queue.in_flight() > 0 {
        if turns % ASKS == 0 {
            may_go_on()?;
            // Asking is no part of an operation.
            now = queue.now();
        }
        turns += 1;
        let mut until = None;
        while next < count && queue.has_room() {
            let due = arrivals.due(next, now);
            if due > now {
                until = Some(due);
                break;
            }
            if open {
                log.begins(due, free, now);
            }
            queue.begin(next, due)?;
            next += 1;
        }
        let was_full = !queue.has_room();
        queue.wait(until, &mut ended)?;
        now = queue.now();
        if was_full {
            free = now;
        }
        ended.drain(..).for_each(|due| log.ends(due, now));
    }
    Ok(log)
}

/// What does one operation at a time, and waits for it: a thread with its system calls.
pub(crate) trait BlockingWorker {
    fn now(&mut self) -> u64;
    /// Waits until then; false if the end of all came before.
    fn wait_until(&mut self, then: u64) -> Result<bool>;
    fn operate(&mut self, operation: usize) -> Result<()>;
    /// An operation is over.
    fn completed(&mut self, _due: u64, _now: u64) {}
}

/// One of the workers of an open loop: takes the next operation that is not taken, waits for its
/// time, does it. The first is done in any case: where the end came before it was due, it is due
/// then.
pub(crate) fn run_worker(
    due: impl Fn(usize) -> Option<u64>,
    taken: &AtomicUsize,
    worker: &mut impl BlockingWorker,
) -> Result<OpenLoopLog> {
    let mut log = OpenLoopLog::default();
    loop {
        let operation = taken.fetch_add(1, Ordering::Relaxed);
        let Some(due) = due(operation) else { return Ok(log) };
        let free = worker.now();
        if !worker.wait_until(due)? && operation > 0 {
            return Ok(log);
        }
        let now = worker.now();
        let due = due.min(now);
        log.begins(due, free, now);
        worker.operate(operation)?;
        let now = worker.now();
        log.ends(due, now);
        worker.completed(due, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;

    /// A device that takes 1 ms for an operation, and stalls: what comes in a stall goes on when
    /// that is over.
    #[derive(Clone)]
    struct Stalling(Vec<(u64, u64)>);

    impl Stalling {
        /// Two seconds in every ten.
        fn regular() -> Stalling {
            Stalling((0..60).map(|n| (n * 10 * SECOND + 8 * SECOND, n * 10 * SECOND + 10 * SECOND)).collect())
        }

        /// A Markov chain of two states: stalls of 0.5 s on average after 6 s on average.
        fn markov() -> Stalling {
            let (mut random, mut at, mut stalls) = (Random::new(5, 0), 0.0, Vec::new());
            let mut drawn = |mean: f64| -((random.bits() >> 11) as f64 + 1.0).log2() * mean + 53.0 * mean;
            while at < 600e9 {
                let begin = at + drawn(6e9 * std::f64::consts::LN_2);
                at = begin + drawn(0.5e9 * std::f64::consts::LN_2);
                stalls.push((begin as u64, at as u64));
            }
            Stalling(stalls)
        }

        fn end(&self, begun: u64) -> u64 {
            let stall = self.0.iter().find(|(from, to)| (*from..*to).contains(&begun));
            stall.map_or(begun, |(_, to)| *to) + MS
        }

        /// What operations at those times take, had each its own worker: the truth, by nothing of
        /// the code above.
        fn truth(&self, due: &[u64], share: f64) -> f64 {
            let mut took: Vec<u64> = due.iter().map(|due| self.end(*due) - due).collect();
            took.sort_unstable();
            took[(share * took.len() as f64).ceil() as usize - 1] as f64
        }
    }

    /// The device behind a queue, on a clock that advances only while a caller waits.
    struct Simulated {
        device: Stalling,
        now: u64,
        room: usize,
        /// End and due time.
        running: Vec<(u64, u64)>,
    }

    impl Simulated {
        fn new(device: Stalling, room: usize) -> Simulated {
            Simulated { device, now: 0, room, running: Vec::new() }
        }
    }

    impl Queue for Simulated {
        fn now(&mut self) -> u64 {
            self.now
        }

        fn has_room(&self) -> bool {
            self.running.len() < self.room
        }

        fn in_flight(&self) -> usize {
            self.running.len()
        }

        fn begin(&mut self, _operation: usize, due: u64) -> Result<()> {
            self.running.push((self.device.end(self.now), due));
            Ok(())
        }

        fn wait(&mut self, until: Option<u64>, ended: &mut Vec<u64>) -> Result<()> {
            let first = self.running.iter().map(|(end, _)| *end).min();
            let then = first.into_iter().chain(until).min().expect("there is something to wait for");
            self.now = self.now.max(then);
            let now = self.now;
            ended.extend(self.running.iter().filter(|(end, _)| *end <= now).map(|(_, due)| *due));
            self.running.retain(|(end, _)| *end > now);
            Ok(())
        }
    }

    impl BlockingWorker for Simulated {
        fn now(&mut self) -> u64 {
            self.now
        }

        fn wait_until(&mut self, then: u64) -> Result<bool> {
            self.now = self.now.max(then);
            Ok(true)
        }

        fn operate(&mut self, _operation: usize) -> Result<()> {
            self.now = self.device.end(self.now);
            Ok(())
        }
    }

    fn open(device: &Stalling, due: &[u64]) -> OpenLoopLog {
        run_queue(Arrivals::Open(due), &mut Simulated::new(device.clone(), 10_000), || Ok(())).unwrap()
    }

    fn assert_near(found: u64, truth: f64, what: &str) {
        assert!((found as f64 / truth - 1.0).abs() < 0.05, "{what}: {found} ns, the truth is {truth} ns");
    }

    #[test]
    fn an_open_loop_sees_what_stalls_do_and_a_closed_one_does_not() {
        for (name, device) in [("regular", Stalling::regular()), ("markov", Stalling::markov())] {
            for spacing in [Spacing::Even, Spacing::Poisson] {
                let due = schedule(100.0, 50_000, spacing, 3);
                let log = open(&device, &due);
                assert_eq!(log.latencies.count(), 50_000);
                for share in [0.5, 0.9, 0.99, 0.999] {
                    let truth = device.truth(&due, share);
                    assert_near(log.latencies.quantile(share), truth, &format!("{name} {spacing:?} {share}"));
                }
                assert_eq!((log.lag.quantile(1.0), log.waited), (0, 0), "nobody was late");
            }
            let closed = run_queue(Arrivals::Closed(300_000), &mut Simulated::new(device, 1), || Ok(())).unwrap();
            assert_near(closed.latencies.quantile(0.99), 1e6, "a closed loop, which stands still in a stall");
        }
        // By hand: a fifth of all waits for up to 2 s, evenly, so that one in a hundred waits for
        // more than 1.9 s.
        let due = schedule(100.0, 50_000, Spacing::Even, 3);
        assert_near(open(&Stalling::regular(), &due).latencies.quantile(0.99), 1.9e9, "by hand");
    }

    /// With one worker the rest of a stall's queue waits for the one before, which the schedule
    /// still counts.
    #[test]
    fn a_worker_that_is_late_is_counted_from_the_schedule() {
        let (device, due) = (Stalling::regular(), schedule(100.0, 50_000, Spacing::Even, 3));
        let mut took = Vec::new();
        let last = due.iter().fold(0, |before: u64, due| {
            let end = device.end(before.max(*due));
            took.push(end - due);
            end
        });
        took.sort_unstable();
        let mut worker = Simulated::new(device.clone(), 1);
        let by_worker = run_worker(|n| due.get(n).copied(), &AtomicUsize::new(0), &mut worker).unwrap();
        let by_queue = run_queue(Arrivals::Open(&due), &mut Simulated::new(device, 1), || Ok(())).unwrap();
        for log in [by_worker, by_queue] {
            assert_near(log.latencies.quantile(0.99), took[49_499] as f64, "one at a time");
            // All operations of a stall but its first, and all until the queue was empty again.
            assert!((11_000..11_300).contains(&log.waited), "{}", log.waited);
            assert_eq!(log.lag.quantile(1.0), 0, "it was busy, and that is not its own lag");
            assert_eq!(log.ended, last);
        }
    }

    /// A loop that looks only every 50 ms.
    struct Sleepy(Simulated);

    impl BlockingWorker for Sleepy {
        fn now(&mut self) -> u64 {
            self.0.now
        }

        fn wait_until(&mut self, then: u64) -> Result<bool> {
            self.0.wait_until(then.next_multiple_of(50 * MS))
        }

        fn operate(&mut self, operation: usize) -> Result<()> {
            self.0.operate(operation)
        }
    }

    #[test]
    fn a_loop_that_is_late_by_itself_is_found_out() {
        let due = schedule(7.0, 1000, Spacing::Even, 1);
        let mut sleepy = Sleepy(Simulated::new(Stalling(Vec::new()), 1));
        let log = run_worker(|n| due.get(n).copied(), &AtomicUsize::new(0), &mut sleepy).unwrap();
        assert!(log.lag.quantile(0.99) > 40 * MS && log.waited == 0);
        assert!(log.latencies.quantile(0.99) > 40 * MS, "and it counts");
    }

    #[test]
    fn schedules_keep_their_rate() {
        let even = schedule(4.0, 4, Spacing::Even, 1);
        assert_eq!(even, [0, SECOND / 4, SECOND / 2, SECOND * 3 / 4]);
        let poisson = schedule(1000.0, 100_000, Spacing::Poisson, 1);
        assert!(poisson.is_sorted() && poisson == schedule(1000.0, 100_000, Spacing::Poisson, 1));
        assert_ne!(poisson, schedule(1000.0, 100_000, Spacing::Poisson, 2));
        let mean = *poisson.last().unwrap() as f64 / 99_999.0;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean} ns between two");
        // The share e^-1 of exponential gaps is longer than their mean.
        let longer = poisson.windows(2).filter(|pair| (pair[1] - pair[0]) as f64 > mean).count() as f64 / 99_999.0;
        assert!((longer - 0.368).abs() < 0.01, "{longer}");
    }

    /// A clock that others can put forward.
    struct SharedClock<'a>(&'a Cell<u64>, Simulated);

    impl Queue for SharedClock<'_> {
        fn now(&mut self) -> u64 {
            self.0.get()
        }

        fn has_room(&self) -> bool {
            self.1.has_room()
        }

        fn in_flight(&self) -> usize {
            self.1.in_flight()
        }

        fn begin(&mut self, operation: usize, due: u64) -> Result<()> {
            self.1.now = self.0.get();
            self.1.begin(operation, due)
        }

        fn wait(&mut self, until: Option<u64>, ended: &mut Vec<u64>) -> Result<()> {
            self.1.wait(until, ended)?;
            self.0.set(self.1.now);
            Ok(())
        }
    }

    #[test]
    fn asking_is_no_part_of_an_operation() {
        let clock = Cell::new(0);
        let asks = || {
            clock.set(clock.get() + SECOND);
            Ok(())
        };
        let mut queue = SharedClock(&clock, Simulated::new(Stalling(Vec::new()), 1));
        let log = run_queue(Arrivals::Closed(1000), &mut queue, asks).unwrap();
        assert!(clock.get() > 10 * SECOND, "it did not ask");
        assert_near(log.latencies.quantile(1.0), 1e6, "the longest");
    }

    #[test]
    fn a_loop_that_may_not_go_on_ends() {
        let refuse = || anyhow::bail!("the time is over");
        let mut queue = Simulated::new(Stalling(Vec::new()), 1);
        assert!(run_queue(Arrivals::Closed(10), &mut queue, refuse).is_err());
    }
}
