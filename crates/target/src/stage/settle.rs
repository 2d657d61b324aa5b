//! Waiting until the device under test is quiet: nothing in flight, no data moving on it.
//!
//! What is measured is durable before, so what still moves is the file system's own work. What
//! others on the machine leave dirty elsewhere is neither synced nor waited for: the foreign probe
//! sees what it costs.

use crate::probe::device::{self, Counters};
use anyhow::{Context, Result};
use pickfs_system::process::check_stop;
use std::time::{Duration, Instant};

/// Longer than this is no settling but a busy machine; the phase is flagged.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How long nothing may move: a share of the phase that was, between these. What a phase of seconds
/// left behind is over in a blink; what a phase of minutes left may come in bursts. After 922 short
/// phases of default runs nothing moved at all; after 6 of some 600 others something did later than
/// 20 ms, by 25 to 124 ms. A cell of five phases settles ten times.
const LEAST_QUIET: Duration = Duration::from_millis(20);
const MOST_QUIET: Duration = Duration::from_secs(5);
const QUIET_SHARE: u32 = 30;
const LOOK: Duration = Duration::from_millis(5);

/// Longer than ZFS waits from one group of writes to the next (zfs_txg_timeout, 5 s).
const BETWEEN_BURSTS: Duration = Duration::from_secs(6);
/// Dirty and writeback pages of the whole machine that count as none.
const DIRTY_LIMIT: u64 = 1 << 20;
/// Written in a second by small operations alone, at most: some ten fsyncs, each with its share of
/// a log.
const BESIDE_PROBES: u64 = 4 << 20;

/// What settling found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettleResult {
    /// Until the device was last seen to move data; 0 when it was not. An empty flush moves none:
    /// ext4 answers every `sync(2)` of anybody with one.
    pub busy_ns: u64,
    /// The reason, when patience ran out.
    pub unsettled: Option<String>,
}

/// How long nothing may move after a phase that took so long.
pub(crate) fn quiet_after(phase: Duration) -> Duration {
    (phase / QUIET_SHARE).clamp(LEAST_QUIET, MOST_QUIET)
}

/// Watches the devices under test all through a cell. Counters only grow: where two looks find the
/// same, nothing has moved between them, whatever was done meanwhile, and that time is not waited
/// for again.
pub(crate) struct Stillness {
    devices: Vec<(u32, u32)>,
    begun: Instant,
    seen: WatchState,
}

impl Stillness {
    pub(crate) fn watch(devices: Vec<(u32, u32)>) -> Stillness {
        let seen = WatchState { moved: moved_by(device::counters_of(&devices)), ..WatchState::default() };
        Stillness { devices, begun: Instant::now(), seen }
    }

    /// What moves from now on is counted as busy.
    pub(crate) fn anew(&mut self) {
        *self = Stillness::watch(std::mem::take(&mut self.devices));
    }

    /// Notes what has moved by now, so that it is not held against the time from now on.
    pub(crate) fn look(&mut self) {
        self.seen.look(self.begun.elapsed(), device::counters_of(&self.devices));
    }

    /// Waits until nothing has moved for so long.
    pub(crate) fn settle(&mut self, quiet: Duration) -> Result<SettleResult> {
        let Stillness { devices, begun, seen } = self;
        let look = || Ok((begun.elapsed(), check_stop().map(|()| device::counters_of(devices))?));
        seen.settle(quiet, look, || std::thread::sleep(LOOK))
    }
}

/// Bytes that ended their way to or from a device, or were discarded.
type Moved = [u64; 3];

fn moved_by(counters: Option<Counters>) -> Option<Moved> {
    counters.map(|counters| [counters.read_bytes, counters.write_bytes, counters.discard_bytes])
}

/// What was seen so far. Times are since watching began.
#[derive(Default)]
struct WatchState {
    /// Nothing is where there is no device: then nothing can move.
    moved: Option<Moved>,
    in_flight: u64,
    at: Duration,
    /// When data last moved.
    busy: Duration,
    /// When that, or any request in flight, was last seen.
    awake: Duration,
}

impl WatchState {
    fn look(&mut self, now: Duration, counters: Option<Counters>) {
        (self.at, self.in_flight) = (now, counters.map_or(0, |counters| counters.in_flight));
        let moved = moved_by(counters);
        if moved != self.moved {
            (self.moved, self.busy) = (moved, now);
        }
        if self.busy == now || self.in_flight > 0 {
            self.awake = now;
        }
    }

