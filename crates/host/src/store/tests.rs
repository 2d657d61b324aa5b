//! Made-up journals into stores: strangers, liars, many writers, and an index that is always that
//! of the folder.

use super::admit::Refused;
use super::*;
use pickfs_core::journal::{Begin, End, Outcome, Provenance, Record, Run, SCHEMA, Sample};
use pickfs_core::plan::{Plan, Stop, Target, Work};
use std::collections::BTreeMap;

/// The journal of a made-up run: two targets, six rounds, the second target `factor` times as slow.
fn journal(id: u32, factor: f64) -> Vec<u8> {
    let target = |name: &str| Target { name: name.into(), ..Target::default() };
    let plan = Plan {
        reference: "ext4".into(),
        targets: ["ext4", "xfs"].map(target).into(),
        works: vec![Work { name: "tree".into(), ..Work::default() }],
        stop: Stop { rounds: Some(6), ..Stop::default() },
        ..Plan::default()
    };
    let started = format!("2026-01-{:02}T00:00:{:02}Z", 1 + id / 60 % 28, id % 60);
    let run = Run { schema: SCHEMA, id: format!("r{id}"), started, plan, ..Run::default() };
    let facts = BTreeMap::from([("host name".to_string(), format!("rack-{}", id % 3))]);
    let mut records = vec![Record::Run(Box::new(run)), provenance(facts)];
    for round in 1..=6 {
        for (name, factor) in [("ext4", 1.0), ("xfs", factor)] {
            records.extend(cell(name, round, 1e9 * factor + f64::from(round * 1_000_000)));
        }
    }
    lines(&records)
}

fn provenance(facts: BTreeMap<String, String>) -> Record {
    Record::Provenance(Provenance { facts, ..Provenance::default() })
}

fn cell(target: &str, round: u32, value: f64) -> [Record; 3] {
    let (cell, at, work) = (format!("{target}-{round}"), String::new(), "tree".to_string());
    let (phase, metric) = ("write".to_string(), "time_ns".to_string());
    [
        Record::Begin(Begin { cell: cell.clone(), round, target: target.into(), work, at: at.clone() }),
        Record::Sample(Sample { cell: cell.clone(), phase, metric, value }),
        Record::End(End { cell, outcome: Outcome::Done, at }),
    ]
}

fn lines(records: &[Record]) -> Vec<u8> {
    let lines = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n");
    lines.collect::<String>().into_bytes()
}

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new() -> Lab {
        Lab { folder: tempfile::tempdir().unwrap() }
    }

    fn store(&self) -> Store {
        Store::open_or_make(self.folder.path()).unwrap()
    }

    /// Paths of all files, but for the index.
    fn files(&self) -> Vec<PathBuf> {
        let all = walkdir::WalkDir::new(self.folder.path()).sort_by_file_name().into_iter().flatten();
        let files = all.filter(|entry| entry.file_type().is_file()).map(|entry| entry.into_path());
        files.filter(|path| !path.display().to_string().contains(INDEX)).collect()
    }
}

fn push(store: &Store, text: &[u8]) -> PushResult {
    store.take(&mut &text[..], None, Limits::default()).unwrap()
}

/// All of the index, in its own order.
fn dump(store: &Store) -> Vec<Vec<String>> {
    let tables = ["SELECT * FROM journal ORDER BY hash", "SELECT * FROM result ORDER BY hash, number"];
    tables.into_iter().flat_map(|sql| store.query(sql).unwrap().rows).collect()
}

#[test]
fn a_journal_is_kept_once_under_its_hash_and_never_written_to_again() {
    let lab = Lab::new();
    let (store, text) = (lab.store(), journal(1, 1.2));
    let first = push(&store, &text);
    assert!(first.is_new && !push(&store, &text).is_new);
    let place = store.journal(&first.hash);
    assert_eq!(fs::read(&place).unwrap(), text);
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o444);
    assert_eq!(lab.files().len(), 2, "{:?}", lab.files());
    let found = store.find_works(&Filter::default()).unwrap();
    assert_eq!(found[0].choice.places[0].names, ["ext4"]);
    assert_eq!((found[0].entry.run.as_str(), found[0].entry.machine.as_str()), ("r1", "rack-1"));
    assert!(Store::open_or_make(place.parent().unwrap()).is_err(), "a folder with other files becomes no store");
}

#[test]
fn what_is_hostile_is_refused_and_nothing_is_written() {
    let lab = Lab::new();
    let (store, good) = (lab.store(), journal(1, 1.2));
    let other = "07".repeat(32);
    let long_line = [&good[..], &[b'x'; 70_000]].concat();
    let long = journal(2, 1.0).repeat(40);
    let newer = good.clone();
    let cases: [(&[u8], Option<&str>, &str); 9] = [
        (&good, Some(&other), "and not 0707"),
        (&good, Some("../../../etc/cron.d/x"), "not a SHA-256"),
        (&good, Some(""), "not a SHA-256"),
        (&good, Some(&other.to_uppercase().replace('0', "A")), "not a SHA-256"),
        (&long_line, None, "a line of a journal"),
        (&long, None, "a journal has at most"),
        (&newer[..newer.len() - 1], None, "whole line"),
        (b"", None, "whole line"),
        (b"{\"begin\":{}}\n", None, "no `run` record"),
    ];
    let before = lab.files();
    for (text, declared, wanted) in cases {
        let limits = Limits { journal: 100_000, line: 65_536 };
        let error = store.take(&mut &text[..], declared, limits).unwrap_err();
        assert!(error.is::<Refused>() && error.to_string().contains(wanted), "{wanted}: {error}");
        assert_eq!(lab.files(), before, "{wanted}");
    }
    assert!(dump(&store).is_empty());
}

