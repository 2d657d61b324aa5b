//! Markdown for forums and issues: the verdict, one table of times for each work, what is missing,
//! and what was in effect. Names are escaped, so that none becomes a link, a picture or HTML.

use super::{Format, Options};
use crate::analysis::{Champions, Model, Panel, Row, WorkReport};
use crate::wording::advice::Advice;
use crate::wording::between_runs::RunComparison;
use crate::wording::champions::COLUMNS;
use crate::wording::headings;
use crate::wording::machines::MachinesReport;
use crate::wording::marks;
use crate::wording::ranking::{self, Choice};
use crate::wording::tuning::{CHOICES_LEGEND, EFFECTS, EFFECTS_LEGEND, Row as Effect, Tuned, where_it_matters};
use crate::wording::why::{LEDGERS, Ledger};
use std::io::{self, Write};

pub(crate) const MARKDOWN: Format = Format {
    name: "markdown",
    about: "verdict and tables of times for forums and issues",
    run: Some(report),
    comparison: Some(comparison),
    ranking: Some(ranking),
    machines: Some(machines),
    tunings: Some(tunings),
    ..Format::NONE
};

fn report(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let title = if model.title.is_empty() { "pickfs" } else { &model.title };
    writeln!(out, "## {}\n", escaped(title))?;
    for line in &model.headlines() {
        writeln!(out, "**{}**\n", escaped(line))?;
    }
    for line in &model.explanations() {
        writeln!(out, "{}\n", escaped(line))?;
    }
    if let Some(advice) = model.advice() {
        to_use(&advice, out)?;
        writeln!(out)?;
    }
    if !model.machine().is_empty() {
        writeln!(out, "{}\n", escaped(&model.machine()))?;
    }
    list(headings::WARNINGS, &model.warnings(), out)?;
    model.reports().filter(|work| !work.phases.is_empty()).try_for_each(|work| times(model, work, out))?;
    model.champions.iter().try_for_each(|champions| best_of_each(model, champions, out))?;
    list(headings::NOT_MEASURED, &model.not_measured(), out)?;
    list(headings::SETTINGS, &in_effect(model), out)?;
    ledgers(model, out)?;
    writeln!(
        out,
        "<sub>pickfs {}, run {}, {}</sub>",
        escaped(&model.pickfs),
        escaped(&model.run),
        escaped(&model.started)
    )
}

fn tunings(tunings: &[Tuned], _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let [tuned] = tunings else {
        let (heads, rows) = where_it_matters(tunings);
        table(&heads, rows, out)?;
        writeln!(out, "{}\n", escaped(CHOICES_LEGEND))?;
        return tunings.iter().try_for_each(|tuned| writeln!(out, "- {}", escaped(&tuned.in_a_list())));
    };
    writeln!(out, "## {}\n\n**{}**\n", escaped(&tuned.title()), escaped(&tuned.headline()))?;
    writeln!(out, "{}\n", escaped(&tuned.how()))?;
    table(&EFFECTS, tuned.effects.iter().map(Effect::cells), out)?;
    writeln!(out, "{}\n", escaped(EFFECTS_LEGEND))?;
    tuned.findings().iter().try_for_each(|line| writeln!(out, "- {}", escaped(line)))?;
    let Some(advice) = &tuned.advice else { return Ok(()) };
    writeln!(out)?;
    to_use(advice, out)
}

fn to_use(advice: &Advice, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} {}:\n\n```sh", headings::TO_USE, escaped(&advice.target))?;
    advice.steps.iter().try_for_each(|step| writeln!(out, "# {}\n{}", step.when, step.command))?;
    writeln!(out, "```\n")?;
    advice.notes.iter().try_for_each(|line| writeln!(out, "- {}", escaped(line)))
}

fn list(title: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:\n")?;
    lines.iter().try_for_each(|line| writeln!(out, "- {}", escaped(line)))?;
    writeln!(out)
}

/// A row for every target; a column for every phase.
fn times(model: &Model, work: &WorkReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "### {}\n", escaped(&work.name))?;
    let names = work.phases.iter().map(|panel| format!(" {} |", escaped(&panel.name)));
    writeln!(out, "| |{}", names.collect::<String>())?;
    writeln!(out, "|:---|{}", "---:|".repeat(work.phases.len()))?;
    for at in 0..work.phases[0].rows.len() {
        let target = &model.targets[work.phases[0].rows[at].target];
        let cells = work.phases.iter().map(|panel| format!(" {} |", cell(panel, &panel.rows[at])));
        let note = if target.note().is_empty() { String::new() } else { format!(" ({})", escaped(&target.note())) };
        writeln!(out, "| {}{note} |{}", escaped(&target.name), cells.collect::<String>())?;
    }
    let legend = marks::legend(model, work, &marks::used(&work.phases));
    writeln!(out, "\n{}\n", escaped(&legend))
}

