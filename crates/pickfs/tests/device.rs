//! Erasing a whole device takes its name twice, and is refused while data may be lost that the user
//! did not name.

use crate::common::{Lab, Loop, failed, not_run, run, unable};
use pickfs_core::journal::Outcome;

fn plan(disk: &Loop, more: &str) -> String {
    let backing = format!("backing = {{ device = {{ path = \"{}\" {more} }} }}", disk.device);
    format!(
        "duplicate = false\n{backing}\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n"
    )
}

fn content(disk: &Loop) -> Vec<u8> {
    std::fs::read(&disk.device).unwrap()
}

#[test]
fn what_may_be_lost_must_be_named_and_free() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let mut disk = Loop::new(64 << 20);
    let run_on = |disk: &Loop, more: &str, erase: &[&str]| {
        std::fs::write(lab.path("plan.toml"), plan(disk, more)).unwrap();
        let words = [&["run", "plan.toml", "--journal", "journal.jsonl"], erase].concat();
        lab.run(&words)
    };
    let own = disk.device.clone();

    run(&["mke2fs", "-q", "-F", "-t", "ext4", &disk.device]);
    let before = content(&disk);
    let unnamed = run_on(&disk, "", &["--erase", &own]).code(5);
    assert!(unnamed.err.contains("ext4") && unnamed.err.contains("plan.toml:2"), "{}", unnamed.err);

    disk.mount("defaults");
    let named = ", signatures = [\"ext4\"]";
    let mounted = run_on(&disk, named, &["--erase", &own]).code(5);
    assert!(mounted.err.contains("is mounted at"), "{}", mounted.err);
    disk.unmount();
    let before_mount = content(&disk);

    let unconfirmed = run_on(&disk, named, &[]).code(5);
    assert!(unconfirmed.err.contains(&format!("--erase '{own}'")), "{}", unconfirmed.err);
    run_on(&disk, named, &["--erase", "another-serial"]).code(5);
    assert!(content(&disk) == before_mount && before.len() == before_mount.len(), "a refused run wrote to the device");
    assert!(!lab.journal().exists(), "a refused run left a journal");

    run_on(&disk, named, &["--erase", &own]).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells[0].outcome, Some(Outcome::Done));
    lab.assert_nothing_left();

    // Meanwhile the disk has become somebody's swap: taking the run up again must see it.
    let text = std::fs::read_to_string(lab.journal()).unwrap();
    let begun: String =
        text.lines().take_while(|line| !line.starts_with("{\"begin\"")).map(|line| format!("{line}\n")).collect();
    std::fs::write(lab.journal(), begun).unwrap();
    run(&["mkswap", "--force", &disk.device]);
    let resumed = lab.run(&["run", "--resume", "journal.jsonl", "--erase", &own]).code(5);
    assert!(resumed.err.contains("swap"), "{}", resumed.err);
}

/// A scheduler that is set back brings its own number of requests once more.
#[test]
fn the_queue_is_afterwards_as_it_was() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let (lab, disk) = (Lab::new(), Loop::new(64 << 20));
    let queue = |name: &str| disk.device.replace("/dev/", "/sys/block/") + "/queue/" + name;
    let shown = || ["scheduler", "nr_requests"].map(|name| std::fs::read_to_string(queue(name)).unwrap());
    std::fs::write(queue("scheduler"), "none").unwrap();
    std::fs::write(queue("nr_requests"), "48").unwrap();
    let before = shown();
    for set in ["scheduler = \"mq-deadline\"", "scheduler = \"mq-deadline\"\nqueue = { nr_requests = 32 }"] {
        lab.write_plan(&plan(&disk, "").replace("fs = \"ext4\"", &format!("fs = \"ext4\"\n{set}")));
        lab.run(&["run", "plan.toml", "--journal", "journal.jsonl", "--erase", &disk.device]).code(0);
        assert_eq!(lab.folded().cells[0].outcome, Some(Outcome::Done), "{set}");
        assert_eq!(shown(), before, "{set}");
        std::fs::remove_file(lab.journal()).unwrap();
        run(&["wipefs", "--all", "--quiet", &disk.device]);
    }
    lab.assert_nothing_left();
}

