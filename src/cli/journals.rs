//! Journals by short names: `@last` is the newest in `./pickfs-runs`, `@2` the one before it.

use super::{Exit, there};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Where `pickfs run` leaves its journals.
pub const FOLDER: &str = "pickfs-runs";

/// The journal that a word of the command line names.
pub fn named(word: &Path) -> Result<PathBuf> {
    let text = word.to_string_lossy();
    let Some(name) = text.strip_prefix('@').filter(|_| !word.exists()) else { return Ok(there(word)?.to_path_buf()) };
    let all = newest_first(Path::new(FOLDER));
    let place = match name {
        "last" => Some(1),
        number => number.parse::<usize>().ok().filter(|number| *number > 0),
    };
    let Some(place) = place else {
        return Err(Exit::usage(format!(
            "there is no `{}`; write @last, or @2 for the run before it",
            text.escape_debug()
        )));
    };
    let found = all.get(place - 1).cloned();
    found.ok_or_else(|| {
        Exit::usage(format!(
            "there is no {text}: {FOLDER} here has {} journals; `pickfs history` lists them",
            all.len()
        ))
    })
}

/// The newest journal.
pub fn latest() -> Result<PathBuf> {
    let newest = newest_first(Path::new(FOLDER)).into_iter().next();
    newest.ok_or_else(|| Exit::usage(format!("no journal in {FOLDER}; name one, or make one with `pickfs run`")))
}

/// Journals of a folder by the time of their last change; of two with the same time the later name first.
pub fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let journals = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let mut dated: Vec<_> = journals.map(|path| (path.metadata().and_then(|m| m.modified()).ok(), path)).collect();
    dated.sort();
    dated.into_iter().rev().map(|(_, path)| path).collect()
}
