//! What was found, for people: a judged model computed once, and one file for each format that shows it.
//!
//! This room must not know how anything is run: it spawns nothing, reads no clock and touches no file. A format
//! lays a [`Model`] out and computes nothing, so that no two formats can tell different stories. Everything in a
//! journal is hostile: control characters are gone once a model is made; a markup format still escapes all of it.

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

pub use crate::analysis::model::{self, *};
pub use crate::analysis::{Raw, RawCell, RawFlag, RawSample, Times};
pub use crate::wording::history::repeats as repeats_in_words;
pub use choices::{CHOICE_FORMATS, Choice, Place, choices, write_choices};
pub use compare::{COMPARISON_FORMATS, Compared, ComparedRow, Provenance, compared, differences, write_comparison};
pub use html::pictures;
pub use text::write_wide;

use crate::analysis::raw;
use crate::wording::text as words;
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