/// While the run goes on, the disk becomes swap: no further cell erases it.
#[test]
fn a_disk_that_gets_another_content_between_cells_is_not_touched() {
    use pickfs_system::sys::process::{Signal, kill};
    if not_run(unable(&["ext2"])) {
        return;
    }
    let (lab, disk) = (Lab::new(), Loop::new(64 << 20));
    let targets: String =
        ["a", "b", "c", "d"].map(|name| format!("[[target]]\nname = '{name}'\nfs = 'ext2'\n")).concat();
    lab.write_plan(&plan(&disk, "").replace("[[target]]\nfs = \"ext4\"\n", &targets));
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl", "--erase", &disk.device]);
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let ended = || pickfs_core::journal::fold_file(&lab.journal()).map_or(Vec::new(), |folded| folded.cells);
    let is_refused = |cell: &pickfs_core::journal::FoldedCell| matches!(&cell.outcome, Some(Outcome::Failed(why)) if why.contains("nothing was written to it") && why.contains("swap"));
    for cells in 1..4 {
        while ended().iter().filter(|cell| cell.outcome.is_some()).count() < cells {
            assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if ended().iter().any(is_refused) {
            break;
        }
        kill(child.id() as i32, Signal::STOP).unwrap();
        // Its agent ends by itself.
        std::thread::sleep(std::time::Duration::from_millis(300));
        run(&["mkswap", "--force", &disk.device]);
        kill(child.id() as i32, Signal::CONT).unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let cells = lab.folded().cells;
    let first = cells.iter().position(is_refused).unwrap_or_else(|| panic!("none was refused: {cells:?}"));
    assert!(first > 0 && cells[first..].iter().all(is_refused), "{cells:?}");
    assert_eq!(run(&["blkid", "-p", "-o", "value", "-s", "TYPE", &disk.device]), "swap");
    lab.assert_nothing_left();
}

/// A disk of the user's that no plan names as its backing.
struct Canary {
    disk: Loop,
    before: Vec<u8>,
}

impl Canary {
    /// With a file system, and a link to it in the lab's folder.
    fn new(lab: &Lab) -> Canary {
        let disk = Loop::new(8 << 20);
        run(&["mke2fs", "-q", "-F", "-t", "ext2", &disk.device]);
        std::os::unix::fs::symlink(&disk.device, lab.path("link")).unwrap();
        let before = content(&disk);
        Canary { disk, before }
    }

    #[track_caller]
    fn assert_untouched(&self, after: &str) {
        assert!(content(&self.disk) == self.before, "written to after {after}");
    }
}

fn in_memory(target: &str) -> String {
    format!(
        "duplicate = false\nbacking = {{ memory = \"16MiB\" }}\n[[target]]\n{target}\n[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n"
    )
}

/// Words of mkfs, and mount options, that lead to the canary `LINK` or to a file; `link` lies in
/// the folder of the caller.
const LEADING: &[(&str, &str)] = &[
    ("btrfs", "mkfs = [\"LINK\"]"),
    ("btrfs", "mkfs = [\"./link\"]"),
    ("btrfs", "mkfs = [\"link\"]"),
    ("btrfs", "mkfs = [\"-q\", \"link\", \"link\"]"),
    ("btrfs", "mkfs = [\"--\", \"link\"]"),
    ("btrfs", "mkfs = [\"--rootdir=/etc\"]"),
    ("btrfs", "mount = [\"device=LINK\"]"),
    ("btrfs", "mount = [\"device=link\"]"),
    ("ext4", "mkfs = [\"-J\", \"device=LINK\"]"),
    ("ext4", "mkfs = [\"-J\", \"device=link\"]"),
    ("ext4", "mkfs = [\"-Jsize=1,device=link\"]"),
    ("ext4", "mkfs = [\"-J\", \"device=UUID=UUID-OF-IT\"]"),
    ("ext4", "mkfs = [\"-z\", \"LINK\"]"),
    ("ext4", "mkfs = [\"-d/etc/shadow\"]"),
    ("ext4", "mkfs = [\"-d\", \"../../etc/shadow\"]"),
    ("ext4", "mount = [\"journal_path=LINK\"]"),
    ("ext4", "mount = [\"journal_dev=0x700\"]"),
    ("ext4", "mount = [\"loop=link\"]"),
    ("squashfs", "mkfs = [\"-p\", \"f f 644 0 0 touch made\"]"),
    ("squashfs", "mkfs = [\"-a\", \"prune@exec(touch made)\"]"),
    ("xfs", "mkfs = [\"-l\", \"logdev=LINK,size=64m\"]"),
    ("xfs", "mkfs = [\"-l\", \"logdev=link,size=64m\"]"),
    ("xfs", "mkfs = [\"-r\", \"rtdev=LINK\"]"),
    ("xfs", "mkfs = [\"-p\", \"/etc/shadow\"]"),
    ("xfs", "mkfs = [\"-c\", \"options=/etc/shadow\"]"),
    ("xfs", "mount = [\"logdev=LINK\"]"),
    ("zfs", "mount = [\"mountpoint=/etc\"]"),
    ("zfs", "mkfs = [\"sda\"]"),
];

#[test]
fn words_of_a_plan_lead_to_no_other_disk() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let canary = Canary::new(&lab);
    let uuid = run(&["blkid", "-p", "-o", "value", "-s", "UUID", &canary.disk.device]);
    let link = lab.path("link").display().to_string();
    for (fs, words) in LEADING {
        let words = words.replace("LINK", &link).replace("UUID-OF-IT", uuid.trim());
        let backing = "memory = \"16MiB\"";
        let plan = in_memory(&format!("fs = \"{fs}\"\n{words}")).replace(backing, "memory = \"400MiB\"");
        let refused = lab.run_plan(&plan).code(2);
        assert!(refused.err.contains("plan.toml:5"), "{words}: {}", refused.err);
        canary.assert_untouched(&words);
    }
    assert!(!lab.journal().exists());
    // What mkfs takes for an option without a value leaves the next word to be a device.
    let after_flag = in_memory("fs = \"ext4\"\nmkfs = [\"-v\", \"link\"]");
    lab.run_plan(&after_flag).code(1);
    canary.assert_untouched("a word after a flag");
    lab.assert_nothing_left();
}

/// No check of a plan has read what a journal says.
#[test]
fn words_of_a_journal_lead_to_no_other_disk() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let canary = Canary::new(&lab);
    lab.run_plan(&in_memory("name = \"a\"\nfs = \"ext4\"\nmkfs = [\"-L\", \"x\"]")).code(0);
    let journal = std::fs::read_to_string(lab.journal()).unwrap();
    let link = lab.path("link").display().to_string();
    for (at, words) in [["-J", "device=LINK"], ["-q", "LINK"], ["-d", "/etc/shadow"]].iter().enumerate() {
        let words = words.map(|word| word.replace("LINK", &link));
        let changed = journal.replace("[\"-L\",\"x\"]", &format!("{words:?}").replace(", ", ","));
        assert_ne!(changed, journal);
        std::fs::write(lab.path("changed.jsonl"), changed).unwrap();
        let again = format!("again-{at}.jsonl");
        lab.run(&["run", "--trust", "--again", "changed.jsonl", "--journal", &again]).code(1);
        let cells = lab.folded_at(&again).cells;
        assert!(failed(&cells[0]).contains("nothing was made"), "{words:?}: {cells:?}");
        canary.assert_untouched(&words.join(" "));
    }
    lab.assert_nothing_left();
}

