//! Takes a step back. Every one is idempotent: undoing what never happened, or what is undone already, is no error.

use super::image;
use super::own::Own;
use super::setting;
use super::zram;
use crate::stack::layer::GROUPS;
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::{Array, CacheSet, Record, StepTaken, Undo, Undone};
use pickfs_core::protocol::Link;
use pickfs_system::process::{RUN_MARK, argv, exposed, kill_marked_but_successors, kill_with_all, output};
use pickfs_system::sys::devices;
use pickfs_system::sys::file::{Entry, beginning};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The whole of a run's (or a cell's) leftovers, for a host whose agent died, or a `clean` whose host died.
pub(crate) fn all(own: &Own, steps: &[StepTaken], link: &mut Link) -> Result<()> {
    ensure!(
        own.is_run(),
        "refused: `{}` is not the name of a run, so the journal was tampered with",
        own.run.escape_debug()
    );
    let mut failures = Vec::new();
    // What still runs is reported, and the rest is undone as far as it can be.
    if let Err(error) = kill_marked_but_successors(&format!("{RUN_MARK}={}", own.run)) {
        failures.push(error.to_string());
    }
    for step in steps.iter().rev() {
        match step.undo.as_ref().map_or(Ok(()), |undo| one(undo, &step.scope, own)) {
            Ok(()) => link.tell(Record::Undone(Undone { scope: step.scope.clone(), number: step.number })),
            Err(error) => failures.push(format!("{}: {error:#}", step.says)),
        }
    }
    if failures.is_empty() { Ok(()) } else { bail!("could not undo {}", failures.join("; ")) }
}

/// Takes back one step of this scope.
pub(crate) fn one(undo: &Undo, scope: &str, own: &Own) -> Result<()> {
    if !own.covers(scope, undo) {
        bail!(
            "refused {undo:?}: no run does that, so the journal was tampered with or damaged; look, and undo by hand"
        );
    }
    match undo {
        Undo::Unmount(at) => unmount(at),
        Undo::DetachLoops(file) => image::detach(file),
        Undo::RemoveTree(path) => remove_tree(path),
        Undo::Restore { path, value, set } => setting::restore(path, value, set.as_ref(), own),
        Undo::KillMarked(mark) => kill_of_run(own.run, mark),
        Undo::ExportPool(pool) => export_pool(pool),
        Undo::RemoveSegment(noted) => remove_segment(noted),
        Undo::RemoveZram(noted) => entry(noted)?.map_or(Ok(()), |note| zram::remove(&note, noted)),
        Undo::RemoveMapping(name) => remove_mapping(name),
        Undo::RemoveGroup(name) => remove_group(name),
        Undo::StopArray(array) => stop_array(array),
        Undo::StopCache(set) => stop_cache(set),
    }
}

