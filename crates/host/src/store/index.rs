//! The index of a store: SQLite, so that any program can read it. It is never the only place of
//! anything.
//!
//! An entry depends on its journal alone, and on which other journals of its run there are, so the
//! order in which they came leaves no trace.

use super::{INDEX, Rows, Store, shown};
use crate::analysis;
use crate::wording::machines::machine_name;
use crate::wording::ranking::{Choice, ranking};
use anyhow::{Context, Result};
use pickfs_core::journal::fold;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use std::time::Duration;

/// Raised with every change of the tables or of what is written into them: an index of another
/// version is made again.
const VERSION: i64 = 3;

/// How long a writer waits for the others.
const PATIENCE: Duration = Duration::from_secs(120);

const TABLES: &str = "
    CREATE TABLE journal (
        hash TEXT PRIMARY KEY, run TEXT NOT NULL, started TEXT NOT NULL, title TEXT NOT NULL, machine TEXT NOT NULL,
        hardware TEXT NOT NULL, kernel TEXT NOT NULL, pickfs TEXT NOT NULL, answer TEXT NOT NULL, bytes INTEGER NOT NULL,
        superseded INTEGER NOT NULL, problem TEXT NOT NULL);
    CREATE TABLE result (
        hash TEXT NOT NULL, number INTEGER NOT NULL, disk TEXT NOT NULL, work TEXT NOT NULL, about TEXT NOT NULL,
        best TEXT NOT NULL, verdict TEXT NOT NULL, choice TEXT NOT NULL, PRIMARY KEY (hash, number));
    CREATE INDEX journal_run ON journal (run);
    CREATE INDEX journal_started ON journal (started);";

/// A journal of the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub hash: String,
    pub run: String,
    /// RFC 3339.
    pub started: String,
    pub title: String,
    /// What the machine is called.
    pub machine: String,
    /// Processor, memory, kernel and drive.
    pub hardware: String,
    pub kernel: String,
    pub pickfs: String,
    /// The first sentence of its report.
    pub answer: String,
    pub bytes: u64,
    /// Why it cannot be judged; empty where it can.
    pub problem: String,
}

/// What one work of a run came to.
#[derive(Clone, Debug)]
pub struct IndexedWork {
    pub entry: Entry,
    /// The workload with its settings, for searching.
    pub about: String,
    pub choice: Choice,
}

/// Which runs are meant: each word must stand in what it names, in either case. Empty words fit
/// all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub disk: String,
    pub work: String,
    /// The name of the machine, or its hardware.
    pub machine: String,
    /// The beginning of a hash.
    pub hash: String,
}

pub(crate) struct Index {
    connection: Connection,
}

impl Index {
    /// The index of the store in a folder. It is made if it is missing, and made again if it is
    /// damaged, of another version or a link.
    pub(crate) fn open(folder: &Path) -> Result<Index> {
        // SQLite takes no link on the whole way.
        let path = folder.canonicalize().with_context(|| format!("cannot find {}", folder.display()))?.join(INDEX);
        Index::connect(&path).or_else(|_| {
            Index::remove(&path)?;
            Index::connect(&path)
        })
    }

    pub(crate) fn in_memory() -> Result<Index> {
        Index::with_tables(Connection::open_in_memory()?)
    }

