//! `pickfs compare`: its exit codes, what it refuses, and what it prints, on journals whose truth
//! is known.

use crate::common::{Lab, Said};
use crate::made::Made;

const NAMES: [&str; 2] = ["ext4", "xfs"];

fn journal(lab: &Lab, name: &str, factors: &[f64], rounds: u32, seed: u64, change: impl Fn(&mut Made)) {
    let mut made = Made::new(&NAMES, factors, rounds, seed);
    change(&mut made);
    made.write(&lab.path(name));
}

/// Where it is known that runs of the same differ by little.
fn compare(lab: &Lab, words: &[&str]) -> Said {
    lab.run(&[&["compare", "old.jsonl", "new.jsonl", "--scatter", "1%"], words].concat())
}

/// In one line.
fn flat(said: &Said) -> String {
    said.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_run_compared_with_itself_has_no_regression() {
    let lab = Lab::new();
    journal(&lab, "old.jsonl", &[1.0, 0.8], 10, 1, |_| ());
    let said = lab.run(&["compare", "old.jsonl", "old.jsonl", "--scatter", "0.1%"]).code(0);
    assert!(
        said.out.starts_with("At most ") && said.out.contains("2 whole jobs compared, and up to 5 %"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("Not the same"), "{}", said.out);
}

#[test]
fn a_slowdown_beyond_the_threshold_comes_first_and_ends_with_three() {
    let lab = Lab::new();
    journal(&lab, "old.jsonl", &[1.0, 1.0], 10, 1, |_| ());
    journal(&lab, "new.jsonl", &[0.7, 1.2], 10, 2, |made| made.kernel = "6.18");
    let said = compare(&lab, &[]).code(3);
    assert!(said.out.contains("1 of 2 whole jobs is slower by clearly more than 5 %."), "{}", said.out);
    assert!(said.out.contains("kernel: 6.1 → 6.18"), "{}", said.out);
    let (slower, faster) = (said.out.find("│ xfs, tree, write"), said.out.find("│ ext4, tree, write"));
    assert!(slower.is_some() && slower < faster, "{}", said.out);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    compare(&lab, &["--threshold", "30%"]).code(0);
    let written = |record: &mut Made, mount: &str| {
        let facts = [("mount".to_string(), mount.to_string())].into();
        let cell = "0-1".to_string();
        let found = pickfs_core::journal::Provenance { cell, facts, ..Default::default() };
        record.records.push(pickfs_core::journal::Record::Provenance(found));
    };
    journal(&lab, "old.jsonl", &[1.0, 1.0], 10, 1, |made| written(made, "/dev/loop0 ext4 rw"));
    journal(&lab, "new.jsonl", &[0.7, 1.2], 10, 2, |made| written(made, "/dev/loop7 ext4 rw,noatime"));
    let mounted = compare(&lab, &[]).code(3).out;
    assert!(mounted.contains("ext4: mount: ext4 rw → ext4 rw,noatime"), "{mounted}");
    for format in ["html", "json", "markdown"] {
        let other = compare(&lab, &["--format", format]).code(3).out;
        assert!(other.contains("1 of 2 whole jobs is slower"), "{other}");
    }
    // Each ratio has its point and its interval on the axis, the one above 1 to the right of the
    // other.
    let page = compare(&lab, &["--format", "html"]).out;
    let points: Vec<f64> =
        page.split("<circle cx=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
    let one: f64 = page.split("class=\"one\" x1=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert_eq!((points.len(), page.matches("class=\"slower\"").count()), (6, 1), "{page}");
    assert!(points[0] > one && one > points[1], "{points:?} about {one}");
    let json: serde_json::Value = serde_json::from_str(&compare(&lab, &["--format", "json"]).out).unwrap();
    assert_eq!((&json["gate"], &json["times"][0]["says"]), (&"regression".into(), &"slower".into()));
    let ratio = json["times"][0]["ratio"].as_f64().unwrap();
    assert!((1.18..1.22).contains(&ratio), "{ratio}");
}

/// Rounds of two simulations have the same seeds and nothing else between them: each is held
/// against its own.
#[test]
fn of_simulations_half_a_percent_is_seen() {
    let lab = Lab::new();
    let simulated = |made: &mut Made| {
        let facts = [("guest bookworm".to_string(), "bookworm-1, kernel 6.1, simulated".to_string())].into();
        made.records.insert(
            0,
            pickfs_core::journal::Record::Provenance(pickfs_core::journal::Provenance { facts, ..Default::default() }),
        );
    };
    journal(&lab, "old.jsonl", &[1.0, 1.0], 10, 1, simulated);
    journal(&lab, "new.jsonl", &[1.006, 0.998], 10, 1, simulated);
    let said = compare(&lab, &["--threshold", "0.5%"]).code(3).out;
    assert!(said.contains("1 of 2 whole jobs is slower by clearly more than 0.5 %"), "{said}");
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains("Both runs are simulated"), "{said}");
    compare(&lab, &["--threshold", "0.7%"]).code(0);
    // Four rounds conclude nothing: neither for phases nor for the whole job.
    journal(&lab, "old.jsonl", &[1.0, 1.0], 4, 1, simulated);
    journal(&lab, "new.jsonl", &[1.5, 0.5], 4, 1, simulated);
    let report: serde_json::Value = serde_json::from_str(&compare(&lab, &["--format", "json"]).code(4).out).unwrap();
    let rows = report["times"].as_array().unwrap();
    assert!(rows.len() > 2 && rows.iter().all(|row| row["says"] == "open"), "{report:#}");
    journal(&lab, "new.jsonl", &[1.006, 0.998], 10, 1, simulated);
    // Neither one that was measured, nor two.
    journal(&lab, "old.jsonl", &[1.0, 1.0], 10, 1, |_| ());
    assert!(lab.run(&["compare", "old.jsonl", "new.jsonl"]).code(4).out.contains("Each side is one run"));
}