/// A gigabyte without an end is not read to its end.
#[test]
fn an_endless_line_is_refused_early() {
    struct Endless(u64);
    impl Read for Endless {
        fn read(&mut self, chunk: &mut [u8]) -> std::io::Result<usize> {
            self.0 += chunk.len() as u64;
            chunk.fill(b'x');
            Ok(chunk.len())
        }
    }
    let (lab, mut endless) = (Lab::new(), Endless(0));
    let error = lab.store().take(&mut endless, None, Limits::default()).unwrap_err();
    assert!(error.is::<Refused>() && endless.0 < 17 << 20, "{error}, {} bytes", endless.0);
}

#[test]
fn any_order_of_many_writers_gives_the_index_of_a_rebuild() {
    let lab = Lab::new();
    let mut texts: Vec<Vec<u8>> = (0..40).map(|id| journal(id, 0.8 + f64::from(id) / 50.0)).collect();
    // A run that was pushed while it went on, and after each of its ends.
    let whole = journal(99, 1.5);
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    texts.extend(ends.iter().skip(1).step_by(8).map(|end| whole[..*end].to_vec()));
    texts.push(whole);
    let store = lab.store();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (texts, folder) = (&texts, lab.folder.path());
            scope.spawn(move || {
                let store = Store::open_or_make(folder).unwrap();
                let steps = [7, 11, 13, 17, 19, 23, 29, 31];
                (0..texts.len()).for_each(|at| drop(push(&store, &texts[(at * steps[writer] + writer) % texts.len()])));
            });
        }
    });
    let before = dump(&store);
    assert_eq!(store.reindex().unwrap(), texts.len());
    assert_eq!(before, dump(&store));
    // Only the last journal of the run that grew counts.
    let grown: Vec<Entry> =
        store.runs(&Filter::default()).unwrap().into_iter().filter(|run| run.run == "r99").collect();
    assert_eq!(grown.iter().map(|run| run.bytes).collect::<Vec<_>>(), [*ends.last().unwrap() as u64]);
    assert_eq!(lab.files().len(), texts.len() + 1);
}

#[test]
fn the_index_follows_the_folder() {
    let lab = Lab::new();
    let (store, text) = (lab.store(), journal(1, 1.2));
    let kept = push(&store, &text).hash;
    // Copied here by another program, one of them damaged on its way, and one that is no journal.
    let (copied, damaged) = (journal(2, 1.0), journal(3, 1.0));
    let hash = |text: &[u8]| {
        use sha2::Digest;
        format!("{:x}", sha2::Sha256::digest(text))
    };
    for (hash, text) in [(hash(&copied), copied.as_slice()), (hash(&damaged), &damaged[..100])] {
        fs::create_dir_all(store.journal(&hash).parent().unwrap()).unwrap();
        fs::write(store.journal(&hash), text).unwrap();
    }
    fs::write(lab.folder.path().join(JOURNALS).join("notes.jsonl"), "x").unwrap();
    let runs = store.runs(&Filter::default()).unwrap();
    let problems = runs.iter().filter(|run| run.problem.contains("has the SHA-256")).count();
    assert_eq!((runs.len(), problems), (3, 1));
    fs::remove_file(store.journal(&kept)).unwrap();
    assert!(store.runs(&Filter { hash: kept, ..Filter::default() }).unwrap().is_empty());
    // Damaged, or of another version.
    let before = dump(&store);
    fs::write(lab.folder.path().join(INDEX), vec![b'x'; 5000]).unwrap();
    assert_eq!(dump(&store), before);
    // Its copy went on after it was looked at.
    fs::write(store.journal(&hash(&damaged)), &damaged).unwrap();
    let runs = store.runs(&Filter::default()).unwrap();
    assert!(runs.len() == 2 && runs.iter().all(|run| run.problem.is_empty()), "{runs:?}");
}

#[test]
fn journals_of_a_newer_pickfs_are_kept_and_not_shown() {
    let lab = Lab::new();
    let store = lab.store();
    let newer = format!("{{\"run\":{{\"schema\":{},\"id\":{{}}}}}}\n", SCHEMA + 1);
    assert!(push(&store, newer.as_bytes()).is_new);
    assert!(store.find_works(&Filter::default()).unwrap().is_empty());
    assert!(!store.runs(&Filter::default()).unwrap()[0].problem.is_empty());
}

#[test]
fn questions_change_nothing() {
    let lab = Lab::new();
    let store = lab.store();
    push(&store, &journal(1, 1.2));
    let rows = store.query("SELECT best, count(*) AS runs FROM result GROUP BY best").unwrap();
    assert_eq!((rows.columns, rows.rows), (vec!["best".into(), "runs".into()], vec![vec!["ext4".into(), "1".into()]]));
    assert!(store.query("DELETE FROM journal").is_err());
    assert_eq!(store.runs(&Filter::default()).unwrap().len(), 1);
    let found = |filter: Filter| store.find_works(&filter).unwrap().len();
    assert_eq!(found(Filter { work: "TREE".into(), machine: "rack".into(), ..Filter::default() }), 1);
    assert_eq!(found(Filter { disk: "nvme".into(), ..Filter::default() }), 0);
}
