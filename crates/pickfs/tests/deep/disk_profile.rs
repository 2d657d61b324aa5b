//! A disk becomes a model, by reading alone or by writing too, which takes its name twice.

use crate::common::{Lab, Loop, not_run, run, unable};

#[test]
fn a_disk_becomes_a_model_that_can_be_shown() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let (lab, disk) = (Lab::new(), Loop::new(256 << 20));
    run(&["dd", "if=/dev/urandom", &format!("of={}", disk.device), "bs=1M", "count=256", "conv=fsync", "status=none"]);
    let before = std::fs::read(&disk.device).expect("its content");
    let words = ["disk", "profile", &disk.device, "--kind", "flash", "--output", "mine.toml"];
    let said = lab.run(&words).code(0);
    for part in ["random read, 4 KiB, 1 at a time", "sequential read at the end", "pickfs run --sim mine.toml"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    assert!(std::fs::read(&disk.device).expect("its content") == before, "reading has changed the disk");
    let model = std::fs::read_to_string(lab.path("mine.toml")).expect("the model");
    assert!(model.contains("read_us = { is = ") && model.contains("measured on 20"), "{model}");
    assert!(model.contains("program_us = { is = 900, source = \"not measured, as in sata-ssd: "), "{model}");
    let shown = lab.run(&["disk", "show", "mine.toml"]).code(0);
    assert!(shown.out.contains("queue depth 32"), "{}", shown.out);
    let again = lab.run(&words).code(2);
    assert!(again.err.contains("mine.toml is there already"), "{}", again.err);
}

#[test]
fn writing_to_a_disk_takes_its_name_twice() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let (lab, mut disk) = (Lab::new(), Loop::new(96 << 20));
    let own = disk.device.clone();
    let profile = |more: &[&str]| {
        let words = ["disk", "profile", own.as_str(), "--kind", "flash", "--output", "mine.toml", "--scratch"];
        lab.run(&[&words, more].concat())
    };
    let empty = std::fs::read(&own).expect("its content");
    let unconfirmed = profile(&[]).code(5);
    assert!(unconfirmed.err.contains(&format!("--erase '{own}'")), "{}", unconfirmed.err);
    run(&["mke2fs", "-q", "-F", "-t", "ext4", &own]);
    disk.mount("defaults");
    let mounted = profile(&["--erase", &own]).code(5);
    assert!(mounted.err.contains("is mounted at"), "{}", mounted.err);
    disk.unmount();
    let holds = profile(&["--erase", &own]).code(5);
    assert!(holds.err.contains("ext4"), "{}", holds.err);
    run(&["wipefs", "-a", &own]);
    let said = profile(&["--erase", &own]).code(0);
    assert!(said.out.contains("flush after 256 random writes"), "{}", said.out);
    let model = std::fs::read_to_string(lab.path("mine.toml")).expect("the model");
    assert!(model.contains("flush_us = { is = ") && model.contains("power_loss_protection = { is = "), "{model}");
    assert!(std::fs::read(&own).expect("its content") != empty, "nothing was written");
}

#[test]
fn what_is_no_disk_is_refused() {
    let lab = Lab::new();
    std::fs::write(lab.path("file"), "no disk").expect("a file");
    for name in ["file", "/dev/null", "missing"] {
        let said = lab.run(&["disk", "profile", name]).code(2);
        assert!(said.err.contains("no block device; `lsblk` lists them"), "{}", said.err);
    }
    assert!(!lab.path("file.toml").exists());
}
