//! Formats: one file each, which lay out what `report` has judged.
//!
//! This room must not know how anything is run or judged: it spawns nothing, reads no clock and touches no file. A format
//! computes nothing, so that no two formats can tell different stories. Names of a journal are free of control characters
//! here, but still hostile: a markup format escapes all of them.
//!
//! Must not know: `agent`, `executor`, `probe`, `run`, `stack`, `stage`, `sys`, `workload`.

mod bmf;
mod choices;
mod compare;
mod csv;
mod github_action;
mod html;
mod hyperfine;
mod json;
mod markdown;
mod ods;
mod phoronix;
mod svg;
mod tables;
#[cfg(test)]
mod tests;
mod text;

pub use choices::{CHOICE_FORMATS, Choice, Place, choices, write_choices};
pub use compare::{COMPARISON_FORMATS, Compared, ComparedRow, Provenance, compared, differences, write_comparison};
pub use html::pictures;
pub use text::write_wide;

use crate::analysis::Model;
use std::io::{self, Write};

/// One way to show a model.
pub trait Format: Sync {
    /// As typed after `--format`.
    fn name(&self) -> &'static str;
    fn about(&self) -> &'static str;
    fn write(&self, model: &Model, out: &mut dyn Write) -> io::Result<()>;

    /// Nothing that a terminal could show.
    fn is_binary(&self) -> bool {
        false
    }
}

/// Every format, sorted by name.
pub const ALL: &[&dyn Format] = &[
    &bmf::Bmf,
    &csv::Csv,
    &csv::CsvSummary,
    &github_action::GithubAction,
    &html::Html,
    &hyperfine::Hyperfine,
    &json::Json,
    &markdown::Markdown,
    &ods::Ods,
    &phoronix::Phoronix,
    &svg::Svg,
    &text::Text,
];

pub fn find(name: &str) -> Option<&'static dyn Format> {
    ALL.iter().copied().find(|format| format.name() == name)
}
