//! Layers, and file systems on several devices, in a real guest: `make test-vm`.

mod common;

use common::{Lab, failed, no_guests, not_run};
use pickfs::journal::{FoldedCell, Outcome};

fn fact<'a>(cell: &'a FoldedCell, name: &str) -> &'a str {
    let found = cell.provenance.facts.get(name);
    found.unwrap_or_else(|| panic!("{}: no fact {name}: {:?}", cell.target, cell.provenance))
}

/// A target on so many disks, and a fact of it with what must stand in it.
type Row = (&'static str, u32, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("fs = 'ext4'\nlayers = ['luks']", 1, "cryptsetup status", "aes-xts-plain64"),
    ("fs = 'ext4'\nlayers = ['integrity']", 1, "integritysetup status", "crc32c"),
    ("fs = 'ext4'\nlayers = [{ delay = { read = '2ms', write = '3ms' } }]", 1, "dmsetup table", "delay"),
    ("fs = 'ext4'\nlayers = [{ lvm = { stripes = 2 } }, 'luks']", 2, "lvs", "LVM2_STRIPES='2'"),
    ("fs = 'ext4'\nlayers = [{ lvmcache = { mode = 'writeback' } }]", 2, "lvs of the cache", "writeback"),
    ("fs = 'ext4'\nlayers = [{ md = { level = 'raid5' } }]", 3, "mdadm --detail", "raid5"),
    (
        "fs = 'xfs'\nlayers = [{ md = { devices = 2 } }, { lvmcache = { size = '64MiB' } }]",
        3,
        "lvs of the cache",
        "writethrough",
    ),
    ("fs = 'btrfs'\nvariant = 'raid1'", 2, "btrfs profiles", "Metadata, RAID1:"),
    ("fs = 'btrfs'\nvariant = 'raid10'\nlayers = ['luks']", 4, "btrfs profiles", "Data, RAID10:"),
];

#[test]
#[ignore = "boots a guest for each stack; `make test-vm`"]
fn stacks_stand_and_are_what_was_asked_for() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let target = |(number, (text, disks, _, _)): (usize, &Row)| {
        let backing = format!("backing = {{ image = {{ dir = '.', size = '320MiB', disks = {disks} }} }}");
        format!("[[target]]\nname = 't{number}'\n{text}\n{backing}\n")
    };
    let targets: String = ROWS.iter().enumerate().map(target).collect();
    let rest = "[[work]]\nworkload = 'tree'\nlike = 'site'\nscale = 0.02\n[stop]\nrounds = 1\n";
    lab.run_plan(&format!("executor = 'vm'\nduplicate = false\n{targets}{rest}")).code(0);
    let folded = lab.folded();
    for (number, (text, _, name, shown)) in ROWS.iter().enumerate() {
        let cell = folded.cells.iter().find(|cell| cell.target == format!("t{number}")).expect("its cell");
        assert_eq!(cell.outcome, Some(Outcome::Done), "{text}");
        assert!(fact(cell, name).contains(shown), "{text}: {}", fact(cell, name));
    }
    lab.assert_nothing_left();
}

/// The example as it stands, made small.
#[test]
#[ignore = "boots a guest for each target; `make test-vm`"]
fn the_example_of_mirrors_and_caches_runs() {
    if not_run(no_guests()) {
        return;
    }
    let whole = include_str!("../examples/mirrors-and-caches.toml");
    let small = whole.replace("4GiB", "320MiB").replace("size = \"1GiB\"", "size = \"64MiB\"");
    let small = small.replace("scale = 1.0", "scale = 0.02").replace("[stop]", "[stop]\nrounds = 1");
    let small = small.replace("8ms", "1ms").replace("title =", "duplicate = false\ntitle =");
    let lab = Lab::new();
    lab.run_plan(&small).code(0);
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 6);
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
    }
    lab.assert_nothing_left();
}

/// What only the tools can know fails in its cell, and takes the guest with it.
#[test]
#[ignore = "boots a guest; `make test-vm`"]
fn a_layer_that_cannot_be_built_fails_clearly() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let backing = "backing = { image = { dir = '.', size = '64MiB' } }\n";
    let target = "[[target]]\nfs = 'ext4'\nlayers = [{ luks = { cipher = 'nonsense' } }]\n";
    let rest = "[[work]]\nworkload = 'tree'\nlike = 'site'\nscale = 0.02\n[stop]\nrounds = 1\n";
    lab.run_plan(&format!("executor = 'vm'\nduplicate = false\n{backing}{target}{rest}")).code(1);
    assert!(failed(&lab.folded().cells[0]).contains("encrypt"), "{}", failed(&lab.folded().cells[0]));
    lab.assert_nothing_left();
}
