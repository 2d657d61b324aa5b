//! Takes the steps that a stack is made of, and takes them back.
//!
//! Each undo is journaled before its step runs. This room must not know which stack the steps
//! belong to, what is measured on it, nor how the host is reached.
//!
//! Must not know: `stage`, `workload`.

#![expect(clippy::disallowed_methods, reason = "says how long each step took")]

mod image;
mod kernel_log;
mod own;
mod runner;
mod setting;
#[cfg(test)]
mod tests;
mod undo;
mod zram;

pub(crate) use own::{Own, name_of, real};
pub(crate) use runner::StepResult;
pub use runner::StepRunner;
pub(crate) use undo::all as undo_all;
