//! The page: what is in it, in which order, and that nothing of a journal is markup in it.

use super::*;
use std::collections::BTreeMap;

/// The block of JSON that the script reads.
fn island(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"judged\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn made_up() -> Model {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(9, &[1.0, 0.9, 1.3]);
    for target in 0..3 {
        lab.also(target, "write", "space_grown_bytes", 1e6 * (1.0 + target as f64));
    }
    lab.model()
}

#[test]
fn the_verdict_stands_before_all_charts() {
    let model = made_up();
    let page = rendered(&model, "html");
    let at = |what: &str| page.find(&what.replace(" %", "\u{a0}%")).unwrap_or_else(|| panic!("no {what}"));
    let [answer, rest] = &model.headlines_in_parts()[0];
    let rest = rest.trim_start();
    assert!(!rest.is_empty() && at(answer) < at(rest) && at(rest) < at("class=\"forest\""));
    assert!(at("class=\"forest\"") < at("<figure"));
    assert!(at("Rounds in order") < at("id=\"trade-offs\"") && at("id=\"trade-offs\"") < at("id=\"missing\""));
}

#[test]
fn what_is_slower_is_set_apart_from_any_answer() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(8, &[1.0, 1.3]).cell(2, 1, 1.0);
    let [answer, rest] = &lab.model().headlines_in_parts()[0];
    assert!(answer.ends_with(" (95 %), of those with enough rounds."), "{answer}");
    assert!(rest.starts_with(" Slower: xfs (+") && rest.ends_with(" Not ranked: btrfs."), "{rest}");
}

/// With more targets than are judged in pairs, only the plan's reference can be chosen; nor can a
/// target without a figure.
#[test]
fn nobody_is_offered_as_a_reference_who_was_not_judged() {
    let offered = |targets: usize, measured: usize| {
        let names: Vec<String> = (1..=targets).map(|number| format!("target {number}")).collect();
        let mut lab = Lab::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
        lab.rounds(6, &vec![1.0; measured]);
        rendered(&lab.model(), "html").matches("<option").count()
    };
    assert_eq!(offered(30, 30), 30);
    assert_eq!(offered(31, 31), 1);
    assert_eq!(offered(4, 3), 3);
}

/// Whatever target is taken as the reference, the page has what was judged in Rust, word for word.
#[test]
fn every_reference_has_been_judged() {
    let model = made_up();
    let panels = &island(&rendered(&model, "html"))["panels"];
    for (number, panel) in model.works[0].phases.iter().enumerate() {
        for reference in 0..3 {
            let marks = panels[number.to_string()][reference.to_string()]["marks"].as_array().unwrap().clone();
            for (row, mark) in panel.rows.iter().zip(marks) {
                let shown = mark[5].as_str().unwrap();
                match row.compared_with(reference) {
                    Some(found) => {
                        assert!(shown.starts_with(&format!("×{}", found.ratio())), "{shown}");
                        assert!(mark[6].as_str().unwrap().starts_with(&found.words()), "{mark}");
                    }
                    None => assert_eq!((shown, row.target), ("reference", reference)),
                }
            }
        }
    }
}

/// The one that the plan names is judged once: the others agree with it, the other way round.
#[test]
fn pairs_agree_with_each_other() {
    let model = made_up();
    for panel in &model.works[0].phases {
        for row in &panel.rows {
            let (own, judged) = (row.against.as_ref(), row.compared_with(0));
            assert_eq!(own.map(|found| found.ratio()), judged.map(|found| found.ratio()));
            for other in panel.rows.iter().filter(|other| other.target != row.target) {
                let there = row.compared_with(other.target).unwrap().estimate.ratio;
                let back = other.compared_with(row.target).unwrap().estimate.ratio;
                assert!((there * back - 1.0).abs() < 1e-9, "{there} {back}");
            }
        }
    }
}

#[test]
fn nothing_of_a_journal_is_markup() {
    let hostile = "</script><!--<script>alert(1)</script><img src=x onerror=alert(1)>&\u{2028}\"'`\u{1b}[2J";
    let long = "<b>".repeat(300_000);
    let mut lab = Lab::new(&[hostile, &long, "xfs"]);
    lab.plan.title = format!("{hostile}{long}");
    lab.plan.works[0].name = "tree".into();
    lab.rounds(8, &[1.0, 0.9, 1.1]);
    lab.fail(2, 9, Outcome::Failed(hostile.into()));
    lab.flag(0, 2, hostile, hostile, hostile);
    lab.provenance(0, 1, &[(hostile, hostile)], &[hostile]);
    lab.provenance(0, 0, &[(hostile, &long)], &[]);
    for value in [f64::NAN, f64::INFINITY, -0.0, 1e308, -1e308] {
        lab.also(0, hostile, "time_ns", value);
    }
    let mut model = lab.model();
    model.journal = hostile.into();
    let page = rendered(&model, "html");
    assert!(page.len() < 3 << 20, "{}", page.len());
    let ours = |what: &str, times: usize| assert_eq!(page.matches(what).count(), times, "{what}");
    // Ours are the block of JSON and the script.
    ["<script", "</script"].into_iter().for_each(|what| ours(what, 2));
    ["<img", "<!--", "<b><b>", "onerror=alert(1)>", "\u{2028}", "\u{1b}"].into_iter().for_each(|what| ours(what, 0));
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    island(&page);
}

/// No browser could tell two targets apart by hue alone, and none has to.
#[test]
fn no_two_targets_look_alike() {
    let names: Vec<String> = (0..20).map(|at| format!("t{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let model = Lab::new(&names).rounds(3, &[1.0; 20]).model();
    let page = rendered(&model, "html");
    let mut looks: BTreeMap<&str, usize> = BTreeMap::new();
    let key = page.split_once("class=\"key\"").unwrap().1.split_once("</ul>").unwrap().0;
    for item in key.split("<li").skip(1) {
        let look = item.split_once("<svg class=\"mark").unwrap().1.split_once(" x=").unwrap().0;
        *looks.entry(look).or_default() += 1;
    }
    assert_eq!((looks.len(), looks.values().max()), (20, Some(&1)), "{looks:?}");
}

/// What stands among the warnings is in doubt too.
#[test]
fn nothing_is_in_doubt_where_nothing_is() {
    let mut model = Lab::new(&["ext4", "xfs"]).rounds(8, &[1.0, 0.9]).model();
    model.doubts.clear();
    let end =
        |model: &Model| rendered(model, "html").contains("Every planned cell was measured, and nothing is in doubt.");
    assert!(end(&model));
    model.doubts.push(Warning::EmulatedProcessor);
    assert!(!end(&model) && rendered(&model, "html").contains("Every planned cell was measured."));
}

#[test]
fn many_rounds_are_thinned_and_it_is_said() {
    let model = Lab::new(&["ext4", "xfs"]).rounds(300, &[1.0, 0.9]).model();
    let page = rendered(&model, "html");
    assert!(page.contains("each point is the median of 5 rounds"));
    assert!(page.len() < 400_000, "{}", page.len());
}
