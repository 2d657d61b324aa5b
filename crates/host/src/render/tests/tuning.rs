//! Tunings in every format.

use super::super::{Document, Kind, Options, names, written};
use crate::wording::advice::{self, Advice};
use crate::wording::tuning::{Importance, Interval, Measured, Row, Tuned, is_effect};
use pickfs_core::plan::Target;
use pickfs_stats::Finding;

const HOSTILE: &str = "<script>`|";

fn row(option: &str, value: &str, ratio: f64, finding: Finding) -> Row {
    Row {
        setting: format!("{option}={value}"),
        option: option.into(),
        value: value.into(),
        effect: Interval { ratio, low: Some(ratio - 0.02), high: Some(ratio + 0.02), rounds: 8 },
        is_crossed: value != "128",
        finding,
        weakens: None,
        is_weak: false,
    }
}

fn tuned(place: &str, size: (f64, Finding)) -> Tuned {
    let target = Target { name: "ext4 inode_size=128".into(), fs: Some("ext4".into()), ..Target::default() };
    let advice: Option<Advice> = advice::of_target(&target, &["-I".into(), "128".into()], &[]);
    let importance = |option: &str, share: f64, is_settled| Importance { option: option.into(), share, is_settled };
    let stage =
        |name, configurations| Measured { name, journal: "my t/1-alone.jsonl".into(), configurations, rounds: 8 };
    Tuned {
        fs: "ext4".into(),
        work: HOSTILE.into(),
        place: place.into(),
        margin: 0.03,
        kind: crate::wording::tuning::Kind::Winner,
        settings: vec!["inode_size=128".into()],
        confirmed: Some(Interval { ratio: 0.9, low: Some(0.88), high: Some(0.92), rounds: 9 }),
        fine_within: None,
        default_within: Some(0.15),
        tried: 7,
        stages: vec![stage("alone", 4), stage("crossed", 5)],
        importance: vec![importance("inode_size", 0.9, is_effect(size.1)), importance("atime", 0.1, false)],
        effects: vec![row("inode_size", "128", size.0, size.1), row("atime", "noatime", 1.0, Finding::Tie)],
        not_measured: Vec::new(),
        commands: Vec::new(),
        advice,
    }
}

fn shown(format: &str, tunings: &[Tuned]) -> String {
    let text = written(format, Document::Tunings(tunings), &Options::default()).expect("a format of tunings");
    String::from_utf8(text).expect("text").replace('\u{a0}', " ").replace("\\_", "_")
}

#[test]
fn each_format_shows_each_effect_and_nothing_of_a_name_is_markup() {
    assert_eq!(names(Kind::Tunings), ["csv", "html", "json", "markdown", "svg", "text"]);
    for format in names(Kind::Tunings) {
        let text = shown(format, &[tuned("nvme", (0.9, Finding::Lower))]);
        for part in ["inode_size", "noatime", "no difference"] {
            let is_there = text.contains(part) || (format == "json" && text.contains(&part.replace(' ', "-")));
            assert!(is_there, "{format}: {part}: {text}");
        }
        if format == "text" {
            assert!(text.contains("\n  pickfs report 'my t/1-alone.jsonl'\n"), "{text}");
        }
        if ["html", "svg", "markdown"].contains(&format) {
            assert!(!text.contains("<script>"), "{format}: {text}");
        }
        if ["html", "markdown", "text"].contains(&format) {
            for part in ["7 configurations tried: alone 4 in 8 rounds", "mkfs.ext4 -I 128", "inode_size (90"] {
                assert!(text.contains(part), "{format}: {part}: {text}");
            }
        }
    }
}

#[test]
fn several_tunings_are_a_table_of_what_matters_where() {
    let both = [tuned("hdd", (0.9, Finding::Lower)), tuned("nvme", (1.0, Finding::Tie))];
    for format in ["text", "html", "markdown"] {
        let text = shown(format, &both);
        for part in ["hdd", "nvme", "128: −10 %, useful (90 %)", "no difference"] {
            let words = part.split(' ').all(|word| text.contains(word));
            assert!(words, "{format}: {part}: {text}");
        }
    }
    let rows = crate::wording::tuning::where_it_matters(&both).1;
    assert_eq!(rows[0], ["inode_size", "128: −10 %, useful (90 %)", "no difference"]);
    assert_eq!(rows[1], ["atime", "no difference", "no difference"]);
    assert_eq!(shown("csv", &both).lines().count(), 5);
}
