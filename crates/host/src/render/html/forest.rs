//! Ratio charts: a table whose rows hold a small plot each, so that the picture is also the
//! figures, on any width of page. Places are percentages.

use super::markup::{small, text};
use super::{LABEL, name, overview, tables};
use crate::analysis::{Figure, Panel, Row, WorkReport};
use crate::render::chart::Sheet;
use crate::render::chart::forest::{Mark, View, round};
use crate::render::chart::painter::series_class;
use crate::wording::marks;
use maud::{Markup, html};
use std::fmt::Write;

/// The table of a work's panel at that place; `number` is under which the script finds its views.
pub(crate) fn table(sheet: &Sheet, work: &WorkReport, (place, number): (usize, usize)) -> Markup {
    let panel = &work.phases[place];
    let view = View::of(panel, work.reference, LABEL);
    let noise = panel.noise_shown().map_or(String::new(), |noise| format!("; noise floor {noise}"));
    let reference = work.reference.map_or("", |at| &sheet.model.targets[at].name);
    // Why a figure is absent is said once, in the first panel.
    let absent = |row: &Row| text(&if place == 0 { row.absent.why() } else { row.absent.word().to_string() });
    let table = html! {
        table.forest data-p=(number) {
            caption {
                b { (text(&panel.name)) }
                span { " " (text(&panel.smallest_difference())) (noise) }
            }
            thead { tr {
                th scope="col" { "Target" }
                th.plot scope="col" { @if panel.metric == "time_ns" { "Time relative to " } @else { "Relative to " } span data-named { (text(reference)) } }
                th scope="col" { (text("Ratio, 95 % interval")) }
                th.n scope="col" { "Median" }
                th.rounds scope="col" { "Every round" }
            } }
            tbody {
                @for (row, mark) in panel.rows.iter().zip(&view.marks) {
                    tr data-t=(row.target) {
                        @if let Some(figure) = &row.figure {
                            (cells(sheet, panel, (row, figure), (mark, &view)))
                        } @else {
                            th scope="row" { (name(sheet, row.target)) }
                            td.absent colspan="4" { (absent(row)) }
                        }
                    }
                    @if work.reference == Some(row.target) { (copy(sheet, work, panel, &view)) }
                }
            }
            (foot(panel, &view))
        }
    };
    tables::scroll(&format!("{}: times and ratios of {}", work.name, panel.name), &table)
}

/// The reference measured a second time in each round, which shows what differences the machine
/// makes by itself.
fn copy(sheet: &Sheet, work: &WorkReport, panel: &Panel, view: &View) -> Markup {
    let found = work.duplicate.zip(work.reference).zip(view.copy.as_ref()).zip(panel.noise.as_ref());
    html! {
        @if let Some((((copy, reference), mark), noise)) = found {
            tr.copy data-copy-of=(reference) {
                th scope="row" { (text(&sheet.model.targets[copy].name)) (small("the reference, measured twice")) }
                td.plot { (plot(mark, view)) }
                td.ratio title=(text(&overview::twice(noise))) { (text(&mark.ratio)) }
                td.n {}
                td.rounds {}
            }
        }
    }
}

fn foot(panel: &Panel, view: &View) -> Markup {
    html! {
        tfoot aria-hidden="true" { tr {
            td {}
            td.plot { svg.ticks {
                @for (x, label) in &view.ticks { text x=(percent(*x)) y="12" { (text(label)) } }
            } }
            td {}
            td {}
            td.rounds { span.ends {
                @if let Some((low, high)) = reach(panel) {
                    span { (panel.unit.show(low)) }
                    span { (panel.unit.show(high)) }
                }
            } }
        } }
    }
}

fn cells(sheet: &Sheet, panel: &Panel, (row, figure): (&Row, &Figure), (mark, view): (&Mark, &View)) -> Markup {
    let rounds = format!("n = {}", figure.rounds_shown());
    let (best, caveats): (Vec<_>, Vec<_>) = marks::of_figure(panel, row).into_iter().partition(|mark| !mark.caveat);
    let notes = [rounds, sheet.model.targets[row.target].note()].into_iter().filter(|note| !note.is_empty());
    let notes: Vec<String> = notes.chain(marks::meanings(&caveats, "")).collect();
    html! {
        th scope="row" { (name(sheet, row.target)) (small(&notes.join(", "))) }
        td.plot { (plot(mark, view)) }
        td.ratio data-r title=(text(&mark.words)) { (text(&mark.ratio)) }
        td.n {
            b { (text(&figure.shown())) }
            @for mark in best { span.best title=(mark.meaning) { " " (mark.sign) } }
            (small(&figure.range()))
        }
        td.rounds { (strip(sheet, panel, row, figure)) }
    }
}

fn plot(mark: &Mark, view: &View) -> Markup {
    html! {
        svg.row aria-hidden="true" {
            rect.band x=(percent(view.band.0)) width=(percent(view.band.1 - view.band.0)) height="100%" {}
            @for (x, _) in &view.ticks { line.g x1=(percent(*x)) x2=(percent(*x)) y2="100%" {} }
            line.one x1=(percent(view.one)) x2=(percent(view.one)) y2="100%" {}
            @if !mark.finding.is_empty() {
                g class={ "f-" (mark.finding) } {
                    line x1=(percent(mark.from)) x2=(percent(mark.to)) y1="50%" y2="50%" {}
                    use href={ "#f-" (mark.finding) } x=(percent(mark.at)) y="50%" {}
                }
            }
        }
    }
}

fn percent(place: f64) -> String {
    format!("{}%", round(place))
}

/// Lowest and highest value of all rows' rounds.
fn reach(panel: &Panel) -> Option<(f64, f64)> {
    let points = || panel.rows.iter().flat_map(|row| &row.series.points);
    let low = points().map(|point| point.low).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.high).fold(f64::NEG_INFINITY, f64::max);
    (low <= high).then_some((low, high))
}

/// A stroke for every round, a longer one for the median.
fn strip(sheet: &Sheet, panel: &Panel, row: &Row, figure: &Figure) -> Markup {
    let Some((low, high)) = reach(panel) else { return html! {} };
    let wide = if high > low { high - low } else { 1.0 };
    let at = |value: f64| ((value - low) / wide * 980.0 + 10.0).round();
    let mut strokes = String::new();
    for point in &row.series.points {
        write!(strokes, "M{} 6v8", at(point.median)).expect("a string takes all");
        if point.high > point.low {
            write!(strokes, "M{} 10H{}", at(point.low), at(point.high)).expect("a string takes all");
        }
    }
    html! {
        svg class={ "strip " (series_class(sheet.place(row.target))) } viewBox="0 0 1000 20" preserveAspectRatio="none"
            aria-hidden="true" {
            path.l d=(strokes) {}
            path class="l median" d={ "M" (at(figure.median)) " 0v20" } {}
        }
    }
}
