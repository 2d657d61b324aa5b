//! The page of a report in real Chromium: nothing on its console, no request, no way that the
//! keyboard cannot go, contrast as axe-core asks for, readable without script, on a phone, on paper
//! and in the dark. What it looked like is kept below `target/`.

use crate::common::{Lab, no_browser, node, not_run};
use base64::Engine as _;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use pickfs_core::journal::*;
use pickfs_core::plan::{Plan, Target, Work};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const TARGETS: [(&str, f64); 5] =
    [("ext4", 1.0), ("xfs", 0.93), ("btrfs", 1.3), ("btrfs zstd:1", 1.02), ("</script><b>&\"'\u{2028}\u{1b}[31m", 1.6)];
const PHASES: [(&str, f64); 3] = [("write", 1.4e9), ("tar-read", 0.6e9), ("<img src=x onerror=alert(1)>", 0.2e9)];
const WORKS: [&str; 2] = ["tree", "mail & more"];
const ROUNDS: u32 = 9;

#[test]
fn a_page_is_as_it_should_be_in_chromium() {
    if not_run(no_browser()) {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.journal(), journal()).unwrap();
    lab.run(&["report", "journal.jsonl", "--format", "html", "--output", "page.html"]).code(0);
    let kept = kept();
    std::fs::copy(lab.path("page.html"), kept.join("page.html")).unwrap();
    let out = node("look.mjs", &[kept.join("page.html"), kept.clone()]);
    let found: BTreeMap<String, serde_json::Value> = serde_json::from_str(&out).expect("what was found");
    println!("pictures in {}; ready after (ms): {}", kept.display(), found["ready_ms"]);
    for (what, complaints) in found.iter().filter(|(what, _)| *what != "ready_ms") {
        assert_eq!(complaints.as_array().map(Vec::len), Some(0), "{what}: {complaints:#}");
    }
}

/// The answer for all works is on the first screen: every target, a column for all work and one for
/// each.
#[test]
fn twenty_targets_and_three_works_have_an_overview() {
    let lab = Lab::new();
    std::fs::write(lab.journal(), many()).unwrap();
    lab.run(&["report", "journal.jsonl", "--format", "html", "--output", "page.html"]).code(0);
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    std::fs::copy(lab.path("page.html"), kept().join("many.html")).unwrap();
    let overview = page.split_once("class=\"matrix\"").unwrap().1.split_once("</table>").unwrap().0;
    assert_eq!(overview.matches("<tr data-t=").count(), 20);
    let heads = overview.split_once("</thead>").unwrap().0;
    for name in ["All work", "Tree", "Mail", "Web", "tree, space", "Web, CPU"] {
        assert!(heads.to_lowercase().contains(&name.to_lowercase()), "no {name} in {heads}");
    }
    let before = page.split_once("class=\"matrix\"").unwrap().0;
    assert!(!before.contains("<figure") && !before.contains("class=\"forest\""), "charts before the overview");
}

