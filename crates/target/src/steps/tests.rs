//! What a forged journal, or another user with write access next to a run, could have root do: for
//! each kind of undo a canary, which must be whole afterwards.

use super::own::Own;
use super::{StepRunner, image, undo, zram};
use crate::stack::Place;
use pickfs_core::journal::{Knob, Scope, Undo};
use pickfs_system::process::{DAEMON_MARK, RUN_MARK, argv, command, output};
use pickfs_system::sys::devices;
use pickfs_system::sys::file::Entry;
use std::fs::{create_dir, read_to_string, rename, set_permissions, write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

const CELL: &str = "0123456789abcdef";
const STRANGER: u32 = 65534;

/// A place for one attack, on its own run.
struct Lab {
    folder: tempfile::TempDir,
    run: String,
    loops: Vec<String>,
    mounts: Vec<PathBuf>,
    processes: Vec<Child>,
    folders: Vec<PathBuf>,
}

impl Lab {
    fn new(number: usize) -> Lab {
        let run = format!("{:06x}{number:06x}", std::process::id());
        let (loops, mounts, processes, folders) = Default::default();
        Lab { folder: tempfile::tempdir().unwrap(), run, loops, mounts, processes, folders }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name.replace("RUN", &format!("pickfs-{}", self.run)))
    }

    fn folder(&self, name: &str) -> PathBuf {
        std::fs::create_dir_all(self.at(name)).unwrap();
        self.at(name)
    }

    /// The run's folder in one of the machine's own.
    fn in_machine(&mut self, above: &str) -> PathBuf {
        let folder = Path::new(above).join(format!("pickfs-{}", self.run));
        create_dir(&folder).unwrap();
        self.folders.push(folder.clone());
        folder
    }

    /// A file with 1 MiB.
    fn disk(&self, name: &str) -> PathBuf {
        write(self.at(name), vec![0; 1 << 20]).unwrap();
        self.at(name)
    }

    fn attach(&mut self, file: &Path) -> PathBuf {
        let device = output(&argv(["losetup", "--find", "--show", &file.display().to_string()]), &[]).unwrap();
        self.loops.push(device.trim().into());
        device.trim().into()
    }

    fn mount(&mut self, at: &Path) {
        std::fs::create_dir_all(at).unwrap();
        output(&argv(["mount", "-t", "tmpfs", "canary", &at.display().to_string()]), &[]).unwrap();
        self.mounts.push(at.into());
        write(at.join("kept"), "kept").unwrap();
    }

    fn process(&mut self, marks: &[(&str, &str)]) {
        self.processes.push(command(&argv(["sleep", "60"]), marks).unwrap().spawn().unwrap());
    }

    /// How the undo ends, by the run.
    fn undo(&self, undo: &Undo) -> String {
        let own = Own { run: &self.run, disks: &[], take_downs: &[] };
        undo::one(undo, CELL, &own).map_or_else(|error| format!("{error:#}"), |()| "undone".into())
    }

    fn is_whole(&mut self) -> bool {
        let attached: Vec<String> =
            devices::attached_loops().unwrap().iter().map(|found| found.device.display().to_string()).collect();
        self.loops.iter().all(|device| attached.contains(device))
            && self.mounts.iter().all(|at| read_to_string(at.join("kept")).is_ok_and(|text| text == "kept"))
            && self.processes.iter_mut().all(|child| child.try_wait().unwrap().is_none())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in &mut self.processes {
            let _ = child.kill().and_then(|()| child.wait());
        }
        for at in &self.mounts {
            let _ = output(&argv(["umount", &at.display().to_string()]), &[]);
        }
        for device in &self.loops {
            let _ = output(&argv(["losetup", "--detach", device]), &[]);
        }
        for folder in &self.folders {
            let _ = std::fs::remove_file(folder).or_else(|_| std::fs::remove_dir_all(folder));
        }
    }
}

/// Sets the scene, and gives the undo that is asked for.
type Scene = fn(&mut Lab) -> Undo;

