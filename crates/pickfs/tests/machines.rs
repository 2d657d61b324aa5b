//! One plan on several machines: `pickfs choices --between machines` on journals whose truth is
//! known.

use crate::common::{Lab, Said};
use crate::made::Made;
use pickfs_core::journal::{Provenance, Record};

const NAMES: [&str; 3] = ["ext4", "xfs", "jfs"];

/// A run on a machine, with the factor of xfs; jfs is slow everywhere.
fn journal(lab: &Lab, name: &str, machine: &str, xfs: f64, seed: u64) {
    let mut made = Made::new(&NAMES, &[1.0, xfs, 1.6], 12, seed);
    let facts = [("host name".to_string(), machine.to_string())].into();
    made.records.insert(0, Record::Provenance(Provenance { facts, ..Provenance::default() }));
    made.write(&lab.path(name));
}

/// A run for each factor, each on its own machine.
fn runs(lab: &Lab, factors: &[f64]) -> Vec<String> {
    let one = |(at, factor): (usize, &f64)| {
        let name = format!("m{at}.jsonl");
        journal(lab, &name, &format!("rack-{at} (0000000{at})"), *factor, at as u64 + 1);
        name
    };
    factors.iter().enumerate().map(one).collect()
}

fn between(lab: &Lab, factors: &[f64]) -> String {
    let names = runs(lab, factors);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let said = lab.run(&[&["choices"], &names[..], &["--between", "machines"]].concat()).code(0);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    println!("{}", said.out);
    said.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_differs_between_machines_is_not_picked() {
    let said = between(&Lab::new(), &[1.1, 1.1, 0.9]);
    assert!(said.contains("tree: Differs between machines, so no pick"), "{said}");
    assert!(!said.contains("Pick "), "{said}");
    let (faster, slower) =
        ("ext4 is faster than xfs on [1] and [2], and slower on [3]", "xfs is faster than ext4 on [3]");
    assert!(said.contains(faster) || said.contains(slower), "{said}");
    assert!(said.contains("Machines differ by more than their noise in: xfs (I² "), "{said}");
}

#[test]
fn what_holds_on_all_machines_is_picked_from_three_on() {
    let lab = Lab::new();
    let said = between(&lab, &[0.9, 0.88, 0.92, 0.9]);
    assert!(said.contains("Pick xfs: the fastest on average over machines like these 4 (95 %)."), "{said}");
    assert!(said.contains("[4] rack-3 (00000003)"), "{said}");
    let two = between(&lab, &[0.9, 0.88]);
    assert!(two.contains("No pick: 2 machines cannot show how much machines differ, which takes three."), "{two}");
    assert!(two.contains("Best on average so far: xfs.") && !two.contains("% to "), "{two}");
    let unsure = between(&lab, &[0.9, 0.99, 0.8]);
    assert!(unsure.contains("No pick over 3 machines. Best on average: xfs, which is at most "), "{unsure}");
}

/// Many runs of one machine are one machine, and runs of other plans are none of these.
#[test]
fn machines_are_the_observations() {
    let lab = Lab::new();
    for seed in 1..=4 {
        journal(&lab, &format!("a{seed}.jsonl"), "rack-1", 0.9, seed);
    }
    journal(&lab, "b.jsonl", "rack-2", 0.9, 9);
    let words = ["choices", "a1.jsonl", "a2.jsonl", "a3.jsonl", "a4.jsonl"];
    let alone = lab.run(&[&words[..], &["--between", "machines"]].concat()).code(2);
    assert!(alone.err.contains("all these runs are of one machine, rack-1"), "{}", alone.err);
    let two = lab.run(&[&words[..], &["b.jsonl", "--between", "machines"]].concat()).code(0);
    assert!(two.out.contains("No pick: 2 machines"), "{}", two.out);
    let mut other = Made::new(&NAMES, &[1.0, 1.0, 1.0], 12, 5);
    other.plan.seed = 77;
    other.write(&lab.path("other.jsonl"));
    let refused = lab.run(&["choices", "a1.jsonl", "other.jsonl", "--between", "machines"]).code(2);
    assert!(refused.err.contains("other.jsonl and the new run cannot be compared"), "{}", refused.err);
    let markdown =
        lab.run(&["choices", "a1.jsonl", "b.jsonl", "--between", "machines", "--format", "markdown"]).code(0);
    assert!(markdown.out.starts_with("**tree**: No pick"), "{}", markdown.out);
}

/// An earlier and a later run for each machine, with what became of ext4.
fn before_and_after(lab: &Lab, factors: &[f64]) -> (i32, String) {
    for folder in ["before", "after"] {
        let _ = std::fs::remove_dir_all(lab.path(folder));
        std::fs::create_dir_all(lab.path(folder)).unwrap();
    }
    for (at, factor) in factors.iter().enumerate() {
        for (folder, factor, day) in [("before", 1.0, "2026-01-31"), ("after", *factor, "2026-02-01")] {
            let mut made =
                Made::new(&["ext4", "xfs"], &[factor, 0.8], 12, (at as u64 + 1) * day.len() as u64 + factor as u64);
            let facts = [("host name".to_string(), format!("rack-{at} (0000000{at})"))].into();
            made.records.insert(0, Record::Provenance(Provenance { facts, ..Provenance::default() }));
            let path = lab.path(&format!("{folder}/m{at}.jsonl"));
            made.write(&path);
            let text = std::fs::read_to_string(&path).unwrap().replace("2026-01-31", day);
            std::fs::write(path, text).unwrap();
        }
    }
    let said = Said::of(lab.pickfs().args(["compare", "before", "after", "--between", "machines"]).output().unwrap());
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    println!("{}", said.out);
    (said.code.unwrap(), said.out.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn what_changed_is_said_of_all_machines() {
    let lab = Lab::new();
    let (code, said) = before_and_after(&lab, &[1.2, 1.22, 1.18, 1.21]);
    assert!(
        said.contains("tree: Slower by clearly more than 5 % on average over machines like these: ext4 (+20 %)."),
        "{said}"
    );
    assert_eq!(code, 3);
    let (code, said) = before_and_after(&lab, &[1.2, 1.2, 0.8, 0.8]);
    assert!(said.contains("ext4 is slower than before on [1] and [2], and faster on [3] and [4]"), "{said}");
    assert_eq!(code, 4);
    let (code, said) = before_and_after(&lab, &[1.0; 8]);
    assert!(said.contains("slower than before on average over machines like these (95 %)."), "{said}");
    assert_eq!(code, 0);
    let (code, said) = before_and_after(&lab, &[1.2, 1.2]);
    assert!(said.contains("Inconclusive: 2 machines cannot show how much machines differ"), "{said}");
    assert_eq!(code, 4);
    // The order of the words is no order of days, and a machine alone is none of several.
    let words = ["compare", "after", "before", "--between", "machines"];
    let swapped = lab.run(&words).code(4).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(swapped, said);
    let alone = lab.run(&["compare", "before/m0.jsonl", "after/m0.jsonl", "--between", "machines"]).code(2).err;
    assert!(alone.contains("all these runs are of one machine"), "{alone}");
    let earlier = lab.run(&["compare", "before/m0.jsonl", "before/m1.jsonl", "--between", "machines"]).code(2).err;
    assert!(earlier.contains("nothing earlier to compare it with"), "{earlier}");
}
