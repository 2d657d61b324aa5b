//! Options of file systems on simulated disks: whole grids, effects that are known, and a tuning
//! that was cut.

use crate::common::{Lab, ends, no_guests, not_run};
use pickfs_core::plan::Tunable;
use pickfs_target::stack::fs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files and bytes of the tree behind a table of fixtures/tuning. On a hard disk btrfs takes 0.1 s
/// for the small one, a dozen turns of the platter, so one seed of it is mostly where blocks lie by
/// chance. Of the large one two seeds differ by 2.5 %.
fn tree(table: &str) -> (u32, &'static str) {
    match table {
        "btrfs-hdd-7200" | "xfs-hdd-7200" => (1200, "20MiB"),
        _ => (120, "2MiB"),
    }
}

/// Another build of the agent has other code in the timed parts: by how much its times may be
/// others.
const OTHER_BUILD: f64 = 0.02;

fn tables() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tuning");
    let mut tables: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    tables.retain(|path| path.extension().is_some_and(|end| end == "csv"));
    tables.sort();
    tables
}

fn tunable(fs: &str, name: &str) -> Tunable {
    let driver = fs::find(fs).expect("a driver");
    *driver.tunables.rows().iter().find(|tunable| tunable.name == name).unwrap_or_else(|| panic!("{fs} has no {name}"))
}

/// The target of a row, named by its number.
fn target(fs: &str, options: &[&str], (number, row): (usize, &Vec<String>)) -> String {
    let base = pickfs_core::plan::Target { fs: Some(fs.into()), ..Default::default() };
    let made = options.iter().zip(row).fold(base, |target, (option, value)| {
        let tunable = tunable(fs, option);
        tunable.applied(&target, tunable.value(value).expect("a value"))
    });
    let words = |key: &str, words: &[String]| {
        if words.is_empty() { String::new() } else { format!(", {key} = {}", serde_json::json!(words)) }
    };
    format!("{{ name = \"{number}\", fs = \"{fs}\"{}{} }}", words("mkfs", &made.mkfs), words("mount", &made.mount))
}

/// The time of the whole work, in nanoseconds, by target.
fn times(lab: &Lab) -> BTreeMap<String, u64> {
    let folded = lab.folded();
    let of = |cell: &pickfs_core::journal::FoldedCell| {
        let times = folded.samples(cell).filter(|(_, metric, _)| *metric == "time_ns");
        (cell.target.clone(), times.map(|(_, _, value)| value as u64).sum())
    };
    folded.cells.iter().map(of).collect()
}

/// With PICKFS_WRITE_TABLES=1 the tables are written anew.
#[test]
#[ignore = "simulates hundreds of configurations, half an hour a table: make test-sim"]
fn tables_have_the_times_of_each_configuration() {
    if not_run(no_guests()) {
        return;
    }
    for path in tables() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (fs, disk) = name.split_once('-').expect("a file system and a disk");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').map(String::from).collect::<Vec<_>>());
        let head = lines.next().expect("a head");
        let options: Vec<&str> = head[..head.len() - 1].iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = lines.collect();
        let targets: Vec<String> = rows.iter().enumerate().map(|row| target(fs, &options, row)).collect();
        let lab = Lab::new();
        let (files, bytes) = tree(&name);
        let plan = format!(
            "executor = \"sim\"\nseed = 1\nother_speeds = false\nbacking = {{ memory = \"1GiB\" }}\nmachine = {{ disk = \"{disk}\" }}\n\
             work = [{{ workload = \"tree\", like = \"site\", files = {files}, bytes = \"{bytes}\" }}]\n\
             stop = {{ rounds = 1 }}\ntarget = [{}]\n",
            targets.join(",\n")
        );
        lab.run_plan(&plan).code(0);
        let times = times(&lab);
        let mut written = head.join(",") + "\n";
        for (number, row) in rows.iter().enumerate() {
            let (kept, now) = (row[options.len()].parse::<f64>().unwrap_or(0.0), times[&number.to_string()]);
            written += &format!("{},{now}\n", row[..options.len()].join(","));
            let is_same = (now as f64 / kept - 1.0).abs() <= OTHER_BUILD;
            assert!(is_same || std::env::var_os("PICKFS_WRITE_TABLES").is_some(), "{name}: {row:?} takes {now} ns");
        }
        if std::env::var_os("PICKFS_WRITE_TABLES").is_some() {
            std::fs::write(&path, written).unwrap();
        }
    }
}

/// The answer without where its journals lie.
fn answer(lab: &Lab, words: &[&str]) -> Value {
    let said = lab.run(&[&["tune", "--json"], words].concat()).code(0);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
#[ignore = "simulates some forty cells: make test-sim"]
fn a_simulated_tuning_that_was_cut_measures_nothing_twice_and_gives_the_same_answer() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.path("data")).unwrap();
    (0..20).for_each(|number| std::fs::write(lab.path("data").join(format!("{number}")), [number; 5000]).unwrap());
    let begun = ["--fs", "ext4", "--sim", "hdd-7200", "--size", "256MiB", "--source", "data", "--folder", "tuned"];
    let whole = answer(&lab, &[&begun[..], &["--options", "inode_size"]].concat());
    // What a kill would leave of the first stage, and of the last.
    for name in ["1-alone.jsonl", "5-confirm.jsonl"] {
        let path = lab.path("tuned").join(name);
        let all = std::fs::read_to_string(&path).unwrap();
        let is_end = |line: &&str| line.starts_with("{\"end\"");
        let kept = all.lines().filter(is_end).count() / 2;
        let last = all.lines().enumerate().filter(|(_, line)| is_end(line)).nth(kept).expect("a cell").0;
        let cut: String = all.lines().take(last + 1).map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, &cut).unwrap();
        assert_eq!(answer(&lab, &["--resume", "tuned"]), whole, "{name}");
        let (now, before) = (ends(&std::fs::read(&path).unwrap()), ends(all.as_bytes()));
        let unlike: std::collections::BTreeSet<&String> = now.iter().collect();
        assert_eq!((now.len(), unlike.len()), (before.len(), before.len()), "{name}: each cell once");
        assert!(now.starts_with(&ends(cut.as_bytes())), "{name}: what was measured stays");
    }
}
