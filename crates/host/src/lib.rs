//! The side that asks: runs plans on machines, keeps their journals, judges what is in them, and
//! puts it into words and formats.
//!
//! It must not know how a file system is made, nor what a workload does.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod analysis;
pub mod audit;
pub(crate) mod exchange;
pub mod executor;
pub mod fleet;
pub mod import;
pub mod render;
pub mod run;
pub mod store;
pub mod wording;
