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

/// While the run goes on, somebody makes swap of the disk: no further cell erases it.
#[test]
fn a_disk_that_gets_another_content_between_cells_is_not_touched() {
    use pickfs::sys::process::{Signal, kill};
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
    let ended = || pickfs::journal::fold_file(&lab.journal()).map_or(Vec::new(), |folded| folded.cells);
    let is_refused = |cell: &pickfs::journal::FoldedCell| matches!(&cell.outcome, Some(Outcome::Failed(why)) if why.contains("nothing was written to it") && why.contains("swap"));
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
