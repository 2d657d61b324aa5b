//! Forest plots as one picture: for each phase the ratio of every target to the reference, as a dot with its
//! interval on a logarithmic axis; then space and CPU. Light background, colours that the colour-blind can tell
//! apart, and nothing that is said by colour alone.

mod axis;
mod draw;

use super::{Format, Options};
use crate::analysis::{Figure, Model, Panel, Row, WorkReport};
use crate::stats::Finding;
use crate::wording::marks;
pub(super) use axis::{Axis, ratio_label};
use draw::{Drawing, cut, cut_middle, wrap};
use std::io::{self, Write};

const MARGIN: f64 = 24.0;
const PLOT: f64 = 188.0;
/// Room for "×0.881 (0.876–0.884) ~" right of a plot.
const NUMBERS: f64 = 142.0;
const GAP: f64 = 10.0;
const ROW: f64 = 38.0;
const COLUMNS: usize = 3;
const LONGEST_NAME: usize = 40;

const INK: &str = "#1f2328";
const FAINT: &str = "#59636e";
const GRID: &str = "#d8dee4";
const BAND: &str = "#eceff2";
/// Blue and vermilion of Okabe and Ito, a little darker for white paper.
const LESS: &str = "#0b6ba8";
const MORE: &str = "#c24e00";
const UNDECIDED: &str = "#6e7781";

pub const SVG: Format = Format {
    name: "svg",
    about: "forest plots of time, space and CPU as one picture",
    run: Some(write),
    ..Format::NONE
};

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(picture(model).as_bytes())
}

fn picture(model: &Model) -> String {
    drawn(model, &shown(model).collect::<Vec<_>>())
}

/// One work alone.
pub fn of_work(model: &Model, work: &WorkReport) -> String {
    drawn(model, &[work])
}

fn drawn(model: &Model, works: &[&WorkReport]) -> String {
    let sheet = Sheet::of(model);
    let mut drawing = Drawing::default();
    let mut y = head(&mut drawing, model, &sheet);
    for work in works {
        y = sheet.work(&mut drawing, work, y);
    }
    if works.iter().any(|work| !work.phases.is_empty()) {
        y = legend(&mut drawing, &sheet, works, y);
    }
    drawing.finish(sheet.width, y, &model.title)
}

/// All work together, then each.
fn shown(model: &Model) -> impl Iterator<Item = &WorkReport> {
    model.overall.iter().map(|overall| &overall.work).chain(&model.works)
}

/// Sizes that all panels share.
struct Sheet<'a> {
    model: &'a Model,
    names: f64,
    width: f64,
}

fn head(drawing: &mut Drawing, model: &Model, sheet: &Sheet) -> f64 {
    let title = if model.title.is_empty() { "pickfs" } else { &model.title };
    let room = sheet.width - 2.0 * MARGIN;
    drawing.text(MARGIN, 42.0, 20.0, INK, "font-weight=\"600\"", &cut(title, room, 20.0));
    drawing.text(MARGIN, 64.0, 12.0, FAINT, "", &cut(&model.machine, room, 12.0));
    let mut y = if model.machine.is_empty() { 72.0 } else { 92.0 };
    for line in model.headlines.iter().flat_map(|headline| wrap(headline, room, 14.0)).take(12) {
        drawing.text(MARGIN, y, 14.0, INK, "", &line);
        y += 20.0;
    }
    y + 8.0
}

