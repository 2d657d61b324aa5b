//! What host and target share: what we mean to measure ([`plan`]), what happened ([`journal`]),
//! what both sides say to each other ([`protocol`]), and what each metric means ([`metric`]).
//!
//! It must not know a workload, a file system, an executor or a report.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod journal;
pub mod metric;
pub mod plan;
pub mod protocol;
