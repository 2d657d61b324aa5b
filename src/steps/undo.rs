//! Takes a step back. Every one is idempotent: undoing what never happened, or what is undone already, is no error.

use crate::journal::{Record, StepTaken, Undo, Undone};
use crate::process::{RUN_MARK, argv, output};
use crate::protocol::Link;
use crate::stack::layer::GROUPS;
use crate::sys::devices;
use anyhow::{Context, Result, bail};
use std::path::{Component, Path};
use std::time::Duration;

/// The whole of a run's (or a cell's) leftovers, for a host whose agent died, or a `clean` whose host died.
pub fn all(run: &str, steps: &[StepTaken], link: &mut Link) -> Result<()> {
    crate::process::kill_marked(&format!("{RUN_MARK}={run}"), &[])?;
    let mut failures = Vec::new();
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
        Undo::RemoveMapping(name) => remove_mapping(name),
        Undo::RemoveGroup(name) => remove_group(name),
        Undo::StopArray(device) => stop_array(device),
    }
}

/// Only what a step of this run can have asked for: a journal is a file like any other, and `clean` may be root.
fn is_ours(undo: &Undo, run: &str) -> bool {
    let plain = |path: &Path| path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    let ours = format!("pickfs-{run}");
    let carries = |part: &str| part.strip_prefix(&ours).is_some_and(|more| more.is_empty() || more.starts_with('-'));
    let carried = |path: &Path| path.components().any(|part| part.as_os_str().to_str().is_some_and(carries));
    match undo {
        Undo::Unmount(path) | Undo::DetachLoops(path) | Undo::RemoveTree(path) => plain(path) && carried(path),
        Undo::RemoveSegment(path) => plain(path) && carried(path) && path.ends_with("cluster/postmaster.pid"),
        Undo::Restore { path, .. } => {
            let queue = path.starts_with("/sys") && path.parent().is_some_and(|folder| folder.ends_with("queue"));
            plain(path) && (path.starts_with("/proc/sys/vm") || queue)
        }
        Undo::KillMarked(mark) => mark.starts_with("PICKFS_"),
        Undo::ExportPool(name) | Undo::RemoveMapping(name) | Undo::RemoveGroup(name) => is_our_name(name),
        Undo::StopArray(device) => {
            device.parent() == Some(Path::new("/dev/md"))
                && device.file_name().and_then(|name| name.to_str()).is_some_and(is_our_name)
        }
    }
}

fn is_our_name(name: &str) -> bool {
    name.starts_with("pickfs") && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// udev may still look at it.
fn remove_mapping(name: &str) -> Result<()> {
    if !Path::new("/dev/mapper").join(name).exists() {
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

/// Without their superblocks, as udev would start the array anew where it sees them.
fn stop_array(device: &Path) -> Result<()> {
    let Some(number) = devices::device_number(device) else { return Ok(()) };
    let members = devices::members(number);
    output(&argv(["mdadm", "--stop", &device.display().to_string()]), &[])?;
    for member in members {
        output(&argv(["mdadm", "--zero-superblock", &member]), &[])?;
    }
    Ok(())
}

/// Patient with processes that are on their way out, lazy at last: a dead FUSE daemon's mount goes no other way.
fn unmount(at: &Path) -> Result<()> {
    let plain = argv(["umount", &at.display().to_string()]);
    let lazy = argv(["umount", "--lazy", &at.display().to_string()]);
    for attempt in 0.. {
        if !devices::is_mount_point(at)? {
            return Ok(());
        }
        match output(if attempt < 20 { &plain } else { &lazy }, &[]) {
            Err(error) if attempt >= 20 && devices::is_mount_point(at)? => return Err(error),
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
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
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
/// note. Only what the noted server made itself: the number may have been given again.
fn remove_segment(noted: &Path) -> Result<()> {
    let noted = std::fs::read_to_string(noted).unwrap_or_default();
    let Some((server, segment)) = noted_segment(&noted) else { return Ok(()) };
    for attempt in 0.. {
        let all = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        match made_and_attached(&all, segment).filter(|(made_by, _)| *made_by == server) {
            None => break,
            Some((_, 0)) => return output(&argv(["ipcrm", "--shmem-id", &segment.to_string()]), &[]).map(drop),
            Some((_, attached)) if attempt >= 40 => {
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

/// Who made a segment, and how many have it: fields 5 and 7 (sysvipc(7)).
fn made_and_attached(all: &str, segment: u32) -> Option<(u32, u32)> {
    let mut rows = all.lines().map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
    let segment = segment.to_string();
    let row = rows.find(|row| row.get(1) == Some(&segment.as_str()))?;
    Some((row.get(4)?.parse().ok()?, row.get(6)?.parse().ok()?))
}

pub(super) fn set(path: &Path, value: &str) -> Result<()> {
    std::fs::write(path, value).with_context(|| format!("cannot write `{value}` to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_happened_is_undone_without_an_error() {
        for undo in [
            Undo::Unmount("/nowhere/pickfs-r/target".into()),
            Undo::RemoveTree("/nowhere/pickfs-r".into()),
            Undo::Restore { path: "/proc/sys/vm/no_such_setting".into(), value: "1".into() },
            Undo::KillMarked("PICKFS_DAEMON=of-no-run".into()),
            Undo::RemoveSegment("/nowhere/pickfs-r/cluster/postmaster.pid".into()),
            Undo::RemoveMapping("pickfsnever".into()),
            Undo::RemoveGroup("pickfsnever".into()),
            Undo::StopArray("/dev/md/pickfsnever".into()),
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
            Undo::Restore { path: file.clone(), value: "lost".into() },
            Undo::Restore { path: "/proc/sys/vm/../../../etc/motd".into(), value: "lost".into() },
            Undo::Restore { path: "/sys/power/state".into(), value: "mem".into() },
            Undo::KillMarked("OTHER=mark".into()),
            Undo::ExportPool("tank".into()),
            Undo::RemoveSegment("/var/lib/postgresql/cluster/postmaster.pid".into()),
            Undo::RemoveSegment("/nowhere/pickfs-r/notes".into()),
            Undo::RemoveMapping("home".into()),
            Undo::RemoveMapping("pickfs/../home".into()),
            Undo::RemoveGroup("vg0".into()),
            Undo::RemoveGroup("pickfs-group".into()),
            Undo::StopArray("/dev/md/home".into()),
            Undo::StopArray("/dev/md0".into()),
            Undo::StopArray("/dev/md/../pickfsarray".into()),
            Undo::StopArray("/dev/md/pickfs/../home".into()),
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
            made_and_attached(&all, segment) == Some((server, 0))
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
