//! `pickfs query`: the index of a store, asked in SQL.

use super::{Exit, Outcome, Verb, report};
use crate::store::{Rows, Store};
use anyhow::Result;
use comfy_table::{Table, presets};
use std::path::PathBuf;

/// Ask the index of a store in SQL; without a question, what each disk and work came to
#[derive(clap::Args)]
pub struct Arguments {
    /// The store
    store: PathBuf,
    /// SQLite's SQL over the tables `journal` (a row a run) and `result` (a row a work)
    sql: Option<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Make the index again from the journals first
    #[arg(long)]
    reindex: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Text,
    Csv,
    Json,
}

const USUAL: &str = "
    SELECT disk, work, best, count(*) AS runs, count(DISTINCT machine) AS machines, substr(max(started), 1, 10) AS last
    FROM result JOIN journal USING (hash) WHERE best != '' AND NOT superseded
    GROUP BY disk, work, best ORDER BY disk, work, runs DESC";

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs query /srv/runs", "how often what was best, by disk and work"],
        ["pickfs query /srv/runs \"SELECT * FROM journal\" --format csv", "for pandas, R or a sheet"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let store = Store::open(&self.store).map_err(|error| Exit::usage(format!("{error:#}")))?;
        if self.reindex {
            let count = store.reindex()?;
            eprintln!("{count} journals indexed");
        }
        let sql = self.sql.as_deref().unwrap_or(USUAL);
        let rows = store.query(sql).map_err(|error| Exit::usage(format!("{error:#}")))?;
        let text = match self.format {
            Form::Text => table(&rows).into_bytes(),
            Form::Csv => csv(&rows)?,
            Form::Json => json(&rows)?,
        };
        report::deliver(&text, None).map(|()| 0)
    }
}

fn table(rows: &Rows) -> String {
    let plain = |cells: &Vec<String>| cells.iter().map(|cell| crate::wording::text::plain(cell)).collect::<Vec<_>>();
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_width(report::width() as u16);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.set_header(&rows.columns).add_rows(rows.rows.iter().map(plain));
    format!("{table}\n")
}

fn csv(rows: &Rows) -> Result<Vec<u8>> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(&rows.columns)?;
    rows.rows.iter().try_for_each(|row| out.write_record(row))?;
    Ok(out.into_inner()?)
}

fn json(rows: &Rows) -> Result<Vec<u8>> {
    let object = |row: &Vec<String>| -> serde_json::Map<String, serde_json::Value> {
        rows.columns.iter().cloned().zip(row.iter().cloned().map(Into::into)).collect()
    };
    let all: Vec<_> = rows.rows.iter().map(object).collect();
    let mut text = serde_json::to_vec_pretty(&all)?;
    text.push(b'\n');
    Ok(text)
}
