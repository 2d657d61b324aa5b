//! Markdown for forums and issues: the verdict, one table of times for each work, what is missing, and what was in
//! effect. Names are escaped, so that none becomes a link, a picture or HTML.

use super::Format;
use crate::analysis::{Model, Panel, Row, WorkReport};
use std::io::{self, Write};

pub struct Markdown;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn about(&self) -> &'static str {
        "verdict and tables of times for forums and issues"
    }

    fn write(&self, model: &Model, out: &mut dyn Write) -> io::Result<()> {
        let title = if model.title.is_empty() { "pickfs" } else { &model.title };
        writeln!(out, "## {}\n", escaped(title))?;
        for line in &model.headlines {
            writeln!(out, "**{}**\n", escaped(line))?;
        }
        if !model.machine.is_empty() {
            writeln!(out, "{}\n", escaped(&model.machine))?;
        }
        list("Take care", &model.warnings, out)?;
        let all = model.overall.iter().map(|overall| &overall.work).chain(&model.works);
        all.filter(|work| !work.phases.is_empty()).try_for_each(|work| times(model, work, out))?;
        let missing: Vec<String> = model.holes.iter().map(|hole| hole.sentence.clone()).collect();
        list("Not measured", &missing, out)?;
        list("In effect", &in_effect(model), out)?;
        writeln!(
            out,
            "<sub>pickfs {}, run {}, {}</sub>",
            escaped(&model.pickfs),
            escaped(&model.run),
            escaped(&model.started)
        )
    }
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
        let note = if target.note.is_empty() { String::new() } else { format!(" ({})", escaped(&target.note)) };
        writeln!(out, "| {}{note} |{}", escaped(&target.name), cells.collect::<String>())?;
    }
    let reference = work.reference.map_or("", |at| &model.targets[at].name);
    let legend = "with its 95 % interval; **bold**: no ranked target is shown to be faster; `=` tie, `~` probably, `?` not \
                  told apart";
    writeln!(out, "\n× time relative to {}, {legend}. {}\n", escaped(reference), escaped(&work.noise))
}

fn cell(panel: &Panel, row: &Row) -> String {
    let Some(figure) = &row.figure else { return format!("*{}*", row.absent.word) };
    let best = panel.best.as_ref().is_some_and(|best| best.members.contains(&row.target));
    let shown = if best { format!("**{}**", figure.shown) } else { figure.shown.clone() };
    let doubt = if row.unproven_cache { " †" } else { "" };
    let ratio = row.against.as_ref().map(|against| {
        let mark = if against.mark.is_empty() { String::new() } else { format!(" `{}`", against.mark) };
        format!("<br>×{}{mark}", against.shown)
    });
    format!("{shown}{doubt}{}", ratio.unwrap_or_default())
}

fn in_effect(model: &Model) -> Vec<String> {
    let shown = model.targets.iter().filter(|target| !target.duplicate);
    let line = |target: &crate::analysis::TargetInfo| {
        let known: Vec<&str> =
            [target.mkfs.as_str(), target.mount.as_str()].into_iter().filter(|line| !line.is_empty()).collect();
        (!known.is_empty()).then(|| format!("{}: {}", target.name, known.join("; ")))
    };
    shown.filter_map(line).collect()
}

/// With a backslash before all that means something in any flavour of Markdown; mentions and bare links are broken by an
/// entity.
pub fn escaped(text: &str) -> String {
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
