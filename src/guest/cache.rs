//! Guests that are made already, under the user's cache folder.

use super::build;
use super::recipe::Recipe;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A guest that is there: a kernel, a root, and the modules that come first.
#[derive(Clone, Debug)]
pub struct Guest {
    pub name: String,
    pub folder: PathBuf,
}

impl Guest {
    pub fn kernel(&self) -> PathBuf {
        self.folder.join("vmlinuz")
    }

    pub fn root(&self) -> PathBuf {
        self.folder.join("root.squashfs")
    }

    /// In the order in which they are to be loaded.
    pub fn modules(&self) -> Result<Vec<PathBuf>> {
        let listed = std::fs::read_to_string(self.folder.join("modules.order"))?;
        Ok(listed.lines().map(|name| self.folder.join("modules").join(name)).collect())
    }

    /// Packages with their versions, one a line.
    pub fn manifest(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.join("manifest"))?)
    }
}

/// `$XDG_CACHE_HOME/pickfs/guests`.
pub fn folder() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from).or_else(home);
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set; set one of them")?.join("pickfs/guests"))
}

/// Sorted by name; none where nothing was made yet.
pub fn all() -> Result<Vec<Guest>> {
    let Ok(entries) = std::fs::read_dir(folder()?) else { return Ok(Vec::new()) };
    let made = |path: &PathBuf| path.join("manifest").is_file() && path.extension().is_none();
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(made);
    let name = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut guests: Vec<Guest> = folders.map(|folder| Guest { name: name(&folder), folder }).collect();
    guests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(guests)
}

pub fn find_or_build(recipe: &Recipe, say: &mut dyn FnMut(&str)) -> Result<Guest> {
    let guest = Guest { name: recipe.name(), folder: folder()?.join(recipe.name()) };
    if !guest.folder.join("manifest").is_file() {
        build::build(recipe, &guest.folder, say).with_context(|| format!("cannot make the guest {}", guest.name))?;
    }
    Ok(guest)
}

pub fn remove(guest: &Guest) -> Result<()> {
    std::fs::remove_dir_all(&guest.folder).with_context(|| format!("cannot remove {}", guest.folder.display()))
}
