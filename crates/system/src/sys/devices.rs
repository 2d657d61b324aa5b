//! Mounts, loop devices and disks, as /proc and /sys show them.

use super::block;
use anyhow::{Context, Result};
use procfs::process::{MountInfo, Process};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All mounts that this process sees.
pub(crate) fn mounts() -> Result<Vec<MountInfo>> {
    let mounts = Process::myself().and_then(|me| me.mountinfo()).context("cannot read /proc/self/mountinfo")?;
    Ok(mounts.0)
}

/// The mount that this path, which has no symlinks, lies on: of all that cover it the deepest, and
/// of these the latest.
pub fn mount_of(path: &Path) -> Result<MountInfo> {
    let covering = mounts()?.into_iter().filter(|mount| path.starts_with(&mount.mount_point));
    covering
        .max_by_key(|m| m.mount_point.components().count())
        .with_context(|| format!("{} is on no mount", path.display()))
}

pub fn is_mount_point(path: &Path) -> Result<bool> {
    Ok(mounts()?.iter().any(|mount| mount.mount_point == path))
}

/// Mount points at or below a path.
pub fn mounts_below(path: &Path) -> Result<Vec<String>> {
    let path = resolved(path);
    let below = mounts()?.into_iter().filter(|mount| mount.mount_point.starts_with(&path));
    Ok(below.map(|mount| mount.mount_point.display().to_string()).collect())
}

/// Options of the mount and of its superblock, as mountinfo spells them.
pub fn effective_options(mount: &MountInfo) -> BTreeMap<String, Option<String>> {
    let both = mount.mount_options.iter().chain(mount.super_options.iter());
    both.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The path as the kernel names it, without symlinks; missing parts of it stay as spelled.
pub fn resolved(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|part| Some((part.canonicalize().ok()?, path.strip_prefix(part).ok()?)));
    match there {
        // Joined with nothing it would end in a slash, as a folder does.
        Some((real, gone)) if gone.as_os_str().is_empty() => real,
        Some((real, gone)) => real.join(gone),
        None => path.to_path_buf(),
    }
}

/// A loop device and its file, as the kernel names it, which follows no link.
#[derive(Clone, Debug, PartialEq)]
pub struct Attached {
    pub device: PathBuf,
    pub file: PathBuf,
    pub deleted: bool,
}

/// Every loop device that is attached to a file.
pub fn attached_loops() -> Result<Vec<Attached>> {
    let entries = std::fs::read_dir("/sys/block").context("cannot list /sys/block")?;
    Ok(entries.flatten().filter_map(|entry| attached(&entry.path())).collect())
}

/// What the loop device is attached to whose folder in /sys this is.
pub fn attached(device: &Path) -> Option<Attached> {
    let shown = content(device.join("loop/backing_file"))?;
    let (file, deleted) = shown.strip_suffix(" (deleted)").map_or((shown.as_str(), false), |file| (file, true));
    let device = Path::new("/dev").join(device.canonicalize().ok()?.file_name()?);
    Some(Attached { device, file: file.into(), deleted })
}

/// Loop devices on any of these block devices, whatever name they were given: the device below, and
/// the loop device. The kernel lets others claim a device below a loop device, and lists none of
/// them as its holder.
pub fn loops_on(devices: &[(u32, u32)]) -> Vec<((u32, u32), PathBuf)> {
    let names = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let loops = names.filter(|entry| entry.path().join("loop/backing_file").exists());
    let nodes = loops.map(|entry| Path::new("/dev").join(entry.file_name()));
    let on = nodes.filter_map(|node| Some((below_loop(&node)?, node)));
    on.filter(|(below, _)| devices.contains(below)).collect()
}

/// By its number, where its node may be missing by its name.
fn below_loop(node: &Path) -> Option<(u32, u32)> {
    block::loop_status(node).ok().and_then(|status| status.device).or_else(|| {
        let shown = content(Path::new("/sys/block").join(node.file_name()?).join("loop/backing_file"))?;
        device_number(Path::new(&shown))
    })
}

