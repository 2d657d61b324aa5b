//! The overview: every target by the whole job, each phase, space and CPU, as one coloured table
//! that the script sorts. Differences come from judgements; nothing is concluded here.

use super::markup::text;
use super::{name, tables};
use crate::analysis::{Better, Panel, Row, WorkReport};
use crate::render::chart::{Sheet, panels};
use crate::wording::answer::{Standing, interval, signed_percent, signs};
use crate::wording::text::{capital, counted};
use maud::{Markup, html};
use pickfs_stats::Estimate;
use serde_json::{Value, json};

/// From here on a difference has a stronger colour: shares of one.
const STRONGER: [f64; 2] = [0.05, 0.20];
/// Most columns for results of other programs: more are in the tables below.
const MOST_FOREIGN: usize = 10;

/// A column, with the number under which the script finds its panel.
pub(crate) struct Column<'a> {
    heading: String,
    pub panel: &'a Panel,
    work: &'a WorkReport,
    pub number: usize,
    is_time: bool,
}

/// All works or the phases of the only one; then what the time is paid with.
pub(crate) fn columns<'a>(sheet: &Sheet<'a>) -> Vec<Column<'a>> {
    let several = sheet.model.reports().count() > 1;
    let (mut times, mut costs, mut next) = (Vec::new(), Vec::new(), 0);
    for work in sheet.model.reports() {
        for (at, panel) in panels(work).enumerate() {
            let (number, is_time) = (next + at, at < work.phases.len());
            let prefix = if several { format!("{}, ", work.name) } else { String::new() };
            let column = |heading| Column { heading, panel, work, number, is_time };
            if is_time && (!several || at == 0) {
                times.push(column(if several { work.name.clone() } else { panel.name.clone() }));
            } else if let Some(cost) = cost(work, panel) {
                costs.push(column(format!("{prefix}{cost}")));
            }
        }
        next += panels(work).count();
    }
    if times.iter().any(|column| column.work.is_foreign) {
        times.truncate(MOST_FOREIGN);
    }
    times.into_iter().chain(costs).collect()
}

/// "space" or "CPU", if that is what a panel compares.
fn cost(work: &WorkReport, panel: &Panel) -> Option<&'static str> {
    let is_compared = panel.rows.iter().any(|row| row.against.is_some());
    let (cost, _) = work.cost_panels().find(|(_, found)| is_compared && std::ptr::eq(*found, panel))?;
    Some(cost)
}

pub(crate) fn overview(sheet: &Sheet) -> Markup {
    let columns = columns(sheet);
    let Some(first) = columns.first() else { return html! {} };
    let reference = first.work.reference;
    let mut targets: Vec<&Row> = first.panel.rows.iter().collect();
    let ratio = |row: &&Row| row.against.as_ref().map_or(1.0, |found| found.estimate.ratio);
    targets.sort_by(|a, b| a.figure.is_none().cmp(&b.figure.is_none()).then(ratio(a).total_cmp(&ratio(b))));
    let named = reference.map_or("", |at| &sheet.model.targets[at].name);
    let table = html! {
        table.matrix {
            caption { b { "Overview" } span { "differences from " span data-named { (text(named)) } } }
            thead { tr {
                th scope="col" { "Target" }
                th.n scope="col" { (if first.panel.metric == "time_ns" { "Time" } else { "Figure" }) }
                @for column in &columns { th.n scope="col" data-sort=(column.number) data-phase=[phase(column)] { (text(&capital(&column.heading))) } }
            } }
            tbody {
                @for row in targets {
                    (line(sheet, &columns, row))
                    @if reference == Some(row.target) { (copy(sheet, &columns, first.work)) }
                }
            }
        }
    };
    html! {
        section #overview aria-label="Overview" {
            (tables::scroll("Overview of all targets", &table))
            p.note {
                "Differences: " (text(&signs(false).map(|(_, meaning)| meaning).join(" · "))) "."
                span.screen { " Point at a figure for its value and interval." }
            }
        }
    }
}

fn phase(column: &Column) -> Option<Markup> {
    if column.work.phases.len() > 1 { tables::phase(&column.panel.phase) } else { None }
}

fn line(sheet: &Sheet, columns: &[Column], first: &Row) -> Markup {
    let figure = first.figure.as_ref();
    html! {
        tr data-t=(first.target) {
            th scope="row" { (name(sheet, first.target)) }
            td.n title=[figure.map(|figure| text(&figure.range()))] {
                (text(&figure.map_or_else(|| first.absent.word().to_string(), |figure| figure.shown())))
            }
            @for column in columns {
                @let row = column.panel.rows.iter().find(|row| row.target == first.target);
                @let shown = row.and_then(|row| DifferenceCell::of(column.panel, row, column.work.reference?));
                td class={ "n " (shown.as_ref().map_or("none", |shown| shown.class)) } data-o=(column.number)
                    data-phase=[phase(column)]
                    data-v=[shown.as_ref().map(|shown| shown.ratio)]
                    data-f=[row.and_then(figure_of).map(|figure| text(&figure))]
                    title=[row.and_then(|row| Some(words(row, column.work.reference?)))] {
                    @if let Some(shown) = &shown { (text(&shown.text)) } @else { "–" }
                }
            }
        }
    }
}

