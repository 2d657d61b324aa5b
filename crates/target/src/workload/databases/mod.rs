//! Workloads on databases.

mod account;
mod clients;
pub(crate) mod duckdb;
mod mariadb;
pub(crate) mod pgbench;
mod postgres;
pub(crate) mod sqlite;
pub(crate) mod sysbench;
