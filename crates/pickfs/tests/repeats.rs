//! Repeats inside a cell sharpen its one observation: they are played where nothing is written,
//! each from a cold cache, and they are never taken for rounds.

use crate::common::{Lab, Observation, not_run, unable};
use pickfs_core::journal::{Begin, End, Folded, Outcome, Record, Run, SCHEMA, Sample, fold};
use pickfs_core::plan::{Chosen, Plan, Repeats, Settings, Stop, Target, Work};
use pickfs_host::analysis::{self, Model, VerdictKind};
use pickfs_stats::Method;
use serde_json::json;

fn chosen(name: &str, settings: &[(&str, u64)]) -> Chosen {
    let settings = settings.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    Chosen { name: name.into(), settings: Settings(settings) }
}

fn plan(targets: &[&str], rounds: u32, repeats: u32) -> Plan {
    let backing = chosen("memory", &[("size", 64 << 20)]);
    let target = |name: &&str| Target {
        name: name.to_string(),
        backing: backing.clone(),
        fs: Some("ext4".into()),
        ..Target::default()
    };
    let work = Work {
        name: "tree".into(),
        workload: chosen("tree", &[("files", 20), ("bytes", 1 << 20)]),
        repeats: Repeats(repeats),
        ..Work::default()
    };
    Plan {
        seed: 1,
        reference: targets[0].into(),
        executor: "local".into(),
        targets: targets.iter().map(target).collect(),
        works: vec![work],
        stop: Stop { rounds: Some(rounds), ..Stop::default() },
        ..Plan::default()
    }
}

fn run_record(id: &str, plan: Plan) -> Record {
    let run = Run { schema: SCHEMA, id: id.into(), plan, ..Run::default() };
    Record::Run(Box::new(run))
}

fn lines(records: &[Record]) -> String {
    records.iter().map(|record| serde_json::to_string(record).expect("a record is plain data") + "\n").collect()
}

/// What a run would write that has `samples` samples of one phase in every cell, `b` twice as slow
/// as `a`.
fn journal(rounds: u32, samples: u32) -> String {
    let mut records = vec![run_record("r", plan(&["a", "b"], rounds, samples))];
    for round in 1..=rounds {
        for (target, slower) in [("a", 1.0), ("b", 2.0)] {
            let cell = format!("{target}{round}");
            let (target, work) = (target.to_string(), "tree".to_string());
            records.push(Record::Begin(Begin { cell: cell.clone(), round, target, work, at: String::new() }));
            let value = |k: u32| slower * 1e9 * (1.0 + f64::from(k) / 100.0 + f64::from(round) / 1000.0);
            let sample = |k| (cell.clone(), "tar-read".to_string(), "time_ns".to_string(), value(k));
            records.extend(
                (0..samples)
                    .map(sample)
                    .map(|(cell, phase, metric, value)| Record::Sample(Sample { cell, phase, metric, value })),
            );
            records.push(Record::End(End { cell, outcome: Outcome::Done, at: String::new() }));
        }
    }
    lines(&records)
}

fn judged(rounds: u32, samples: u32) -> (Folded, Model) {
    let folded = fold(journal(rounds, samples).as_bytes()).expect("the journal folds");
    let model = analysis::model(&folded).expect("the report is made");
    (folded, model)
}

/// Ten runs of one file system are one observation.
#[test]
fn many_samples_of_one_cell_have_no_interval() {
    let (folded, model) = judged(1, 10);
    assert_eq!(folded.cells.iter().map(|cell| folded.samples(cell).count()).collect::<Vec<_>>(), [10, 10]);
    let work = &model.works[0];
    assert_eq!((work.rounds, work.verdict.kind), (1, VerdictKind::TooFewRounds));
    for panel in &work.phases {
        let row = &panel.rows[1];
        let against = row.against.as_ref().expect("b is compared with a");
        assert_eq!((against.estimate.n, against.estimate.interval), (1, None), "{}", panel.name);
        assert_eq!(row.figure.as_ref().map(|figure| figure.rounds), Some(1), "{}", panel.name);
        assert!(against.words().contains("anecdote"), "{}", against.words());
    }
}

/// The interval comes from the rounds alone, whatever each of them is made of.
#[test]
fn repeats_are_never_rounds() {
    let estimate = |rounds, samples| {
        let (_, model) = judged(rounds, samples);
        model.works[0].phases[0].rows[1].against.as_ref().expect("b is compared with a").estimate.clone()
    };
    let (once, often) = (estimate(6, 1), estimate(6, 10));
    assert_eq!((once.n, often.n), (6, 6));
    assert_eq!((once.method, often.method), (Method::SignedRank, Method::SignedRank));
    assert!((often.ratio - 2.0).abs() < 1e-9, "{often:?}");
    assert!(estimate(2, 50).interval.is_none());
}

/// A cell's value is the geometric mean of its samples, in the report and in queries of the
/// journal.
#[test]
fn repeats_are_averaged() {
    let (folded, model) = judged(1, 10);
    let product: f64 = (0..10).map(|k| 1.0 + f64::from(k) / 100.0 + 0.001).product();
    let wanted = 1e9 * product.powf(0.1);
    let asked = folded.value(folded.find_cell("a1").expect("the cell"), "tar-read", "time_ns").expect("a value");
    let shown = model.works[0].phases[0].rows[0].figure.as_ref().expect("a figure").median;
    for found in [asked, shown] {
        assert!((found / wanted - 1.0).abs() < 1e-12, "{found} is not {wanted}");
    }
}

#[test]
fn phases_that_only_read_are_repeated_from_cold_and_others_are_not() {
    if not_run(unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let id = format!("{:012x}", std::process::id());
    std::fs::write(lab.journal(), lines(&[run_record(&id, plan(&["ext4"], 1, 3))])).expect("the journal is written");
    lab.run(&["run", "--trust", "--resume", "journal.jsonl"]).code(0);
    let folded = lab.folded();
    let cell = &folded.cells[0];
    assert_eq!(cell.outcome, Some(Outcome::Done));
    for (phase, wanted) in [("write", 1), ("tar-read", 3), ("copy-read", 3), ("stat-walk", 3), ("remove", 1)] {
        for metric in ["time_ns", "durable_ns", "device_read_bytes", "cpu_workload_ns"] {
            let found = folded.samples(cell).filter(|sample| (sample.0, sample.1) == (phase, metric)).count();
            assert_eq!(found, wanted, "{phase} {metric}");
        }
    }
    assert!(cell.flags.iter().all(|flag| flag.flag != "not-cold"), "{:?}", cell.flags);
    lab.assert_nothing_left();
}