/// Nothing where it is too large to be written as a number.
fn figure_of(row: &Row) -> Option<String> {
    let figure = row.figure.as_ref().filter(|figure| figure.median < 1e300)?;
    Some(format!("{} ({})", figure.shown(), figure.range()))
}

/// "3.48 s (3.31–3.60 s); takes 9 % more time than ext4 (95 % interval 4–18 %)".
fn words(row: &Row, reference: usize) -> Markup {
    let compared = row.compared_with(reference).map(|found| found.words());
    text(&figure_of(row).into_iter().chain(compared).filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; "))
}

/// The reference measured a second time: how far equal targets lie apart here.
fn copy(sheet: &Sheet, columns: &[Column], work: &WorkReport) -> Markup {
    let Some((copy, reference)) = work.duplicate.zip(work.reference) else { return html! {} };
    let noise = |column: &Column| column.panel.noise.clone().filter(|found| column.is_time && found.ratio.is_finite());
    if !columns.iter().any(|column| noise(column).is_some()) {
        return html! {};
    }
    let shown = |found: &Estimate| signed_with(Standing::of_copy(found), found.ratio);
    let cell = |column: &Column| noise(column).map(|found| (shown(&found), twice(&found)));
    html! {
        tr.copy data-copy-of=(reference) {
            th scope="row" { (text(&sheet.model.targets[copy].name)) }
            td.n {}
            @for column in columns {
                @if let Some((shown, words)) = cell(column) {
                    td.n.open data-phase=[phase(column)] title=(text(&words)) { (text(&shown)) }
                } @else {
                    td.n.none data-phase=[phase(column)] { "–" }
                }
            }
        }
    }
}

/// "the same target measured twice in 8 rounds: −4 to +6 %".
pub(crate) fn twice(found: &Estimate) -> String {
    format!("the same target measured twice in {}: {}", counted(found.n, "round"), interval(found))
}

/// A difference in a cell.
pub(crate) struct DifferenceCell {
    text: String,
    class: &'static str,
    ratio: f64,
}

impl DifferenceCell {
    /// `None` where there is nothing to compare.
    pub(crate) fn of(panel: &Panel, row: &Row, reference: usize) -> Option<DifferenceCell> {
        row.figure.as_ref()?;
        if row.target == reference {
            return Some(DifferenceCell { text: "reference".to_string(), class: "same", ratio: 1.0 });
        }
        // Times of zero give ratios that are no numbers.
        let found = row.compared_with(reference).filter(|found| found.estimate.ratio.is_finite())?;
        let standing = Standing::in_panel(panel, row.target, Some(found));
        let text = signed_with(standing, found.estimate.ratio);
        Some(DifferenceCell {
            text,
            class: class(standing, panel.better, found.estimate.ratio),
            ratio: found.estimate.ratio,
        })
    }

    pub(crate) fn json(&self, target: usize) -> Value {
        json!([target, self.text.replace(" %", "\u{a0}%"), self.class, (self.ratio * 1e4).round() / 1e4])
    }
}

/// "−12 % ?".
fn signed_with(standing: Standing, ratio: f64) -> String {
    let sign = standing.sign();
    let blank = if sign.is_empty() { "" } else { "\u{a0}" };
    format!("{}{blank}{sign}", signed_percent(ratio))
}

fn class(standing: Standing, better: Better, ratio: f64) -> &'static str {
    let strength = STRONGER.iter().filter(|from| (ratio.max(1.0 / ratio) - 1.0) >= **from).count();
    let is_good = (ratio < 1.0) == (better == Better::Less);
    match (standing, is_good) {
        (Standing::Better | Standing::Worse, true) => ["good1", "good2", "good3"][strength],
        (Standing::Better | Standing::Worse, false) => ["bad1", "bad2", "bad3"][strength],
        (Standing::Probably, true) => "good1",
        (Standing::Probably, false) => "bad1",
        (Standing::Same | Standing::Reference, _) => "same",
        (Standing::Open | Standing::WorseThanPick | Standing::LeftEarly | Standing::Unknown, _) => "open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_not_clearly_different_is_marked_so() {
        let shown = |ratio: f64, interval| {
            let method = pickfs_stats::Method::LogT;
            let noise = Estimate { ratio, interval, method, level: 0.95, n: 4, share_above: 0.5 };
            signed_with(Standing::of_copy(&noise), ratio)
        };
        assert_eq!(shown(0.88, Some((0.26, 2.98))), "−12 %\u{a0}?");
        assert_eq!(shown(1.05, None), "+5 %\u{a0}?");
        assert_eq!(shown(1.05, Some((1.01, 1.09))), "+5 %");
        assert_eq!(shown(0.95, Some((0.91, 0.99))), "−5 %");
    }

    #[test]
    fn colours_follow_what_is_better() {
        for (standing, better, ratio, wanted) in [
            (Standing::Better, Better::Less, 0.97, "good1"),
            (Standing::Better, Better::Less, 0.90, "good2"),
            (Standing::Worse, Better::Less, 1.30, "bad3"),
            (Standing::Worse, Better::More, 1.30, "good3"),
            (Standing::Better, Better::More, 0.90, "bad2"),
            (Standing::Probably, Better::Less, 1.50, "bad1"),
            (Standing::Open, Better::Less, 1.50, "open"),
            (Standing::Same, Better::Less, 1.01, "same"),
        ] {
            assert_eq!(class(standing, better, ratio), wanted, "{standing:?} {better:?} {ratio}");
        }
    }
}
