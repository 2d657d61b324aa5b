//! Layers, and file systems on several devices, in a real guest: `make test-vm`.

use crate::common::steps::{GUEST, RUN, Steps, plain_line, printed};
use crate::common::{Lab, Observation, Said, failed, no_guests, not_run, run};
use pickfs_core::journal::{FoldedCell, Outcome, Record, Scope};
use pickfs_core::protocol::Say;
use pickfs_target::stack::layer;
use std::os::unix::fs::PermissionsExt;

fn fact<'a>(cell: &'a FoldedCell, name: &str) -> &'a str {
    let found = cell.provenance.facts.get(name);
    found.unwrap_or_else(|| panic!("{}: no fact {name}: {:?}", cell.target, cell.provenance))
}

/// A target, the number of its disks, the name of a fact about it, and what that fact must contain.
type Row = (&'static str, u32, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("fs = 'ext4'\nlayers = ['luks']", 1, "cryptsetup status", "aes-xts-plain64"),
    ("fs = 'ext4'\nlayers = ['integrity']", 1, "integritysetup status", "crc32c"),
    ("fs = 'ext4'\nlayers = [{ delay = { read = '2ms', write = '3ms' } }]", 1, "dmsetup table", "delay"),
    ("fs = 'ext4'\nlayers = [{ lvm = { stripes = 2 } }, 'luks']", 2, "lvs", "LVM2_STRIPES='2'"),
    ("fs = 'ext4'\nlayers = [{ lvmcache = { mode = 'writeback' } }]", 2, "lvs of the cache", "writeback"),
    ("fs = 'xfs'\nlayers = [{ lvmthin = { chunk = '128KiB' } }]", 2, "lvs of the thin volume and its pool", "131072B"),
    ("fs = 'ext4'\nlayers = ['writecache']", 2, "lvs of the write cache", "writecache"),
    ("fs = 'ext4'\nlayers = [{ bcache = { mode = 'writeback' } }]", 2, "bcache", "[writeback]"),
    ("fs = 'xfs'\nlayers = ['bcache', 'luks']", 2, "bcache", "[writethrough]"),
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
    lab.run_plan(&format!("executor = 'vm'\nturn = 'shared'\nduplicate = false\n{targets}{rest}")).code(0);
    let folded = lab.folded();
    for (number, (text, _, name, shown)) in ROWS.iter().enumerate() {
        let cell = folded.cells.iter().find(|cell| cell.target == format!("t{number}")).expect("its cell");
        assert_eq!(cell.outcome, Some(Outcome::Done), "{text}");
        assert!(fact(cell, name).contains(shown), "{text}: {}", fact(cell, name));
    }
    lab.assert_nothing_left();
}

/// What it says that it holds is what the file system holds, and the algorithm is the one that was
/// asked for.
#[test]
#[ignore = "boots a guest; `make test-vm`"]
fn a_disk_in_compressed_memory_holds_less_than_it_was_given() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "executor = 'vm'\nturn = 'shared'\nduplicate = false\nbacking = { zram = { size = '200MiB', algorithm = 'zstd' } }\n\
         target = [{ fs = 'ext4' }]\nwork = [{ workload = 'tree', like = 'site', scale = 0.02 }]\nstop = { rounds = 1 }\n",
    )
    .code(0);
    let folded = lab.folded();
    let cell = &folded.cells[0];
    assert_eq!(cell.outcome, Some(Outcome::Done));
    assert!(fact(cell, "zram algorithm").contains("[zstd]") && fact(cell, "zram size") == "209715200");
    let value = |metric: &str| folded.value(cell, "write", metric).expect("a value");
    let held = value("zram_data_bytes") / value("space_allocated_bytes");
    assert!((1.0..1.5).contains(&held), "it holds {held} times what the files take");
    assert!(value("zram_compressed_bytes") < 0.95 * value("zram_data_bytes"));
    assert!(value("zram_memory_bytes") >= value("zram_compressed_bytes"));
    lab.assert_nothing_left();
}

/// The example as it stands, made small.
#[test]
#[ignore = "boots a guest for each target; `make test-vm`"]
fn the_example_of_mirrors_and_caches_runs() {
    if not_run(no_guests()) {
        return;
    }
    let whole = include_str!("../../../../examples/mirrors-and-caches.toml");
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
    lab.run_plan(&format!("executor = 'vm'\nturn = 'shared'\nduplicate = false\n{backing}{target}{rest}")).code(1);
    assert!(failed(&lab.folded().cells[0]).contains("encrypt"), "{}", failed(&lab.folded().cells[0]));
    lab.assert_nothing_left();
}

/// In the laboratory, with a QEMU that leaves a copy of all that guests' agents say.
fn run_overheard(lab: &Lab, words: &[&str]) -> Said {
    let (folder, said) = (lab.path("programs"), lab.path("said"));
    let (qemu, real) = (folder.join("qemu-system-x86_64"), run(&["which", "qemu-system-x86_64"]));
    std::fs::create_dir(&folder).expect("a folder");
    let script = format!("#!/bin/bash\nexec {real} \"$@\" > >(exec tee -a '{}')\n", said.display());
    std::fs::write(&qemu, script).expect("a program");
    std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    Said::of(lab.pickfs().args(words).env("PATH", path).output().expect("pickfs starts"))
}

