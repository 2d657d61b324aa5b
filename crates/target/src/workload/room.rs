//! The room in a file system, as statvfs(3) has it.

use anyhow::{Context, Result};
use std::path::Path;

/// Bytes.
pub(crate) struct Room {
    pub of_all: u64,
    /// For files of all users. btrfs counts among its unused blocks what metadata will have.
    pub free: u64,
    /// With what is kept for root.
    pub unused: u64,
}

impl Room {
    pub(crate) fn at(folder: &Path) -> Result<Room> {
        let found = rustix::fs::statvfs(folder);
        let found = found.with_context(|| format!("cannot ask for the room in {}", folder.display()))?;
        let [of_all, free, unused] =
            [found.f_blocks, found.f_bavail, found.f_bfree].map(|blocks| blocks * found.f_frsize);
        Ok(Room { of_all, free, unused })
    }
}
