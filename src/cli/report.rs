//! `pickfs report`: judge a journal and print it in a format.

use super::{Outcome, Verb, there};
use crate::analysis;
use crate::journal::{Folded, fold_file};
use crate::need::Need;
use crate::render::{self, Document, Kind, Options};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Judge a journal and print the verdict
#[derive(clap::Args)]
pub struct Arguments {
    /// Journal to read; by default the latest in ./pickfs-runs
    journal: Option<PathBuf>,
    /// How to print it; see `pickfs list formats`
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(render::names(Kind::Run)))]
    format: String,
    /// Every table, instead of the answer on one screen; the same as `--format full`
    #[arg(long, conflicts_with = "format")]
    full: bool,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write every chart as a picture (SVG) of its own into a folder, instead of a report
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "output"])]
    charts: Option<PathBuf>,
    /// With `--charts`: each as PNG too, drawn by rsvg-convert
    #[arg(long, requires = "charts")]
    png: bool,
}

/// PNG has a pixel for every half of SVG's: sharp on screens of today.
const ZOOM: &str = "2";
const RENDERER: Need = Need::Program { name: "rsvg-convert", package: "librsvg2-bin" };

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs report", "the answer of the latest run in ./pickfs-runs"],
        ["pickfs report RUN.jsonl --full", "every table"],
        ["pickfs report RUN.jsonl --format html -o run.html", "the page"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let journal = match &self.journal {
            Some(journal) => journal.clone(),
            None => latest(Path::new("pickfs-runs"))?,
        };
        let folded = fold_file(there(&journal)?)?;
        if let Some(folder) = &self.charts {
            write_charts(&folded, folder, self.png)?;
            return Ok(0);
        }
        let format = if self.full { "full" } else { &self.format };
        match &self.output {
            None => print(&folded, &journal, format)?,
            Some(path) => deliver(&written(&folded, &journal, format, &Options::default())?, Some(path))?,
        }
        Ok(0)
    }
}

fn write_charts(folded: &Folded, folder: &Path, png: bool) -> Result<()> {
    if png && let Err(missing) = RENDERER.check() {
        bail!("no PNG can be drawn: {missing}");
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let pictures = render::pictures(&analysis::model(folded)?);
    for (name, picture) in &pictures {
        let path = folder.join(name);
        deliver(picture.as_bytes(), Some(&path))?;
        if png {
            let painted = path.with_extension("png");
            let words = ["rsvg-convert", "--zoom", ZOOM, "--output"].map(String::from);
            let words = words.into_iter().chain([painted, path].map(|path| path.display().to_string())).collect();
            crate::agent::run_program(&words)?;
        }
    }
    println!("{} pictures in {}", pictures.len(), folder.display());
    Ok(())
}

/// The page of a journal, beside it; where it is.
pub fn write_page(folded: &Folded, journal: &Path) -> Result<PathBuf> {
    let path = page_beside(journal);
    // Root may write beside another user's files: what lies there is replaced, and no link in its place followed.
    let _ = std::fs::remove_file(&path);
    deliver(&written(folded, journal, "html", &Options::default())?, Some(&path))?;
    Ok(path)
}

/// `run.html` for `run.jsonl`; never the journal itself, whatever it is called.
fn page_beside(journal: &Path) -> PathBuf {
    if journal.extension().is_some_and(|end| end == "jsonl") {
        return journal.with_extension("html");
    }
    let mut name = journal.as_os_str().to_owned();
    name.push(".html");
    name.into()
}

/// To standard output.
pub fn print(folded: &Folded, journal: &Path, format: &str) -> Result<()> {
    if std::io::stdout().is_terminal() && render::find(format).is_some_and(|format| format.is_binary) {
        bail!("a terminal cannot show `{format}`; give a file to write it to with -o FILE");
    }
    deliver(&written(folded, journal, format, &options())?, None)
}

/// Into a file, or to standard output, where a reader who has seen enough is no error.
pub fn deliver(text: &[u8], output: Option<&Path>) -> Result<()> {
    if let Some(path) = output {
        return std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
    }
    // As it is: what looks for colours to take out of a pipe takes bytes out of an archive.
    match std::io::stdout().lock().write_all(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Columns for text that is no report: the terminal's, or eighty.
pub fn width() -> usize {
    terminal_width().unwrap_or(80).clamp(40, 400)
}

/// How standard output shows text. Colours follow `--color`, `NO_COLOR`, `CLICOLOR_FORCE` and the kind of terminal.
pub fn options() -> Options {
    // As the C library looks for the character set; without any it is that of the C locale.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|name| !name.is_empty());
    let names_utf8 = |locale: std::ffi::OsString| {
        let locale = locale.to_string_lossy().to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    };
    let unicode = !std::io::stdout().is_terminal() || locale.is_some_and(names_utf8);
    let color = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    Options { width: width(), color, unicode }
}

/// `COLUMNS`, else a terminal's; `None` where nobody looks at one.
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

fn written(folded: &Folded, journal: &Path, format: &str, options: &Options) -> Result<Vec<u8>> {
    let mut model = analysis::model(folded)?;
    model.journal = journal.display().to_string();
    render::written(format, Document::Run(&model), options)
}

fn latest(folder: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let journals = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let newest = journals.max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok());
    newest.with_context(|| format!("no journal in {}; name one, or make one with `pickfs run`", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_lies_beside_its_journal() {
        for (journal, page) in [("a/b.jsonl", "a/b.html"), ("b", "b.html"), ("b.html", "b.html.html")] {
            assert_eq!(page_beside(Path::new(journal)), Path::new(page));
        }
    }
}
