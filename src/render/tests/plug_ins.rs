//! A new metric, mark or statistic is one file and one line: each is planted here, and looked for in what people and
//! programs read.

use super::lab::{Lab, rendered};

/// The planted row of [`crate::metric::METRICS`] is all that the program knows of this metric.
#[test]
fn a_new_metric_is_one_row() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    lab.rounds(8, &[1.0, 1.3]).also(0, "write", "planted_bytes", 4e9).also(1, "write", "planted_bytes", 1e9);
    let model = lab.model();
    let text = rendered(&model, "full");
    for shown in ["planted", "3.73 GiB", "less planted", "×0.25"] {
        assert!(text.contains(shown), "no {shown} in {text}");
    }
    assert!(model.criteria.as_ref().is_some_and(|criteria| criteria.names.contains(&"planted".to_string())));
    for format in ["json", "html", "csv-summary"] {
        assert!(rendered(&model, format).contains("planted"), "{format}");
    }
}

/// The planted line of [`crate::stats::STATISTICS`] is all that the program knows of this statistic: of eight rounds it is
/// 8.125.
#[test]
fn a_new_statistic_is_one_file_and_one_line() {
    let mut lab = Lab::new(&["ext4", "xfs"]);
    let model = lab.rounds(8, &[1.0, 1.3]).model();
    let summary = rendered(&model, "csv-summary");
    assert!(summary.lines().next().is_some_and(|header| header.ends_with(",planted")), "{summary}");
    assert!(summary.lines().skip(1).all(|line| line.ends_with(",8.125")), "{summary}");
    let json: serde_json::Value = serde_json::from_str(&rendered(&model, "json")).unwrap();
    let figure = &json["works"][0]["times"][0]["rows"][0]["figure"];
    assert_eq!(figure["statistics"]["planted"], 8.125, "{figure}");
    assert!(rendered(&model, "ods").len() > 1000);
}