/// What an attack is called, its scene, and a part of what is said of it.
const ATTACKS: &[(&str, Scene, &str)] = &[
    (
        "a mount in a folder that only has the run's name",
        |lab| {
            let at = lab.at("RUN/target");
            lab.mount(&at);
            Undo::Unmount(at)
        },
        "refused",
    ),
    (
        "a mount in the run's folder, which is a stranger's",
        |lab| {
            let folder = lab.in_machine("/run");
            chown(&folder, Some(STRANGER), None).unwrap();
            lab.mount(&folder.join("target"));
            Undo::Unmount(folder.join("target"))
        },
        "belongs to user 65534",
    ),
    (
        "a mount that a link leads to",
        |lab| {
            let other = lab.folder("other");
            lab.mount(&other.join("target"));
            let folder = Path::new("/run").join(format!("pickfs-{}", lab.run));
            symlink(&other, &folder).unwrap();
            lab.folders.push(folder.clone());
            Undo::Unmount(folder.join("target"))
        },
        "symbolic link",
    ),
    (
        "a loop device of a file that a link leads to",
        |lab| {
            let strangers = lab.disk("strangers.img");
            lab.attach(&strangers);
            symlink(&strangers, lab.folder("RUN").join("disk-1.img")).unwrap();
            Undo::DetachLoops(lab.at("RUN/disk-1.img"))
        },
        "undone",
    ),
    (
        "a loop device of a file in a folder that a link leads to",
        |lab| {
            lab.folder("other");
            let strangers = lab.disk("other/disk-1.img");
            lab.attach(&strangers);
            symlink(lab.at("other"), lab.at("RUN")).unwrap();
            Undo::DetachLoops(lab.at("RUN/disk-1.img"))
        },
        "undone",
    ),
    (
        "a loop device of a file that has gone, and another has its name",
        |lab| {
            lab.folder("RUN");
            let strangers = lab.disk("RUN/disk-1.img");
            lab.attach(&strangers);
            std::fs::remove_file(&strangers).unwrap();
            lab.disk("RUN/disk-1.img");
            Undo::DetachLoops(strangers)
        },
        "refused to detach",
    ),
    (
        "a loop device of a file in a folder that anyone may write to",
        |lab| {
            set_permissions(lab.folder("RUN"), PermissionsExt::from_mode(0o777)).unwrap();
            let strangers = lab.disk("RUN/disk-1.img");
            lab.attach(&strangers);
            Undo::DetachLoops(strangers)
        },
        "refused to detach",
    ),
    (
        "a loop device in a folder of another name",
        |lab| {
            lab.folder("RUN-backup");
            let strangers = lab.disk("RUN-backup/disk-1.img");
            lab.attach(&strangers);
            Undo::DetachLoops(strangers)
        },
        "refused",
    ),
    (
        "a tree with a mount in it",
        |lab| {
            let at = lab.at("RUN/more");
            lab.mount(&at);
            Undo::RemoveTree(lab.at("RUN"))
        },
        "is mounted in it",
    ),
    (
        "the tree of a run whose name begins as this one's",
        |lab| {
            let at = lab.folder("RUN0");
            lab.mount(&at);
            Undo::RemoveTree(lab.at("RUN0"))
        },
        "refused",
    ),
    (
        "the daemon of another run's cell",
        |lab| {
            let daemon = format!("pickfs{CELL}");
            lab.process(&[(RUN_MARK, "ba9876543210"), (DAEMON_MARK, &daemon)]);
            lab.process(&[(DAEMON_MARK, &daemon)]);
            Undo::KillMarked(format!("{DAEMON_MARK}={daemon}"))
        },
        "undone",
    ),
    (
        "the processes of another run",
        |lab| {
            lab.process(&[(RUN_MARK, "ba9876543210")]);
            Undo::KillMarked(format!("{RUN_MARK}=ba9876543210"))
        },
        "refused",
    ),
    (
        "the processes with another variable of ours",
        |lab| {
            lab.process(&[("PICKFS_FULL", "1")]);
            Undo::KillMarked("PICKFS_FULL=1".into())
        },
        "refused",
    ),
];

#[test]
fn what_is_not_the_runs_own_stays() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        return pickfs_test_support::not_run("only root can mount, and attach loop devices");
    }
    let mut won = Vec::new();
    for (number, (attack, scene, says)) in ATTACKS.iter().enumerate() {
        let mut lab = Lab::new(number);
        let undo = scene(&mut lab);
        let said = lab.undo(&undo);
        if !lab.is_whole() || !said.contains(says) {
            won.push(format!("{attack}: {said}"));
        }
    }
    assert!(won.is_empty(), "{won:#?}");
}

