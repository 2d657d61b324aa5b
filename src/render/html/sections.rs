//! The parts of the page from top to bottom.

use super::markup::Markup;
use super::{forest, tables};
use crate::analysis::{Champion, Champions, Criteria, FlagGroup, Panel, Table, VerdictKind, WorkReport};
use crate::render::chart::series::{self, Chart};
use crate::render::chart::{Sheet, panels, shapes, works};
use crate::wording::marks;

pub fn verdict(page: &mut Markup, sheet: &Sheet) {
    let model = sheet.model;
    let title = if model.title.is_empty() { "pickfs" } else { &model.title };
    page.raw("<header><p class=\"kicker\">pickfs report</p>").element("h1", title);
    page.element("p class=\"machine\"", &model.machine).raw("</header>\n<main id=\"main\">\n");
    page.raw("<section id=\"verdict\" aria-labelledby=\"verdict-title\"><h2 id=\"verdict-title\">");
    page.text(works(model).next().map_or("No verdict", |work| kind(work.verdict.kind))).raw("</h2>");
    let (first, others) = model.headlines.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    page.element("p class=\"headline\"", first).list("ul class=\"others\"", others);
    page.list("ul class=\"course\"", &model.course);
    if !model.warnings.is_empty() {
        page.raw("<div class=\"care\"><h3><span aria-hidden=\"true\">⚠</span> Take care</h3>");
        page.list("ul", &model.warnings).raw("</div>");
    }
    page.raw("</section>\n");
}

fn kind(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Pick => "The pick",
        VerdictKind::Tie => "A tie",
        VerdictKind::Unresolved => "Not resolved",
        VerdictKind::Refused => "No verdict",
        VerdictKind::TooFewRounds => "Too few rounds",
        VerdictKind::Single => "One target",
        VerdictKind::Nothing => "Nothing to judge",
    }
}

/// Of use with the script alone, which shows it.
pub fn controls(page: &mut Markup, sheet: &Sheet) {
    let model = sheet.model;
    page.raw("<form id=\"controls\" hidden aria-label=\"What is shown\"><label>Compare with <select id=\"reference\">");
    let reference = works(model).find_map(|work| work.reference);
    for &target in sheet.shown.iter().filter(|target| reference == Some(**target) || is_judged_against(model, **target))
    {
        let selected = if reference == Some(target) { " selected" } else { "" };
        page.put(format_args!("<option value=\"{target}\"{selected}>"))
            .text(&model.targets[target].name)
            .raw("</option>");
    }
    page.raw("</select></label>");
    choices(page, "Targets", "t", sheet.shown.iter().map(|&t| (t.to_string(), model.targets[t].name.as_str())));
    let works: Vec<&WorkReport> = works(model).collect();
    if works.len() > 1 {
        choices(page, "Works", "work", works.iter().enumerate().map(|(at, work)| (at.to_string(), work.name.as_str())));
    }
    let mut phases: Vec<&str> = Vec::new();
    for panel in works.iter().flat_map(|work| &work.phases) {
        if !panel.phase.is_empty() && !phases.contains(&panel.phase.as_str()) {
            phases.push(&panel.phase);
        }
    }
    choices(page, "Phases", "phase", phases.iter().map(|phase| (phase.to_string(), *phase)));
    page.raw("<button type=\"button\" id=\"theme\">Dark</button><p id=\"said\" role=\"status\"></p></form>\n");
}

/// With many targets only pairs with the plan's reference are judged; a target without figures is in none.
fn is_judged_against(model: &crate::analysis::Model, target: usize) -> bool {
    let rows = works(model).flat_map(panels).flat_map(|panel| &panel.rows);
    rows.into_iter().any(|row| row.compared_with(target).is_some())
}

fn choices<'a>(page: &mut Markup, title: &str, kind: &str, entries: impl Iterator<Item = (String, &'a str)>) {
    page.put(format_args!("<details class=\"choices\"><summary>{title}</summary><fieldset><legend>{title}</legend>"));
    for (value, name) in entries {
        page.put(format_args!("<label><input type=\"checkbox\" checked data-kind=\"{kind}\" value=\"")).text(&value);
        page.raw("\"> ").text(name).raw("</label>");
    }
    page.raw("</fieldset></details>");
}

/// Who is who in the charts.
fn key(page: &mut Markup, sheet: &Sheet) {
    page.raw("<ul class=\"key\" aria-label=\"Targets\">");
    for &target in &sheet.shown {
        page.put(format_args!("<li data-t=\"{target}\">"));
        super::name(page, sheet, target);
        page.raw("</li>");
    }
    page.raw("</ul>\n");
}

