//! Waiting until the machine is quiet: nothing dirty, nothing in flight, nothing moving on the device.

use crate::probe::device;
use crate::process::check_stop;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// Longer than this is no settling but a busy machine; the phase is flagged.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How long nothing may move: a share of the phase that was, between these. What a phase of seconds left behind is
/// over in a blink; what a phase of minutes left may come in bursts.
const LEAST_QUIET: Duration = Duration::from_millis(50);
const MOST_QUIET: Duration = Duration::from_secs(5);
const QUIET_SHARE: u32 = 30;
const LOOK: Duration = Duration::from_millis(10);
/// What somebody else makes dirty meanwhile is asked for again so late: each time the whole machine writes.
const SYNC_AGAIN: Duration = Duration::from_secs(1);
/// Dirty and writeback pages of the whole machine that count as none.
const DIRTY_LIMIT: u64 = 1 << 20;

/// Longer than ZFS waits from one group of writes to the next (zfs_txg_timeout, 5 s).
const BETWEEN_BURSTS: Duration = Duration::from_secs(6);
/// Written in a second by small operations alone, at most: some ten fsyncs, each with its share of a log.
const BESIDE_PROBES: u64 = 4 << 20;

/// What settling found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settled {
    /// Until the device was last seen moving; 0 when it was not. What others leave dirty elsewhere is waited for and
    /// not charged.
    pub busy_ns: u64,
    /// The reason, when patience ran out.
    pub unsettled: Option<String>,
}

/// Waits until the machine's writeback and the device are quiet; `after` is how long the phase before took.
pub fn settle(devices: &[(u32, u32)], after: Duration) -> Result<Settled> {
    let quiet = (after / QUIET_SHARE).clamp(LEAST_QUIET, MOST_QUIET);
    let begun = Instant::now();
    let mut settling = Settling { quiet, counters: device::counters_of(devices), ..Settling::default() };
    loop {
        std::thread::sleep(LOOK);
        check_stop()?;
        let (dirty, counters) = (dirty_bytes()?, device::counters_of(devices));
        if let Some(settled) = settling.step(|| begun.elapsed(), dirty, counters, rustix::fs::sync) {
            return Ok(settled);
        }
    }
}

/// What was seen so far. Times are since settling began.
#[derive(Default)]
struct Settling {
    quiet: Duration,
    dirty: u64,
    counters: Option<device::Counters>,
    /// When the device, or the machine's dirty pages, were last seen moving.
    moved: Duration,
    /// When the device was.
    busy: Duration,
    synced: Option<Duration>,
}

impl Settling {
    /// Takes a look. Where the machine is asked to write, what that moves is for the next look to see.
    fn step(
        &mut self,
        clock: impl Fn() -> Duration,
        dirty: u64,
        counters: Option<device::Counters>,
        sync: impl FnOnce(),
    ) -> Option<Settled> {
        if !self.look(clock(), dirty, counters) {
            return self.over(clock());
        }
        sync();
        self.synced = Some(clock());
        None
    }

    /// Whether the machine is to be asked to write.
    fn look(&mut self, now: Duration, dirty: u64, counters: Option<device::Counters>) -> bool {
        let moves = counters != self.counters || counters.is_some_and(|counters| counters.in_flight > 0);
        (self.dirty, self.counters) = (dirty, counters);
        if moves {
            self.busy = now;
        }
        if moves || dirty > DIRTY_LIMIT {
            self.moved = now;
        }
        dirty > DIRTY_LIMIT && self.synced.is_none_or(|synced| now - synced >= SYNC_AGAIN)
    }

    fn over(&self, now: Duration) -> Option<Settled> {
        let in_flight = self.counters.map_or(0, |counters| counters.in_flight);
        let why = || {
            let (dirty, since) = (self.dirty, (now - self.busy).as_millis());
            format!(
                "after {PATIENCE:?} still {dirty} bytes dirty, {in_flight} requests in flight, the device busy {since} ms ago"
            )
        };
        let is_quiet = now - self.moved >= self.quiet;
        let unsettled = (!is_quiet).then(why);
        (is_quiet || now > PATIENCE).then_some(Settled { busy_ns: self.busy.as_nanos() as u64, unsettled })
    }
}

