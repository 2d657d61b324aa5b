//! Runs killed with SIGKILL at seeded moments: two hundred on this machine, host, agent or both, on
//! each file system and backing that it has, and others with guests, host, QEMU or the agent
//! inside, on each layer. After `pickfs clean` nothing is left, no line of the journal is lost, and
//! what lies next to the target has not changed. `make test-all`.

use crate::common::{Lab, Loop, no_guests, not_run, unable, writeback_knobs};
use pickfs_core::journal::{Outcome, Record};
use pickfs_system::process::marked_processes;
use pickfs_system::sys::process::{Signal, Stat, kill};
use pickfs_target::stack::layer::{self, Layer};
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

const KILLS: usize = 200;
const GUEST_KILLS: usize = 24;
const FILESYSTEMS: [&str; 8] = ["ext4", "xfs", "btrfs", "ext2", "ext3", "f2fs", "nilfs2", "jfs"];
const SEED: u64 = 200;
/// Lines of the journal of a run that had its turn: the first is written before it waits for
/// others.
const BEGUN: usize = 2;

/// Where images lie, and files that are not the run's.
fn folder(lab: &Lab) -> String {
    let folder = lab.path("measured");
    std::fs::create_dir_all(&folder).unwrap();
    folder.display().to_string()
}

/// A file system on each backing, and an existing directory.
fn plans(lab: &Lab) -> Vec<String> {
    let folder = folder(lab);
    let rest = "[[work]]\nworkload = \"meta.ok\"\n[stop]\nrounds = 1\n";
    let backings = [
        "backing = { memory = \"320MiB\" }".to_string(),
        format!("backing = {{ image = {{ dir = \"{folder}\", size = \"320MiB\" }} }}"),
    ];
    let known = FILESYSTEMS.into_iter().filter(|fs| unable(&[fs]).is_none());
    let made = known.enumerate().map(|(number, fs)| {
        format!("duplicate = false\n{}\n[[target]]\nfs = \"{fs}\"\n{rest}", backings[number % backings.len()])
    });
    made.chain([format!("duplicate = false\nbacking = {{ directory = \"{folder}\" }}\n{rest}")]).collect()
}

/// Whole lines of the journal.
fn lines(lab: &Lab) -> Vec<String> {
    let text = std::fs::read_to_string(lab.journal()).unwrap_or_default();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(String::from).collect()
}

fn ends(lines: &[String]) -> Vec<String> {
    let records = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
    records.filter_map(|record| if let Record::End(end) = record { Some(end.cell) } else { None }).collect()
}

/// Its cell did not end well.
fn is_cut_off(lines: &[String]) -> bool {
    let records = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
    !records.into_iter().any(|record| matches!(record, Record::End(end) if end.outcome == Outcome::Done))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Host,
    /// With all that it has started.
    Agent,
    Both,
    Qemu,
    /// The agent in the guest, which the work kills.
    Inside,
}

/// When a run is killed: this long after its journal has this many lines. Images take most of the
/// time, and lines lie all over a run.
#[derive(Clone, Copy, Debug)]
struct Moment {
    lines: usize,
    then: Duration,
}

