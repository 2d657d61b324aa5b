//! `pickfs site`: a store as pages for a browser.

use super::{Exit, Outcome, Verb, report};
use anyhow::{Context, Result};
use pickfs_core::journal::fold;
use pickfs_host::render::site::site;
use pickfs_host::store::{Filter, Store};
use pickfs_host::wording::trends::StoredRun;
use std::collections::BTreeSet;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Write the runs of a store as pages for a browser, which need no server
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The store
    store: PathBuf,
    /// Folder for the pages; reports and journals that are there already are kept
    out: PathBuf,
    /// What the first page is called
    #[arg(long, default_value = "Which file system for which work on which disk?")]
    title: String,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[["pickfs site /srv/runs /srv/www", "then open /srv/www/index.html"]];

    fn run(&self) -> Outcome {
        let store = Store::open(&self.store).map_err(|error| Exit::usage(format!("{error:#}")))?;
        let pages = pages(&store, &self.title)?;
        for (path, text) in &pages {
            write(&self.out.join(path), text.as_bytes())?;
        }
        let runs = hashes(&store)?;
        for hash in &runs {
            let (page, journal) = (self.out.join(report_path(hash)), self.out.join(journal_path(hash)));
            // Neither changes under its name.
            if !page.exists() {
                write(&page, &report_page(&store, hash)?)?;
            }
            if !journal.exists() {
                let mut text = Vec::new();
                store.read(hash)?.read_to_end(&mut text).context("cannot read a journal")?;
                write(&journal, &text)?;
            }
        }
        println!(
            "{}: {} pages of {} runs",
            self.out.join("index.html").display(),
            pages.len() + runs.len(),
            runs.len()
        );
        Ok(0)
    }
}

/// At once: a server may be showing the folder.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = made.and_then(|()| std::fs::write(&new, bytes)).and_then(|()| std::fs::rename(&new, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn report_path(hash: &str) -> String {
    format!("run/{hash}.html")
}

fn journal_path(hash: &str) -> String {
    format!("journals/{hash}.jsonl")
}

/// All pages but those of single runs: paths and texts.
fn pages(store: &Store, title: &str) -> Result<Vec<(String, String)>> {
    let found = store.found(&Filter::default())?;
    let runs = found.into_iter().map(|found| StoredRun {
        hash: found.entry.hash,
        started: found.entry.started,
        machine: found.entry.machine,
        kernel: found.entry.kernel,
        choice: found.choice,
    });
    Ok(site(title, &runs.collect::<Vec<_>>()))
}

/// Hashes of the runs that have pages.
fn hashes(store: &Store) -> Result<BTreeSet<String>> {
    Ok(store.found(&Filter::default())?.into_iter().map(|found| found.entry.hash).collect())
}

fn report_page(store: &Store, hash: &str) -> Result<Vec<u8>> {
    let folded = fold(BufReader::with_capacity(1 << 20, store.read(hash)?))?;
    let model = report::model(&folded, Path::new(&format!("{hash}.jsonl")));
    model.and_then(|model| report::page(&model)).with_context(|| format!("cannot judge {hash}"))
}
