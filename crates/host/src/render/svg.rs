//! Forest plots as one picture: for each phase the ratio of every target to the reference, with its
//! interval on a logarithmic axis; then space and CPU. Light background, colours that the
//! colour-blind can tell apart, and nothing that is said by colour alone. Each chart of the page
//! can stand alone as a picture too.

use super::Format;
use super::chart::forest::{Mark, View};
use super::chart::painter::{Font, Painter, wrap};
use super::chart::series::{self, Chart};
use super::chart::{Sheet, effects, flame, shapes, waterfall};
use crate::analysis::{Model, Panel, Row, WorkReport};
use crate::wording::marks;

const MARGIN: f64 = 24.0;
const PLOT: f64 = 188.0;
/// Room for "×0.881 (0.876–0.884) ~" right of a plot.
const NUMBERS: f64 = 142.0;
const GAP: f64 = 10.0;
const ROW: f64 = 38.0;
const COLUMNS: usize = 3;
const LONGEST_NAME: usize = 40;
/// The room that a label below a plot needs, in percent of its width.
const LABEL: f64 = 17.0;

const TITLE: Font = Font::new(20.0, "ink bold");
const WORK: Font = Font::new(16.0, "ink bold");
const HEADLINE: Font = Font::new(14.0, "ink");
const PANEL: Font = Font::new(13.0, "ink bold");
const NAME: Font = Font::new(12.5, "ink");
const MACHINE: Font = Font::new(12.0, "");
const FIGURE: Font = Font::new(11.5, "ink");
const BEST_FIGURE: Font = Font::new(11.5, "ink bold");
const NOTE: Font = Font::new(11.0, "");
const SMALL: Font = Font::new(10.5, "");
const TICK: Font = Font::centred(10.5);

pub(crate) const SVG: Format = Format {
    name: "svg",
    about: "forest plots of time, space and CPU as one picture",
    run: Some(|model, _, out| out.write_all(picture(model, &model.reports().collect::<Vec<_>>()).as_bytes())),
    tunings: Some(|tunings, _, out| out.write_all(effects::picture(tunings).as_bytes())),
    ..Format::NONE
};

/// Every picture of a report by itself, with the name of its file: of each work the ratios, then
/// what has two axes.
pub fn pictures(model: &Model) -> Vec<(String, String)> {
    let sheet = Sheet::of(model);
    let alone = |chart: Chart| (chart.name.clone(), chart.alone(&sheet));
    let mut pictures: Vec<(String, String)> = Vec::new();
    for work in model.reports() {
        pictures.push((shapes::file_name(&["ratios", &work.name]), picture(model, &[work])));
        let charts = [series::rounds(&sheet, work), series::latencies(&sheet, work), series::rates(&sheet, work)];
        pictures.extend(charts.into_iter().flatten().map(alone));
    }
    if let Some(criteria) = &model.criteria {
        let reference = criteria.rows.iter().position(|row| row.target == criteria.reference);
        let charts = reference.map(|at| series::criteria(&sheet, criteria, at)).unwrap_or_default();
        pictures.extend(charts.into_iter().map(alone));
    }
    pictures.extend(waterfall::waterfalls(model).into_iter().chain(flame::flames(model)).map(alone));
    let names = unlike(pictures.iter().map(|(name, _)| name.as_str()));
    names.into_iter().zip(pictures).map(|(name, (_, picture))| (format!("{name}.svg"), picture)).collect()
}

/// Names that would overwrite each other get a number.
fn unlike<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.to_string()).chain(numbered).find(|name| !taken.contains(name));
        taken.extend(free);
    }
    taken
}

fn picture(model: &Model, works: &[&WorkReport]) -> String {
    let page = Page::of(model);
    let mut painter = Painter::new(page.width, 0.0);
    let mut y = page.head(&mut painter);
    for work in works {
        y = page.work(&mut painter, work, y);
    }
    if works.iter().any(|work| !work.phases.is_empty()) {
        y = page.legend(&mut painter, works, y);
    }
    painter.height = y;
    painter.alone(0.0, &model.title, "")
}

/// Sizes that all panels share.
struct Page<'a> {
    model: &'a Model,
    names: f64,
    width: f64,
}