    pub(crate) fn remove(path: &Path) -> Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    fn connect(path: &Path) -> Result<Index> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        Index::with_tables(Connection::open_with_flags(path, flags)?)
    }

    fn with_tables(mut connection: Connection) -> Result<Index> {
        connection.busy_timeout(PATIENCE)?;
        // It can be made again.
        connection.pragma_update(None, "synchronous", "OFF")?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version != VERSION {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another writer may have been faster.
            let version: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if version != VERSION {
                change.execute_batch("DROP TABLE IF EXISTS result; DROP TABLE IF EXISTS journal;")?;
                change.execute_batch(TABLES)?;
                change.pragma_update(None, "user_version", VERSION)?;
            }
            change.commit()?;
        }
        Ok(Index { connection })
    }

    pub(crate) fn len(&self) -> Result<usize> {
        let count: i64 = self.connection.query_row("SELECT count(*) FROM journal", [], |row| row.get(0))?;
        Ok(count as usize)
    }

    /// An entry for each of these journals, and no other.
    pub(crate) fn follow(&mut self, hashes: &[String], store: &Store) -> Result<()> {
        let there: BTreeSet<&String> = hashes.iter().collect();
        for gone in self.hashes("SELECT hash FROM journal")?.iter().filter(|hash| !there.contains(hash)) {
            self.forget(gone)?;
        }
        let sound = self.hashes("SELECT hash FROM journal WHERE problem = ''")?;
        for hash in hashes.iter().filter(|hash| !sound.contains(*hash)) {
            self.add(store, hash)?;
        }
        Ok(())
    }

    fn hashes(&self, sql: &str) -> Result<BTreeSet<String>> {
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn forget(&mut self, hash: &str) -> Result<()> {
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute("DELETE FROM result WHERE hash = ?1", [hash])?;
        change.execute("DELETE FROM journal WHERE hash = ?1", [hash])?;
        // What it had superseded counts again, unless a third one has it too: found out anew.
        change.execute("DELETE FROM journal WHERE superseded", [])?;
        change.execute("DELETE FROM result WHERE hash NOT IN (SELECT hash FROM journal)", [])?;
        Ok(change.commit()?)
    }

    /// Reads the journal before the others are kept waiting. Nothing happens to an entry that is
    /// there, unless it has a problem: that may have been of the moment, such as a copy under way.
    pub(crate) fn add(&mut self, store: &Store, hash: &str) -> Result<()> {
        let known = "SELECT problem FROM journal WHERE hash = ?1";
        let known: Option<String> = self.connection.query_row(known, [hash], |row| row.get(0)).optional()?;
        if known.as_deref() == Some("") {
            return Ok(());
        }
        let (entry, found) = read(store, hash);
        if known.is_some_and(|problem| problem == entry.problem) {
            return Ok(());
        }
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute("DELETE FROM journal WHERE hash = ?1 AND problem != ''", [hash])?;
        let superseded = supersede(&change, &entry, store)?;
        insert(&change, &entry, &found, superseded)?;
        Ok(change.commit()?)
    }

    pub(crate) fn runs(&self, filter: &Filter) -> Result<Vec<Entry>> {
        Ok(runs_of(&self.query(RUNS)?, filter))
    }

    pub(crate) fn find_works(&self, filter: &Filter) -> Result<Vec<IndexedWork>> {
        works_of(&self.query(FOUND)?, filter)
    }

    pub(crate) fn query(&self, sql: &str) -> Result<Rows> {
        self.connection.pragma_update(None, "query_only", true)?;
        let mut statement = self.connection.prepare(sql)?;
        let columns: Vec<String> = statement.column_names().into_iter().map(String::from).collect();
        let mut found = statement.query([])?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            let values = (0..columns.len()).map(|at| row.get(at).map(shown));
            rows.push(values.collect::<rusqlite::Result<Vec<String>>>()?);
        }
        Ok(Rows { columns, rows })
    }
}

impl Filter {
    fn fits_run(&self, entry: &Entry) -> bool {
        let machine = contains(&entry.machine, &self.machine) || contains(&entry.hardware, &self.machine);
        machine && entry.hash.starts_with(&self.hash)
    }

    fn fits(&self, found: &IndexedWork) -> bool {
        let work = contains(&found.choice.work, &self.work) || contains(&found.about, &self.work);
        work && contains(&found.choice.disk, &self.disk)
    }
}

fn contains(text: &str, word: &str) -> bool {
    word.is_empty() || text.to_lowercase().contains(&word.to_lowercase())
}

/// All that is known of the runs that count, in the SQL of any database.
pub(crate) const RUNS: &str =
    "SELECT hash, run, started, title, machine, hardware, kernel, pickfs, answer, bytes, problem FROM journal
     WHERE superseded = 0 ORDER BY started DESC, hash";

/// The same for each work, with what it came to.
pub(crate) const FOUND: &str =
    "SELECT j.hash, run, started, title, machine, hardware, kernel, pickfs, answer, bytes, problem, about, choice
     FROM journal j JOIN result r ON r.hash = j.hash WHERE superseded = 0 ORDER BY started DESC, j.hash, number";

/// Entries from the rows of [`RUNS`].
pub(crate) fn runs_of(rows: &Rows, filter: &Filter) -> Vec<Entry> {
    rows.rows.iter().map(|row| entry(row)).filter(|entry| filter.fits_run(entry)).collect()
}

/// What is found, from the rows of [`FOUND`].
pub(crate) fn works_of(rows: &Rows, filter: &Filter) -> Result<Vec<IndexedWork>> {
    let mut all = Vec::new();
    for row in &rows.rows {
        let choice = row.get(12).map(String::as_str).unwrap_or_default();
        let choice: Choice = serde_json::from_str(choice).context("the index is damaged")?;
        let found = IndexedWork { entry: entry(row), about: row[11].clone(), choice };
        if filter.fits_run(&found.entry) && filter.fits(&found) {
            all.push(found);
        }
    }
    Ok(all)
}

fn entry(row: &[String]) -> Entry {
    let text = |at: usize| row.get(at).cloned().unwrap_or_default();
    Entry {
        hash: text(0),
        run: text(1),
        started: text(2),
        title: text(3),
        machine: text(4),
        hardware: text(5),
        kernel: text(6),
        pickfs: text(7),
        answer: text(8),
        bytes: text(9).parse().unwrap_or(0),
        problem: text(10),
    }
}

/// What a journal says. One that cannot be judged has an entry too, with the reason.
fn read(store: &Store, hash: &str) -> (Entry, Vec<(String, Choice)>) {
    let mut entry = Entry { hash: hash.to_string(), ..Entry::default() };
    match store.read(hash).and_then(|journal| judged(journal, &mut entry)) {
        Ok(found) => (entry, found),
        Err(error) => (Entry { problem: format!("{error:#}"), ..entry }, Vec::new()),
    }
}

