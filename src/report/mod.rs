//! What was found, for people: a judged model computed once, and one file for each format that shows it.
//!
//! This room must not know how anything is run: it spawns nothing, reads no clock and touches no file. A format
//! lays a [`Model`] out and computes nothing, so that no two formats can tell different stories. Everything in a
//! journal is hostile: control characters are gone once a model is made; a markup format still escapes all of it.

mod beside;
mod bmf;
mod champions;
mod choices;
mod compare;
mod course;
mod criteria;
mod csv;
mod curves;
mod effect;
mod github_action;
mod holes;
mod html;
mod hyperfine;
mod json;
mod judge;
mod latency;
mod markdown;
mod model;
mod ods;
mod overall;
mod pairs;
mod phoronix;
mod rates;
mod raw;
mod series;
mod svg;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod trust;
mod verdict;
mod words;

pub use choices::{CHOICE_FORMATS, Choice, Place, choices, write_choices};
pub use compare::{COMPARISON_FORMATS, Compared, ComparedRow, Provenance, compared, differences, write_comparison};
pub use course::repeats as repeats_in_words;
pub use html::pictures;
pub use model::*;
pub use raw::{Raw, RawCell, RawFlag, RawSample, Times};
pub use text::write_wide;

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