/// What a loop device lies on, down to what is none.
pub fn all_below_loop(device: (u32, u32)) -> Vec<(u32, u32)> {
    let is_loop = sys_path(device).join("loop/backing_file").exists();
    let below = node(device).filter(|_| is_loop).and_then(|node| below_loop(&node));
    below.into_iter().flat_map(|below| std::iter::once(below).chain(all_below_loop(below))).collect()
}

/// What is never another device again: its number, and which of those it is that had this number
/// since the machine was started, where the kernel counts them (5.15).
pub fn instance(device: (u32, u32)) -> String {
    let counted = whole_disk(device).and_then(|disk| content(disk.join("diskseq")));
    let counted = counted.map(|count| format!(" of disk {count}")).unwrap_or_default();
    format!("{}:{}{counted}", device.0, device.1)
}

/// `major:minor` of a block device node.
pub fn device_number(device: &Path) -> Option<(u32, u32)> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let metadata = device.metadata().ok().filter(|m| m.file_type().is_block_device())?;
    Some(numbers(metadata.rdev()))
}

/// `major:minor` of the disk that holds a file, where it lies on one.
pub fn disk_of_file(path: &Path) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    let own = numbers(path.metadata().ok()?.dev());
    if sys_path(own).exists() {
        return Some(own);
    }
    // btrfs and zfs give files their own device number: ask where the mount comes from.
    device_number(Path::new(mount_of(&path.canonicalize().ok()?).ok()?.mount_source.as_deref()?))
}

/// The whole disk of a partition, in /sys; another device is its own.
pub fn whole_disk(device: (u32, u32)) -> Option<PathBuf> {
    whole(&sys_path(device))
}

fn whole(folder: &Path) -> Option<PathBuf> {
    let own = folder.canonicalize().ok()?;
    if own.join("partition").exists() { own.parent().map(Path::to_path_buf) } else { Some(own) }
}

/// As a disk names itself, for its partitions too.
pub fn model(device: (u32, u32)) -> Option<String> {
    model_in(&sys_path(device))
}

fn model_in(folder: &Path) -> Option<String> {
    content(whole(folder)?.join("device/model"))
}

/// The disk below a loop device.
pub fn below(device: (u32, u32)) -> Option<(u32, u32)> {
    disk_of_file(&backing_file(device)?)
}

/// The disk that holds the file below a loop device, and the file of that one, down to the last.
pub fn lowest_disk(device: (u32, u32)) -> Option<PathBuf> {
    const MOST: usize = 16;
    whole_disk(std::iter::successors(Some(device), |above| below(*above)).take(MOST).last()?)
}

/// The kernel has device mapper, built in or loaded. `/dev/mapper/control` alone does not say so:
/// any call of dmsetup or cryptsetup makes it.
pub fn has_device_mapper() -> bool {
    content("/proc/misc").is_some_and(|misc| lists_device_mapper(&misc))
}

fn lists_device_mapper(misc: &str) -> bool {
    misc.lines().any(|line| line.split_whitespace().nth(1) == Some("device-mapper"))
}

/// All devices that a mapping, an array or a cache lies on.
pub fn all_below(device: (u32, u32)) -> Vec<(u32, u32)> {
    let numbers = listed(&sys_path(device).join("slaves")).into_iter();
    numbers.flat_map(|below| std::iter::once(below).chain(all_below(below))).collect()
}

/// Every device of the mounted btrfs that this device is one of; of others none.
pub fn members_of_btrfs(device: (u32, u32)) -> Vec<(u32, u32)> {
    members_among(Path::new("/sys/fs/btrfs"), device)
}

fn members_among(filesystems: &Path, device: (u32, u32)) -> Vec<(u32, u32)> {
    let all = std::fs::read_dir(filesystems).into_iter().flatten().flatten();
    let mut members = all.map(|filesystem| listed(&filesystem.path().join("devices")));
    members.find(|members| members.contains(&device)).unwrap_or_default()
}