/// So that the attacks above are seen to fail for what they do, and not because nothing is undone
/// at all.
#[test]
fn what_is_the_runs_own_goes() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        return pickfs_test_support::not_run("only root can mount, and attach loop devices");
    }
    let mut lab = Lab::new(100);
    let mounts = lab.in_machine("/run");
    lab.mount(&mounts.join("target"));
    lab.folder("RUN");
    let (there, gone) = (lab.disk("RUN/disk-1.img"), lab.disk("RUN/disk-2.img"));
    let devices = [lab.attach(&there), lab.attach(&gone)];
    std::fs::remove_file(&gone).unwrap();
    for undo in [
        Undo::Unmount(mounts.join("target")),
        Undo::DetachLoops(there),
        Undo::DetachLoops(gone),
        Undo::RemoveTree(lab.at("RUN")),
    ] {
        assert_eq!(lab.undo(&undo), "undone", "{undo:?}");
    }
    assert!(!devices::is_mount_point(&mounts.join("target")).unwrap() && !lab.at("RUN").exists());
    let left = devices::attached_loops().unwrap();
    assert!(!left.iter().any(|found| found.file.starts_with(lab.at("RUN")) && devices.contains(&found.device)));
    (lab.loops, lab.mounts) = Default::default();
}

#[test]
fn a_setting_is_written_back_only_where_the_run_has_changed_it() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        return pickfs_test_support::not_run("only root can attach loop devices");
    }
    let mut lab = Lab::new(200);
    lab.folder("RUN");
    let (own, strangers) = (lab.disk("RUN/disk-1.img"), lab.disk("strangers.img"));
    let [own, strangers] = [lab.attach(&own), lab.attach(&strangers)];
    let file = |device: &Path| devices::queue_file(devices::device_number(device).unwrap(), "read_ahead_kb").unwrap();
    let restore = |path: PathBuf, value: &str| Undo::Restore { path, value: value.into(), set: None };
    for (device, says, changes) in [(&strangers, "undone", false), (&own, "undone", true)] {
        let (path, before) = (file(device), read_to_string(file(device)).unwrap());
        assert_eq!(lab.undo(&restore(path.clone(), "64")), says);
        assert_eq!(read_to_string(&path).unwrap() != before, changes, "{}", device.display());
        write(path, before).unwrap();
    }
    // A disk that no plan names.
    for disk in std::fs::read_dir("/sys/block").unwrap().flatten() {
        let path = disk.path().canonicalize().unwrap().join("queue/nr_requests");
        let is_virtual = path.starts_with("/sys/devices/virtual");
        let Some(before) = read_to_string(&path).ok().filter(|_| !is_virtual) else { continue };
        let said = lab.undo(&restore(path.clone(), "77"));
        assert!(said.contains("none that the plan of this run names"), "{said}");
        assert_eq!(read_to_string(path).unwrap(), before);
    }
    // Another process has set it since.
    let path = PathBuf::from("/proc/sys/vm/dirty_writeback_centisecs");
    let before = read_to_string(&path).unwrap();
    let set = Some(Knob { path: path.clone(), value: "12345".into() });
    assert_eq!(lab.undo(&Undo::Restore { path: path.clone(), value: "12346".into(), set }), "undone");
    assert_eq!(read_to_string(path).unwrap(), before);
}

/// A stranger replaces the run's note by another, or by one that fits the disk of another user.
#[test]
fn a_disk_in_compressed_memory_is_known_by_what_we_noted() {
    if !rustix::process::geteuid().is_root() || !Path::new("/sys/class/zram-control/hot_add").exists() {
        return pickfs_test_support::not_run("there is no zram, or only root can make it");
    }
    let lab = Lab::new(300);
    let (note, strangers) = (lab.folder("RUN").join("zram"), lab.at("strangers"));
    let device = zram::make(&strangers, "lzo-rle", 1 << 20).unwrap();
    let remove = || zram::remove(&Entry::without_links(&note).unwrap(), &note);
    let is_there = || devices::device_number(&device).is_some();
    let noted = read_to_string(&strangers).unwrap();
    // A note of a disk that had the number before.
    write(&note, noted.replace("1048576", "2097152")).unwrap();
    remove().unwrap();
    assert!(is_there() && !note.exists());
    for set in [
        |note: &Path| chown(note, Some(STRANGER), None),
        |note: &Path| chown(note.parent().unwrap(), Some(STRANGER), None),
    ] {
        write(&note, &noted).unwrap();
        set(&note).unwrap();
        assert!(remove().unwrap_err().to_string().contains("belongs to another user"));
        assert!(is_there());
    }
    for path in [&note, note.parent().unwrap()] {
        chown(path, Some(0), None).unwrap();
    }
    remove().unwrap();
    assert!(!is_there());
}

