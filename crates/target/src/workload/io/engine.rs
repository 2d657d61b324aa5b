//! Reads and writes blocks of a file, by plain system calls or through io_uring, and counts what
//! each one took.

#![expect(clippy::disallowed_methods, reason = "an operation is late or not by the clock")]

use super::blocks::{self, Supply};
use crate::stage::open_loop::{self, Arrivals, BlockingWorker, OpenLoopLog, Queue};
use anyhow::{Context, Result, ensure};
use pickfs_system::sys::file::AlignedBuffer;
use pickfs_system::sys::thread_pool::ThreadPool;
use pickfs_system::sys::uring::Ring;
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Engine {
    /// pread and pwrite.
    Plain,
    IoUring,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Direction {
    Read,
    Write {
        generation: u8,
        /// Writes of a thread after which it makes its file durable; 0 for never.
        sync_every: u64,
    },
}

/// What is to be done.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub engine: Engine,
    pub threads: usize,
    /// Operations that each thread has under way; with plain calls, this number of threads does
    /// them.
    pub depth: usize,
    pub block: usize,
    pub direction: Direction,
    /// Blocks in order.
    pub places: &'a [u32],
    /// For each of them when it begins; without, each begins when there is room.
    pub due: Option<&'a [u64]>,
}

/// A loop asks whether it may go on once in this many operations.
const ASKS: usize = 64;
/// Longest sleep between two times of asking whether to go on.
const NAP: Duration = Duration::from_millis(200);
/// Threads start before the first operation of a schedule.
const START: Duration = Duration::from_millis(5);

/// What threads work with, and the threads themselves, made before the clock runs; the file comes
/// when it does.
pub struct Workers<'a> {
    job: Job<'a>,
    workers: Vec<Worker>,
    pool: ThreadPool,
}

/// What one thread works with.
enum Worker {
    Plain(Box<PlainWorker>),
    Ring(Box<RingWorker>),
}

impl<'a> Workers<'a> {
    pub fn new(job: Job<'a>) -> Result<Workers<'a>> {
        let workers: Result<Vec<Worker>> = match job.engine {
            Engine::Plain => (0..job.threads * job.depth).map(|number| Ok(plain(&job, number))).collect(),
            Engine::IoUring => (0..job.threads).map(|number| ring(&job, number)).collect(),
        };
        let workers = workers?;
        let pool = ThreadPool::new(workers.len()).with_context(|| format!("cannot start {} threads", workers.len()))?;
        Ok(Workers { job, workers, pool })
    }

    /// When the last operation of an open loop begins, from the start.
    pub(crate) fn schedule_ns(&self) -> Option<u64> {
        self.job.due.and_then(|due| due.last().copied())
    }

    /// Does it all, with a log of each thread; fails with the first failure of any.
    pub fn work(&mut self, file: &File, may_go_on: impl Fn() -> Result<()> + Sync) -> Result<Vec<OpenLoopLog>> {
        let (taken, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let zero = Instant::now() + if self.job.due.is_some() { START } else { Duration::ZERO };
        let asks = || {
            ensure!(failed.lock().is_ok_and(|failed| failed.is_none()), "another thread failed");
            may_go_on()
        };
        let shared = Shared { job: &self.job, file, zero, taken: &taken, may_go_on: &asks };
        let count = self.workers.len();
        let one = |(number, worker)| {
            work(worker, number, count, &shared).map_err(|error| {
                // A poisoned lock means a panic, which the pool finds.
                if let Ok(mut failed) = failed.lock() {
                    failed.get_or_insert(error);
                }
            })
        };
        let logs = self.pool.each(self.workers.iter_mut().enumerate(), one).ok();
        let logs =
            logs.context("a thread panicked, which is an error of pickfs; please report it with the text on stderr")?;
        match failed.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => Ok(logs.into_iter().flatten().collect()),
        }
    }

    /// What all threads did, which must be all that was to be done.
    pub fn sum(&self, logs: &[OpenLoopLog]) -> Result<OpenLoopLog> {
        let mut log = OpenLoopLog::default();
        logs.iter().for_each(|part| log.add(part));
        let (done, planned) = (log.latencies.count(), self.job.places.len() as u64);
        ensure!(
            done == planned,
            "{done} of {planned} operations were done, which is an error of pickfs; please report it"
        );
        Ok(log)
    }
}

/// What all threads see.
struct Shared<'a> {
    job: &'a Job<'a>,
    file: &'a File,
    zero: Instant,
    /// Operations that workers have taken from the schedule.
    taken: &'a AtomicUsize,
    may_go_on: &'a (dyn Fn() -> Result<()> + Sync),
}

