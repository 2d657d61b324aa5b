//! A DuckDB database as analysts keep one: rows loaded from a text file, all of them added up, some added one by one and
//! many changed at once, and all written to a text file again. With DuckDB's own program.
//!
//! The text file is made once, in memory, from a fixed seed, and with it what the database must hold.

use crate::stack::{Place, argv};
use crate::stage::phase::*;
use crate::stage::{AfterPhase, Printed, Program, Stage};
use crate::workload::settings::{Count, settings};
use crate::workload::staging::Staging;
use crate::workload::{Description, Workload, text};
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::random::Random;
use pickfs_trees::content::Content;
use pickfs_trees::profile::Stuff;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub(crate) struct Duckdb;

settings! {
    Amounts {
        rows: Count = "1000000", "rows that are loaded; about 80 bytes each in the text file";
        transactions: Count = "500", "rows that are added one by one, each in a transaction of its own";
    }
}

const DESCRIPTION: Description = Description {
    name: "duckdb",
    about: "DuckDB: rows loaded from a text file, added up, added, changed and exported (Debian forky and later have it)",
    settings: Amounts::ROWS,
    main_setting: "rows",
    phases: &[
        Phase::new(
            "load",
            "make a table of a text file in memory, until it is in the database file",
            Fresh,
            AllData,
            Durable,
        ),
        Phase::new("aggregate", "counts and sums of all rows by customer, cold", Cold, Declared, Returned),
        Phase::new("insert", "add rows, each in a transaction of its own", Warm, AllData, Durable),
        Phase::new(
            "update",
            "change every tenth row, in one transaction, until it is in the database file",
            Warm,
            AllData,
            Durable,
        ),
        Phase::new("export", "write all rows to a text file on the same file system", Warm, AllData, Durable),
    ],
    programs: &[("duckdb", "duckdb")],
    versions: &[&["duckdb", "--version"]],
    seconds: 15,
    ..Description::EMPTY
};

const CUSTOMERS: u64 = 1000;
const TEXT_OF_ROWS: usize = 1 << 20;
/// Letters of a row; every number from the one to the other is as frequent.
const SHORTEST: u64 = 20;
const LONGEST: u64 = 100;
const BYTES_OF_ROW: u64 = 90;
/// The share of the database file that `aggregate` reads at least: all columns but the numbers of
/// the rows, which compress best.
const READ: f64 = 0.5;

const SUMS: &str = "SELECT count(*), sum(id), sum(amount), sum(length(body)) FROM sale";
const BY_CUSTOMER: &str = "SELECT customer, count(*), sum(amount), sum(length(body)) FROM sale GROUP BY customer";

impl Workload for Duckdb {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let Amounts { rows, transactions } = Amounts::of(settings);
        let few = (rows < CUSTOMERS).then(|| {
            let message = format!("{rows} rows are fewer than their {CUSTOMERS} customers");
            Objection::new("rows", message, "load more")
        });
        let none = (transactions == 0)
            .then(|| Objection::new("transactions", "`transactions` is 0".to_string(), "give 1 or more"));
        few.into_iter().chain(none).collect()
    }

    /// The database, what an update writes beside what was there, and the exported text.
    fn bytes(&self, settings: &Settings) -> Option<u64> {
        Some(Amounts::of(settings).rows.saturating_mul(BYTES_OF_ROW).saturating_mul(3))
    }

    fn prepare(&self, settings: &Settings, place: &Place) -> Result<()> {
        let (amounts, staging) = (Amounts::of(settings), staging(settings, place));
        let folder = &staging.folder;
        std::fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut writer = Writer::new();
        let write = |name: &str, content: String| {
            std::fs::write(folder.join(name), content).with_context(|| format!("cannot write {name} to memory"))
        };
        write("rows.csv", (1..=amounts.rows).map(|id| writer.line(id)).collect())?;
        let loaded = writer.sums;
        let singles = (amounts.rows + 1..=amounts.rows + amounts.transactions).map(|id| writer.insert(id));
        write("insert.sql", singles.collect())?;
        staging.note(&[loaded, writer.sums])
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (amounts, staging) = (Amounts::of(settings), staging(settings, stage.place()));
        let [loaded, mut all]: [Sums; 2] = staging.noted()?;
        let (database, rows) = (stage.root().join("sales.duckdb"), text(&staging.folder.join("rows.csv")));
        let load = format!("{SCHEMA}; COPY sale FROM '{rows}' (HEADER false); CHECKPOINT");
        stage.phase("load", |p| p.run(&statement(&database, &load)))?;
        verify(stage, &database, loaded).context("after phase load")?;
        let stored = database.metadata().context("asking for the size of the database")?.len();
        for _ in stage.repeats() {
            let count = |p: &mut AfterPhase, found: Printed| {
                p.reads_at_least((stored as f64 * READ) as u64);
                let lines = found.text(p)?.lines().filter(|line| !line.trim().is_empty()).count() as u64;
                ensure!(lines == CUSTOMERS, "{lines} of {CUSTOMERS} customers were found");
                Ok(())
            };
            stage.phase_then("aggregate", |p| p.output(&statement(&database, BY_CUSTOMER)), count)?;
        }
        let insert = duckdb(&database).into_iter().chain(["-f".into(), text(&staging.folder.join("insert.sql"))]);
        let insert = Program::new(insert.collect::<Vec<_>>());
        stage.phase("insert", |p| {
            p.say("work_transactions", amounts.transactions as f64);
            p.run(&insert)
        })?;
        verify(stage, &database, all).context("after phase insert")?;
        let update = "UPDATE sale SET amount = amount + 1 WHERE id % 10 = 0; CHECKPOINT";
        stage.phase("update", |p| p.run(&statement(&database, update)))?;
        all.amount += (amounts.rows + amounts.transactions) / 10;
        verify(stage, &database, all).context("after phase update")?;
        let exported = stage.root().join("sales.csv");
        let export = format!("COPY sale TO '{}' (HEADER false)", exported.display());
        stage.phase("export", |p| p.run(&statement(&database, &export)))?;
        stage.check("counting the exported rows", || {
            let lines = std::fs::read(&exported)?.iter().filter(|byte| **byte == b'\n').count() as u64;
            ensure!(lines == all.rows, "{lines} of {} rows were exported", all.rows);
            Ok(())
        })
    }
}