/// The image of a run is swapped: before it is attached, and in the midst of it.
#[test]
fn no_other_file_is_attached_than_the_image_that_the_run_made() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        return pickfs_test_support::not_run("only root can attach loop devices");
    }
    let lab = Lab::new(400);
    lab.folder("RUN");
    let image = lab.disk("RUN/disk-1.img");
    let losetup = |words: &Vec<String>| output(words, &[]);
    let attached = || devices::attached_loops().unwrap().into_iter().any(|found| found.file.starts_with(lab.at("")));
    // A device that another process has open, to ask for its file, is detached once that one closes
    // it.
    let is_detached_soon = || {
        let pauses = std::iter::repeat_with(|| std::thread::sleep(Duration::from_millis(10))).take(6000);
        !attached() || pauses.into_iter().any(|()| !attached())
    };
    let swapped = |words: &Vec<String>| {
        rename(&image, lab.at("away")).unwrap();
        lab.disk("RUN/disk-1.img");
        output(words, &[])
    };
    let error = image::attach(&image, false, swapped).unwrap_err().to_string();
    assert!(error.contains("another file was put in the place"), "{error}");
    assert!(is_detached_soon());

    chown(&image, Some(STRANGER), None).unwrap();
    let error = image::attach(&image, false, losetup).unwrap_err().to_string();
    assert!(error.contains("belongs to another user"), "{error}");
    std::fs::remove_file(&image).unwrap();
    symlink(lab.at("away"), &image).unwrap();
    let error = image::attach(&image, false, losetup).unwrap_err().to_string();
    assert!(error.contains("is not the image"), "{error}");
    chown(lab.at("RUN"), Some(STRANGER), None).unwrap();
    let error = image::attach(&image, false, losetup).unwrap_err().to_string();
    assert!(error.contains("belongs to user 65534"), "{error}");
    assert!(is_detached_soon());
}

/// What has its place would be asked in its stead, and the wait for an answer would hide why there
/// is none.
#[test]
fn a_daemon_that_ends_before_it_is_ready_gives_what_it_wrote() {
    let place = Place { name: "pickfs-r".into(), memory: "/dev/shm/pickfs-r".into(), mounts: "/run/pickfs-r".into() };
    let mut runner = StepRunner::new(&place, Scope::Cell("c".into()));
    let error = runner.start_daemon(&argv(["cat", "/nowhere/at-all"]), &argv(["false"]), Duration::MAX).unwrap_err();
    let said = format!("{error:#}");
    assert!(said.starts_with("`cat /nowhere/at-all` ended with exit status: 1: "), "{said}");
    assert!(said.ends_with("cat: /nowhere/at-all: No such file or directory"), "{said}");
}

/// As smbd does at a port that is taken. The daemon ends with this process, and patience grows
/// until it has had time to write.
#[test]
fn a_daemon_that_goes_on_without_its_place_gives_what_it_wrote_when_patience_ends() {
    let place = Place { name: "pickfs-r".into(), memory: "/dev/shm/pickfs-r".into(), mounts: "/run/pickfs-r".into() };
    let folder = tempfile::tempdir().unwrap();
    let words = folder.path().join("words").display().to_string();
    write(&words, "no port\n").unwrap();
    let daemon = argv(["tail", "--follow", "--pid", &std::process::id().to_string(), &words]);
    let said = |ms: u64| {
        let mut runner = StepRunner::new(&place, Scope::Cell("c".into()));
        let error = runner.start_daemon(&daemon, &argv(["false"]), Duration::from_millis(ms)).unwrap_err();
        format!("{error:#}")
    };
    let last = (0..16).map(|doubled| said(1 << doubled)).find(|said| said.contains("no port")).expect("its words");
    assert!(last.contains("/words` did not become ready: no port: `false` ended with exit status: 1"), "{last}");
}
