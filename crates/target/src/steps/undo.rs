//! Takes a step back. Every one is idempotent: undoing what never happened, or what is undone
//! already, is no error.

use super::image;
use super::own::Own;
use super::setting;
use super::zram;
use crate::stack::take_down::{Act, Named, Remains, Removal, There};
use anyhow::{Context, Result, anyhow, bail, ensure};
use pickfs_core::journal::{Made, Record, StepTaken, Undo, Undone};
use pickfs_core::protocol::Link;
use pickfs_system::process::{RUN_MARK, argv, exposed, kill_marked_but_successors, kill_with_all, listing, output};
use pickfs_system::sys::devices;
use pickfs_system::sys::file::{Entry, beginning};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The whole of a run's (or a cell's) leftovers, for a host whose agent died, or a `clean` whose
/// host died.
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
        Undo::RemoveZram(noted) => entry(noted)?.map_or(Ok(()), |note| zram::remove(&note, noted)),
        Undo::RemoveMapping(name) => remove_mapping(name),
        Undo::TakeDown(all) => all.iter().try_for_each(|(word, made)| take_down(word, made, own)),
    }
}

fn kill_of_run(run: &str, mark: &str) -> Result<()> {
    kill_with_all(&[&format!("{RUN_MARK}={run}"), mark]).map(drop).context("cannot kill")
}

/// The entry that a journal names. A folder of the path that is a link now was none when the step
/// was taken: the journal has paths without links. `None` where the folder above is gone.
fn entry(path: &Path) -> Result<Option<Entry>> {
    match Entry::without_links(path) {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| {
            format!("refused to follow {}: a folder in it is a symbolic link; look, and undo by hand", path.display())
        }),
    }
}

/// The kernel is asked, as a program that was killed may have made a mapping without a table, which
/// has no file in `/dev/mapper`. udev may still look at it.
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

/// As the plug-in describes it whose word this is.
fn take_down(word: &str, made: &Made, own: &Own) -> Result<()> {
    let take_down = own.take_down(word).context("no plug-in has this word")?;
    let noted = match take_down.named {
        Named::InNote(_) => note(Path::new(made.name()))?,
        _ => Some((String::new(), 0)),
    };
    let Some((text, owner)) = &noted else { return Ok(()) };
    let remains = Remains { name: made.name(), members: made.members(), note: (text, *owner) };
    (take_down.removals)(&remains).iter().try_for_each(|removal| remove(removal, own.run))
}

/// What a note holds, and the user that wrote it; `None` where there is none any more.
fn note(path: &Path) -> Result<Option<(String, u32)>> {
    let Some(note) = entry(path)? else { return Ok(None) };
    let file = match note.open() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.with_context(|| format!("refused to read {}: it is no plain file", path.display()))?,
    };
    let owner = file.metadata()?.uid();
    Ok(Some((beginning(file).unwrap_or_default(), owner)))
}

