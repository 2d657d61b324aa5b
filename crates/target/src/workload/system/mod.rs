//! Workloads on whole systems: a kernel compiled, packages installed, a root booted.

mod archive;
pub(crate) mod boot;
pub(crate) mod kernel;
mod manager;
pub(crate) mod packages;
