//! What the block device did: the truth below every cache. Also of the disk below a loop device.
//!
//! The fields are those of /proc/diskstats, read from /sys/dev/block/MAJOR:MINOR/stat (kernel
//! documentation, block/stat.rst): sectors are always 512 bytes there, requests are counted after
//! merging and when they end. Flushes are counted on whole disks with a queue of requests only
//! (`blk_account_io_flush` of Linux, block/blk-flush.c): a partition and a device without one (dm,
//! md, zram) show 0 whatever they pass on. `busy` is sampled by the kernel at clock ticks: a bound,
//! not a utilisation of fast devices.

use super::{Probe, Reading, Subject, counter};
use pickfs_system::sys::devices;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Metrics that the stage computes with.
pub(crate) const READ_BYTES: &str = "device_read_bytes";
pub(crate) const WRITE_BYTES: &str = "device_write_bytes";
pub(crate) const BUSY_NS: &str = "device_busy_ns";
pub(crate) const READ_BYTES_BELOW: &str = "below_read_bytes";
pub(crate) const WRITE_BYTES_BELOW: &str = "below_write_bytes";

pub(super) const PROBE: Probe = Probe {
    name: "device",
    about: "bytes, requests, flushes, discards and busy time of the device and of the disk below it",
    read,
    only_after_writing: false,
};

fn read(subject: &Subject) -> Vec<Reading> {
    let device = counters_of(&subject.devices()).map(|c| device_readings(&c)).unwrap_or_default();
    let below = subject.below.and_then(counters).map(|c| below_readings(&c)).unwrap_or_default();
    device.into_iter().chain(below).collect()
}

fn device_readings(counters: &Counters) -> Vec<Reading> {
    let mut readings = vec![
        counter(READ_BYTES, counters.read_bytes as f64),
        counter(WRITE_BYTES, counters.write_bytes as f64),
        counter("device_read_requests", counters.read_requests as f64),
        counter("device_write_requests", counters.write_requests as f64),
        counter("device_discard_bytes", counters.discard_bytes as f64),
        counter(BUSY_NS, counters.busy_ns as f64),
    ];
    readings.extend(counters.flushes.map(|flushes| counter("device_flushes", flushes as f64)));
    readings
}

fn below_readings(counters: &Counters) -> Vec<Reading> {
    vec![counter(READ_BYTES_BELOW, counters.read_bytes as f64), counter(WRITE_BYTES_BELOW, counters.write_bytes as f64)]
}

/// A device's counters since it came up; all but `in_flight` only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub read_requests: u64,
    pub read_bytes: u64,
    pub write_requests: u64,
    pub write_bytes: u64,
    /// Requests that are on their way now.
    pub in_flight: u64,
    pub busy_ns: u64,
    pub discard_bytes: u64,
    /// `None` where the kernel counts none of one of the devices.
    pub flushes: Option<u64>,
}

impl Counters {
    /// Kernels before 4.18 have no discards (zero then), and kernels before 5.5 no flushes.
    fn parse(line: &str) -> Option<Counters> {
        let mut fields = [0u64; 17];
        let mut found = 0;
        for (field, text) in fields.iter_mut().zip(line.split_ascii_whitespace()) {
            *field = text.parse().ok()?;
            found += 1;
        }
        (found >= 11).then(|| Counters {
            read_requests: fields[0],
            read_bytes: fields[2] * 512,
            write_requests: fields[4],
            write_bytes: fields[6] * 512,
            in_flight: fields[8],
            busy_ns: fields[9] * 1_000_000,
            discard_bytes: fields[13] * 512,
            flushes: (found >= 16).then_some(fields[15]),
        })
    }
}

impl std::ops::Add for Counters {
    type Output = Counters;

    fn add(self, other: Counters) -> Counters {
        Counters {
            read_requests: self.read_requests + other.read_requests,
            read_bytes: self.read_bytes + other.read_bytes,
            write_requests: self.write_requests + other.write_requests,
            write_bytes: self.write_bytes + other.write_bytes,
            in_flight: self.in_flight + other.in_flight,
            busy_ns: self.busy_ns + other.busy_ns,
            discard_bytes: self.discard_bytes + other.discard_bytes,
            flushes: self.flushes.zip(other.flushes).map(|(own, others)| own + others),
        }
    }
}

/// Counters of devices, held open for reading often: one system call a device and no allocation
/// each time.
pub(crate) struct Watch(Vec<WatchedDevice>);

