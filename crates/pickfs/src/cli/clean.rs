//! `pickfs clean`: undo what killed runs left behind.

use super::{FAILED, Outcome, Verb, journals};
use anyhow::{Context, Result};
use pickfs_core::journal::fold_file;
use pickfs_host::run::{self, Active, Lines, Remains, Trust};
use pickfs_host::wording::text::counted;
use pickfs_system::visible::visible_lines;
use pickfs_target::stack::Place;
use std::path::{Path, PathBuf};

/// Undo what a killed run left behind
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Journals of dead runs; by default all unfinished runs of this user
    journals: Vec<PathBuf>,
    /// Undo also the steps of named journals that this user did not begin here; read them first
    #[arg(long, requires = "journals")]
    trust: bool,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["sudo pickfs clean", "undo what every killed run on this machine left"],
        ["sudo pickfs clean pickfs-runs/RUN.jsonl", "undo what this run left"],
    ];
    fn run(&self) -> Outcome {
        run::count_stop_requests()?;
        let mut failed = false;
        if !self.journals.is_empty() {
            let journals = self.journals.iter().map(|word| named(word)).collect::<Result<Vec<PathBuf>>>()?;
            for journal in &journals {
                failed |= !clean(journal, if self.trust { Trust::Any } else { Trust::Own });
            }
            return Ok(if failed { FAILED } else { 0 });
        }
        let active = Active::list()?;
        if active.is_empty() {
            println!("nothing to clean: every run has undone what it did");
        }
        for (run, journal) in active {
            failed |= !clean_active(&run, &journal);
        }
        Ok(if failed { FAILED } else { 0 })
    }
}

/// Before anything is undone, all of them are known to be journals.
fn named(word: &Path) -> Result<PathBuf> {
    let journal = journals::named(word)?;
    fold_file(&journal)?.begun().with_context(|| shown(&journal))?;
    Ok(journal)
}

/// A run that died before its first line has touched nothing; one whose journal was deleted has,
/// but it is not known what.
fn clean_active(run: &str, journal: &Path) -> bool {
    if Active::is_alive(run) {
        println!("{}: this run is under way, and undoes its own steps", shown(journal));
        return true;
    }
    let remains = run::remains(run, journal);
    if remains == Remains::Journal {
        return clean(journal, Trust::Own);
    }
    let place = Place::of_run(run);
    let left: Vec<_> = [place.mounts, place.memory].into_iter().filter(|path| path.exists()).collect();
    if left.is_empty() && remains == Remains::Nothing {
        Active::forget(run);
        println!("{run}: died before it touched anything; its entry is removed");
        return true;
    }
    let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
    let left = if left.is_empty() { "something".into() } else { left.join(", ") };
    let entry = Active::entry(run).map(|entry| entry.display().to_string()).unwrap_or_default();
    eprintln!(
        "{run}: its journal {} is gone, and it may have left {left}: by hand, `umount` what is mounted there, `losetup -d` \
         the loop devices of {}, remove the folders, look at /proc/sys/vm/dirty_*, and remove {entry}",
        shown(journal),
        place.name
    );
    false
}

fn clean(journal: &Path, trust: Trust) -> bool {
    match run::clean(journal, trust, pickfs_host::executor::ALL, &mut Lines::default()) {
        Ok(steps) => {
            let undone =
                if steps == 0 { "nothing was left to undo".into() } else { counted(steps, "step") + " undone" };
            println!("{}: {undone}", shown(journal));
            true
        }
        Err(error) => {
            let (journal, why) = (shown(journal), visible_lines(&format!("{error:#}")));
            // Some errors name the journal themselves.
            let whose = if why.starts_with(&journal) { String::new() } else { format!("{journal}: ") };
            eprintln!("{whose}{why}");
            false
        }
    }
}

fn shown(path: &Path) -> String {
    visible_lines(&path.display().to_string())
}