/// What earlier runs differ by widens what is said of a new one, and a folder of them is taken
/// together.
#[test]
fn several_earlier_runs_say_what_runs_differ_by() {
    let lab = Lab::new();
    for (at, day) in [0.97, 1.0, 1.04, 0.99].into_iter().enumerate() {
        journal(&lab, &format!("old{at}.jsonl"), &[day, day], 10, at as u64 + 1, |_| ());
    }
    journal(&lab, "new.jsonl", &[1.13, 1.13], 10, 9, |_| ());
    let with = |old: &[&str]| lab.run(&[&["compare"], old, &["new.jsonl"]].concat());
    lab.run(&["compare", "old1.jsonl", "new.jsonl", "--scatter", "0.1%"]).code(3);
    let one = flat(&with(&["old1.jsonl"]).code(4));
    assert!(one.contains("Each side is one run") && one.contains("`pickfs compare OLD1 OLD2 OLD3 NEW`"), "{one}");
    assert!(!one.contains("At most") && !one.contains("slower"), "{one}");
    let all = with(&["old0.jsonl", "old1.jsonl", "old2.jsonl", "old3.jsonl"]).code(4);
    let said = all.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("what the 4 earlier runs differ by, a standard deviation of 2.9 %"), "{said}");
    assert!(all.out.starts_with("Inconclusive. At most ") && !all.out.contains("Each side"), "{}", all.out);
    journal(&lab, "new.jsonl", &[1.3, 1.3], 10, 9, |_| ());
    with(&["old0.jsonl", "old1.jsonl", "old2.jsonl", "old3.jsonl"]).code(3);
    journal(&lab, "other.jsonl", &[1.0, 1.0], 10, 9, |made| made.plan.seed = 2);
    assert!(with(&["old0.jsonl", "other.jsonl"]).code(2).err.contains("other.jsonl and the new run"));
}

/// With one earlier run, the others in its folder show what runs differ by: those of the same
/// kernel that were made before.
#[test]
fn one_earlier_run_has_the_scatter_of_those_beside_it() {
    let lab = Lab::new();
    let began = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"];
    for (at, (day, began)) in [1.005, 1.0, 0.995, 1.003].into_iter().zip(began).enumerate() {
        journal(&lab, &format!("old{at}.jsonl"), &[day, day], 10, at as u64 + 1, |made| made.started = began);
    }
    let new = |slower: f64, kernel: &'static str| {
        journal(&lab, "new.jsonl", &[slower, 1.0], 10, 9, |made| {
            (made.kernel, made.started) = (kernel, "2026-02-01T00:00:00Z")
        });
    };
    let compare = || lab.run(&["compare", "old3.jsonl", "new.jsonl"]);
    new(1.2, "6.18");
    let said = flat(&compare().code(3));
    assert!(said.contains("what 4 earlier runs on this kernel differ by"), "{said}");
    new(1.0, "6.18");
    compare().code(0);
    // Runs of another kernel show nothing of this one.
    for at in 0..3 {
        journal(&lab, &format!("old{at}.jsonl"), &[1.0, 1.0], 10, at + 1, |made| made.kernel = "5.10");
    }
    assert!(flat(&compare().code(4)).contains("Each side is one run"));
}

