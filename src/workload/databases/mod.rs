//! Workloads on databases.

pub mod pgbench;
mod postgres;
pub mod rocksdb;
pub mod sqlite;
