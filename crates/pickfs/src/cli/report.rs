//! `pickfs report`: judge a journal and print it in a format.

use super::{Exit, Outcome, Verb, journals, there, tuned};
use anyhow::{Context, Result, anyhow, bail};
use clap::builder::PossibleValuesParser;
use pickfs_core::journal::{Folded, fold_file, open_file};
use pickfs_core::plan::Settings;
use pickfs_core::plan::recipe::RECIPE;
use pickfs_host::analysis::owners::{Kept, Pair};
use pickfs_host::analysis::{self, Model};
use pickfs_host::render::{self, Document, Kind, Options};
use pickfs_host::wording::tuning::Tuned;
use pickfs_system::need::Need;
use pickfs_system::process::argv;
use pickfs_target::workload;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// Judge a journal and print the verdict
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Journal to read, by default @last, the newest in ./pickfs-runs; then a work, and a phase of
    /// it. Or the folder of a tuning
    #[arg(value_name = "[JOURNAL] [WORK [PHASE]]", num_args = 0..=3)]
    words: Vec<String>,
    /// How to print it; see `pickfs list formats`
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(render::names(Kind::Run)))]
    format: String,
    /// Every table, instead of the answer on one screen; the same as `--format full`
    #[arg(long, conflicts_with = "format")]
    full: bool,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write every chart as a separate picture (SVG) into a folder, instead of a report
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "output"])]
    charts: Option<PathBuf>,
    /// With `--charts`: each as PNG too, drawn by rsvg-convert
    #[arg(long, requires = "charts")]
    png: bool,
    /// Write the page next to the journal and show it in a browser
    #[arg(long, conflicts_with_all = ["format", "full", "output", "charts"])]
    open: bool,
}

/// PNG has a pixel for every half of SVG's: sharp on screens of today.
const ZOOM: &str = "2";
const BROWSER: Need = Need::Program { name: "xdg-open", package: "xdg-utils" };
const RENDERER: Need = Need::Program { name: "rsvg-convert", package: "librsvg2-bin" };

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs report", "the answer of the latest run in ./pickfs-runs"],
        ["pickfs report RUN.jsonl --full", "every table"],
        ["pickfs report @2 tree write", "one phase of a work, of the second newest run"],
        ["pickfs report tuned --format html -o tuned.html", "the answer of a tuning, with a chart of effects"],
        ["pickfs report --open", "the page in a browser"],
        ["pickfs report RUN.jsonl --format html -o run.html", "the page"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        if let [folder] = self.words.as_slice() {
            if let Some(tuned) = tuned::of_folder(Path::new(folder))? {
                return self.of_tuning(&tuned);
            }
        }
        let (journal, only) = split(&self.words)?;
        let folded = fold_file(&journal)?;
        let mut model = model(&folded, &journal)?;
        narrow(&mut model, only)?;
        if let Some(folder) = &self.charts {
            write_charts(&model, folder, self.png)?;
            return Ok(0);
        }
        if self.open {
            if !only.is_empty() {
                return Err(Exit::usage("--open shows the page of the whole run: leave out the work and the phase"));
            }
            let page = write_page(&model, &journal)?;
            println!("{}", page.display());
            BROWSER.check().map_err(|missing| anyhow::anyhow!("the page cannot be shown: {missing}"))?;
            pickfs_system::process::run_program(&argv(["xdg-open", &page.display().to_string()]))?;
            return Ok(0);
        }
        let wants_all = self.full || (!only.is_empty() && self.format == "text");
        let format = if wants_all { "full" } else { &self.format };
        if self.output.is_none() && format == "full" && std::io::stdout().is_terminal() {
            page_through(&render::written(format, Document::Run(&model), &options())?)?;
            return Ok(0);
        }
        show(format, Document::Run(&model), self.output.as_deref()).map(|()| 0)
    }
}

impl Arguments {
    fn of_tuning(&self, tuned: &Tuned) -> Outcome {
        if self.full || self.open || self.charts.is_some() {
            return Err(Exit::usage(
                "of a tuning there are --format and -o: `pickfs report FOLDER --format html -o tuned.html`",
            ));
        }
        show(&self.format, Document::Tunings(std::slice::from_ref(tuned)), self.output.as_deref()).map(|()| 0)
    }
}

