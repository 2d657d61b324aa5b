//! `pickfs ask`: what a store knows of a disk and a work.

use super::{Exit, FAILED, Outcome, Verb, query, report};
use pickfs_core::journal::typed;
use pickfs_host::store::{Filter, IndexedWork, Store};
use pickfs_host::wording::ranking;
use pickfs_host::wording::text::wrapped;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Ask a store what is best for a disk and a work, without measuring
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The store, or postgresql://... (`pickfs query STORE --to` fills it); by default the atlas of
    /// simulated disks that the Debian package brings (`make atlas-store` makes one)
    #[arg(default_value = ATLAS)]
    store: PathBuf,
    /// A part of the disk's name or kind, such as nvme
    #[arg(long, value_name = "WORD", default_value = "", hide_default_value = true)]
    disk: String,
    /// A part of the work's name, workload or settings, such as maildir
    #[arg(long, visible_alias = "work", value_name = "WORD", default_value = "", hide_default_value = true)]
    like: String,
    /// A part of the machine's name or hardware
    #[arg(long, value_name = "WORD", default_value = "", hide_default_value = true)]
    machine: String,
    /// At most this many answers, the newest first
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5)]
    most: usize,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Where the Debian package has it.
const ATLAS: &str = "/usr/share/pickfs/atlas";

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs ask /srv/runs --disk nvme --like maildir", "what was best there, and where it was measured"],
        ["pickfs ask --disk nvme --like maildir", "the same of the atlas, and how to get its numbers again"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let filter = Filter {
            disk: self.disk.clone(),
            work: self.like.clone(),
            machine: self.machine.clone(),
            ..Filter::default()
        };
        if self.store == Path::new(ATLAS) && !Store::is_one(&self.store) {
            let remedy = "the Debian package brings it, and `make atlas-store` makes one; or name a store";
            return Err(Exit::usage(format!("there is no atlas here ({ATLAS}): {remedy}")));
        }
        let mut found = match query::database(&self.store)? {
            Some(database) => database.find_works(&filter)?,
            None => Store::open(&self.store).map_err(|error| Exit::usage(format!("{error:#}")))?.find_works(&filter)?,
        };
        // What could not be judged answers only where nothing else does.
        if found.iter().any(|one| !one.choice.places.is_empty()) {
            found.retain(|one| !one.choice.places.is_empty());
        }
        let shown = &found[..found.len().min(self.most)];
        if self.json {
            let all: Vec<_> = shown.iter().map(|found| json(found, &self.store)).collect();
            println!("{}", serde_json::to_string_pretty(&all)?);
            return Ok(if found.is_empty() { FAILED } else { 0 });
        }
        if found.is_empty() {
            println!(
                "nothing in {} fits; `pickfs query {}` shows what there is",
                self.store.display(),
                typed(&self.store)
            );
            return Ok(FAILED);
        }
        shown.iter().for_each(|found| print(found, &self.store));
        if found.len() > shown.len() {
            println!("and {} older: -n {}", found.len() - shown.len(), found.len());
        }
        Ok(0)
    }
}

fn print(found: &IndexedWork, store: &Path) {
    let width = report::width();
    let minute = found.entry.started.get(..16).unwrap_or_default().replace('T', " ");
    println!("{}", wrapped("", &ranking::sentence(&found.choice), width));
    // One without a name is called by its hardware, which stands above.
    let named = found.entry.machine != found.choice.machine;
    let on = if named { format!(" on {}", found.entry.machine) } else { String::new() };
    println!("{}", wrapped("    ", &format!("measured {minute}{on}"), width));
    // A database has no journals.
    let (store, journal) = match Store::open(store) {
        Ok(opened) => (typed(store), typed(&opened.journal(&found.entry.hash))),
        Err(_) => ("STORE".to_string(), "JOURNAL".to_string()),
    };
    println!("    pickfs report {store}@{}", &found.entry.hash[..12]);
    println!("    pickfs run --trust --again {journal}\n");
}

fn json(found: &IndexedWork, store: &Path) -> serde_json::Value {
    let place = Store::open(store).map(|store| store.journal(&found.entry.hash).display().to_string());
    json!({
        "disk": found.choice.disk,
        "work": found.choice.work,
        "places": found.choice.places,
        "verdict": found.choice.verdict,
        "machine": found.entry.machine,
        "kernel": found.entry.kernel,
        "started": found.entry.started,
        "hash": found.entry.hash,
        "journal": place.ok(),
    })
}
