//! The atlas: what comes with pickfs of simulated runs is a store that answers, and its figures can
//! be had again.

use crate::common::{Lab, no_guests, not_run, run};
use pickfs_core::journal::{Folded, Outcome};
use pickfs_host::wording::digest::{Digest, digests};
use pickfs_system::visible::visible;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn atlas() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("atlas")
}

/// A run of the atlas, unpacked.
fn unpack(lab: &Lab, name: &str) {
    std::fs::create_dir_all(lab.path("runs")).unwrap();
    let journal =
        run(&["xz", "--decompress", "--stdout", &atlas().join(format!("{name}.jsonl.xz")).display().to_string()]);
    std::fs::write(lab.path(&format!("runs/{name}.jsonl")), journal + "\n").unwrap();
}

fn names() -> Vec<String> {
    let files = std::fs::read_dir(atlas()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.filter_map(|name| name.strip_suffix(".jsonl.xz").map(String::from)).collect();
    names.sort();
    names
}

/// Of "maildir-hdd-7200-bookworm".
fn work_and_disk(name: &str) -> (&str, &str) {
    let (rest, _kernel) = name.rsplit_once('-').unwrap();
    let of_disk = |disk: &str| Some((rest.strip_suffix(disk)?.strip_suffix('-')?, &rest[rest.len() - disk.len()..]));
    pickfs_disks::ALL.iter().find_map(|disk| of_disk(disk.name)).expect(name)
}

#[test]
fn the_atlas_answers() {
    let lab = Lab::new();
    let names = names();
    names.iter().for_each(|name| unpack(&lab, name));
    lab.run(&["push", "store", "runs"]).code(0);
    let bytes: u64 = std::fs::read_dir(atlas()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 20 << 20, "{bytes} bytes");
    for name in &names {
        let (work, disk) = work_and_disk(name);
        let said = lab.run(&["ask", "store", "--disk", disk, "--like", work, "-n", "99"]).code(0).out;
        assert!(said.contains(&format!("simulated {disk}")), "{name}: {said}");
        assert!(said.contains("pickfs run --trust --again store/journals/"), "{name}: {said}");
    }
    assert!(lab.run(&["ask", "store", "--like", "nothing-like-it"]).code(1).out.contains("nothing in store fits"));
}

/// What `pickfs for` says of the atlas is made of its journals, a line each: `make atlas-digest`.
#[test]
fn the_digest_is_what_the_journals_say() {
    let lab = Lab::new();
    let digests_of = |name: &String| {
        unpack(&lab, name);
        let model = pickfs_host::analysis::model(&lab.folded_at(&format!("runs/{name}.jsonl"))).expect("a report");
        let digests = digests(&model);
        // A report's first sentence, whatever decides in it.
        assert_eq!(
            digests.iter().map(|one| &one.verdict).collect::<Vec<_>>(),
            [&visible(&model.headlines()[0])],
            "{name}"
        );
        digests
    };
    let mut all: Vec<Digest> = names().iter().flat_map(digests_of).collect();
    all.sort();
    let line = |digest: &Digest| serde_json::to_string(digest).unwrap() + "\n";
    let wanted: String = all.iter().map(line).collect();
    let file = atlas().join("../crates/pickfs/src/cli/purposes/atlas.jsonl");
    if std::env::var_os("PICKFS_WRITE_DIGEST").is_some() {
        std::fs::write(&file, &wanted).unwrap();
    }
    assert!(all.len() >= 12 && all.iter().all(|digest| digest.rounds >= 3 && !digest.verdict.is_empty()), "{all:?}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), wanted, "`make atlas-digest` brings it up to date");
}

/// By its own facts, where that version wrote them, and in atlas/program.
#[test]
fn each_run_has_the_program_that_made_it() {
    let lab = Lab::new();
    let programs = std::fs::read_to_string(atlas().join("program")).unwrap();
    let is_of = |word: &str, name: &str| match word.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => word == name,
    };
    for name in names() {
        let line = programs.lines().find(|line| line.split(' ').skip(1).any(|word| is_of(word, &name))).expect(&name);
        let sum = line.split(' ').next().unwrap();
        assert!(sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
        unpack(&lab, &name);
        let host = lab.folded_at(&format!("runs/{name}.jsonl")).host;
        assert!(host.get("simulated by").is_none_or(|fact| fact.contains(sum)), "{name}: {host:?}");
    }
}

/// Times of the first round, by target and phase; digests of disks too.
fn first_round(folded: &Folded) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for cell in folded.cells.iter().filter(|cell| cell.round == 1) {
        assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
        for (phase, metric, value) in folded.samples(cell).filter(|(_, metric, _)| *metric == "time_ns") {
            found.insert(format!("{} {phase} {metric}", cell.target), value.to_string());
        }
        found.insert(format!("{} disk", cell.target), cell.provenance.facts["simulated disk's content"].clone());
    }
    found
}

/// Bit by bit where the program is the one that made the atlas (its SHA-256 is in atlas/program);
/// `PICKFS_ATLAS_PROGRAM` names it. Another program has other instructions: its times may differ by
/// a percent, and its disks not at all.
#[test]
#[ignore = "five cells in a guest: make test-sim"]
fn a_shipped_round_is_the_same_again() {
    if not_run(no_guests()) {
        return;
    }
    const NAME: &str = "maildir-nvme-bookworm";
    let lab = Lab::new();
    unpack(&lab, NAME);
    let shipped = lab.folded_at(&format!("runs/{NAME}.jsonl"));
    let plan = run(&[&atlas().join("../packaging/atlas").display().to_string(), "--plan", NAME]);
    lab.write_plan(&plan.replace("rounds = 5", "rounds = 1"));
    let given = std::env::var_os("PICKFS_ATLAS_PROGRAM").map(PathBuf::from);
    if given.is_some() {
        // It knows no more than one.
        lab.write_plan(&plan.replace("rounds = 5", "rounds = 1").replace(", processors = 1", ""));
    }
    let program = given.unwrap_or(PathBuf::from(env!("CARGO_BIN_EXE_pickfs")));
    let mut command = Command::new(&program);
    let status =
        command.args(["run", "plan.toml", "--journal", "journal.jsonl"]).current_dir(lab.path("")).stdin(Stdio::null());
    assert!(status.status().unwrap().success());
    let (made, again) = (first_round(&shipped), first_round(&lab.folded()));
    assert_eq!(made.keys().collect::<Vec<_>>(), again.keys().collect::<Vec<_>>());
    assert!(made.len() >= 5 * 4, "{made:?}");
    let sum = run(&["sha256sum", &program.display().to_string()]);
    let of_atlas = std::fs::read_to_string(atlas().join("program")).unwrap();
    if of_atlas.lines().any(|line| line.starts_with(&sum[..64]) && line.ends_with("maildir-* site-*")) {
        assert_eq!(made, again);
        println!("{} figures, the same to the last digit", made.len());
        return;
    }
    println!("another program than that of the atlas: times may differ by 1 %");
    for (what, value) in made {
        match (value.parse::<f64>(), again[&what].parse::<f64>()) {
            (Ok(one), Ok(other)) => assert!((one / other - 1.0).abs() < 0.01, "{what}: {one} then, {other} now"),
            _ => assert_eq!(value, again[&what], "{what}"),
        }
    }
}
