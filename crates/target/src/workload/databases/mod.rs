//! Workloads on databases.

pub(crate) mod sqlite;
