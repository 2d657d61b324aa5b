//! Every file system of docs/guest-filesystems.md in a real guest, daily work and small files, cold
//! where it says so: `make test-vm`.

use crate::common;

use crate::common::{Lab, Observation, no_guests, not_run};
use pickfs_core::journal::{Folded, FoldedCell, Outcome};
use std::process::Command;

/// A target, and on how many disks.
type Row = (&'static str, u32);

const ROWS: &[Row] = &[
    ("fs = 'btrfs'", 1),
    ("fs = 'btrfs'\nvariant = 'raid0'", 2),
    ("fs = 'btrfs'\nvariant = 'raid1'", 2),
    ("fs = 'btrfs'\nvariant = 'raid10'", 4),
    ("fs = 'btrfs'\nvariant = 'raid1c3'", 3),
    ("fs = 'ext2'", 1),
    ("fs = 'ext3'", 1),
    ("fs = 'ext4'", 1),
    ("fs = 'f2fs'", 1),
    ("fs = 'jfs'", 1),
    ("fs = 'nilfs2'", 1),
    ("fs = 'reiserfs'", 1),
    ("fs = 'xfs'", 1),
    ("fs = 'zfs-fuse'", 1),
];

/// With what must be found among the mount's options.
const BCACHEFS: &[(Row, &str)] = &[
    (("fs = 'bcachefs'\nmachine = { kernel = 'trixie' }", 1), "nodiscard"),
    (("fs = 'bcachefs'\nvariant = 'lz4'\nmachine = { kernel = 'trixie' }", 1), "compression=lz4"),
    (("fs = 'bcachefs'\nvariant = 'zstd'\nmachine = { kernel = 'trixie' }", 1), "compression=zstd"),
];

/// Every file compressed, as far as it gets smaller.
const COMPRESSED_F2FS: &[Row] = &[
    (
        "fs = 'f2fs'\nmkfs = ['-O', 'extra_attr,compression']\nmount = ['compress_algorithm=lz4', 'compress_extension=*']",
        1,
    ),
    (
        "fs = 'f2fs'\noverlay = true\nmkfs = ['-O', 'extra_attr,compression']\n\
         mount = ['compress_algorithm=lz4', 'compress_extension=*']",
        1,
    ),
];

/// File systems that other systems read too: without links and owners, some of them.
const OTHERS: &[Row] = &[
    ("fs = 'exfat'", 1),
    ("fs = 'ntfs-3g'", 1),
    ("fs = 'ntfs3'\nmachine = { kernel = 'trixie' }", 1),
    ("fs = 'udf'", 1),
    ("fs = 'vfat'", 1),
];

/// With what must be found in a fact of each: OpenZFS 2.1 unless it says another kernel.
const OPENZFS: &[(Row, &str, &str)] = &[
    (("fs = 'zfs'", 1), "version zfs", "zfs-kmod-2.1."),
    (
        ("fs = 'zfs'\nmount = ['noatime', 'recordsize=8K', 'compression=lz4', 'logbias=throughput']", 1),
        "zfs get",
        "throughput",
    ),
    (("fs = 'zfs'\nmount = ['recordsize=16384', 'compression=zstd', 'primarycache=metadata']", 1), "zfs get", "zstd"),
    (("fs = 'zfs'\nmkfs = ['-o', 'ashift=12']", 1), "zpool get", "ashift"),
    (("fs = 'zfs'\nvariant = 'mirror'", 2), "zpool status", "mirror-0"),
    (("fs = 'zfs'\nvariant = 'raidz'", 3), "zpool status", "raidz1-0"),
    (("fs = 'zfs'\nmachine = { kernel = 'trixie' }", 1), "version zfs", "zfs-kmod-2.3."),
    (
        ("fs = 'zfs'\nmount = ['recordsize=8K', 'compression=zstd']\nmachine = { kernel = 'trixie' }", 1),
        "zfs get",
        "zstd",
    ),
];

/// Enough files and bytes for a cold start to be proved on all of them.
const WORKS: &str = "[[work]]\nworkload = 'tree'\nlike = 'site'\nscale = 0.05\n\
     [[work]]\nworkload = 'small-files'\nfiles = 512\nlarge = '8MiB'\ncharacters = '256KiB'\nseeks = 64\nsyncs = 8\n\
     time = '1ms'\n[stop]\nrounds = 1\ncell = '10m'\n";

fn plan(rows: &[Row]) -> String {
    let target = |(number, (text, disks)): (usize, &Row)| {
        let backing = format!("backing = {{ image = {{ dir = '.', size = '400MiB', disks = {disks} }} }}");
        format!("[[target]]\nname = 't{number}'\n{text}\n{backing}\n")
    };
    let targets: String = rows.iter().enumerate().map(target).collect();
    format!("executor = 'vm'\nturn = 'shared'\nduplicate = false\n{targets}{WORKS}")
}

/// Every cell is done and proved its cold starts; all failures are reported at once.
#[track_caller]
fn assert_all_done_and_cold(folded: &Folded, rows: &[Row]) {
    let row = |cell: &FoldedCell| rows[cell.target[1..].parse::<usize>().expect("a number")].0;
    let wrong = |cell: &FoldedCell| {
        let warm: Vec<_> = cell.flags.iter().filter(|flag| flag.flag == "not-cold").collect();
        let right = cell.outcome == Some(Outcome::Done) && warm.is_empty();
        (!right).then(|| format!("{} {}: {:?} {warm:?}", row(cell), cell.work, cell.outcome))
    };
    let wrong: Vec<String> = folded.cells.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(folded.cells.len(), 2 * rows.len());
}

/// The host's own root serves as one that was unpacked.
#[test]
fn programs_are_run_as_root_of_an_unpacked_folder_alone() {
    let namespaces = ["--user", "--map-root-user", "--mount"];
    let allowed = Command::new("unshare").args(namespaces).arg("true").status().is_ok_and(|status| status.success());
    let refused = (!allowed).then(|| "this host lets nobody make namespaces".to_string());
    if not_run(refused) {
        return;
    }
    let mut command = Command::new("unshare");
    command.args(namespaces).args([env!("CARGO_BIN_EXE_pickfs"), "guest", "inside", "/", "--"]);
    command.args(["unshare", "--pid", "--fork", "--kill-child", "--root", "/", "env", "-i", "PATH=/usr/bin:/bin"]);
    let said =
        command.args(["sh", "-c", "id -u; echo $$; test -c /dev/null && test -d /proc/self && echo both"]).output();
    let said = said.expect("unshare starts");
    let shown = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert_eq!(shown.0, "0\n1\nboth\n", "{}", shown.1);
}

#[test]
#[ignore = "boots two guests for each of fourteen targets: half an hour; `make test-vm`"]
fn every_file_system_is_run_and_cold_in_guests() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&plan(ROWS));
    assert_all_done_and_cold(&lab.folded(), ROWS);
    lab.assert_nothing_left();
}

