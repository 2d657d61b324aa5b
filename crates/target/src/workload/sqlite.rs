//! An SQLite database as applications keep one: rows added and changed one by one, each durable
//! before the next, in batches too, then looked up, deleted, and the file made small again. With
//! SQLite's own program.
//!
//! The statements are made once, in memory, from a fixed seed, and with them what the database must
//! hold after each phase.

use crate::stack::{Place, argv};
use crate::stage::{AfterPhase, Printed, Program, Stage, Timed};
use crate::workload::settings::{Count, choice, settings};
use crate::workload::staging::Staging;
use crate::workload::{Description, Workload, described, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::random::Random;
use pickfs_trees::content::Content;
use pickfs_trees::profile::Stuff;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

pub(crate) struct Sqlite;

choice! { Journal { Wal = "wal", Delete = "delete", Truncate = "truncate", Persist = "persist" } }

settings! {
    Amounts {
        transactions: Count<1> = "1000", "number of rows that are added one by one, and then changed one by one";
        rows: Count<1> = "100000", "rows that are added a hundred at a time; about 250 bytes each";
        selects: Count<1> = "2000", "rows that are looked up, cold";
        journal: Journal = "wal",
            "how SQLite keeps its promises: a write-ahead log, or a rollback journal and what becomes of it";
    }
}

choice! {
    /// The phases, in order.
    Job {
        Insert = "insert",
        InsertMany = "insert-many",
        Select = "select",
        Update = "update",
        Delete = "delete",
        Vacuum = "vacuum",
    }
}

const BATCH: u64 = 100;
const TEXT_OF_ROWS: usize = 4 << 20;
/// Letters of a row; every number from the one to the other is as frequent.
const SHORTEST: u64 = 20;
const LONGEST: u64 = 420;
const BYTES_OF_ROW: u64 = 300;
/// Of a page of the database.
const PAGE: u64 = 4096;

impl Workload for Sqlite {
    fn description(&self) -> &'static Description {
        described!("sqlite.toml", Amounts::ROWS)
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let amounts = Amounts::of(settings);
        let many = (amounts.selects > amounts.all()).then(|| {
            let message = format!("{} rows cannot be looked up in {}, each once", amounts.selects, amounts.all());
            Objection::new("selects", message, "look up fewer, or add more `rows`")
        });
        many.into_iter().collect()
    }

    /// Vacuuming writes a second file next to the first, and a journal of its pages.
    fn bytes(&self, settings: &Settings) -> Option<u64> {
        Some(Amounts::of(settings).all().saturating_mul(BYTES_OF_ROW).saturating_mul(3))
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        let (amounts, staging) = (Amounts::of(settings), staging(settings, place));
        let folder = &staging.folder;
        std::fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut wanted = BTreeMap::new();
        let mut writer = Writer::new(&amounts);
        for job in Job::ALL {
            std::fs::write(folder.join(job.word()), writer.statements(*job))
                .context("cannot write statements to memory")?;
            wanted.insert(job.word(), writer.wanted());
        }
        staging.note(&wanted)
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (amounts, staging) = (Amounts::of(settings), staging(settings, stage.place()));
        let folder = &staging.folder;
        let wanted: BTreeMap<String, ExpectedRows> = staging.noted()?;
        let database = stage.root().join("database");
        let mut mode = String::new();
        for job in Job::ALL {
            let (phase, wanted) = (job.word(), &wanted[job.word()]);
            if *job == Job::Select {
                look_up(stage, &amounts, folder, wanted.pages)?;
                continue;
            }
            let play = |p: &mut Timed| {
                p.say("work_transactions", amounts.transactions_of(*job) as f64);
                p.output(&script(&database, folder, phase))
            };
            // Only a write-ahead log is kept from one connection to the next, and so only the
            // script's own has the mode; nothing else of it prints.
            mode = stage.phase_then(phase, play, |p, printed| printed.text(p))?;
            verify(stage, &database, wanted).with_context(|| format!("after phase {phase}"))?;
        }
        stage.fact("sqlite journal_mode", mode.trim());
        Ok(())
    }
}

fn look_up(stage: &mut Stage, amounts: &Amounts, folder: &Path, pages: u64) -> Result<()> {
    let (selects, database) = (amounts.selects, stage.root().join("database"));
    for _ in stage.repeats() {
        let count = |p: &mut AfterPhase, found: Printed| {
            p.reads_at_least(pages * PAGE);
            let found = found.text(p)?;
            let rows = found.lines().filter(|line| !line.trim().is_empty()).count() as u64;
            ensure!(rows == selects, "{rows} of {selects} rows were found");
            p.say("work_transactions", selects as f64);
            Ok(())
        };
        stage.phase_then("select", |p| p.output(&script(&database, folder, "select")), count)?;
    }
    Ok(())
}

/// What the database must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ExpectedRows {
    rows: u64,
    numbers: u64,
    letters: u64,
    /// Pages that the phase has to read at least.
    pages: u64,
}

