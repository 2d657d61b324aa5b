//! The index of a store in PostgreSQL, for teams that ask it from other machines: by psql, which
//! knows the user's passwords, services and certificates. The tables are those of SQLite, in their
//! own schema, and give the same answers.

use super::Rows;
use super::index::{FOUND, Filter, IndexedWork, works_of};
use anyhow::{Context, Result, bail};
use pickfs_system::need::Need;
use pickfs_system::process::{argv, feed_and_read, run_program};

const PSQL: Need = Need::Program { name: "psql", package: "postgresql-client" };

/// Text is sorted by its bytes, as in SQLite.
const TABLES: &str = "
    CREATE SCHEMA IF NOT EXISTS pickfs;
    SET LOCAL search_path = pickfs;
    CREATE TABLE IF NOT EXISTS journal (
        hash TEXT COLLATE \"C\" PRIMARY KEY, run TEXT COLLATE \"C\" NOT NULL, started TEXT COLLATE \"C\" NOT NULL,
        title TEXT COLLATE \"C\" NOT NULL, machine TEXT COLLATE \"C\" NOT NULL, hardware TEXT COLLATE \"C\" NOT NULL,
        kernel TEXT COLLATE \"C\" NOT NULL, pickfs TEXT COLLATE \"C\" NOT NULL, answer TEXT COLLATE \"C\" NOT NULL,
        bytes BIGINT NOT NULL, superseded BIGINT NOT NULL, problem TEXT COLLATE \"C\" NOT NULL);
    CREATE TABLE IF NOT EXISTS result (
        hash TEXT COLLATE \"C\" NOT NULL, number BIGINT NOT NULL, disk TEXT COLLATE \"C\" NOT NULL,
        work TEXT COLLATE \"C\" NOT NULL, about TEXT COLLATE \"C\" NOT NULL, best TEXT COLLATE \"C\" NOT NULL,
        verdict TEXT COLLATE \"C\" NOT NULL, choice TEXT COLLATE \"C\" NOT NULL, PRIMARY KEY (hash, number));";

/// Any number that all writers name: only one changes the tables at a time.
const LOCK: &str = "SELECT pg_advisory_xact_lock(8098991001);";

pub fn is_database(text: &str) -> bool {
    text.starts_with("postgresql://") || text.starts_with("postgres://")
}

/// A database with the index of a store.
pub struct Database {
    address: String,
}

impl Database {
    pub fn new(address: &str) -> Result<Database> {
        if let Err(missing) = PSQL.check() {
            bail!("cannot ask {address}: {missing}");
        }
        Ok(Database { address: address.to_string() })
    }

    /// Adds what these tables have. An entry that is there stays, and only becomes superseded, so
    /// that writers that come late or twice leave no trace. With `anew` nothing else is left.
    pub(crate) fn take(&self, journals: &Rows, results: &Rows, anew: bool) -> Result<()> {
        let mut script = format!("BEGIN;{LOCK}\n");
        script += if anew { "DROP SCHEMA IF EXISTS pickfs CASCADE;\n" } else { "" };
        script += TABLES;
        for (table, rows) in [("journal", journals), ("result", results)] {
            script += &format!("\nCREATE TEMP TABLE new_{table} (LIKE pickfs.{table}) ON COMMIT DROP;\n");
            script += &format!("COPY new_{table} ({}) FROM STDIN;\n", rows.columns.join(", "));
            rows.rows.iter().for_each(|row| copied(row, &mut script));
            script += "\\.\n";
        }
        script += "INSERT INTO journal SELECT * FROM new_journal
            ON CONFLICT (hash) DO UPDATE SET superseded = greatest(journal.superseded, excluded.superseded);
            INSERT INTO result SELECT * FROM new_result ON CONFLICT DO NOTHING;
            COMMIT;\n";
        let words = ["psql", "--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1", "--output=/dev/null"];
        let words = argv([&words[..], &["--dbname", &self.address, "--file=-"]].concat());
        feed_and_read(&words, script.as_bytes()).map(drop).context("the index does not go into PostgreSQL")
    }

    /// Asks in SQL; nothing can be changed that way by accident.
    pub fn query(&self, sql: &str) -> Result<Rows> {
        let words = ["psql", "--no-psqlrc", "--quiet", "--no-password", "--csv", "--set=ON_ERROR_STOP=1", "--dbname"];
        let set = "SET search_path = pickfs; SET default_transaction_read_only = on";
        let words = argv([&words[..], &[&self.address, "--command", set, "--command", sql]].concat());
        read(&run_program(&words)?)
    }

    pub fn find_works(&self, filter: &Filter) -> Result<Vec<IndexedWork>> {
        works_of(&self.query(FOUND)?, filter)
    }
}

/// A line of COPY's text format.
fn copied(row: &[String], script: &mut String) {
    for (at, value) in row.iter().enumerate() {
        if at > 0 {
            script.push('\t');
        }
        for c in value.chars() {
            match c {
                '\\' => script.push_str("\\\\"),
                '\t' => script.push_str("\\t"),
                '\n' => script.push_str("\\n"),
                '\r' => script.push_str("\\r"),
                // No text of PostgreSQL has it.
                '\0' => {}
                c => script.push(c),
            }
        }
    }
    script.push('\n');
}

/// Reads what psql prints with `--csv`.
fn read(text: &str) -> Result<Rows> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let columns = reader.headers().context("psql prints no table")?.iter().map(String::from).collect();
    let rows = reader.records().map(|record| Ok(record?.iter().map(String::from).collect()));
    Ok(Rows { columns, rows: rows.collect::<Result<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_is_one_line_of_as_many_values() {
        let mut script = String::new();
        copied(&["a\tb".into(), "c\\.\nd\0\r".into(), String::new()], &mut script);
        assert_eq!(script, "a\\tb\tc\\\\.\\nd\\r\t\n");
    }

    #[test]
    fn what_psql_prints_is_read_with_its_quotes() {
        let rows = read("a,b\n\"x,\"\"y\n\",\n1,2\n").unwrap();
        assert_eq!(
            (rows.columns, rows.rows),
            (vec!["a".into(), "b".into()], vec![vec!["x,\"y\n".into(), String::new()], vec!["1".into(), "2".into()]])
                as (Vec<String>, Vec<Vec<String>>)
        );
    }
}