    fn settle(
        &mut self,
        quiet: Duration,
        look: impl Fn() -> Result<(Duration, Option<Counters>)>,
        pause: impl Fn(),
    ) -> Result<SettleResult> {
        let mut asked = None;
        loop {
            let (now, counters) = look()?;
            self.look(now, counters);
            match self.over(quiet, *asked.get_or_insert(now)) {
                Some(settled) => return Ok(settled),
                None => pause(),
            }
        }
    }

    fn over(&self, quiet: Duration, asked: Duration) -> Option<SettleResult> {
        let why = || {
            let (in_flight, since) = (self.in_flight, (self.at - self.busy).as_millis());
            format!("after {PATIENCE:?} still {in_flight} requests in flight, the device moved data {since} ms ago")
        };
        let is_quiet = self.at - self.awake >= quiet || self.moved.is_none();
        let unsettled = (!is_quiet).then(why);
        let is_over = is_quiet || self.at - asked > PATIENCE;
        is_over.then_some(SettleResult { busy_ns: self.busy.as_nanos() as u64, unsettled })
    }
}

/// Watches, while probes go on, for the moment when all that was written is in a device. Dirty
/// pages alone do not tell: ZFS keeps what is dirty in its own cache, so the device must be quiet
/// as well.
pub(crate) struct WritebackWatch {
    devices: Vec<(u32, u32)>,
    begun: Instant,
    /// When the quiet began, and what had been written by then.
    quiet: Option<(Duration, u64)>,
}

impl WritebackWatch {
    pub(super) fn watch(devices: Vec<(u32, u32)>) -> WritebackWatch {
        WritebackWatch { devices, begun: Instant::now(), quiet: None }
    }

    /// To be asked again and again.
    pub(crate) fn all(&mut self) -> Result<bool> {
        let counters = device::counters_of(&self.devices);
        Ok(self.is_over(self.begun.elapsed(), dirty_bytes()?, counters))
    }

    fn is_over(&mut self, now: Duration, dirty: u64, counters: Option<Counters>) -> bool {
        let Some(counters) = counters else { return dirty < DIRTY_LIMIT };
        let (since, then) = *self.quiet.get_or_insert((now, counters.write_bytes));
        let lasted = now.saturating_sub(since);
        let may_have = BESIDE_PROBES * (lasted.as_secs() + 1);
        if dirty >= DIRTY_LIMIT || counters.write_bytes.saturating_sub(then) > may_have {
            self.quiet = Some((now, counters.write_bytes));
            return false;
        }
        // What probes read is in flight too, and at some moment it is not.
        lasted >= BETWEEN_BURSTS && counters.in_flight == 0
    }
}

