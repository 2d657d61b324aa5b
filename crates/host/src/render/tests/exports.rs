//! Every format, over the list of them: hostile text is inert, the same journal gives the same
//! bytes, and what is no number is never written as one.

use super::lab::{Lab, rendered};
use crate::analysis::Model;
use crate::render::{ALL, Document, Format, Kind, Options, find, names, written};
use crate::wording::{between_runs, marks};
use pickfs_core::journal::Outcome;

fn bytes(format: &Format, model: &Model) -> Vec<u8> {
    let mut out = Vec::new();
    format.write(Document::Run(model), &Options::default(), &mut out).unwrap();
    out
}

/// What has been put into labels of all kinds.
const HOSTILE: [&str; 8] = [
    "<script>alert('x')</script>",
    "\u{1b}[31mred\u{1b}]0;title\u{7}",
    "=HYPERLINK(\"http://x\",\"y\")",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1\t-2\r\n\"quoted\", and more",
    "](javascript:alert(1)) ![x](http://x) <!-- ]]> -->",
    "\u{202e}drawkcab\u{200b}\u{feff}\u{ffff}\u{0}",
    "</text:p></table:table-cell>&amp;&#0;%s%n${HOME}`id`",
];

fn hostile() -> Model {
    let mut lab = Lab::new(&HOSTILE);
    lab.plan.title = HOSTILE.concat();
    lab.plan.works[0].workload.name = HOSTILE[1].into();
    lab.rounds(6, &[1.0; 8]);
    for (at, name) in HOSTILE.iter().enumerate() {
        lab.also(at, name, "time_ns", 2e9).also(at, name, &format!("{name}_bytes"), 7.0);
        lab.fail(at, 9, Outcome::Failed(name.to_string()));
        lab.flag(at, 2, name, name, name);
        lab.provenance(at, 1, &[("mkfs", name), ("mount", name), (name, name)], &[name]);
    }
    lab.provenance(0, 0, &[("cpu", HOSTILE[1]), ("kernel", HOSTILE[0]), (HOSTILE[4], HOSTILE[5])], &[]);
    lab.model()
}

#[test]
fn hostile_text_is_inert_in_every_format() {
    let model = hostile();
    for format in ALL {
        let said = rendered(&model, format.name);
        let steers = |c: &char| {
            (c.is_control() && !matches!(c, '\n' | '\r'))
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}' | '\u{ffff}')
        };
        assert_eq!(said.chars().find(steers), None, "{}", format.name);
        // What is not for a browser may hold it as text; what is, or could be taken for it, may
        // not.
        if !matches!(format.name, "full" | "text" | "csv" | "csv-summary" | "prometheus")
            && !said.starts_with(['{', '['])
        {
            assert!(!said.contains("<script>alert") && !said.contains("<!-- ]]"), "{}", format.name);
        }
    }
}

#[test]
fn json_is_json_and_xml_is_xml_whatever_it_says() {
    let model = hostile();
    for name in ["bmf", "github-action-benchmark", "hyperfine", "json"] {
        let said = rendered(&model, name);
        let found: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(found.is_object() || found.is_array());
    }
    for name in ["ods", "phoronix", "svg"] {
        let said = rendered(&model, name);
        let mut reader = quick_xml::Reader::from_str(&said);
        reader.config_mut().check_end_names = true;
        while !matches!(reader.read_event().unwrap_or_else(|e| panic!("{name}: {e}")), quick_xml::events::Event::Eof) {}
    }
}

#[test]
fn no_cell_of_a_table_is_a_formula() {
    let model = hostile();
    for name in ["csv", "csv-summary"] {
        let said = rendered(&model, name);
        let mut rows = ::csv::Reader::from_reader(said.as_bytes());
        for row in rows.records().map(Result::unwrap) {
            let runs = row.iter().find(|cell| cell.starts_with(['=', '+', '@', '\t', '\r', '\n']));
            let minus = row.iter().find(|cell| cell.starts_with('-') && cell.parse::<f64>().is_err());
            assert_eq!((runs, minus), (None, None), "{name}");
        }
    }
    assert!(!rendered(&model, "ods").contains("table:formula"));
}

