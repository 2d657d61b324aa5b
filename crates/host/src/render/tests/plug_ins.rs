//! A new metric or statistic is one row in its crate: no word of this crate names the ones that
//! this test looks for in what people and programs read.

use super::lab::{Lab, rendered};

/// A row of [`pickfs_core::metric::METRICS`] is all that the program knows of this metric.
#[test]
fn a_new_metric_is_one_row() {
    let metric = concat!("snapshots_exclusive", "_bytes");
    assert_not_named(metric);
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 1.3]).also(0, "write", metric, 4e9).also(1, "write", metric, 1e9);
    let model = lab.model();
    let text = rendered(&model, "full");
    for shown in ["in snapshots alone", "3.73 GiB"] {
        assert!(text.contains(shown), "no {shown} in {text}");
    }
    for format in ["json", "html", "csv-summary"] {
        let page = rendered(&model, format);
        assert!(page.contains(metric) || page.contains("in snapshots alone"), "{format}");
    }
}

/// A line of [`pickfs_stats::STATISTICS`] is all that the program knows of this statistic.
#[test]
fn a_new_statistic_is_one_file_and_one_line() {
    let statistic = concat!("\"standard ", "deviation\"");
    assert_not_named(statistic);
    let name = statistic.trim_matches('"');
    let mut lab = Lab::new(&["ext4", "xfs"]);
    let model = lab.rounds(8, &[1.0, 1.3]).model();
    let summary = rendered(&model, "csv-summary");
    assert!(summary.lines().next().is_some_and(|header| header.replace('_', " ").contains(name)), "{summary}");
    let json: serde_json::Value = serde_json::from_str(&rendered(&model, "json")).unwrap();
    let figure = &json["works"][0]["times"][0]["rows"][0]["figure"];
    assert!(figure["statistics"][name].is_f64(), "{figure}");
    assert!(rendered(&model, "ods").len() > 1000);
}

#[track_caller]
fn assert_not_named(name: &str) {
    let files = walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).into_iter().flatten();
    let named = files.filter(|file| std::fs::read_to_string(file.path()).is_ok_and(|text| text.contains(name)));
    let named: Vec<_> = named.map(|file| file.into_path()).collect();
    assert!(named.is_empty(), "{name}: {named:?}");
}

#[test]
fn a_heading_breaks_behind_the_whole_name_of_its_phase() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(4, &[1.0, 1.2]).also(0, "read: cold", "page_reads", 7.0);
    let text = rendered(&lab.model(), "full");
    assert!(text.contains(" read: cold: ") && !text.contains(" cold: page"), "{text}");
}
