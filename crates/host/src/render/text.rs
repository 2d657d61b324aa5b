//! The report for a terminal: plain text without colours, so that it reads the same in a pipe and
//! in a mail.

use super::{Format, Options};
use crate::analysis::{Champions, Compression, Criteria, Model, Overall, Panel, Row, Table, WorkReport};
use crate::wording::advice::{Advice, pasted};
use crate::wording::between_runs::RunComparison;
use crate::wording::comparison::ratio_or_dash;
use crate::wording::machines::MachinesReport;
use crate::wording::ranking::{self, Choice};
use crate::wording::text::{left, lines, right, wrapped};
use crate::wording::tuning::{CHOICES_LEGEND, EFFECTS, EFFECTS_LEGEND, Row as Effect, Tuned, where_it_matters};
use crate::wording::warnings::suspicious_readings;
use crate::wording::why::{LEDGERS, Ledger, LedgerRow};
use crate::wording::{champions, features, headings, marks};
use comfy_table::{CellAlignment, ContentArrangement, modifiers, presets};
use pickfs_stats::Estimate;
use std::fmt::Write as _;
use std::io::{self, Write};

/// What stands between a figure and its ratio in tables of two lines a row.
const UNDER: &str = "\n";

/// Every table of a run.
pub(crate) const FULL: Format =
    Format { name: "full", about: "plain text: every table of a run", run: Some(report), ..Format::NONE };

pub(crate) const TEXT: Format = Format {
    name: "text",
    about: "plain text: the answer on one screen",
    run: Some(super::screen::report),
    comparison: Some(comparison),
    ranking: Some(ranking),
    machines: Some(machines),
    tunings: Some(tunings),
    ..Format::NONE
};

fn report(model: &Model, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page { model, width: options.width.clamp(40, 400), out };
    page.head()?;
    if let Some(overall) = &model.overall {
        page.overall(overall)?;
    }
    for work in &model.works {
        page.work(work)?;
    }
    if let Some(champions) = &model.champions {
        page.champions(champions)?;
    }
    if let Some(criteria) = &model.criteria {
        page.criteria(criteria)?;
    }
    page.ledgers()?;
    page.tail()
}

