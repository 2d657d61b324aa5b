//! Workloads on databases.

pub(crate) mod postgresql;
pub(crate) mod sqlite;