/// Starts the plan; returns when its journal has `lines` lines, or the run has ended.
fn start(lab: &Lab, lines: usize) -> Child {
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while self::lines(lab).len() < lines && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Starts the plan and kills at that moment; a run whose host is left alive goes on to its end.
fn kill_at(lab: &Lab, moment: Moment, victim: Victim) {
    let mut child = start(lab, moment.lines);
    std::thread::sleep(moment.then);
    let id =
        std::fs::read_dir(lab.path("state/pickfs/active")).ok().and_then(|mut all| Some(all.next()?.ok()?.file_name()));
    let marked = id.map(|id| marked_processes(&format!("PICKFS_RUN={}", id.to_string_lossy()))).unwrap_or_default();
    let is_qemu = |pid: &i32| Stat::of(*pid).is_some_and(|stat| stat.name.starts_with("qemu"));
    let (host, others) = match victim {
        Victim::Host => (true, Vec::new()),
        Victim::Agent => (marked.is_empty(), marked),
        Victim::Both => (true, marked),
        Victim::Qemu => (false, marked.into_iter().filter(is_qemu).collect()),
        Victim::Inside => (false, Vec::new()),
    };
    if host {
        child.kill().unwrap();
    }
    others.into_iter().for_each(|pid| drop(kill(pid, Signal::KILL)));
    child.wait().unwrap();
}

/// How long an undisturbed run of that plan takes once it has begun, and its lines.
fn usual(plan: impl Fn(&Lab) -> String) -> (Duration, usize) {
    let lab = Lab::new();
    lab.write_plan(&plan(&lab));
    let (mut child, begun) = (start(&lab, BEGUN), Instant::now());
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}: {:#?}", lab.folded().cells);
    (begun.elapsed(), lines(&lab).len())
}

/// What runs must leave alone: a disk, a file next to their images, and the kernel's settings.
struct Canary {
    disk: Loop,
    noise: Vec<u8>,
    knobs: Vec<String>,
}

impl Canary {
    fn new(random: &mut impl Rng) -> Canary {
        let (knobs, disk, mut noise) = (writeback_knobs(), Loop::new(16 << 20), vec![0; 16 << 20]);
        random.fill_bytes(&mut noise);
        std::fs::write(&disk.device, &noise).unwrap();
        Canary { disk, noise, knobs }
    }

    fn lay(&self, lab: &Lab) {
        std::fs::write(Path::new(&folder(lab)).join("canary"), &self.noise[..1 << 20]).unwrap();
    }

    fn assert_untouched(&self, lab: &Lab, context: &str) {
        let names: Vec<_> = std::fs::read_dir(folder(lab)).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["canary"], "{context}");
        let file = std::fs::read(Path::new(&folder(lab)).join("canary")).unwrap();
        assert_eq!(xxh3_64(&file), xxh3_64(&self.noise[..1 << 20]), "{context}");
        assert_eq!(xxh3_64(&std::fs::read(&self.disk.device).unwrap()), xxh3_64(&self.noise), "{context}");
    }
}

#[derive(Default)]
struct Totals {
    kills: usize,
    begun: usize,
    cut_off: usize,
    kept: usize,
}

impl Totals {
    /// Cleans and takes up what was killed, and holds it to what runs promise.
    fn hold(&mut self, lab: &Lab, canary: &Canary, context: &str) {
        let before = lines(lab);
        let cleaned = lab.run(&["clean"]);
        assert_eq!(cleaned.code, Some(0), "{context}{}{}", cleaned.out, cleaned.err);
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "{context}");
        canary.assert_untouched(lab, context);
        self.kills += 1;
        if !before.is_empty() {
            self.begun += 1;
            self.cut_off += usize::from(is_cut_off(&before));
            let resumed = lab.run(&["run", "--resume", "journal.jsonl"]);
            assert!(matches!(resumed.code, Some(0 | 1)), "{context}{}{}", resumed.out, resumed.err);
            let after = lines(lab);
            assert!(after.starts_with(&before), "a line of the journal is lost: {context}");
            self.kept += before.len();
            let ends = ends(&after);
            assert_eq!((ends.len(), ends.iter().collect::<BTreeSet<_>>().len()), (1, 1), "{context}{ends:?}");
            assert_eq!(lab.leftovers(), Vec::<String>::new(), "{context}, resumed");
            canary.assert_untouched(lab, context);
        }
        if self.kills % 10 == 0 {
            self.show();
        }
    }

    fn show(&self) {
        let Totals { kills, begun, cut_off, kept } = self;
        println!("{kills} kills: {begun} journals were begun, {cut_off} cells cut off, {kept} lines kept");
    }
}

