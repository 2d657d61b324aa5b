//! pickfs: which file system, with which options, for this work on this disk? Measured, with error bars.
//!
//! The map; ARCHITECTURE.md has the tour. `plan` is what we mean to measure, `journal` is what happened; every
//! other room turns the one into the other, or reads the second. The host side (`run`, `executor`) never imports a
//! workload or a file system; the target side (`agent`, `stack`, `workload`, `probe`) never imports an executor or
//! a report. `tests/architecture.rs` holds everybody to that.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod agent;
pub mod analysis;
pub mod cli;
pub mod cuts;
pub mod data;
pub mod exchange;
pub mod executor;
pub mod fleet;
pub mod import;
pub mod journal;
pub mod metric;
pub mod need;
pub mod plan;
pub mod predict;
pub mod probe;
pub mod process;
pub mod protocol;
pub mod record;
pub mod render;
pub mod run;
pub mod stack;
pub mod stage;
pub mod stats;
pub mod steps;
pub mod store;
pub mod sys;
pub mod trace;
pub mod units;
pub mod visible;
pub mod wording;
pub mod workload;

/// Says why a unit test cannot run here. With `PICKFS_MUST_RUN` in the environment that is a failure.
#[cfg(test)]
#[track_caller]
fn not_run(why: impl std::fmt::Display) {
    assert!(std::env::var_os("PICKFS_MUST_RUN").is_none(), "it must run, but {why}");
    println!("{}: not run, because {why}", std::thread::current().name().unwrap_or("a test"));
}