/// The journal, and the names of a work and of a phase behind it.
fn split(words: &[String]) -> Result<(PathBuf, &[String])> {
    let names_journal =
        |word: &String| word.contains(['@', '/']) || word.ends_with(".jsonl") || Path::new(word).exists();
    match words {
        [first, rest @ ..] if names_journal(first) => Ok((journals::named(Path::new(first))?, rest)),
        // A word that is neither is taken for a journal that is not there.
        [first, ..] => match journals::latest() {
            Ok(journal) => Ok((journal, words)),
            Err(_) => Err(there(Path::new(first)).expect_err("it does not exist")),
        },
        [] => Ok((journals::latest()?, words)),
    }
}

/// Leaves one work, or one of its phases.
fn narrow(model: &mut Model, only: &[String]) -> Result<()> {
    let Some((work, phase)) = only.split_first() else { return Ok(()) };
    let works: Vec<String> = model.works.iter().map(|work| work.name.clone()).collect();
    model.works.retain(|found| found.name == *work);
    let Some(found) = model.works.first_mut() else {
        let (work, works) = (work.escape_debug(), works.join(", "));
        return Err(Exit::usage(format!(
            "there is no {work}, and this journal has no work of that name; its works: {works}"
        )));
    };
    (model.overall, model.criteria, model.champions) = (None, None, None);
    let is_shown =
        |pair: &Pair| pair.work == *work && phase.first().is_none_or(|phase| pair.difference.phase == *phase);
    model.why.iter_mut().for_each(|kept| kept.pairs.retain(is_shown));
    if let [phase] = phase {
        let phases: Vec<String> = found.phases.iter().map(|panel| panel.name.clone()).collect();
        found.keep_phase(phase);
        if found.phases.is_empty() {
            let (phase, phases) = (phase.escape_debug(), phases.join(", "));
            return Err(Exit::usage(format!("{work} has no phase {phase}; its phases: {phases}")));
        }
    }
    Ok(())
}

/// Through `PAGER`, or `less`, which ends at once where all fits on the screen.
fn page_through(text: &[u8]) -> Result<()> {
    let pager = std::env::var("PAGER").unwrap_or_default();
    let words: Vec<&str> = pager.split_whitespace().collect();
    let words = if words.is_empty() { vec!["less", "-FRX"] } else { words };
    if pickfs_system::need::find_program(words[0]).is_none() {
        return deliver(text, None);
    }
    pickfs_system::process::feed(&argv(words), text)
}