/// Exact sleeps of this thread while it lives. Without this a sleep may last 50 µs longer than
/// asked for, which is no property of any file system.
struct ExactSleeps(Option<NonZeroU64>);

impl ExactSleeps {
    fn new() -> Result<ExactSleeps> {
        let before = NonZeroU64::new(rustix::thread::current_timer_slack()?);
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        Ok(ExactSleeps(before))
    }
}

impl Drop for ExactSleeps {
    fn drop(&mut self) {
        // It was this before, so the kernel takes it.
        let _ = rustix::thread::set_current_timer_slack(self.0);
    }
}

/// What thread `number` of `count` does.
fn work(worker: &mut Worker, number: usize, count: usize, shared: &Shared) -> Result<OpenLoopLog> {
    let job = shared.job;
    let _exact = job.due.map(|_| ExactSleeps::new()).transpose()?;
    match (worker, job.due) {
        (Worker::Plain(plain), None) => plain.closed(own_part(job.places, number, count), shared),
        (Worker::Plain(plain), Some(due)) => {
            let mut at_work = ScheduledPlain { plain, shared, syncs: OpenLoopLog::default() };
            let mut log = open_loop::run_worker(|number| due.get(number).copied(), shared.taken, &mut at_work)?;
            log.syncs.add(&at_work.syncs.syncs);
            Ok(log)
        }
        (Worker::Ring(ring), None) => {
            let places = own_part(job.places, number, count);
            ring.work(Arrivals::Closed(places.len()), places, shared)
        }
        (Worker::Ring(ring), Some(due)) => {
            let turn = |all: usize| (number..all).step_by(count);
            let places: Vec<u32> = turn(job.places.len()).map(|index| job.places[index]).collect();
            let due: Vec<u64> = turn(due.len()).map(|index| due[index]).collect();
            ring.work(Arrivals::Open(&due), &places, shared)
        }
    }
}

/// Consecutive ones, so that a sequential phase is sequential for each thread.
fn own_part(places: &[u32], number: usize, count: usize) -> &[u32] {
    &places[places.len() * number / count..places.len() * (number + 1) / count]
}

/// Writes of a thread that it has not made durable. The write that makes it sync ends with the
/// sync, with both engines and in both loops, as a commit does.
struct Unsynced {
    writes: u64,
    every: u64,
}

impl Unsynced {
    fn of(direction: Direction) -> Unsynced {
        let every = match direction {
            Direction::Read => 0,
            Direction::Write { sync_every, .. } => sync_every,
        };
        Unsynced { writes: 0, every }
    }

    fn due(&self) -> bool {
        self.every > 0 && self.writes >= self.every
    }

    fn sync(&mut self, file: &File, log: &mut OpenLoopLog) -> Result<()> {
        let begun = Instant::now();
        file.sync_data().context("fdatasync")?;
        log.syncs.record(begun.elapsed().as_nanos() as u64);
        self.writes = 0;
        Ok(())
    }
}

// ---------------------------------------------------------------- plain system calls

struct PlainWorker {
    block: usize,
    direction: Direction,
    buffer: AlignedBuffer,
    supply: Supply,
    unsynced: Unsynced,
    /// Made before the clock runs.
    log: Option<OpenLoopLog>,
}

fn plain(job: &Job, number: usize) -> Worker {
    let supply = Supply::new(job.block, job.threads * job.depth);
    let mut buffer = AlignedBuffer::new(if job.direction == Direction::Read { job.block } else { supply.bytes() });
    blocks::fill(&mut buffer, number as u64);
    let unsynced = Unsynced::of(job.direction);
    let (block, direction, log) = (job.block, job.direction, Some(OpenLoopLog::default()));
    Worker::Plain(Box::new(PlainWorker { block, direction, buffer, supply, unsynced, log }))
}

impl PlainWorker {
    fn closed(&mut self, places: &[u32], shared: &Shared) -> Result<OpenLoopLog> {
        let mut log = self.log.take().unwrap_or_default();
        for (done, place) in places.iter().enumerate() {
            if done % ASKS == 0 {
                (shared.may_go_on)()?;
                // Asking is no part of an operation.
                log.latencies.start();
            }
            self.operate(shared.file, *place)?;
            if self.unsynced.due() {
                self.unsynced.sync(shared.file, &mut log)?;
            }
            log.latencies.lap();
        }
        Ok(log)
    }

