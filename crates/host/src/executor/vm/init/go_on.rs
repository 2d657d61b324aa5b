//! A guest that is saved here, and goes on once for each cell: with the time, the disks and the
//! random numbers of that cell.

use crate::executor::vm::names::{BY_SERIAL, ENTROPY, MOST_DISKS, WAITING, target_disk};
use anyhow::{Context, Result};
use pickfs_system::sys::{block, file};
use rustix::time::{ClockId, Timespec, clock_settime};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

const CLOCK: &str = "/sys/class/rtc/rtc0/since_epoch";

/// Waits on the port; it is saved meanwhile.
pub(crate) fn wait(port: &File) -> Result<()> {
    eprintln!("{WAITING}");
    let mut line = String::new();
    // One byte at a time: what comes behind the line is the agent's.
    BufReader::with_capacity(1, port).read_line(&mut line).context("cannot read from the port")?;
    let bytes = entropy(&line).context("what comes through the port is not understood")?;
    file::add_entropy(&bytes).and_then(|()| file::reseed()).context("cannot fill the pool of random numbers")?;
    set_clock()?;
    // What the kernel has read of empty disks.
    let disks = (0..MOST_DISKS).map(|index| Path::new(BY_SERIAL).join(target_disk(index)));
    for disk in disks.filter(|disk| disk.exists()) {
        block::flush_buffers(&disk).with_context(|| format!("cannot forget what was read of {}", disk.display()))?;
    }
    Ok(())
}

fn entropy(line: &str) -> Option<[u8; ENTROPY]> {
    let digits = line.trim_end().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes?.try_into().ok()
}

/// The battery's clock has gone on; as at a boot, it has whole seconds.
fn set_clock() -> Result<()> {
    let seconds = std::fs::read_to_string(CLOCK).with_context(|| format!("there is no {CLOCK}"))?;
    let now = Timespec { tv_sec: seconds.trim().parse()?, tv_nsec: 0 };
    clock_settime(ClockId::Realtime, now).context("cannot set the clock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_are_read_whole_or_not_at_all() {
        let line = "0f".repeat(ENTROPY) + "\n";
        assert_eq!(entropy(&line), Some([15; ENTROPY]));
        for wrong in ["", "\n", &line[2..], &line.replace('f', "g")] {
            assert_eq!(entropy(wrong), None, "{wrong:?}");
        }
    }
}
