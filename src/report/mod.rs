//! What was found, for people: a judged model computed once, and one file for each format that shows it.
//!
//! This room must not know how anything is run: it spawns nothing, reads no clock and touches no file. A format
//! lays a [`Model`] out and computes nothing, so that no two formats can tell different stories. Everything in a
//! journal is hostile: control characters are gone once a model is made; a markup format still escapes all of it.

mod beside;
mod champions;
mod course;
mod criteria;
mod curves;
mod effect;
mod holes;
mod html;
mod judge;
mod latency;
mod model;
mod overall;
mod pairs;
mod rates;
mod series;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod trust;
mod verdict;
mod words;

pub use course::repeats as repeats_in_words;
pub use html::pictures;
pub use model::*;
pub use text::write_wide;

use std::io::{self, Write};

/// One way to show a model.
pub trait Format: Sync {
    /// As typed after `--format`, and the usual end of a file's name.
    fn name(&self) -> &'static str;
    fn about(&self) -> &'static str;
    fn write(&self, model: &Model, out: &mut dyn Write) -> io::Result<()>;
}

/// Every format, sorted by name.
pub const ALL: &[&dyn Format] = &[&html::Html, &svg::Svg, &text::Text];

pub fn find(name: &str) -> Option<&'static dyn Format> {
    ALL.iter().copied().find(|format| format.name() == name)
}
