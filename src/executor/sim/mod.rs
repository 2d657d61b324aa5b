//! Simulated disks: models of when a disk answers, as tables of numbers with their sources.
//!
//! `model.c` is the model itself, in C because a guest's kernel has it too. It must not know what is measured.

mod disks;
mod parameters;
mod virtual_clock;

pub use disks::{ALL, Disk, Kind, Sourced, find};
pub use virtual_clock::{Gives, Loop, gives};
