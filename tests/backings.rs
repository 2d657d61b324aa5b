//! Targets of one plan that live in different places, each in its own.

mod common;

use common::{Lab, not_run, unable};
use pickfs::journal::Outcome;

fn plan(backings: &[&str]) -> String {
    let target = |(at, backing): (usize, &&str)| {
        format!("[[target]]\nname = \"t{at}\"\nfs = \"ext4\"\nbacking = {{ {backing} }}\n")
    };
    let targets: String = backings.iter().enumerate().map(target).collect();
    format!("duplicate = false\n{targets}[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n")
}

#[test]
fn images_of_different_sizes_and_ways_do_not_meet() {
    if not_run("images_of_different_sizes_and_ways_do_not_meet", unable(&["ext4"])) {
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

/// The kernel names an image without symlinks; the loop device must be found all the same.
#[test]
fn a_folder_may_be_a_symlink() {
    if not_run("a_folder_may_be_a_symlink", unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.path("real")).unwrap();
    std::os::unix::fs::symlink(lab.path("real"), lab.path("link")).unwrap();
    lab.run_plan(&plan(&["image = { dir = \"link\", size = \"64MiB\" }"])).code(0);
    lab.assert_nothing_left();
    assert_eq!(std::fs::read_dir(lab.path("real")).unwrap().count(), 0);
}
