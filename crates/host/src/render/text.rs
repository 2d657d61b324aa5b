//! The report for a terminal: plain text without colours, so that it reads the same in a pipe and
//! in a mail.

use super::{Format, Options};
use crate::analysis::{
    Champions, Compression, CompressionRow, Criteria, Model, Overall, Panel, Row, Table, WorkReport,
};
use crate::wording::advice::{Advice, pasted};
use crate::wording::between_runs::{RunComparison, TimeChange};
use crate::wording::comparison::ratio_or_dash;
use crate::wording::machines::MachinesReport;
use crate::wording::ranking::{self, Choice};
use crate::wording::text::{left, lines, right, wrapped};
use crate::wording::tuning::{CHOICES_LEGEND, EFFECTS, EFFECTS_LEGEND, Row as Effect, Tuned, where_it_matters};
use crate::wording::warnings::suspicious_readings;
use crate::wording::why::{LEDGERS, Ledger};
use crate::wording::{champions, features, headings, marks};
use comfy_table::{CellAlignment, ContentArrangement, modifiers, presets};
use pickfs_core::journal::typed;
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
    let cells = |row: &TimeChange| [&row.name(), &row.old, &row.new, &row.ratio, row.says].map(String::from);
    let heads = ["", "before", "now", "ratio", ""];
    writeln!(out, "{}", grid(presets::UTF8_FULL_CONDENSED, heads, runs.rows.iter().map(cells), width))?;
    let legend = format!("Ratio: now over before, with its 95 % interval. {}", runs.caveat);
    writeln!(out, "{}\n", wrapped("", &legend, width))?;
    runs.missing.iter().try_for_each(|line| writeln!(out, "{}", wrapped("", line, width)))?;
    if !runs.facts.is_empty() {
        writeln!(out, "Not the same in both runs:")?;
    }
    runs.facts.iter().try_for_each(|fact| writeln!(out, "{}", wrapped("  ", &fact.sentence(), width)))
}

fn ranking(choices: &[Choice], options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let cells = choices.iter().map(ranking::cells);
    let table = grid(presets::UTF8_FULL_CONDENSED, ranking::COLUMNS, cells, options.width);
    writeln!(out, "{table}\n{}\n", wrapped("", ranking::LEGEND, options.width))?;
    for choice in choices {
        writeln!(out, "{}", wrapped("", &ranking::sentence(choice), options.width))?;
    }
    let best = ranking::best_cells(choices);
    if best.is_empty() {
        return Ok(());
    }
    let table = grid(presets::UTF8_FULL, ranking::BEST_COLUMNS, best, options.width);
    writeln!(out, "\n{}\n{table}", headings::BEST_OF_EACH)?;
    writeln!(out, "{}", wrapped("", ranking::BEST_LEGEND, options.width))
}