/// What lsblk shows no holder of, and the kernel lets others claim.
#[test]
fn a_disk_that_something_uses_is_refused() {
    use std::os::unix::fs::OpenOptionsExt;
    if not_run(unable(&["ext2"])) {
        return;
    }
    let (lab, disk) = (Lab::new(), Loop::new(64 << 20));
    let own = disk.device.clone();
    let node = lab.path("node").display().to_string();
    let number = pickfs_system::sys::devices::device_number(disk.device.as_ref()).unwrap();
    run(&["mknod", &node, "b", &number.0.to_string(), &number.1.to_string()]);
    let refused = |named: &str, says: &str| {
        let before = content(&disk);
        lab.write_plan(
            &plan(&disk, ", signatures = [\"ext2\"]").replace(&format!("\"{own}\""), &format!("\"{named}\"")),
        );
        let words = ["run", "plan.toml", "--journal", "journal.jsonl", "--erase", &own];
        let refused = lab.run(&words).code(5);
        assert!(refused.err.contains(says) && refused.err.contains("plan.toml:2"), "{says}: {}", refused.err);
        assert!(content(&disk) == before && !lab.journal().exists(), "{says}");
    };
    let above = run(&["losetup", "--find", "--show", "--offset", "1048576", &node]);
    let above = Above(above.trim().to_string());
    run(&["mke2fs", "-q", "-F", "-t", "ext2", &above.0]);
    let mount_point = lab.path("mount").display().to_string();
    std::fs::create_dir(&mount_point).unwrap();
    run(&["mount", &above.0, &mount_point]);
    for named in [&own, &node] {
        refused(named, &format!("{own} is held by {} (loop)", above.0));
    }
    run(&["umount", &mount_point]);
    refused(&own, &format!("`losetup --detach {}`", above.0));
    // The other way round: a part of what something else has.
    let held = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&own).unwrap();
    let part = plan(&disk, ", signatures = [\"ext2\"]").replace(&format!("\"{own}\""), &format!("\"{}\"", above.0));
    let said = lab.run_plan(&part).code(5);
    assert!(said.err.contains(&format!("{own} is in use")), "{}", said.err);
    drop((held, above));

    let written = std::fs::OpenOptions::new().read(true).write(true).open(&node).unwrap();
    let program = format!("({})", std::process::id());
    refused(&own, &program);
    drop(written);
    let claimed = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&own).unwrap();
    refused(&own, "is in use");
    drop(claimed);
    // A process that only reads does no harm.
    let read = std::fs::File::open(&own).unwrap();
    lab.run(&["run", "plan.toml", "--journal", "journal.jsonl", "--erase", &own]).code(0);
    drop(read);
    lab.assert_nothing_left();
}

