//! Takes a step back. Every one is idempotent: undoing what never happened, or what is undone already, is no error.

use super::setting::set;
use super::zram;
use crate::journal::{Array, CacheSet, Record, StepTaken, Undo, Undone};
use crate::process::{RUN_MARK, argv, output};
use crate::protocol::Link;
use crate::stack::layer::GROUPS;
use crate::stack::recipe::is_setting_of_runs;
use crate::sys::devices;
use crate::sys::file::Entry;
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The whole of a run's (or a cell's) leftovers, for a host whose agent died, or a `clean` whose host died.
pub fn all(run: &str, steps: &[StepTaken], link: &mut Link) -> Result<()> {
    let mut failures = Vec::new();
    // What still runs is told, and the rest is undone as far as it can be.
    if let Err(error) = crate::process::kill_marked(&format!("{RUN_MARK}={run}"), &[]) {
        failures.push(error.to_string());
    }
    for step in steps.iter().rev() {
        match step.undo.as_ref().map_or(Ok(()), |undo| one(undo, run)) {
            Ok(()) => link.tell(Record::Undone(Undone { scope: step.scope.clone(), number: step.number })),
            Err(error) => failures.push(format!("{}: {error:#}", step.says)),
        }
    }
    if failures.is_empty() { Ok(()) } else { bail!("could not undo {}", failures.join("; ")) }
}

pub fn one(undo: &Undo, run: &str) -> Result<()> {
    if !is_ours(undo, run) {
        bail!(
            "refused {undo:?}: no run does that, so the journal was tampered with or damaged; look, and undo by hand"
        );
    }
    match undo {
        Undo::Unmount(at) => unmount(at),
        Undo::DetachLoops(file) => detach_loops(file),
        Undo::RemoveTree(path) => remove_tree(path),
        Undo::Restore { path, value } => restore(path, value),
        Undo::KillMarked(mark) => crate::process::kill_marked(mark, &[]).map(drop).context("cannot kill"),
        Undo::ExportPool(pool) => export_pool(pool),
        Undo::RemoveSegment(noted) => remove_segment(noted),
        Undo::RemoveZram(noted) => entry(noted)?.map_or(Ok(()), |note| zram::remove(&note.path())),
        Undo::RemoveMapping(name) => remove_mapping(name),
        Undo::RemoveGroup(name) => remove_group(name),
        Undo::StopArray(array) => stop_array(array),
        Undo::StopCache(set) => stop_cache(set),
    }
}

/// Only what a step of this run can have asked for: a journal is a file like any other, and `clean` may be root.
fn is_ours(undo: &Undo, run: &str) -> bool {
    let plain = |path: &Path| path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    let ours = format!("pickfs-{run}");
    let carries = |part: &str| part.strip_prefix(&ours).is_some_and(|more| more.is_empty() || more.starts_with('-'));
    let carried = |path: &Path| path.components().any(|part| part.as_os_str().to_str().is_some_and(carries));
    let is_device = |member: &PathBuf| plain(member) && member.starts_with("/dev");
    match undo {
        Undo::Unmount(path) | Undo::DetachLoops(path) | Undo::RemoveTree(path) => plain(path) && carried(path),
        Undo::RemoveSegment(path) => plain(path) && carried(path) && path.ends_with("cluster/postmaster.pid"),
        Undo::RemoveZram(path) => plain(path) && carried(path) && path.ends_with("zram"),
        Undo::Restore { path, .. } => plain(path) && is_setting_of_runs(path),
        Undo::KillMarked(mark) => mark.starts_with("PICKFS_"),
        Undo::ExportPool(name) | Undo::RemoveMapping(name) | Undo::RemoveGroup(name) => is_our_name(name),
        Undo::StopCache(CacheSet { uuid, members }) => {
            members.iter().all(is_device)
                && uuid.starts_with(CacheSet::PREFIX)
                && uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
        }
        Undo::StopArray(Array { device, members }) => {
            members.iter().all(is_device)
                && device.parent() == Some(Path::new("/dev/md"))
                && device.file_name().and_then(|name| name.to_str()).is_some_and(is_our_name)
        }
    }
}

/// The entry that a journal names. A folder of the path that is a link now was none when the step was taken: the journal
/// has paths without links. `None` where the folder above is gone.
fn entry(path: &Path) -> Result<Option<Entry>> {
    match Entry::without_links(path) {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| {
            format!("refused to follow {}: a folder in it is a symbolic link; look, and undo by hand", path.display())
        }),
    }
}