fn comparison(runs: &RunComparison, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let width = options.width;
    writeln!(out, "{}\n", wrapped("", &runs.headline, width))?;
    let mut table = new_table(presets::UTF8_FULL_CONDENSED, width);
    table.set_header(["", "before", "now", "ratio", ""]);
    for row in &runs.rows {
        table.add_row([row.name().as_str(), &row.old, &row.new, &row.ratio, row.says]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    let legend = format!("Ratio: now over before, with its 95 % interval. {}", runs.caveat);
    writeln!(out, "{}\n", wrapped("", &legend, width))?;
    runs.missing.iter().try_for_each(|line| writeln!(out, "{}", wrapped("", line, width)))?;
    if !runs.facts.is_empty() {
        writeln!(out, "Not the same in both runs:")?;
    }
    runs.facts.iter().try_for_each(|fact| writeln!(out, "{}", wrapped("  ", &fact.sentence(), width)))
}

fn ranking(choices: &[Choice], options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut table = new_table(presets::UTF8_FULL_CONDENSED, options.width);
    table.set_header(ranking::COLUMNS);
    table.add_rows(choices.iter().map(ranking::cells));
    writeln!(out, "{table}\n{}\n", wrapped("", ranking::LEGEND, options.width))?;
    for choice in choices {
        writeln!(out, "{}", wrapped("", &ranking::sentence(choice), options.width))?;
    }
    let best = ranking::best_cells(choices);
    if best.is_empty() {
        return Ok(());
    }
    let mut table = new_table(presets::UTF8_FULL, options.width);
    table.set_header(ranking::BEST_COLUMNS);
    table.add_rows(best);
    writeln!(out, "\n{}\n{}", headings::BEST_OF_EACH, table.trim_fmt())?;
    writeln!(out, "{}", wrapped("", ranking::BEST_LEGEND, options.width))
}

fn machines(works: &[MachinesReport], options: &Options, out: &mut dyn Write) -> io::Result<()> {
    for work in works {
        writeln!(out, "{}", wrapped("", &format!("{}: {}", work.work, work.verdict), options.width))?;
        let mut table = new_table(presets::UTF8_FULL_CONDENSED, options.width);
        table.set_header(&work.columns);
        table.add_rows(&work.rows);
        if !work.rows.is_empty() {
            writeln!(out, "{table}")?;
        }
        work.notes.iter().try_for_each(|line| writeln!(out, "{}", wrapped("", line, options.width)))?;
    }
    let names = works.first().map(|work| work.machines.as_slice()).unwrap_or_default();
    names.iter().try_for_each(|name| writeln!(out, "{}", wrapped("", name, options.width)))?;
    writeln!(out, "{}", wrapped("", works.first().map_or("", |work| work.legend), options.width))
}

fn tunings(tunings: &[Tuned], options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let width = options.width;
    if let [tuned] = tunings {
        return out.write_all(answer(tuned, width).as_bytes());
    }
    let (heads, rows) = where_it_matters(tunings);
    writeln!(out, "{}\n{}\n", grid(&heads, rows, width), wrapped("", CHOICES_LEGEND, width))?;
    tunings.iter().try_for_each(|tuned| writeln!(out, "{}", wrapped("", &tuned.in_a_list(), width)))
}

fn answer(tuned: &Tuned, width: usize) -> String {
    let mut out = format!("{}\n\n{}\n", wrapped("", &tuned.headline(), width), wrapped("", &tuned.how(), width));
    let rows: Vec<[String; 4]> = tuned.effects.iter().map(Effect::cells).collect();
    let names = rows.iter().map(|[name, ..]| name.len()).max().unwrap_or(0).max(EFFECTS[0].len());
    let heads = EFFECTS.map(String::from);
    for [name, time, interval, finding] in std::iter::once(&heads).chain(&rows) {
        let line = format!("{}  {}  {}  {finding}", left(name, names), right(time, 8), right(interval, 18));
        let _ = write!(out, "\n{}", line.trim_end());
    }
    let _ = write!(out, "\n\n{}\n", wrapped("", EFFECTS_LEGEND, width));
    tuned.findings().iter().for_each(|line| out += &format!("\n{}", wrapped("", line, width)));
    if let Some(advice) = &tuned.advice {
        let _ = write!(out, "\n\n{}", to_use(advice, width));
    }
    let journals = tuned.stages.iter().map(|stage| format!("\n  pickfs report {}", stage.journal.display()));
    out.trim_end().to_string() + "\n\nAll rounds:" + &journals.collect::<String>() + "\n"
}

/// Lines to paste, and what goes with them.
fn to_use(advice: &Advice, width: usize) -> String {
    let heading = format!("{} {}", headings::TO_USE, advice.target);
    let notes = advice.notes.iter().map(|note| wrapped("  ", note, width));
    std::iter::once(heading).chain(pasted(&advice.steps)).chain(notes).collect::<Vec<_>>().join("\n")
}

struct Page<'a> {
    model: &'a Model,
    width: usize,
    out: &'a mut dyn Write,
}

impl Page<'_> {
    fn advice(&mut self) -> io::Result<()> {
        let Some(advice) = self.model.advice() else { return Ok(()) };
        writeln!(self.out, "\n{}", to_use(&advice, self.width))
    }

    fn head(&mut self) -> io::Result<()> {
        let title = if self.model.title.is_empty() { "pickfs" } else { &self.model.title };
        self.wrapped("", title)?;
        self.wrapped("", &self.model.setting())?;
        self.wrapped("", &self.model.machine())?;
        writeln!(self.out)?;
        for line in &self.model.headlines() {
            self.wrapped("", line)?;
        }
        for line in &self.model.explanations() {
            self.wrapped("", line)?;
        }
        self.advice()?;
        self.list("", &self.model.course())?;
        self.list(headings::WARNINGS, &self.model.warnings())
    }

    fn overall(&mut self, overall: &Overall) -> io::Result<()> {
        writeln!(self.out, "\n── all work ──")?;
        self.wrapped("  ", &overall.made_of())?;
        let robustness = overall.robustness.iter().map(|robustness| robustness.sentence(self.model));
        let sums = Some(overall.sums_shown(self.model)).filter(|sums| !sums.is_empty());
        for note in overall.work.notes(self.model).into_iter().chain(sums).chain(robustness) {
            self.wrapped("  ", &note)?;
        }
        self.times(&overall.work)
    }

    fn features(&mut self) -> io::Result<()> {
        let [head, rows @ ..] = &*features::rows(self.model) else { return Ok(()) };
        let mut table = new_table(presets::UTF8_FULL_CONDENSED, self.width);
        table.set_header(head);
        table.add_rows(rows);
        writeln!(self.out, "\n{}\n{}", headings::FEATURES, table.trim_fmt())
    }

    fn champions(&mut self, champions: &Champions) -> io::Result<()> {
        writeln!(self.out, "\n{}", headings::BEST_OF_EACH)?;
        let mut best = new_table(presets::UTF8_FULL, self.width);
        best.set_header(champions::COLUMNS);
        best.add_rows(champions.rows_shown(self.model));
        writeln!(self.out, "{}", best.trim_fmt())?;
        if let [head, rows @ ..] = champions.factor_shown().as_slice() {
            let mut table = new_table(presets::UTF8_FULL_CONDENSED, self.width);
            table.set_header(head);
            table.add_rows(rows);
            writeln!(self.out, "{}", table.trim_fmt())?;
        }
        champions.legend(self.model).iter().try_for_each(|line| self.wrapped("", line))
    }

    fn criteria(&mut self, criteria: &Criteria) -> io::Result<()> {
        writeln!(self.out, "\n{}", headings::TRADE_OFFS)?;
        let mut table = new_table(presets::UTF8_FULL_CONDENSED, self.width);
        table.set_header([""].into_iter().chain(criteria.names.iter().map(String::as_str)));
        for row in &criteria.rows {
            let mark = if row.on_front { " *" } else { "" };
            let name = format!("{}{mark}", self.model.targets[row.target].name);
            let reference = row.target == criteria.reference;
            let cell = |found: &Option<Estimate>| {
                if reference { "reference".into() } else { ratio_or_dash(found.as_ref()) }
            };
            let cells = row.cells.iter().map(cell);
            table.add_row([name].into_iter().chain(cells));
        }
        writeln!(self.out, "{}", table.trim_fmt())?;
        let reference = &self.model.targets[criteria.reference].name;
        self.wrapped(
            "",
            &format!("× relative to {reference}, less is better; * no other target is better in all of them"),
        )
    }

    fn work(&mut self, work: &WorkReport) -> io::Result<()> {
        if self.model.works.len() > 1 || self.model.overall.is_some() {
            writeln!(self.out, "\n── {} ──", work.name)?;
        }
        let notes: Vec<String> = work.notes(self.model);
        for note in &notes {
            self.wrapped("  ", note)?;
        }
        if work.phases.is_empty() {
            return Ok(());
        }
        self.times(work)?;
        self.list("", &work.sentences(self.model))?;
        let reference = work.reference.map_or("", |at| &self.model.targets[at].name);
        self.list(&format!("{}, compared with {reference}", headings::OTHER_COSTS), &work.trade_offs(self.model))?;
        for table in work.beside.iter().filter(|table| !table.is_detail()) {
            self.beside(table)?;
        }
        for compression in &work.compression {
            self.compression(compression)?;
        }
        Ok(())
    }

    fn times(&mut self, work: &WorkReport) -> io::Result<()> {
        let panels: Vec<&Panel> = work.phases.iter().collect();
        let rows: Vec<usize> = (0..panels[0].rows.len()).collect();
        let labels = rows.iter().map(|&at| time_label(self.model, work, &panels[0].rows[at])).collect();
        let sheet = Sheet { style: presets::UTF8_FULL, labels, rows, between: UNDER, ranges: true };
        self.panels(if work.is_foreign { "Figures" } else { "Time" }, &sheet, &panels)?;
        let tables = work.beside.iter().filter(|table| !table.is_detail());
        let shown = work.phases.iter().chain(tables.flat_map(|table| &table.panels));
        self.wrapped("", &marks::legend(self.model, work, &marks::used(shown)))
    }

    /// Only targets that have a figure here: the time table has named the missing ones.
    fn beside(&mut self, table: &Table) -> io::Result<()> {
        let panels: Vec<&Panel> = table.panels.iter().collect();
        let any = |at: &usize| panels.iter().any(|panel| panel.rows[*at].figure.is_some());
        let rows: Vec<usize> = (0..panels[0].rows.len()).filter(any).collect();
        let labels = rows.iter().map(|&at| self.model.targets[panels[0].rows[at].target].name.clone()).collect();
        let style = presets::UTF8_FULL_CONDENSED;
        let mut sheet = Sheet { style, labels, rows, between: "  ", ranges: false };
        // Two lines a row rather than two tables.
        if !self.fit(&sheet, &panels) {
            sheet.between = UNDER;
            sheet.between = if self.fit(&sheet, &panels) { UNDER } else { "  " };
        }
        self.panels(&table.title(), &sheet, &panels)
    }

    /// All columns side by side.
    fn fit(&self, sheet: &Sheet, panels: &[&Panel]) -> bool {
        columns_that_fit(panels, sheet, self.for_columns(sheet)) == panels.len()
    }

    /// What the rows' names leave.
    fn for_columns(&self, sheet: &Sheet) -> usize {
        let lines = sheet.labels.iter().flat_map(|label| label.lines());
        let first = lines.map(|line| line.chars().count()).max().unwrap_or(0).clamp(6, self.width / 3);
        self.width.saturating_sub(first + 4)
    }

    /// One table, or several under each other if the columns do not fit side by side.
    fn panels(&mut self, title: &str, sheet: &Sheet, panels: &[&Panel]) -> io::Result<()> {
        let mut rest = panels;
        writeln!(self.out, "\n{title}")?;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(columns_that_fit(rest, sheet, self.for_columns(sheet)));
            self.table(sheet, now)?;
            rest = later;
        }
        Ok(())
    }

    fn table(&mut self, sheet: &Sheet, panels: &[&Panel]) -> io::Result<()> {
        let mut table = new_table(sheet.style, self.width);
        table.set_header([String::new()].into_iter().chain(panels.iter().map(|panel| heading(panel))));
        for (label, &at) in sheet.labels.iter().zip(&sheet.rows) {
            let cells = panels.iter().map(|panel| cell(panel, &panel.rows[at], sheet));
            table.add_row([label.clone()].into_iter().chain(cells));
        }
        writeln!(self.out, "{}", table.trim_fmt())
    }

    fn compression(&mut self, found: &Compression) -> io::Result<()> {
        writeln!(self.out, "\nCompression of {}", self.model.targets[found.target].name)?;
        let mut table = new_table(presets::UTF8_FULL_CONDENSED, self.width);
        table.set_header(["type", "share", "disk usage", "uncompressed", "referenced"]);
        for row in &found.rows {
            table.add_row([row.kind.clone()].into_iter().chain(row.cells()));
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        writeln!(self.out, "{}", table.trim_fmt())?;
        let differs =
            if found.differs { format!(" (medians of {} rounds that differ)", found.rounds) } else { String::new() };
        self.wrapped("", &format!("{}{differs}", found.summary()))
    }

    fn ledgers(&mut self) -> io::Result<()> {
        let ledgers = self.model.ledgers();
        if !ledgers.is_empty() {
            writeln!(self.out, "\n{}", headings::LEDGERS)?;
            self.wrapped("", LEDGERS)?;
        }
        for Ledger { title, heads, rows, proofs } in ledgers {
            writeln!(self.out)?;
            self.wrapped("", &title)?;
            let mut table = new_table(presets::UTF8_FULL_CONDENSED, self.width);
            table.set_header(heads);
            for LedgerRow { name, is_part, cells } in rows {
                table.add_row(std::iter::once(if is_part { format!("  {name}") } else { name }).chain(cells));
            }
            table.column_iter_mut().skip(1).take(3).for_each(|it| it.set_cell_alignment(CellAlignment::Right));
            writeln!(self.out, "{}", table.trim_fmt())?;
            proofs.iter().try_for_each(|line| self.wrapped("  ", line))?;
        }
        Ok(())
    }

    fn tail(&mut self) -> io::Result<()> {
        let model = self.model;
        self.list(headings::WEAKER, &model.weakened())?;
        self.list(headings::NOT_MEASURED, &model.not_measured())?;
        self.list(headings::SUSPICIOUS, &suspicious_readings(model))?;
        self.features()?;
        self.list(headings::SETTINGS, &in_effect(model))?;
        writeln!(self.out)?;
        if !model.ledger.parts.is_empty() {
            let others = model.ledger.parts.iter().skip(1).map(|part| format!("{} {}", part.name, part.shown()));
            let others = others.collect::<Vec<_>>().join(", ");
            self.wrapped("", &format!("{}: {} ({others}).", headings::TIME_SPENT, model.ledger.sentence()))?;
        }
        if !model.journal.is_empty() {
            writeln!(self.out, "Journal: {}", model.journal)?;
        }
        Ok(())
    }

    fn list(&mut self, title: &str, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "{}", if title.is_empty() { String::new() } else { format!("\n{title}:") })?;
        lines.iter().try_for_each(|line| self.wrapped("  ", line))
    }

    fn wrapped(&mut self, indent: &str, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "{}", wrapped(indent, text, self.width))
    }
}

