//! File systems of memory and of other systems, snapshots and a log-structured store, end to end
//! with the real binary.

use crate::common::{Lab, Observation, not_run, unable};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};
use pickfs_core::plan::Settings;
use pickfs_system::need::{Need, missing};

fn doubts(cell: &FoldedCell) -> Vec<&str> {
    let cold = |flag: &&pickfs_core::journal::Flag| flag.flag == "not-cold";
    cell.flags.iter().filter(cold).map(|flag| flag.phase.as_str()).collect()
}

fn cell<'a>(folded: &'a Folded, target: &str) -> &'a FoldedCell {
    folded.cells.iter().find(|cell| cell.target == target).unwrap_or_else(|| panic!("no cell of {target}"))
}

#[test]
fn memory_is_no_disk_and_ntfs_is_durable_and_cold_behind_fuse() {
    if not_run(unable(&["ntfs-3g", "tmpfs"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"200MiB\" }\ntarget = [{ fs = \"ntfs-3g\" }, { fs = \"tmpfs\" }]\n\
         [[work]]\nworkload = \"tree\"\nlike = \"site\"\nscale = 0.05\n[stop]\nrounds = 1\n",
    )
    .code(0);
    let folded = lab.folded();
    let (ntfs, tmpfs) = (cell(&folded, "ntfs-3g"), cell(&folded, "tmpfs"));
    assert_eq!((&ntfs.outcome, &tmpfs.outcome), (&Some(Outcome::Done), &Some(Outcome::Done)));
    assert_eq!(doubts(ntfs), [""; 0], "{:?}", ntfs.flags);
    let written = folded.value(ntfs, "write", "device_write_bytes").expect("the device was written to");
    let bytes = folded.value(ntfs, "write", "work_bytes").expect("the tree has bytes");
    assert!(written >= bytes, "{written} of {bytes} bytes were on the device when the phase had ended");
    assert_eq!(doubts(tmpfs), ["tar-read", "copy-read", "stat-walk", "remove"]);
    assert_eq!(tmpfs.provenance.weakened, ["kept in memory alone"]);
    assert!(ntfs.provenance.weakened.is_empty(), "{:?}", ntfs.provenance.weakened);
    lab.assert_nothing_left();
}

#[test]
fn snapshots_are_taken_held_sent_and_deleted_where_there_are_some() {
    if not_run(unable(&["btrfs", "ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"300MiB\" }\ntarget = [{ fs = \"btrfs\" }, { fs = \"ext4\" }]\n\
         [[work]]\nworkload = \"snapshots\"\nlike = \"site\"\nscale = 0.05\nsnapshots = 3\nchanges = 200\n[stop]\nrounds = 1\n",
    );
    let folded = lab.folded();
    let btrfs = cell(&folded, "btrfs");
    assert_eq!(btrfs.outcome, Some(Outcome::Done));
    assert_eq!(doubts(btrfs), [""; 0], "{:?}", btrfs.flags);
    for phase in ["change", "take", "change-held", "send", "delete"] {
        assert!(folded.value(btrfs, phase, "time_ns").is_some_and(|time| time > 0.0), "{phase}");
    }
    let alone =
        |phase: &str| folded.value(btrfs, phase, "snapshots_exclusive_bytes").expect("what snapshots hold alone");
    let tree = folded.value(btrfs, "write", "work_bytes").expect("the tree has bytes");
    assert!(alone("take") == 0.0 && (1.0..tree).contains(&alone("change-held")), "{}", alone("change-held"));
    let Some(Outcome::Skipped(reasons)) = &cell(&folded, "ext4").outcome else { panic!("ext4 takes no snapshots") };
    assert_eq!(reasons, &["snapshots of ext4 cannot be taken by pickfs"]);
    lab.assert_nothing_left();
}

#[test]
fn a_store_of_rocksdb_is_filled_and_read_cold() {
    let workload = pickfs_target::workload::find("rocksdb").expect("a workload");
    let lacking = missing(&workload.needs(&Settings::default())).first().map(ToString::to_string);
    if not_run(unable(&["ext4"]).or(lacking)) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"300MiB\" }\ntarget = [{ fs = \"ext4\" }]\n\
         [[work]]\nworkload = \"rocksdb\"\nkeys = 20000\nsyncs = 50\nthreads = 2\n[stop]\nrounds = 1\n",
    )
    .code(0);
    let folded = lab.folded();
    let ext4 = cell(&folded, "ext4");
    assert_eq!((&ext4.outcome, doubts(ext4)), (&Some(Outcome::Done), vec![]), "{:?}", ext4.flags);
    for phase in ["fill-sync", "fill", "overwrite", "read-random", "read-write"] {
        let rate = folded.value(ext4, phase, "operations_per_second");
        assert!(rate.is_some_and(|rate| rate > 0.0), "{phase}");
    }
    let flushes = folded.value(ext4, "fill-sync", "device_flushes");
    assert!(flushes.is_some_and(|flushes| flushes >= 50.0), "each of 50 writes is durable: {flushes:?} flushes");
    lab.assert_nothing_left();
}

#[test]
fn images_are_packed_and_read_cold_and_do_nothing_else() {
    if not_run(unable(&["erofs", "squashfs", "ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"32MiB\" }\n\
         target = [{ fs = \"erofs\" }, { fs = \"squashfs\", variant = \"lz4\" }, { fs = \"ext4\" }]\n\
         [[work]]\nworkload = \"image\"\nlike = \"site\"\nscale = 0.02\nreads = 200\n\
         [[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n",
    );
    let folded = lab.folded();
    for cell in &folded.cells {
        let is_image = cell.target != "ext4";
        match &cell.outcome {
            Some(Outcome::Done) => assert_eq!(is_image, cell.work == "image", "{} {}", cell.target, cell.work),
            Some(Outcome::Skipped(why)) => assert!(why[0].contains("read-only image"), "{why:?}"),
            outcome => panic!("{} {}: {outcome:?}", cell.target, cell.work),
        }
        assert_eq!(doubts(cell), [""; 0], "{:?}", cell.flags);
    }
    let done =
        |name: &str| folded.cells.iter().find(|cell| cell.target == name && cell.work == "image").expect("a cell");
    let bytes = |name: &str, metric| folded.value(done(name), "pack", metric).expect("its bytes");
    // The tree's profile is a third text, which lz4 makes smaller; without compression each file
    // has its own blocks.
    let whole = bytes("erofs", "work_bytes");
    assert!(bytes("erofs", "image_bytes") >= whole && bytes("squashfs lz4", "image_bytes") < whole);
    let written = bytes("squashfs lz4", "device_write_bytes");
    // statfs(2) counts squashfs in whole blocks of 128 KiB.
    let least = bytes("squashfs lz4", "image_bytes") - 131_072.0;
    assert!(written >= least, "{written} of {least} bytes were written until it was durable");
    lab.assert_nothing_left();
}

#[test]
fn a_file_system_runs_full_and_goes_on() {
    if not_run(unable(&["btrfs", "ext4"])) {
        return;
    }
    let lab = Lab::new();
    let works = |name: &str, operations: &str| {
        format!(
            "[[work]]\nname = \"{name}\"\nworkload = \"maintenance\"\nidle = \"300ms\"\noperations = {operations}\n"
        )
    };
    // Linux makes no btrfs smaller than 256 MiB.
    lab.run_plan(&format!(
        "duplicate = false\n[[target]]\nfs = \"ext4\"\nbacking = {{ memory = \"64MiB\" }}\n\
         [[target]]\nfs = \"btrfs\"\nbacking = {{ memory = \"600MiB\" }}\n{}{}{}{}[stop]\nrounds = 1\n",
        works("usual", "[\"fill\", \"remove\", \"check\"]"),
        works("others", "[\"grow\", \"snapshot\", \"delete-snapshots\", \"scrub\", \"balance\", \"quota\"]"),
        works("smaller", "[\"shrink\", \"check\"]"),
        works("holes", "[\"trim\"]"),
    ));
    let folded = lab.folded();
    let cell = |target: &str, work: &str| {
        folded.cells.iter().find(|cell| cell.target == target && cell.work == work).expect("a cell")
    };
    let (usual, others) = (cell("ext4", "usual"), cell("btrfs", "others"));
    assert_eq!((&usual.outcome, &others.outcome), (&Some(Outcome::Done), &Some(Outcome::Done)));
    let value = |phase: &str, metric: &str| folded.value(usual, phase, metric).expect("a value");
    assert!(value("fill", "filled_bytes") > 40.0 * 1_048_576.0, "{}", value("fill", "filled_bytes"));
    assert!(value("fill", "free_when_full_bytes") < 1_048_576.0);
    let [full, half] = ["fill", "remove"].map(|phase| value(phase, "space_used_bytes"));
    assert!(half < 0.6 * full, "{half} of {full}");
    // Half of 64 MiB that snapshots held and that was written anew is free again.
    let snapshots = |phase: &str, metric: &str| folded.value(others, phase, metric).expect("a value");
    let [held, freed] = ["snapshot", "delete-snapshots"].map(|phase| snapshots(phase, "space_used_bytes"));
    assert!((freed - held).abs() < 8.0 * 1_048_576.0, "{held} bytes before, {freed} after");
    assert_eq!(snapshots("delete-snapshots", "refused_count"), 0.0);
    for (target, work, why) in [("ext4", "others", "has no `snapshot`"), ("ext4", "holes", "discard = \"fresh\"")] {
        let Some(Outcome::Skipped(reasons)) = &cell(target, work).outcome else { panic!("{target} {work} is skipped") };
        assert!(reasons.iter().any(|reason| reason.contains(why)), "{reasons:?}");
    }
    // Only what lay in the half that went is moved: of every fourth file of 1 MiB at least a
    // quarter.
    for (target, files) in [("ext4", 42.0), ("btrfs", 400.0)] {
        let smaller = cell(target, "smaller");
        assert_eq!(smaller.outcome, Some(Outcome::Done), "{target}");
        let written = folded.value(smaller, "shrink", "device_write_bytes").expect("what was moved");
        assert!(written >= files / 16.0 * 1_048_576.0, "{target}: {written}");
    }
    lab.assert_nothing_left();
}

/// What ext4 keeps for root was filled too, and btrfs frees with a commit; its timer comes too late.
#[test]
fn what_is_removed_is_free() {
    if not_run(unable(&["btrfs", "ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\n[[target]]\nfs = \"btrfs\"\nmount = [\"commit=300\"]\nbacking = { memory = \"300MiB\" }\n\
         [[target]]\nfs = \"ext4\"\nmkfs = [\"-m\", \"10\"]\nbacking = { memory = \"64MiB\" }\n\
         [[work]]\nworkload = \"maintenance\"\nidle = \"300ms\"\noperations = [\"fill\", \"remove\"]\n[stop]\nrounds = 1\n",
    );
    for cell in &lab.folded().cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
    }
    lab.assert_nothing_left();
}

/// 16 files of 256 pieces each.
#[test]
fn files_in_pieces_are_put_together() {
    if not_run(unable(&["btrfs", "ext4", "xfs"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\n[[target]]\nfs = \"ext4\"\nbacking = { memory = \"128MiB\" }\n\
         [[target]]\nfs = \"btrfs\"\nbacking = { memory = \"300MiB\" }\n\
         [[target]]\nfs = \"xfs\"\nbacking = { memory = \"300MiB\" }\n\
         [[work]]\nworkload = \"maintenance\"\nidle = \"300ms\"\noperations = [\"defrag\"]\n[stop]\nrounds = 1\n",
    )
    .code(0);
    let folded = lab.folded();
    for name in ["btrfs", "ext4", "xfs"] {
        let value = |metric: &str| folded.value(cell(&folded, name), "defrag", metric).expect("a value");
        let [before, after] = ["fragments_before_count", "fragments_after_count"].map(value);
        assert!(before > 2048.0 && after < 256.0, "{name}: {before}, then {after}");
    }
    lab.assert_nothing_left();
}

#[test]
fn a_mirror_is_read_without_one_device_and_rebuilt_on_an_empty_one() {
    if not_run(unable(&["btrfs", "ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { image = { dir = \".\", size = \"300MiB\", disks = 2 } }\n\
         target = [{ fs = \"btrfs\", variant = \"raid1\" }, { fs = \"btrfs\", variant = \"raid0\" }]\n\
         [[work]]\nworkload = \"maintenance\"\nidle = \"1s\"\n\
         operations = [\"degraded\", \"rebuild\", \"scrub\", \"check\"]\n[stop]\nrounds = 1\n",
    );
    let folded = lab.folded();
    let mirror = cell(&folded, "btrfs raid1");
    assert_eq!(mirror.outcome, Some(Outcome::Done));
    let value = |phase: &str, metric: &str| folded.value(mirror, phase, metric).expect("a value");
    // Counts of one GiB: all was read after the mount, then read again and written to the empty
    // device, then read from both.
    let whole = f64::from(1 << 30);
    for (phase, metric, copies) in [
        ("degraded", "device_read_bytes", 1.0),
        ("rebuild", "device_read_bytes", 1.0),
        ("rebuild", "device_write_bytes", 1.0),
        ("scrub", "device_read_bytes", 2.0),
    ] {
        let found = value(phase, metric);
        assert!((copies..1.5 * copies).contains(&(found / whole)), "{phase}, {metric}: {found}");
    }
    let profiles = &mirror.provenance.facts["btrfs profiles of what was made"];
    assert!(profiles.contains("Data, RAID1") && !profiles.contains("Data, single"), "{profiles}");
    let Some(Outcome::Skipped(reasons)) = &cell(&folded, "btrfs raid0").outcome else { panic!("stripes need all") };
    assert_eq!(reasons, &["btrfs raid0 has no `degraded` that pickfs knows: leave it out of the settings of the work"]);
    lab.assert_nothing_left();
}

/// 32 files of 1 MiB, and a copy of each: as many bytes are there twice, and are free afterwards.
#[test]
fn files_that_are_there_twice_are_shared() {
    let duperemove = Need::Program { name: "duperemove", package: "duperemove" };
    if not_run(unable(&["btrfs", "xfs"]).or(missing(&[duperemove]).first().map(ToString::to_string))) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"400MiB\" }\ntarget = [{ fs = \"btrfs\" }, { fs = \"xfs\" }]\n\
         [[work]]\nworkload = \"maintenance\"\nidle = \"300ms\"\noperations = [\"dedup\"]\n[stop]\nrounds = 1\n",
    )
    .code(0);
    let folded = lab.folded();
    for name in ["btrfs", "xfs"] {
        let value = |metric: &str| folded.value(cell(&folded, name), "dedup", metric).expect("a value");
        assert_eq!(value("duplicate_bytes"), f64::from(32 << 20), "{name}");
        let share = value("freed_bytes") / value("duplicate_bytes");
        assert!((0.9..=1.1).contains(&share), "{name}: {share} of the duplicates are free");
    }
    lab.assert_nothing_left();
}

/// What is copied up is cloned where the file system can, and then only the changed blocks are new;
/// xfs takes 128 KiB for each (cowextsize).
#[test]
fn containers_share_the_layers_of_their_image() {
    let workload = pickfs_target::workload::find("containers").expect("a workload");
    let lacking = missing(&workload.needs(&Settings::default())).first().map(ToString::to_string);
    if not_run(unable(&["btrfs", "ext4", "xfs"]).or(lacking)) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"600MiB\" }\ntarget = [{ fs = \"btrfs\" }, { fs = \"ext4\" }, { fs = \"xfs\" }]\n\
         [[work]]\nworkload = \"containers\"\nlike = \"photos\"\nfiles = 200\nbytes = \"160MiB\"\nlayers = 3\ncontainers = 4\nchanges = 10\n\
         [stop]\nrounds = 1\n",
    )
    .code(0);
    let folded = lab.folded();
    let grown = |name: &str| {
        let cell = cell(&folded, name);
        assert_eq!((&cell.outcome, doubts(cell)), (&Some(Outcome::Done), vec![]), "{:?}", cell.flags);
        let space = |phase: &str| folded.value(cell, phase, "space_grown_bytes").expect("the space");
        space("change") - space("unpack")
    };
    let (copied, changes) = (grown("ext4"), 4.0 * 10.0);
    for name in ["btrfs", "xfs"] {
        let cloned = grown(name);
        assert!(cloned < 2.0 * changes * 131_072.0, "{name} grew by {cloned}");
        assert!(copied > 5.0 * cloned, "{name} grew by {cloned}, ext4 by {copied}");
    }
    lab.assert_nothing_left();
}

/// `xfs_repair -n` reads all inodes. What is in memory alone cannot be mounted again.
#[test]
fn mounts_and_checks_start_cold_and_what_is_there_is_read() {
    if not_run(unable(&["btrfs", "tmpfs", "xfs"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = \"320MiB\" }\ntarget = [{ fs = \"btrfs\" }, { fs = \"tmpfs\" }, { fs = \"xfs\" }]\n\
         [[work]]\nworkload = \"mount\"\nfiles = [2000, 50]\nfull = [60]\n[stop]\nrounds = 1\n",
    );
    let folded = lab.folded();
    for name in ["btrfs", "xfs"] {
        let cell = cell(&folded, name);
        assert_eq!(cell.outcome, Some(Outcome::Done), "{name}");
        assert!(!cell.flags.iter().any(|flag| flag.flag.contains("cold")), "{name}: {:?}", cell.flags);
        let read = |phase: &str| folded.value(cell, phase, "device_read_bytes").expect("a value");
        for step in ["50-files", "2000-files", "60-percent"] {
            let (mount, check) = (read(&format!("mount-{step}")), read(&format!("check-{step}")));
            assert!(0.0 < mount && mount < check, "{name}, {step}: {mount} and {check} bytes were read");
        }
        // 512 bytes for an inode of xfs; btrfs has the names, too.
        let more = read("check-2000-files") - read("check-50-files");
        assert!(more >= 1950.0 * 512.0, "{name}: {more} bytes more were read of 1950 files more");
    }
    let Some(Outcome::Skipped(reasons)) = &cell(&folded, "tmpfs").outcome else { panic!("nothing is on a disk") };
    assert_eq!(reasons, &["tmpfs has no `mount` that pickfs knows: leave it out of the settings of the work"]);
    lab.assert_nothing_left();
}
