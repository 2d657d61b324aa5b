//! A tree like a profile, from a seed: the same to the byte on every machine.

use super::outline::{Outline, Shape};
use super::profile::Profile;
use super::shipped;
use super::write::write;
use anyhow::Result;
use std::path::Path;

/// Makes a tree like a developer's in `root`, which is made too where it is not there.
pub fn generate(root: &Path, shape: &Shape, seed: u64) -> Result<()> {
    generate_like(root, &shipped::usual(), shape, seed)
}

/// Makes a tree like that of the profile.
pub fn generate_like(root: &Path, profile: &Profile, shape: &Shape, seed: u64) -> Result<()> {
    write(root, &Outline::new(profile, shape, seed)?)
}
