//! `pickfs clean`: undo what killed runs left behind.

use super::{FAILED, Outcome, Verb, there};
use crate::run::{self, Active, Lines, Owner};
use crate::stack::Place;
use std::path::{Path, PathBuf};

/// Undo what a killed run left behind
#[derive(clap::Args)]
pub struct Arguments {
    /// Journals of dead runs; by default all unfinished runs of this user
    journals: Vec<PathBuf>,
    /// Undo also the steps of named journals that belong to another user; read them first
    #[arg(long, requires = "journals")]
    any_owner: bool,
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
            self.journals.iter().try_for_each(|journal| there(journal).map(drop))?;
            for journal in &self.journals {
                failed |= !clean(journal, if self.any_owner { Owner::Any } else { Owner::Own });
            }
            return Ok(if failed { FAILED } else { 0 });
        }
        let active = Active::list();
        if active.is_empty() {
            println!("nothing to clean: every run has undone what it did");
        }
        for (run, journal) in active {
            failed |= !clean_active(&run, &journal);
        }
        Ok(if failed { FAILED } else { 0 })
    }
}

/// A run that died before its first line has touched nothing; one whose journal was deleted has, but who knows what.
fn clean_active(run: &str, journal: &Path) -> bool {
    let begun = std::fs::metadata(journal).is_ok_and(|found| found.len() > 0);
    if begun {
        return clean(journal, Owner::Own);
    }
    let place = Place::of_run(run);
    let left: Vec<_> = [place.mounts, place.memory].into_iter().filter(|path| path.exists()).collect();
    if Active::is_alive(run) {
        eprintln!("{run}: is under way; wait for it, or stop it first");
        return false;
    }
    if !left.is_empty() {
        let shown: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
        eprintln!(
            "{run}: its journal {} is gone, and it has left {}: by hand, `umount` what is mounted there, `losetup -d` \
             the loop devices of {}, remove the folders, and look at /proc/sys/vm/dirty_*",
            journal.display(),
            shown.join(", "),
            place.name
        );
        return false;
    }
    Active::forget(run);
    println!("{run}: died before it touched anything");
    true
}

fn clean(journal: &Path, owner: Owner) -> bool {
    match run::clean(journal, owner, crate::executor::ALL, &mut Lines::default()) {
        Ok(steps) => {
            println!("{}: {steps} steps undone", journal.display());
            true
        }
        Err(error) => {
            eprintln!("{}: {error:#}", journal.display());
            false
        }
    }
}
