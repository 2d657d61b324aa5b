//! A tree like a profile, from a seed: the same to the byte on every machine.

mod folders;
pub mod layout;
mod names;
mod sizes;
pub mod write;

use crate::data::profile::Profile;
use crate::data::profile::builtin;
use crate::data::tree::layout::{Shape, TreeLayout};
use crate::data::tree::write::write;
use anyhow::Result;
use std::path::Path;

/// Makes a tree like a developer's in `root`, which is made too where it is not there.
pub fn generate(root: &Path, shape: &Shape, seed: u64) -> Result<()> {
    generate_like(root, &builtin::usual(), shape, seed)
}

/// Makes a tree like that of the profile.
pub fn generate_like(root: &Path, profile: &Profile, shape: &Shape, seed: u64) -> Result<()> {
    write(root, &TreeLayout::new(profile, shape, seed)?)
}