fn kill_of_run(run: &str, mark: &str) -> Result<()> {
    kill_with_all(&[&format!("{RUN_MARK}={run}"), mark]).map(drop).context("cannot kill")
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

/// Waits for processes that are about to end. Lazy at last where a FUSE daemon is dead, whose mount
/// cannot be removed otherwise; any other mount that is in use is not hidden but reported.
fn unmount(at: &Path) -> Result<()> {
    if entry(at)?.is_none() {
        return Ok(());
    }
    // umount(8) takes a path.
    if let Some(exposed) = at.parent().and_then(exposed) {
        bail!("refused to unmount {}: {}", at.display(), exposed.message);
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

/// Best effort, as the pool of a daemon that was killed is gone already: the device is free then.
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
    let file = match note.open() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.with_context(|| format!("refused to read {}: it is no plain file", noted.display()))?,
    };
    let owner = file.metadata()?.uid();
    let noted = beginning(file).unwrap_or_default();
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
    use crate::stack::layer::uuid_of_cache;
    use std::path::PathBuf;

    const RUN: &str = "0123456789ab";
    const CELL: &str = "0123456789abcdef";

    /// As a step of the run's one cell.
    fn one(undo: &Undo) -> Result<()> {
        super::one(undo, CELL, &Own { run: RUN, disks: &[] })
    }

    fn stop(device: &str) -> Undo {
        Undo::StopArray(Array { device: device.into(), members: vec!["/dev/null".into(), "/dev/nowhere".into()] })
    }

    fn stop_of(uuid: &str, member: &str) -> Undo {
        Undo::StopCache(CacheSet { uuid: uuid.into(), members: vec![member.into()] })
    }

    fn restore(path: impl Into<PathBuf>, value: &str) -> Undo {
        Undo::Restore { path: path.into(), value: value.into(), set: None }
    }

    /// The folder of the run for mounts, made anew, which goes with the guard.
    struct Mounts(PathBuf);

    impl Mounts {
        fn of(run: &str) -> Mounts {
            let folder = Path::new("/run").join(format!("pickfs-{run}"));
            std::fs::create_dir(&folder).unwrap();
            Mounts(folder)
        }
    }

    impl Drop for Mounts {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_sets_of_our_own_are_stopped() {
        let uuid = "7069636b-6673-0000-af63-dc4c8601ec8c";
        // As bcache-super-show 1.0.8 prints it.
        let said = format!("dev.uuid\t\t1f\ndev.sectors_first\t16\n\ncset.uuid\t\t{uuid}\n");
        assert!(is_of_set(&said, uuid) && !is_of_set(&said, &uuid[..35]) && !is_of_set("", uuid));
    }

    #[test]
    fn only_members_of_the_array_are_forgotten() {
        let said = "MD_LEVEL=raid1\nMD_DEVICES=2\nMD_NAME=host:pickfsa1l0\nMD_UUID=1:2:3:4\n";
        assert!(is_member_of(said, "pickfsa1l0") && is_member_of("MD_NAME=pickfsa1l0", "pickfsa1l0"));
        assert!(!is_member_of(said, "pickfsa1l") && !is_member_of(said, "a1l0") && !is_member_of("", "pickfsa1l0"));
        let whole = stop("/dev/md/pickfsx");
        assert_eq!(serde_json::from_str::<Undo>(&serde_json::to_string(&whole).unwrap()).unwrap(), whole);
    }

    #[test]
    fn a_mount_in_use_is_told_and_not_hidden() {
        if !rustix::process::geteuid().is_root() {
            return pickfs_test_support::not_run("only root can mount");
        }
        let run = format!("{:012x}", std::process::id());
        let mounts = Mounts::of(&run);
        let at = mounts.0.join("target");
        std::fs::create_dir(&at).unwrap();
        let unmount = || super::one(&Undo::Unmount(at.clone()), CELL, &Own { run: &run, disks: &[] });
        output(&argv(["mount", "-t", "tmpfs", "pickfs", &at.display().to_string()]), &[]).unwrap();
        let held = std::fs::File::create(at.join("held")).unwrap();
        let found = unmount();
        let is_there = devices::is_mount_point(&at).unwrap();
        drop(held);
        unmount().unwrap();
        assert!(found.is_err() && is_there, "{found:?}");
        assert!(!devices::is_mount_point(&at).unwrap());
    }

    #[test]
    fn what_never_happened_is_undone_without_an_error() {
        let name = |more: &str| format!("pickfs{CELL}{more}");
        for undo in [
            Undo::Unmount("/run/pickfs-0123456789ab/target".into()),
            Undo::RemoveTree("/nowhere/pickfs-0123456789ab".into()),
            Undo::RemoveTree("/nowhere/pickfs-0123456789ab-source".into()),
            Undo::DetachLoops("/nowhere/pickfs-0123456789ab/disk-4096.img".into()),
            Undo::DetachLoops("/run/pickfs-0123456789ab/memory-4096/disk-4096.img".into()),
            restore("/sys/dev/block/0:0/queue/scheduler", "none"),
            Undo::KillMarked(format!("PICKFS_DAEMON={}", name(""))),
            Undo::KillMarked(format!("PICKFS_RUN={RUN}")),
            Undo::RemoveSegment("/nowhere/pickfs-0123456789ab/cluster/postmaster.pid".into()),
            Undo::RemoveZram("/dev/shm/pickfs-0123456789ab/zram".into()),
            Undo::RemoveMapping(name("l0")),
            Undo::RemoveMapping(name("l12d3")),
            Undo::RemoveGroup(name("l1")),
            stop(&format!("/dev/md/{}", name("l2"))),
            stop_of(&uuid_of_cache(&name("l3")), "/dev/null"),
        ] {
            one(&undo).unwrap_or_else(|error| panic!("{undo:?}: {error:#}"));
        }
    }

    #[test]
    fn what_no_step_asks_for_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "kept").unwrap();
        let foreign = "7069636b-6673-0000-af63-dc4c8601ec8c";
        let own = uuid_of_cache(&format!("pickfs{CELL}l0"));
        for undo in [
            Undo::Unmount("/".into()),
            Undo::Unmount("/srv/pickfs-0123456789ab/target".into()),
            Undo::Unmount("/run/pickfs-0123456789ab/target/work/more".into()),
            Undo::DetachLoops("/srv/disk-1.img".into()),
            Undo::DetachLoops("/srv/pickfs-0123456789ab/strangers.img".into()),
            Undo::DetachLoops("/srv/pickfs-0123456789ab/up/disk-1.img".into()),
            Undo::RemoveTree(folder.path().join("pickfs-0123456789ab/..")),
            Undo::RemoveTree("pickfs-0123456789ab".into()),
            Undo::RemoveTree("/srv/pickfs-0123456789ab-runs".into()),
            Undo::RemoveTree("/srv/pickfs-0123456789abc".into()),
            Undo::RemoveTree("/srv/pickfs-other".into()),
            Undo::RemoveZram("/dev/shm/pickfs-0123456789ab/other".into()),
            Undo::RemoveZram("/tmp/pickfs-0123456789ab/zram".into()),
            restore(file.clone(), "lost"),
            restore("/proc/sys/vm/../../../etc/motd", "lost"),
            restore("/sys/power/state", "mem"),
            restore("/proc/sys/vm/overcommit_memory", "2"),
            restore("/proc/sys/vm/sub/dirty_bytes", "1"),
            restore("/proc/sys/vm/dirty_bytes", "1\n2"),
            restore("/sys/dev/block/8:0/queue/io_timeout", "1"),
            restore("/sys/kernel/queue/scheduler", "none"),
            Undo::KillMarked("OTHER=mark".into()),
            Undo::KillMarked("PICKFS_RUN=ba9876543210".into()),
            Undo::KillMarked("PICKFS_FULL=1".into()),
            Undo::KillMarked("PICKFS_DAEMON=pickfsfedcba9876543210".into()),
            Undo::ExportPool("tank".into()),
            Undo::ExportPool("pickfsfedcba9876543210".into()),
            Undo::ExportPool(format!("pickfs{CELL}l0")),
            Undo::RemoveSegment("/var/lib/postgresql/cluster/postmaster.pid".into()),
            Undo::RemoveSegment("/nowhere/pickfs-0123456789ab/notes".into()),
            Undo::RemoveMapping("home".into()),
            Undo::RemoveMapping(format!("pickfs{CELL}")),
            Undo::RemoveMapping(format!("pickfs{CELL}l0/../home")),
            Undo::RemoveMapping("pickfsfedcba9876543210l0".into()),
            Undo::RemoveGroup("vg0".into()),
            Undo::RemoveGroup(format!("pickfs{CELL}-group")),
            stop("/dev/md/home"),
            stop("/dev/md0"),
            stop(&format!("/dev/md/../pickfs{CELL}l0")),
            Undo::StopArray(Array {
                device: format!("/dev/md/pickfs{CELL}l0").into(),
                members: vec!["/srv/disk".into()],
            }),
            stop_of(foreign, "/dev/null"),
            stop_of(&own, "/srv/disk"),
            stop_of("7069636b-6673-/../x", "/dev/null"),
        ] {
            let error = one(&undo).unwrap_err().to_string();
            assert!(error.starts_with("refused"), "{undo:?}: {error}");
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), "kept");
    }

    /// Any other word may be part of a name that no run has given.
    #[test]
    fn a_run_that_is_named_as_none_is_leaves_all_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        for run in ["", "runs", "main", "0123456789a", "0123456789AB", "0123456789abc", "0123456789a/"] {
            let kept = folder.path().join(format!("pickfs-{run}/kept"));
            std::fs::create_dir_all(&kept).unwrap();
            let (own, undo) = (Own { run, disks: &[] }, Undo::RemoveTree(kept.parent().unwrap().into()));
            assert!(super::one(&undo, "run", &own).unwrap_err().to_string().starts_with("refused"), "{run}");
            assert!(all(&own, &[], &mut Link::to_nobody()).is_err(), "{run}");
            assert!(kept.exists(), "{run}");
        }
    }

    #[test]
    fn a_daemon_goes_with_its_run_and_no_other_does() {
        let mark = format!("pickfs{CELL}");
        let daemon = |run: &str| {
            let marks = [(RUN_MARK, run), (pickfs_system::process::DAEMON_MARK, mark.as_str())];
            pickfs_system::process::command(&argv(["sleep", "60"]), &marks).unwrap().spawn().unwrap()
        };
        let (mut own, mut other) = (daemon(RUN), daemon("ba9876543210"));
        // One process shows its environment after the other.
        for run in [RUN, "ba9876543210"] {
            while pickfs_system::process::marked_processes(&format!("{RUN_MARK}={run}")).is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        one(&Undo::KillMarked(format!("PICKFS_DAEMON={mark}"))).unwrap();
        assert!(own.wait().unwrap().code().is_none());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
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
        let cluster = folder.path().canonicalize().unwrap().join("pickfs-0123456789ab/cluster");
        std::fs::create_dir_all(&cluster).unwrap();
        let undo = Undo::RemoveSegment(cluster.join("postmaster.pid"));
        let note = |server: u32| {
            let noted = format!("{server}\n/d\n1795253383\n5432\n/s\n\n  9775883   {segment}\nready   \n");
            std::fs::write(cluster.join("postmaster.pid"), noted).unwrap();
        };
        for (noted, stays) in [(server + 1, true), (server, false), (server, false)] {
            note(noted);
            one(&undo).unwrap();
            assert_eq!(is_there(), stays, "{noted}");
        }
    }

    /// It would be waited for, or read without end.
    #[test]
    fn a_note_that_is_no_plain_file_is_not_read() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let cluster = folder.path().canonicalize().unwrap().join("pickfs-0123456789ab/cluster");
        std::fs::create_dir_all(&cluster).unwrap();
        let note = cluster.join("postmaster.pid");
        let refused = |what: &str| {
            let error = format!("{:#}", one(&Undo::RemoveSegment(note.clone())).unwrap_err());
            assert!(error.contains("no plain file"), "{what}: {error}");
            let entry = Entry::without_links(&note).unwrap();
            let error = format!("{:#}", zram::remove(&entry, &note).unwrap_err());
            assert!(error.contains("no plain file"), "{what}: {error}");
            std::fs::remove_file(&note).unwrap();
        };
        mknodat(CWD, &note, FileType::Fifo, Mode::RWXU, 0).unwrap();
        refused("a pipe");
        for target in ["/dev/zero", "/etc/hostname"] {
            std::os::unix::fs::symlink(target, &note).unwrap();
            refused(target);
        }
    }

    /// A user who may write to the folder above can arrange this after the journal was written.
    #[test]
    fn a_link_in_the_path_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (real, kept) = (folder.path().canonicalize().unwrap(), "data/kept");
        std::fs::create_dir_all(real.join("other").join(kept)).unwrap();
        std::os::unix::fs::symlink(real.join("other"), real.join("pickfs-0123456789ab")).unwrap();
        std::os::unix::fs::symlink(real.join("other"), real.join("up")).unwrap();
        for path in ["pickfs-0123456789ab/data", "up/pickfs-0123456789ab/data"] {
            let error = format!("{:#}", one(&Undo::RemoveTree(real.join(path))).unwrap_err());
            assert!(error.contains("symbolic link"), "{path}: {error}");
        }
        // A link that is itself to be removed goes, and what it names stays.
        one(&Undo::RemoveTree(real.join("pickfs-0123456789ab"))).unwrap();
        assert!(real.join("other").join(kept).exists() && !real.join("pickfs-0123456789ab").exists());
    }
}
