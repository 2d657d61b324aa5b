//! Journals of many runs and machines in one folder: each immutable and named by its hash, with an
//! index that can always be made again.
//!
//! The journals are the record, the index only answers faster. What is pushed late, twice or out of
//! order, or copied into the folder by another program, ends in the same index. What is pushed may
//! come from a stranger: nothing is written before it was read to its end and found to be a journal
//! with the hash that it claims. This room must not know how a journal came about, nor its callers.
//!
//! Must not know: `executor`, `render`, `run`.

mod admit;
mod folder;
mod index;
mod postgresql;

pub use admit::Limits;
pub(crate) use index::Entry;
pub use index::{Filter, IndexedWork};
pub use postgresql::{Database, is_database};

use anyhow::{Context, Result, anyhow, bail};
use folder::{Folder, Unfinished};
use index::Index;
use pickfs_core::journal::typed;
use rusqlite::types::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Says what the folder is, and in which form it is kept.
const MARK: &str = "pickfs-store";
const FORM: &str = "pickfs store 1\n";
const JOURNALS: &str = "journals";
const INCOMING: &str = "incoming";
const INDEX: &str = "index.sqlite";

/// A folder of journals.
pub struct Store {
    folder: PathBuf,
}

/// What came of a journal that was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushResult {
    pub hash: String,
    /// False where it was there already.
    pub is_new: bool,
}

/// What a question to the index gives: the names of the columns, and rows of texts.
#[derive(Debug, Default)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Store {
    pub fn is_one(folder: &Path) -> bool {
        form(folder).is_ok()
    }

    /// One that is there.
    pub fn open(folder: &Path) -> Result<Store> {
        let shown = folder.display();
        let form = form(folder);
        let word = typed(folder);
        let form =
            form.map_err(|error| anyhow!("{shown} is not a store ({error}); `pickfs push {word} JOURNAL` makes one"))?;
        if form != FORM {
            bail!("{shown} is a store of another form ({}); take a newer pickfs", form.trim().escape_debug());
        }
        Ok(Store { folder: folder.to_path_buf() })
    }

    /// One that is there, or a new one in a folder that is not there or is empty.
    pub fn open_or_make(folder: &Path) -> Result<Store> {
        if Store::is_one(folder) {
            return Store::open(folder);
        }
        let shown = folder.display();
        let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
        // Another writer may be making it just now.
        if entries.any(|entry| ![MARK, JOURNALS, INCOMING].iter().any(|own| entry.file_name() == *own)) {
            bail!("{shown} is no store, and it is not empty; name a new folder, or a store");
        }
        make(folder).with_context(|| format!("cannot make a store in {shown}"))?;
        Store::open(folder)
    }

    /// Takes a journal of which `declared` says the hash, where its sender says one. It is on the
    /// disk when this returns. An error that is [`admit::Refused`] is the sender's fault; nothing
    /// of it is kept.
    pub fn take(&self, journal: &mut dyn Read, declared: Option<&str>, limits: Limits) -> Result<PushResult> {
        let unwritten = || format!("cannot write to the store {}", self.folder.display());
        let folder = Folder::open(&self.folder).with_context(unwritten)?;
        let incoming = folder.make(INCOMING).with_context(unwritten)?;
        incoming.remove_dead();
        let admitted = admit::admit(journal, declared, limits, incoming)?;
        let hash = admitted.hash;
        let keep = || {
            make_read_only(&admitted.file.file)?;
            let place = folder.make(JOURNALS)?.make(&hash[..2])?;
            admitted.file.keep(&place, &file_name(&hash))
        };
        let is_new = keep().with_context(unwritten)?;
        // The journal is not compared with all others in the store: the next query does that.
        Index::open(&self.folder)?.add(self, &hash)?;
        Ok(PushResult { hash, is_new })
    }

    /// Opens a journal to read. A link in the store leads to no other file.
    pub fn read(&self, hash: &str) -> Result<File> {
        let open = || Folder::open(&self.folder)?.below(JOURNALS)?.below(start(hash))?.file(file_name(hash));
        open().with_context(|| format!("cannot read the journal {}", self.journal(hash).display()))
    }

    /// Where a journal lies, or would lie.
    pub fn journal(&self, hash: &str) -> PathBuf {
        self.folder.join(JOURNALS).join(start(hash)).join(file_name(hash))
    }

    /// Hashes of all journals that lie here by their names, sorted. What has another name is none.
    fn hashes(&self) -> Vec<String> {
        let folders = fs::read_dir(self.folder.join(JOURNALS)).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        let hashes = names.filter_map(|name| name.strip_suffix(".jsonl").map(String::from));
        let mut hashes: Vec<String> = hashes.filter(|hash| admit::is_hash(hash)).collect();
        hashes.sort();
        hashes
    }

    /// With an entry for each journal that lies here, and no other. Where it cannot be written, it
    /// is made in memory.
    fn index(&self) -> Result<Index> {
        let hashes = self.hashes();
        let followed = Index::open(&self.folder).and_then(|mut index| index.follow(&hashes, self).map(|()| index));
        followed.or_else(|error| {
            if self.is_writable() {
                return Err(error.context(format!("cannot use the index of {}", self.folder.display())));
            }
            let mut index = Index::in_memory()?;
            index.follow(&hashes, self)?;
            Ok(index)
        })
    }

    fn is_writable(&self) -> bool {
        rustix::fs::access(&self.folder, rustix::fs::Access::WRITE_OK).is_ok()
    }

    /// Makes the index again from the journals; how many there are.
    pub fn reindex(&self) -> Result<usize> {
        Index::remove(&self.folder.join(INDEX))?;
        self.index()?.len()
    }

    /// The runs that fit, the newest first; of a run that was pushed again when it had grown, the
    /// last.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<Entry>> {
        self.index()?.runs(filter)
    }

    /// What each work of these runs came to, the newest run first.
    pub fn find_works(&self, filter: &Filter) -> Result<Vec<IndexedWork>> {
        self.index()?.find_works(filter)
    }

    /// Asks the index in SQL; it cannot be changed that way.
    pub fn query(&self, sql: &str) -> Result<Rows> {
        self.index()?.query(sql)
    }
}

