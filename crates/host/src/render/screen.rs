//! The answer on one screen: at most 25 lines of 80 columns where there are few targets. `full` has
//! the rest. What goes into a pipe or a file has all targets.

use super::Options;
use crate::analysis::{Figure, Hole, HoleKind, Model, Panel, Row, WorkReport};
use crate::wording::advice::pasted;
use crate::wording::answer::{Standing, UNPROVEN, UNPROVEN_SIGN, interval, signed, signed_percent, signs};
use crate::wording::axis::Axis;
use crate::wording::durability;
use crate::wording::headings;
use crate::wording::text::{capital, left, lines, right, wrapped};
use std::io::{self, Write};
use textwrap::core::display_width;

/// Lines of an old terminal of 80 columns; narrower ones need more for the same sentences.
const LINES: usize = 25;
const LINES_OF_NARROW: usize = 34;
/// More than no screen of text has.
const ENDLESS: usize = 1 << 16;
/// A run without `--fs` compares five targets: all of them are shown, however small the terminal.
const FEWEST_ROWS: usize = 5;
/// The full report has all.
const MOST_NOTES: usize = 3;
/// Columns that the axis of the intervals has; in fewer than the least it shows nothing.
const WIDEST_AXIS: usize = 40;
const NARROWEST_AXIS: usize = 9;

pub(crate) fn report(model: &Model, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let text = Screen { model, options, width: options.width.clamp(40, 120) }.text();
    let text = if options.unicode { text } else { ascii(&text) };
    out.write_all(text.as_bytes())
}

struct Screen<'a> {
    model: &'a Model,
    options: &'a Options,
    width: usize,
}

/// A column of the table of differences.
struct Column<'a> {
    heading: &'a str,
    panel: &'a Panel,
    /// It is no time: set apart from the times before it.
    is_cost: bool,
}

/// A figure of that table.
struct Difference {
    number: String,
    sign: &'static str,
    look: Look,
}

/// The sign that all figures of a column have, which then stands at its heading; empty where they
/// differ or there is one alone.
fn common_sign(figures: &[Option<Difference>]) -> &'static str {
    let mut signs = figures.iter().flatten().map(|found| found.sign);
    match signs.next() {
        Some(first) if figures.len() > 1 && signs.all(|sign| sign == first) => first,
        _ => "",
    }
}

#[derive(Clone, Copy)]
enum Look {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
}

