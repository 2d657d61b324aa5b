//! What goes wrong in and around a guest costs its cell, with the cause; the run goes on, and
//! nothing is left.

use crate::common::{Lab, Said, SmallDisk, failed, no_guests, not_run};
use pickfs_core::journal::{Folded, FoldedCell, Outcome, Record, fold_file};
use pickfs_system::process::marked_processes;
use pickfs_system::sys::process::{Signal, Stat, kill};
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const HEAD: &str = r#"
executor = "vm"
turn = "shared"
duplicate = false
machine = { processors = 1 }
"#;

/// One cell for each of these works, on ext4 in a guest.
fn plan(works: &[(&str, &str)], more: &str) -> String {
    let mut text = format!(
        "{HEAD}{more}backing = {{ image = {{ dir = \".\", size = \"64MiB\" }} }}\ntarget = [{{ fs = \"ext4\" }}]\n"
    );
    for (name, script) in works {
        text += &format!(
            "[[work]]\nname = \"{name}\"\nworkload = \"command\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n\
             writes = false\nstart = \"warm\"\n"
        );
    }
    text + "[stop]\nrounds = 1\ncell = \"60s\"\n"
}

fn find<'f>(folded: &'f Folded, name: &str) -> &'f FoldedCell {
    let found = folded.cells.iter().find(|cell| cell.work == name || cell.target == name);
    found.unwrap_or_else(|| panic!("no cell of {name}"))
}

fn ends(lab: &Lab) -> Vec<(String, bool)> {
    let text = std::fs::read_to_string(lab.journal()).unwrap_or_default();
    let records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    records
        .filter_map(|record| match record {
            Record::End(end) => Some((end.cell, end.outcome == Outcome::Done)),
            _ => None,
        })
        .collect()
}

#[track_caller]
fn assert_fails(folded: &Folded, rows: &[(&str, &[&str])]) {
    for (name, says) in rows {
        let why = failed(find(folded, name));
        println!("{name}: {why}");
        assert!(says.iter().all(|says| why.contains(says)), "{name}: {why}, without {says:?}");
    }
}

const PANIC: &str = "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger; sleep 60";
/// The agent starts the command itself.
const KILL_AGENT: &str = "kill -9 $PPID; sleep 60";

#[test]
fn a_guest_that_panics_and_an_agent_that_is_killed_cost_their_cells() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let works = [("panic", PANIC), ("killed", KILL_AGENT), ("fine", "true"), ("fails", "echo no luck >&2; exit 3")];
    let said = lab.run_plan(&plan(&works, "host = { dirty_bytes = \"48MiB\" }\n"));
    let said = said.code(1);
    lab.assert_nothing_left();
    let folded = lab.folded();
    assert_eq!(find(&folded, "fine").outcome, Some(Outcome::Done), "{}", said.err);
    // What the plan sets on a host is set in each guest.
    assert_eq!(find(&folded, "fine").provenance.facts["dirty_bytes"], (48 << 20).to_string());
    assert_fails(
        &folded,
        &[
            ("panic", &["the machine ended before its cell did", "Kernel panic - not syncing: sysrq triggered crash"]),
            ("killed", &["the machine ended before its cell did", "the agent ended by signal 9"]),
            ("fails", &["exit status: 3: no luck"]),
        ],
    );
    let first_failure = ends(&lab).iter().position(|(_, done)| !done);
    assert!(ends(&lab)[first_failure.unwrap()..].iter().any(|(_, done)| *done), "no cell after a dead guest");
}

#[test]
fn a_kernel_that_panics_as_it_boots_is_booted_again_and_then_given_up() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let no_init = "processors = 1, words = \"rdinit=/nowhere\"";
    lab.run_plan(&plan(&[("never", "true")], "").replace("processors = 1", no_init)).code(1);
    lab.assert_nothing_left();
    assert_fails(&lab.folded(), &[("never", &["in each of 3 boots the machine ended", "Kernel panic"])]);
}