/// The rows that a table shows, and how.
struct Sheet {
    style: &'static str,
    labels: Vec<String>,
    /// Places of the rows in each panel.
    rows: Vec<usize>,
    /// What stands between a figure and its ratio.
    between: &'static str,
    /// Where there is no ratio, the range instead.
    ranges: bool,
}

/// As wide as fits.
fn grid(heads: &[String], rows: Vec<Vec<String>>, width: usize) -> comfy_table::Table {
    let mut table = new_table(presets::UTF8_FULL_CONDENSED, width);
    table.set_header(heads).add_rows(rows);
    table
}

fn new_table(style: &str, width: usize) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(style).apply_modifier(modifiers::UTF8_ROUND_CORNERS);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width as u16).force_no_tty();
    table
}

fn columns_that_fit(panels: &[&Panel], sheet: &Sheet, width: usize) -> usize {
    let mut used = 0;
    let fitting = panels.iter().take_while(|panel| {
        used += column_width(panel, sheet) + 3;
        used <= width
    });
    fitting.count().max(1)
}

fn column_width(panel: &Panel, sheet: &Sheet) -> usize {
    let cells = sheet.rows.iter().map(|&at| cell(panel, &panel.rows[at], sheet));
    let lines = cells.chain([heading(panel)]).filter_map(|cell| cell.lines().map(|line| line.chars().count()).max());
    lines.max().unwrap_or(0)
}

