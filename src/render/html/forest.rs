//! Ratio charts: a table whose rows hold a small plot each, so that the picture is also the figures, on any width of
//! page. Places are percentages.

use super::markup::Markup;
use super::{LABEL, tables};
use crate::analysis::{Figure, Panel, Row, WorkReport};
use crate::render::chart::Sheet;
use crate::render::chart::forest::{Mark, View, round};
use crate::render::chart::painter::series_class;
use crate::wording::marks;

/// The table of a work's panel at that place; `number` is under which the script finds its views.
pub fn table(page: &mut Markup, sheet: &Sheet, work: &WorkReport, (place, number): (usize, usize)) {
    let panel = &work.phases[place];
    let view = View::of(panel, work.reference, LABEL);
    tables::open_scroll(page, &format!("{}: times and ratios of {}", work.name, panel.name));
    page.put(format_args!("<table class=\"forest\" data-p=\"{number}\"><caption>")).element("b", &panel.name);
    let noise = panel.noise.as_ref().map_or(String::new(), |noise| format!("; noise floor {}", noise.shown));
    page.element("span", &format!(" differences within {} do not matter here{noise}", panel.threshold_shown));
    if let Some(why) = &panel.refused {
        page.element("em", &format!(" {why}"));
    }
    page.raw("</caption><thead><tr><th scope=\"col\">Target</th><th scope=\"col\" class=\"plot\">Time relative to <span data-named>");
    page.text(work.reference.map_or("", |at| &sheet.model.targets[at].name));
    page.raw("</span></th><th scope=\"col\">Ratio, 95 % interval</th><th scope=\"col\" class=\"n\">Median</th><th scope=\"col\" class=\"rounds\">Every round</th></tr></thead><tbody>\n");
    for (row, mark) in panel.rows.iter().zip(&view.marks) {
        match &row.figure {
            Some(figure) => table_row(page, sheet, panel, (row, figure), (mark, &view)),
            // Why is said once, in the first panel.
            None => absent(page, sheet, row, if place == 0 { &row.absent.why } else { row.absent.word }),
        }
    }
    page.raw("</tbody>");
    foot(page, panel, &view);
    page.raw("</table></div>\n");
}

fn foot(page: &mut Markup, panel: &Panel, view: &View) {
    page.raw("<tfoot aria-hidden=\"true\"><tr><td></td><td class=\"plot\"><svg class=\"ticks\">");
    for (x, label) in &view.ticks {
        page.put(format_args!("<text x=\"{}%\" y=\"12\">", round(*x))).text(label).raw("</text>");
    }
    page.raw("</svg></td><td></td><td></td><td class=\"rounds\"><span class=\"ends\">");
    if let Some((low, high)) = reach(panel) {
        page.element("span", &panel.unit.show(low)).element("span", &panel.unit.show(high));
    }
    page.raw("</span></td></tr></tfoot>");
}

fn absent(page: &mut Markup, sheet: &Sheet, row: &Row, why: &str) {
    page.put(format_args!("<tr data-t=\"{}\"><th scope=\"row\">", row.target));
    super::name(page, sheet, row.target);
    page.raw("</th><td colspan=\"4\" class=\"absent\">").text(why).raw("</td></tr>\n");
}

fn table_row(
    page: &mut Markup,
    sheet: &Sheet,
    panel: &Panel,
    (row, figure): (&Row, &Figure),
    (mark, view): (&Mark, &View),
) {
    page.put(format_args!("<tr data-t=\"{}\"><th scope=\"row\">", row.target));
    super::name(page, sheet, row.target);
    let rounds = format!("n = {}", figure.rounds_shown);
    let (best, caveats): (Vec<_>, Vec<_>) = marks::of_figure(panel, row).into_iter().partition(|mark| !mark.caveat);
    let notes = [rounds, sheet.model.targets[row.target].note.clone()].into_iter().filter(|note| !note.is_empty());
    let notes: Vec<String> = notes.chain(marks::meanings(&caveats, "")).collect();
    page.element("small", &notes.join(", ")).raw("</th><td class=\"plot\">");
    plot(page, mark, view);
    page.raw("</td><td class=\"ratio\" data-r title=\"").text(&mark.words).raw("\">").text(&mark.ratio);
    page.raw("</td><td class=\"n\">").element("b", &figure.shown);
    for mark in best {
        page.put(format_args!("<span class=\"best\" title=\"{}\"> {}</span>", mark.meaning, mark.sign));
    }
    page.element("small", &figure.range).raw("</td><td class=\"rounds\">");
    strip(page, sheet, panel, row, figure);
    page.raw("</td></tr>\n");
}

fn plot(page: &mut Markup, mark: &Mark, view: &View) {
    page.put(format_args!(
        "<svg class=\"row\" aria-hidden=\"true\"><rect class=\"band\" x=\"{}%\" width=\"{}%\" height=\"100%\"/>",
        round(view.band.0),
        round(view.band.1 - view.band.0)
    ));
    for (x, _) in &view.ticks {
        page.put(format_args!("<line class=\"g\" x1=\"{0}%\" x2=\"{0}%\" y2=\"100%\"/>", round(*x)));
    }
    page.put(format_args!("<line class=\"one\" x1=\"{0}%\" x2=\"{0}%\" y2=\"100%\"/>", round(view.one)));
    if !mark.finding.is_empty() {
        page.put(format_args!(
            "<g class=\"f-{}\"><line x1=\"{}%\" x2=\"{}%\" y1=\"50%\" y2=\"50%\"/><use href=\"#f-{0}\" x=\"{}%\" y=\"50%\"/></g>",
            mark.finding,
            round(mark.from),
            round(mark.to),
            round(mark.at)
        ));
    }
    page.raw("</svg>");
}

/// Of all rows' rounds.
fn reach(panel: &Panel) -> Option<(f64, f64)> {
    let points = || panel.rows.iter().flat_map(|row| &row.series.points);
    let low = points().map(|point| point.low).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.high).fold(f64::NEG_INFINITY, f64::max);
    (low <= high).then_some((low, high))
}

/// A stroke for every round, a longer one for the median.
fn strip(page: &mut Markup, sheet: &Sheet, panel: &Panel, row: &Row, figure: &Figure) {
    let Some((low, high)) = reach(panel) else { return };
    let wide = if high > low { high - low } else { 1.0 };
    let at = |value: f64| ((value - low) / wide * 980.0 + 10.0).round();
    let class = series_class(sheet.place(row.target));
    page.put(format_args!(
        "<svg class=\"strip {class}\" viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"l\" d=\""
    ));
    for point in &row.series.points {
        page.put(format_args!("M{} 6v8", at(point.median)));
        if point.high > point.low {
            page.put(format_args!("M{} 10H{}", at(point.low), at(point.high)));
        }
    }
    page.put(format_args!("\"/><path class=\"l median\" d=\"M{} 0v20\"/></svg>", at(figure.median)));
}
