//! Two hundred runs killed with SIGKILL at seeded moments, host, agent or both, on each file system and backing that this
//! machine has: after `pickfs clean` nothing is left, no line of the journal is lost, and what lies beside the target is
//! as it was. `make test-all`.

mod common;

use common::{Lab, Loop, not_run, unable, writeback_knobs};
use pickfs::journal::Record;
use pickfs::process::marked_processes;
use pickfs::sys::process::{Signal, kill};
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

const KILLS: usize = 200;
const FILESYSTEMS: [&str; 8] = ["ext4", "xfs", "btrfs", "ext2", "ext3", "f2fs", "nilfs2", "jfs"];
const SEED: u64 = 200;

/// A file system on each backing, and a directory as it is.
fn plans(lab: &Lab) -> Vec<String> {
    let folder = lab.path("measured");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.display();
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

fn hash(path: &std::path::Path) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&std::fs::read(path).unwrap())
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

fn kill_at(lab: &Lab, moment: Duration, victim: usize) {
    let mut command = lab.pickfs();
    command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(moment);
    let id =
        std::fs::read_dir(lab.path("state/pickfs/active")).ok().and_then(|mut all| Some(all.next()?.ok()?.file_name()));
    let agents = id.map(|id| marked_processes(&format!("PICKFS_RUN={}", id.to_string_lossy()))).unwrap_or_default();
    if victim != 1 || agents.is_empty() {
        child.kill().unwrap();
    }
    if victim != 0 {
        agents.into_iter().for_each(|pid| drop(kill(pid, Signal::KILL)));
    }
    child.wait().unwrap();
}

/// How long an undisturbed run of that plan takes.
fn usual_time(number: usize) -> Duration {
    let lab = Lab::new();
    let (plan, begun) = (plans(&lab).swap_remove(number), Instant::now());
    lab.run_plan(&plan).code(0);
    begun.elapsed()
}

#[test]
#[ignore = "kills two hundred runs; `make test-all`"]
fn two_hundred_killed_runs_leave_nothing() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let kills = std::env::var("PICKFS_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let (knobs, canary) = (writeback_knobs(), Loop::new(16 << 20));
    let disk = std::path::Path::new(&canary.device);
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut noise = vec![0; 16 << 20];
    random.fill_bytes(&mut noise);
    std::fs::write(disk, &noise).unwrap();
    let of_disk = hash(disk);
    let (mut begun, mut cut_off, mut kept) = (0, 0, 0);
    let mut usual = Vec::new();
    for number in 0..kills {
        let lab = Lab::new();
        let plans = plans(&lab);
        let plan = &plans[number % plans.len()];
        lab.write_plan(plan);
        let beside = lab.path("measured/beside");
        std::fs::write(&beside, &noise[..1 << 20]).unwrap();
        if usual.len() < plans.len() {
            usual.push(usual_time(number));
        }
        let moment = usual[number % plans.len()].mul_f64((random.next_u64() % 1000) as f64 / 1000.0);
        let context = format!("kill {number}, after {moment:?}, of {}:\n{plan}", ["host", "agent", "both"][number % 3]);
        kill_at(&lab, moment, number % 3);
        let before = lines(&lab);
        let cleaned = lab.run(&["clean"]);
        assert_eq!(cleaned.code, Some(0), "{context}{}{}", cleaned.out, cleaned.err);
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "{context}");
        let names: Vec<_> =
            std::fs::read_dir(lab.path("measured")).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["beside"], "{context}");
        assert_eq!((hash(&beside), hash(disk)), (xxhash_rust::xxh3::xxh3_64(&noise[..1 << 20]), of_disk), "{context}");
        if number % 10 == 9 {
            println!("{} kills: {begun} journals were begun, {cut_off} cells cut off, {kept} lines kept", number + 1);
        }
        if before.is_empty() {
            continue;
        }
        begun += 1;
        cut_off += usize::from(ends(&before).is_empty());
        let resumed = lab.run(&["run", "--resume", "journal.jsonl"]);
        assert!(matches!(resumed.code, Some(0 | 1)), "{context}{}{}", resumed.out, resumed.err);
        let after = lines(&lab);
        assert!(after.starts_with(&before), "a line of the journal is lost: {context}");
        kept += before.len();
        let ends = ends(&after);
        assert_eq!((ends.len(), ends.iter().collect::<BTreeSet<_>>().len()), (1, 1), "{context}{ends:?}");
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "{context}, resumed");
    }
    assert_eq!(writeback_knobs(), knobs);
    println!(
        "{kills} kills over {} plans: {begun} journals were begun, {cut_off} cells cut off, {kept} lines kept",
        usual.len()
    );
}