    #[inline]
    fn operate(&mut self, file: &File, place: u32) -> Result<()> {
        let offset = u64::from(place) * self.block as u64;
        match self.direction {
            Direction::Read => {
                let buffer = &mut self.buffer[..self.block];
                file.read_exact_at(buffer, offset).with_context(|| format!("reading at {offset}"))?;
                blocks::generation(buffer, offset)?;
            }
            Direction::Write { generation, .. } => {
                let at = self.supply.turn();
                let block = &mut self.buffer[at..at + self.block];
                blocks::stamp(block, offset, generation);
                file.write_all_at(block, offset).with_context(|| format!("writing at {offset}"))?;
                self.unsynced.writes += 1;
            }
        }
        Ok(())
    }
}

/// A thread of an open loop.
struct ScheduledPlain<'a> {
    plain: &'a mut PlainWorker,
    shared: &'a Shared<'a>,
    syncs: OpenLoopLog,
}

impl BlockingWorker for ScheduledPlain<'_> {
    fn now(&mut self) -> u64 {
        since(self.shared.zero)
    }

    fn wait_until(&mut self, then: u64) -> Result<bool> {
        loop {
            (self.shared.may_go_on)()?;
            let now = self.now();
            // The clock stands still until the first operation is due.
            let early = self.shared.zero.saturating_duration_since(Instant::now());
            let left = Duration::from_nanos(then.saturating_sub(now)) + early;
            if left.is_zero() {
                return Ok(true);
            }
            std::thread::sleep(left.min(NAP));
        }
    }

    fn operate(&mut self, operation: usize) -> Result<()> {
        self.plain.operate(self.shared.file, self.shared.job.places[operation])?;
        if self.plain.unsynced.due() {
            self.plain.unsynced.sync(self.shared.file, &mut self.syncs)?;
        }
        Ok(())
    }
}

fn since(zero: Instant) -> u64 {
    Instant::now().saturating_duration_since(zero).as_nanos() as u64
}

// ---------------------------------------------------------------- io_uring

/// A ring, and what is under way in each of its slots.
struct RingWorker {
    ring: Ring,
    block: usize,
    direction: Direction,
    supplies: Vec<Supply>,
}

fn ring(job: &Job, number: usize) -> Result<Worker> {
    let all = job.threads * job.depth;
    let bytes = if job.direction == Direction::Read { job.block } else { Supply::new(job.block, all).bytes() };
    let refused = "io_uring is refused here; set kernel.io_uring_disabled to 0, or use engine = \"plain\"";
    let mut ring = Ring::new(job.depth, bytes).context(refused)?;
    for slot in 0..job.depth {
        blocks::fill(ring.buffer(slot), (number * job.depth + slot) as u64);
    }
    let supplies = (0..job.depth).map(|_| Supply::new(job.block, all)).collect();
    Ok(Worker::Ring(Box::new(RingWorker { ring, block: job.block, direction: job.direction, supplies })))
}

impl RingWorker {
    fn work(&mut self, arrivals: Arrivals, places: &[u32], shared: &Shared) -> Result<OpenLoopLog> {
        self.ring.wake(shared.file).context("cannot use the ring")?;
        // A schedule begins a little later, so that all threads are there.
        std::thread::sleep(shared.zero.saturating_duration_since(Instant::now()));
        let (slots, unsynced) = (vec![(0, 0); self.supplies.len()], Unsynced::of(self.direction));
        let RingWorker { ring, block, direction, supplies } = self;
        let syncs = OpenLoopLog::default();
        let mut at_work = RunningRing {
            ring,
            block: *block,
            direction: *direction,
            supplies,
            slots,
            places,
            shared,
            unsynced,
            last: None,
            written: None,
            syncs,
        };
        let mut log = open_loop::run_queue(arrivals, &mut at_work, shared.may_go_on)?;
        log.syncs.add(&at_work.syncs.syncs);
        Ok(log)
    }
}

struct RunningRing<'a> {
    ring: &'a mut Ring,
    block: usize,
    direction: Direction,
    supplies: &'a mut [Supply],
    /// For each slot, when its operation was due, and its offset.
    slots: Vec<(u64, u64)>,
    places: &'a [u32],
    shared: &'a Shared<'a>,
    unsynced: Unsynced,
    /// The slot of the write that makes it sync.
    last: Option<usize>,
    /// When that was due, once it is written and not yet durable.
    written: Option<u64>,
    syncs: OpenLoopLog,
}

