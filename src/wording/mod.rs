//! Every English sentence, mark and legend of reports, once: what an analysis says in words.
//!
//! This room must not know formats: it lays nothing out, and computes nothing but how a number is printed.
//!
//! Must not know: `agent`, `executor`, `render`, `run`, `stack`, `stage`, `workload`.

pub mod answer;
pub mod between_runs;
pub mod champions;
pub mod comparison;
pub mod durability;
pub mod features;
pub mod fidelity;
pub mod headings;
pub mod headline;
pub mod history;
pub mod machines;
pub mod marks;
#[cfg(test)]
pub mod planted_mark;
pub mod ranking;
pub mod standings;
pub mod text;
pub mod trends;
pub mod warnings;
