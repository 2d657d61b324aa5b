//! `pickfs query`: the index of a store, asked in SQL.

use super::{Exit, Outcome, Verb, report};
use anyhow::Result;
use comfy_table::{Table, presets};
use pickfs_core::journal::typed;
use pickfs_host::render::csv_text;
use pickfs_host::store::{Database, Rows, Store, is_database};
use pickfs_host::wording::text::counted;
use pickfs_system::visible::visible_json;
use std::path::{Path, PathBuf};

/// Ask the index of a store in SQL; without a question, what each disk and work came to
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The store, or postgresql://... where --to has copied its index
    store: PathBuf,
    /// SQL over the tables `journal` (a row a run) and `result` (a row a work)
    sql: Option<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Make the index again from the journals first
    #[arg(long)]
    reindex: bool,
    /// Copy the index to PostgreSQL first, and ask there; with --reindex, what is no longer in the
    /// store is removed there
    #[arg(long, value_name = "postgresql://...")]
    to: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Text,
    Csv,
    Json,
}

const USUAL: &str = "
    SELECT disk, work, best, count(*) AS runs, count(DISTINCT machine) AS machines, substr(max(started), 1, 10) AS last
    FROM result JOIN journal USING (hash) WHERE best != '' AND superseded = 0
    GROUP BY disk, work, best ORDER BY disk, work, runs DESC, best";

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs query /srv/runs", "how often what was best, by disk and work"],
        ["pickfs query /srv/runs \"SELECT * FROM journal\" --format csv", "for pandas, R or a sheet"],
        ["pickfs query /srv/runs --to postgresql://db/lab", "the index in PostgreSQL, for a team"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let sql = self.sql.as_deref().unwrap_or(USUAL);
        let usage = |error: anyhow::Error| Exit::usage(format!("{error:#}"));
        if let Some(database) = database(&self.store)? {
            if self.reindex || self.to.is_some() {
                return Err(Exit::usage("--reindex and --to are for a store, and this is a database"));
            }
            return self.show(&database.query(sql).map_err(usage)?);
        }
        let store = Store::open(&self.store).map_err(usage)?;
        if self.reindex {
            let count = store.reindex()?;
            eprintln!("{} indexed", counted(count, "journal"));
        }
        let Some(address) = &self.to else {
            return self.show(&store.query(sql).map_err(usage)?);
        };
        let database = database(Path::new(address))?;
        let database =
            database.ok_or_else(|| Exit::usage("--to takes an address such as postgresql://HOST/DATABASE"))?;
        eprintln!("{} journals in {address}", store.copy_to(&database, self.reindex)?);
        self.show(&database.query(sql).map_err(usage)?)
    }
}

/// Where the word is the address of one.
pub(crate) fn database(word: &Path) -> Result<Option<Database>> {
    let text = word.to_string_lossy();
    is_database(&text).then(|| Database::new(&text)).transpose()
}

impl Arguments {
    fn show(&self, rows: &Rows) -> Outcome {
        if self.sql.is_none() && rows.rows.is_empty() {
            let (store, word) = (self.store.display(), typed(&self.store));
            eprintln!("no run of {store} has shown yet what is best; `pickfs history {word}` lists its runs");
        }
        let text = match self.format {
            Form::Text => table(rows).into_bytes(),
            Form::Csv => csv(rows)?,
            Form::Json => json(rows)?,
        };
        report::deliver(&text, None).map(|()| 0)
    }
}

fn table(rows: &Rows) -> String {
    let plain =
        |cells: &Vec<String>| cells.iter().map(|cell| pickfs_host::wording::text::plain(cell)).collect::<Vec<_>>();
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_width(report::width() as u16);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.set_header(plain(&rows.columns)).add_rows(rows.rows.iter().map(plain));
    format!("{table}\n")
}

fn csv(rows: &Rows) -> Result<Vec<u8>> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let inert = |row: &Vec<String>| row.iter().map(|cell| csv_text(cell)).collect::<Vec<_>>();
    std::iter::once(&rows.columns).chain(&rows.rows).try_for_each(|row| out.write_record(inert(row)))?;
    Ok(out.into_inner()?)
}

fn json(rows: &Rows) -> Result<Vec<u8>> {
    let object = |row: &Vec<String>| -> serde_json::Map<String, serde_json::Value> {
        rows.columns.iter().cloned().zip(row.iter().cloned().map(Into::into)).collect()
    };
    let all: Vec<_> = rows.rows.iter().map(object).collect();
    Ok((visible_json(&serde_json::to_string_pretty(&all)?) + "\n").into_bytes())
}
