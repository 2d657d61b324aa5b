//! The page that makes a result citable: question, answer, grade, what it was measured on, what
//! differs from defaults, how it was measured, how to do it again. Benchmarks that are trusted have
//! one for each result (SPEC and TPC call it that).

use super::{Finding, Grade, RULES};
use crate::analysis::Model;
use crate::render::markdown;
use crate::wording::text::{counted, escaped};
use std::fmt::Write;

/// A heading and its lines.
pub struct Section {
    title: &'static str,
    lines: Vec<String>,
}

/// What the audit came to.
pub struct Audited<'a> {
    pub findings: &'a [Finding],
    pub grade: Grade,
    /// SHA-256 of the journal, which names the run.
    pub name: &'a str,
}

impl Grade {
    pub fn word(self) -> &'static str {
        match self {
            Grade::Reproduced => "Reproduced",
            Grade::ByTheRules => "By the rules",
            Grade::Open => "Open",
            Grade::Broken => "Broken",
        }
    }
}

pub fn disclosure(model: &Model, audited: &Audited) -> Vec<Section> {
    let section = |title, lines| Section { title, lines };
    // The lines before them have these already.
    let known = ["cpu", "cpus", "memory", "system", "kernel"];
    let facts = model.host.iter().filter(|fact| !known.contains(&fact.name.as_str()));
    let facts = facts.map(|fact| format!("{}: {}", fact.name, fact.value));
    let mut machine: Vec<String> = model.system().into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
    machine.extend(facts);
    let all = [
        section("Question", [vec![model.title.clone(), model.setting()], vec![model.circumstances()]].concat()),
        section("Answer", model.headlines()),
        section("Grade", grade(audited)),
        section("Machine", machine),
        section("File systems, as read back", targets(model)),
        section("How it was measured", method(model)),
        section("Left out, and why", model.not_measured()),
        section("Doubts", model.warnings()),
        section("Again, and how to cite it", again(model, audited)),
    ];
    let all = all.map(|one| Section { lines: one.lines.into_iter().filter(|line| !line.is_empty()).collect(), ..one });
    all.into_iter().filter(|one| !one.lines.is_empty()).collect()
}

fn grade(audited: &Audited) -> Vec<String> {
    let rules = || (1..).zip(RULES).zip(audited.findings);
    let kept = rules().filter(|(_, finding)| **finding == Finding::Kept).count();
    let mut lines = vec![format!("{}: {kept} of {} rules are kept", audited.grade.word(), RULES.len())];
    for ((number, rule), finding) in rules() {
        let (word, places) = match finding {
            Finding::Kept => continue,
            Finding::NotAsked => ("had nothing to be held against", &[][..]),
            Finding::Open(places) => ("is open", &places[..]),
            Finding::Broken(places) => ("is broken", &places[..]),
        };
        let places = match places {
            [] => String::new(),
            [one] => format!(": {one}"),
            [one, more @ ..] => format!(": {one}, and {}", counted(more.len(), "further place")),
        };
        lines.push(format!("rule {number}, {}, {word}{places}", rule.name));
    }
    lines
}

fn targets(model: &Model) -> Vec<String> {
    let shown = model.targets.iter().filter(|target| !target.duplicate);
    let line = |target: &crate::analysis::TargetInfo| {
        let weakened = (!target.weakened.is_empty()).then(|| format!("weakened: {}", target.weakened.join(", ")));
        let known = [Some(target.mkfs.to_string()), Some(target.mount.to_string()), weakened];
        let known: Vec<String> = known.into_iter().flatten().filter(|line| !line.is_empty()).collect();
        format!("{}: {}", target.name, if known.is_empty() { "not known".to_string() } else { known.join("; ") })
    };
    shown.map(line).collect()
}

fn method(model: &Model) -> Vec<String> {
    let floors = model.works.iter().map(|work| work.noise_floor(model));
    let fewer = if model.may_need_fewer { " at most: the run ends when it is decided" } else { "" };
    let cells = format!("{}{fewer}", counted(model.planned_cells, "cell"));
    let order = "in each round the targets came in an order drawn from the seed of the plan".to_string();
    let measured = if model.raw.imported.is_empty() { vec![cells, order] } else { Vec::new() };
    measured.into_iter().chain(floors).chain(model.course()).collect()
}

fn again(model: &Model, audited: &Audited) -> Vec<String> {
    let run = match model.raw.imported.as_str() {
        "" => "The same plan on another machine, once you have read its commands: pickfs run --trust --again JOURNAL"
            .to_string(),
        from => format!("The figures are those of {from}, which pickfs did not run"),
    };
    let version = if model.pickfs.is_empty() { String::new() } else { format!("pickfs {}, ", model.pickfs) };
    let title = if model.title.is_empty() { "A comparison of file systems" } else { &model.title };
    vec![
        run,
        "The grade from the journal alone: pickfs audit JOURNAL".to_string(),
        format!("The run is named by the SHA-256 of its journal: {}", audited.name),
        format!("Cite it as: {title}. {version}{}, sha256 {}", day(&model.started), audited.name),
    ]
}

fn day(started: &str) -> &str {
    started.get(..10).unwrap_or("no date")
}

pub fn as_markdown(sections: &[Section]) -> String {
    let mut text = "# Disclosure\n".to_string();
    for section in sections {
        let _ = write!(text, "\n## {}\n\n", section.title);
        section.lines.iter().for_each(|line| text += &format!("- {}\n", markdown::escaped(line)));
    }
    text
}

pub fn as_html(sections: &[Section]) -> String {
    let mut body = String::new();
    for section in sections {
        let items: String = section.lines.iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
        let _ = write!(body, "<h2>{}</h2>\n<ul>\n{items}</ul>\n", section.title);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Disclosure</title>\n<style>:root{{color-scheme:light dark}}body{{font:1rem/1.5 system-ui;max-width:50rem;\
         margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}}</style>\n<h1>Disclosure</h1>\n{body}</html>\n"
    )
}
