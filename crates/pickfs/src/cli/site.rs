//! `pickfs site`: a store as pages for a browser.

use super::audit::Audit;
use super::{Exit, Outcome, Verb};
use anyhow::{Context, Result};
use pickfs_host::audit::as_html;
use pickfs_host::render::site::site;
use pickfs_host::store::{Filter, Store};
use pickfs_host::wording::text::counted;
use pickfs_host::wording::trends::StoredRun;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What the audits of the runs came to, by their hashes: an audit takes longer than a page.
const GRADES: &str = "run/grades.json";

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
        let runs: BTreeSet<String> =
            store.find_works(&Filter::default())?.into_iter().map(|found| found.entry.hash).collect();
        let mut grades = grades(&self.out);
        for hash in &runs {
            let [page, disclosure, journal] =
                [report_path(hash), disclosure_path(hash), journal_path(hash)].map(|path| self.out.join(path));
            // None changes under its name.
            if page.exists() && disclosure.exists() && journal.exists() && grades.contains_key(hash) {
                continue;
            }
            let mut text = Vec::new();
            store.read(hash)?.read_to_end(&mut text).context("cannot read a journal")?;
            let audit = Audit::of(&text, Path::new(&format!("{hash}.jsonl")), None, None);
            let audit = audit.with_context(|| format!("cannot judge {hash}"))?;
            write(&page, &audit.page()?)?;
            write(&disclosure, as_html(&audit.disclosure()).as_bytes())?;
            write(&journal, &text)?;
            grades.insert(hash.clone(), audit.grade().word().to_string());
        }
        write(&self.out.join(GRADES), &serde_json::to_vec(&grades)?)?;
        let pages = pages(&store, &self.title, &grades)?;
        for (path, text) in &pages {
            write(&self.out.join(path), text.as_bytes())?;
        }
        println!(
            "{}: {} of {}",
            self.out.join("index.html").display(),
            counted(pages.len() + 2 * runs.len(), "page"),
            counted(runs.len(), "run")
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

fn disclosure_path(hash: &str) -> String {
    format!("run/{hash}-disclosure.html")
}

fn journal_path(hash: &str) -> String {
    format!("journals/{hash}.jsonl")
}

/// All pages but those of single runs: paths and texts.
fn pages(store: &Store, title: &str, grades: &BTreeMap<String, String>) -> Result<Vec<(String, String)>> {
    let found = store.find_works(&Filter::default())?;
    let runs = found.into_iter().map(|found| StoredRun {
        grade: grades.get(&found.entry.hash).cloned().unwrap_or_default(),
        hash: found.entry.hash,
        started: found.entry.started,
        machine: found.entry.machine,
        kernel: found.entry.kernel,
        choice: found.choice,
    });
    Ok(site(title, &runs.collect::<Vec<_>>()))
}

/// The grades found before; none where there are none.
fn grades(out: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read(out.join(GRADES)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
