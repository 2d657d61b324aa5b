//! What is put into memory once a run, for the cells to work with: a folder for each set of
//! settings, and a note of what is in it.

use super::room::Room;
use crate::stack::Place;
use anyhow::{Context, Result, ensure};
use pickfs_system::units::show_bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// The place of one kind and one set of settings.
pub(crate) struct Staging {
    pub folder: PathBuf,
}

impl Staging {
    pub(crate) fn new(kind: &str, settings: &impl Debug, place: &Place) -> Staging {
        let spelled = xxhash_rust::xxh3::xxh3_64(format!("{settings:?}").as_bytes());
        Staging { folder: place.memory.join(format!("{kind}-{spelled:016x}")) }
    }

    /// A file or folder that belongs to it.
    pub(crate) fn file(&self, extension: &str) -> PathBuf {
        self.folder.with_extension(extension)
    }

    /// To be called last: what has a note is complete.
    pub(crate) fn note(&self, what: &impl Serialize) -> Result<()> {
        Ok(std::fs::write(self.file("json"), serde_json::to_string(what)?)?)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.file("json").exists()
    }

    pub(crate) fn noted<T: DeserializeOwned>(&self) -> Result<T> {
        let note = std::fs::read_to_string(self.file("json"));
        Ok(serde_json::from_str(&note.context("the source is not staged in memory; was the run prepared?")?)?)
    }
}

/// Refuses what memory cannot hold.
pub(crate) fn fits(bytes: u64, folder: &Path) -> Result<()> {
    let (free, show) = (Room::at(folder)?.free, |bytes: u64| show_bytes(bytes as f64));
    ensure!(bytes <= free, "it takes {} of memory, and {} are free; take a smaller one", show(bytes), show(free));
    Ok(())
}