/// Others used a processor all the time of the new run: it takes twice as long, and that is no
/// regression.
#[test]
fn what_others_made_slow_is_no_regression() {
    let lab = Lab::new();
    for (at, day) in [0.99, 1.0, 1.01].into_iter().enumerate() {
        journal(&lab, &format!("old{at}.jsonl"), &[day, day], 10, at as u64 + 1, |_| ());
    }
    let others = |made: &mut Made| {
        let sample = |record: &pickfs_core::journal::Record| match record {
            pickfs_core::journal::Record::Sample(sample) if sample.metric == "time_ns" => Some(sample.clone()),
            _ => None,
        };
        for mut sample in made.records.iter().filter_map(sample).collect::<Vec<_>>() {
            sample.metric = "foreign_cpu_ns".into();
            let end = made.records.len() - 1;
            made.records.insert(end, pickfs_core::journal::Record::Sample(sample));
        }
    };
    let compare = |words: &[&str]| {
        lab.run(&[&["compare", "old0.jsonl", "old1.jsonl", "old2.jsonl", "new.jsonl"], words].concat())
    };
    journal(&lab, "new.jsonl", &[2.0, 2.0], 10, 9, |_| ());
    compare(&[]).code(3);
    journal(&lab, "new.jsonl", &[2.0, 2.0], 10, 9, others);
    for format in ["text", "markdown", "json"] {
        let said = flat(&compare(&["--format", format]).code(4));
        assert!(said.contains("of the new run, this machine was busy"), "{said}");
        assert!(!said.contains("slower") || format == "json", "{said}");
        assert!(!said.contains("\"says\": \"slower\""), "{said}");
    }
}

/// At the threshold nothing is clear, and of two rounds nothing is sure.
#[test]
fn what_is_not_excluded_ends_with_four() {
    let lab = Lab::new();
    journal(&lab, "old.jsonl", &[1.0, 1.0], 8, 1, |_| ());
    journal(&lab, "new.jsonl", &[1.0, 1.05], 8, 2, |_| ());
    let said = compare(&lab, &[]).code(4);
    assert!(said.out.starts_with("Inconclusive. At most "), "{}", said.out);
    journal(&lab, "old.jsonl", &[1.0, 1.0], 2, 1, |_| ());
    journal(&lab, "new.jsonl", &[1.0, 2.0], 2, 2, |_| ());
    compare(&lab, &[]).code(4);
    // A target without a value in one run is inconclusive; one without a value in both does not
    // count.
    journal(&lab, "old.jsonl", &[1.0, 1.0], 8, 1, |_| ());
    journal(&lab, "new.jsonl", &[1.0], 8, 2, |_| ());
    let said = compare(&lab, &[]).code(4);
    assert!(said.out.contains("no value"), "{}", said.out);
    journal(&lab, "old.jsonl", &[1.0], 8, 1, |_| ());
    compare(&lab, &[]).code(0);
    journal(&lab, "new.jsonl", &[], 8, 2, |_| ());
    assert!(compare(&lab, &[]).code(4).out.contains("no value"));
}

#[test]
fn what_is_not_comparable_is_refused_by_its_field() {
    let lab = Lab::new();
    journal(&lab, "old.jsonl", &[1.0, 1.0], 3, 1, |_| ());
    type Change = fn(&mut Made);
    let cases: [(&str, Change); 7] = [
        ("plan.seed: 1 in the old run, 2 in the new one", |made| made.plan.seed = 2),
        ("targets.ext4.mount", |made| made.plan.targets[0].mount = vec!["nobarrier".into()]),
        ("targets.xfs.backing.settings.size", |made| {
            made.plan.targets[1].backing.settings.0.insert("size".into(), 7u64.into());
        }),
        ("works.tree.workload.name", |made| made.plan.works[0].workload.name = "pgbench".into()),
        ("plan.host.dirty_bytes", |made| made.plan.host.dirty_bytes = Some(1)),
        ("targets: ext4, xfs in the old run, a, b in the new one", |made| {
            made.plan.targets.iter_mut().zip(["a", "b"]).for_each(|(target, name)| target.name = name.into());
        }),
        ("work_bytes: 256000000 in the old run, 1 in the new one", |made| {
            for record in &mut made.records {
                match record {
                    pickfs_core::journal::Record::Sample(sample) if sample.metric == "work_bytes" => sample.value = 1.0,
                    _ => {}
                }
            }
        }),
    ];
    for (field, change) in cases {
        journal(&lab, "new.jsonl", &[1.0, 1.0], 3, 1, change);
        let said = compare(&lab, &[]).code(2);
        assert!(said.err.contains(field), "{field} is not in {}", said.err);
    }
    // Where it lies, how long it was measured and what for does not matter.
    journal(&lab, "new.jsonl", &[1.0, 1.0], 6, 1, |made| {
        made.plan.targets[0].backing.settings.0.insert("dir".into(), "/elsewhere".into());
        made.plan.title = "Another".into();
        made.plan.executor = "vm".into();
    });
    assert_ne!(compare(&lab, &[]).code, Some(2));
    let said = compare(&lab, &["--threshold", "0"]).code(2);
    assert!(said.err.contains("--threshold 5%"), "{}", said.err);
    std::fs::write(lab.path("new.jsonl"), "{}\n").unwrap();
    assert!(compare(&lab, &[]).code(2).err.contains("no `run` record"));
}