/// Both tables of the index, whole: `journal` and `result`.
const ALL: [&str; 2] = ["SELECT * FROM journal ORDER BY hash", "SELECT * FROM result ORDER BY hash, number"];

impl Store {
    /// Brings the tables of a database up to date; with `anew` it has what lies here and nothing
    /// else. How many journals.
    pub fn copy_to(&self, database: &Database, anew: bool) -> Result<usize> {
        let [journals, results] = ALL.map(|sql| self.query(sql));
        let (journals, results) = (journals?, results?);
        database.take(&journals, &results, anew)?;
        Ok(journals.rows.len())
    }
}

/// Reads a journal for [`Store::take`]: its whole lines, without one that a crash has torn. It is a
/// file, and no link to one.
pub fn whole_lines(journal: &Path) -> Result<Vec<u8>> {
    let read = || -> std::io::Result<Vec<u8>> {
        let parent = journal.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut text = Vec::new();
        let file = Folder::open(parent)?.file(journal.file_name().unwrap_or_default())?;
        // A longer one is refused.
        file.take(Limits::default().journal + 1).read_to_end(&mut text)?;
        Ok(text)
    };
    let mut text = read().with_context(|| format!("cannot read the journal {}", journal.display()))?;
    text.truncate(pickfs_core::journal::whole_lines(&text));
    Ok(text)
}

/// Whether these lines begin as those of a journal do, of this version or a newer one.
pub fn is_journal(lines: &[u8]) -> bool {
    let first = lines.split_inclusive(|byte| *byte == b'\n').next();
    first.is_some_and(|line| admit::begins_a_journal(line).is_ok())
}

fn file_name(hash: &str) -> String {
    format!("{hash}.jsonl")
}

/// The folder of a journal.
fn start(hash: &str) -> &str {
    hash.get(..2).unwrap_or(hash)
}

/// What a store says of itself.
fn form(folder: &Path) -> std::io::Result<String> {
    let mut form = String::new();
    Folder::open(folder)?.file(MARK)?.take(100).read_to_string(&mut form)?;
    Ok(form)
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    let Some(parent) = path.parent().filter(|_| !path.exists()) else { return Ok(()) };
    make_folder(parent)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Folder::open(parent)?.sync(),
    }
}

/// Durably.
fn make(path: &Path) -> std::io::Result<()> {
    make_folder(&std::path::absolute(path)?)?;
    let folder = Folder::open(path)?;
    folder.make(JOURNALS)?;
    let mark = Unfinished::new(folder.make(INCOMING)?)?;
    (&mark.file).write_all(FORM.as_bytes())?;
    mark.file.set_permissions(fs::Permissions::from_mode(0o644))?;
    mark.keep(&folder, MARK).map(drop)
}

/// What is never written to again.
fn make_read_only(file: &File) -> std::io::Result<()> {
    file.set_permissions(fs::Permissions::from_mode(0o444))
}

fn shown(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

#[cfg(test)]
mod tests;