impl<'a> Sheet<'a> {
    fn of(model: &'a Model) -> Sheet<'a> {
        let shown = model.targets.iter().filter(|target| !target.duplicate);
        let longest = shown.map(|t| t.name.chars().count().max(t.note.chars().count() * 9 / 10)).max().unwrap_or(0);
        let names = (longest.min(LONGEST_NAME) as f64 * 6.9 + 12.0).max(96.0);
        let most = model.works.iter().map(|work| panels(work).len()).max().unwrap_or(0);
        let columns = most.clamp(1, COLUMNS) as f64;
        let width = MARGIN * 2.0 + names + columns * (PLOT + NUMBERS + GAP);
        Sheet { model, names, width: width.max(760.0) }
    }

    fn work(&self, drawing: &mut Drawing, work: &WorkReport, top: f64) -> f64 {
        let mut y = top;
        if shown(self.model).count() > 1 {
            drawing.text(MARGIN, y + 18.0, 16.0, INK, "font-weight=\"600\"", &cut(&work.name, self.width, 16.0));
            y += 30.0;
        }
        for band in panels(work).chunks(COLUMNS) {
            y = self.band(drawing, work, band, y);
        }
        drawing.text(MARGIN, y - 2.0, 11.0, FAINT, "", &cut(&work.noise, self.width, 11.0));
        y + if work.noise.is_empty() { 0.0 } else { 22.0 }
    }

    /// Panels side by side, which share the names at the left.
    fn band(&self, drawing: &mut Drawing, work: &WorkReport, panels: &[&Panel], top: f64) -> f64 {
        let first_row = top + 40.0;
        for (at, row) in panels[0].rows.iter().enumerate() {
            self.name(drawing, work, row, first_row + at as f64 * ROW);
        }
        for (at, panel) in panels.iter().enumerate() {
            let left = MARGIN + self.names + at as f64 * (PLOT + NUMBERS + GAP);
            self.panel(drawing, work, panel, (left, top), at == 0);
        }
        first_row + panels[0].rows.len() as f64 * ROW + 58.0
    }

    fn name(&self, drawing: &mut Drawing, work: &WorkReport, row: &Row, y: f64) {
        let target = &self.model.targets[row.target];
        let below = below_name(work, row, &target.note);
        let middle = y + ROW / 2.0;
        let baseline = if below.is_empty() { middle + 4.0 } else { middle - 2.0 };
        let room = self.names - 8.0;
        drawing.text_with_title(MARGIN, baseline, 12.5, INK, &cut_middle(&target.name, room, 12.5), &target.name);
        drawing.text_with_title(MARGIN, middle + 12.0, 10.5, FAINT, &cut(&below, room, 10.5), &below);
    }

    fn panel(&self, drawing: &mut Drawing, work: &WorkReport, panel: &Panel, (left, top): (f64, f64), first: bool) {
        let reference = work.reference.map_or("", |at| &self.model.targets[at].name);
        let (plot_top, bottom) = (top + 40.0, top + 40.0 + panel.rows.len() as f64 * ROW);
        let axis = Axis::over(panel, left + 8.0, left + PLOT - 8.0);
        let above = if panel.refused.is_some() { 16.0 } else { 26.0 };
        drawing.text(left, top + above, 13.0, INK, "font-weight=\"600\"", &cut(&panel.name, PLOT + NUMBERS, 13.0));
        if let Some(why) = &panel.refused {
            drawing.text_with_title(left, top + 32.0, 10.5, MORE, &cut(why, PLOT + NUMBERS, 10.5), why);
        }
        let (from, to) = axis.band(panel.band.threshold);
        drawing.rectangle(from, plot_top, to - from, bottom - plot_top, BAND);
        for (x, label) in axis.ticks() {
            drawing.line((x, plot_top), (x, bottom), GRID, 1.0);
            drawing.text(x, bottom + 15.0, 10.5, FAINT, "text-anchor=\"middle\"", &label);
        }
        drawing.line((axis.one(), plot_top), (axis.one(), bottom), FAINT, 1.2);
        let label = format!("{} relative to {}", quantity(panel), cut(reference, 130.0, 10.5));
        drawing.text(left + PLOT / 2.0, bottom + 31.0, 10.5, FAINT, "text-anchor=\"middle\"", &label);
        for (at, row) in panel.rows.iter().enumerate() {
            let y = plot_top + (at as f64 + 0.5) * ROW;
            match &row.figure {
                Some(figure) => self.row(drawing, work, panel, (row, figure), &axis, y),
                // Why is said once, at the left.
                None => absent(drawing, &axis, y, if first { &row.absent.why } else { row.absent.word }),
            }
        }
    }

    fn row(
        &self,
        drawing: &mut Drawing,
        work: &WorkReport,
        panel: &Panel,
        (row, figure): (&Row, &Figure),
        axis: &Axis,
        y: f64,
    ) {
        let hollow = !self.model.targets[row.target].weakened.is_empty();
        if work.reference == Some(row.target) {
            drawing.diamond(axis.one(), y, FAINT, hollow);
        } else if let Some(against) = &row.against {
            let colour = colour(against.finding.as_ref());
            if let Some((low, high)) = against.estimate.interval {
                drawing.whisker(axis.at(low), axis.at(high), y, colour);
            }
            drawing.dot(axis.at(against.estimate.ratio), y, colour, hollow);
        }
        figure_beside(drawing, panel, (row, figure), axis.right + 14.0, y);
    }
}

/// What sets a target apart, under its name.
fn below_name(work: &WorkReport, row: &Row, note: &str) -> String {
    let reference = if work.reference == Some(row.target) { "reference" } else { "" };
    let missing = row.figure.as_ref().filter(|figure| figure.missing > 0).map(|f| format!("n = {}", f.rounds_shown));
    let parts = [reference.to_string(), missing.unwrap_or_default(), note.to_string()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn absent(drawing: &mut Drawing, axis: &Axis, y: f64, why: &str) {
    let words = cut(why, PLOT + NUMBERS - 24.0, 10.5);
    drawing.rectangle(axis.left, y - 9.0, words.chars().count() as f64 * 5.9 + 6.0, 18.0, "#ffffff");
    drawing.text_with_title(axis.left + 2.0, y + 4.0, 10.5, FAINT, &words, why);
}

/// The median, and under it the ratio with its interval.
fn figure_beside(drawing: &mut Drawing, panel: &Panel, (row, figure): (&Row, &Figure), x: f64, y: f64) {
    let best = panel.best.as_ref().is_some_and(|best| best.members.contains(&row.target));
    let weight = if best { "font-weight=\"600\"" } else { "" };
    let below = match &row.against {
        Some(against) => format!("×{}{}", against.shown, marks::signs(&marks::of_ratio(against))),
        None => figure.range.clone(),
    };
    drawing.text(
        x,
        y - 2.0,
        11.5,
        INK,
        weight,
        &format!("{}{}", figure.shown, marks::signs(&marks::of_figure(panel, row))),
    );
    drawing.text(x, y + 12.0, 10.5, FAINT, "", &cut(below.trim_end(), NUMBERS + 2.0, 10.5));
}

/// Times first, then space and CPU if they were compared.
fn panels(work: &WorkReport) -> Vec<&Panel> {
    let beside = work.beside.iter().flat_map(|table| &table.panels);
    let beside: Vec<&Panel> = beside.collect();
    let find = |metric: &str| beside.iter().copied().find(|panel| panel.metric == metric);
    let space = find("space_grown_bytes").or_else(|| find("space_allocated_bytes"));
    work.phases.iter().chain(space).chain(find("cpu_system_wide_ns")).collect()
}

fn quantity(panel: &Panel) -> &'static str {
    match panel.metric.as_str() {
        "time_ns" => "time",
        "cpu_system_wide_ns" => "CPU time",
        _ => "space",
    }
}

fn colour(finding: Option<&Finding>) -> &'static str {
    match finding {
        Some(Finding::Lower) => LESS,
        Some(Finding::Higher) => MORE,
        _ => UNDECIDED,
    }
}

fn legend(drawing: &mut Drawing, sheet: &Sheet, works: &[&WorkReport], y: f64) -> f64 {
    let entries = [
        (LESS, false, "clearly less"),
        (MORE, false, "clearly more"),
        (UNDECIDED, false, "tie, or not decided"),
        (UNDECIDED, true, "hollow: weaker durability"),
    ];
    let mut x = MARGIN + 6.0;
    for (colour, hollow, words) in entries {
        drawing.dot(x, y, colour, hollow);
        drawing.text(x + 11.0, y + 4.0, 11.0, FAINT, "", words);
        x += 30.0 + words.chars().count() as f64 * 6.2;
    }
    let used = marks::used(works.iter().flat_map(|work| panels(work)));
    let meanings = marks::meanings(&used, "the reference").join("; ");
    let words = format!(
        "Less is better. Dots are ratios paired by round, lines their 95 % intervals, on a logarithmic axis; in the grey \
         band differences are small, or are noise. {meanings}"
    );
    let mut below = y + 24.0;
    for line in wrap(&words, sheet.width - 2.0 * MARGIN, 11.0) {
        drawing.text(MARGIN, below, 11.0, FAINT, "", &line);
        below += 16.0;
    }
    below + 8.0
}
