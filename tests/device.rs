//! Erasing a whole device takes its name twice, and is refused while anything may be lost that nobody named.

mod common;

use common::{Lab, Loop, not_run, run, unable};
use pickfs::journal::Outcome;

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