struct WatchedDevice {
    stat: File,
    counts_flushes: bool,
}

impl Watch {
    /// None where there is no device, or one of them is not there.
    pub(crate) fn new(devices: &[(u32, u32)]) -> Option<Watch> {
        let open = |device: &(u32, u32)| WatchedDevice::open(&devices::sys_path(*device));
        devices.iter().map(open).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty()).map(Watch)
    }

    /// Counters of all devices together; `None` once one of them is gone.
    pub(crate) fn read(&self) -> Option<Counters> {
        self.0.iter().map(WatchedDevice::read).reduce(|sum, more| Some(sum? + more?))?
    }
}

impl WatchedDevice {
    /// Of the device's folder in /sys. A queue of requests has the folder `mq`; a partition has
    /// none.
    fn open(folder: &Path) -> Option<WatchedDevice> {
        let stat = File::open(folder.join("stat")).ok()?;
        Some(WatchedDevice { stat, counts_flushes: folder.join("mq").exists() })
    }

    fn read(&self) -> Option<Counters> {
        let mut line = [0; 512];
        let length = self.stat.read_at(&mut line, 0).ok()?;
        let counters = Counters::parse(std::str::from_utf8(&line[..length]).ok()?)?;
        Some(Counters { flushes: counters.flushes.filter(|_| self.counts_flushes), ..counters })
    }
}

/// Watches the disk under a file; `None` where the file lies on no disk. Finding it takes a while,
/// reading its counters does not.
pub(crate) fn watch_disk_of(path: &Path) -> Option<Watch> {
    Watch::new(&[devices::disk_of_file(path)?])
}

/// A device's counters, once.
pub fn counters(device: (u32, u32)) -> Option<Counters> {
    counters_of(&[device])
}

/// The sum over all devices of a file system, once.
pub(crate) fn counters_of(devices: &[(u32, u32)]) -> Option<Counters> {
    Watch::new(devices)?.read()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_new_and_old_kernels() {
        let new = "  10  1  24  5  20  2  48  6  3  77  88  7  0  16  9  4  11\n";
        let counters = Counters {
            read_requests: 10,
            read_bytes: 24 * 512,
            write_requests: 20,
            write_bytes: 48 * 512,
            in_flight: 3,
            busy_ns: 77_000_000,
            discard_bytes: 16 * 512,
            flushes: Some(4),
        };
        assert_eq!(Counters::parse(new), Some(counters));
        let old = "10 1 24 5 20 2 48 6 3 77 88";
        assert_eq!(Counters::parse(old), Some(Counters { discard_bytes: 0, flushes: None, ..counters }));
        assert_eq!(Counters::parse("1 2 3"), None);
        assert_eq!(Counters::parse("x"), None);
    }

    #[test]
    fn several_devices_are_told_as_one() {
        let one = Counters::parse("1 0 2 0 3 0 4 0 5 6 0 0 0 7 0 8 0").unwrap();
        let sum = one + Counters { read_bytes: 1, in_flight: 2, flushes: Some(1), ..Counters::default() };
        assert_eq!((sum.read_requests, sum.read_bytes, sum.in_flight), (1, 2 * 512 + 1, 5 + 2));
        assert_eq!((sum.write_bytes, sum.busy_ns, sum.discard_bytes), (4 * 512, 6_000_000, 7 * 512));
        assert_eq!((sum.flushes, (sum + Counters::default()).flushes), (Some(8 + 1), None));
        assert!(Watch::new(&[]).is_none() && Watch::new(&[(0, 4095)]).is_none());
    }

    #[test]
    fn where_the_kernel_counts_no_flushes_there_is_no_number_of_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stat"), "1 0 2 0 3 0 4 0 5 6 0 0 0 7 0 8 0").unwrap();
        let names = || {
            let counters = WatchedDevice::open(folder.path()).unwrap().read().unwrap();
            device_readings(&counters).into_iter().map(|reading| reading.metric).collect::<Vec<_>>()
        };
        assert!(!names().contains(&"device_flushes".to_string()), "{:?}", names());
        std::fs::create_dir(folder.path().join("mq")).unwrap();
        assert!(names().contains(&"device_flushes".to_string()), "{:?}", names());
    }

    #[test]
    fn no_device_no_readings() {
        assert_eq!(read(&Subject { device: Some((0, 4095)), ..Subject::default() }), []);
        assert_eq!(read(&Subject::default()), []);
    }
}