/// In columns: not much longer than a figure.
const LONGEST_LINE: usize = 16;

/// What a workload measures itself has long names: the phase on its own line, the rest broken at
/// blanks.
fn heading(panel: &Panel) -> String {
    match panel.name.split_once(": ") {
        Some((phase, metric)) => format!("{phase}:\n{}", lines(metric, LONGEST_LINE).join("\n")),
        None => panel.name.clone(),
    }
}

/// A target's name, and under it what sets it apart.
fn time_label(model: &Model, work: &WorkReport, row: &Row) -> String {
    let found = &model.targets[row.target];
    let reference = if work.reference == Some(row.target) { "reference, " } else { "" };
    let rounds =
        row.figure.as_ref().map_or(String::new(), |figure| format!("\n{reference}n = {}", figure.rounds_shown()));
    let weaker =
        if found.note().is_empty() { String::new() } else { format!("\n{}", found.note().replacen(": ", ":\n", 1)) };
    format!("{}{rounds}{weaker}", found.name)
}

/// The median, and under or after it the ratio to the reference.
fn cell(panel: &Panel, row: &Row, sheet: &Sheet) -> String {
    let Some(figure) = &row.figure else { return row.absent.word().to_string() };
    let second = match &row.against {
        Some(against) => marks::ratio(against),
        None if sheet.ranges => figure.range().clone(),
        None => String::new(),
    };
    let between = if second.is_empty() { "" } else { sheet.between };
    format!("{}{}{between}{second}", figure.shown(), marks::signs(&marks::of_figure(panel, row)))
}

/// The lines that made a target what it was, and the rest of what is known of the machine.
fn in_effect(model: &Model) -> Vec<String> {
    let of_target = model.targets.iter().filter(|target| !target.duplicate).filter_map(|target| {
        let mounted = if target.mount.is_empty() { String::new() } else { format!("mounted {}", target.mount) };
        let aged = if target.ageing.is_empty() { String::new() } else { format!("aged: {}", target.aged()) };
        let known: Vec<String> =
            [target.mkfs.to_string(), mounted, aged].into_iter().filter(|line| !line.is_empty()).collect();
        (!known.is_empty()).then(|| format!("{}: {}", target.name, known.join("; ")))
    });
    of_target.chain(model.host.iter().map(|fact| format!("{}: {}", fact.name, fact.value))).collect()
}
