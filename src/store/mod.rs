//! Journals of many runs and machines in one folder: each immutable and named by its hash, with an index that can always be
//! made again.
//!
//! The journals are the record, the index only answers faster. What is pushed late, twice or out of order, or copied into the
//! folder by another program, ends in the same index. What is pushed may come from a stranger: nothing is written before it
//! was read to its end and found to be a journal with the hash that it claims. This room must not know how a journal came
//! about, nor who asks.
//!
//! Must not know: `agent`, `cli`, `executor`, `render`, `run`, `stack`, `stage`, `workload`.

mod admit;
mod index;
mod parquet;
mod postgresql;
mod remote;

pub use admit::{Limits, Refused};
pub use index::{Entry, Filter, Found};
pub use postgresql::{Database, is_database};
pub use remote::{is_address, push as push_to_address};

use crate::journal::open_file;
use anyhow::{Context, Result, anyhow, bail};
use index::Index;
use parquet::{Values, parquet};
use rusqlite::types::Value;
use std::fs::{self, File};
use std::io::Read;
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
pub struct Taken {
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
        folder.join(MARK).is_file()
    }

    /// One that is there.
    pub fn open(folder: &Path) -> Result<Store> {
        let shown = folder.display();
        let form = fs::read_to_string(folder.join(MARK));
        let form =
            form.map_err(|error| anyhow!("{shown} is not a store ({error}); `pickfs push {shown} JOURNAL` makes one"))?;
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
        let make = || -> std::io::Result<()> {
            fs::create_dir_all(folder.join(JOURNALS))?;
            fs::create_dir_all(folder.join(INCOMING))?;
            let new = folder.join(INCOMING).join(format!("mark-{}", std::process::id()));
            fs::write(&new, FORM)?;
            fs::rename(new, folder.join(MARK))
        };
        make().with_context(|| format!("cannot make a store in {shown}"))?;
        Store::open(folder)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes a journal of which `declared` says the hash, where its sender says one. An error that is [`Refused`] is the
    /// sender's fault; nothing of it is kept.
    pub fn take(&self, journal: &mut dyn Read, declared: Option<&str>, limits: Limits) -> Result<Taken> {
        let incoming = self.folder.join(INCOMING);
        fs::create_dir_all(&incoming).with_context(|| format!("cannot make {}", incoming.display()))?;
        let admitted = admit::admit(journal, declared, limits, &incoming)?;
        let place = self.journal(&admitted.hash);
        let is_new = admitted.keep(&place)?;
        // Not compared with all that lies here: whoever asks next does that.
        Index::open(&self.folder.join(INDEX))?.add(&place, &admitted.hash)?;
        Ok(Taken { hash: admitted.hash.clone(), is_new })
    }

    /// Where a journal lies, or would lie.
    pub fn journal(&self, hash: &str) -> PathBuf {
        let (first, _) = hash.split_at_checked(2).unwrap_or((hash, ""));
        self.folder.join(JOURNALS).join(first).join(format!("{hash}.jsonl"))
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

    /// With an entry for each journal that lies here, and no other. Where it cannot be written, it is made in memory.
    fn index(&self) -> Result<Index> {
        let hashes = self.hashes();
        let path = self.folder.join(INDEX);
        let followed = Index::open(&path).and_then(|mut index| index.follow(&hashes, self).map(|()| index));
        followed.or_else(|error| {
            if self.is_writable() {
                return Err(error.context(format!("cannot use the index {}", path.display())));
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
        let path = self.folder.join(INDEX);
        Index::remove(&path)?;
        self.index()?.len()
    }

    /// The runs that fit, the newest first; of a run that was pushed again when it had grown, the last.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<Entry>> {
        self.index()?.runs(filter)
    }

    /// What each work of these runs came to, the newest run first.
    pub fn found(&self, filter: &Filter) -> Result<Vec<Found>> {
        self.index()?.found(filter)
    }

    /// Asks the index in SQL; it cannot be changed that way.
    pub fn query(&self, sql: &str) -> Result<Rows> {
        self.index()?.query(sql)
    }
}

/// Both tables of the index, whole: their names, and what is in them.
const ALL: [(&str, &str); 2] =
    [("journal", "SELECT * FROM journal ORDER BY hash"), ("result", "SELECT * FROM result ORDER BY hash, number")];

impl Store {
    /// Brings the tables of a database up to date; with `anew` it has what lies here and nothing else. How many journals.
    pub fn copy_to(&self, database: &Database, anew: bool) -> Result<usize> {
        let [(_, journals), (_, results)] = ALL;
        let (journals, results) = (self.query(journals)?, self.query(results)?);
        database.take(&journals, &results, anew)?;
        Ok(journals.rows.len())
    }

    /// Files for pandas, DuckDB and the like: names and bytes.
    pub fn parquet(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let file = |(table, sql): &(&str, &str)| Ok((format!("{table}.parquet"), as_parquet(&self.query(sql)?)?));
        ALL.iter().map(file).collect()
    }
}

fn as_parquet(rows: &Rows) -> Result<Vec<u8>> {
    let columns = rows.columns.iter().enumerate().map(|(at, name)| Ok((name.as_str(), values(rows, at, name)?)));
    parquet(&columns.collect::<Result<Vec<_>>>()?)
}

fn values(rows: &Rows, at: usize, name: &str) -> Result<Values> {
    let cells = rows.rows.iter().map(|row| &row[at]);
    Ok(match index::NUMBERS.contains(&name) {
        true => Values::Numbers(cells.map(|cell| cell.parse()).collect::<Result<_, _>>()?),
        false => Values::Texts(cells.cloned().collect()),
    })
}

/// Reads a journal for [`Store::take`]: its whole lines, without one that a crash has torn.
pub fn whole_lines(journal: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut file = open_file(journal)?;
    file.read_to_end(&mut text).with_context(|| format!("cannot read {}", journal.display()))?;
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    text.truncate(end);
    Ok(text)
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
