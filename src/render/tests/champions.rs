//! The best of each file system, from made-up journals.

use super::lab::*;
use super::text;
use crate::journal::{Provenance, Record};

fn lab(names: &[&str], factors: &[f64], rounds: u32) -> Lab {
    let mut lab = Lab::new(names);
    for target in &mut lab.plan.targets {
        target.fs = target.name.split(' ').next().map(String::from);
    }
    lab.rounds(rounds, factors);
    lab
}

const FOUR: [&str; 4] = ["ext4 none", "ext4 bfq", "btrfs none", "btrfs bfq"];

#[test]
fn each_file_system_has_its_best_and_those_are_ranked() {
    let model = lab(&FOUR, &[1.0, 0.8, 0.6, 1.4], 10).model();
    let champions = model.champions.as_ref().expect("two file systems have two targets each");
    let shown: Vec<(&str, &str, usize)> =
        champions.rows.iter().map(|row| (row.group.as_str(), FOUR[row.target], row.members)).collect();
    assert_eq!(shown, [("btrfs", "btrfs none", 2), ("ext4", "ext4 bfq", 2)]);
    assert!(champions.rows.iter().all(|row| row.ties.is_empty() && row.open.is_empty()));
    assert!(champions.rows[0].against.is_none());
    let ratio = champions.rows[1].against.as_ref().expect("compared with the first").estimate.ratio;
    assert!((ratio / (0.8 / 0.6) - 1.0).abs() < 0.02, "{ratio}");
    let text = text(&model);
    for part in ["Best of each file system", "btrfs none, of 2", "× time of tree relative to btrfs none"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_tie_within_a_file_system_is_told() {
    let model = lab(&["ext4 none", "ext4 bfq", "xfs"], &[1.0, 1.0, 1.5], 12).model();
    let champions = model.champions.as_ref().expect("ext4 has two targets");
    assert_eq!((champions.rows[0].ties.len(), champions.rows[1].members), (1, 1));
    assert!(text(&model).contains("tied with ext4"));
    let few = lab(&["ext4 none", "ext4 bfq", "xfs"], &[1.0, 1.0, 1.5], 2).model();
    let champions = few.champions.as_ref().expect("there are times");
    assert_eq!((champions.rows[0].ties.len(), champions.rows[0].open.len()), (0, 1));
    assert!(text(&few).contains("no clear difference from ext4"));
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
    for (guest, told) in [("bookworm-1f tcg (no /dev/kvm)", true), ("bookworm-1f kvm (a kernel booted)", false)] {
        let mut lab = lab(&["ext4", "xfs"], &[1.0, 0.8], 8);
        let facts = [("guest bookworm".to_string(), guest.to_string())].into();
        lab.records.push(Record::Provenance(Provenance { facts, ..Provenance::default() }));
        assert_eq!(text(&lab.model()).contains("emulated (tcg)"), told, "{guest}");
    }
}
