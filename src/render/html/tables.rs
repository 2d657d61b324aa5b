//! Tables of what was measured beside the time, of all criteria, of what compresses, and of what was in effect.

use super::markup::Markup;
use crate::analysis::{Compression, Criteria, Effect, EffectRow, Panel, Row, Table, WorkReport};
use crate::render::chart::Sheet;
use crate::render::chart::forest::View;

/// Columns that can be read side by side.
const MOST_COLUMNS: usize = 6;

/// Opens what may be wider than the page; the script lets the keyboard scroll it where it is.
pub fn open_scroll(page: &mut Markup, label: &str) {
    page.raw("<div class=\"scroll\" data-label=\"").text(label).raw("\">");
}

/// `whose` is the work that it is about, which the page has said above.
pub fn open(page: &mut Markup, class: &str, whose: &str, title: &str) {
    open_scroll(page, format!("{whose} {title}").trim());
    page.put(format_args!("<table class=\"{class}\"><caption>")).element("b", title).raw("</caption>");
}

pub fn close(page: &mut Markup) {
    page.raw("</table></div>\n");
}

fn head<'a>(page: &mut Markup, names: impl Iterator<Item = &'a str>) {
    page.raw("<thead><tr>");
    names.for_each(|name| {
        page.raw("<th scope=\"col\">").text(name).raw("</th>");
    });
    page.raw("</tr></thead><tbody>\n");
}

/// One table of what was measured beside the time; `first` is the number of its first panel for the script.
pub fn beside(page: &mut Markup, sheet: &Sheet, work: &WorkReport, table: &Table, first: usize) {
    let few = table.panels.len() <= MOST_COLUMNS && !table.detail;
    open(page, if few { "bars" } else { "figures" }, &work.name, &table.title);
    if few {
        by_target(page, sheet, work, table, first)
    } else {
        by_quantity(page, sheet, work, table, first)
    }
    close(page);
}

fn by_target(page: &mut Markup, sheet: &Sheet, work: &WorkReport, table: &Table, first: usize) {
    head(page, ["Target"].into_iter().chain(table.panels.iter().map(|panel| panel.name.as_str())));
    for at in 0..table.panels[0].rows.len() {
        let target = table.panels[0].rows[at].target;
        page.put(format_args!("<tr data-t=\"{target}\"><th scope=\"row\">"));
        super::name(page, sheet, target);
        page.raw("</th>");
        for (number, panel) in table.panels.iter().enumerate() {
            cell(page, work, panel, &panel.rows[at], Some(most(panel)), first + number);
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>");
}

fn by_quantity(page: &mut Markup, sheet: &Sheet, work: &WorkReport, table: &Table, first: usize) {
    page.raw("<thead><tr><th scope=\"col\">Quantity</th>");
    for &target in &sheet.shown {
        page.put(format_args!("<th scope=\"col\" data-t=\"{target}\">"))
            .text(&sheet.model.targets[target].name)
            .raw("</th>");
    }
    page.raw("</tr></thead><tbody>\n");
    for (number, panel) in table.panels.iter().enumerate() {
        page.put(format_args!("<tr{}>", phase(&panel.phase)));
        page.element("th scope=\"row\"", &panel.name);
        panel.rows.iter().for_each(|row| cell(page, work, panel, row, None, first + number));
        page.raw("</tr>\n");
    }
    page.raw("</tbody>");
}

/// An attribute by which the script finds what belongs to a phase.
pub fn phase(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" data-phase=\"{}\"", crate::wording::text::escaped(name)) }
}

fn most(panel: &Panel) -> f64 {
    panel.rows.iter().filter_map(|row| row.figure.as_ref()).map(|figure| figure.median).fold(0.0, f64::max)
}