/// Watches, beside probes that go on, for when nothing is left that was written and is in no device yet. Dirty pages
/// alone do not tell: ZFS keeps what is dirty in a cache of its own, so the device must be quiet as well.
pub struct Written {
    devices: Vec<(u32, u32)>,
    begun: Instant,
    /// When the quiet began, and what had been written by then.
    quiet: Option<(Duration, u64)>,
}

impl Written {
    pub(super) fn watch(devices: Vec<(u32, u32)>) -> Written {
        Written { devices, begun: Instant::now(), quiet: None }
    }

    /// To be asked again and again.
    pub fn all(&mut self) -> Result<bool> {
        let counters = device::counters_of(&self.devices);
        Ok(self.is_over(self.begun.elapsed(), dirty_bytes()?, counters))
    }

    fn is_over(&mut self, now: Duration, dirty: u64, counters: Option<device::Counters>) -> bool {
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
    use std::cell::Cell;

    const MIB: u64 = 1 << 20;

    /// When it is over, of what is seen at each tenth of a second: dirty, written until then, in flight.
    fn over(seen: impl Fn(u64) -> (u64, u64, u64)) -> Option<u64> {
        let mut written = Written::watch(Vec::new());
        (0..600).find(|tenth| {
            let (dirty, write_bytes, in_flight) = seen(*tenth);
            let counters = device::Counters { write_bytes, in_flight, ..device::Counters::default() };
            written.is_over(Duration::from_millis(tenth * 100), dirty, Some(counters))
        })
    }

    #[test]
    fn what_is_dirty_out_of_sight_is_waited_for() {
        // Nothing is ever dirty, and for ten seconds the device writes 50 MiB/s; then the probes write on.
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

    /// Looks until it is over, at what is seen so many milliseconds after the begin: dirty, written until then. Asking the
    /// machine to write takes 200 ms. Also how often it was asked.
    fn settles(seen: impl Fn(u64) -> (u64, u64)) -> (Settled, u64) {
        let counters = |write_bytes| Some(device::Counters { write_bytes, ..device::Counters::default() });
        let mut settling = Settling { quiet: LEAST_QUIET, counters: counters(0), ..Settling::default() };
        let (now, mut syncs) = (Cell::new(Duration::ZERO), 0);
        loop {
            now.set(now.get() + LOOK);
            let (dirty, written) = seen(now.get().as_millis() as u64);
            let sync = || {
                now.set(now.get() + Duration::from_millis(200));
                syncs += 1;
            };
            if let Some(settled) = settling.step(|| now.get(), dirty, counters(written), sync) {
                return (settled, syncs);
            }
        }
    }

    #[test]
    fn a_machine_that_stays_dirty_is_asked_to_write_once_a_second() {
        let (settled, syncs) = settles(|_| (2 * MIB, 0));
        assert!(settled.unsettled.is_some() && settled.busy_ns == 0, "{settled:?}");
        // From the end of one to the begin of the next.
        assert_eq!(syncs, 101);
        let (settled, syncs) = settles(|ms| (if ms < 2500 { 2 * MIB } else { 0 }, 0));
        assert_eq!((settled, syncs), (Settled::default(), 3));
    }

    #[test]
    fn what_the_device_still_does_is_charged_and_the_quiet_after_it_is_not() {
        let (settled, syncs) = settles(|ms| (0, ms.min(700)));
        assert_eq!((settled, syncs), (Settled { busy_ns: 700_000_000, unsettled: None }, 0));
    }

    #[test]
    fn a_device_that_never_stops_is_the_reason() {
        let (settled, _) = settles(|ms| (0, ms));
        let why = settled.unsettled.expect("patience ran out");
        assert!(why.ends_with("still 0 bytes dirty, 0 requests in flight, the device busy 0 ms ago"), "{why}");
    }

    #[test]
    fn what_is_written_when_the_machine_is_asked_to_is_seen() {
        // Dirty at the first look only; the device writes until 150 ms, while the machine is asked.
        let (settled, syncs) = settles(|ms| (if ms <= 10 { 2 * MIB } else { 0 }, ms.min(150)));
        assert_eq!((settled, syncs), (Settled { busy_ns: 220_000_000, unsettled: None }, 1));
    }

    #[test]
    fn without_a_device_only_dirty_pages_are_seen() {
        let mut written = Written::watch(Vec::new());
        assert!(!written.is_over(Duration::ZERO, 2 * MIB, None) && written.is_over(Duration::ZERO, 0, None));
    }
}