fn write_charts(model: &Model, folder: &Path, png: bool) -> Result<()> {
    if png {
        RENDERER.check().map_err(|missing| anyhow!("no PNG can be drawn: {missing}"))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let pictures = render::pictures(model);
    for (name, picture) in &pictures {
        let path = folder.join(name);
        deliver(picture.as_bytes(), Some(&path))?;
        if png {
            let painted = path.with_extension("png");
            let words = ["rsvg-convert", "--zoom", ZOOM, "--output"].map(String::from);
            let words = words.into_iter().chain([painted, path].map(|path| path.display().to_string())).collect();
            pickfs_target::agent::run_program(&words)?;
        }
    }
    println!("{} pictures in {}", pictures.len(), folder.display());
    Ok(())
}

/// The page of a journal, next to it; where it is.
pub(crate) fn write_page(model: &Model, journal: &Path) -> Result<PathBuf> {
    let path = beside(journal, "html");
    put(&page(model)?, &path)?;
    Ok(path)
}

/// Root may write next to another user's files: what lies there is replaced, and no link in its
/// place followed.
pub(crate) fn put(text: &[u8], path: &Path) -> Result<()> {
    let _ = std::fs::remove_file(path);
    deliver(text, Some(path))
}

pub(crate) fn page(model: &Model) -> Result<Vec<u8>> {
    render::written("html", Document::Run(model), &Options::default())
}

/// The ending of the file of `pickfs why` next to a journal.
pub(crate) const EXPLANATION: &str = "why.json";

/// `run.html` for `run.jsonl`; never the journal itself, whatever it is called.
pub(crate) fn beside(journal: &Path, end: &str) -> PathBuf {
    if journal.extension().is_some_and(|end| end == "jsonl") {
        return journal.with_extension(end);
    }
    let mut name = journal.as_os_str().to_owned();
    name.push(format!(".{end}"));
    name.into()
}

/// To standard output.
pub(crate) fn print(model: &Model) -> Result<()> {
    show("text", Document::Run(model), None)
}

/// Into a file, whose text does not depend on the terminal, or to standard output.
pub(crate) fn show(format: &str, document: Document, output: Option<&Path>) -> Result<()> {
    let is_binary = render::find(format).is_some_and(|format| format.is_binary);
    if output.is_none() && is_binary && std::io::stdout().is_terminal() {
        bail!("a terminal cannot show `{format}`; give a file to write it to with -o FILE");
    }
    let options = if output.is_some() { Options::default() } else { options() };
    deliver(&render::written(format, document, &options)?, output)
}

/// Into a file, or to standard output, where a reader that closes early is no error.
pub(crate) fn deliver(text: &[u8], output: Option<&Path>) -> Result<()> {
    if let Some(path) = output {
        return std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
    }
    // Unchanged: what looks for colours to take out of a pipe takes bytes out of an archive.
    match std::io::stdout().lock().write_all(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Columns for text that is no report: the terminal's, or eighty.
pub(crate) fn width() -> usize {
    terminal_width().unwrap_or(80).clamp(40, 400)
}

/// How standard output shows text. Colours follow `--color`, `NO_COLOR`, `CLICOLOR_FORCE` and the
/// kind of terminal.
pub(crate) fn options() -> Options {
    // As the C library looks for the character set; without any it is that of the C locale.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|name| !name.is_empty());
    let names_utf8 = |locale: std::ffi::OsString| {
        let locale = locale.to_string_lossy().to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    };
    let unicode = !std::io::stdout().is_terminal() || locale.is_some_and(names_utf8);
    let color = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    Options { width: width(), lines: terminal_lines(), color, unicode }
}

/// Those above the prompt, 0 where that is not known; `None` where no terminal shows it.
fn terminal_lines() -> Option<usize> {
    let lines = || rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_row));
    std::io::stdout().is_terminal().then(|| lines().saturating_sub(1))
}

/// `COLUMNS`, else the terminal's width; `None` where the output is no terminal.
fn terminal_width() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if let Some(columns) = asked.filter(|columns| *columns > 0) {
        return Some(columns);
    }
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// What every report of a run shows; judging it takes longer than showing it.
pub(crate) fn model(folded: &Folded, journal: &Path) -> Result<Model> {
    let mut model = analysis::model(folded).with_context(|| format!("cannot judge {}", journal.display()))?;
    model.journal = journal.display().to_string();
    model.phases = phases(folded);
    model.why = why(&model.run, journal);
    Ok(model)
}

/// More than any explanation has.
const LONGEST_EXPLANATION: u64 = 16 << 20;

/// Of an explanation that cannot be read nothing is shown: it is no part of the journal.
fn why(run: &str, journal: &Path) -> Option<Kept> {
    let mut text = String::new();
    let file = open_file(&beside(journal, EXPLANATION)).ok()?;
    file.take(LONGEST_EXPLANATION).read_to_string(&mut text).ok()?;
    Kept::read(&text, run)
}

/// What the phases of each work do, as this version's workloads describe them.
fn phases(folded: &Folded) -> BTreeMap<(String, String), String> {
    let works = folded.run.iter().flat_map(|run| &run.plan.works);
    let phases = works.flat_map(|work| {
        let found = workload::find(&work.workload.name);
        // Others may look at what a stranger's settings name.
        let is_recipe = work.workload.name == RECIPE;
        let settings = if is_recipe { work.workload.settings.clone() } else { Settings::default() };
        let phases = found.map(|found| found.phases(&settings)).unwrap_or_default();
        phases.into_iter().map(|phase| ((work.name.clone(), phase.name.into_owned()), phase.about.to_string()))
    });
    phases.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_lies_beside_its_journal() {
        for (journal, page) in [("a/b.jsonl", "a/b.html"), ("b", "b.html"), ("b.html", "b.html.html")] {
            assert_eq!(beside(Path::new(journal), "html"), Path::new(page));
        }
        assert_eq!(beside(Path::new("a/b.jsonl"), EXPLANATION), Path::new("a/b.why.json"));
    }
}
