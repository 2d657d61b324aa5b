//! The journal of a run under way: what is written to its file is at once in the picture of it.

use anyhow::Result;
use pickfs_core::journal::{Folded, Journal, Record};
use std::path::Path;

/// A journal with all that it says, of earlier sessions too.
pub(crate) struct LiveJournal {
    file: Journal,
    folded: Folded,
}

impl LiveJournal {
    pub(crate) fn new(file: Journal, folded: Folded) -> LiveJournal {
        LiveJournal { file, folded }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn folded(&self) -> &Folded {
        &self.folded
    }

    /// The file first.
    pub(crate) fn write(&mut self, record: Record) -> Result<()> {
        self.file.append(&record)?;
        self.folded.take(record);
        Ok(())
    }
}