fn wanted(kills: usize) -> usize {
    std::env::var("PICKFS_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(kills)
}

#[test]
#[ignore = "kills two hundred runs; `make test-all`"]
fn two_hundred_killed_runs_leave_nothing() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(SEED);
    let (canary, mut totals, mut usual) = (Canary::new(&mut random), Totals::default(), Vec::new());
    for number in 0..wanted(KILLS) {
        let lab = Lab::new();
        let plans = plans(&lab);
        let at = number % plans.len();
        lab.write_plan(&plans[at]);
        canary.lay(&lab);
        if usual.len() < plans.len() {
            usual.push(self::usual(|lab| self::plans(lab).swap_remove(at)).1);
        }
        let (lines, then) = (random.next_u64() % usual[at] as u64, random.next_u64() % 100);
        let moment = Moment { lines: lines as usize, then: Duration::from_millis(then) };
        let victim = [Victim::Host, Victim::Agent, Victim::Both][number % 3];
        kill_at(&lab, moment, victim);
        totals.hold(&lab, &canary, &format!("kill {number}, {moment:?}, of {victim:?}:\n{}", plans[at]));
    }
    assert_eq!(writeback_knobs(), canary.knobs);
    totals.show();
}

/// A guest with the programs of all layers, so that no run makes one.
fn guest() -> PathBuf {
    let target = |layer: &&Layer| {
        let (name, disks) = (layer.name, disks(Some(layer)));
        let backing = format!("backing = {{ image = {{ dir = '.', size = '64MiB', disks = {disks} }} }}");
        format!("[[target]]\nname = '{name}'\nfs = 'ext4'\nlayers = ['{name}']\n{backing}\n")
    };
    let targets: String = layer::ALL.iter().map(target).collect();
    Lab::new().guest_of(&format!("executor = 'vm'\nduplicate = false\n{targets}[[work]]\nworkload = 'meta.ok'\n"))
}

fn disks(layer: Option<&Layer>) -> u32 {
    if layer.is_some_and(|layer| layer.joins) { 2 } else { 1 }
}

/// A layer, or none, in a guest, with as much space as a cache needs; the work kills its agent
/// after `killed_after` seconds, if given.
fn plan_of_guest(lab: &Lab, guest: &Path, number: usize, killed_after: Option<u64>) -> String {
    let layer = layer::ALL.get(number % (layer::ALL.len() + 1)).copied();
    let layers = layer.map_or(String::new(), |layer| format!("'{}'", layer.name));
    let disks = disks(layer);
    let work = match killed_after {
        Some(seconds) => format!(
            "workload = 'command'\ncommand = ['sh', '-c', 'sleep {seconds}; kill -9 $PPID; sleep 60']\nwrites = false\n"
        ),
        None => "workload = 'meta.ok'\n".to_string(),
    };
    format!(
        "executor = 'vm'\nduplicate = false\nmachine = {{ processors = 1, kernel = '{}' }}\n\
         backing = {{ image = {{ dir = '{}', size = '320MiB', disks = {disks} }} }}\n\
         [[target]]\nfs = 'ext4'\nlayers = [{layers}]\n[[work]]\n{work}[stop]\nrounds = 1\n",
        guest.display(),
        folder(lab)
    )
}

#[test]
#[ignore = "kills two dozen runs with guests; `make test-all`"]
fn killed_runs_with_guests_leave_nothing() {
    if not_run(no_guests().or_else(|| unable(&[]))) {
        return;
    }
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(SEED);
    let (canary, mut totals) = (Canary::new(&mut random), Totals::default());
    let guest = guest();
    let (usual, _) = usual(|lab| plan_of_guest(lab, &guest, 0, None));
    for number in 0..wanted(GUEST_KILLS) {
        let lab = Lab::new();
        let victim = [Victim::Host, Victim::Qemu, Victim::Inside, Victim::Both][number % 4];
        let plan = plan_of_guest(&lab, &guest, number, (victim == Victim::Inside).then(|| random.next_u64() % 4));
        lab.write_plan(&plan);
        canary.lay(&lab);
        // A guest that boots says nothing for most of the time.
        let moment = Moment { lines: BEGUN, then: usual.mul_f64((random.next_u64() % 1000) as f64 / 1000.0) };
        kill_at(&lab, moment, victim);
        totals.hold(&lab, &canary, &format!("kill {number}, {moment:?}, of {victim:?}:\n{plan}"));
    }
    assert_eq!(writeback_knobs(), canary.knobs);
    totals.show();
}