#[test]
fn the_same_journal_gives_the_same_bytes() {
    let lab = Lab::new();
    std::fs::write(lab.journal(), journal()).unwrap();
    let pages = ["a.html", "b.html"].map(|name| {
        lab.run(&["report", "journal.jsonl", "--format", "html", "--output", name]).code(0);
        std::fs::read(lab.path(name)).unwrap()
    });
    assert!(pages[0] == pages[1]);
    let said = ["one", "two"].map(|folder| lab.run(&["report", "journal.jsonl", "--charts", folder]).code(0).out);
    assert!(said[0].contains("pictures in one"), "{}", said[0]);
    let pictures = |folder: &str| {
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(lab.path(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found.into_iter().map(|path| (path.file_name().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap()))
    };
    assert!(pictures("one").eq(pictures("two")));
    let names: Vec<String> = pictures("one").map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    for wanted in ["ratios-tree.svg", "rounds-tree-write.svg", "latency-tree-write.svg", "trade-offs-space.svg"] {
        assert!(names.iter().any(|name| name == wanted), "no {wanted} in {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("device-tree-write")), "{names:?}");
    for (name, picture) in pictures("one") {
        assert!(picture.starts_with("<svg") && !picture.contains("<img") && !picture.contains("NaN"), "{name:?}");
    }
}

/// For docs/page: to be looked at. The run is the one of README.md, and a made-up one of 20 targets
/// and 3 works.
#[test]
#[ignore = "makes the pictures of the documentation"]
fn screenshots() {
    if not_run(no_browser()) {
        return;
    }
    let folder = std::env::var_os("PICKFS_SCREENSHOTS").map_or_else(kept, PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let lab = Lab::new();
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("fixtures/journals/default-run.jsonl");
    std::fs::copy(fixture, lab.path("run.jsonl")).unwrap();
    std::fs::write(lab.path("many.jsonl"), many()).unwrap();
    for name in ["run", "many"] {
        lab.run(&["report", &format!("{name}.jsonl"), "--format", "html", "--output", &format!("{name}.html")]).code(0);
        node("screenshots.mjs", &[lab.path(&format!("{name}.html")), folder.clone(), PathBuf::from(name)]);
    }
    println!("pictures in {}", folder.display());
}

#[test]
fn charts_are_painted_where_there_is_a_painter() {
    let painter =
        pickfs_system::need::find_program("rsvg-convert").is_none().then(|| "there is no rsvg-convert".to_string());
    if not_run(painter) {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.journal(), journal()).unwrap();
    lab.run(&["report", "journal.jsonl", "--charts", "charts", "--png"]).code(0);
    let (mut drawn, mut painted) = (0, 0);
    for entry in std::fs::read_dir(lab.path("charts")).unwrap() {
        let path = entry.unwrap().path();
        drawn += usize::from(path.extension().is_some_and(|end| end == "svg"));
        if path.extension().is_some_and(|end| end == "png") {
            let png = std::fs::read(&path).unwrap();
            assert!(png.starts_with(b"\x89PNG") && png.len() > 3000, "{}: {} bytes", path.display(), png.len());
            painted += 1;
        }
    }
    assert!(drawn > 10 && drawn == painted, "{drawn} drawn, {painted} painted");
}

fn kept() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    std::fs::create_dir_all(&folder).expect("a folder for pictures");
    folder
}

/// A made-up run of 20 targets and 3 works.
fn many() -> Vec<u8> {
    let names: Vec<String> = (0..20).map(|at| format!("btrfs variant {at:02}")).collect();
    let mut plan = Plan { title: "Many".into(), reference: names[0].clone(), ..Plan::default() };
    let works = ["tree", "mail", "web"];
    plan.targets = names.iter().map(|name| Target { name: name.clone(), ..Target::default() }).collect();
    plan.works = works.iter().map(|name| Work { name: name.to_string(), ..Work::default() }).collect();
    plan.stop.rounds = Some(8);
    let mut maker = Maker { out: Vec::new(), random: Xoshiro256PlusPlus::seed_from_u64(7) };
    maker.put(Record::Run(Box::new(Run { schema: SCHEMA, id: "many".into(), plan, ..Run::default() })));
    for round in 1..=8 {
        for work in works {
            names.iter().enumerate().for_each(|(at, name)| maker.cell(name, work, round, 1.0 + at as f64 / 20.0));
        }
    }
    maker.out
}

/// A made-up run with all that a page can show: two works, latencies, courses of the device,
/// doubts, a target that fails and one that is skipped, a reference's second copy, and names that
/// would be markup if they could.
fn journal() -> Vec<u8> {
    let mut maker = Maker { out: Vec::new(), random: Xoshiro256PlusPlus::seed_from_u64(5) };
    maker.put(Record::Run(Box::new(Run { schema: SCHEMA, id: "made-up".into(), plan: plan(), ..Run::default() })));
    maker.put(Record::Provenance(facts("", &[("cpu", "made up"), ("kernel", "6.1"), ("<i>", "<b>")])));
    for round in 1..=ROUNDS {
        for work in WORKS {
            for (name, factor) in TARGETS.into_iter().chain([("ext4 (again)", 1.0)]) {
                maker.cell(name, work, round, factor);
            }
            let why = Outcome::Skipped(vec!["the kernel has no zfs".into()]);
            maker.ended("zfs", work, round, why);
        }
    }
    maker.out
}

fn plan() -> Plan {
    let names = TARGETS.into_iter().map(|(name, _)| name).chain(["zfs", "ext4 (again)"]);
    let target = |name: &str| Target { name: name.into(), duplicate: name == "ext4 (again)", ..Target::default() };
    let works = WORKS.into_iter().map(|name| Work { name: name.into(), ..Work::default() });
    let title = "A made-up run <of> everything that a page can show".into();
    let mut plan = Plan { title, targets: names.map(target).collect(), works: works.collect(), ..Plan::default() };
    plan.reference = "ext4".into();
    plan.stop.rounds = Some(ROUNDS);
    plan.stop.threshold = 0.03;
    plan
}

fn facts(cell: &str, facts: &[(&str, &str)]) -> Provenance {
    let facts = facts.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Provenance { cell: cell.into(), facts, ..Provenance::default() }
}

struct Maker {
    out: Vec<u8>,
    random: Xoshiro256PlusPlus,
}

impl Maker {
    fn put(&mut self, record: Record) {
        serde_json::to_writer(&mut self.out, &record).unwrap();
        self.out.push(b'\n');
    }

    /// About one, evenly between 0.98 and 1.02.
    fn noise(&mut self) -> f64 {
        0.98 + 0.04 * (self.random.next_u64() as f64 / u64::MAX as f64)
    }

    fn begin(&mut self, target: &str, work: &str, round: u32) -> String {
        let cell = format!("{target}-{work}-{round}");
        let (target, work) = (target.to_string(), work.to_string());
        self.put(Record::Begin(Begin { cell: cell.clone(), round, target, work, at: String::new() }));
        cell
    }

    fn ended(&mut self, target: &str, work: &str, round: u32, outcome: Outcome) {
        let cell = self.begin(target, work, round);
        self.put(Record::End(End { cell, outcome, at: String::new() }));
    }

    fn cell(&mut self, target: &str, work: &str, round: u32, factor: f64) {
        if target == "btrfs" && round == 4 {
            return self.ended(target, work, round, Outcome::Failed("no space left on <device>".into()));
        }
        let cell = self.begin(target, work, round);
        self.put(Record::Provenance(facts(&cell, &[("kernel", "6.1"), ("mount", &format!("{target} rw"))])));
        for (phase, ns) in PHASES {
            self.phase(&cell, phase, ns * factor);
        }
        if round == 2 {
            let (phase, why) = ("tar-read".into(), "only 12 % of the bytes were read".into());
            self.put(Record::Flag(Flag { cell: cell.clone(), phase, flag: "not-cold".into(), why }));
        }
        self.put(Record::Ledger(Ledger {
            cell: cell.clone(),
            setup_ns: 900_000_000,
            phases_ns: 8_000_000_000,
            checks_ns: 700_000_000,
            ..Ledger::default()
        }));
        self.put(Record::End(End { cell, outcome: Outcome::Done, at: String::new() }));
    }

    fn phase(&mut self, cell: &str, phase: &str, ns: f64) {
        let time = ns * self.noise();
        let values = [
            ("time_ns", time),
            ("work_bytes", 256e6),
            ("cpu_system_wide_ns", time * 0.7),
            ("device_write_bytes", 2.4e8 * self.noise()),
            ("space_grown_bytes", ns / 5.0),
        ];
        for (metric, value) in values {
            let (cell, phase, metric) = (cell.to_string(), phase.to_string(), metric.to_string());
            self.put(Record::Sample(Sample { cell, phase, metric, value: value.round() }));
        }
        let encoded = self.latencies(ns / 1e5);
        let (operation, phase) = ("latency".to_string(), phase.to_string());
        self.put(Record::Histogram(Histogram { cell: cell.into(), phase: phase.clone(), operation, encoded }));
        let until_ns: Vec<u64> = (1..=12).map(|step| step * (time / 12.0) as u64).collect();
        let write_bytes = until_ns.iter().map(|_| (2e7 * self.noise()) as u64).collect();
        let read_bytes = vec![0; 12];
        self.put(Record::DeviceCourse(DeviceCourse { cell: cell.into(), phase, until_ns, read_bytes, write_bytes }));
    }

    fn latencies(&mut self, typical_ns: f64) -> String {
        let mut histogram = Hdr::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for _ in 0..500 {
            let slow = if self.random.next_u64() % 50 == 0 { 30.0 } else { 1.0 };
            histogram.record((typical_ns * slow * self.noise()) as u64).unwrap();
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }
}
