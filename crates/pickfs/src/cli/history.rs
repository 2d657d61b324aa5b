//! `pickfs history`: the runs of a folder, newest first, under the names that other verbs take.

use super::{Exit, Outcome, Verb, journals, there};
use pickfs_core::journal::{Folded, fold_file, typed};
use pickfs_host::analysis;
use pickfs_host::wording::text::{lines, wrapped};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// List the runs of a folder, newest first, each with its answer
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder with journals, or a store
    #[arg(default_value = journals::FOLDER)]
    folder: PathBuf,
    /// At most this many runs
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    most: usize,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs history", "the runs in ./pickfs-runs, each with its answer"],
        ["pickfs report @2", "the report of the second newest"],
        ["pickfs history /srv/runs", "the runs of a store, for names such as /srv/runs@2"],
        ["pickfs compare @2 @last", "what has changed between the last two"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        if !self.is_usual() {
            there(&self.folder)?;
        }
        if self.folder.is_file() {
            let (file, word) = (self.folder.display(), typed(&self.folder));
            return Err(Exit::usage(format!("{file} is no folder; `pickfs report {word}` shows one run")));
        }
        let all = journals::newest_first(&self.folder)?;
        let shown = all
            .iter()
            .take(self.most)
            .enumerate()
            .map(|(at, journal)| Run::of(format!("{}@{}", self.prefix(), at + 1), journal));
        if self.json {
            let runs: Vec<Value> = shown.map(|run| run.json()).collect();
            println!("{}", serde_json::to_string_pretty(&runs)?);
            return Ok(0);
        }
        if all.is_empty() {
            println!("no journals in {}; `pickfs run` makes one", self.folder.display());
        }
        let width = super::report::width();
        shown.for_each(|run| run.print(width));
        if all.len() > self.most {
            let folder = if self.is_usual() { String::new() } else { typed(&self.folder) + " " };
            println!("and {} older: pickfs history {folder}-n {}", all.len() - self.most, all.len());
        }
        Ok(0)
    }
}

impl Arguments {
    fn is_usual(&self) -> bool {
        self.folder == Path::new(journals::FOLDER)
    }

    /// What other verbs take before `@2`.
    fn prefix(&self) -> String {
        if self.is_usual() { String::new() } else { self.folder.display().to_string() }
    }
}

/// One journal, as far as it can be read.
struct Run {
    /// As other verbs take it.
    name: String,
    journal: PathBuf,
    started: String,
    setting: String,
    answer: String,
    /// See [`Folded::has_results`]; also true of what cannot be read, which says why.
    has_results: bool,
}

impl Run {
    fn of(name: String, journal: &Path) -> Run {
        let folded = fold_file(journal);
        let has_results = folded.as_ref().map_or(true, Folded::has_results);
        let model = folded.and_then(|folded| analysis::model(&folded));
        let (started, setting, answer) = match model {
            Ok(model) => {
                (model.started.clone(), model.setting(), model.headlines().into_iter().next().unwrap_or_default())
            }
            Err(error) => (String::new(), String::new(), format!("cannot be read: {error:#}")),
        };
        Run { name, journal: journal.to_path_buf(), started, setting, answer, has_results }
    }

    fn print(&self, width: usize) {
        let minute = self.started.get(..16).unwrap_or_default().replace('T', " ");
        if !self.has_results {
            println!("{}  {minute}  no result: {}", self.name, self.journal.display());
            return;
        }
        println!("{}", lines(&format!("{}  {minute}  {}", self.name, self.setting), width - 4).join("\n    "));
        println!("    {}", wrapped("    ", &self.answer, width).trim_start());
        println!("    {}", self.journal.display());
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "journal": self.journal.display().to_string(),
            "started": self.started,
            "setting": self.setting,
            "answer": self.answer,
        })
    }
}
