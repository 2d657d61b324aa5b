//! Formats: one file each, which lay out what `analysis` has judged and `wording` has said.
//!
//! This room must not know how anything is run or judged: it spawns nothing, reads no clock and
//! touches no file. A format computes nothing, so that no two formats can tell different stories.
//! Names of a journal are free of control characters here, but still hostile: a markup format
//! escapes all of them.
//!
//! A new format is a file with a [`Format`] and its line in [`ALL`].
//!
//! Must not know: `executor`, `run`.

mod bmf;
mod chart;
mod csv;
mod github_action;
mod html;
mod hyperfine;
mod json;
pub(crate) mod markdown;
mod ods;
mod phoronix;
mod prometheus;
mod screen;
mod svg;
mod tables;
#[cfg(test)]
mod tests;
mod text;

pub use csv::csv_text;
pub use html::site;
pub use svg::pictures;

use crate::analysis::Model;
use crate::wording::between_runs::RunComparison;
use crate::wording::machines::MachinesReport;
use crate::wording::ranking::Choice;
use crate::wording::tuning::Tuned;
use anyhow::{Context, Result};
use std::io::{self, Write};

/// What can be shown.
#[derive(Clone, Copy)]
pub enum Document<'a> {
    /// One run: `pickfs report`.
    Run(&'a Model),
    /// Two runs of one plan: `pickfs compare`.
    Comparison(&'a RunComparison),
    /// The best targets of many runs: `pickfs choices`.
    Ranking(&'a [Choice]),
    /// One plan on several machines: `pickfs choices --between machines`.
    Machines(&'a [MachinesReport]),
    /// The answer of a tuning, or which option matters in which of several.
    Tunings(&'a [Tuned]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Run,
    Comparison,
    Ranking,
    Machines,
    Tunings,
}

#[derive(Clone, Copy)]
pub struct Options {
    /// Columns; for plain text.
    pub width: usize,
    /// Lines of a terminal; `None` for no limit.
    pub lines: Option<usize>,
    /// Escape sequences of terminals, for plain text.
    pub color: bool,
    /// The reader's terminal shows more than ASCII.
    pub unicode: bool,
}

impl Default for Options {
    /// For a reader whose terminal is not known.
    fn default() -> Options {
        Options { width: 80, lines: None, color: false, unicode: true }
    }
}

/// Writes a document of one kind.
type Writer<D> = fn(&D, &Options, &mut dyn Write) -> io::Result<()>;

/// One way to show documents: those for which it has a writer.
pub struct Format {
    /// As typed after `--format`.
    pub name: &'static str,
    pub about: &'static str,
    /// Nothing that a terminal could show.
    pub is_binary: bool,
    pub run: Option<Writer<Model>>,
    pub comparison: Option<Writer<RunComparison>>,
    pub ranking: Option<Writer<[Choice]>>,
    pub machines: Option<Writer<[MachinesReport]>>,
    pub tunings: Option<Writer<[Tuned]>>,
}

impl Format {
    /// Shows nothing: for `..Format::NONE`.
    pub(crate) const NONE: Format = Format {
        name: "",
        about: "",
        is_binary: false,
        run: None,
        comparison: None,
        ranking: None,
        machines: None,
        tunings: None,
    };

    pub fn shows(&self, kind: Kind) -> bool {
        match kind {
            Kind::Run => self.run.is_some(),
            Kind::Comparison => self.comparison.is_some(),
            Kind::Ranking => self.ranking.is_some(),
            Kind::Machines => self.machines.is_some(),
            Kind::Tunings => self.tunings.is_some(),
        }
    }

    /// Fails with [`io::ErrorKind::Unsupported`] for a kind of document that it does not show.
    pub fn write(&self, document: Document, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        match document {
            Document::Run(model) => self.run.map(|write| write(model, options, out)),
            Document::Comparison(runs) => self.comparison.map(|write| write(runs, options, out)),
            Document::Ranking(choices) => self.ranking.map(|write| write(choices, options, out)),
            Document::Machines(works) => self.machines.map(|write| write(works, options, out)),
            Document::Tunings(tunings) => self.tunings.map(|write| write(tunings, options, out)),
        }
        .unwrap_or_else(|| Err(io::Error::new(io::ErrorKind::Unsupported, format!("`{}` cannot show this", self.name))))
    }
}

/// Every format, sorted by name.
pub const ALL: &[Format] = &[
    bmf::BMF,
    csv::CSV,
    csv::CSV_SUMMARY,
    text::FULL,
    github_action::GITHUB_ACTION,
    html::HTML,
    hyperfine::HYPERFINE,
    json::JSON,
    markdown::MARKDOWN,
    ods::ODS,
    phoronix::PHORONIX,
    prometheus::PROMETHEUS,
    svg::SVG,
    text::TEXT,
];

pub fn find(name: &str) -> Option<&'static Format> {
    ALL.iter().find(|format| format.name == name)
}

/// Names of the formats that show documents of a kind.
pub fn names(kind: Kind) -> Vec<&'static str> {
    names_of_any(&[kind])
}

/// Of formats that show any of these kinds.
pub fn names_of_any(kinds: &[Kind]) -> Vec<&'static str> {
    let shows = |format: &&Format| kinds.iter().any(|kind| format.shows(*kind));
    ALL.iter().filter(shows).map(|format| format.name).collect()
}

/// A document in the format of that name.
pub fn written(format: &str, document: Document, options: &Options) -> Result<Vec<u8>> {
    let known = || ALL.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
    let format = find(format).with_context(|| format!("no format `{format}`; there are: {}", known()))?;
    let mut out = Vec::new();
    format.write(document, options, &mut out)?;
    Ok(out)
}
