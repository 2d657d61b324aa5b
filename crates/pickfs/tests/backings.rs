//! Targets of one plan that live in different places, each in its own.

use crate::common::{Lab, Observation, Said, failed, not_run, unable};
use pickfs_core::journal::{Outcome, fold_file};
use std::process::Stdio;
use std::time::Duration;

fn plan(backings: &[&str]) -> String {
    let target = |(at, backing): (usize, &&str)| {
        format!("[[target]]\nname = \"t{at}\"\nfs = \"ext4\"\nbacking = {{ {backing} }}\n")
    };
    let targets: String = backings.iter().enumerate().map(target).collect();
    format!("duplicate = false\n{targets}[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n")
}

#[test]
fn images_of_different_sizes_and_ways_do_not_meet() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let image = |size: u32, direct: bool| format!("image = {{ dir = \".\", size = \"{size}MiB\", direct = {direct} }}");
    let sizes = [64, 64, 128, 64, 128];
    let backings = [
        image(64, true),
        image(64, false),
        image(128, true),
        "memory = \"64MiB\"".to_string(),
        "memory = \"128MiB\"".to_string(),
    ];
    lab.run_plan(&plan(&backings.each_ref().map(String::as_str))).code(0);
    let folded = lab.folded();
    for (at, mebibytes) in sizes.into_iter().enumerate() {
        let cell = folded.cells.iter().find(|cell| cell.target == format!("t{at}")).unwrap();
        assert_eq!(cell.outcome, Some(Outcome::Done));
        let total = folded.value(cell, "write", "space_total_bytes").unwrap() / f64::from(1 << 20);
        let size = f64::from(mebibytes);
        assert!(total < size && total > size * 0.7, "t{at}: {total} of {size} MiB");
    }
    lab.assert_nothing_left();
}

/// The kernel names an image without symlinks; the loop device must be found even so.
#[test]
fn a_folder_may_be_a_symlink() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.path("real")).unwrap();
    std::os::unix::fs::symlink(lab.path("real"), lab.path("link")).unwrap();
    lab.run_plan(&plan(&["image = { dir = \"link\", size = \"64MiB\" }"])).code(0);
    lab.assert_nothing_left();
    assert_eq!(std::fs::read_dir(lab.path("real")).unwrap().count(), 0);
}

/// Who owns a folder could rename what root makes in it, and put a link to root's own files there.
#[test]
fn root_makes_nothing_in_a_folder_of_somebody_else() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let (folder, inner) = (lab.path("others"), lab.path("others/own"));
    std::fs::create_dir_all(&inner).unwrap();
    std::os::unix::fs::chown(&folder, Some(65534), None).unwrap();
    std::os::unix::fs::symlink(&inner, lab.path("link")).unwrap();
    let directory = |dir| {
        format!(
            "backing = {{ directory = \"{dir}\" }}\n[[target]]\n[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n"
        )
    };
    let image = |dir| plan(&[&format!("image = {{ dir = \"{dir}\", size = \"64MiB\" }}")]);
    for dir in ["others", "others/own", "link"] {
        for plan in [image(dir), directory(dir)] {
            let said = lab.run_plan(&plan).code(2);
            let flat = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in ["others belongs to user 65534", "chown -h root", "/var/tmp"] {
                assert!(flat.contains(part), "{dir}: {part} is not in {}", said.err);
            }
        }
    }
    assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 0);
    // Who is behind sudo could do as root what he likes in any case.
    let mut command = lab.pickfs();
    command
        .args(["run", "plan.toml", "--journal", "journal.jsonl"])
        .envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534")]);
    Said::of(command.output().unwrap()).code(0);
    lab.assert_nothing_left();
}

/// A disk that was unplugged: the folder must not come back on the file system below.
#[test]
fn a_directory_that_goes_during_the_run_fails_its_cells() {
    let lab = Lab::new();
    let disk = lab.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let plan = "duplicate = false\nbacking = { directory = \"disk\" }\n[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 60\n";
    std::fs::write(lab.path("plan.toml"), plan).unwrap();
    let mut run = lab.pickfs();
    run.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = run.spawn().unwrap();
    while !fold_file(&lab.journal()).is_ok_and(|folded| !folded.cells.is_empty()) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Between two cells or in one: either way it goes as a whole.
    std::fs::rename(&disk, lab.path("unplugged")).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(1));
    assert!(!disk.exists(), "the folder came back");
    let folded = lab.folded();
    let last = folded.cells.iter().find(|cell| cell.round == 60).unwrap();
    assert!(failed(last).contains("is the folder above there?"), "{}", failed(last));
}
