//! The side that does the work, behind `pickfs agent`: builds a stack, plays a workload on it,
//! samples what the machine did, and takes everything down.
//!
//! It must not know how it was reached, what other cells there are, nor what a number means.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod agent;
pub mod probe;
pub mod stack;
pub mod stage;
pub mod steps;
pub mod workload;