/// Untimed, and by another connection than the phase's.
fn verify(stage: &mut Stage, database: &Path, wanted: &ExpectedRows) -> Result<()> {
    let sql = "SELECT count(*), sum(id), sum(length(body)) FROM message; PRAGMA integrity_check";
    let found = stage.run(&statement(database, sql))?;
    let expected = format!("{}|{}|{}\nok", wanted.rows, wanted.numbers, wanted.letters);
    ensure!(found.trim() == expected, "the database should hold {expected:?}, and holds {:?}", found.trim());
    Ok(())
}

/// Without a user's configuration; it ends at the first error.
fn sqlite3(database: &Path) -> Vec<String> {
    argv(["sqlite3", "-init", "/dev/null", "-batch", "-bail", &text(database)])
}

fn script(database: &Path, folder: &Path, phase: &str) -> Program {
    let read = format!(".read '{}'", folder.join(phase).display());
    Program::new(sqlite3(database).into_iter().chain([read]))
}

fn statement(database: &Path, sql: &str) -> Program {
    Program::new(sqlite3(database).into_iter().chain([sql.to_string()]))
}

fn staging(settings: &Settings, place: &Place) -> Staging {
    Staging::new("sqlite", settings, place)
}

impl Amounts {
    /// Rows that are there before any is deleted.
    fn all(&self) -> u64 {
        self.transactions + self.rows
    }

    fn transactions_of(&self, job: Job) -> u64 {
        match job {
            Job::Insert | Job::Update => self.transactions,
            Job::InsertMany => self.rows.div_ceil(BATCH),
            Job::Select => self.selects,
            Job::Delete => (self.all() / 3).div_ceil(BATCH),
            Job::Vacuum => 1,
        }
    }
}

/// Makes the statements of the phases, in order, and keeps account of what they do.
struct Writer<'a> {
    amounts: &'a Amounts,
    text: Vec<char>,
    random: Random,
    /// Letters of each row, by its number less one; 0 for none.
    rows: Vec<u64>,
    /// That the last statements look at, at least.
    pages: u64,
}

impl Writer<'_> {
    fn new(amounts: &Amounts) -> Writer<'_> {
        let mut content = Content::new();
        let text = content.like(Stuff::Source, &mut Random::new(1, 1), TEXT_OF_ROWS);
        // As letters, since a statement is text; line ends and quotes are kept.
        let letter = |byte: &u8| if byte.is_ascii_graphic() || *byte == b'\n' { char::from(*byte) } else { ' ' };
        Writer {
            amounts,
            text: text.iter().map(letter).collect(),
            random: Random::new(1, 2),
            rows: Vec::new(),
            pages: 0,
        }
    }

    fn statements(&mut self, job: Job) -> String {
        let (singles, all) = (self.amounts.transactions, self.amounts.all());
        let journal = self.amounts.journal.word();
        // Of FULL, SQLite says that a transaction survives a loss of power; NORMAL, which some
        // choose, may lose it.
        let mut text = format!("PRAGMA journal_mode={journal};\nPRAGMA synchronous=FULL;\n");
        match job {
            Job::Insert => {
                text.push_str(SCHEMA);
                (1..=singles).for_each(|id| self.insert(id, &mut text));
            }
            Job::InsertMany => {
                let ids: Vec<u64> = (singles + 1..=all).collect();
                in_batches(&ids, &mut text, |id, text| self.insert(id, text));
            }
            Job::Select => text = self.selects(),
            Job::Update => (0..singles).for_each(|_| self.update(&mut text)),
            Job::Delete => {
                let ids: Vec<u64> = (3..=all).step_by(3).collect();
                in_batches(&ids, &mut text, |id, text| self.delete(id, text));
            }
            Job::Vacuum => text.push_str("VACUUM;\n"),
        }
        text
    }

    fn insert(&mut self, id: u64, text: &mut String) {
        let (sender, body) = (self.random.below(1000), self.body());
        self.rows.push(body.chars().count() as u64);
        let time = 1_700_000_000 + id * 60;
        text.push_str(&format!("INSERT INTO message VALUES({id},{sender},{time},'{}');\n", quoted(&body)));
    }

    fn update(&mut self, text: &mut String) {
        let (index, body) = (self.random.index(self.rows.len()), self.body());
        self.rows[index] = body.chars().count() as u64;
        text.push_str(&format!("UPDATE message SET body='{}' WHERE id={};\n", quoted(&body), index + 1));
    }

    fn delete(&mut self, id: u64, text: &mut String) {
        self.rows[id as usize - 1] = 0;
        text.push_str(&format!("DELETE FROM message WHERE id={id};\n"));
    }

    /// Evenly spread over all rows, in no order.
    fn selects(&mut self) -> String {
        let selects = self.amounts.selects;
        let step = self.amounts.all() / selects.max(1);
        let mut ids: Vec<u64> = (0..selects).map(|number| 1 + number * step).collect();
        self.pages = self.pages_of(&ids);
        self.random.shuffle(&mut ids);
        ids.into_iter().fold(String::new(), |mut text, id| {
            let _ = writeln!(text, "SELECT sender, length(body) FROM message WHERE id={id};");
            text
        })
    }

    /// Of rows in order: two with more than a page of other rows between them are not on the same
    /// one.
    fn pages_of(&self, ids: &[u64]) -> u64 {
        let (mut pages, mut last) = (0, None::<usize>);
        for index in ids.iter().map(|id| *id as usize - 1) {
            if last.is_none_or(|last| self.rows[last + 1..index].iter().sum::<u64>() > PAGE) {
                (pages, last) = (pages + 1, Some(index));
            }
        }
        pages
    }

    fn body(&mut self) -> String {
        let length = (SHORTEST + self.random.below(LONGEST - SHORTEST)) as usize;
        let start = self.random.index(self.text.len() - length);
        self.text[start..start + length].iter().collect()
    }

    fn wanted(&self) -> ExpectedRows {
        let there = || (1..).zip(&self.rows).filter(|(_, letters)| **letters > 0);
        ExpectedRows {
            rows: there().count() as u64,
            numbers: there().map(|(id, _): (u64, _)| id).sum(),
            letters: there().map(|(_, letters)| letters).sum(),
            pages: self.pages,
        }
    }
}

