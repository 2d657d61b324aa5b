//! A block device that answers for itself, past the page cache.

use super::Drive;
use crate::virtual_clock::RequestTimes;
use anyhow::{Context, Result};
use pickfs_system::sys::block::size_of_device;
use pickfs_system::sys::clock::monotonic;
use pickfs_system::sys::devices::{content, device_number, queue_file, resolved};
use pickfs_system::sys::disk_model::{Asked, Operation};
use pickfs_system::sys::file::open_direct;
use pickfs_system::sys::uring::Ring;
use rand_core::{Rng, SeedableRng};
use std::fs::File;
use std::path::Path;

pub struct RealDrive {
    file: File,
    sectors: u64,
    /// Bytes of the largest request that the kernel does not split.
    largest: u64,
    sent: u64,
}

impl RealDrive {
    /// With `scratch` for writing too, which the caller has asked for.
    pub fn open(device: &Path, scratch: bool) -> Result<RealDrive> {
        let sectors = size_of_device(device).with_context(|| format!("cannot open {}", device.display()))? / 512;
        let file = open_direct(device, scratch).with_context(|| format!("cannot open {}", device.display()))?;
        let number = device_number(&resolved(device));
        let largest = number.and_then(|number| content(queue_file(number, "max_sectors_kb")?)?.parse::<u64>().ok());
        Ok(RealDrive { file, sectors, largest: largest.unwrap_or(512).max(4) * 1024, sent: 0 })
    }

    /// Requests up to now, as the kernel counts them.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

impl Drive for RealDrive {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn answer(&mut self, depth: usize, requests: &[Asked]) -> Result<RequestTimes> {
        if let [Asked { operation: Operation::Flush, .. }] = requests {
            let begun = monotonic();
            self.file.sync_data().context("the disk refused to flush its cache")?;
            let took_ns = monotonic() - begun;
            return Ok(RequestTimes { times: vec![took_ns], took_ns });
        }
        self.sent += requests.iter().map(|asked| (asked.sectors * 512).div_ceil(self.largest)).sum::<u64>();
        let largest = requests.iter().map(|asked| asked.sectors * 512).max().unwrap_or(0);
        let mut ring = Ring::new(depth, largest as usize)?;
        ring.wake(&self.file)?;
        if requests.iter().any(|asked| asked.operation == Operation::Write) {
            fill(&mut ring, depth);
        }
        let mut times = Vec::with_capacity(requests.len());
        let mut since = vec![0; depth];
        let mut next = requests.iter();
        let begun = monotonic();
        loop {
            while next.len() > 0 {
                let Some(slot) = ring.take() else { break };
                let Some(asked) = next.next() else { break };
                since[slot] = monotonic();
                let (offset, bytes) = (asked.first * 512, (asked.sectors * 512) as usize);
                match asked.operation {
                    Operation::Write => ring.write(slot, 0, offset, bytes),
                    _ => ring.read(slot, offset, bytes),
                }
            }
            if ring.in_flight() == 0 {
                break;
            }
            ring.wait(None)?;
            while let Some((slot, moved)) = ring.ended() {
                moved.context("the disk did not answer a request")?;
                times.push(monotonic() - since[slot]);
            }
        }
        Ok(RequestTimes { times, took_ns: (monotonic() - begun).max(1) })
    }
}

/// With what no drive can compress.
fn fill(ring: &mut Ring, depth: usize) {
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(7);
    (0..depth).for_each(|slot| random.fill_bytes(ring.buffer(slot)));
}
