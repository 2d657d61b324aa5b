//! Workloads on databases.

pub(crate) mod duckdb;
pub(crate) mod sqlite;