const SCHEMA: &str = "CREATE TABLE message(id INTEGER PRIMARY KEY, sender INTEGER NOT NULL, time INTEGER NOT NULL, \
                      body TEXT NOT NULL);\nCREATE INDEX message_by_sender ON message(sender, time);\n";

fn in_batches(ids: &[u64], text: &mut String, mut one: impl FnMut(u64, &mut String)) {
    for batch in ids.chunks(BATCH as usize) {
        text.push_str("BEGIN;\n");
        batch.iter().for_each(|id| one(*id, text));
        text.push_str("COMMIT;\n");
    }
}

fn quoted(body: &str) -> String {
    body.replace('\'', "''")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::{Setting, SettingKind};
    use serde_json::json;

    fn settings(transactions: u64, rows: u64, selects: u64) -> Settings {
        let pairs = [("transactions", transactions), ("rows", rows), ("selects", selects)];
        Settings(pairs.map(|(name, count)| (name.to_string(), json!(count))).into())
    }

    #[test]
    fn the_account_is_of_what_the_statements_do() {
        let amounts = Amounts::of(&settings(10, 250, 20));
        let mut writer = Writer::new(&amounts);
        let count = |text: &str, word: &str| text.lines().filter(|line| line.starts_with(word)).count();
        let first = writer.statements(Job::Insert);
        assert_eq!((count(&first, "INSERT"), writer.wanted().rows, writer.wanted().numbers), (10, 10, 55));
        let many = writer.statements(Job::InsertMany);
        assert_eq!((count(&many, "INSERT"), count(&many, "COMMIT")), (250, 3));
        let before = writer.wanted();
        assert_eq!((before.rows, before.numbers), (260, 260 * 261 / 2));
        let selects = writer.statements(Job::Select);
        let ids: std::collections::BTreeSet<&str> =
            selects.lines().filter_map(|line| line.split("id=").nth(1)).collect();
        assert_eq!((ids.len(), writer.wanted().letters), (20, before.letters));
        // Thirteen rows of 220 letters on average are less than a page.
        assert!((6..20).contains(&writer.wanted().pages), "{}", writer.wanted().pages);
        writer.rows = vec![2000; 260];
        assert_eq!([writer.pages_of(&[1, 4, 5, 8, 250]), writer.pages_of(&[1, 2, 3])], [3, 1]);
        writer.rows.fill(200);
        assert_eq!(count(&writer.statements(Job::Update), "UPDATE"), 10);
        assert!(writer.wanted().letters != 260 * 200 && writer.wanted().rows == before.rows);
        let deleted = writer.statements(Job::Delete);
        assert_eq!((count(&deleted, "DELETE"), writer.wanted().rows), (86, 260 - 86));
        assert_eq!(count(&writer.statements(Job::Vacuum), "VACUUM"), 1);
    }

    #[test]
    fn every_phase_is_a_job() {
        let phases: Vec<&str> = Sqlite.description().phases.iter().map(|phase| &*phase.name).collect();
        assert_eq!(phases, Job::WORDS);
    }

    #[test]
    fn statements_are_the_same_every_time() {
        let amounts = Amounts::of(&settings(5, 30, 3));
        let all = || {
            let mut writer = Writer::new(&amounts);
            Job::ALL.iter().map(|job| writer.statements(*job)).collect::<String>()
        };
        assert_eq!(all(), all());
    }

    #[test]
    fn what_cannot_be_done_is_objected_to() {
        let objections = |settings: &Settings| {
            Sqlite.objections(settings).into_iter().map(|objection| objection.setting).collect::<Vec<_>>()
        };
        assert!(objections(&settings(1, 1, 2)).is_empty());
        assert_eq!(objections(&settings(1, 1, 3)), ["selects"]);
        let is_some = |row: &Setting| matches!(row.kind, SettingKind::Within(1, u64::MAX));
        assert!(Amounts::ROWS[..3].iter().all(is_some), "none is refused where a plan is read");
    }

    #[test]
    fn a_quote_in_a_row_does_not_end_it() {
        assert_eq!(quoted("it's 'so'"), "it''s ''so''");
    }
}
