//! pickfs: which file system, with which options, for this work on this disk? Measured, with error
//! bars.
//!
//! The command line. The only crate that sees both sides; ARCHITECTURE.md has the map of all.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod cli;
