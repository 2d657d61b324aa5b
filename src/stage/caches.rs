//! What stands between two phases: settling, and making a cache really cold.
//!
//! Settled: nothing dirty, nothing in flight, nothing moving on the device. Cold: unmounted (exported), all clean
//! caches dropped, the device's buffers flushed, the loop's backing file forgotten, mounted again. Dropping caches
//! alone is not cold: it keeps what is not reclaimable, and ZFS keeps its own cache elsewhere.

use super::BuiltStack;
use crate::probe::device;
use crate::process::check_stop;
use crate::protocol::Link;
use crate::steps::StepRunner;
use crate::sys::devices;
use crate::sys::{block, file};
use anyhow::{Context, Result};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than this is no settling but a busy machine; the phase is flagged.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How long nothing may move: a share of the phase that was, between these. What a phase of seconds left behind is
/// over in a blink; what a phase of minutes left may come in bursts.
const LEAST_QUIET: Duration = Duration::from_millis(50);
const MOST_QUIET: Duration = Duration::from_secs(5);
const QUIET_SHARE: u32 = 30;
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
    let (mut moved, mut busy) = (begun, begun);
    loop {
        std::thread::sleep(Duration::from_millis(10));
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
        if dirty > DIRTY_LIMIT {
            rustix::fs::sync();
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
    pub(crate) fn watch(devices: Vec<(u32, u32)>) -> Written {
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

/// Makes every cache of the stack cold, as far as we may; what then is read proves it. What it cannot prove is whether
/// the host of a guest has it cached: the reason is returned where that is so.
pub fn make_cold(
    stack: &BuiltStack,
    engine: &StepRunner,
    link: &mut Link,
    programs: &[&str],
) -> Result<Option<String>> {
    stack.make_durable(engine)?;
    let mut warm_below = None;
    match stack.driver {
        Some(driver) => {
            engine.output(&(driver.unmount)(&stack.spec()))?;
            drop_caches()?;
            drop_device_caches(stack)?;
            warm_below = link.forget_below()?;
            engine.mount(&driver.mount(&stack.spec()))?;
        }
        None if rustix::process::geteuid().is_root() => drop_caches()?,
        None => drop_file_caches(&stack.root)?,
    }
    warm_programs(engine, programs);
    Ok(warm_below)
}

/// The same for a tree that lies elsewhere, on a disk that stays mounted.
pub fn make_cold_elsewhere(tree: &Path, engine: &StepRunner, programs: &[&str]) -> Result<()> {
    drop_file_caches(tree)?;
    if rustix::process::geteuid().is_root() {
        drop_caches()?;
    }
    warm_programs(engine, programs);
    Ok(())
}

fn drop_caches() -> Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop caches")
}

fn drop_device_caches(stack: &BuiltStack) -> Result<()> {
    for device in stack.device.iter().chain(&stack.more_devices) {
        block::flush_buffers(device).with_context(|| format!("cannot flush the buffers of {}", device.display()))?;
        drop_below(device)?;
    }
    Ok(())
}

/// A loop device reads through the page cache of its file, unless it is direct.
pub fn drop_below(device: &Path) -> Result<()> {
    match devices::loop_file(device) {
        Some(file) => {
            file::drop_file_cache(&file).with_context(|| format!("cannot drop the cache of {}", file.display()))
        }
        None => Ok(()),
    }
}

/// What one may do without root: data pages go, names and inodes stay. The proof will say so.
fn drop_file_caches(root: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry?;
        if entry.file_type().is_file() {
            file::drop_file_cache(entry.path())
                .with_context(|| format!("cannot drop the cache of {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// Dropping caches drops programs too; without this the first phase would pay for loading `tar` from the system disk.
/// And for the names of owners, which `tar` looks up: `id` asks the same files of the system's.
fn warm_programs(engine: &StepRunner, programs: &[&str]) {
    for program in programs {
        engine.listing(&crate::stack::argv([program, "--version"]));
    }
    engine.listing(&crate::stack::argv(["id"]));
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