/// As the node exporter reads it: each family begins with its type and stands together, no sample
/// comes twice, and no label gets out of its quotes.
#[test]
fn a_textfile_for_prometheus_is_one() {
    let calm = Lab::new(&["ext4", "xfs"]).rounds(6, &[1.0, 0.8]).model();
    for model in [&hostile(), &calm] {
        let said = rendered(model, "prometheus");
        let (mut families, mut seen, mut at) = (Vec::new(), std::collections::HashSet::new(), "");
        for line in said.lines().filter(|line| !line.starts_with("# HELP")) {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                at = family.strip_suffix(" gauge").unwrap();
                assert!(!families.contains(&at), "{at} twice");
                families.push(at);
                continue;
            }
            let (labels, value) = line.rsplit_once("} ").unwrap();
            let (name, labels) = labels.split_once('{').unwrap();
            assert!(name == at && value.parse::<f64>().is_ok() && seen.insert((at, labels)), "{line}");
            let unescaped = labels.replace("\\\\", "").replace("\\\"", "");
            let pairs = unescaped.strip_suffix('"').unwrap().split("\",");
            let is_label =
                |(key, value): (&str, &str)| key.chars().all(|c| c.is_ascii_lowercase()) && !value.contains('"');
            assert!(pairs.into_iter().all(|pair| pair.split_once("=\"").is_some_and(is_label)), "{line}");
        }
    }
    let said = rendered(&calm, "prometheus");
    for wanted in [
        "pickfs_time_seconds{target=\"xfs\",work=\"tree\",phase=\"whole job\"} ",
        "pickfs_pick{target=\"xfs\",work=\"tree\"} 1\n",
        "pickfs_pick{target=\"ext4\",work=\"tree\"} 0\n",
        "pickfs_at_most_slower{target=\"ext4\",work=\"tree\"} 0.",
        "phase=\"whole job\",reference=\"ext4\"} 0.",
        "pickfs_rounds{target=\"ext4\",work=\"tree\",phase=\"whole job\"} 6\n",
    ] {
        assert!(said.contains(wanted), "no {wanted} in {said}");
    }
}

/// Names of targets, works and phases, and facts of the machine.
#[test]
fn hostile_text_is_inert_in_a_comparison() {
    let mut lab = Lab::new(&HOSTILE);
    lab.rounds(5, &[1.0; 8]);
    let old = lab.folded();
    for (at, name) in HOSTILE.iter().enumerate() {
        lab.also(at, name, "time_ns", 2e9);
        lab.provenance(at, 1, &[(&format!("version {name}"), name)], &[]);
    }
    lab.provenance(0, 0, &[("kernel", HOSTILE[1]), (HOSTILE[4], HOSTILE[5])], &[]);
    let new = lab.folded();
    let (old, new) = ((old.run.as_ref().unwrap(), &old), (new.run.as_ref().unwrap(), &new));
    assert!(between_runs::differences(old, new).is_empty());
    let runs =
        between_runs::comparison(&[old], &[], new, crate::analysis::Accepted { threshold: 0.05, scatter: Some(0.03) });
    assert!(!runs.facts.is_empty());
    for format in names(Kind::Comparison) {
        let said = written(format, Document::Comparison(&runs), &Options::default()).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert_eq!(said.chars().find(|c| c.is_control() && *c != '\n'), None, "{format}");
        assert!(format != "markdown" || !said.contains("<script") && !said.contains("<!--"), "{said}");
        assert!(format != "json" || serde_json::from_str::<serde_json::Value>(&said).is_ok());
    }
}

#[test]
fn the_same_journal_gives_the_same_bytes() {
    for format in ALL {
        let [one, two] = [(), ()].map(|()| bytes(format, &hostile()));
        assert!(one == two, "{}", format.name);
    }
}

/// As far from a number as a journal can get: zeros, the largest and the smallest.
#[test]
fn what_is_no_number_is_written_as_none() {
    let mut lab = Lab::new(&["a", "b"]);
    lab.rounds(4, &[1.0, 1.0]);
    for (at, value) in [(0, 0.0), (1, f64::MAX), (0, f64::MIN_POSITIVE), (1, -0.0)] {
        lab.also(at, "odd", "time_ns", value).also(at, "odd", "work_bytes", f64::MAX);
    }
    let model = lab.model();
    for format in ALL {
        let said = rendered(&model, format.name);
        let words = ["NaN", "nan,", "inf,", "Infinity", ":inf", "\"inf"];
        let found = words.iter().find_map(|word| Some((word, said.split_once(word)?.0)));
        let before = found.map(|(word, before)| (word, before.chars().rev().take(80).collect::<String>()));
        assert_eq!(before, None, "{}", format.name);
        if said.starts_with(['{', '[']) {
            serde_json::from_str::<serde_json::Value>(&said).unwrap();
        }
    }
}