impl Queue for RunningRing<'_> {
    fn now(&mut self) -> u64 {
        since(self.shared.zero)
    }

    fn has_room(&self) -> bool {
        self.ring.has_idle() && !self.unsynced.due()
    }

    fn in_flight(&self) -> usize {
        self.ring.in_flight() + usize::from(self.written.is_some())
    }

    #[inline]
    fn begin(&mut self, operation: usize, due: u64) -> Result<()> {
        let slot = self.ring.take().context("no slot is idle")?;
        let offset = u64::from(self.places[operation]) * self.block as u64;
        self.slots[slot] = (due, offset);
        match self.direction {
            Direction::Read => self.ring.read(slot, offset, self.block),
            Direction::Write { generation, .. } => {
                let from = self.supplies[slot].turn();
                blocks::stamp(&mut self.ring.buffer(slot)[from..from + self.block], offset, generation);
                self.ring.write(slot, from, offset, self.block);
                self.unsynced.writes += 1;
                self.last = self.unsynced.due().then_some(slot);
            }
        }
        Ok(())
    }

    #[inline]
    fn wait(&mut self, until: Option<u64>, ended: &mut Vec<u64>) -> Result<()> {
        if self.unsynced.due() && self.ring.in_flight() == 0 {
            self.unsynced.sync(self.shared.file, &mut self.syncs)?;
            ended.extend(self.written.take());
            return Ok(());
        }
        let longest = until.map(|until| Duration::from_nanos(until.saturating_sub(since(self.shared.zero))));
        self.ring.wait(longest).context("waiting for the ring")?;
        while let Some((slot, moved)) = self.ring.ended() {
            let (due, offset) = self.slots[slot];
            let moved = moved.with_context(|| format!("at {offset}"))?;
            ensure!(moved == self.block, "{moved} bytes of {} were moved at {offset}", self.block);
            if self.direction == Direction::Read {
                blocks::generation(&self.ring.buffer(slot)[..self.block], offset)?;
            }
            if self.last == Some(slot) { (self.last, self.written) = (None, Some(due)) } else { ended.push(due) }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::sync::atomic::Ordering;

    const BLOCK: usize = 4096;
    const BLOCKS: u32 = 128;

    fn do_it(file: &File, job: Job) -> Result<OpenLoopLog> {
        let mut workers = Workers::new(job)?;
        let logs = workers.work(file, || Ok(()))?;
        workers.sum(&logs)
    }

    fn job(engine: Engine, direction: Direction, places: &[u32]) -> Job<'_> {
        Job { engine, threads: 2, depth: 3, block: BLOCK, direction, places, due: None }
    }

    #[test]
    fn both_engines_write_and_read_every_block_in_both_loops() {
        let order = blocks::in_order(BLOCKS);
        let due = open_loop::schedule(20_000.0, BLOCKS as usize, open_loop::Spacing::Poisson, 1);
        for engine in [Engine::Plain, Engine::IoUring] {
            let file = tempfile::tempfile().unwrap();
            let write = |generation, sync_every| Direction::Write { generation, sync_every };
            let first = match do_it(&file, job(engine, write(0, 0), &order)) {
                Err(error) if engine == Engine::IoUring && format!("{error:#}").contains("refused") => {
                    pickfs_test_support::not_run(format!("{error:#}"));
                    continue;
                }
                done => done.unwrap(),
            };
            assert_eq!((first.latencies.count(), first.syncs.count(), first.lag.count()), (128, 0, 0));
            blocks::verify(&file, BLOCK, BLOCKS, &[]).unwrap();
            let some = &blocks::shuffled(BLOCKS, BLOCKS as usize)[..96];
            let again = do_it(&file, job(engine, write(1, 5), some)).unwrap();
            // Six threads with 16 each sync 3 times, two with 48 do 9 times.
            let syncs = 18;
            assert_eq!((again.latencies.count(), again.syncs.count()), (96, syncs), "{engine:?}");
            blocks::verify(&file, BLOCK, BLOCKS, some).unwrap();
            let read = do_it(&file, Job { due: Some(&due), ..job(engine, Direction::Read, &order) }).unwrap();
            assert_eq!((read.latencies.count(), read.lag.count()), (128, 128));
            let last = Job { due: Some(&due), ..job(engine, write(1, 0), &order) };
            assert_eq!(do_it(&file, last).unwrap().latencies.count(), 128);
            blocks::verify(&file, BLOCK, BLOCKS, &order).unwrap();
            let zeros = vec![0; BLOCK];
            file.write_all_at(&zeros, 77 * BLOCK as u64).unwrap();
            let damaged = do_it(&file, job(engine, Direction::Read, &order)).unwrap_err();
            assert!(format!("{damaged:#}").contains(&(77 * BLOCK).to_string()), "{damaged:#}");
        }
    }

    #[test]
    fn a_write_that_syncs_ends_with_the_sync() {
        let (order, due) = (blocks::in_order(BLOCKS), vec![0; BLOCKS as usize]);
        let write = Direction::Write { generation: 0, sync_every: 1 };
        for engine in [Engine::Plain, Engine::IoUring] {
            for due in [None, Some(&due[..])] {
                let file = tempfile::tempfile().unwrap();
                let job = Job { threads: 1, depth: 1, due, ..job(engine, write, &order) };
                let log = match do_it(&file, job) {
                    Err(error) if engine == Engine::IoUring && format!("{error:#}").contains("refused") => {
                        pickfs_test_support::not_run(format!("{error:#}"));
                        continue;
                    }
                    done => done.unwrap(),
                };
                // The last write's sync too; and as each write has one, none is shorter than the
                // shortest of them.
                assert_eq!((log.latencies.count(), log.syncs.count()), (128, 128), "{engine:?}");
                for share in [0.0, 0.5] {
                    let (whole, sync) = (log.latencies.quantile(share), log.syncs.quantile(share));
                    assert!(whole >= sync, "{engine:?} {due:?} {share}: {whole} ns with a sync of {sync} ns");
                }
            }
        }
    }

    #[test]
    fn a_schedule_is_kept() {
        let (order, file) = (blocks::in_order(BLOCKS), tempfile::tempfile().unwrap());
        let due = open_loop::schedule(500.0, BLOCKS as usize, open_loop::Spacing::Even, 1);
        let write = Direction::Write { generation: 0, sync_every: 0 };
        let begun = Instant::now();
        do_it(&file, Job { due: Some(&due), ..job(Engine::Plain, write, &order) }).unwrap();
        assert!(begun.elapsed() >= Duration::from_nanos(*due.last().unwrap()), "it ran ahead");
    }

    #[test]
    fn a_thread_that_panics_fails_all() {
        let (order, file) = (blocks::in_order(BLOCKS), tempfile::tempfile().unwrap());
        let write = Direction::Write { generation: 0, sync_every: 0 };
        let (mut workers, asked) = (Workers::new(job(Engine::Plain, write, &order)).unwrap(), AtomicUsize::new(0));
        let once = || {
            assert!(asked.fetch_add(1, Ordering::Relaxed) != 2, "the third that asks panics, as it shall");
            Ok(())
        };
        assert!(workers.work(&file, once).unwrap_err().to_string().contains("panicked"));
        // A schedule that is shorter than what is to be done.
        let due = vec![0; BLOCKS as usize - 1];
        let short = do_it(&file, Job { due: Some(&due), ..job(Engine::Plain, write, &order) }).unwrap_err();
        assert!(short.to_string().contains("127 of 128"), "{short}");
    }

    #[test]
    fn asking_is_no_part_of_an_operation() {
        const PAUSE: Duration = Duration::from_millis(20);
        let (order, file) = (blocks::in_order(BLOCKS).repeat(5), tempfile::tempfile().unwrap());
        let write = Direction::Write { generation: 0, sync_every: 0 };
        let asked = AtomicUsize::new(0);
        let slow = || {
            asked.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(PAUSE);
            Ok(())
        };
        let job = Job { threads: 1, depth: 1, ..job(Engine::Plain, write, &order) };
        let logs = Workers::new(job).unwrap().work(&file, slow).unwrap();
        // One operation in 64 would be in the 99th percentile.
        let p99 = Duration::from_nanos(logs[0].latencies.quantile(0.99));
        assert!(asked.into_inner() == 10 && p99 < PAUSE, "{p99:?}");
    }

    #[test]
    fn whoever_may_not_go_on_stops_all() {
        let (order, file) = (blocks::in_order(BLOCKS), tempfile::tempfile().unwrap());
        for (engine, due) in [(Engine::Plain, None), (Engine::Plain, Some(vec![u64::MAX / 2; BLOCKS as usize]))] {
            let write = Direction::Write { generation: 0, sync_every: 0 };
            let mut workers = Workers::new(Job { due: due.as_deref(), ..job(engine, write, &order) }).unwrap();
            let error = workers.work(&file, || bail!("the time is over")).unwrap_err();
            assert_eq!(error.to_string(), "the time is over");
        }
    }
}