/// `number` is that of the work's first panel.
pub fn work(page: &mut Markup, sheet: &Sheet, work: &WorkReport, (place, number): (usize, usize)) {
    page.put(format_args!("<section class=\"work\" data-work=\"{place}\" id=\"work-{place}\"><h2>"))
        .text(&work.name)
        .raw("</h2>\n");
    if let Some(overall) = sheet.model.overall.as_ref().filter(|overall| std::ptr::eq(&overall.work, work)) {
        page.element("p class=\"note\"", &overall.made_of);
        page.element("p class=\"note\"", overall.robustness.as_ref().map_or("", |robustness| &robustness.sentence));
    }
    page.list("ul class=\"notes\"", &work.verdict.notes);
    for (at, panel) in work.phases.iter().enumerate() {
        page.put(format_args!("<div class=\"panel\"{}>", tables::phase(&panel.phase)));
        forest::table(page, sheet, work, (at, number + at));
        page.raw("</div>");
    }
    page.element("p class=\"note\"", &work.noise).list("ul class=\"sentences\"", &work.sentences);
    beside(page, sheet, work, number + work.phases.len());
    charts_of(page, sheet, "Rounds in order", &series::rounds(sheet, work));
    charts_of(page, sheet, "Latency of single operations", &series::latencies(sheet, work));
    charts_of(page, sheet, "The device over time", &series::rates(sheet, work));
    page.raw("</section>\n");
}

/// A table of the page, and the number of its first panel for the script.
type Numbered<'a> = (usize, &'a Table);

fn beside(page: &mut Markup, sheet: &Sheet, work: &WorkReport, first: usize) {
    if work.beside.is_empty() {
        return;
    }
    let mut number = first;
    let numbered = work.beside.iter().map(|table| {
        number += table.panels.len();
        (number - table.panels.len(), table)
    });
    let (main, more): (Vec<Numbered>, Vec<Numbered>) = numbered.partition(|(_, table)| is_of_the_whole(table));
    page.raw("<h3>Beside the time</h3>").list("ul class=\"sentences\"", &work.trade_offs);
    page.raw("<div class=\"tables\">");
    main.iter().for_each(|(number, table)| tables::beside(page, sheet, work, table, *number));
    page.raw("</div>");
    if !more.is_empty() || !work.compression.is_empty() {
        page.raw("<details><summary>Every other figure</summary>");
        work.compression.iter().for_each(|found| tables::compression(page, sheet, work, found));
        more.iter().for_each(|(number, table)| tables::beside(page, sheet, work, table, *number));
        page.raw("</details>\n");
    }
}

/// What is compared over all phases, and the rate of the work: the rest explains, and is folded away.
fn is_of_the_whole(table: &Table) -> bool {
    let is_compared = |panel: &Panel| panel.phase.is_empty() && panel.rows.iter().any(|row| row.against.is_some());
    let is_rate = |panel: &Panel| panel.metric == "work_bytes_per_second";
    !table.detail && table.panels.iter().any(|panel| is_compared(panel) || is_rate(panel))
}

fn charts_of(page: &mut Markup, sheet: &Sheet, title: &str, charts: &[Chart]) {
    let Some(first) = charts.first() else { return };
    page.element("h3", title).element("p class=\"note\"", &first.about);
    key(page, sheet);
    page.raw("<div class=\"charts\">\n");
    charts.iter().for_each(|chart| figure(page, chart));
    page.raw("</div>\n");
}

fn figure(page: &mut Markup, chart: &Chart) {
    let plot = &chart.plot;
    page.put(format_args!("<figure{}><figcaption>", tables::phase(&chart.phase))).text(&chart.title);
    page.put(format_args!(
        "</figcaption><svg class=\"chart\" data-name=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"",
        chart.name, plot.width, plot.height
    ));
    page.text(&format!("{}. {}", chart.title, chart.about)).raw("\">").raw(&plot.body).raw("</svg></figure>\n");
}

pub fn champions(page: &mut Markup, sheet: &Sheet, champions: &Champions) {
    let name = |target: &usize| sheet.model.targets[*target].name.clone();
    let names = |targets: &[usize]| targets.iter().map(name).collect::<Vec<_>>().join(", ");
    page.raw("<section><h2>Best of each file system</h2>");
    tables::open(page, "figures", "", &format!("Time of {}", champions.of));
    page.raw("<thead><tr><th scope=\"col\">File system</th><th scope=\"col\">Best of it</th><th scope=\"col\">Tied with</th><th scope=\"col\">Not told apart from</th><th scope=\"col\">Time</th></tr></thead><tbody>");
    let row = |page: &mut Markup, row: &Champion| {
        page.raw("<tr>").element("th scope=\"row\"", &row.group);
        for cell in [name(&row.target), names(&row.ties), names(&row.open)] {
            page.raw("<td>").text(&cell).raw("</td>");
        }
        let time = row.against.as_ref().map_or("fastest".to_string(), |found| {
            format!("×{}{}", found.shown, marks::signs(&marks::of_ratio(found)))
        });
        page.element("td", time.trim_end()).raw("</tr>");
    };
    champions.rows.iter().for_each(|champion| row(page, champion));
    page.raw("</tbody>");
    tables::close(page);
    page.raw("</section>\n");
}