/// The kernel may still be writing, udev may look at it, and processes may be on their way out.
fn remove(removal: &Removal, run: &str) -> Result<()> {
    let begun = Instant::now();
    while is_there(&removal.while_there, run) {
        let done = match &removal.act {
            Act::Run(argv) => output(argv, &[]).map(drop),
            Act::Write(path, text) => {
                std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
            }
        };
        if let There::Lasting(_) = removal.while_there {
            return done;
        }
        if begun.elapsed() > PATIENCE {
            return done.and_then(|()| Err(anyhow!("{} shows that it is still in use", shown(&removal.while_there))));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(30);

fn is_there(there: &There, run: &str) -> bool {
    match there {
        There::File(path) => path.exists(),
        There::Lasting(paths) => paths.iter().all(|path| path.exists()),
        There::Listed(program, is_there) => is_there(&listing(program, run)),
    }
}

fn shown(there: &There) -> String {
    match there {
        There::File(path) => path.display().to_string(),
        There::Lasting(paths) => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
        There::Listed(program, _) => format!("`{}`", program.join(" ")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const RUN: &str = "0123456789ab";
    const CELL: &str = "0123456789abcdef";

    /// As a step of the run's one cell.
    fn one(undo: &Undo) -> Result<()> {
        super::one(undo, CELL, &Own { run: RUN, disks: &[], take_downs: &[] })
    }

    /// As journals have had it from the first version on.
    fn read(undo: &str) -> Undo {
        serde_json::from_str(undo).unwrap_or_else(|error| panic!("{undo}: {error}"))
    }

    fn named(word: &str, name: &str) -> Undo {
        read(&format!(r#"{{"{word}":"{name}"}}"#))
    }

    fn stop(device: &str) -> Undo {
        read(&format!(r#"{{"stop_array":{{"device":"{device}","members":["/dev/null","/dev/nowhere"]}}}}"#))
    }

    fn stop_of(uuid: &str, member: &str) -> Undo {
        read(&format!(r#"{{"stop_cache":{{"uuid":"{uuid}","members":["{member}"]}}}}"#))
    }

    /// The name of the set that bcache makes under the cell's fourth layer.
    const SET: &str = "7069636b-6673-0000-0efe-21c2758e1e86";

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

    /// Journals are read by later versions, and must have the same meaning for them.
    #[test]
    fn what_plug_ins_take_down_is_read_as_it_is_written() {
        for undo in [named("remove_group", "pickfsx"), stop("/dev/md/pickfsx"), stop_of("7069", "/dev/null")] {
            assert_eq!(read(&serde_json::to_string(&undo).unwrap()), undo);
        }
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
        let unmount = || super::one(&Undo::Unmount(at.clone()), CELL, &Own { run: &run, disks: &[], take_downs: &[] });
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
    fn what_a_program_lists_before_it_fails_is_there() {
        for (script, wanted) in [("echo ' group'; exit 5", true), ("echo other; exit 5", false), ("exit 1", false)] {
            let there = There::line(argv(["sh", "-c", script]), "group");
            assert_eq!(is_there(&there, RUN), wanted, "{script}");
        }
        assert!(!is_there(&There::line(argv(["pickfs-no-such-program"]), "group"), RUN));
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
            Undo::RemoveZram("/dev/shm/pickfs-0123456789ab/zram".into()),
            Undo::RemoveMapping(name("l0")),
            Undo::RemoveMapping(name("l12d3")),
            named("remove_group", &name("l1")),
            named("export_pool", &name("")),
            stop(&format!("/dev/md/{}", name("l2"))),
            stop_of(SET, "/dev/null"),
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
            named("export_pool", "tank"),
            named("export_pool", "pickfsfedcba9876543210"),
            named("export_pool", &format!("pickfs{CELL}l0")),
            // No plug-in here has the word.
            named("remove_segment", "/nowhere/pickfs-0123456789ab/cluster/postmaster.pid"),
            named("shell", "id"),
            Undo::RemoveMapping("home".into()),
            Undo::RemoveMapping(format!("pickfs{CELL}")),
            Undo::RemoveMapping(format!("pickfs{CELL}l0/../home")),
            Undo::RemoveMapping("pickfsfedcba9876543210l0".into()),
            named("remove_group", "vg0"),
            named("remove_group", &format!("pickfs{CELL}-group")),
            stop("/dev/md/home"),
            stop("/dev/md0"),
            stop(&format!("/dev/md/../pickfs{CELL}l0")),
            read(&format!(r#"{{"stop_array":{{"device":"/dev/md/pickfs{CELL}l0","members":["/srv/disk"]}}}}"#)),
            stop_of(foreign, "/dev/null"),
            stop_of(SET, "/srv/disk"),
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
            let (own, undo) =
                (Own { run, disks: &[], take_downs: &[] }, Undo::RemoveTree(kept.parent().unwrap().into()));
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

    /// It would be waited for, or read without end.
    #[test]
    fn a_note_that_is_no_plain_file_is_not_read() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let cluster = folder.path().canonicalize().unwrap().join("pickfs-0123456789ab/cluster");
        std::fs::create_dir_all(&cluster).unwrap();
        let note = cluster.join("postmaster.pid");
        let refused = |what: &str| {
            let error = format!("{:#}", super::note(&note).unwrap_err());
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

    /// A user with write access to the folder above can arrange this after the journal was written.
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