#[test]
fn names_of_half_a_megabyte_are_cut() {
    let name = "x".repeat(1 << 19);
    let mut lab = Lab::new(&[&name, "b"]);
    lab.plan.title = name.clone();
    let model = lab.rounds(3, &[1.0, 1.0]).model();
    for format in ALL {
        let size = bytes(format, &model).len();
        assert!(size < 1 << 20, "{}: {size} bytes", format.name);
    }
}

/// By construction, as all formats take marks and meanings from one list; this finds one that does
/// not.
#[test]
fn every_format_that_shows_ratios_marks_and_explains_their_caveats() {
    let mut lab = Lab::new(&["ext4", "xfs", "btrfs"]);
    lab.rounds(9, &[1.0, 0.9, 1.3]);
    let mut model = lab.model();
    for panel in model.works.iter_mut().flat_map(|work| &mut work.phases) {
        let row = &mut panel.rows[1];
        row.unproven_cache = true;
        let ratios = row.against.iter_mut().chain(row.others.iter_mut().flatten());
        ratios.for_each(|found| found.rests_on_symmetry = true);
    }
    let used = marks::used(&model.works[0].phases);
    assert_eq!(used.iter().map(|mark| mark.sign).collect::<String>(), "*†^");
    let text = |format: &str| rendered(&model, format).split_whitespace().collect::<Vec<_>>().join(" ");
    for format in ["html", "markdown", "svg", "full"] {
        let said = text(format).replace("<tspan>", "").replace('\\', "");
        let marked = format!("×{} ^", model.works[0].phases[0].rows[1].against.as_ref().unwrap().ratio());
        assert!(said.contains(&marked), "{format}: no {marked}");
        for mark in &used {
            assert!(said.contains(mark.sign), "{format}: {}", mark.sign);
            let lacking = mark.meaning.split(' ').find(|word| !said.contains(word));
            assert_eq!(lacking, None, "{format}: {}", mark.meaning);
        }
    }
    for format in ["csv-summary", "ods"] {
        let caveats = used.iter().filter(|mark| mark.caveat);
        assert!(caveats.clone().count() == 2 && caveats.into_iter().all(|mark| text(format).contains(mark.meaning)));
    }
    let json: serde_json::Value = serde_json::from_str(&text("json")).unwrap();
    let row = &json["works"][0]["times"][0]["rows"][1];
    assert_eq!(
        (&row["against_reference"]["rests_on_symmetry"], &row["cache_state_unproven"]),
        (&true.into(), &true.into())
    );
    // The first screen shows percentages; nothing in doubt looks clear there.
    let screen = text("text");
    assert!(screen.contains("−10 ?") || screen.contains("−10†"), "{screen}");
    assert!(screen.contains("† not every read was proved to come from the disk"), "{screen}");
    // The others hand on values of rounds, and no ratio.
    let mut others = names(Kind::Run);
    others.retain(|name| !text(name).contains(&model.works[0].phases[0].rows[1].against.as_ref().unwrap().ratio()));
    assert_eq!(
        others,
        [
            "bmf", "csv", "csv-summary", "github-action-benchmark", "hyperfine", "json", "ods", "phoronix",
            "prometheus", "text"
        ]
    );
}

/// All that a new format needs: this, and its line in `render::ALL`.
const PLANTED: Format = Format {
    name: "names",
    about: "names of targets, for this test",
    run: Some(|model, _, out| model.targets.iter().try_for_each(|target| writeln!(out, "{}", target.name))),
    ranking: Some(|choices, _, out| choices.iter().try_for_each(|choice| writeln!(out, "{}", choice.work))),
    ..Format::NONE
};

#[test]
fn a_new_format_is_one_file_and_one_line() {
    let model = Lab::new(&["ext4", "xfs"]).rounds(3, &[1.0, 1.0]).model();
    assert_eq!(bytes(&PLANTED, &model), b"ext4\nxfs\n");
    let mut out = Vec::new();
    PLANTED
        .write(Document::Ranking(&crate::wording::ranking::ranking(&[model])), &Options::default(), &mut out)
        .unwrap();
    assert_eq!(out, b"tree\n");
    assert_eq!([Kind::Run, Kind::Comparison, Kind::Ranking].map(|kind| PLANTED.shows(kind)), [true, false, true]);
}

#[test]
fn a_format_refuses_what_it_cannot_show() {
    let refused = find("csv").unwrap().write(Document::Ranking(&[]), &Options::default(), &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported);
    assert_eq!(names(Kind::Comparison), ["html", "json", "markdown", "text"]);
    assert_eq!(names(Kind::Ranking), ["html", "markdown", "text"]);
    assert_eq!(names(Kind::Run).len(), ALL.len());
}
