//! What a workload measures itself: latencies in their own tables, rates, and the small print.

use super::*;
use crate::wording::marks;

const MS: f64 = 1e6;

/// Appends of 8 rounds, of which the slowest hundredth takes so much longer than on ext4, and how
/// many a second.
fn appended(slower: &[f64]) -> Lab {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs zstd:1"][..slower.len()]);
    lab.rounds(8, &[1.0, 1.0, 1.0][..slower.len()]);
    for (target, slower) in slower.iter().enumerate() {
        for (end, value) in
            [("p50_ns", MS), ("p99_ns", 8.0 * MS * slower), ("p999_ns", 30.0 * MS), ("max_ns", 90.0 * MS)]
        {
            lab.also(target, "write", &format!("append_{end}"), value);
            lab.also(target, "remove", &format!("latency_{end}"), value);
        }
        for (end, value) in [("p90_ns", 3.0 * MS), ("mean_ns", 2.0 * MS), ("operations", 5000.0)] {
            lab.also(target, "write", &format!("append_{end}"), value);
        }
        lab.also(target, "write", "appends_per_second", 700.0);
    }
    lab
}

fn table<'a>(model: &'a Model, title: &str) -> &'a Table {
    let titles: Vec<String> = model.works[0].beside.iter().map(|table| table.title()).collect();
    model.works[0].beside.iter().find(|table| table.title() == title).unwrap_or_else(|| panic!("{title}: {titles:?}"))
}

#[test]
fn only_the_99th_percentile_is_compared_and_a_tenth_does_not_matter() {
    let model = appended(&[1.0, 1.06, 1.5]).model();
    let found = table(&model, "Latency: write, append");
    let names: Vec<&str> = found.panels.iter().map(|panel| panel.name.as_str()).collect();
    assert_eq!(names, ["p50", "p99", "p99.9", "longest"]);
    let signs = |row: &Row| Some(marks::signs(&marks::of_ratio(row.against.as_ref()?)));
    let marks = |panel: &Panel| panel.rows.iter().map(signs).collect::<Vec<_>>();
    assert_eq!(marks(&found.panels[1]), [None, Some(" =".to_string()), Some(String::new())]);
    assert_eq!(found.panels[1].threshold, 0.1);
    assert!(found.panels[1].rows[2].against.as_ref().unwrap().words().contains("50 % more time than ext4"));
    for other in [0, 2, 3] {
        assert_eq!(marks(&found.panels[other]), [None, None, None]);
    }
    assert_eq!(table(&model, "Latency: remove").panels[1].rows[0].figure.as_ref().unwrap().shown(), "8.00 ms");
}

#[test]
fn rates_are_shown_and_the_rest_of_latencies_is_small_print() {
    let model = appended(&[1.0, 1.5]).model();
    let names = |title: &str| table(&model, title).panels.iter().map(|panel| panel.metric.clone()).collect::<Vec<_>>();
    assert_eq!(names("Measured by the workload itself"), ["appends_per_second"]);
    assert_eq!(table(&model, "Measured by the workload itself").panels[0].name, "write: appends");
    let details = names("Details");
    for metric in ["append_p90_ns", "append_mean_ns", "append_operations"] {
        assert!(details.iter().any(|known| known == metric), "{metric} is not in {details:?}");
    }
    assert!(!details.iter().any(|metric| metric == "append_p99_ns"), "{details:?}");
}

#[test]
fn a_table_of_latencies_is_one_table_at_80_columns() {
    let model = appended(&[1.0, 1.06, 1.5]).model();
    let mut out = Vec::new();
    text::FULL.write(Document::Run(&model), &Options::default(), &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    let below = page.split("Latency: write, append\n").nth(1).unwrap_or_else(|| panic!("{page}"));
    let table: Vec<&str> = below.lines().take_while(|line| !line.is_empty()).collect();
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{table:#?}");
    let headings: Vec<&&str> = table.iter().filter(|line| line.contains("p50") || line.contains("longest")).collect();
    assert!(headings.len() == 1 && headings[0].contains("p99.9") && headings[0].contains("longest"), "{table:#?}");
    assert!(table.iter().any(|line| line.contains("×1.50")), "{table:#?}");
}