/// Folded: they are long.
fn ledgers(model: &Model, out: &mut dyn Write) -> io::Result<()> {
    let ledgers = model.ledgers("\u{a0}\u{a0}");
    if ledgers.is_empty() {
        return Ok(());
    }
    writeln!(out, "<details><summary>{}</summary>\n\n{}\n", headings::LEDGERS, escaped(LEDGERS))?;
    for Ledger { title, heads, rows, proofs } in ledgers {
        writeln!(out, "#### {}\n", escaped(&title))?;
        table(&heads, rows, out)?;
        proofs.iter().try_for_each(|line| writeln!(out, "- {}", escaped(line)))?;
        writeln!(out)?;
    }
    writeln!(out, "</details>\n")
}

fn best_of_each(model: &Model, champions: &Champions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "### {}\n", headings::BEST_OF_EACH)?;
    table(&COLUMNS, champions.rows_shown(model), out)?;
    if let [heads, rows @ ..] = champions.factor_shown().as_slice() {
        table(heads, rows, out)?;
    }
    champions.legend(model).iter().try_for_each(|line| writeln!(out, "{}\n", escaped(line)))
}

fn table(
    heads: &[impl AsRef<str>],
    rows: impl IntoIterator<Item = impl AsRef<[String]>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "|{}\n|{}", line(heads), ":---|".repeat(heads.len()))?;
    rows.into_iter().try_for_each(|row| writeln!(out, "|{}", line(row.as_ref())))?;
    writeln!(out)
}

fn line(cells: &[impl AsRef<str>]) -> String {
    cells.iter().map(|cell| format!(" {} |", escaped(cell.as_ref()))).collect()
}

fn cell(panel: &Panel, row: &Row) -> String {
    let Some(figure) = &row.figure else { return format!("*{}*", row.absent.word()) };
    let best = panel.race.as_ref().is_some_and(|race| race.may_be_best().any(|at| at == row.target));
    let shown = if best { format!("**{}**", figure.shown()) } else { figure.shown().clone() };
    let signs = escaped(&marks::signs(&marks::of_figure(panel, row)));
    let ratio = row.against.as_ref().map(|found| format!("<br>{}", escaped(&marks::ratio(found))));
    format!("{shown}{signs}{}", ratio.unwrap_or_default())
}

fn comparison(runs: &RunComparison, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", escaped(&runs.headline))?;
    writeln!(out, "| | before | now | ratio | |\n|:---|---:|---:|---:|:---|")?;
    for row in &runs.rows {
        writeln!(out, "| {} | {} | {} | {} | {} |", escaped(&row.name()), row.old, row.new, row.ratio, row.says)?;
    }
    writeln!(out, "\n{}\n", runs.caveat)?;
    let facts = runs.facts.iter().map(|fact| fact.sentence());
    runs.missing.iter().cloned().chain(facts).try_for_each(|line| writeln!(out, "- {}", escaped(&line)))
}

fn ranking(choices: &[Choice], _: &Options, out: &mut dyn Write) -> io::Result<()> {
    table(&ranking::COLUMNS, choices.iter().map(ranking::cells), out)?;
    writeln!(out, "{}\n", escaped(ranking::LEGEND))?;
    choices.iter().try_for_each(|choice| writeln!(out, "- {}", escaped(&ranking::sentence(choice))))?;
    let best = ranking::best_cells(choices);
    if best.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### {}\n", headings::BEST_OF_EACH)?;
    table(&ranking::BEST_COLUMNS, best, out)?;
    writeln!(out, "{}", escaped(ranking::BEST_LEGEND))
}

fn machines(works: &[MachinesReport], _: &Options, out: &mut dyn Write) -> io::Result<()> {
    for work in works {
        writeln!(out, "**{}**: {}\n", escaped(&work.work), escaped(&work.verdict))?;
        if work.rows.is_empty() {
            writeln!(out)?;
        } else {
            table(&work.columns, &work.rows, out)?;
        }
        work.notes.iter().chain(&work.machines).try_for_each(|note| writeln!(out, "- {}", escaped(note)))?;
        writeln!(out)?;
    }
    writeln!(out, "{}", escaped(works.first().map_or("", |work| work.legend)))
}

fn in_effect(model: &Model) -> Vec<String> {
    let shown = model.targets.iter().filter(|target| !target.duplicate);
    let line = |target: &crate::analysis::TargetInfo| {
        let known: Vec<String> =
            [target.mkfs.to_string(), target.mount.to_string()].into_iter().filter(|line| !line.is_empty()).collect();
        (!known.is_empty()).then(|| format!("{}: {}", target.name, known.join("; ")))
    };
    shown.filter_map(line).collect()
}

/// With a backslash before all that means something in any flavour of Markdown; mentions and bare
/// links are broken by an entity.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("<span>@</span>"),
            _ => out.push(c),
        }
    }
    out.replace("://", "<span>:</span>//").replace("www.", "www<span>.</span>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        let cases = [
            ("<img src=x>", "&lt;img src=x&gt;"),
            ("![a](b)", "\\!\\[a\\](b)"),
            ("a|b`c", "a\\|b\\`c"),
            ("@root", "<span>@</span>root"),
            ("http://x", "http<span>:</span>//x"),
        ];
        for (text, wanted) in cases {
            assert_eq!(escaped(text), wanted);
        }
    }
}
