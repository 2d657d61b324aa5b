//! `pickfs push`: journals into a store, here or on another machine.

use super::{Exit, FAILED, Outcome, STOPPED, Verb, journals, on_hosts, there};
use anyhow::Result;
use pickfs_core::journal::NoJournal;
use pickfs_host::fleet::{FarStore, Ssh};
use pickfs_host::store::{Limits, Store, is_journal, whole_lines};
use pickfs_host::wording::text::counted;
use pickfs_system::process::{check_stop, stop_on_signals, stop_requests};
use std::path::{Path, PathBuf};

/// Put journals into a store: a folder that keeps each once, named by its hash, for many runs and
/// machines
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The store: a folder, made if it is not there, or HOST:FOLDER for one on another machine, by
    /// ssh
    store: String,
    /// Journals, or folders with journals
    #[arg(default_value = "@last")]
    journals: Vec<PathBuf>,
    /// With HOST:FOLDER: the configuration of ssh [default: its own]
    #[arg(long, value_name = "FILE")]
    ssh_config: Option<PathBuf>,
    /// With HOST:FOLDER: the folder there for pickfs, which is copied to it [default:
    /// .cache/pickfs]
    #[arg(long, value_name = "DIR")]
    far_folder: Option<String>,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs push /srv/runs", "the newest run of ./pickfs-runs"],
        ["pickfs push /srv/runs pickfs-runs", "all of them; a journal that the store has is not written again"],
        ["pickfs push m1:/srv/runs", "to a store on the machine m1, by ssh"],
    ];

    fn run(&self) -> Outcome {
        let far = FarStore::named(&self.store).map_err(Exit::usage)?;
        if far.is_none() && (self.ssh_config.is_some() || self.far_folder.is_some()) {
            return Err(Exit::usage(
                "--ssh-config and --far-folder are for a store on another machine: name it as HOST:FOLDER",
            ));
        }
        // Links that are named are followed, those in folders are not.
        let named = self.journals.iter().map(|word| word.canonicalize().ok().filter(|_| word.is_symlink()));
        let named: Vec<PathBuf> = named.zip(&self.journals).map(|(real, word)| real.unwrap_or(word.clone())).collect();
        let journals = journals::all(&named)?;
        refuse_other_files(&named)?;
        let target = match far {
            Some(far) => Target::Far(far, self.reached(&far)?),
            None => Target::Folder(Store::open_or_make(Path::new(&self.store))?),
        };
        let (mut new, mut known, mut failed) = (0, 0, 0);
        for journal in &journals {
            match target.push(journal) {
                Ok(true) => new += 1,
                Ok(false) => known += 1,
                Err(error) => {
                    eprintln!("{}: {error:#}", journal.display());
                    failed += 1;
                }
            }
            if stop_requests() > 0 {
                return Ok(STOPPED);
            }
        }
        let there = if known > 0 { format!(", {known} there already") } else { String::new() };
        let not = if failed > 0 { format!(", {failed} not pushed") } else { String::new() };
        println!("{}: {} pushed{there}{not}", self.store, counted(new, "journal"));
        Ok(if failed > 0 { FAILED } else { 0 })
    }
}

/// A file that is named itself must be a journal; of a folder the others are pushed.
fn refuse_other_files(named: &[PathBuf]) -> Result<()> {
    for word in named.iter().filter(|word| !word.is_dir()) {
        let file = journals::named(word)?;
        // What cannot be read is refused when it is pushed.
        if whole_lines(&file).is_ok_and(|text| !is_journal(&text)) {
            return Err(anyhow::Error::new(NoJournal).context(file.display().to_string()));
        }
    }
    Ok(())
}

impl Arguments {
    fn reached(&self, far: &FarStore) -> Result<Ssh> {
        let config = self.ssh_config.as_deref().map(|file| there(file).map(|file| file.display().to_string()));
        // What ends ssh is to remove its sockets too.
        stop_on_signals()?;
        let folder = self.far_folder.as_deref().unwrap_or(on_hosts::FAR_FOLDER);
        let ssh = Ssh::new(config.transpose()?.as_deref(), folder, 1)?;
        let reached = far.reach(&ssh);
        check_stop()?;
        reached.map(|()| ssh)
    }
}

enum Target<'a> {
    Folder(Store),
    Far(FarStore<'a>, Ssh),
}

impl Target<'_> {
    /// False where it was there already.
    fn push(&self, journal: &Path) -> Result<bool> {
        let text = whole_lines(journal)?;
        match self {
            Target::Folder(store) => Ok(store.take(&mut text.as_slice(), None, Limits::default())?.is_new),
            Target::Far(far, ssh) => far.push(ssh, text),
        }
    }
}
