//! Settings of the kernel that are files.

use anyhow::{Context, Result};
use std::path::Path;

pub fn set(path: &Path, value: &str) -> Result<()> {
    std::fs::write(path, value).with_context(|| format!("cannot write `{value}` to {}", path.display()))
}
