//! Many runs in one table, from made-up journals.

use super::lab::*;
use crate::analysis::{AcrossVerdict, Model, between_machines};
use crate::render::{Document, Kind, Options, names, written};
use crate::wording::ranking::ranking;
use pickfs_core::journal::{BackingHardware, Disk, Hardware, Outcome, Provenance, RawSpeed, Record};
use pickfs_core::plan::{Headline, Judged};
use std::collections::BTreeMap;

const FIVE: [&str; 5] = ["ext4", "xfs", "btrfs", "jfs", "nilfs2"];

/// As a run notes what it found of its disk before all cells.
fn on_disk(lab: &mut Lab, random: &str, onward: &str) {
    let facts = BTreeMap::from([
        ("image raw 4 KiB random read".to_string(), format!("{random} each, one at a time, direct")),
        ("image raw buffered reads".to_string(), onward.to_string()),
    ]);
    lab.records.push(Record::Provenance(Provenance { facts, ..Provenance::default() }));
}

fn lab(factors: &[f64], rounds: u32) -> Lab {
    let mut lab = Lab::new(&FIVE);
    lab.rounds(rounds, factors);
    lab
}

#[test]
fn places_are_shared_by_what_is_not_told_apart_and_the_worst_is_last() {
    let mut fast = lab(&[1.0, 1.0, 1.3, 1.6, 2.5], 12);
    on_disk(&mut fast, "85.1 µs", "1.20 GiB/s");
    let mut slow = lab(&[1.5, 1.0, 1.2, 1.2, 1.2], 12);
    on_disk(&mut slow, "9.10 ms", "151 MiB/s");
    let found = ranking(&[fast.model(), slow.model()]);
    let names = |at: usize| found[at].places.iter().map(|place| place.names.clone()).collect::<Vec<_>>();
    let mut best = names(0)[0].clone();
    best.sort();
    assert_eq!(
        (best, &names(0)[1..]),
        (
            vec!["ext4".into(), "xfs".into()],
            &[vec!["btrfs".to_string()], vec!["jfs".to_string()], vec!["nilfs2".to_string()],][..]
        )
    );
    assert!(found[0].places[0].tie && found[0].places[0].against.is_empty());
    assert!(found[0].places[3].against.starts_with("×2.5"), "{:?}", found[0].places[3]);
    assert_eq!(found[0].disk, "flash, faster than SATA");
    let counted: Vec<usize> = names(1).iter().map(Vec::len).collect();
    assert_eq!(
        (counted, &names(1)[0], &names(1)[2]),
        (vec![1, 3, 1], &vec!["xfs".to_string()], &vec!["ext4".to_string()])
    );
    assert_eq!(found[1].disk, "a disk that seeks");
}

#[test]
fn a_run_on_two_disks_names_both() {
    let mut both = lab(&[1.0, 1.0, 1.3, 1.6, 2.5], 12);
    on_disk(&mut both, "85.1 µs", "1.20 GiB/s");
    let facts =
        [("device /dev/sdb raw 4 KiB random read".to_string(), "9.10 ms each, one at a time, direct".to_string())];
    both.records.push(Record::Provenance(Provenance { facts: facts.into(), ..Provenance::default() }));
    let wanted = "device /dev/sdb on a disk that seeks; image on flash, faster than SATA";
    assert_eq!(ranking(&[both.model()])[0].disk, wanted);
}

/// Ten runs on one disk, some of them in a busy moment, are of one disk.
#[test]
fn one_disk_has_one_name_however_busy_the_machine_was() {
    let name = |random: &str, onward: &str, hardware: &str| {
        let mut lab = lab(&[1.0, 1.0, 1.3, 1.6, 2.5], 2);
        on_disk(&mut lab, random, onward);
        let facts = BTreeMap::from([("image disk below".to_string(), hardware.to_string())]);
        lab.records.push(Record::Provenance(Provenance { facts, ..Provenance::default() }));
        ranking(&[lab.model()])[0].disk.clone()
    };
    let ssd = "sda, Fast SSD 870, scheduler none, write cache write back, sectors 512/512 B, rotational 0";
    assert_eq!(name("85.1 µs", "1.20 GiB/s", ssd), "flash, faster than SATA (Fast SSD 870)");
    assert_eq!(name("2.37 ms", "1.10 GiB/s", ssd), "flash, faster than SATA (Fast SSD 870)");
    assert_eq!(name("9.10 ms", "151 MiB/s", "sdb, scheduler bfq, rotational 1"), "a disk that seeks");
}

