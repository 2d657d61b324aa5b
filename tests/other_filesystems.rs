//! File systems of memory and of other systems, snapshots and a log-structured store, end to end with the real binary.

mod common;

use common::{Lab, Observation, not_run, unable};
use pickfs::journal::{Folded, FoldedCell, Outcome};
use pickfs::need::missing;
use pickfs::plan::Settings;

fn doubts(cell: &FoldedCell) -> Vec<&str> {
    let cold = |flag: &&pickfs::journal::Flag| flag.flag == "not-cold";
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
    let Some(Outcome::Skipped(reasons)) = &cell(&folded, "ext4").outcome else { panic!("ext4 takes no snapshots") };
    assert_eq!(reasons, &["snapshots of ext4 cannot be taken by pickfs"]);
    lab.assert_nothing_left();
}

#[test]
fn a_store_of_rocksdb_is_filled_and_read_cold() {
    let workload = pickfs::workload::find("rocksdb").expect("a workload");
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
