//! Erasing a whole device takes its name twice, and is refused while anything may be lost that nobody named.

mod common;

use common::{Lab, not_run, unable};
use pickfs::journal::Outcome;
use std::path::PathBuf;
use std::process::Command;

/// A loop device that stands for a disk.
struct Disk {
    device: String,
    mounted: Option<PathBuf>,
}

impl Disk {
    fn new(lab: &Lab) -> Disk {
        let file = lab.path("disk.img");
        std::fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
        Disk { device: String::from_utf8_lossy(&output.stdout).trim().to_string(), mounted: None }
    }

    fn format(&self) {
        assert!(Command::new("mke2fs").args(["-q", "-F", "-t", "ext4", &self.device]).status().unwrap().success());
    }

    fn mount(&mut self, at: PathBuf) {
        std::fs::create_dir(&at).unwrap();
        assert!(Command::new("mount").arg(&self.device).arg(&at).status().unwrap().success());
        self.mounted = Some(at);
    }

    fn unmount(&mut self) {
        if let Some(at) = self.mounted.take() {
            assert!(Command::new("umount").arg(at).status().unwrap().success());
        }
    }

    fn plan(&self, more: &str) -> String {
        let backing = format!("backing = {{ device = {{ path = \"{}\" {more} }} }}", self.device);
        format!(
            "duplicate = false\n{backing}\n[[target]]\nfs = \"ext4\"\n[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n"
        )
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.unmount();
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

fn content(disk: &Disk) -> Vec<u8> {
    std::fs::read(&disk.device).unwrap()
}

#[test]
fn what_may_be_lost_must_be_named_and_free() {
    if not_run("what_may_be_lost_must_be_named_and_free", unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let mut disk = Disk::new(&lab);
    let run = |disk: &Disk, more: &str, erase: &[&str]| {
        std::fs::write(lab.path("plan.toml"), disk.plan(more)).unwrap();
        let words = [&["run", "plan.toml", "--journal", "journal.jsonl"], erase].concat();
        lab.run(&words)
    };
    let own = disk.device.clone();

    disk.format();
    let before = content(&disk);
    let unnamed = run(&disk, "", &["--erase", &own]).code(5);
    assert!(unnamed.err.contains("ext4") && unnamed.err.contains("plan.toml:2"), "{}", unnamed.err);

    disk.mount(lab.path("in-use"));
    let named = ", signatures = [\"ext4\"]";
    let mounted = run(&disk, named, &["--erase", &own]).code(5);
    assert!(mounted.err.contains("is mounted at"), "{}", mounted.err);
    disk.unmount();
    let before_mount = content(&disk);

    let unconfirmed = run(&disk, named, &[]).code(5);
    assert!(unconfirmed.err.contains(&format!("--erase '{own}'")), "{}", unconfirmed.err);
    run(&disk, named, &["--erase", "another-serial"]).code(5);
    assert!(content(&disk) == before_mount && before.len() == before_mount.len(), "a refused run wrote to the device");
    assert!(!lab.journal().exists(), "a refused run left a journal");

    run(&disk, named, &["--erase", &own]).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells[0].outcome, Some(Outcome::Done));
    lab.assert_nothing_left();

    // Meanwhile the disk has become somebody's swap: taking the run up again must see it.
    let text = std::fs::read_to_string(lab.journal()).unwrap();
    let begun: String =
        text.lines().take_while(|line| !line.starts_with("{\"begin\"")).map(|line| format!("{line}\n")).collect();
    std::fs::write(lab.journal(), begun).unwrap();
    assert!(Command::new("mkswap").args(["--force", &disk.device]).output().unwrap().status.success());
    let resumed = lab.run(&["run", "--resume", "journal.jsonl", "--erase", &own]).code(5);
    assert!(resumed.err.contains("swap"), "{}", resumed.err);
}
