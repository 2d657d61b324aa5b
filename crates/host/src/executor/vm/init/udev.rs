//! What programs ask udev, which does not run in a guest: whether it is done with a device, and for
//! links to it.
//!
//! `zpool create` puts a partition table on a disk and waits half a minute for udev to have seen
//! the first partition (OpenZFS, `zpool_label_disk_wait`). A partition is taken as seen when udev's
//! database has links for it, all of which are there; it is looked for by the name that the disk
//! was given by, with its number.

use crate::executor::vm::names::BY_SERIAL;
use anyhow::{Context, Result};
use std::path::Path;

/// Programs that ask udev; where there are none, nothing is made.
const ASKING: &[&str] = &["/usr/sbin/zpool", "/sbin/zpool"];
const DATABASE: &str = "/run/udev/data";
/// Devices that share a major number with a disk, the disk's partitions among them.
const MINORS: u32 = 256;
/// What stands in the database of each: a link that is there (the folder of all links does), and a
/// time.
const SEEN: &str = "S:pickfs\nI:1\n";
/// The partitions that ZFS makes.
const PARTITIONS: [u32; 2] = [1, 9];

/// All disks that are there, and all partitions that they may get, are done with.
pub(crate) fn have_seen_all() -> Result<()> {
    if !is_asked() {
        return Ok(());
    }
    for folder in [DATABASE, BY_SERIAL] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {folder}"))?;
    }
    let listed = std::fs::read_to_string("/proc/devices").context("cannot read /proc/devices")?;
    for (major, minor) in majors(&listed).into_iter().flat_map(|major| (0..MINORS).map(move |minor| (major, minor))) {
        let file = format!("{DATABASE}/b{major}:{minor}");
        std::fs::write(&file, SEEN).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

/// Links to partitions next to the link to their disk, before the partitions are made.
pub(crate) fn link_partitions(link: &Path, disk: &Path) -> Result<()> {
    for number in PARTITIONS.iter().filter(|_| is_asked()) {
        let [link, partition] = [link, disk].map(|disk| partition(disk, *number));
        std::os::unix::fs::symlink(partition, &link).with_context(|| format!("cannot make {link}"))?;
    }
    Ok(())
}

fn is_asked() -> bool {
    ASKING.iter().any(|program| Path::new(program).exists())
}

/// As the kernel names it, and as others make a name of a name: `vdb1`, `nvme0n1p1`.
fn partition(disk: &Path, number: u32) -> String {
    let disk = disk.display().to_string();
    let between = if disk.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
    format!("{disk}{between}{number}")
}

/// Drivers of disks, and the number of partitions for which a driver has none left (`blkext`).
fn majors(listed: &str) -> Vec<u32> {
    let (_, blocks) = listed.split_once("Block devices:").unwrap_or_default();
    let named = blocks.lines().filter_map(|line| line.trim().split_once(' '));
    let ours = named.filter(|(_, name)| ["virtblk", "sd", "blkext", "nvme", "simdisk"].contains(name));
    let mut numbers: Vec<u32> = ours.filter_map(|(number, _)| number.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_told_from_other_devices() {
        let listed = "Character devices:\n  1 mem\n  8 sd\n\nBlock devices:\n  8 sd\n 65 sd\n  7 loop\n254 virtblk\n259 blkext\n";
        assert_eq!(majors(listed), [8, 65, 254, 259]);
        assert!(majors("nothing").is_empty());
    }

    #[test]
    fn partitions_are_named_as_the_kernel_does() {
        let named = [("/dev/vdb", 1), ("/dev/sda", 9), ("/dev/nvme0n1", 1), ("/dev/pickfs/pickfs-target-2", 9)];
        let named = named.map(|(disk, number)| partition(Path::new(disk), number));
        assert_eq!(named, ["/dev/vdb1", "/dev/sda9", "/dev/nvme0n1p1", "/dev/pickfs/pickfs-target-2p9"]);
    }
}
