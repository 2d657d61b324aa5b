//! An existing tree, read: counts and samples of its files, and a profile made of them.

pub mod describe;
mod duplicates;
mod measure;
mod same_size;
pub(crate) mod sketch;
pub mod survey;
pub mod walk;