/// Once for each reference; the script shows the one that is chosen.
pub fn criteria(page: &mut Markup, sheet: &Sheet, criteria: &Criteria) {
    page.raw("<section id=\"all-round\"><h2>All round</h2><p class=\"note\">What cannot be added up, side by side: less is better in all.</p>");
    key(page, sheet);
    for (at, row) in criteria.rows.iter().enumerate() {
        let hidden = if row.target == criteria.reference { "" } else { " hidden" };
        page.put(format_args!("<div data-reference=\"{}\"{hidden}><div class=\"charts\">", row.target));
        series::criteria(sheet, criteria, at).iter().for_each(|chart| figure(page, chart));
        page.raw("</div>");
        tables::criteria(page, sheet, criteria, at);
        page.raw("</div>");
    }
    page.raw("</section>\n");
}

/// What is missing, in doubt, and was in effect; where the time went.
pub fn tail(page: &mut Markup, sheet: &Sheet) {
    let model = sheet.model;
    page.raw("<section id=\"missing\"><h2>Not measured, and doubts</h2>");
    let weakened = model.targets.iter().filter(|target| !target.weakened.is_empty());
    let weakened: Vec<String> =
        weakened.map(|target| format!("{}: {}", target.name, target.weakened.join(", "))).collect();
    let holes: Vec<String> = model.holes.iter().map(|hole| hole.sentence.clone()).collect();
    if holes.is_empty() && model.flags.is_empty() && weakened.is_empty() {
        page.raw("<p>Every planned cell was measured, and nothing is in doubt.</p>");
    }
    for (title, lines) in [("Not measured", holes), ("Weaker durability", weakened)] {
        page.element("h3", if lines.is_empty() { "" } else { title }).list("ul", &lines);
    }
    doubts(page, &model.flags);
    page.raw("</section>\n<section id=\"effect\"><h2>In effect</h2>");
    page.raw("<p class=\"note\">Read back from kernel and tools while it ran.</p>");
    tables::effect(page, sheet, &model.effect);
    let host = model.host.iter().map(|fact| (fact.name.as_str(), fact.value.as_str()));
    tables::facts(page, "The machine", host);
    page.raw("</section>\n");
    ledger(page, sheet);
}

/// One kind after the other, as a run on a busy machine has hundreds.
fn doubts(page: &mut Markup, flags: &[FlagGroup]) {
    page.raw(if flags.is_empty() { "" } else { "<h3>Doubts</h3>" });
    for kind in flags.chunk_by(|a, b| a.flag == b.flag) {
        let places = if kind.len() == 1 { "in 1 place".to_string() } else { format!("in {} places", kind.len()) };
        page.raw("<details>").element("summary", &format!("{} {places}", kind[0].flag));
        page.list("ul", &kind.iter().map(|flag| flag.sentence.clone()).collect::<Vec<_>>()).raw("</details>");
    }
}

fn ledger(page: &mut Markup, sheet: &Sheet) {
    let ledger = &sheet.model.ledger;
    if ledger.parts.is_empty() {
        return;
    }
    page.raw("<section id=\"ledger\"><h2>Where the time went</h2>").element("p", &format!("{}.", ledger.sentence));
    page.raw("<svg class=\"ledger\" aria-hidden=\"true\">");
    let mut from = 0.0;
    for (at, part) in ledger.parts.iter().enumerate() {
        let share = part.share * 100.0;
        page.put(format_args!("<rect class=\"h{at} p{at}\" x=\"{from:.2}%\" width=\"{share:.2}%\" height=\"100%\"/>"));
        from += share;
    }
    page.raw("</svg><ul class=\"key\">");
    for (at, part) in ledger.parts.iter().enumerate() {
        page.put(format_args!("<li><svg class=\"swatch h{at}\" aria-hidden=\"true\"><rect class=\"p{at}\" width=\"100%\" height=\"100%\"/></svg>"));
        page.text(&format!("{} {}", part.name, part.shown)).raw("</li>");
    }
    page.raw("</ul></section>\n");
}

/// How the pictures are read.
pub fn legend(page: &mut Markup) {
    page.raw("<section id=\"reading\"><h2>How to read the ratio charts</h2><ul class=\"key\">");
    for (finding, words) in shapes::MEANINGS {
        page.put(format_args!("<li><svg class=\"mark\" aria-hidden=\"true\"><g class=\"f-{finding}\"><use href=\"#f-{finding}\" x=\"50%\" y=\"50%\"/></g></svg>{words}</li>"));
    }
    page.raw("</ul>").element("p class=\"note\"", HOW_TO_READ);
    let all: Vec<_> = marks::ALL.iter().collect();
    page.element("p class=\"note\"", &format!("{}.", marks::meanings(&all, "the reference").join("; ")));
    page.raw("</section>\n");
}

const HOW_TO_READ: &str = "Marks are ratios paired by round, lines their 95 % intervals, on a logarithmic axis; further left is faster. In the \
                           shaded band differences are too small to matter, or noise. In “every round” each stroke is a \
                           round and the long one the median.";