fn judged(mut journal: File, entry: &mut Entry) -> Result<Vec<(String, Choice)>> {
    entry.bytes = journal.metadata()?.len();
    let found = hash_of_start(&journal, &[entry.bytes])?.pop().unwrap_or_default();
    // Copied here by another program, and damaged on its way.
    anyhow::ensure!(found == entry.hash, "{}.jsonl has the SHA-256 {found}", entry.hash);
    journal.rewind()?;
    let folded = fold(BufReader::with_capacity(1 << 20, journal))?;
    let run = folded.run.as_ref().context("it has no `run` record that this version can read")?;
    let newest = pickfs_core::journal::SCHEMA;
    anyhow::ensure!(run.schema <= newest, "it is of schema {}, and this pickfs knows {newest}", run.schema);
    entry.run = run.id.clone();
    entry.started = run.started.clone();
    let model = analysis::model(&folded)?;
    let kernel = model.kernels.first().cloned();
    entry.title = model.title.clone();
    entry.machine = machine_name(&model);
    entry.hardware = model.machine();
    entry.kernel = kernel.unwrap_or_else(|| folded.host.get("kernel").cloned().unwrap_or_default());
    entry.pickfs = model.pickfs.clone();
    entry.answer = model.headlines().into_iter().next().unwrap_or_default();
    let about = |name: &str| {
        let works = run.plan.works.iter().filter(|work| work.name == name || name == analysis::ALL_WORK);
        let shown = works.map(|work| {
            let settings = serde_json::to_string(&work.workload.settings).unwrap_or_default();
            format!("{} {settings}", work.workload.name)
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    let simulated = analysis::is_simulated(&folded);
    let with_levels =
        |choice: Choice| Choice { levels: analysis::levels(run, &model, &choice.work, simulated), ..choice };
    let choices = ranking(std::slice::from_ref(&model)).into_iter().map(with_levels);
    Ok(choices.map(|choice| (about(&choice.work), choice)).collect())
}

fn insert(change: &Transaction, entry: &Entry, found: &[(String, Choice)], superseded: bool) -> Result<()> {
    change.execute(
        "INSERT OR IGNORE INTO journal VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        params![
            entry.hash, entry.run, entry.started, entry.title, entry.machine, entry.hardware, entry.kernel,
            entry.pickfs, entry.answer, entry.bytes as i64, superseded, entry.problem
        ],
    )?;
    for (number, (about, choice)) in found.iter().enumerate() {
        let best = choice.places.first().map(|place| place.names.join(", ")).unwrap_or_default();
        let whole = serde_json::to_string(choice)?;
        change.execute(
            "INSERT OR IGNORE INTO result VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![entry.hash, number as i64, choice.disk, choice.work, about, best, choice.verdict, whole],
        )?;
    }
    Ok(())
}

/// A journal that begins with all of another has gone on from it. Whether this one is superseded;
/// entries that it supersedes are marked.
fn supersede(change: &Transaction, entry: &Entry, store: &Store) -> Result<bool> {
    let mut statement =
        change.prepare("SELECT hash, bytes FROM journal WHERE run = ?1 AND hash != ?2 ORDER BY bytes")?;
    let others =
        statement.query_map([&entry.run, &entry.hash], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
    let others: Vec<(String, u64)> = others.collect::<rusqlite::Result<_>>()?;
    let (shorter, longer): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, bytes)| *bytes < entry.bytes);
    let lengths: Vec<u64> = shorter.iter().map(|(_, bytes)| *bytes).collect();
    let starts = match lengths.as_slice() {
        [] => Vec::new(),
        lengths => hash_of_start(&store.read(&entry.hash)?, lengths)?,
    };
    for ((hash, _), start) in shorter.iter().zip(starts) {
        if *hash == start {
            change.execute("UPDATE journal SET superseded = 1 WHERE hash = ?1", [hash])?;
        }
    }
    let has_all = |hash: &String| {
        let start = store.read(hash).and_then(|other| hash_of_start(&other, &[entry.bytes]));
        start.is_ok_and(|start| start.first() == Some(&entry.hash))
    };
    Ok(longer.iter().any(|(hash, _)| has_all(hash)))
}

/// SHA-256 of the first bytes of a journal, for each of these lengths, which ascend.
fn hash_of_start(mut journal: &File, lengths: &[u64]) -> Result<Vec<String>> {
    let (mut hash, mut done, mut found) = (Sha256::new(), 0, Vec::new());
    let mut chunk = vec![0; 64 << 10];
    for length in lengths {
        while done < *length {
            let most = chunk.len().min((length - done) as usize);
            let read = journal.read(&mut chunk[..most])?;
            anyhow::ensure!(read > 0, "a journal ends too early");
            hash.update(&chunk[..read]);
            done += read as u64;
        }
        found.push(format!("{:x}", hash.clone().finalize()));
    }
    Ok(found)
}
