//! Journals by short names: `@last` is the newest in `./pickfs-runs`, `@2` the one before it;
//! `FOLDER@2` is one of another folder or of a store, where a beginning of its hash names a journal
//! too.

#![expect(clippy::disallowed_methods, reason = "names a journal by its time")]

use super::{Exit, there};
use anyhow::Result;
use pickfs_host::store::{Filter, Store};
use pickfs_host::wording::text::counted;
use std::path::{Path, PathBuf};

/// Where `pickfs run` leaves its journals.
pub(crate) const FOLDER: &str = "pickfs-runs";

/// Over what journals that are named together are judged.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Between {
    Machines,
}

/// The journal that a word of the command line names.
pub(crate) fn named(word: &Path) -> Result<PathBuf> {
    let text = word.to_string_lossy();
    let Some((folder, name)) = text.rsplit_once('@').filter(|_| !word.exists()) else {
        let journal = there(word)?;
        if journal.is_dir() {
            return Err(Exit::usage(match newest_first(journal)?.as_slice() {
                [] => format!("{text} is a folder without journals and without a tuning; `pickfs run` makes a journal"),
                _ => format!("{text} is a folder; its newest journal is {text}@last"),
            }));
        }
        return Ok(journal.to_path_buf());
    };
    let folder = if folder.is_empty() { Path::new(FOLDER) } else { there(Path::new(folder))? };
    if let Some(found) = Some(name).filter(|name| is_hash_start(name)).and_then(|hash| by_hash(folder, hash)) {
        return found;
    }
    let all = newest_first(folder)?;
    if all.is_empty() {
        return Err(Exit::usage(format!("no journal in {}; `pickfs run` makes one", folder.display())));
    }
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
            "there is no {text}: {} has {}; `pickfs history` lists them",
            folder.display(),
            counted(all.len(), "journal")
        ))
    })
}

/// Longer than any number of a run.
fn is_hash_start(name: &str) -> bool {
    name.len() >= 8 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `None` where the folder is no store.
fn by_hash(folder: &Path, hash: &str) -> Option<Result<PathBuf>> {
    let store = Store::open(folder).ok()?;
    let filter = Filter { hash: hash.to_string(), ..Filter::default() };
    Some(store.runs(&filter).and_then(|runs| match runs.as_slice() {
        [one] => store.read(&one.hash).map(|_| store.journal(&one.hash)),
        runs => Err(Exit::usage(format!("{} journals of {} begin with {hash}", runs.len(), folder.display()))),
    }))
}

/// The journals that these words name: of a folder or a store all of them.
pub(crate) fn all(words: &[PathBuf]) -> Result<Vec<PathBuf>> {
    Ok(words.iter().map(|word| of_word(word)).collect::<Result<Vec<_>>>()?.concat())
}

/// One journal, or all of a folder or a store.
pub(crate) fn of_word(word: &Path) -> Result<Vec<PathBuf>> {
    if !word.is_dir() {
        return Ok(vec![named(word)?]);
    }
    let all = newest_first(word)?;
    if all.is_empty() {
        return Err(Exit::usage(format!("there are no journals in {}", word.display())));
    }
    Ok(all)
}

/// The newest journal.
pub(crate) fn latest() -> Result<PathBuf> {
    let newest = newest_first(Path::new(FOLDER))?.into_iter().next();
    newest.ok_or_else(|| Exit::usage(format!("no journal in {FOLDER}; name one, or make one with `pickfs run`")))
}

/// Journals of a folder by the time of their last change, of two with the same time the later name
/// first; those of a store by the start of their run.
pub(crate) fn newest_first(folder: &Path) -> Result<Vec<PathBuf>> {
    if Store::is_one(folder) {
        let store = Store::open(folder)?;
        let runs = store.runs(&Filter::default())?.into_iter().filter(|run| run.problem.is_empty());
        let runs = runs.filter(|run| store.read(&run.hash).is_ok());
        return Ok(runs.map(|run| store.journal(&run.hash)).collect());
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // A link would lead elsewhere, and reading a pipe would wait.
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let journals = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let mut dated: Vec<_> = journals.map(|path| (path.metadata().and_then(|m| m.modified()).ok(), path)).collect();
    dated.sort();
    Ok(dated.into_iter().rev().map(|(_, path)| path).collect())
}

/// `pickfs-runs/2026-01-31-12-00-00.jsonl` in the current directory, with a word for what is
/// special about it.
pub(crate) fn fresh(word: &str) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d-%H-%M-%S");
    let folder = Path::new(FOLDER);
    let first = folder.join(format!("{now}{word}.jsonl"));
    let others = (2..).map(|n| folder.join(format!("{now}{word}-{n}.jsonl")));
    std::iter::once(first).chain(others).find(|path| !path.exists()).unwrap_or_default()
}