impl<'a> Page<'a> {
    fn of(model: &'a Model) -> Page<'a> {
        let shown = model.targets.iter().filter(|target| !target.duplicate);
        let longest = shown.map(|t| t.name.chars().count().max(t.note().chars().count() * 9 / 10)).max().unwrap_or(0);
        let names = (longest.min(LONGEST_NAME) as f64 * 6.9 + 12.0).max(96.0);
        let most = model.works.iter().map(|work| panels(work).len()).max().unwrap_or(0);
        let columns = most.clamp(1, COLUMNS) as f64;
        let width = MARGIN * 2.0 + names + columns * (PLOT + NUMBERS + GAP);
        Page { model, names, width: width.max(760.0) }
    }

    fn head(&self, painter: &mut Painter) -> f64 {
        let title = if self.model.title.is_empty() { "pickfs" } else { &self.model.title };
        let room = self.width - 2.0 * MARGIN;
        painter.text_cut((MARGIN, 42.0), &TITLE, room, title);
        painter.text_cut((MARGIN, 64.0), &MACHINE, room, &self.model.machine());
        let y = if self.model.machine().is_empty() { 72.0 } else { 92.0 };
        let headlines = self.model.headlines();
        let lines = headlines.iter().flat_map(|headline| wrap(headline, room, HEADLINE.size));
        painter.paragraph((MARGIN, y), &HEADLINE, 20.0, &lines.take(12).collect::<Vec<_>>()) + 8.0
    }

    fn work(&self, painter: &mut Painter, work: &WorkReport, top: f64) -> f64 {
        let mut y = top;
        if self.model.reports().count() > 1 {
            painter.text_cut((MARGIN, y + 18.0), &WORK, self.width, &work.name);
            y += 30.0;
        }
        for band in panels(work).chunks(COLUMNS) {
            y = self.band(painter, work, band, y);
        }
        painter.text_cut((MARGIN, y - 2.0), &NOTE, self.width, &work.noise_floor(self.model));
        y + if work.noise_floor(self.model).is_empty() { 0.0 } else { 22.0 }
    }

    /// Panels side by side, which share the names at the left.
    fn band(&self, painter: &mut Painter, work: &WorkReport, panels: &[&Panel], top: f64) -> f64 {
        let first_row = top + 40.0;
        for (at, row) in panels[0].rows.iter().enumerate() {
            self.name(painter, work, row, first_row + at as f64 * ROW);
        }
        for (at, panel) in panels.iter().enumerate() {
            let left = MARGIN + self.names + at as f64 * (PLOT + NUMBERS + GAP);
            // Why a figure is absent is said once, at the left.
            let absent = |row: &Row| if at == 0 { row.absent.why().clone() } else { row.absent.word().to_string() };
            self.panel(painter, work, panel, (left, top), absent);
        }
        first_row + panels[0].rows.len() as f64 * ROW + 58.0
    }

    fn name(&self, painter: &mut Painter, work: &WorkReport, row: &Row, y: f64) {
        let target = &self.model.targets[row.target];
        let below = below_name(work, row, &target.note());
        let middle = y + ROW / 2.0;
        let baseline = if below.is_empty() { middle + 4.0 } else { middle - 2.0 };
        painter.text_cut_in_the_middle((MARGIN, baseline), &NAME, self.names - 8.0, &target.name);
        painter.text_cut((MARGIN, middle + 12.0), &SMALL, self.names - 8.0, &below);
    }

    fn panel(
        &self,
        painter: &mut Painter,
        work: &WorkReport,
        panel: &Panel,
        (left, top): (f64, f64),
        absent: impl Fn(&Row) -> String,
    ) {
        let (plot_top, bottom) = (top + 40.0, top + 40.0 + panel.rows.len() as f64 * ROW);
        let view = View::of(panel, work.reference, LABEL);
        let at = |percent: f64| left + percent / 100.0 * PLOT;
        painter.text_cut((left, top + 26.0), &PANEL, PLOT + NUMBERS, &panel.name);
        let (from, to) = view.band;
        painter.rectangle((at(from), plot_top), (at(to) - at(from), bottom - plot_top), "band");
        for (x, label) in &view.ticks {
            painter.upright(at(*x), (plot_top, bottom), "g");
            painter.text((at(*x), bottom + 15.0), &TICK, label);
        }
        painter.upright(at(view.one), (plot_top, bottom), "one");
        let reference = work.reference.map_or("", |at| &self.model.targets[at].name);
        let label = format!("{} relative to {reference}", quantity(panel));
        painter.text_cut((left + PLOT / 2.0, bottom + 31.0), &TICK, PLOT + NUMBERS, &label);
        for (place, (row, mark)) in panel.rows.iter().zip(&view.marks).enumerate() {
            let y = plot_top + (place as f64 + 0.5) * ROW;
            if row.figure.is_none() {
                let why = absent(row);
                let room = PLOT + NUMBERS - 24.0;
                let width = (why.chars().count() as f64 * 5.9 + 6.0).min(room);
                painter.rectangle((left + 8.0, y - 9.0), (width, 18.0), "paper");
                painter.text_cut((left + 10.0, y + 4.0), &SMALL, room, &why);
            } else if !mark.finding.is_empty() {
                painter.finding(mark.finding, (at(mark.from), at(mark.at), at(mark.to)), y);
            }
            numbers(painter, panel, (row, mark), (left + PLOT + 6.0, y));
        }
    }

    /// What symbols and marks in these works mean.
    fn legend(&self, painter: &mut Painter, works: &[&WorkReport], y: f64) -> f64 {
        let shown = || works.iter().flat_map(|work| panels(work).into_iter().map(|panel| (*work, panel)));
        let views: Vec<View> = shown().map(|(work, panel)| View::of(panel, work.reference, LABEL)).collect();
        let is_shown = |finding: &str| views.iter().flat_map(|view| &view.marks).any(|mark| mark.finding == finding);
        let (mut x, mut y) = (MARGIN + 6.0, y);
        for (finding, words) in shapes::MEANINGS.into_iter().filter(|(finding, _)| is_shown(finding)) {
            let room = 30.0 + words.chars().count() as f64 * 6.2;
            if x + room > self.width {
                (x, y) = (MARGIN + 6.0, y + 20.0);
            }
            painter.finding(finding, (x, x, x), y);
            painter.text((x + 11.0, y + 4.0), &NOTE, words);
            x += room;
        }
        let meanings = marks::meanings(&marks::used(shown().map(|(_, panel)| panel)), "the reference").join("; ");
        let all_less = shown().all(|(_, panel)| panel.better == crate::analysis::Better::Less);
        let better = if all_less { "Less is better. " } else { "Of rates more is better, of times less. " };
        let words = format!(
            "{better}Symbols are ratios paired by round, lines their 95 % intervals, on a logarithmic axis; in the \
             grey band differences are small, or are noise. {meanings}"
        );
        let lines = wrap(&words, self.width - 2.0 * MARGIN, NOTE.size);
        painter.paragraph((MARGIN, y + 24.0), &NOTE, 16.0, &lines) + 8.0
    }
}

/// What sets a target apart, under its name.
fn below_name(work: &WorkReport, row: &Row, note: &str) -> String {
    let reference = if work.reference == Some(row.target) { "reference" } else { "" };
    let missing = row.figure.as_ref().filter(|figure| figure.missing > 0).map(|f| format!("n = {}", f.rounds_shown()));
    let parts = [reference.to_string(), missing.unwrap_or_default(), note.to_string()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The median, and under it the ratio with its interval.
fn numbers(painter: &mut Painter, panel: &Panel, (row, mark): (&Row, &Mark), (x, y): (f64, f64)) {
    let Some(figure) = &row.figure else { return };
    let best = panel.race.as_ref().is_some_and(|race| race.may_be_best().any(|at| at == row.target));
    let signs = marks::signs(&marks::of_figure(panel, row));
    painter.text((x, y - 2.0), if best { &BEST_FIGURE } else { &FIGURE }, &format!("{}{signs}", figure.shown()));
    let below = if row.against.is_some() { &mark.ratio } else { &figure.range() };
    painter.text_cut((x, y + 12.0), &SMALL, NUMBERS + 2.0, below);
}

/// Times first, then space and CPU if they were compared.
fn panels(work: &WorkReport) -> Vec<&Panel> {
    work.phases.iter().chain(work.cost_panels().map(|(_, panel)| panel)).collect()
}

fn quantity(panel: &Panel) -> &'static str {
    match panel.metric.as_str() {
        "time_ns" => "time",
        "cpu_net_ns" => "CPU time",
        metric if metric.starts_with("space_") => "space",
        _ => "value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_picture_overwrites_another() {
        assert_eq!(unlike(["a", "b", "a", "a-2", "a"].into_iter()), ["a", "b", "a-2", "a-2-2", "a-3"]);
    }
}
