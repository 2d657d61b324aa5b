//! Models of disks: tables of numbers with their sources, what a model gives under a virtual clock,
//! how a model is fitted to a real disk, and what is on a disk after a power cut.
//!
//! It must not know its callers, nor what a benchmark is.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod cuts;
pub(crate) mod models;
pub mod parameters;
pub mod profile;
pub(crate) mod virtual_clock;

pub use models::{ALL, find, like, whole_name};
pub use parameters::{Disk, Kind, Sourced, significant};
pub use virtual_clock::{Loop, ModelSpeeds, random_reads, speeds_of};
