//! Workloads on whole systems: a kernel compiled, packages installed, a root booted.

mod archive;
pub mod boot;
pub mod kernel;
mod manager;
pub mod packages;