/// `st_blocks` counts compressed files as if they were not: what is read must be held against what
/// is stored.
#[test]
#[ignore = "boots two guests for each of two targets; `make test-vm`"]
fn compressed_files_of_f2fs_are_cold_in_guests() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(&plan(COMPRESSED_F2FS));
    let folded = lab.folded();
    assert_all_done_and_cold(&folded, COMPRESSED_F2FS);
    for cell in folded.cells.iter().filter(|cell| cell.work == "small-files") {
        let value = |phase: &str, metric: &str| folded.value(cell, phase, metric).expect(metric);
        let stored = value("rewrite", "compression_total_disk_bytes");
        assert!(stored < 0.8 * value("rewrite", "space_allocated_bytes"), "{stored}");
        // Whether the kernel says what it saved or what it stored shows where that is not half: in
        // the large file alone.
        let read = value("read", "device_read_bytes") + value("getc", "device_read_bytes");
        assert!((read - stored).abs() < 0.02 * stored, "{read} bytes read of {stored}");
    }
    lab.assert_nothing_left();
}

/// Its mount reads the roots of its B-trees, which hold all of so few names, and blocks of files
/// are counted as if they were not compressed: only contents without compression are proved to be
/// cold.
#[test]
#[ignore = "boots two guests for each of three targets; `make test-vm`"]
fn bcachefs_is_run_in_guests_with_borrowed_tools() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let rows: Vec<Row> = BCACHEFS.iter().map(|(row, _)| *row).collect();
    lab.run_plan(&plan(&rows));
    let folded = lab.folded();
    for cell in &folded.cells {
        let ((row, _), shown) = BCACHEFS[cell.target[1..].parse::<usize>().expect("a number")];
        assert_eq!(cell.outcome, Some(Outcome::Done), "{row}");
        let mount = cell.provenance.facts.get("mount").map(String::as_str).unwrap_or_default();
        assert!(mount.contains(shown), "{row}: {mount}");
        let contents = |phase: &str| ["tar-read", "copy-read"].contains(&phase);
        let warm = cell.flags.iter().find(|flag| flag.flag == "not-cold" && contents(&flag.phase));
        assert!(shown != "nodiscard" || warm.is_none(), "{row}: {warm:?}");
    }
    assert_eq!(folded.cells.len(), 2 * BCACHEFS.len());
    lab.assert_nothing_left();
}

