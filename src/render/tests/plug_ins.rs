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