/// What the table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    rows: u64,
    numbers: u64,
    amount: u64,
    letters: u64,
}

/// Untimed, and by another process than the phase's.
fn verify(stage: &mut Stage, database: &Path, wanted: Sums) -> Result<()> {
    let found = stage.run(&statement(database, SUMS))?;
    let expected = format!("{},{},{},{}", wanted.rows, wanted.numbers, wanted.amount, wanted.letters);
    ensure!(found.trim() == expected, "the table should hold {expected}, and holds {:?}", found.trim());
    Ok(())
}

/// With nobody's own configuration, and at the first error it ends.
fn duckdb(database: &Path) -> Vec<String> {
    argv(["duckdb", "-no-init", "-batch", "-bail", "-csv", "-noheader", &text(database)])
}

fn statement(database: &Path, sql: &str) -> Program {
    Program::new(duckdb(database).into_iter().chain(["-c".to_string(), sql.to_string()]))
}

fn staging(settings: &Settings, place: &Place) -> Staging {
    Staging::new("duckdb", settings, place)
}

const SCHEMA: &str = "CREATE TABLE sale(id BIGINT, customer INTEGER, amount BIGINT, body VARCHAR)";

/// Makes rows, and keeps account of them.
struct Writer {
    text: Vec<u8>,
    random: Random,
    sums: Sums,
}

impl Writer {
    fn new() -> Writer {
        let mut content = Content::new();
        let text = content.like(Stuff::Source, &mut Random::new(1, 1), TEXT_OF_ROWS);
        // Letters that no text file and no statement gives a meaning of its own.
        let letter = |byte: &u8| if byte.is_ascii_alphanumeric() { *byte } else { b' ' };
        Writer { text: text.iter().map(letter).collect(), random: Random::new(1, 2), sums: Sums::default() }
    }

    /// Customer, amount and text of a row.
    fn row(&mut self, id: u64) -> (u64, u64, String) {
        // Each customer is there, whatever chance says.
        let customer = if id <= CUSTOMERS { id - 1 } else { self.random.below(CUSTOMERS) };
        let amount = self.random.below(100_000);
        let length = (SHORTEST + self.random.below(LONGEST - SHORTEST)) as usize;
        let start = self.random.index(self.text.len() - length);
        let body = String::from_utf8_lossy(&self.text[start..start + length]).into_owned();
        self.sums.rows += 1;
        self.sums.numbers += id;
        self.sums.amount += amount;
        self.sums.letters += length as u64;
        (customer, amount, body)
    }

    /// Quoted, as spaces at the ends count.
    fn line(&mut self, id: u64) -> String {
        let (customer, amount, body) = self.row(id);
        format!("{id},{customer},{amount},\"{body}\"\n")
    }

    fn insert(&mut self, id: u64) -> String {
        let (customer, amount, body) = self.row(id);
        format!("INSERT INTO sale VALUES ({id},{customer},{amount},'{body}');\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_account_is_of_the_rows_and_each_customer_is_there() {
        let mut writer = Writer::new();
        let lines: Vec<String> = (1..=3000).map(|id| writer.line(id)).collect();
        let column = |number: usize| lines.iter().map(move |line| line.trim_end().splitn(4, ',').nth(number).unwrap());
        let sum = |number: usize| column(number).map(|value| value.parse::<u64>().unwrap()).sum::<u64>();
        let letters = column(3).map(|body| body.len() as u64 - 2).sum::<u64>();
        let found = Sums { rows: lines.len() as u64, numbers: sum(0), amount: sum(2), letters };
        assert_eq!(writer.sums, found);
        let customers: std::collections::BTreeSet<&str> = column(1).collect();
        assert_eq!(customers.len() as u64, CUSTOMERS);
        assert!(lines.iter().all(|line| line.matches('"').count() == 2 && !line.contains('\'')));
        assert!(writer.insert(3001).starts_with("INSERT INTO sale VALUES (3001,"));
        assert_eq!(writer.sums.rows, 3001);
        let again = || (1..=50).map(|id| Writer::new().line(id)).collect::<String>();
        assert_eq!(again(), again());
    }

    #[test]
    fn what_cannot_be_done_is_objected_to() {
        let objections = |rows: u64, transactions: u64| {
            let settings = Settings(
                [("rows", rows), ("transactions", transactions)].map(|(name, n)| (name.to_string(), json!(n))).into(),
            );
            Duckdb.objections(&settings).into_iter().map(|objection| objection.setting).collect::<Vec<_>>()
        };
        assert!(objections(CUSTOMERS, 1).is_empty());
        assert_eq!(objections(CUSTOMERS - 1, 0), ["rows", "transactions"]);
    }
}
