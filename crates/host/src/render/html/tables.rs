//! Tables of what was measured apart from the time, of all criteria, of what compresses, and of
//! what was in effect.

use super::markup::{note, small, text};
use super::name;
use crate::analysis::{Compression, CompressionRow, Criteria, Effect, EffectRow, Panel, Row, Table, WorkReport};
use crate::render::chart::Sheet;
use crate::render::chart::forest::View;
use crate::wording::comparison::ratio_or_dash;
use crate::wording::headings;
use maud::{Markup, html};

/// Columns that can be read side by side.
const MOST_COLUMNS: usize = 6;

/// What may be wider than the page; the script lets the keyboard scroll it where it is.
pub(crate) fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div.scroll data-label=(text(label.trim())) { (table) } }
}

/// A table with its title. `whose` is the work that it is about, which the page has said above.
pub(crate) fn titled(class: &str, whose: &str, title: &str, rows: &Markup) -> Markup {
    let table = html! { table class=(class) { caption { b { (text(title)) } } (rows) } };
    scroll(&format!("{whose} {title}"), &table)
}

pub(crate) fn head<'a>(names: impl IntoIterator<Item = &'a str>) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (text(name)) } } } } }
}

/// Figures whose rows begin with their names.
pub(crate) fn figures<'a>(
    whose: &str,
    title: &str,
    heads: impl IntoIterator<Item = &'a str>,
    rows: impl IntoIterator<Item = impl AsRef<[String]>>,
) -> Markup {
    let rows = html! {
        (head(heads))
        tbody { @for row in rows { tr {
            @for (at, cell) in row.as_ref().iter().enumerate() {
                @if at == 0 { th scope="row" { (text(cell)) } } @else { td { (text(cell)) } }
            }
        } } }
    };
    titled("figures", whose, title, &rows)
}

fn head_of_targets(sheet: &Sheet, first: &str, targets: &[usize]) -> Markup {
    html! {
        thead { tr {
            th scope="col" { (first) }
            @for &target in targets { th scope="col" data-t=(target) { (text(&sheet.model.targets[target].name)) } }
        } }
    }
}

/// One table of what was measured apart from the time; `first` is the number of its first panel for
/// the script.
pub(crate) fn beside(sheet: &Sheet, work: &WorkReport, table: &Table, first: usize) -> Markup {
    let few = table.panels.len() <= MOST_COLUMNS && !table.is_detail();
    let rows = if few { by_target(sheet, work, table, first) } else { by_quantity(sheet, work, table, first) };
    titled(if few { "bars" } else { "figures" }, &work.name, &table.title(), &rows)
}

fn by_target(sheet: &Sheet, work: &WorkReport, table: &Table, first: usize) -> Markup {
    html! {
        (head(["Target"].into_iter().chain(table.panels.iter().map(|panel| panel.name.as_str()))))
        tbody {
            @for (at, row) in table.panels[0].rows.iter().enumerate() {
                tr data-t=(row.target) {
                    th scope="row" { (name(sheet, row.target)) }
                    @for (number, panel) in table.panels.iter().enumerate() {
                        (cell(work, panel, &panel.rows[at], most(panel), first + number))
                    }
                }
            }
        }
    }
}

fn by_quantity(sheet: &Sheet, work: &WorkReport, table: &Table, first: usize) -> Markup {
    html! {
        (head_of_targets(sheet, "Quantity", &sheet.shown))
        tbody {
            @for (number, panel) in table.panels.iter().enumerate() {
                tr data-phase=[phase(&panel.phase)] {
                    th scope="row" { (text(&panel.name)) }
                    @for row in &panel.rows { (cell(work, panel, row, 0.0, first + number)) }
                }
            }
        }
    }
}

/// An attribute by which the script finds what belongs to a phase.
pub(crate) fn phase(name: &str) -> Option<Markup> {
    (!name.is_empty()).then(|| text(name))
}

fn most(panel: &Panel) -> f64 {
    panel.rows.iter().filter_map(|row| row.figure.as_ref()).map(|figure| figure.centre).fold(0.0, f64::max)
}

/// The figure, with a bar as long as its share of `most` unless that is 0, and the ratio to the
/// reference.
fn cell(work: &WorkReport, panel: &Panel, row: &Row, most: f64, number: usize) -> Markup {
    let compared = !row.others.is_empty() || row.against.is_some();
    let (ratio, words) = work.reference.map(|reference| View::ratio_of(row, reference)).unwrap_or_default();
    let share = |median: f64| format!("{:.1}%", (median / most * 100.0).clamp(0.0, 100.0));
    html! {
        td data-t=(row.target) {
            @if let Some(figure) = &row.figure {
                span title=(text(&figure.range())) { (text(&figure.shown())) }
                @if compared { small data-r=(number) data-t=(row.target) title=(text(&words)) { (text(&ratio)) } }
                @if most > 0.0 && panel.rows.len() > 1 {
                    svg.bar aria-hidden="true" { rect width=(share(figure.centre)) height="100%" {} }
                }
            } @else {
                (small(row.absent.word()))
            }
        }
    }
}

