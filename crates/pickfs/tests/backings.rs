//! Targets of one plan that live in different places, each in its own.

use crate::common::{Lab, Loop, Observation, Said, failed, not_run, run, unable};
use pickfs_core::journal::{FlagKind, Outcome, fold_file};
use pickfs_core::plan::Settings;
use pickfs_system::need;
use pickfs_target::workload;
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

/// A folder on a btrfs that keeps everything twice, each on its own device.
#[test]
fn all_devices_below_a_folder_are_seen() {
    if not_run(unable(&["btrfs"])) {
        return;
    }
    let (lab, second) = (Lab::new(), Loop::new(256 << 20));
    let twice = ["-m", "raid1", "-d", "raid1", second.device.as_str()];
    let made = Loop::btrfs(&std::env::temp_dir(), 256 << 20, &twice, "noatime");
    lab.run_plan(&format!(
        "duplicate = false\nbacking = {{ directory = '{}' }}\ntarget = [{{ name = 'there' }}]\n\
         work = [{{ workload = 'tree', files = 20, bytes = '16MiB' }}]\nstop = {{ rounds = 1 }}\n",
        made.mount_point().display()
    ))
    .code(0);
    let folded = lab.folded();
    let value = |metric: &str| folded.value(&folded.cells[0], "write", metric).expect("a value");
    let (written, content) = (value("device_write_bytes"), value("space_apparent_bytes"));
    assert!(written >= 2.0 * content, "{written} of {content}");
    lab.assert_nothing_left();
}

/// The owner of a folder could rename what root makes in it, and put a link to root's own files
/// there.
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
    // The user behind sudo could do anything as root in any case.
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

/// What the kernel, `du` and `df` say, when a work starts this program and when it has ended: bytes
/// read from and written to the disk inside, the same of the device below, what the image takes,
/// and what is free on the file system under test. `AT` is the folder inside among its words.
const WITNESS: &str = r#"#!/bin/sh
case "$1" in --*) exec PROGRAM "$@";; esac
at=$AT
below=$(dirname "$at")/target
bytes() { awk '{print $3 * 512, $7 * 512}' "/sys/block/$(basename "$(findmnt -no SOURCE "$1")")/stat"; }
look() {
  sync -f "$at"; sync -f "$below"
  echo "$(bytes "$at") $(bytes "$below") $(du -B1 "$below/work/image" | cut -f1) $(df -B1 --output=avail "$below" | tail -1)"
}
before=$(look)
PROGRAM "$@"
code=$?
echo "$before $(look)" >> LOG
exit $code
"#;

/// Puts the witness in the place of `cp`, `tar` and `fstrim` for one run; what it saw of each,
/// before and after it.
fn run_with_witness(lab: &Lab, plan: &str) -> [[Vec<f64>; 2]; 3] {
    let bin = lab.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, at) in [("cp", "$(dirname \"$3\")"), ("tar", "$3"), ("fstrim", "$1")] {
        let program = need::find_program(name).unwrap().display().to_string();
        let log = lab.path(&format!("{name}.log")).display().to_string();
        let script = WITNESS.replace("$AT", at).replace("PROGRAM", &program).replace("LOG", &log);
        std::fs::write(bin.join(name), script).unwrap();
        run(&["chmod", "+x", &bin.join(name).display().to_string()]);
    }
    lab.write_plan(plan);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let words = ["run", "plan.toml", "--journal", "journal.jsonl"];
    Said::of(lab.pickfs().env("PATH", path).args(words).output().unwrap()).code(0);
    ["cp", "tar", "fstrim"].map(|name| {
        let seen = std::fs::read_to_string(lab.path(&format!("{name}.log"))).unwrap();
        let seen: Vec<f64> = seen.split_whitespace().map(|number| number.parse().unwrap()).collect();
        [seen[..6].to_vec(), seen[6..].to_vec()]
    })
}