fn start(lab: &Lab) -> Child {
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn resume(lab: &Lab) -> Said {
    lab.run(&["run", "--resume", "journal.jsonl"])
}

/// Those of the run under way whose program's name begins so.
fn of_the_run(lab: &Lab, program: &str) -> Vec<i32> {
    let id = std::fs::read_dir(lab.path("state/pickfs/active")).ok().and_then(|mut all| all.next()?.ok());
    let Some(id) = id else { return Vec::new() };
    let marked = marked_processes(&format!("PICKFS_RUN={}", id.file_name().to_string_lossy()));
    marked.into_iter().filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.name.starts_with(program))).collect()
}

/// True when one came; false when the run ended before.
fn await_program(lab: &Lab, child: &mut Child, program: &str) -> bool {
    while of_the_run(lab, program).is_empty() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

#[test]
fn a_qemu_that_is_killed_costs_no_cell() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    // More than any machine has.
    let huge = "target = [{ fs = \"ext4\" }, { fs = \"ext4\", name = \"huge\", machine = { memory = \"4096TiB\" } }]";
    let usual = plan(&[("first", "true"), ("second", "true")], "");
    // One that is kept would need no boot.
    lab.forget_boots();
    lab.write_plan(&usual.replace("target = [{ fs = \"ext4\" }]", huge));
    let mut child = start(&lab);
    // First the one that boots to be saved, so that a cell boots by itself; then one in its cell.
    // Those of `huge` end by themselves.
    let (mut boot_killed, mut killed) = (false, false);
    while !killed && await_program(&lab, &mut child, "qemu") {
        std::thread::sleep(Duration::from_millis(200));
        let folded = fold_file(&lab.journal()).unwrap_or_default();
        let usual = folded.cells.iter().filter(|cell| cell.target == "ext4");
        let (ended, running): (Vec<_>, Vec<_>) = usual.partition(|cell| cell.outcome.is_some());
        let words = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let kill_one = |which: &dyn Fn(&str) -> bool| {
            let mut found = of_the_run(&lab, "qemu").into_iter().filter(|pid| which(&words(pid)));
            found.any(|pid| kill(pid, Signal::KILL).is_ok())
        };
        if !boot_killed {
            boot_killed = kill_one(&|words| words.contains("-qmp") && !words.contains("4294967296M"));
        } else if ended.len() == 1 && running.len() == 1 {
            killed = kill_one(&|words| !words.contains("-qmp"));
        }
    }
    child.wait().unwrap();
    lab.assert_nothing_left();
    if !killed {
        let said = lab.run_plan(&usual);
        panic!("no QEMU came: {}", said.err);
    }
    let folded = lab.folded();
    let of = |target: &str| folded.cells.iter().filter(|cell| cell.target == target).collect::<Vec<_>>();
    let (usual, huge) = (of("ext4"), of("huge"));
    assert_eq!((usual.len(), huge.len()), (2, 2));
    for cell in huge {
        let why = failed(cell);
        assert!(why.contains("QEMU ended with exit code 1: qemu-system-x86_64"), "{why}");
    }
    assert!(usual.iter().all(|cell| cell.outcome == Some(Outcome::Done)), "{usual:#?}");
    let is_flagged = |cell: &&FoldedCell| cell.flags.iter().any(|flag| flag.flag == "machine-killed");
    let (again, at_once): (Vec<_>, Vec<_>) = usual.into_iter().partition(is_flagged);
    assert_eq!((again.len(), at_once.len()), (1, 1), "{again:#?}");
    let facts = &at_once[0].provenance.facts;
    assert!(facts["guest not saved"].contains("QEMU ended by signal 9"), "{facts:?}");
    assert!(!facts["guest boot"].contains("saved"), "{facts:?}");
}

