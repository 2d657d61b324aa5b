//! The first screen, as users see it.

use super::*;
use crate::render::text::TEXT;

fn screen(model: &Model, options: &Options) -> String {
    let mut out = Vec::new();
    TEXT.write(Document::Run(model), options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// `PICKFS_WRITE_SCREENS=1` writes them anew: look at each before it is committed.
#[test]
fn the_screens_of_a_default_run_are_as_they_were_looked_at() {
    let fixtures = std::path::Path::new("../../fixtures");
    let folded = journal::fold_file(&fixtures.join("journals/default-run.jsonl")).unwrap();
    let mut model = model(&folded).unwrap();
    model.journal = "pickfs-runs/run.jsonl".into();
    let plain = Options { lines: Some(25), ..Options::default() };
    for (name, options) in [
        ("60-columns.txt", Options { width: 60, ..plain }),
        ("80-columns.txt", Options { width: 80, ..plain }),
        ("200-columns.txt", Options { width: 200, ..plain }),
        ("80-columns-ascii.txt", Options { width: 80, unicode: false, ..plain }),
        ("80-columns-colour.txt", Options { width: 80, color: true, ..plain }),
    ] {
        let path = fixtures.join("screens").join(name);
        let said = screen(&model, &options);
        if std::env::var_os("PICKFS_WRITE_SCREENS").is_some() {
            std::fs::write(&path, &said).unwrap();
        }
        assert_eq!(said, std::fs::read_to_string(&path).unwrap(), "{name}");
        assert!(options.unicode || said.is_ascii(), "{name}");
    }
}

/// With several works over 20 targets, the answer to each is there.
#[test]
fn many_targets_and_works_fit_on_one_screen() {
    let names: Vec<String> = (0..20).map(|n| format!("btrfs zstd:{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let factors: Vec<f64> = (0..20).map(|n| 1.0 + 0.05 * f64::from(n)).collect();
    let mut lab = Lab::new(&names);
    lab.rounds(12, &factors);
    let tree: Vec<String> = lab.records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    for work in ["mail", "web"] {
        lab.plan.works.push(Work { name: work.into(), ..Work::default() });
        let lines = tree.join("\n").replace("\"cell\":\"", &format!("\"cell\":\"{work} "));
        let lines = lines.replace("\"tree\"", &format!("\"{work}\""));
        lab.records.extend(lines.lines().map(|line| serde_json::from_str::<Record>(line).unwrap()));
    }
    let model = lab.model();
    let of = |lines| screen(&model, &Options { lines, ..Options::default() });
    let said = of(Some(24));
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    for word in ["tree", "mail", "web", "more: pickfs"] {
        assert!(said.contains(word), "no {word} in\n{said}");
    }
    assert!(said.lines().count() <= 30, "{said}");
    // A larger terminal has room for all, and so has a file.
    for said in [of(Some(80)), of(None)] {
        assert!(names.iter().all(|name| said.contains(&format!("\n  {name}"))), "{said}");
        assert!(!said.contains("more: pickfs"), "{said}");
    }
}

/// A report names the trace, or the user's own tree, behind the work.
#[test]
fn what_a_work_replays_is_named() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(3, &[1.0, 1.2]);
    for (setting, value, wanted) in [
        ("trace", "git-clone", "tree (git-clone) ·"),
        ("source", "/nowhere/mail/", "tree (mail) ·"),
        ("scale", "2", "tree ·"),
    ] {
        lab.plan.works[0].workload.settings.0 = [(setting.to_string(), value.into())].into();
        for format in ["text", "full", "html"] {
            let said = rendered(&lab.model(), format);
            assert!(said.contains(wanted), "{format}: no {wanted} in\n{said}");
        }
    }
}

/// What all are compared with is shown where others are left out.
#[test]
fn a_slow_reference_is_on_the_screen() {
    let names: Vec<String> = (0..12).map(|n| format!("t{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lab = Lab::new(&names);
    lab.rounds(9, &[vec![2.0], vec![1.0; 11]].concat());
    let said = screen(&lab.model(), &Options { lines: Some(24), ..Options::default() });
    let row = |name: &str| said.lines().any(|line| line.starts_with(&format!("  {name} ")));
    assert!(said.contains("more: pickfs") && row("t00") && said.contains("reference"), "{said}");
}

/// A failed target leaves a line with its cause, and nothing that looks like a time.
#[test]
fn what_failed_is_on_the_screen() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(9, &[1.0, 1.2]);
    (1..=9).for_each(|round| lab.fail(2, round, Outcome::Failed("No space left on device".into())));
    let said = screen(&lab.model(), &Options::default());
    assert!(said.contains("Missing: ") && said.contains("No space left on device"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("  btrfs")), "{said}");
}

/// An image is made empty, which is not judged, before anything lies in it; what is removed at the
/// end was there before.
#[test]
fn the_data_of_a_work_are_the_most_of_its_judged_phases() {
    let mut lab = Lab::new(&["ext4"]);
    lab.rounds(3, &[1.0]);
    for (phase, bytes) in [("write", 192e3), ("tar-read", 96e6), ("remove", 1e3)] {
        lab.also(0, phase, "space_apparent_bytes", bytes);
    }
    for (judged, wanted) in [(&[][..], 96e6), (&["write", "remove"][..], 192e3), (&["stat-walk"][..], 96e6)] {
        lab.plan.works[0].judged.phases = judged.iter().map(ToString::to_string).collect();
        assert_eq!(lab.model().works[0].data.bytes, Some(wanted), "{judged:?}");
    }
}