/// A loop device on a disk of the test's, which may be mounted.
struct Above(String);

impl Drop for Above {
    fn drop(&mut self) {
        for words in [&["umount", "--quiet"][..], &["losetup", "--detach"]] {
            let _ = std::process::Command::new(words[0]).args(&words[1..]).arg(&self.0).status();
        }
    }
}

/// A link of the user's that leads elsewhere while the run goes on.
#[test]
fn a_name_that_comes_to_mean_another_disk_is_not_followed() {
    use pickfs_system::sys::process::{Signal, kill};
    if not_run(unable(&["ext2"])) {
        return;
    }
    let lab = Lab::new();
    let (canary, disk) = (Canary::new(&lab), Loop::new(64 << 20));
    std::os::unix::fs::symlink(&disk.device, lab.path("disk")).unwrap();
    let named = lab.path("disk").display().to_string();
    let targets: String = ["a", "b", "c"].map(|name| format!("[[target]]\nname = '{name}'\nfs = 'ext2'\n")).concat();
    let plan =
        plan(&disk, ", signatures = [\"ext2\"]").replace(&format!("\"{}\"", disk.device), &format!("\"{named}\""));
    lab.write_plan(&plan.replace("[[target]]\nfs = \"ext4\"\n", &targets));
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl", "--erase", &disk.device]);
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let ended = || pickfs_core::journal::fold_file(&lab.journal()).map_or(0, |folded| folded.cells.len());
    while ended() == 0 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    kill(child.id() as i32, Signal::STOP).unwrap();
    std::os::unix::fs::symlink(&canary.disk.device, lab.path("other")).unwrap();
    std::fs::rename(lab.path("other"), lab.path("disk")).unwrap();
    kill(child.id() as i32, Signal::CONT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let cells = lab.folded().cells;
    let refused = format!("{named} is not {} any more", disk.device);
    assert!(cells[2..].iter().all(|cell| failed(cell).contains(&refused)), "{cells:?}");
    canary.assert_untouched("a link that was changed");
    lab.assert_nothing_left();
}
