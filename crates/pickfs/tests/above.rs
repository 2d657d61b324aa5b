//! Layers above a file system under test, on real file systems in memory.

use crate::common::{Lab, Loop, Observation, failed, not_run, run, unable};
use pickfs_core::journal::{FlagKind, FoldedCell, Outcome, Scope, Undo};
use pickfs_core::plan::{Chosen, Target};
use pickfs_system::need;
use pickfs_system::sys::{devices, file};
use pickfs_target::stack::recipe::Recipe;
use pickfs_target::stack::{AboveMount, Action, Place, Step, above};
use pickfs_target::stage::{BuiltStack, WORK};
use pickfs_target::steps::StepRunner;

fn no_overlay(filesystems: &[&str]) -> Option<String> {
    unable(filesystems).or_else(|| lacks("overlayfs"))
}

/// What a layer above lacks here.
fn lacks(layer: &str) -> Option<String> {
    need::missing(above::find(layer).unwrap().needs).first().map(ToString::to_string)
}

fn fact<'a>(cell: &'a FoldedCell, name: &str) -> &'a str {
    let found = cell.provenance.facts.get(name);
    found.unwrap_or_else(|| panic!("{}: no fact {name}: {:?}", cell.target, cell.provenance))
}

fn take(step: &Step) {
    match &step.action {
        Action::Run(words) | Action::Mount(words) => {
            run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        }
        Action::MakeDirectory(path) | Action::MakeWorkFolder(path) => std::fs::create_dir(path).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn undo(step: &Step) {
    match &step.undo {
        Some(Undo::Unmount(path)) => {
            run(&["umount", &path.display().to_string()]);
        }
        Some(Undo::RemoveTree(path)) => std::fs::remove_dir_all(path).unwrap(),
        None => {}
        Some(other) => panic!("{other:?}"),
    }
}

/// Built, taken off and mounted again as a cold start does, and undone; without a run.
#[test]
fn it_stands_above_a_file_system_comes_back_with_it_and_is_undone() {
    if not_run(no_overlay(&["ext4", "xfs", "btrfs"])) {
        return;
    }
    for (fs, nodatacow) in [("ext4", false), ("xfs", false), ("btrfs", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mounts = folder.path().canonicalize().unwrap();
        let place = Place { name: "pickfs-o".into(), memory: mounts.join("memory"), mounts: mounts.clone() };
        let backing = Chosen { name: "memory".into(), ..Chosen::default() };
        let target = Target { fs: Some(fs.into()), overlay: true, nodatacow, backing, ..Target::default() };
        let disk = Loop::new(320 << 20);
        let recipe = Recipe::new(&target, &place, "pickfso", 1).unwrap();
        let steps = recipe.on_devices(vec![disk.device.clone().into()]).unwrap().filesystem_steps;
        steps.iter().for_each(take);
        let stack = BuiltStack {
            driver: recipe.driver,
            device: Some(disk.device.clone().into()),
            mount_point: place.mount_point(),
            root: recipe.above[0].mount_point().join(WORK),
            above: recipe.above.clone(),
            target: target.clone(),
            ..BuiltStack::default()
        };
        let runner = StepRunner::new(&place, Scope::Cell("c".into()));
        std::fs::write(stack.root.join("file"), fs).unwrap();
        stack.make_durable(&runner).unwrap();
        for words in stack.unmount() {
            runner.output(&words).unwrap();
        }
        assert!(!stack.root.exists() && !stack.stored().exists(), "{fs}");
        for words in stack.mount(&stack.spec()) {
            runner.mount(&words).unwrap();
        }
        for seen in [&stack.root, &stack.stored()] {
            assert_eq!(std::fs::read_to_string(seen.join("file")).unwrap(), fs);
        }
        let [above, below] = [&stack.root, &stack.stored()].map(|path| devices::mount_of(path).unwrap());
        assert_eq!((above.fs_type.as_str(), below.fs_type.as_str()), ("overlay", fs));
        let overlay: &AboveMount = &stack.above[0];
        let wrong = |mount| overlay.mismatches("overlay", &devices::effective_options(mount), "");
        assert_eq!((wrong(&above).len(), wrong(&below).len()), (0, 1), "{above:?}");
        let attributes = file::attributes(&stack.root).unwrap_or_default();
        assert_eq!(attributes.iter().any(|name| name == file::IN_PLACE), nodatacow, "{fs}: {attributes:?}");
        steps.iter().rev().for_each(undo);
        assert_eq!(devices::mounts_below(&mounts).unwrap(), [""; 0]);
        assert!(!overlay.mount_point().exists() && !place.mount_point().exists(), "{fs}");
    }
}

const PLAN: &str = r#"
duplicate = false
reference = "ext4"
backing = { memory = "320MiB" }
target = [
  { fs = "ext4" },
  { fs = "ext4", overlay = true, fill = "20%" },
  { fs = "xfs", overlay = true },
  { fs = "btrfs", overlay = true, variant = "zstd:1" },
  { fs = "btrfs", overlay = true, nodatacow = true },
]
work = [{ workload = "tree", like = "site", scale = 0.02 }]
stop = { rounds = 1 }
"#;

#[test]
fn the_work_sees_the_file_system_through_overlayfs() {
    if not_run(no_overlay(&["ext4", "xfs", "btrfs"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(PLAN).code(0);
    let folded = lab.folded();
    let names: Vec<&str> = folded.cells.iter().map(|cell| cell.target.as_str()).collect();
    assert!(names.contains(&"ext4 overlay 20% full") && names.contains(&"btrfs zstd:1 overlay"), "{names:?}");
    let plain = folded.cells.iter().find(|cell| cell.target == "ext4").unwrap();
    assert!(!plain.provenance.facts.contains_key("above: overlayfs"));
    let value = |cell: &FoldedCell, metric: &str| folded.value(cell, "write", metric).unwrap_or_default();
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
        let flags: Vec<_> = cell.flags.iter().filter(|flag| flag.flag == FlagKind::NotCold.name()).collect();
        assert!(flags.is_empty(), "{}: {flags:?}", cell.target);
        let fs = cell.target.split(' ').next().unwrap();
        assert!(fact(cell, "mount").contains("/dev/loop") && fact(cell, "mount").contains(fs));
        // The same entries, seen where they lie.
        assert_eq!(value(cell, "space_entries"), value(plain, "space_entries"), "{}", cell.target);
        assert!(value(cell, "space_total_bytes") > f64::from(200 << 20), "{}", cell.target);
        if cell.target.contains("overlay") {
            let shown = fact(cell, "above: overlayfs");
            assert!(shown.starts_with("overlay overlay ") && shown.contains("/target/upperdir"), "{shown}");
            assert!(shown.contains("redirect_dir="), "{shown}");
        }
        if cell.target.contains("zstd") {
            assert!(
                value(cell, "compression_total_disk_bytes") < value(cell, "space_apparent_bytes"),
                "{}",
                cell.target
            );
        }
    }
    lab.assert_nothing_left();
}

#[test]
fn what_mounts_overlayfs_itself_is_skipped_above_it() {
    if not_run(no_overlay(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let plan = "duplicate = false\nbacking = { memory = '64MiB' }\ntarget = [{ fs = 'ext4', overlay = true }]\n\
                work = [{ workload = 'containers', like = 'site', scale = 0.01 }]\nstop = { rounds = 1 }\n";
    lab.run_plan(plan);
    let cell = &lab.folded().cells[0];
    let Some(Outcome::Skipped(why)) = &cell.outcome else { panic!("{:?}", cell.outcome) };
    assert!(why.iter().any(|why| why.contains("overlayfs cannot be its upper layer")), "{why:?}");
    lab.assert_nothing_left();
}

/// The checker gets the file system alone, and the devices of one that has lost one too.
#[test]
fn a_file_system_is_checked_and_rebuilt_below_overlayfs() {
    if not_run(no_overlay(&["btrfs"])) {
        return;
    }
    let lab = Lab::new();
    let plan = "duplicate = false\nbacking = { image = { dir = '.', size = '400MiB', disks = 2 } }\n\
                target = [{ fs = 'btrfs', variant = 'raid1', overlay = true }]\n\
                work = [{ workload = 'maintenance', operations = ['degraded', 'rebuild', 'check'] }]\nstop = { rounds = 1 }\n";
    lab.run_plan(plan).code(0);
    assert_eq!(lab.folded().cells[0].outcome, Some(Outcome::Done));
    lab.assert_nothing_left();
}

/// Served by programs: one that shows a folder unchanged, and two that encrypt or share it, where
/// installed.
#[test]
fn the_work_sees_the_file_system_through_programs() {
    if not_run(unable(&["ext4"]).or_else(|| lacks("bindfs")).or_else(|| lacks("gocryptfs"))) {
        return;
    }
    let lab = Lab::new();
    let shared = if lacks("sshfs").is_none() { "{ fs = 'ext4', above = ['sshfs'] }," } else { "" };
    let plan = format!(
        "duplicate = false\nreference = 'ext4'\nbacking = {{ memory = '64MiB' }}\n\
         target = [{{ fs = 'ext4' }}, {{ fs = 'ext4', above = ['bindfs', 'gocryptfs'] }}, {shared}]\n\
         work = [{{ workload = 'tree', like = 'site', scale = 0.01 }}]\nstop = {{ rounds = 1 }}\n"
    );
    lab.run_plan(&plan).code(0);
    let folded = lab.folded();
    let value = |cell: &FoldedCell, metric: &str| folded.value(cell, "write", metric).unwrap_or_default();
    let plain = folded.cells.iter().find(|cell| cell.target == "ext4").unwrap();
    for cell in &folded.cells {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
        let flags: Vec<_> = cell.flags.iter().filter(|flag| flag.flag == FlagKind::NotCold.name()).collect();
        assert!(flags.is_empty(), "{}: {flags:?}", cell.target);
        assert!(fact(cell, "mount").contains("/dev/loop"), "{}", cell.target);
        let tried = cell.provenance.facts.get("tried: fsync waits for the disk").map(String::as_str);
        assert_eq!(tried, (cell.target != "ext4").then_some("yes"), "{}", cell.target);
        let of_folder = cell.provenance.facts.contains_key("tried: fsync of a folder waits for the disk");
        assert_eq!(of_folder, cell.target != "ext4", "{}", cell.target);
        assert!(cell.provenance.weakened.is_empty(), "{}: {:?}", cell.target, cell.provenance.weakened);
        match cell.target.as_str() {
            "ext4" => {}
            "ext4 + sshfs" => {
                assert!(fact(cell, "above: sshfs").contains(" fuse.sshfs "));
                assert_eq!(value(cell, "space_entries"), value(plain, "space_entries"));
            }
            "ext4 + bindfs + gocryptfs" => {
                assert!(fact(cell, "above: bindfs").contains("/target/bindfs fuse "));
                assert!(fact(cell, "above: gocryptfs").contains("/above/gocryptfs fuse.gocryptfs "));
                // Every folder has a file with its own number, and each file a header.
                assert!(value(cell, "space_entries") > value(plain, "space_entries"));
                assert!(value(cell, "space_apparent_bytes") > value(plain, "space_apparent_bytes"));
            }
            other => panic!("{other}"),
        }
    }
    lab.assert_nothing_left();
}

/// The mount makes every write durable before it is synced.
#[test]
fn what_is_durable_before_it_is_synced_is_no_sync_that_does_not_wait() {
    if not_run(no_overlay(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "duplicate = false\nbacking = { memory = '64MiB' }\ntarget = [{ fs = 'ext4', overlay = true, mount = ['sync'] }]\n\
         work = [{ workload = 'tree', like = 'site', scale = 0.01 }]\nstop = { rounds = 1 }\n",
    )
    .code(0);
    let cell = &lab.folded().cells[0];
    let tried = ["fsync waits for the disk", "fsync of a folder waits for the disk"];
    let tried = tried.map(|what| fact(cell, &format!("tried: {what}")).to_string());
    assert_eq!((tried, cell.provenance.weakened.as_slice()), (["yes"; 2].map(String::from), &[][..]));
    lab.assert_nothing_left();
}

/// Why the one cell of bindfs on ext4 with this command failed; nothing is left of it.
fn fails(lab: &Lab, above: &str, command: &str, path: &str) -> String {
    lab.write_plan(&format!(
        "duplicate = false\nbacking = {{ memory = '64MiB' }}\ntarget = [{{ fs = 'ext4', above = ['{above}'] }}]\n\
         [[work]]\nworkload = 'command'\ncommand = ['sh', '-c', \"{command}\"]\n[stop]\nrounds = 1\n"
    ));
    let mut run = lab.pickfs();
    run.args(["run", "plan.toml", "--journal", "journal.jsonl", "--yes"]).env("PATH", path);
    assert!(run.output().unwrap().status.code().is_some());
    let folded = lab.folded();
    assert_eq!(folded.cells.len(), 1, "{command}");
    lab.assert_nothing_left();
    failed(&folded.cells[0]).to_string()
}

#[test]
fn a_layer_above_that_fails_is_a_failed_cell_and_nothing_is_left() {
    if not_run(unable(&["ext4"]).or_else(|| lacks("bindfs")).or_else(|| lacks("gocryptfs"))) {
        return;
    }
    let path = std::env::var("PATH").unwrap();
    // The pattern names the mount of this cell, which no other process has.
    let dies =
        "for step in 1 2 3; do echo $step >$step || exit 7; pkill -KILL -f bindfs.*$(dirname $PWD); sleep 0.2; done";
    let died = fails(&Lab::new(), "bindfs", dies, &path);
    assert!(died.contains("Transport endpoint is not connected"), "{died}");
    let full = fails(&Lab::new(), "gocryptfs", "dd if=/dev/zero of=file bs=1M count=200 status=none", &path);
    assert!(full.contains("No space left on device"), "{full}");
    // The folder is opened with another password than it was made with.
    let lab = Lab::new();
    let bin = lab.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let wrong = "#!/bin/sh\nPATH=${PATH#*:}\ncase \"$*\" in *-init*) exec gocryptfs \"$@\";; esac\n\
                 exec gocryptfs -q -extpass echo -extpass other \"$7\" \"$8\"\n";
    std::fs::write(bin.join("gocryptfs"), wrong).unwrap();
    run(&["chmod", "+x", &bin.join("gocryptfs").display().to_string()]);
    let refused = fails(&lab, "gocryptfs", "true", &format!("{}:{path}", bin.display()));
    assert!(refused.contains("cannot mount gocryptfs") && refused.contains("Password incorrect"), "{refused}");
}

/// As `--on DIR` has it.
#[test]
fn a_folder_that_a_program_serves_is_named_with_what_cannot_be_dropped_and_seen() {
    if not_run(lacks("bindfs")) {
        return;
    }
    let lab = Lab::new();
    let [kept, shown] = ["kept", "shown"].map(|name| lab.path(name).display().to_string());
    for folder in [&kept, &shown] {
        std::fs::create_dir(folder).unwrap();
    }
    run(&["bindfs", &kept, &shown]);
    let said = lab.run_plan(&format!(
        "duplicate = false\nbacking = {{ directory = '{shown}' }}\ntarget = [{{ name = 'served' }}]\n\
         work = [{{ workload = 'tree', like = 'site', scale = 0.01 }}]\nstop = {{ rounds = 1 }}\n"
    ));
    run(&["umount", &shown]);
    said.code(0);
    let folded = lab.folded();
    let cell = &folded.cells[0];
    let served = format!("fuse of {kept}");
    assert!(fact(cell, "served").starts_with(&format!("{served}; not seen: ")), "{}", fact(cell, "served"));
    let flags: Vec<_> = cell.flags.iter().filter(|flag| flag.flag == FlagKind::NotCold.name()).collect();
    assert!(
        !flags.is_empty()
            && flags.iter().all(|flag| flag.why.starts_with(&format!("{served}: the cache of the program "))),
        "{flags:?}"
    );
    lab.assert_nothing_left();
}
