//! What every other crate asks of Linux and of programs: system calls, programs outside any timer,
//! needs, units, text of strangers, and random numbers that are the same everywhere.
//!
//! It must not know what is compared, planned or measured. The only crate with `unsafe`, all of it
//! in [`sys`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod need;
pub mod process;
pub mod random;
pub mod sys;
pub mod units;
pub mod visible;