/// By the kernel's counters of both devices, `du` and `df`; of each format that can be served here.
#[test]
fn a_disk_in_an_image_is_counted_at_both_levels() {
    let disk = workload::find("vm-image").expect("a known work");
    for format in ["raw-sparse", "qcow2"] {
        let settings = Settings([("format".to_string(), format.into())].into());
        if not_run(unable(&["ext4"]).or_else(|| need::missing(&disk.needs(&settings)).first().map(ToString::to_string)))
        {
            continue;
        }
        let lab = Lab::new();
        let [cp, tar, fstrim] = run_with_witness(
            &lab,
            &format!(
                "duplicate = false\nbacking = {{ memory = '160MiB' }}\ntarget = [{{ fs = 'ext4' }}]\n[[work]]\n\
                 workload = 'vm-image'\nformat = '{format}'\nsize = '64MiB'\ndatabase = '16MiB'\nwrites = 100\n\
                 files = 30\nbytes = '8MiB'\n[stop]\nrounds = 1\n"
            ),
        );
        let folded = lab.folded();
        let cell = &folded.cells[0];
        assert_eq!(cell.outcome, Some(Outcome::Done), "{format}");
        assert!(cell.flags.iter().all(|flag| flag.flag != FlagKind::NotCold.name()), "{format}: {:?}", cell.flags);
        let value = |phase: &str, metric: &str| {
            folded.value(cell, phase, metric).unwrap_or_else(|| panic!("{format}: {phase} has no {metric}"))
        };
        let by = |[before, after]: &[Vec<f64>; 2], at: usize| after[at] - before[at];
        assert_eq!(value("read", "inner_read_bytes"), by(&tar, 0), "{format}");
        let below = by(&tar, 2);
        assert!(value("read", "device_read_bytes") >= below && below >= 16e6, "{format}: {below}");
        // Apart from the tree, the database and what mkfs writes.
        let tree = by(&cp, 1);
        let beside = value("install", "inner_write_bytes") - tree;
        assert!(tree >= 8e6 && (16e6..32e6).contains(&beside), "{format}: {tree} and {beside}");
        let below = value("install", "device_write_bytes");
        assert!(below >= by(&cp, 3) && by(&cp, 3) >= 8e6, "{format}: {below}");
        let [before, after] = ["image_before_bytes", "image_bytes"].map(|metric| value("discard", metric));
        assert_eq!([before, after], [fstrim[0][4], fstrim[1][4]], "{format}");
        let freed = [value("discard", "freed_bytes"), by(&fstrim, 5), before - after];
        assert!(freed.iter().all(|freed| *freed >= 7e6), "{format}: {freed:?}");
        for phase in ["write", "write-clone", "write-held"] {
            let written = value(phase, "inner_write_bytes");
            assert!((409_600.0..819_200.0).contains(&written), "{format} {phase}: {written}");
            // The stage's own account of the device below, which has its own referee.
            let outside = value(phase, "device_write_bytes") + value(phase, "after_write_bytes");
            let amplified = value(phase, "write_amplification") * 409_600.0;
            assert!((amplified - outside).abs() < 1.0, "{format} {phase}: {amplified} of {outside}");
            assert!(
                value(phase, "device_flushes") >= 100.0,
                "{format} {phase}: a commit inside did not reach the disk"
            );
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn a_disk_that_cannot_grow_is_a_failed_cell_that_says_so() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = '32MiB' }\ntarget = [{ fs = 'ext4' }]\n[[work]]\nworkload = 'vm-image'\n\
         size = '96MiB'\ndatabase = '60MiB'\nwrites = 10\nfiles = 10\nbytes = '1MiB'\n[stop]\nrounds = 1\n",
    );
    let cell = &lab.folded().cells[0];
    let Some(Outcome::Failed(why)) = &cell.outcome else { panic!("{:?}", cell.outcome) };
    assert!(why.starts_with("the file system under test is full"), "{why}");
    lab.assert_nothing_left();
}