#[test]
#[ignore = "a guest that hangs is waited for: minutes"]
fn what_goes_wrong_in_a_guest_is_told() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let works = [
        ("stopped", "kill -STOP $PPID; sleep 600"),
        ("slow", "sleep 600"),
        ("hungry", "tail /dev/zero"),
        ("full", "dd if=/dev/zero of=big bs=1M status=none"),
        (
            "gone",
            "for disk in /sys/block/sd?; do echo 1 > $disk/device/delete; done; dd if=/dev/zero of=x count=9000; sync",
        ),
        ("flood", "head -c 3000000 /dev/zero | tr '\\\\0' x > /dev/console"),
        ("fine", "true"),
    ];
    let said = lab.run_plan(
        &plan(&works, "").replace("processors = 1", "processors = 1, memory = \"512MiB\", bus = \"virtio-scsi\""),
    );
    let said = said.code(1);
    lab.assert_nothing_left();
    let folded = lab.folded();
    for name in ["fine", "flood"] {
        assert_eq!(find(&folded, name).outcome, Some(Outcome::Done), "{name}: {}", said.err);
    }
    assert_fails(
        &folded,
        &[
            ("stopped", &["the time limit of 60.0 s passed and the agent did not answer"]),
            ("slow", &["the time limit of 60.0 s passed"]),
            ("hungry", &["in phase command", "Out of memory: Killed process"]),
            ("full", &["in phase command", "No space left on device"]),
            ("gone", &["the guest's console"]),
        ],
    );
}

/// From the first agent, as a run may have to wait for its turn, until all is done: so moments lie
/// over the whole of it, boots as well.
const MOMENTS: usize = 12;

#[test]
#[ignore = "a dozen runs, cut and taken up: a quarter of an hour"]
fn whoever_is_killed_and_whenever_nothing_is_left() {
    if not_run(no_guests()) {
        return;
    }
    let works = [("first", "sleep 1"), ("second", "sleep 1")];
    let lab = Lab::new();
    lab.write_plan(&plan(&works, ""));
    let mut child = start(&lab);
    assert!(await_program(&lab, &mut child, "pickfs"), "no agent came");
    let begun = Instant::now();
    assert!(child.wait().unwrap().success(), "{:#?}", lab.folded().cells);
    let usual = begun.elapsed();
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(12);
    let mut cut_off = 0;
    for number in 0..MOMENTS {
        let moment = usual.mul_f64((random.next_u64() % 1000) as f64 / 1000.0);
        let victim = ["host", "qemu", "agent"][number % 3];
        let context = format!("moment {number}: {moment:?}, {victim}");
        println!("{context}");
        let lab = Lab::new();
        lab.write_plan(&plan(&works, ""));
        let mut child = start(&lab);
        assert!(await_program(&lab, &mut child, "pickfs"), "{context}: no agent came");
        std::thread::sleep(moment);
        match victim {
            "host" => child.kill().unwrap(),
            "qemu" => of_the_run(&lab, "qemu").into_iter().for_each(|pid| drop(kill(pid, Signal::KILL))),
            _ => of_the_run(&lab, "pickfs").into_iter().for_each(|pid| drop(kill(pid, Signal::KILL))),
        }
        child.wait().unwrap();
        let cleaned = lab.run(&["clean"]);
        assert_eq!(cleaned.code, Some(0), "{context}: {}{}", cleaned.out, cleaned.err);
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "{context}");
        if !std::fs::read_to_string(lab.journal()).is_ok_and(|text| text.contains('\n')) {
            continue;
        }
        let failures = ends(&lab).iter().filter(|(_, done)| !done).count();
        assert!(failures <= usize::from(victim != "host"), "{context}: one death cost {failures} cells");
        cut_off += usize::from(failures > 0 || ends(&lab).len() < works.len());
        let resumed = resume(&lab);
        assert!(matches!(resumed.code, Some(0 | 1)), "{context}: {}{}", resumed.out, resumed.err);
        let ended: Vec<String> = ends(&lab).into_iter().map(|(cell, _)| cell).collect();
        assert_eq!((ended.len(), ended.iter().collect::<BTreeSet<_>>().len()), (2, 2), "{context}: {ended:?}");
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "{context}, resumed");
    }
    println!("{cut_off} of {MOMENTS} moments cut cells off");
    assert!(cut_off >= MOMENTS / 4, "only {cut_off} moments fell into the run");
}