/// A tree without links is kept by all of them, and file systems without links refuse one with
/// links, before anything is made.
#[test]
#[ignore = "boots a guest for each of five targets and makes two roots; `make test-vm`"]
fn file_systems_of_other_systems_are_run_and_cold_in_guests() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let (tree, rest) = WORKS.split_once("[[work]]\nworkload = 'small-files'").expect("two works");
    let stop = &rest[rest.find("[stop]").expect("a limit")..];
    let targets = plan(OTHERS).replace(WORKS, "");
    lab.run_plan(&format!(
        "{targets}{tree}[[work]]\nname = 'links'\nworkload = 'tree'\nlike = 'developer'\nscale = 0.03\n{stop}"
    ));
    let folded = lab.folded();
    for cell in &folded.cells {
        let (row, _) = OTHERS[cell.target[1..].parse::<usize>().expect("a number")];
        let without_links = ["exfat", "vfat"].iter().any(|name| row.contains(name));
        let warm: Vec<_> = cell.flags.iter().filter(|flag| flag.flag == "not-cold").collect();
        match &cell.outcome {
            Some(Outcome::Skipped(why)) if cell.work == "links" && without_links => {
                assert!(why[0].contains("keeps no hard and symbolic links, and the tree has some"), "{row}: {why:?}");
            }
            Some(Outcome::Done) if !(cell.work == "links" && without_links) => {
                assert!(cell.work == "links" || warm.is_empty(), "{row}: {warm:?}");
            }
            outcome => panic!("{row} {}: {outcome:?}", cell.work),
        }
    }
    assert_eq!(folded.cells.len(), 2 * OTHERS.len());
    lab.assert_nothing_left();
}

#[test]
#[ignore = "compiles OpenZFS twice and boots sixteen guests: most of an hour; `make test-vm`"]
fn openzfs_is_compiled_run_and_cold_in_guests() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let rows: Vec<Row> = OPENZFS.iter().map(|(row, _, _)| *row).collect();
    lab.run_plan(&plan(&rows));
    let folded = lab.folded();
    assert_all_done_and_cold(&folded, &rows);
    for cell in &folded.cells {
        let (_, name, shown) = OPENZFS[cell.target[1..].parse::<usize>().expect("a number")];
        let fact = cell.provenance.facts.get(name).map(String::as_str).unwrap_or_default();
        assert!(fact.contains(shown), "{}: {name}: {fact}", cell.target);
    }
    lab.assert_nothing_left();
}

/// What `zfs` takes under one name and shows under another was not what was asked for.
#[test]
#[ignore = "boots a guest with OpenZFS, which may be compiled first; `make test-vm`"]
fn a_property_that_is_not_in_effect_fails_its_cell() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let rows: [Row; 1] = [("fs = 'zfs'\nmount = ['compression=gzip-6']", 1)];
    lab.run_plan(&plan(&rows)).code(1);
    let why = common::failed(&lab.folded().cells[0]).to_string();
    assert!(why.contains("asked for compression=gzip-6, `zfs get` shows gzip"), "{why}");
    lab.assert_nothing_left();
}