/// The figure, with a bar as long as its share of `most`, and the ratio to the reference.
fn cell(page: &mut Markup, work: &WorkReport, panel: &Panel, row: &Row, most: Option<f64>, number: usize) {
    page.put(format_args!("<td data-t=\"{}\">", row.target));
    let Some(figure) = &row.figure else {
        page.element("small", row.absent.word).raw("</td>");
        return;
    };
    page.raw("<span title=\"").text(&figure.range).raw("\">").text(&figure.shown).raw("</span>");
    if !row.others.is_empty() || row.against.is_some() {
        let view = |reference| View::ratio_of(row, reference);
        let (ratio, words) = work.reference.map(view).unwrap_or_default();
        page.put(format_args!("<small data-r=\"{number}\" data-t=\"{}\" title=\"", row.target));
        page.text(&words).raw("\">").text(&ratio).raw("</small>");
    }
    if let Some(most) = most.filter(|most| *most > 0.0 && panel.rows.len() > 1) {
        let share = (figure.median / most * 100.0).clamp(0.0, 100.0);
        page.put(format_args!(
            "<svg class=\"bar\" aria-hidden=\"true\"><rect width=\"{share:.1}%\" height=\"100%\"/></svg>"
        ));
    }
    page.raw("</td>");
}

/// Relative to the row at `reference`.
pub fn criteria(page: &mut Markup, sheet: &Sheet, criteria: &Criteria, reference: usize) {
    let name = &sheet.model.targets[criteria.rows[reference].target].name;
    open(page, "figures", "", &format!("All round, relative to {name}"));
    head(page, ["Target"].into_iter().chain(criteria.names.iter().map(String::as_str)));
    for (at, row) in criteria.rows.iter().enumerate() {
        page.put(format_args!("<tr data-t=\"{}\"><th scope=\"row\">", row.target));
        super::name(page, sheet, row.target);
        if row.on_front {
            page.raw("<span class=\"best\" title=\"no other target is shown to beat it all round\"> ★</span>");
        }
        page.raw("</th>");
        for trade in &row.others[reference] {
            let shown = if at == reference { "reference".to_string() } else { format!("×{}", trade.shown) };
            page.element("td", &shown);
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>");
    close(page);
}

pub fn compression(page: &mut Markup, sheet: &Sheet, work: &WorkReport, found: &Compression) {
    open(page, "figures", &work.name, &format!("Compression of {}", sheet.model.targets[found.target].name));
    head(page, ["Type", "Share", "Disk usage", "Uncompressed", "Referenced"].into_iter());
    for row in &found.rows {
        page.raw("<tr>").element("th scope=\"row\"", &row.kind);
        for value in [&row.percent, &row.disk, &row.uncompressed, &row.referenced] {
            page.raw("<td>").text(value).raw("</td>");
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>");
    close(page);
    page.element("p class=\"note\"", &found.summary);
}

/// What was read back, by target; what differs is marked with a sign and comes first.
pub fn effect(page: &mut Markup, sheet: &Sheet, effect: &Effect) {
    let (differ, same): (Vec<&EffectRow>, Vec<&EffectRow>) = effect.rows.iter().partition(|row| row.differs);
    if !differ.is_empty() {
        differences(page, sheet, effect, &differ);
    }
    facts(page, "The same on all targets that tell of it", same.iter().map(|row| (row.name.as_str(), one_value(row))));
}

fn one_value(row: &EffectRow) -> &str {
    row.values.iter().find(|value| !value.is_empty()).map_or("", String::as_str)
}

/// Names and values, folded away.
pub fn facts<'a>(page: &mut Markup, title: &str, facts: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut facts = facts.peekable();
    if facts.peek().is_none() {
        return;
    }
    page.raw("<details>").element("summary", title).raw("<dl>");
    facts.for_each(|(name, value)| {
        page.raw("<dt>").text(name).raw("</dt><dd>").text(value).raw("</dd>");
    });
    page.raw("</dl></details>\n");
}

fn differences(page: &mut Markup, sheet: &Sheet, effect: &Effect, rows: &[&EffectRow]) {
    open(page, "effect", "", "Not the same on all targets");
    page.raw("<thead><tr><th scope=\"col\">Fact</th>");
    for &target in &effect.columns {
        page.put(format_args!("<th scope=\"col\" data-t=\"{target}\">"))
            .text(&sheet.model.targets[target].name)
            .raw("</th>");
    }
    page.raw("</tr></thead><tbody>\n");
    for row in rows {
        page.raw("<tr><th scope=\"row\"><span aria-hidden=\"true\">≠</span> ").text(&row.name).raw("</th>");
        for (target, value) in effect.columns.iter().zip(&row.values) {
            page.put(format_args!("<td data-t=\"{target}\">"))
                .text(if value.is_empty() { "–" } else { value })
                .raw("</td>");
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody>");
    close(page);
}
