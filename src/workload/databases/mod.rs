//! Workloads on databases.

mod account;
mod clients;
mod daemon;
mod mariadb;
pub mod pgbench;
mod postgres;
pub mod rocksdb;
pub mod sqlite;
pub mod sysbench;