/// What the agents of one guest after the other took, by target.
fn taken_in_guests(said: &str, run: &str) -> Steps {
    let (mut steps, mut target, mut before, mut loops) = (Steps::new(), String::new(), Vec::new(), Vec::new());
    for said in said.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match said {
            Say::Ask(Record::Step(step)) if step.scope == Scope::Run => before.push(plain_line(&step, run, &mut loops)),
            Say::Ask(Record::Step(step)) if step.scope == Scope::RawSpeed => loops.clear(),
            Say::Ask(Record::Step(step)) => {
                steps.entry(target.clone()).or_default().push(plain_line(&step, run, &mut loops));
            }
            Say::Tell(Record::Begin(begin)) => {
                steps.insert(begin.target.clone(), std::mem::take(&mut before));
                target = begin.target;
                loops.clear();
            }
            _ => {}
        }
    }
    steps
}

/// A set of bcache has its identity from the name of the run.
fn without_sets(steps: &[String]) -> String {
    /// "pickfs" in ASCII: so every set of bcache begins.
    const SET: &str = "7069636b-6673";
    const REST: usize = "-0000-0000-000000000000".len();
    let text = steps.join("\n");
    let mut parts = text.split(SET);
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + "SET" + &part[REST..])
}

/// All but VDO, which takes a newer kernel and gigabytes ([`vdo_stores_equal_blocks_once`]), and
/// dm-zoned, which takes a disk with zones (crates/pickfs/tests/deep/guest_sim.rs).
fn in_usual_guests() -> impl Iterator<Item = &'static layer::Layer> {
    layer::ALL.iter().copied().filter(|layer| !["lvmvdo", "dm-zoned"].contains(&layer.name))
}

#[test]
#[ignore = "boots a guest of trixie with an image of 4 GiB; `make test-vm`"]
fn vdo_stores_equal_blocks_once() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "executor = 'vm'\nturn = 'shared'\nduplicate = false\nmachine = { kernel = 'trixie', memory = '1536MiB' }\n\
         backing = { image = { dir = '.', size = '4GiB' } }\n\
         target = [{ fs = 'ext4', layers = [{ lvmvdo = { slab = '128MiB' } }] }]\n\
         [[work]]\nworkload = 'tree'\nlike = 'site'\nscale = 0.02\n[stop]\nrounds = 1\n",
    )
    .code(0);
    let folded = lab.folded();
    let cell = &folded.cells[0];
    assert_eq!(cell.outcome, Some(Outcome::Done));
    let shown = fact(cell, "lvs of the VDO volume");
    for word in ["LVM2_SEGTYPE='vdo'", "LVM2_VDO_COMPRESSION_STATE='online'", "LVM2_VDO_INDEX_STATE='o"] {
        assert!(shown.contains(word), "{shown}");
    }
    lab.assert_nothing_left();
}

/// The dry run is the run in guests too: every layer, and a disk in the guest's memory with all
/// that can be set of it.
#[test]
#[ignore = "boots a guest for each layer; `make test-vm`"]
fn the_steps_in_guests_are_those_of_the_dry_run() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let target = |layer: &&layer::Layer| {
        let name = layer.name;
        let disks = if layer.joins { 2 } else { 1 };
        let backing = format!("backing = {{ image = {{ dir = '.', size = '64MiB', disks = {disks} }} }}");
        // The kernel takes no cache of 512 buckets or fewer.
        let layer = if name == "bcache" { "{ bcache = { bucket = '64KiB' } }".into() } else { format!("'{name}'") };
        format!("[[target]]\nname = '{name}'\nfs = 'ext4'\nlayers = [{layer}]\n{backing}\n")
    };
    let targets = in_usual_guests().map(|layer| target(&layer)).collect::<String>();
    let memory = "[[target]]\nname = 'memory'\nfs = 'ext4'\nlayers = ['luks', 'lvm']\nscheduler = 'none'\n\
                  queue = { read_ahead_kb = 64 }\nbacking = { memory = '64MiB' }\n";
    let rest = "[[work]]\nworkload = 'meta.ok'\n[stop]\nrounds = 1\n\
                [host]\ndirty_bytes = '64MiB'\ndirty_background_bytes = '32MiB'\n";
    let head = "executor = 'vm'\nturn = 'shared'\nseed = 7\nduplicate = false\n";
    lab.write_plan(&format!("{head}{targets}{memory}{rest}"));
    let dry = lab.run(&["plan", "plan.toml"]).code(0).out;
    let ran = run_overheard(&lab, &["run", "plan.toml", "--journal", "journal.jsonl"]).code(0);
    let folded = lab.folded();
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
    }
    assert_eq!(folded.cells.len(), in_usual_guests().count() + 1, "{}", ran.err);
    let said = std::fs::read_to_string(lab.path("said")).expect("what the agents said");
    let run = folded.run.as_ref().map(|run| run.id.clone()).expect("a run");
    let (mut printed, mut taken) = (printed(&dry), taken_in_guests(&said, &run));
    taken.insert(RUN.into(), taken_on_the_host(&lab, &run));
    let before = printed.remove(GUEST).expect("what each guest begins with");
    for (section, steps) in printed.iter_mut().filter(|(section, _)| *section != RUN) {
        *steps = [&before[..], steps].concat();
        println!("{section}: {} steps", steps.len());
    }
    assert_eq!(printed.keys().collect::<Vec<_>>(), taken.keys().collect::<Vec<_>>(), "{dry}");
    for (section, steps) in &printed {
        assert_eq!(without_sets(steps), without_sets(&taken[section]), "{section}");
    }
    lab.assert_nothing_left();
}

fn taken_on_the_host(lab: &Lab, run: &str) -> Vec<String> {
    let journal = std::fs::read_to_string(lab.journal()).expect("a journal");
    let records = journal.lines().map(|line| serde_json::from_str(line).expect("a record"));
    let steps = records.filter_map(|record| if let Record::Step(step) = record { Some(step) } else { None });
    steps.map(|step| plain_line(&step, run, &mut Vec::new())).collect()
}