/// Ctrl-C while a guest boots, and in a phase.
#[test]
#[ignore = "boots four guests: a minute or two"]
fn a_run_that_is_interrupted_is_taken_up() {
    if not_run(no_guests()) {
        return;
    }
    for what in ["qemu", "phase"] {
        let lab = Lab::new();
        lab.write_plan(&plan(&[("long", "sleep 20")], ""));
        let mut child = start(&lab);
        if !await_program(&lab, &mut child, "qemu") {
            let said = lab.run_plan(&plan(&[("long", "true")], ""));
            panic!("no QEMU came: {}", said.err);
        }
        // The guest reports the settings in effect right before the phase.
        while what == "phase" && !std::fs::read_to_string(lab.journal()).unwrap().contains("\"mkfs\":\"") {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the run ended with {status} before its phase: {:#?}", lab.folded().cells);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        kill(child.id() as i32, Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{what}");
        lab.assert_nothing_left();
        assert_eq!(ends(&lab), [], "{what}: a cell that was stopped is not run");
        resume(&lab).code(0);
        assert_eq!(ends(&lab).len(), 1);
        lab.assert_nothing_left();
    }
}

/// A guest's cold start is none if the host has its disk in memory.
#[test]
#[ignore = "boots three guests: a minute or two"]
fn what_the_host_has_cached_is_dropped_or_told() {
    let memory = std::path::Path::new("/dev/shm");
    if not_run(no_guests().or_else(|| (!memory.is_dir()).then(|| "there is no /dev/shm".into()))) {
        return;
    }
    let lab = Lab::new();
    let folder = tempfile::tempdir_in(memory).unwrap();
    let image = |dir: &str, cache: &str, name: &str| {
        format!(
            "[[target]]\nfs = \"ext4\"\nname = \"{name}\"\nmachine = {{ cache = \"{cache}\" }}\n\
             backing = {{ image = {{ dir = \"{dir}\", size = \"64MiB\" }} }}\n"
        )
    };
    let shown = folder.path().display().to_string();
    let targets =
        [image(".", "writeback", "dropped"), image(".", "none", "direct"), image(&shown, "writeback", "in memory")];
    let work = "[[work]]\nworkload = \"command\"\nprepare = [\"dd\", \"if=/dev/urandom\", \"of=x\", \"bs=1M\", \"count=16\"]\n\
                command = [\"cat\", \"x\"]\nwrites = false\n[stop]\nrounds = 1\n";
    let said = lab.run_plan(&format!("{HEAD}{}{work}", targets.concat()));
    said.code(0);
    lab.assert_nothing_left();
    let folded = lab.folded();
    let doubts = |name: &str| {
        let flags = find(&folded, name).flags.iter().filter(|flag| flag.flag.contains("cold"));
        flags.map(|flag| format!("{}: {}", flag.flag, flag.why)).collect::<Vec<_>>()
    };
    assert_eq!((doubts("dropped"), doubts("direct")), (vec![], vec![]));
    let told = doubts("in memory");
    assert!(told.len() == 1 && told[0].contains("not-cold: the host still has "), "{told:?}");
}

/// Where programs of a guest's making are looked for first: one that has started another and never
/// ends by itself.
fn programs_that_never_end(lab: &Lab) -> String {
    use std::os::unix::fs::PermissionsExt;
    let (folder, program) = (lab.path("programs"), lab.path("programs/mmdebstrap"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&program, "#!/bin/sh\ntouch \"$TMPDIR/half\"\nsetsid sleep 6789 &\nwait\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

fn half_made(lab: &Lab) -> bool {
    let guests = std::fs::read_dir(lab.path("cache/pickfs/guests")).into_iter().flatten().flatten();
    guests.map(|entry| entry.path()).any(|path| path.join("half").exists())
}

/// Ctrl-C ends the making of a guest, by a run and by itself, with all that was started for it and
/// half made.
#[test]
fn a_guest_that_is_being_made_is_given_up_at_once() {
    if not_run(no_guests()) {
        return;
    }
    for words in [&["run", "plan.toml", "--journal", "journal.jsonl"][..], &["guest", "build", "plan.toml"]] {
        let lab = Lab::new();
        lab.write_plan(&plan(&[("never", "true")], ""));
        let mut command = lab.pickfs();
        command.args(words).env("PATH", programs_that_never_end(&lab)).env("XDG_CACHE_HOME", lab.path("cache"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        while !half_made(&lab) {
            assert_eq!(child.try_wait().unwrap(), None, "{words:?} ended by itself");
            std::thread::sleep(Duration::from_millis(20));
        }
        kill(child.id() as i32, Signal::INT).unwrap();
        let said = Said::of(child.wait_with_output().unwrap()).code(130);
        assert!(said.err.contains("stop"), "{}", said.err);
        lab.assert_nothing_left();
        let kept = std::fs::read_dir(lab.path("cache/pickfs/guests")).unwrap().flatten();
        assert_eq!(kept.map(|entry| entry.file_name()).collect::<Vec<_>>(), ["lock"], "{words:?}");
        let sleeps = pickfs_system::sys::process::all_processes().into_iter().filter(|pid| is_sleeping(*pid));
        assert_eq!(sleeps.count(), 0, "{words:?} left what it had started");
    }
}

/// A build that was killed leaves programs that may still write: the next one ends them, and so
/// does removing guests.
#[test]
fn what_a_killed_build_has_left_running_is_ended() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let mut command = lab.pickfs();
    command.args(["guest", "build", "bookworm"]).env("PATH", programs_that_never_end(&lab));
    command.env("XDG_CACHE_HOME", lab.path("cache"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let orphans = || {
        let all = pickfs_system::sys::process::all_processes().into_iter().filter(|pid| is_sleeping(*pid));
        all.filter(|pid| is_of(*pid, &lab)).collect::<Vec<_>>()
    };
    while !half_made(&lab) || orphans().is_empty() {
        assert_eq!(child.try_wait().unwrap(), None, "the build ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(orphans().len(), 1);
    let mut remove = lab.pickfs();
    remove.args(["guest", "remove", "--all"]).env("XDG_CACHE_HOME", lab.path("cache"));
    Said::of(remove.output().unwrap()).code(0);
    assert!(orphans().is_empty() && !half_made(&lab));
}

/// Its environment names the laboratory.
fn is_of(pid: i32, lab: &Lab) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&environment).contains(&lab.path("cache").display().to_string())
}

fn is_sleeping(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words == b"sleep\x006789\0")
}

/// A small disk of the host, in memory, that is full but for what is given back to it.
struct FullDisk(SmallDisk);

impl FullDisk {
    const MIB: u64 = 80;
    /// Size of the image: room for it is taken page by page.
    const IMAGE_MIB: u64 = 64;

    fn new(lab: &Lab) -> FullDisk {
        FullDisk(SmallDisk::new(lab, &format!("{}m", FullDisk::MIB)))
    }

    fn free_mib(&self) -> u64 {
        let found = rustix::fs::statvfs(&self.0.folder).unwrap();
        (found.f_bavail * found.f_frsize) >> 20
    }

    /// Takes all that is free, whenever there is any, until the run has ended; whether the image
    /// had given any back.
    fn fill_beside(&self, child: &mut Child) -> bool {
        let (mut had_image, mut gave_back, mut files) = (false, false, 0);
        while child.try_wait().unwrap().is_none() {
            let free = self.free_mib();
            had_image |= free <= FullDisk::MIB - FullDisk::IMAGE_MIB;
            gave_back |= had_image && free > FullDisk::MIB - 40;
            if had_image && free > 0 {
                files += 1;
                let file = std::fs::File::create(self.0.folder.join(format!("fill{files}"))).unwrap();
                let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, free << 20);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        gave_back
    }
}

/// The guest discards its disk, the host's is full before it is written to again.
#[test]
fn a_host_whose_disk_is_full_costs_the_cell() {
    let root = rustix::process::geteuid().is_root();
    if not_run(no_guests().or_else(|| (!root).then(|| "only root can mount a small disk".into()))) {
        return;
    }
    let lab = Lab::new();
    let disk = FullDisk::new(&lab);
    let text = plan(&[("full", "dd if=/dev/urandom of=big bs=1M count=40 conv=fsync")], "discard = \"fresh\"\n");
    lab.write_plan(&text.replace("dir = \".\"", "dir = \"small\"").replace("processors = 1", "cache = \"writeback\""));
    let mut child = start(&lab);
    assert!(disk.fill_beside(&mut child), "the image gave nothing back: {:#?}", lab.folded().cells);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    lab.assert_nothing_left();
    let folded = lab.folded();
    let why = failed(find(&folded, "full"));
    println!("{why}");
    assert!(why.contains("I/O error") || why.contains("Input/output error"), "{why}");
}
