//! Every English sentence, mark and legend of reports, once: what an analysis says in words.
//!
//! This room must not know formats: it lays nothing out, and computes nothing but how a number is
//! printed.
//!
//! Must not know: `executor`, `render`, `run`.

pub mod advice;
pub(crate) mod answer;
pub(crate) mod axis;
pub mod between_runs;
pub(crate) mod champions;
pub(crate) mod comparison;
pub mod digest;
pub(crate) mod durability;
pub(crate) mod features;
pub mod fidelity;
pub(crate) mod headings;
pub(crate) mod headline;
pub mod history;
pub mod machines;
pub mod marks;
#[cfg(test)]
pub(crate) mod planted_mark;
pub mod ranking;
pub mod score;
pub(crate) mod standings;
pub mod text;
pub mod trends;
pub mod tuning;
pub(crate) mod warnings;
pub mod why;
