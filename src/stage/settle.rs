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
    let mut last = device::counters_of(devices);
    let (mut moved, mut busy, mut synced) = (begun, begun, None::<Instant>);
    loop {
        std::thread::sleep(LOOK);
        check_stop()?;
        let now = device::counters_of(devices);
        let dirty = dirty_bytes()?;
        let in_flight = now.as_ref().map_or(0, |counters| counters.in_flight);
        let moves = now != last || in_flight > 0;
        if moves {
            busy = Instant::now();
        }
        if moves || dirty > DIRTY_LIMIT {
            moved = Instant::now();
        }
        if dirty > DIRTY_LIMIT && synced.is_none_or(|synced| synced.elapsed() >= SYNC_AGAIN) {
            rustix::fs::sync();
            synced = Some(Instant::now());
        }
        let busy_ns = busy.duration_since(begun).as_nanos() as u64;
        if moved.elapsed() >= quiet {
            return Ok(Settled { busy_ns, unsettled: None });
        }
        if begun.elapsed() > PATIENCE {
            let why = format!("after {PATIENCE:?} still {dirty} bytes dirty and {in_flight} requests in flight");
            return Ok(Settled { busy_ns, unsettled: Some(why) });
        }
        last = now;
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

    #[test]
    fn without_a_device_only_dirty_pages_are_seen() {
        let mut written = Written::watch(Vec::new());
        assert!(!written.is_over(Duration::ZERO, 2 * MIB, None) && written.is_over(Duration::ZERO, 0, None));
    }
}