fn is_our_name(name: &str) -> bool {
    name.starts_with("pickfs") && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The kernel is asked, as a program that was killed may have made a mapping without a table, which has no file in `/dev/mapper`.
/// udev may still look at it.
fn remove_mapping(name: &str) -> Result<()> {
    if !devices::has_device_mapper() {
        return Ok(());
    }
    let list = argv(["dmsetup", "info", "--columns", "--noheadings", "--options", "name"]);
    if !output(&list, &[])?.lines().any(|mapping| mapping.trim() == name) {
        return Ok(());
    }
    output(&argv(["dmsetup", "remove", "--retry", name]), &[]).map(drop)
}

/// What marks the devices as parts of a group stays on them, and means nothing without the group.
fn remove_group(name: &str) -> Result<()> {
    let list = argv(["vgs", "--config", GROUPS, "--noheadings", "--options", "vg_name"]);
    let groups = output(&list, &[]).unwrap_or_default();
    if groups.lines().any(|group| group.trim() == name) {
        output(&argv(["vgremove", "--config", GROUPS, "--force", "--force", "--yes", name]), &[])?;
    }
    Ok(())
}

/// Without their superblocks, as udev would start the array anew where it sees them; also of an array that was stopped
/// before, or only begun. A member's number may have been given to another device since: only what says that it is of this
/// array is changed.
fn stop_array(array: &Array) -> Result<()> {
    let shown = |path: &Path| path.display().to_string();
    if devices::device_number(&array.device).is_some() {
        output(&argv(["mdadm", "--stop", &shown(&array.device)]), &[])?;
    }
    let name = array.device.file_name().unwrap_or_default().to_string_lossy();
    for member in array.members.iter().filter(|member| devices::device_number(member).is_some()) {
        // It fails where there is no superblock.
        let said = output(&argv(["mdadm", "--examine", "--export", &shown(member)]), &[]).unwrap_or_default();
        if is_member_of(&said, &name) {
            output(&argv(["mdadm", "--zero-superblock", &shown(member)]), &[])?;
        }
    }
    Ok(())
}

/// `MD_NAME=HOST:NAME`, or without the host.
fn is_member_of(examined: &str, array: &str) -> bool {
    let name = examined.lines().find_map(|line| line.strip_prefix("MD_NAME="));
    name.is_some_and(|name| name.rsplit(':').next() == Some(array))
}

/// The set stops when what is dirty is written, and what it caches with it. Members keep their numbers, which other devices
/// may have by now: only one that says that it is of this set is changed. It fails where there is no superblock.
fn stop_cache(set: &CacheSet) -> Result<()> {
    let stands = Path::new("/sys/fs/bcache").join(&set.uuid);
    for attempt in 0.. {
        if !stands.exists() {
            break;
        }
        // It may be on its way out already.
        let _ = std::fs::write(stands.join("stop"), "1");
        if attempt >= CACHE_ATTEMPTS {
            bail!("the cache set {} does not stop; is what it caches still mounted?", set.uuid);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    for member in set.members.iter().filter(|member| devices::device_number(member).is_some()) {
        let shown = member.display().to_string();
        let said = output(&argv(["bcache-super-show", &shown]), &[]).unwrap_or_default();
        if is_of_set(&said, &set.uuid) {
            forget_member(&shown)?;
        }
    }
    Ok(())
}

const CACHE_ATTEMPTS: u32 = 600;

/// The kernel lets go of members a while after the set has gone.
fn forget_member(device: &str) -> Result<()> {
    for attempt in 0.. {
        match output(&argv(["wipefs", "--all", "--quiet", device]), &[]) {
            Err(error) if attempt >= CACHE_ATTEMPTS => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
            Ok(_) => break,
        }
    }
    Ok(())
}

/// `cset.uuid\t\tUUID`.
fn is_of_set(shown: &str, uuid: &str) -> bool {
    shown.lines().any(|line| line.strip_prefix("cset.uuid").is_some_and(|found| found.trim() == uuid))
}

/// Patient with processes that are on their way out. Lazy at last where a FUSE daemon is dead, whose mount goes no other way;
/// any other mount that is in use is not hidden but told.
fn unmount(at: &Path) -> Result<()> {
    if entry(at)?.is_none() {
        return Ok(());
    }
    let plain = argv(["umount", &at.display().to_string()]);
    let lazy = argv(["umount", "--lazy", &at.display().to_string()]);
    for attempt in 0.. {
        if !devices::is_mount_point(at)? {
            return Ok(());
        }
        let is_last = attempt >= 20;
        let is_fuse = is_last && devices::mount_of(at)?.fs_type.starts_with("fuse");
        match output(if is_fuse { &lazy } else { &plain }, &[]) {
            Err(error) if is_last && devices::is_mount_point(at)? => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn detach_loops(file: &Path) -> Result<()> {
    for attempt in 0..40 {
        let loops = devices::loops_of(file)?;
        if loops.is_empty() {
            return Ok(());
        }
        for device in loops {
            // Failure is seen by what is left the next time round.
            let _ = output(&argv(["losetup", "--detach", &device]), &[]);
        }
        std::thread::sleep(Duration::from_millis(if attempt == 0 { 0 } else { 50 }));
    }
    bail!("{} is still attached to {}", file.display(), devices::loops_of(file)?.join(", "))
}

/// Never follows a mount.
fn remove_tree(path: &Path) -> Result<()> {
    if let Some(mounted) = devices::mounts_below(path)?.first() {
        bail!("refused to remove {}: {mounted} is mounted in it", path.display());
    }
    let Some(held) = entry(path)? else { return Ok(()) };
    match std::fs::remove_dir_all(held.path()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result.with_context(|| format!("cannot remove {}", path.display())),
    }
}

fn restore(path: &Path, value: &str) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    set(path, value)
}

/// Best effort, as a pool whose daemon was killed is gone already: the device is free all the same.
fn export_pool(pool: &str) -> Result<()> {
    let listed = output(&argv(["zpool", "list", "-H", "-o", "name"]), &[]).unwrap_or_default();
    if listed.lines().any(|name| name == pool) {
        output(&argv(["zpool", "export", "-f", pool]), &[])?;
    }
    Ok(())
}

/// By such a segment a second server would see that the first still runs; one that ends in order removes segment and
/// note. Only what the noted server made itself, as the number may have been given again, and what belongs to the user who
/// wrote the note.
fn remove_segment(noted: &Path) -> Result<()> {
    let Some(note) = entry(noted)? else { return Ok(()) };
    let Ok(owner) = note.path().symlink_metadata().map(|found| found.uid()) else { return Ok(()) };
    let noted = std::fs::read_to_string(note.path()).unwrap_or_default();
    let Some((server, segment)) = noted_segment(&noted) else { return Ok(()) };
    for attempt in 0.. {
        let all = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        match segment_of(&all, segment).filter(|found| (found.made_by, found.owner) == (server, owner)) {
            None => break,
            Some(Segment { attached: 0, .. }) => {
                return output(&argv(["ipcrm", "--shmem-id", &segment.to_string()]), &[]).map(drop);
            }
            Some(Segment { attached, .. }) if attempt >= 40 => {
                bail!(
                    "segment {segment} is still attached to {attached} processes; end them, then `ipcrm -m {segment}`"
                )
            }
            // Its processes see that it has gone, and are on their way out.
            Some(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    Ok(())
}

/// Process and segment: the first line, and the last number of the seventh.
fn noted_segment(noted: &str) -> Option<(u32, u32)> {
    let mut lines = noted.lines();
    let server = lines.next()?.trim().parse().ok()?;
    Some((server, lines.nth(5)?.split_ascii_whitespace().nth(1)?.parse().ok()?))
}

#[derive(Debug, PartialEq)]
struct Segment {
    made_by: u32,
    /// Processes that have it.
    attached: u32,
    owner: u32,
}

/// Fields 5, 7 and 8 (sysvipc(7)).
fn segment_of(all: &str, segment: u32) -> Option<Segment> {
    let mut rows = all.lines().map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
    let segment = segment.to_string();
    let row = rows.find(|row| row.get(1) == Some(&segment.as_str()))?;
    let number = |field: usize| row.get(field)?.parse().ok();
    Some(Segment { made_by: number(4)?, attached: number(6)?, owner: number(7)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(device: &str) -> Undo {
        Undo::StopArray(Array { device: device.into(), members: vec!["/dev/null".into(), "/dev/nowhere".into()] })
    }

    fn stop_of(uuid: &str, member: &str) -> Undo {
        Undo::StopCache(CacheSet { uuid: uuid.into(), members: vec![member.into()] })
    }

    #[test]
    fn only_sets_of_our_own_are_stopped() {
        let uuid = "7069636b-6673-0000-af63-dc4c8601ec8c";
        // As bcache-super-show 1.0.8 prints it.
        let said = format!("dev.uuid\t\t1f\ndev.sectors_first\t16\n\ncset.uuid\t\t{uuid}\n");
        assert!(is_of_set(&said, uuid) && !is_of_set(&said, &uuid[..35]) && !is_of_set("", uuid));
        for undo in [
            stop_of("11111111-6673-0000-af63-dc4c8601ec8c", "/dev/null"),
            stop_of("7069636b-6673-/../x", "/dev/null"),
            stop_of(uuid, "/srv/disk"),
        ] {
            assert!(one(&undo, "r").unwrap_err().to_string().starts_with("refused"), "{undo:?}");
        }
    }

    #[test]
    fn only_members_of_the_array_are_forgotten() {
        let said = "MD_LEVEL=raid1\nMD_DEVICES=2\nMD_NAME=host:pickfsa1l0\nMD_UUID=1:2:3:4\n";
        assert!(is_member_of(said, "pickfsa1l0") && is_member_of("MD_NAME=pickfsa1l0", "pickfsa1l0"));
        assert!(!is_member_of(said, "pickfsa1l") && !is_member_of(said, "a1l0") && !is_member_of("", "pickfsa1l0"));
        let old: Undo = serde_json::from_str("{\"stop_array\":\"/dev/md/pickfsx\"}").unwrap();
        assert_eq!(old, Undo::StopArray(Array { device: "/dev/md/pickfsx".into(), members: Vec::new() }));
        let whole = stop("/dev/md/pickfsx");
        assert_eq!(serde_json::from_str::<Undo>(&serde_json::to_string(&whole).unwrap()).unwrap(), whole);
        let odd = Undo::StopArray(Array { device: "/dev/md/pickfsx".into(), members: vec!["/srv/disk".into()] });
        assert!(one(&odd, "r").unwrap_err().to_string().starts_with("refused"));
    }

    #[test]
    fn a_mount_in_use_is_told_and_not_hidden() {
        if !rustix::process::geteuid().is_root() {
            return crate::not_run("only root can mount");
        }
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap().join("pickfs-r");
        std::fs::create_dir(&at).unwrap();
        output(&argv(["mount", "-t", "tmpfs", "pickfs", &at.display().to_string()]), &[]).unwrap();
        let held = std::fs::File::create(at.join("held")).unwrap();
        let found = one(&Undo::Unmount(at.clone()), "r");
        let is_there = devices::is_mount_point(&at).unwrap();
        drop(held);
        one(&Undo::Unmount(at.clone()), "r").unwrap();
        assert!(found.is_err() && is_there, "{found:?}");
        assert!(!devices::is_mount_point(&at).unwrap());
    }

    #[test]
    fn what_never_happened_is_undone_without_an_error() {
        for undo in [
            Undo::Unmount("/nowhere/pickfs-r/target".into()),
            Undo::RemoveTree("/nowhere/pickfs-r".into()),
            Undo::Restore { path: "/sys/dev/block/0:0/queue/scheduler".into(), value: "none".into() },
            Undo::KillMarked("PICKFS_DAEMON=of-no-run".into()),
            Undo::RemoveSegment("/nowhere/pickfs-r/cluster/postmaster.pid".into()),
            Undo::RemoveZram("/nowhere/pickfs-r/zram".into()),
            Undo::RemoveMapping("pickfsnever".into()),
            Undo::RemoveGroup("pickfsnever".into()),
            stop("/dev/md/pickfsnever"),
            stop_of("7069636b-6673-0000-0000-000000000001", "/dev/null"),
        ] {
            one(&undo, "r").unwrap_or_else(|error| panic!("{undo:?}: {error:#}"));
        }
    }

    #[test]
    fn what_no_step_asks_for_is_refused() {
        let marked = std::process::Command::new("sleep").arg("60").env("OTHER", "mark").spawn();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "kept").unwrap();
        for undo in [
            Undo::Unmount("/".into()),
            Undo::DetachLoops("/srv/disk.img".into()),
            Undo::RemoveTree(folder.path().join("pickfs-r/..")),
            Undo::RemoveTree("pickfs-r".into()),
            Undo::RemoveZram("/dev/shm/pickfs-r/other".into()),
            Undo::RemoveZram("/dev/shm/pickfs-other/zram".into()),
            Undo::Restore { path: file.clone(), value: "lost".into() },
            Undo::Restore { path: "/proc/sys/vm/../../../etc/motd".into(), value: "lost".into() },
            Undo::Restore { path: "/sys/power/state".into(), value: "mem".into() },
            Undo::Restore { path: "/proc/sys/vm/overcommit_memory".into(), value: "2".into() },
            Undo::Restore { path: "/proc/sys/vm/sub/dirty_bytes".into(), value: "1".into() },
            Undo::Restore { path: "/sys/dev/block/8:0/queue/io_timeout".into(), value: "1".into() },
            Undo::Restore { path: "/sys/kernel/queue/scheduler".into(), value: "none".into() },
            Undo::KillMarked("OTHER=mark".into()),
            Undo::ExportPool("tank".into()),
            Undo::RemoveSegment("/var/lib/postgresql/cluster/postmaster.pid".into()),
            Undo::RemoveSegment("/nowhere/pickfs-r/notes".into()),
            Undo::RemoveMapping("home".into()),
            Undo::RemoveMapping("pickfs/../home".into()),
            Undo::RemoveGroup("vg0".into()),
            Undo::RemoveGroup("pickfs-group".into()),
            stop("/dev/md/home"),
            stop("/dev/md0"),
            stop("/dev/md/../pickfsarray"),
            stop("/dev/md/pickfs/../home"),
        ] {
            let error = one(&undo, "r").unwrap_err().to_string();
            assert!(error.starts_with("refused"), "{undo:?}: {error}");
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), "kept");
        let mut marked = marked.unwrap();
        assert!(marked.try_wait().unwrap().is_none());
        marked.kill().unwrap();
        marked.wait().unwrap();
    }

    #[test]
    fn a_segment_goes_with_the_server_that_made_it_and_no_other_does() {
        use std::process::{Command, Stdio};
        let made = Command::new("ipcmk").args(["-M", "4096"]).stdout(Stdio::piped()).spawn();
        let made = made.expect("ipcmk of util-linux");
        let server = made.id();
        let printed = String::from_utf8(made.wait_with_output().unwrap().stdout).unwrap();
        let segment: u32 = printed.split_whitespace().next_back().unwrap().parse().unwrap();
        let is_there = || {
            let all = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
            segment_of(&all, segment).is_some_and(|found| (found.made_by, found.attached) == (server, 0))
        };
        let folder = tempfile::tempdir().unwrap();
        let cluster = folder.path().join("pickfs-r/cluster");
        std::fs::create_dir_all(&cluster).unwrap();
        let undo = Undo::RemoveSegment(cluster.join("postmaster.pid"));
        let note = |server: u32| {
            let noted = format!("{server}\n/d\n1795253383\n5432\n/s\n\n  9775883   {segment}\nready   \n");
            std::fs::write(cluster.join("postmaster.pid"), noted).unwrap();
        };
        for (noted, stays) in [(server + 1, true), (server, false), (server, false)] {
            note(noted);
            one(&undo, "r").unwrap();
            assert_eq!(is_there(), stays, "{noted}");
        }
    }

    /// As whoever may write to the folder above can arrange it after the journal was written.
    #[test]
    fn a_link_in_the_path_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (real, kept) = (folder.path().canonicalize().unwrap(), "data/kept");
        std::fs::create_dir_all(real.join("other").join(kept)).unwrap();
        std::os::unix::fs::symlink(real.join("other"), real.join("pickfs-r")).unwrap();
        std::os::unix::fs::symlink(real.join("other"), real.join("up")).unwrap();
        for path in ["pickfs-r/data", "up/pickfs-r/data"] {
            for undo in [Undo::RemoveTree(real.join(path)), Undo::Unmount(real.join(path))] {
                let error = format!("{:#}", one(&undo, "r").unwrap_err());
                assert!(error.contains("symbolic link"), "{undo:?}: {error}");
            }
        }
        // A link that is itself to be removed goes, and what it names stays.
        one(&Undo::RemoveTree(real.join("pickfs-r")), "r").unwrap();
        assert!(real.join("other").join(kept).exists() && !real.join("pickfs-r").exists());
    }

    #[test]
    fn only_trees_of_the_run_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("pickfs-other/kept");
        std::fs::create_dir_all(&other).unwrap();
        assert!(one(&Undo::RemoveTree(other.clone()), "mine").unwrap_err().to_string().contains("refused"));
        assert!(other.exists());
        one(&Undo::RemoveTree(folder.path().join("pickfs-other")), "other").unwrap();
        assert!(!other.exists());
    }
}
