//! The best of each file system, from made-up journals.

use super::lab::*;
use super::text;
use crate::analysis::{Model, Proof};
use pickfs_core::journal::{LeaveReason, Leaving, Look, Provenance, Record};
use pickfs_stats::Finding;
use pickfs_test_support::noise::{replications, share_error};

fn lab(names: &[&str], factors: &[f64], rounds: u32) -> Lab {
    let mut lab = Lab::new(names);
    for target in &mut lab.plan.targets {
        target.fs = target.name.split(' ').next().map(String::from);
    }
    lab.rounds(rounds, factors);
    lab
}

const FOUR: [&str; 4] = ["ext4 none", "ext4 bfq", "btrfs none", "btrfs bfq"];

fn names(model: &Model, targets: &[usize]) -> Vec<String> {
    targets.iter().map(|at| model.targets[*at].name.clone()).collect()
}

#[test]
fn each_file_system_has_its_best_and_those_are_ranked() {
    let model = lab(&FOUR, &[1.0, 0.8, 0.6, 1.4], 12).model();
    let champions = model.champions.as_ref().expect("two file systems have two targets each");
    let shown: Vec<(&str, &str, usize)> =
        champions.rows.iter().map(|row| (row.filesystem.as_str(), FOUR[row.target], row.members.len())).collect();
    assert_eq!(shown, [("btrfs", "btrfs none", 2), ("ext4", "ext4 bfq", 2)]);
    assert!(champions.rows.iter().all(|row| row.proof == Proof::Faster), "{champions:?}");
    assert!(champions.rows[0].against.is_none());
    let against = champions.rows[1].against.as_ref().expect("compared with the first");
    assert!((against.estimate.ratio / (0.8 / 0.6) - 1.0).abs() < 0.02, "{against:?}");
    assert!(against.estimate.interval.is_some_and(|(low, high)| low > 1.25 && high < 1.42), "{against:?}");
    assert_eq!(champions.rows[1].members[0].against.as_ref().and_then(|found| found.finding), Some(Finding::Higher));
    let text = text(&model);
    for part in ["Best of each file system", "faster than the other", "× time of tree relative to btrfs none"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// What targets of one file system differ in is a separate table where file systems share it.
#[test]
fn a_shared_factor_has_a_column_for_each_value() {
    let mut lab = Lab::new(&FOUR);
    for (target, scheduler) in lab.plan.targets.iter_mut().zip(["none", "bfq", "none", "bfq"]) {
        (target.fs, target.scheduler) = (target.name.split(' ').next().map(String::from), Some(scheduler.into()));
        target.mount = vec!["noatime".into()];
    }
    let model = lab.rounds(12, &[1.0, 0.8, 0.6, 1.4]).model();
    let shown = model.champions.as_ref().expect("champions").factor_shown();
    let first: Vec<[&str; 2]> = shown.iter().map(|row| [row[0].as_str(), row[1].as_str()]).collect();
    assert_eq!((first[0], first[1]), (["file system", "none"], ["btrfs", "best"]));
    assert_eq!((shown[0][2].as_str(), shown[2][2].as_str()), ("bfq", "best"));
    assert!(shown[2][1].starts_with("×1.2") && shown[1][2].starts_with("×2.3"), "{shown:?}");
    for format in ["full", "html", "markdown"] {
        let text = rendered(&model, format).replace("&#215;", "×");
        assert!(text.contains("bfq") && text.contains(&shown[2][1]), "{format}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&rendered(&model, "json")).expect("json");
    assert_eq!(json["best_of_each"][1]["members"]["ext4 none"]["finding"], "higher", "{json}");
    assert!(rendered(&model, "text").contains("Best of each file system: btrfs none; ext4 bfq"));
}

#[test]
fn a_tie_within_a_file_system_is_told() {
    let model = lab(&["ext4 none", "ext4 bfq", "xfs"], &[1.0, 1.0, 1.5], 20).model();
    let champions = model.champions.as_ref().expect("ext4 has two targets");
    let Proof::Tie(others) = &champions.rows[0].proof else { panic!("{champions:?}") };
    assert!(names(&model, others)[0].starts_with("ext4") && champions.rows[1].proof == Proof::Alone);
    assert!(text(&model).contains("tied with ext4"));
    let few = lab(&["ext4 none", "ext4 bfq", "xfs"], &[1.0, 1.0, 1.5], 2).model();
    let champions = few.champions.as_ref().expect("there are times");
    let proof = &champions.rows[0].proof;
    assert!(matches!(proof, Proof::Open { others, eliminated: false } if others.len() == 1), "{proof:?}");
    assert!(text(&few).contains("too few rounds;"), "{}", text(&few));
}

/// A file system that is out early keeps its question open, and the report says how to have it
/// answered.
#[test]
fn what_was_eliminated_early_stays_open() {
    let mut lab = Lab::new(&FOUR);
    lab.noise = 0.05;
    lab.plan.targets.iter_mut().for_each(|target| target.fs = target.name.split(' ').next().map(String::from));
    lab.rounds(20, &[1.0, 1.004, 2.0, 2.02]);
    lab.plan.stop.rounds = None;
    lab.plan.stop.race = true;
    let leaving = |at: usize| Leaving { target: FOUR[at].into(), why: LeaveReason::SlowerThan(FOUR[0].into()) };
    let looks = [8, 20].map(|round| {
        let leaving = if round == 8 { vec![leaving(2), leaving(3)] } else { Vec::new() };
        Record::Look(Look { round, alpha: 0.02, leaving, ..Look::default() })
    });
    lab.records.retain(|record| match record {
        Record::Begin(begin) => begin.round <= 8 || begin.target.starts_with("ext4"),
        _ => true,
    });
    lab.records.extend(looks);
    let model = lab.model();
    let champions = model.champions.as_ref().expect("champions");
    assert!(matches!(champions.rows[1].proof, Proof::Open { eliminated: true, .. }), "{champions:?}");
    assert!(text(&model).contains("btrfs: eliminated before the best of it was clear"), "{}", text(&model));
}

/// Champions are chosen by the times that compare them: of equals none may be called better,
/// however many there are.
#[test]
fn of_equals_no_champion_is_called_faster() {
    let names: Vec<String> = ["ext4", "xfs", "btrfs"]
        .iter()
        .flat_map(|fs| ["none", "bfq", "kyber", "mq-deadline"].map(|scheduler| format!("{fs} {scheduler}")))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (runs, mut wrong) = (replications(60, 1000), 0);
    for seed in 0..runs {
        let mut lab = Lab::seeded(&names, seed as u64);
        lab.noise = 0.2;
        lab.plan.targets.iter_mut().for_each(|target| target.fs = target.name.split(' ').next().map(String::from));
        let model = lab.rounds(10, &[1.0; 12]).model();
        let champions = model.champions.as_ref().expect("champions");
        let compared =
            champions.rows.iter().flat_map(|row| row.members.iter().map(|one| &one.against).chain([&row.against]));
        let tells = compared.flatten().any(|found| found.tells() && found.finding != Some(Finding::TooFewRounds));
        wrong += usize::from(tells || champions.rows.iter().any(|row| row.proof == Proof::Faster));
    }
    let share = wrong as f64 / runs as f64;
    println!("equals called different in {:.1} % of {runs} runs", 100.0 * share);
    assert!(share <= 0.05 + 3.5 * share_error(0.05, runs), "{wrong} of {runs}");
}

#[test]
fn one_target_each_needs_no_such_table() {
    assert!(lab(&["ext4", "xfs"], &[1.0, 0.8], 8).model().champions.is_none());
    assert!(lab(&["ext4 none", "ext4 bfq"], &[1.0, 0.8], 8).model().champions.is_none(), "that is the verdict");
    let mut weak = lab(&["ext4", "xfs", "xfs nobarrier"], &[1.0, 0.8, 0.5], 8);
    weak.provenance(2, 1, &[], &["nobarrier"]);
    assert!(weak.model().champions.is_none(), "what is not ranked is nobody's best");
    assert!(!text(&weak.model()).contains("Best of each file system"));
}

#[test]
fn an_emulated_processor_is_told() {
    for (guest, is_emulated) in [
        ("bookworm-1f tcg (no /dev/kvm)", true),
        ("bookworm-1f, kernel 6.1.0-56-amd64, tcg (no /dev/kvm)", true),
        ("bookworm-1f, kernel 6.1.0-56-amd64, kvm (a kernel booted)", false),
    ] {
        let mut lab = lab(&["ext4", "xfs"], &[1.0, 0.8], 8);
        let facts = [("guest bookworm".to_string(), guest.to_string())].into();
        lab.records.push(Record::Provenance(Provenance { facts, ..Provenance::default() }));
        assert_eq!(text(&lab.model()).contains("emulated (tcg)"), is_emulated, "{guest}");
    }
}