/// Relative to the row at `reference`.
pub(crate) fn criteria(sheet: &Sheet, criteria: &Criteria, reference: usize) -> Markup {
    let own = &sheet.model.targets[criteria.rows[reference].target].name;
    let rows = html! {
        (head(["Target"].into_iter().chain(criteria.names.iter().map(String::as_str))))
        tbody {
            @for (at, row) in criteria.rows.iter().enumerate() {
                tr data-t=(row.target) {
                    th scope="row" {
                        (name(sheet, row.target))
                        @if row.on_front { span.best title="no other target is better in all of them" { " ★" } }
                    }
                    @for trade in &row.others[reference] {
                        td { @if at == reference { "reference" } @else { (text(&ratio_or_dash(trade.as_ref()))) } }
                    }
                }
            }
        }
    };
    titled("figures", "", &format!("{}, relative to {own}", headings::TRADE_OFFS), &rows)
}

pub(crate) fn compression(sheet: &Sheet, work: &WorkReport, found: &Compression) -> Markup {
    let heads = ["Type", "Share", "Disk usage", "Uncompressed", "Referenced"];
    let rows = found.rows.iter().map(CompressionRow::cells);
    let title = format!("Compression of {}", sheet.model.targets[found.target].name);
    html! { (figures(&work.name, &title, heads, rows)) (note(&found.summary())) }
}

/// Longer values are dumps of tools, which are folded away.
const LONGEST_VALUE: usize = 160;

/// What was read back: what differs first, by value, so that no target is cut off on paper; then
/// dumps, then what is the same.
pub(crate) fn effect(sheet: &Sheet, effect: &Effect) -> Markup {
    let (differ, same): (Vec<&EffectRow>, Vec<&EffectRow>) = effect.rows.iter().partition(|row| row.differs);
    let is_short = |row: &&EffectRow| row.values.iter().all(|value| value.len() <= LONGEST_VALUE);
    let (short, dumps): (Vec<&EffectRow>, Vec<&EffectRow>) = differ.into_iter().partition(is_short);
    let same: Vec<(&str, &str)> = same.iter().map(|row| (row.name.as_str(), one_value(row))).collect();
    html! {
        @if !short.is_empty() { (titled("effect", "", "Not the same on all targets", &by_value(sheet, effect, &short))) }
        @for row in dumps {
            details {
                summary { span aria-hidden="true" { "≠" } " " (text(&row.name)) }
                dl {
                    @for (value, targets) in values(sheet, effect, row) { dt { (text(&targets)) } dd { (text(&value)) } }
                }
            }
        }
        (facts("The same on all targets that report it", &same))
    }
}

fn one_value(row: &EffectRow) -> &str {
    row.values.iter().find(|value| !value.is_empty()).map_or("", String::as_str)
}

/// Names and values, folded away.
pub(crate) fn facts(title: &str, facts: &[(&str, &str)]) -> Markup {
    html! {
        @if !facts.is_empty() {
            details {
                summary { (title) }
                dl { @for (name, value) in facts { dt { (text(name)) } dd { (text(value)) } } }
            }
        }
    }
}

/// Each value of a fact with the targets that have it, in their order.
fn values(sheet: &Sheet, effect: &Effect, row: &EffectRow) -> Vec<(String, String)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for (target, value) in effect.columns.iter().zip(&row.values) {
        let value = if value.is_empty() { "–" } else { value };
        let name = sheet.model.targets[*target].name.as_str();
        match found.iter_mut().find(|(known, _)| *known == value) {
            Some((_, names)) => names.push(name),
            None => found.push((value, vec![name])),
        }
    }
    found.into_iter().map(|(value, names)| (value.to_string(), names.join(", "))).collect()
}

fn by_value(sheet: &Sheet, effect: &Effect, rows: &[&EffectRow]) -> Markup {
    html! {
        (head(["Setting", "Value", "Targets"]))
        @for row in rows {
            @let values = values(sheet, effect, row);
            tbody {
                @for (at, (value, targets)) in values.iter().enumerate() {
                    tr {
                        @if at == 0 {
                            th scope="rowgroup" rowspan=(values.len()) { span aria-hidden="true" { "≠" } " " (text(&row.name)) }
                        }
                        td { (text(value)) }
                        td { (text(targets)) }
                    }
                }
            }
        }
    }
}