impl Screen<'_> {
    fn text(&self) -> String {
        let head = [
            self.look(Look::Strong, &whole_parts(&self.model.setting(), self.width)),
            self.look(Look::Faint, &shortened(&self.model.circumstances(), self.width)),
            String::new(),
        ];
        let answer: Vec<String> = self.answer().into_iter().chain(self.power_cuts()).collect();
        let end = self.end();
        if self.model.works.iter().any(|work| work.is_foreign) {
            return self.foreign(head.to_vec(), answer, end);
        }
        let work = self.judged();
        let panel = work.and_then(|work| work.phases.first()).filter(|panel| !measured(panel).is_empty());
        let (Some(work), Some(panel)) = (work, panel) else {
            return head.into_iter().chain(answer).chain(end).map(|line| line + "\n").collect();
        };
        let columns = self.columns(work);
        // Headings, empty lines and the legend of two tables.
        let around = head.len() + answer.len() + end.len() + if columns.is_empty() { 3 } else { 6 };
        let tables = if columns.is_empty() { 1 } else { 2 };
        let mut rows = in_order(panel);
        // The reference has no row in the second table.
        let room = ((self.most_lines() + tables - 1).saturating_sub(around) / tables).max(FEWEST_ROWS);
        // A line says how many are left out.
        let shown = if rows.len() > room { room - 1 } else { rows.len() };
        let left_out = rows.len() - shown;
        // What all are compared with is among them.
        if let Some(at) = rows.iter().position(|row| work.reference == Some(row.target)).filter(|at| *at >= shown) {
            rows[shown - 1..=at].rotate_right(1);
        }
        let mut text: Vec<String> = head.into_iter().chain(answer).collect();
        text.push(String::new());
        text.extend(self.intervals(work, panel, &rows[..shown]));
        if left_out > 0 {
            text.push(self.look(Look::Faint, &format!("  … and {left_out} more: pickfs report --full")));
        }
        if !columns.is_empty() {
            text.push(String::new());
            text.extend(self.differences(work, &columns, &rows[..shown]));
        }
        text.push(String::new());
        text.extend(end);
        text.into_iter().map(|line| line.trim_end().to_string() + "\n").collect()
    }

    fn most_lines(&self) -> usize {
        let usual = if self.width < 80 { LINES_OF_NARROW } else { LINES };
        self.options.lines.map_or(ENDLESS, |lines| lines.max(usual))
    }

    /// What the answer is about: all works together, or the first.
    fn judged(&self) -> Option<&WorkReport> {
        self.model.judged()
    }

    /// With several works, each has a line below the answer for all of them.
    fn answer(&self) -> Vec<String> {
        let sentences = self.model.headlines();
        let (first, others) = sentences.split_at(sentences.len().min(1));
        let first = first.iter().flat_map(|line| lines(line, self.width));
        let others = others.iter().map(|line| shortened(line, self.width));
        // Where file systems share no option, the verdict has named the best of each.
        let best = self.model.champions.iter().filter(|champions| !champions.factor.is_empty());
        let best = best.flat_map(|champions| lines(&champions.in_short(self.model), self.width));
        let answers = first.chain(others).map(|line| self.look(Look::Strong, &line));
        let why = self.model.explanations().into_iter().take(MOST_NOTES);
        let why = why.flat_map(|line| lines(&line, self.width)).collect::<Vec<_>>();
        answers.chain(best.take(MOST_NOTES)).chain(why).collect()
    }

    /// What power cuts have taken: of each target, where these are few; of targets that broke a
    /// promise always.
    fn power_cuts(&self) -> Vec<String> {
        let found = self.judged().map(|work| work.durability.as_slice()).unwrap_or_default();
        let found = durability::guilty_first(found);
        let most = MOST_NOTES.max(found.iter().filter(|found| found.broken > 0).count());
        let shown = found.iter().take(most).map(|found| durability::short(found, self.model));
        let left_out = found.len().saturating_sub(most);
        let more = (left_out > 0).then(|| format!("and {left_out} more: pickfs report --full"));
        shown.chain(more).flat_map(|line| lines(&line, self.width)).collect()
    }

    /// Why it is open, how to go on, and where the rest is.
    fn end(&self) -> Vec<String> {
        let judged = self.judged();
        let unproven =
            |work: &WorkReport| work.phases.iter().flat_map(|panel| &panel.rows).any(|row| row.unproven_cache);
        let unproven = judged.is_some_and(unproven).then(|| format!("{UNPROVEN_SIGN} {UNPROVEN}"));
        let failed = |hole: &&Hole| matches!(hole.kind, HoleKind::Failed | HoleKind::Skipped);
        let holes: Vec<String> = self.model.holes.iter().filter(failed).map(|hole| hole.sentence(self.model)).collect();
        let left_out = holes.len().saturating_sub(MOST_NOTES);
        let more = (left_out > 0).then(|| format!("and {left_out} more: pickfs report --full"));
        // A target that failed is not ranked for that reason: once is enough.
        let notes = judged.filter(|_| holes.is_empty()).map(|work| work.notes(self.model)).unwrap_or_default();
        let doubts = self.model.warnings().into_iter().take(1);
        let missing = holes.into_iter().take(MOST_NOTES).chain(more).map(|line| format!("Missing: {line}"));
        let notes = unproven.into_iter().chain(notes.into_iter().take(MOST_NOTES)).chain(doubts);
        let notes = missing.chain(notes.map(|line| format!("Note: {line}")));
        let mut end: Vec<String> = notes.flat_map(|note| lines(&note, self.width)).collect();
        if let Some(advice) = self.model.advice() {
            end.push(shortened(&format!("{} {}", headings::TO_USE, advice.target), self.width));
            end.extend(pasted(advice.steps.iter().filter(|step| step.is_first)));
        }
        if let Some(command) = self.model.next_step() {
            end.push(format!("Go on      {command}"));
        }
        end.push("All tables pickfs report --full".to_string());
        end
    }

    fn intervals(&self, work: &WorkReport, panel: &Panel, rows: &[&Row]) -> Vec<String> {
        let name = |row: &&Row| self.model.targets[row.target].name.clone();
        let reference = work.reference.map_or("", |at| self.model.targets[at].name.as_str());
        let unit = panel.unit;
        let figure = |row: &&Row| centre(row).map_or(String::new(), |time| unit.show(time));
        let figures = widest(rows.iter().map(figure)).max(4);
        let standing = |row: &Row| {
            if work.reference == Some(row.target) {
                Standing::Reference
            } else {
                Standing::in_panel(panel, row.target, row.against.as_ref())
            }
        };
        let difference =
            |row: &Row| row.against.as_ref().map_or(String::new(), |found| signed_percent(found.estimate.ratio));
        let range = |row: &Row| row.against.as_ref().map_or(String::new(), |found| interval(&found.estimate));
        let versus = format!("vs {reference}");
        let differences = widest(rows.iter().map(|row| difference(row)).chain([versus.clone()])).min(16);
        let ranges = widest(rows.iter().map(|row| range(row)).chain(["95 % interval".to_string()]));
        let ratio = |row: &Row| row.against.as_ref().map_or(1.0, |found| found.estimate.ratio);
        let pick = self.model.pick_of(panel);
        let most = (self.width / 4).max(15);
        let word = |row: &Row| shortened(&standing(row).word(ratio(row), work.terms(), pick), most);
        let words = widest(rows.iter().map(|row| word(row)));
        let taken = 2 + 2 + figures + 2 + differences + 2 + ranges + 2 + words;
        let names = widest(rows.iter().map(name).chain([panel.name.clone()])).min(self.width / 3);
        let names = names.min(self.width.saturating_sub(taken)).max(6);
        let room = self.width.saturating_sub(taken + names + 2).min(WIDEST_AXIS);
        let axis = (room >= NARROWEST_AXIS).then(|| Axis::new(rows.iter().map(|row| bounds(row)), room));
        let scale = axis.as_ref().map_or(String::new(), |axis| format!("{}  ", axis.scale()));
        let heading = format!(
            "{}  {}  {scale}{}  {:>ranges$}",
            fitted(&capital(&panel.name), names + 2),
            right(work.terms().measured, figures),
            right(&shortened(&versus, differences), differences),
            "95 % interval",
        );
        let line = |row: &&Row| {
            let drawn = axis.as_ref().map_or(String::new(), |axis| format!("{}  ", axis.drawn(bounds(row))));
            let text = format!(
                "  {}  {}  {drawn}{}  {}  ",
                fitted(&name(row), names),
                right(&figure(row), figures),
                right(&difference(row), differences),
                right(&range(row), ranges),
            );
            let is_best = panel.race.as_ref().is_some_and(|race| race.may_be_best().any(|at| at == row.target));
            let look = if is_best { Look::Strong } else { Look::Plain };
            let colour = match standing(row) {
                Standing::Better => Look::Good,
                Standing::Worse => Look::Bad,
                _ => Look::Faint,
            };
            format!("{}{}", self.look(look, &text), self.look(colour, &word(row)))
        };
        std::iter::once(heading).chain(rows.iter().map(line)).collect()
    }

    /// Phases of the only work, or the works themselves; then what the time is paid with.
    fn columns<'a>(&'a self, work: &'a WorkReport) -> Vec<Column<'a>> {
        // Alone, a target differs from nothing.
        if work.phases.first().is_none_or(|panel| measured(panel).len() < 2) {
            return Vec::new();
        }
        let time = |heading: &'a str, panel: &'a Panel| Column { heading, panel, is_cost: false };
        let mut columns: Vec<Column> = match self.model.works.as_slice() {
            [only] => only.phases.iter().filter(|panel| !panel.phase.is_empty()).map(|p| time(&p.name, p)).collect(),
            works => works.iter().filter_map(|work| Some(time(&work.name, work.phases.first()?))).collect(),
        };
        if columns.len() == 1 && self.model.works.len() == 1 {
            columns.clear();
        }
        columns.extend(work.cost_panels().map(|(heading, panel)| Column { heading, panel, is_cost: true }));
        columns
    }

    fn differences(&self, work: &WorkReport, columns: &[Column], rows: &[&Row]) -> Vec<String> {
        let reference = work.reference.map_or("", |at| self.model.targets[at].name.as_str());
        let title = format!("% vs {reference}");
        let others: Vec<&&Row> = rows.iter().filter(|row| work.reference != Some(row.target)).collect();
        let names = others.iter().map(|row| self.model.targets[row.target].name.clone());
        let names = widest(names.chain([title.clone()])).min(self.width / 3);
        let width =
            |column: &Column| display_width(column.heading).clamp(5, 12) + 2 + if column.is_cost { 1 } else { 0 };
        // The full report has the ones that do not fit.
        let mut left = self.width.saturating_sub(names + 2);
        let fits = |column: &&Column| {
            let taken = width(column);
            left.checked_sub(taken).map(|rest| left = rest).is_some()
        };
        let columns: Vec<&Column> = columns.iter().filter(fits).collect();
        let figures = |column: &Column| self.figures_of(column, &others);
        let shown: Vec<(&Column, Vec<Option<Difference>>)> =
            columns.into_iter().map(|column| (column, figures(column))).collect();
        let signs: Vec<&str> = shown.iter().map(|(_, figures)| common_sign(figures)).collect();
        let head = shown.iter().zip(&signs).map(|((column, _), sign)| {
            let sign = if sign.is_empty() { " " } else { sign };
            right(&shortened(column.heading, 12), width(column) - 1) + sign
        });
        let heading = format!("{}{}", fitted(&title, names + 2), head.collect::<String>());
        let cell = |(at, (column, figures)): (usize, &(&Column, Vec<Option<Difference>>)), row: usize| {
            let Some(Difference { number, sign, look }) = &figures[row] else { return right("– ", width(column)) };
            let is_said = !signs[at].is_empty() || (self.options.color && *sign == "?");
            let sign = if is_said || sign.is_empty() { " " } else { sign };
            self.look(*look, &right(&format!("{number}{sign}"), width(column)))
        };
        let line = |(number, row): (usize, &&&Row)| {
            let name = fitted(&self.model.targets[row.target].name, names);
            let cells = shown.iter().enumerate().map(|column| cell(column, number));
            format!("  {name}{}", cells.collect::<String>())
        };
        let used = |sign: &str| shown.iter().flat_map(|(_, figures)| figures).flatten().any(|found| found.sign == sign);
        let legend = self.legend_of_signs(&used, signs.iter().any(|sign| !sign.is_empty()));
        std::iter::once(heading).chain(others.iter().enumerate().map(line)).chain(legend).collect()
    }

    /// One for each row, none where there is nothing to compare.
    fn figures_of(&self, column: &Column, rows: &[&&Row]) -> Vec<Option<Difference>> {
        let of = |target: usize| {
            let row = column.panel.rows.iter().find(|row| row.target == target)?;
            let found = row.against.as_ref()?;
            let standing = Standing::in_panel(column.panel, target, Some(found));
            let look = match standing {
                Standing::Better => Look::Good,
                Standing::Worse => Look::Bad,
                Standing::Open | Standing::WorseThanPick | Standing::LeftEarly | Standing::Unknown => Look::Faint,
                _ => Look::Plain,
            };
            let sign = if row.unproven_cache { UNPROVEN_SIGN } else { standing.sign() };
            Some(Difference { number: signed(found.estimate.ratio), sign, look })
        };
        rows.iter().map(|row| of(row.target)).collect()
    }

    /// What the signs mean that the table has.
    fn legend_of_signs(&self, used: &dyn Fn(&str) -> bool, is_in_heading: bool) -> Option<String> {
        let parts = signs(self.options.color).into_iter().filter(|(sign, _)| used(sign)).map(|(_, meaning)| meaning);
        let parts: Vec<&str> = parts.chain(is_in_heading.then_some("at a heading: all below")).collect();
        (!parts.is_empty()).then(|| self.look(Look::Faint, &wrapped("  ", &parts.join("   "), self.width)))
    }

    /// What another program measured, in its own units: a table for each work, as long as there is
    /// room.
    fn foreign(&self, head: Vec<String>, answer: Vec<String>, end: Vec<String>) -> String {
        let around = head.len() + answer.len() + end.len() + 1;
        let each = (self.most_lines().saturating_sub(around) / self.model.works.len().max(1)).max(FEWEST_ROWS + 2);
        let tables = self.model.works.iter().flat_map(|work| self.figures(work, each - 2));
        let text = head.into_iter().chain(answer).chain(tables).chain([String::new()]).chain(end);
        text.map(|line| line.trim_end().to_string() + "\n").collect()
    }

    /// A row for each target and a column for each figure, or the other way round where that is
    /// shorter.
    fn figures(&self, work: &WorkReport, room: usize) -> Vec<String> {
        let panels: Vec<&Panel> = work.phases.iter().collect();
        let has_any = |at: &usize| panels.iter().any(|panel| figure(panel, *at).is_some());
        let targets: Vec<usize> = (0..self.model.targets.len()).filter(has_any).collect();
        let name = |target: usize| self.model.targets[target].name.clone();
        let one_phase = panels.iter().all(|panel| panel.phase == panels[0].phase);
        let heading = |panel: &Panel| if one_phase { panel.without_phase().to_string() } else { panel.name.clone() };
        let targets_down = targets.len() > 1 && panels.len() <= 6;
        let (down, across) = if targets_down { (targets.len(), panels.len()) } else { (panels.len(), targets.len()) };
        let cell = |row: usize, column: usize| {
            let (panel, target) = if targets_down { (column, row) } else { (row, column) };
            // One difference is enough for several figures of the same runs.
            foreign_cell(panels[panel], targets[target], !targets_down || panel == 0)
        };
        let label = |at: usize| if targets_down { name(targets[at]) } else { heading(panels[at]) };
        let title = |at: usize| if targets_down { heading(panels[at]) } else { name(targets[at]) };
        let shown = if down > room { room.saturating_sub(1) } else { down };
        let labels = widest((0..down).map(label).chain([work.name.clone()])).min(self.width / 2);
        let mut left = self.width.saturating_sub(labels + 2);
        let mut widths = Vec::new();
        for column in 0..across {
            let width = widest((0..down).map(|row| cell(row, column).0).chain([shortened(&title(column), 24)])) + 2;
            let Some(rest) = left.checked_sub(width) else { break };
            left = rest;
            widths.push(width);
        }
        let heads = widths.iter().enumerate().map(|(at, width)| right(&shortened(&title(at), 24), *width));
        let head = format!("{}{}", fitted(&work.name, labels + 2), heads.collect::<String>());
        let line = |row: usize| {
            let cells = widths.iter().enumerate().map(|(column, width)| {
                let (text, look) = cell(row, column);
                self.look(look, &right(&text, *width))
            });
            format!("  {}{}", fitted(&label(row), labels), cells.collect::<String>())
        };
        let hidden = (down - shown, across - widths.len());
        let more = (hidden != (0, 0)).then(|| self.look(Look::Faint, "  … more figures: pickfs report --full"));
        [String::new(), head].into_iter().chain((0..shown).map(line)).chain(more).collect()
    }

    fn look(&self, look: Look, text: &str) -> String {
        let code = match look {
            _ if !self.options.color || text.is_empty() => return text.to_string(),
            Look::Plain => return text.to_string(),
            Look::Strong => "1",
            Look::Faint => "2",
            Look::Good => "32",
            Look::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

fn figure(panel: &Panel, target: usize) -> Option<&Row> {
    panel.rows.iter().find(|row| row.target == target && row.figure.is_some())
}

/// "722/s (+12 %~)": the difference from the reference behind it.
fn foreign_cell(panel: &Panel, target: usize, compared: bool) -> (String, Look) {
    let Some(row) = figure(panel, target) else { return ("–".to_string(), Look::Faint) };
    let shown = row.figure.as_ref().map(Figure::shown).unwrap_or_default();
    let Some(found) = row.against.as_ref().filter(|_| compared) else { return (shown, Look::Plain) };
    let standing = Standing::of(Some(found)).by(panel.better);
    let look = match standing {
        Standing::Better => Look::Good,
        Standing::Worse => Look::Bad,
        _ => Look::Plain,
    };
    (format!("{shown} ({}{})", signed_percent(found.estimate.ratio), standing.sign()), look)
}

fn measured(panel: &Panel) -> Vec<&Row> {
    panel.rows.iter().filter(|row| row.figure.is_some()).collect()
}

/// Low, centre and high of the ratio to the reference.
fn bounds(row: &Row) -> [f64; 3] {
    let Some(found) = &row.against else { return [1.0; 3] };
    let (low, high) = found.estimate.interval.unwrap_or((0.0, f64::INFINITY));
    [low, found.estimate.ratio, high]
}

fn centre(row: &Row) -> Option<f64> {
    Some(row.figure.as_ref()?.centre)
}

/// The pick first, then by the paired ratio to the reference, which all share.
fn in_order(panel: &Panel) -> Vec<&Row> {
    let ratio = |row: &Row| row.against.as_ref().map_or(1.0, |found| found.estimate.ratio);
    let is_pick = |row: &Row| panel.race.as_ref().is_some_and(|race| race.pick == row.target);
    let mut rows = measured(panel);
    rows.sort_by(|a, b| is_pick(b).cmp(&is_pick(a)).then(ratio(a).total_cmp(&ratio(b))));
    rows
}

fn widest(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| display_width(&text)).max().unwrap_or(0)
}

/// The text in at most `width` columns; if it is cut, it ends in an ellipsis.
fn shortened(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_string();
    }
    let mut short = String::new();
    for c in text.chars() {
        if display_width(&short) + display_width(&c.to_string()) >= width {
            break;
        }
        short.push(c);
    }
    short.trim_end().to_string() + "…"
}

/// The same, without a part that would be cut: half a figure is none.
fn whole_parts(text: &str, width: usize) -> String {
    let short = shortened(text, width);
    match short.rsplit_once(" · ").filter(|_| short != text) {
        Some((whole, _)) => format!("{whole} …"),
        None => short,
    }
}

fn fitted(text: &str, width: usize) -> String {
    left(&shortened(text, width), width)
}

/// For terminals without UTF-8.
fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '−' | '–' => "-".to_string(),
            '×' => "x".to_string(),
            '·' => "|".to_string(),
            '…' => "...".to_string(),
            '├' | '┤' | '┊' => "|".to_string(),
            '─' => "-".to_string(),
            '●' => "o".to_string(),
            '◂' => "<".to_string(),
            '▸' => ">".to_string(),
            'µ' => "u".to_string(),
            c if c.is_ascii() => c.to_string(),
            _ => "?".to_string(),
        })
        .collect()
}
