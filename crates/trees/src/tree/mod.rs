//! A tree like a profile, from a seed: the same to the byte on every machine.

mod folders;
pub(crate) mod layout;
mod names;
mod sizes;
pub(crate) mod write;

use crate::profile::Profile;
use crate::profile::builtin;
use crate::tree::layout::{Shape, TreeLayout};
use crate::tree::write::write;
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
