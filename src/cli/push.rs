//! `pickfs push`: journals into a store, here or on another machine.

use super::{Exit, FAILED, Outcome, Verb, journals};
use crate::store::{Limits, Store, Taken, is_address, push_to_address, whole_lines};
use crate::wording::text::counted;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Put journals into a store: a folder that keeps each once, named by its hash, for many runs and machines
#[derive(clap::Args)]
pub struct Arguments {
    /// The store: a folder, made if it is not there, or the address of a `pickfs serve`, such as http://host:8080
    store: String,
    /// Journals, or folders with journals
    #[arg(default_value = "@last")]
    journals: Vec<PathBuf>,
    /// With an address: the file with its token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs push /srv/runs", "the newest run of ./pickfs-runs"],
        ["pickfs push /srv/runs pickfs-runs", "all of them; a journal that the store has is not written again"],
        ["pickfs push http://m1:8080 --token-file token", "to `pickfs serve` on another machine"],
    ];

    fn run(&self) -> Outcome {
        let journals = journals::all(&self.journals)?;
        let target = if is_address(&self.store) {
            Target::Address(&self.store, self.token()?)
        } else {
            Target::Folder(Store::open_or_make(Path::new(&self.store))?)
        };
        let (mut new, mut known, mut failed) = (0, 0, 0);
        for journal in &journals {
            match target.push(journal) {
                Ok(taken) if taken.is_new => new += 1,
                Ok(_) => known += 1,
                Err(error) => {
                    eprintln!("{}: {error:#}", journal.display());
                    failed += 1;
                }
            }
        }
        let there = if known > 0 { format!(", {known} there already") } else { String::new() };
        let not = if failed > 0 { format!(", {failed} not pushed") } else { String::new() };
        println!("{}: {} pushed{there}{not}", self.store, counted(new, "journal"));
        Ok(if failed > 0 { FAILED } else { 0 })
    }
}

impl Arguments {
    fn token(&self) -> Result<String> {
        let file = self.token_file.as_deref();
        let file =
            file.ok_or_else(|| Exit::usage("an address takes --token-file FILE, with the token of its server"))?;
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(text.trim().to_string())
    }
}

enum Target<'a> {
    Folder(Store),
    Address(&'a str, String),
}

impl Target<'_> {
    fn push(&self, journal: &Path) -> Result<Taken> {
        let text = whole_lines(journal)?;
        match self {
            Target::Folder(store) => store.take(&mut text.as_slice(), None, Limits::default()),
            Target::Address(address, token) => {
                let scratch = Scratch::of(&text)?;
                push_to_address(address, token, &text, &scratch.0)
            }
        }
    }
}

/// A file that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn of(text: &[u8]) -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("pickfs-push-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut file = std::fs::File::create_new(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let scratch = Scratch(path);
        std::io::Write::write_all(&mut file, text).with_context(|| format!("cannot write {}", scratch.0.display()))?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
