//! Workloads on databases.

mod account;
mod clients;
mod daemon;
pub mod duckdb;
mod mariadb;
pub mod pgbench;
mod postgres;
pub mod rocksdb;
pub mod sqlite;
pub mod sysbench;
