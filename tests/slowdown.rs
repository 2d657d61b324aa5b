//! A slow-down of a known size, through the whole of pickfs: one target is born with more files to read than the other.
//! What the report says of it must be true.

mod common;

use common::{Lab, not_run, unable};
use pickfs::report::{self, Comparison, Model, VerdictKind};
use pickfs::stats::Finding;

const FILES: u32 = 100;
const BYTES: usize = 8192;

/// Runs `few` with so many files against `many` with so many more.
fn compared(lab: &Lab, more: u32) -> Model {
    for (name, files) in [("few", FILES), ("many", FILES + more)] {
        let folder = lab.path(name);
        std::fs::create_dir(&folder).expect("a folder");
        for number in 0..files {
            std::fs::write(folder.join(format!("file{number}")), vec![number as u8; BYTES]).expect("a file");
        }
    }
    let target = |name: &str| {
        let born_with = lab.path(name);
        format!("[[target]]\nname = \"{name}\"\nfs = \"ext4\"\nmkfs = [\"-d\", \"{}\"]\n", born_with.display())
    };
    let plan = format!(
        "backing = {{ memory = \"16MiB\" }}\n{}{}[[work]]\nworkload = \"meta.read\"\n[stop]\nrounds = 8\n",
        target("few"),
        target("many")
    );
    lab.run_plan(&plan).code(0);
    lab.assert_nothing_left();
    report::model(&lab.folded()).expect("the report is made")
}

fn many_against_few(model: &Model) -> &Comparison {
    let row = model.works[0].phases[0].rows.iter().find(|row| model.targets[row.target].name == "many");
    row.and_then(|row| row.against.as_ref()).expect("`many` is compared with `few`")
}

#[test]
fn a_fifth_more_work_is_found_and_its_size_told() {
    if not_run("a_fifth_more_work_is_found_and_its_size_told", unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let model = compared(&lab, FILES / 5);
    let (verdict, against) = (&model.works[0].verdict, many_against_few(&model));
    let (low, high) = against.estimate.interval.expect("eight rounds have an interval");
    assert!(1.1 < low && high < 1.3, "{}", against.shown);
    assert_eq!(against.finding, Some(Finding::Higher), "{}", against.words);
    let best: Vec<&str> = verdict.best.iter().map(|target| model.targets[*target].name.as_str()).collect();
    assert_eq!((verdict.kind, best), (VerdictKind::Pick, vec!["few"]), "{}", verdict.headline);
}

/// Far below the difference that matters; on a noisy machine it may stay unresolved.
#[test]
fn a_hundredth_more_work_is_no_difference_that_matters() {
    if not_run("a_hundredth_more_work_is_no_difference_that_matters", unable(&["ext4"])) {
        return;
    }
    let lab = Lab::new();
    let model = compared(&lab, FILES / 100);
    let against = many_against_few(&model);
    assert!(!matches!(against.finding, Some(Finding::Higher | Finding::Lower)), "{}", against.words);
    assert_ne!(model.works[0].verdict.kind, VerdictKind::Pick, "{}", model.works[0].verdict.headline);
    println!("{}", against.shown);
}