/// Numbers of the devices that a folder in /sys has links to.
fn listed(folder: &Path) -> Vec<(u32, u32)> {
    let number = |entry: std::fs::DirEntry| {
        let shown = content(entry.path().join("dev"))?;
        let (major, minor) = shown.split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(number).collect()
}

/// The file of a loop device; none of any other device.
pub fn loop_file(device: &Path) -> Option<PathBuf> {
    backing_file(device_number(device)?)
}

fn backing_file(device: (u32, u32)) -> Option<PathBuf> {
    content(sys_path(device).join("loop/backing_file")).map(PathBuf::from)
}

/// As udev names it.
pub fn node(device: (u32, u32)) -> Option<PathBuf> {
    let uevent = content(sys_path(device).join("uevent"))?;
    uevent.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(|name| Path::new("/dev").join(name))
}

/// `/sys/dev/block/MAJOR:MINOR`.
pub fn sys_path(device: (u32, u32)) -> PathBuf {
    format!("/sys/dev/block/{}:{}", device.0, device.1).into()
}

/// A file below the `queue` folder of a device, or of the disk that a partition is on.
pub fn queue_file(device: (u32, u32), name: &str) -> Option<PathBuf> {
    let own = sys_path(device);
    let candidates = [own.join("queue").join(name), own.canonicalize().ok()?.parent()?.join("queue").join(name)];
    candidates.into_iter().find(|path| path.exists())
}

fn numbers(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// What overlayfs does by itself, which a kernel's configuration decides.
pub fn overlay_parameters() -> String {
    let shown = |name: &str| {
        let value = content(format!("/sys/module/overlay/parameters/{name}")).unwrap_or("unknown".into());
        format!("{name}={value}")
    };
    ["index", "metacopy", "redirect_dir", "xino_auto"].map(shown).join(" ")
}

/// Trimmed content of a small file of /proc or /sys.
pub fn content(path: impl AsRef<Path>) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_a_mount_and_proc_is_below_it() {
        assert!(is_mount_point(Path::new("/")).unwrap());
        assert!(mounts_below(Path::new("/proc")).unwrap().contains(&"/proc".to_string()));
        assert_eq!(mount_of(Path::new("/proc/self/status")).unwrap().fs_type, "proc");
    }

    /// A folder in memory has no disk, whatever lies below its link.
    #[test]
    fn the_disk_of_a_link_is_the_one_that_it_leads_to() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/shm", &link).unwrap();
        assert_eq!(disk_of_file(&link), disk_of_file(Path::new("/dev/shm")));
    }

    #[test]
    fn a_partition_has_the_model_of_its_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (disk, partition) = (folder.path().join("sda"), folder.path().join("sda/sda1"));
        [disk.join("device"), partition.clone()].iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        std::fs::write(disk.join("device/model"), "KINGSTON KC3000\n").unwrap();
        std::fs::write(partition.join("partition"), "1\n").unwrap();
        assert_eq!(
            [&disk, &partition].map(|at| model_in(at)),
            [Some("KINGSTON KC3000"); 2].map(|name| name.map(String::from))
        );
    }

    #[test]
    fn members_of_a_btrfs_are_found_by_each_of_them() {
        let folder = tempfile::tempdir().unwrap();
        for (path, number) in [("one/devices/sda", "8:0"), ("two/devices/sdb", "8:16"), ("two/devices/sdc1", "8:33")] {
            std::fs::create_dir_all(folder.path().join(path)).unwrap();
            std::fs::write(folder.path().join(path).join("dev"), number).unwrap();
        }
        std::fs::create_dir(folder.path().join("features")).unwrap();
        let of = |device| {
            let mut found = members_among(folder.path(), device);
            found.sort_unstable();
            found
        };
        let both = vec![(8, 16), (8, 33)];
        assert_eq!([of((8, 16)), of((8, 33)), of((8, 0)), of((8, 1))], [both.clone(), both, vec![(8, 0)], vec![]]);
    }

    #[test]
    fn the_kernel_lists_device_mapper_or_has_none() {
        assert!(lists_device_mapper("235 autofs\n236 device-mapper\n  1 psaux\n"));
        assert!(!lists_device_mapper("234 btrfs-control\n229 fuse\n"));
    }

    #[test]
    fn a_path_is_resolved_as_far_as_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().canonicalize().unwrap().join("real"), folder.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(resolved(&link.join("pickfs-r/disk.img")), real.join("pickfs-r/disk.img"));
        assert_eq!(resolved(&link), real);
    }
}