fn dirty_bytes() -> Result<u64> {
    use procfs::Current;
    let memory = procfs::Meminfo::current().context("cannot read /proc/meminfo")?;
    Ok(memory.dirty + memory.writeback)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// When it is over, of what is seen at each tenth of a second: dirty, written until then, in
    /// flight.
    fn over(seen: impl Fn(u64) -> (u64, u64, u64)) -> Option<u64> {
        let mut written = WritebackWatch::watch(Vec::new());
        (0..600).find(|tenth| {
            let (dirty, write_bytes, in_flight) = seen(*tenth);
            let counters = Counters { write_bytes, in_flight, ..Counters::default() };
            written.is_over(Duration::from_millis(tenth * 100), dirty, Some(counters))
        })
    }

    #[test]
    fn what_is_dirty_out_of_sight_is_waited_for() {
        // Nothing is ever dirty, and for ten seconds the device writes 50 MiB/s; then the probes
        // write on.
        let zfs = over(|tenth| (0, tenth.min(100) * 5 * MIB + tenth * MIB / 10, 0));
        assert!((150..=161).contains(&zfs.unwrap()), "{zfs:?}");
        // In bursts with nothing between.
        let bursts = over(|tenth| (0, tenth.min(200) / 50 * 60 * MIB, 0));
        assert_eq!(bursts, Some(260));
        // Dirty for five seconds, whatever the device does.
        assert_eq!(over(|tenth| (if tenth < 50 { 2 * MIB } else { 0 }, 0, 0)), Some(109));
        // A device that has stopped completing what it was given.
        assert_eq!(over(|tenth| (0, 0, u64::from(tenth < 300))), Some(300));
        assert_eq!(over(|tenth| (0, tenth * 5 * MIB, 0)), None);
    }

    /// Milliseconds that go on by what is done.
    struct Clock(std::cell::Cell<u64>);

    impl Clock {
        fn pass(&self, time: Duration) {
            self.0.set(self.0.get() + time.as_millis() as u64);
        }

        /// Settles by the device's counters, which depend on the milliseconds since the begin.
        fn settles(&self, seen: &mut WatchState, counters: impl Fn(u64) -> Option<Counters>) -> SettleResult {
            let look = || Ok((Duration::from_millis(self.0.get()), counters(self.0.get())));
            seen.settle(LEAST_QUIET, look, || self.pass(LOOK)).unwrap()
        }
    }

    /// From the begin on, looked at each five milliseconds.
    fn settles(counters: impl Fn(u64) -> Counters) -> SettleResult {
        let mut seen = WatchState { moved: moved_by(Some(counters(0))), ..WatchState::default() };
        Clock(0.into()).settles(&mut seen, |ms| Some(counters(ms)))
    }

    #[test]
    fn a_quiet_that_was_seen_is_not_waited_for_again() {
        let (clock, written) = (Clock(0.into()), |bytes| Some(Counters { write_bytes: bytes, ..Counters::default() }));
        let mut seen = WatchState { moved: moved_by(written(7)), ..WatchState::default() };
        let mut settled_at = |bytes| {
            let settled = clock.settles(&mut seen, |_| written(bytes));
            (settled.unsettled, clock.0.get())
        };
        // Nothing moved while something else was done.
        clock.pass(LEAST_QUIET);
        assert_eq!(settled_at(7), (None, 20));
        // It was not looked at since data moved: the quiet begins with the look.
        clock.pass(Duration::from_millis(100));
        assert_eq!(settled_at(8), (None, 120 + 20));
        // Patience is counted from when it was asked for.
        clock.pass(2 * PATIENCE);
        assert_eq!(settled_at(9), (None, 140 + 240_000 + 20));
        // A mount moves data; programs are started, and part of the quiet is over by then.
        seen.look(Duration::from_millis(clock.0.get()), written(10));
        clock.pass(Duration::from_millis(10));
        assert_eq!(clock.settles(&mut seen, |_| written(10)).unsettled, None);
        assert_eq!(clock.0.get(), 240_160 + 20);
    }

    #[test]
    fn without_a_device_nothing_is_waited_for() {
        let clock = Clock(0.into());
        assert_eq!(clock.settles(&mut WatchState::default(), |_| None), SettleResult::default());
        assert_eq!(clock.0.get(), 0);
    }

    #[test]
    fn busy_is_until_data_last_moved() {
        let bytes = |ms: u64| ms.min(700);
        let busy_ns = 700_000_000;
        for (seen, busy_ns) in [
            (settles(|_| Counters::default()), 0),
            (settles(|ms| Counters { write_bytes: bytes(ms), ..Counters::default() }), busy_ns),
            (settles(|ms| Counters { read_bytes: bytes(ms), ..Counters::default() }), busy_ns),
            (settles(|ms| Counters { discard_bytes: bytes(ms), ..Counters::default() }), busy_ns),
            // One request that ends after 700 ms.
            (
                settles(|ms| Counters { write_bytes: ms / 700, in_flight: u64::from(ms < 700), ..Counters::default() }),
                busy_ns,
            ),
            // Empty flushes, as a foreign `sync(2)` makes them: waited for, and no work of the file
            // system.
            (settles(|ms| Counters { flushes: Some(bytes(ms)), write_requests: bytes(ms), ..Counters::default() }), 0),
            (
                settles(|ms| Counters {
                    in_flight: u64::from(ms < 700),
                    flushes: Some(ms / 700),
                    ..Counters::default()
                }),
                0,
            ),
        ] {
            assert_eq!(seen, SettleResult { busy_ns, unsettled: None });
        }
    }

    #[test]
    fn a_device_that_never_stops_is_the_reason() {
        let settled = settles(|ms| Counters { write_bytes: ms, ..Counters::default() });
        let why = settled.unsettled.expect("patience ran out");
        assert!(why.ends_with("still 0 requests in flight, the device moved data 0 ms ago"), "{why}");
    }

    #[test]
    fn without_a_device_only_dirty_pages_are_seen() {
        let mut written = WritebackWatch::watch(Vec::new());
        assert!(!written.is_over(Duration::ZERO, 2 * MIB, None) && written.is_over(Duration::ZERO, 0, None));
    }
}
