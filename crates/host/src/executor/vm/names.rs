//! What the host and the programs inside a guest agree on: serial numbers of disks, kernel words,
//! and what a system that boots from a target says.

use pickfs_core::protocol::Booted;
use serde::{Deserialize, Serialize};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Serial numbers of the disks that a guest gets, by which its init knows them.
pub(crate) const ROOT_DISK: &str = "pickfs-root";
pub(crate) const DATA_DISK: &str = "pickfs-data";
/// That a tree is brought from.
pub(crate) const OTHER_DISK: &str = "pickfs-other";
/// Name of the first disk under test; the others have a number behind it.
pub(crate) const TARGET_DISK: &str = "pickfs-target";
/// Disks of a simulation: the request for the agent, and the place for its records.
pub(crate) const REQUEST_DISK: &str = "pickfs-request";
pub(crate) const RECORDS_DISK: &str = "pickfs-records";
/// What asks for the kernel's symbols. They come into the second half of the records' disk.
pub(crate) const SYMBOLS_ASKED: &[u8; 16] = b"pickfs symbols?\n";
/// Where it is asked, in bytes before the end of that disk.
pub(crate) const SYMBOLS_ASKED_AT: u64 = 4096;
/// What the disk under test was given, and when.
pub(crate) const RECORDING_DISK: &str = "pickfs-recording";
pub(crate) const MOST_DISKS: usize = 16;
/// Where a guest's init puts its disks, by their serial numbers. Not below /dev/disk, whose links
/// programs take for udev's: `zpool create` removes them and waits for udev to make them anew.
pub(crate) const BY_SERIAL: &str = "/dev/pickfs";
/// The virtio-serial port that the agent speaks on.
pub(crate) const PORT: &str = "pickfs";
/// A word for the kernel that makes a guest say [`ALIVE`] on its console and end.
pub(crate) const PROBE_WORD: &str = "pickfs.probe";
/// Before the type of the root's file system.
pub(crate) const ROOT_WORD: &str = "pickfs.root=";
/// A word for the kernel that makes what is on a guest's disks its system.
pub(crate) const BOOT_WORD: &str = "pickfs.boot";
/// A word for the kernel: nothing passes between the guest and the host before the end.
pub(crate) const SIM_WORD: &str = "pickfs.sim";
/// Before the regions of memory that are a simulation's disks: "ADDRESS:BYTES,...", the root's
/// first. A disk that is recorded has address and bytes of its recording behind them.
pub(crate) const REGIONS_WORD: &str = "pickfs.regions=";
/// A word of the kernel's own: how fast its clocks go.
pub(crate) const CLOCK_WORD: &str = "tsc_early_khz";
/// Before the number of a simulated machine's processors, and how many times as fast they are while
/// the kernel compresses and in programs, in thousandths, with commas between.
pub(crate) const PACE_WORD: &str = "pickfs.pace=";
/// A word for the kernel: the machine stops itself once, to be saved.
pub(crate) const SAVED_WORD: &str = "pickfs.saved";
pub(crate) const ALIVE: &str = "pickfs init: alive";
/// What a guest says on its console that can be saved now; then it waits for a line on its port.
pub(crate) const WAITING: &str = "pickfs init: waiting";
/// Random bytes in that line.
pub(crate) const ENTROPY: usize = 64;

pub(crate) fn target_disk(index: usize) -> String {
    if index == 0 { TARGET_DISK.to_string() } else { format!("{TARGET_DISK}-{}", index + 1) }
}

/// What the booted machine says, a line of JSON each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// Process 1 runs, and its clock shows `at_ns` nanoseconds.
    Started { at_ns: u64 },
    /// The system is ready, and its clock now shows `at_ns` nanoseconds.
    Ready { at_ns: u64, booted: Box<Booted> },
}

/// A program ended.
pub(crate) fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(9), _) => "by signal 9, as the kernel ends programs when memory is short (see `dmesg`)".into(),
        (Some(signal), _) => format!("by signal {signal}"),
        (_, code) => format!("with exit code {}", code.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_with_its_kind() {
        assert_eq!(how(ExitStatus::from_raw(11)), "by signal 11");
        assert!(how(ExitStatus::from_raw(9)).starts_with("by signal 9, as the kernel"));
        assert_eq!(how(ExitStatus::from_raw(1 << 8)), "with exit code 1");
    }
}