fn machines(works: &[MachinesReport], options: &Options, out: &mut dyn Write) -> io::Result<()> {
    for work in works {
        writeln!(out, "{}", wrapped("", &format!("{}: {}", work.work, work.verdict), options.width))?;
        if !work.rows.is_empty() {
            writeln!(out, "{}", grid(presets::UTF8_FULL_CONDENSED, &work.columns, &work.rows, options.width))?;
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
    let table = grid(presets::UTF8_FULL_CONDENSED, heads, rows, width);
    writeln!(out, "{table}\n{}\n", wrapped("", CHOICES_LEGEND, width))?;
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
    let journals = tuned.stages.iter().map(|stage| format!("\n  pickfs report {}", typed(&stage.journal)));
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
        writeln!(self.out, "\n{}", headings::FEATURES)?;
        self.grid(presets::UTF8_FULL_CONDENSED, head, rows)
    }

    fn champions(&mut self, champions: &Champions) -> io::Result<()> {
        writeln!(self.out, "\n{}", headings::BEST_OF_EACH)?;
        self.grid(presets::UTF8_FULL, champions::COLUMNS, champions.rows_shown(self.model))?;
        if let [head, rows @ ..] = champions.factor_shown().as_slice() {
            self.grid(presets::UTF8_FULL_CONDENSED, head, rows)?;
        }
        champions.legend(self.model).iter().try_for_each(|line| self.wrapped("", line))
    }

    fn criteria(&mut self, criteria: &Criteria) -> io::Result<()> {
        writeln!(self.out, "\n{}", headings::TRADE_OFFS)?;
        let cells = |row: &crate::analysis::CriteriaRow| {
            let mark = if row.on_front { " *" } else { "" };
            let name = format!("{}{mark}", self.model.targets[row.target].name);
            let reference = row.target == criteria.reference;
            let cell = |found: &Option<Estimate>| {
                if reference { "reference".into() } else { ratio_or_dash(found.as_ref()) }
            };
            [name].into_iter().chain(row.cells.iter().map(cell)).collect::<Vec<_>>()
        };
        let heads = [""].into_iter().chain(criteria.names.iter().map(String::as_str));
        self.grid(presets::UTF8_FULL_CONDENSED, heads, criteria.rows.iter().map(cells))?;
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
        let rows: Vec<usize> = (0..work.phases[0].rows.len()).collect();
        let label = |&at: &usize| time_label(self.model, work, &work.phases[0].rows[at]);
        let columns = columns(&work.phases, &rows, label, (UNDER, true));
        self.tables(if work.is_foreign { "Figures" } else { "Time" }, presets::UTF8_FULL, columns)?;
        let tables = work.beside.iter().filter(|table| !table.is_detail());
        let shown = work.phases.iter().chain(tables.flat_map(|table| &table.panels));
        self.wrapped("", &marks::legend(self.model, work, &marks::used(shown)))
    }

    /// Only targets that have a figure here: the time table has named the missing ones.
    fn beside(&mut self, table: &Table) -> io::Result<()> {
        let first = &table.panels[0].rows;
        let any = |at: &usize| table.panels.iter().any(|panel| panel.rows[*at].figure.is_some());
        let rows: Vec<usize> = (0..first.len()).filter(any).collect();
        let label = |&at: &usize| self.model.targets[first[at].target].name.clone();
        let [flat, high] = ["  ", UNDER].map(|between| columns(&table.panels, &rows, label, (between, false)));
        // Two lines a row rather than two tables.
        let fit = |columns: &[Column]| self.fitting(columns) == columns.len();
        let columns = if !fit(&flat) && fit(&high) { high } else { flat };
        self.tables(&table.title(), presets::UTF8_FULL_CONDENSED, columns)
    }

    /// How many columns fit side by side: the names of the rows, and at least one more.
    fn fitting(&self, columns: &[Column]) -> usize {
        let width = |column: &Column| {
            let lines = column.iter().flat_map(|cell| cell.lines());
            lines.map(|line| line.chars().count()).max().unwrap_or(0)
        };
        let mut left = self.width.saturating_sub(width(&columns[0]).clamp(6, self.width / 3) + 4);
        let fits = |column: &&Column| left.checked_sub(width(column) + 3).map(|rest| left = rest).is_some();
        1 + columns[1..].iter().take_while(fits).count().max(1)
    }

    /// One table, or several under each other if the columns do not fit side by side.
    fn tables(&mut self, title: &str, style: &str, mut columns: Vec<Column>) -> io::Result<()> {
        writeln!(self.out, "\n{title}")?;
        while columns.len() > 1 {
            let later = columns.split_off(self.fitting(&columns));
            let row = |at: usize| columns.iter().map(move |column| &column[at]);
            self.grid(style, row(0), (1..columns[0].len()).map(row))?;
            columns.splice(1.., later);
        }
        Ok(())
    }

    fn grid(
        &mut self,
        style: &str,
        heads: impl Into<comfy_table::Row>,
        rows: impl IntoIterator<Item = impl Into<comfy_table::Row>>,
    ) -> io::Result<()> {
        writeln!(self.out, "{}", grid(style, heads, rows, self.width))
    }

    fn compression(&mut self, found: &Compression) -> io::Result<()> {
        writeln!(self.out, "\nCompression of {}", self.model.targets[found.target].name)?;
        let heads = ["type", "share", "disk usage", "uncompressed", "referenced"];
        let rows = found.rows.iter().map(CompressionRow::cells);
        let mut table = grid(presets::UTF8_FULL_CONDENSED, heads, rows, self.width);
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        writeln!(self.out, "{table}")?;
        let differs =
            if found.differs { format!(" (medians of {} rounds that differ)", found.rounds) } else { String::new() };
        self.wrapped("", &format!("{}{differs}", found.summary()))
    }

    fn ledgers(&mut self) -> io::Result<()> {
        let ledgers = self.model.ledgers("  ");
        if !ledgers.is_empty() {
            writeln!(self.out, "\n{}", headings::LEDGERS)?;
            self.wrapped("", LEDGERS)?;
        }
        for Ledger { title, heads, rows, proofs } in ledgers {
            writeln!(self.out)?;
            self.wrapped("", &title)?;
            let mut table = grid(presets::UTF8_FULL_CONDENSED, heads, rows, self.width);
            table.column_iter_mut().skip(1).take(3).for_each(|it| it.set_cell_alignment(CellAlignment::Right));
            writeln!(self.out, "{table}")?;
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

/// A heading, and a cell for each row.
type Column = Vec<String>;

/// A column of the rows' names, then one for each panel.
fn columns(panels: &[Panel], rows: &[usize], name: impl Fn(&usize) -> String, how: (&str, bool)) -> Vec<Column> {
    let names = std::iter::once(String::new()).chain(rows.iter().map(name)).collect();
    let column = |panel: &Panel| {
        std::iter::once(heading(panel)).chain(rows.iter().map(|&at| cell(panel, &panel.rows[at], how))).collect()
    };
    std::iter::once(names).chain(panels.iter().map(column)).collect()
}

/// As wide as fits.
fn grid(
    style: &str,
    heads: impl Into<comfy_table::Row>,
    rows: impl IntoIterator<Item = impl Into<comfy_table::Row>>,
    width: usize,
) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(style).apply_modifier(modifiers::UTF8_ROUND_CORNERS);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width as u16).force_no_tty().set_header(heads).add_rows(rows);
    table
}

/// In columns: not much longer than a figure.
const LONGEST_LINE: usize = 16;

/// What a workload measures itself has long names: the phase on its own line, the rest broken at
/// blanks.
fn heading(panel: &Panel) -> String {
    match &panel.quantity {
        Some(quantity) => format!("{}:\n{}", panel.phase, lines(quantity, LONGEST_LINE).join("\n")),
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

/// The median, then what stands between it and the ratio to the reference, or its range if there is
/// no ratio and `ranges` are shown.
fn cell(panel: &Panel, row: &Row, (between, ranges): (&str, bool)) -> String {
    let Some(figure) = &row.figure else { return row.absent.word().to_string() };
    let second = match &row.against {
        Some(against) => marks::ratio(against),
        None if ranges => figure.range().clone(),
        None => String::new(),
    };
    let between = if second.is_empty() { "" } else { between };
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