/// A run notes what it computes with in types; words next to them decide nothing.
#[test]
fn a_disk_is_named_by_what_was_noted_in_types() {
    let name = |random_read_ns: f64, rotational: bool| {
        let mut lab = lab(&[1.0, 1.0, 1.3, 1.6, 2.5], 2);
        on_disk(&mut lab, "1.00 ns", "99.0 GiB/s");
        let speed = RawSpeed {
            random_read_ns: Some(random_read_ns),
            buffered_bytes_per_second: Some(5e8),
            ..RawSpeed::default()
        };
        let disk = Disk { model: "Slow 7".into(), rotational: Some(rotational), ..Disk::default() };
        let image = BackingHardware {
            backing: "image".into(),
            disk_below: Some(disk),
            raw_speed: Some(speed),
            ..BackingHardware::default()
        };
        let hardware = Hardware { backings: vec![image], ..Hardware::default() };
        lab.records.push(Record::Provenance(Provenance { hardware, ..Provenance::default() }));
        ranking(&[lab.model()])[0].disk.clone()
    };
    assert_eq!(name(9.1e6, true), "a disk that seeks (Slow 7)");
    assert_eq!(name(9.1e6, false), "flash, no faster than SATA (Slow 7)");
    assert_eq!(name(7e3, true), "as fast as memory (Slow 7)");
}

/// The tables compare each with the reference alone; places and machines have every pair.
#[test]
fn many_targets_are_told_apart_as_few_are() {
    let names: Vec<String> = (0..32).map(|at| format!("target {at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let factors: Vec<f64> = (0..32).map(|at| 1.0 + 0.2 * f64::from(at)).collect();
    let models = [1, 2, 3, 4].map(|seed| Lab::seeded(&names, seed).rounds(16, &factors).model());
    let row = &models[0].works[0].phases[0].rows[2];
    assert!(row.compared_with(0).is_some() && row.compared_with(1).is_none());
    let places = &ranking(&models[..1])[0].places;
    assert_eq!(places.len(), 32, "{places:?}");
    assert!(places[1].against.starts_with("×1.2"), "{places:?}");
    let named: Vec<(String, &Model)> = ["a", "b", "c", "d"].map(String::from).into_iter().zip(&models).collect();
    let across = between_machines(&named);
    assert_eq!((across[0].rows.len(), across[0].left_out.len()), (31, 0));
    assert!(matches!(&across[0].verdict, AcrossVerdict::Pick { target, .. } if target == "target 0"));
}

/// It is judged by times, and its report shows what the program measured in their place.
#[test]
fn a_verdict_on_results_of_another_program_keeps_its_ratios() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    let shown = Headline { phase: "write".into(), metric: "bytes_per_second".into(), name: "write: rate".into() };
    lab.plan.works[0].judged = Judged { phases: vec!["write".into()], headlines: vec![shown], ..Judged::default() };
    lab.plan.stop.rounds = Some(12);
    for round in 1..=12 {
        for (at, seconds) in [1.0, 1.25, 1.5].into_iter().enumerate() {
            let (cell, seconds) = (lab.begin(at, round), seconds + 0.001 * f64::from(round));
            lab.sample(&cell, "write", "time_ns", seconds * 1e9);
            lab.sample(&cell, "write", "bytes_per_second", 1e8 / seconds);
            lab.end(&cell, Outcome::Done);
        }
    }
    let model = lab.model();
    let ratios: Vec<String> = ranking(&[model])[0].places.iter().map(|place| place.against.clone()).collect();
    assert!(ratios[1].starts_with("×1.2") && ratios[2].starts_with("×1.49"), "{ratios:?}");
}

#[test]
fn a_run_without_a_verdict_has_no_places_and_every_format_says_so() {
    let found = ranking(&[lab(&[1.0, 1.0, 1.0, 1.0, 1.0], 2).model()]);
    assert!(found[0].places.is_empty() && found[0].disk == "a disk of unknown speed", "{found:?}");
    for format in names(Kind::Ranking) {
        let text = String::from_utf8(written(format, Document::Ranking(&found), &Options::default()).unwrap()).unwrap();
        assert!(text.contains("no") && text.contains("verdict") && text.contains("tree"), "{text}");
        assert!(format != "text" || text.lines().take(6).all(|line| line.chars().count() <= 80), "{text}");
    }
}

/// The best of each file system is a separate table, in text and Markdown, and only where there is
/// one.
#[test]
fn the_best_of_each_file_system_comes_behind_the_places() {
    let mut lab = Lab::new(&["ext4 none", "ext4 bfq", "xfs none", "xfs bfq"]);
    for target in &mut lab.plan.targets {
        target.fs = target.name.split(' ').next().map(String::from);
    }
    lab.rounds(12, &[1.0, 0.8, 0.6, 1.4]);
    let found = ranking(&[lab.model()]);
    let best: Vec<&str> = found[0].best_of_each.iter().map(|row| row.best.as_str()).collect();
    assert_eq!(best, ["xfs none", "ext4 bfq"]);
    for format in ["text", "markdown"] {
        let shown = |found: &[_]| {
            let text = written(format, Document::Ranking(found), &Options::default()).expect("a table");
            String::from_utf8(text).expect("text")
        };
        let text = shown(&found);
        assert!(text.contains("Best of each file system") && text.contains("faster"), "{format}: {text}");
        let single = ranking(&[super::ranking::lab(&[1.0, 1.0, 1.3, 1.6, 2.5], 8).model()]);
        assert!(!shown(&single).contains("Best of each"), "{format}");
    }
}
