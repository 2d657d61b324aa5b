//! `pickfs choices`: many runs, on disks, hosts or kernels, as one table of what to pick.

use super::journals::{self, Between};
use super::{Exit, Outcome, Verb, compare, query, report as reporting, tuned};
use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use pickfs_core::journal::fold_file;
use pickfs_host::analysis;
use pickfs_host::render::{self, Document, Kind};
use pickfs_host::store::{Filter, Store};
use pickfs_host::wording::between_runs::differences;
use pickfs_host::wording::machines::{self, MachinesReport, machine_name};
use pickfs_host::wording::ranking::{Choice, ranking};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Put many runs into one table: for each disk and work the best, second, third and worst
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Journals of runs, stores, folders with journals, or folders of tunings
    #[arg(required = true)]
    journals: Vec<PathBuf>,
    /// Take runs of one plan together, and say what holds on all their machines
    #[arg(long, value_name = "WHAT")]
    between: Option<Between>,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(render::names_of_any(&[Kind::Ranking, Kind::Tunings])))]
    format: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs choices nvme.jsonl hdd.jsonl", "best, 2nd and worst for each disk and work"],
        ["pickfs choices *.jsonl --format markdown", "the same as a table to paste"],
        ["pickfs choices /srv/runs", "of all runs in a store (`pickfs push` fills one)"],
        ["pickfs choices tuned-nvme tuned-hdd", "which option matters where, of folders of `pickfs tune`"],
        ["pickfs choices m1.jsonl m2.jsonl m3.jsonl --between machines", "what holds on all three"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let (choices, works, tunings);
        let document = match self.between {
            None if self.journals.iter().any(|word| tuned::is_tuning(word)) => {
                let of = |word: &PathBuf| {
                    let none = || format!("{} has no tuning, and the others have one", word.display());
                    tuned::of_folder(word)?.with_context(none)
                };
                tunings = self.journals.iter().map(of).collect::<Result<Vec<_>>>()?;
                Document::Tunings(&tunings)
            }
            None => {
                choices = self.journals.iter().map(|word| of_word(word)).collect::<Result<Vec<_>>>()?.concat();
                Document::Ranking(&choices)
            }
            Some(Between::Machines) => {
                works = between_machines(&journals::all(&self.journals)?)?;
                Document::Machines(&works)
            }
        };
        reporting::show(&self.format, document, self.output.as_deref()).map(|()| 0)
    }
}

/// As text, behind the verdicts of these runs.
pub(crate) fn print(journals: &[PathBuf]) -> Result<()> {
    let models = journals.iter().map(|journal| model(journal)).collect::<Result<Vec<_>>>()?;
    reporting::show("text", Document::Ranking(&ranking(&models)), None)
}

/// The same as text, behind the reports of these runs.
pub(crate) fn print_between_machines(journals: &[PathBuf]) -> Result<()> {
    let works = between_machines(journals)?;
    reporting::show("text", Document::Machines(&works), None)
}

/// What holds on all machines that one plan ran on.
pub(crate) fn between_machines(journals: &[PathBuf]) -> Result<Vec<MachinesReport>> {
    let folded = journals.iter().map(|journal| fold_file(journal)).collect::<Result<Vec<_>>>()?;
    let runs = folded.iter().zip(journals).map(|(folded, journal)| compare::with_run(folded, journal));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    if let Some((first, others)) = runs.split_first() {
        for (other, journal) in others.iter().zip(&journals[1..]) {
            compare::refuse(&differences(*other, *first), journal)?;
        }
    }
    let models = folded.iter().zip(journals).map(|(folded, journal)| {
        analysis::model(folded).with_context(|| format!("cannot judge {}", journal.display()))
    });
    let models = models.collect::<Result<Vec<_>>>()?;
    let machines: BTreeSet<String> = models.iter().map(machine_name).collect();
    if let ([only], 2..) = (machines.iter().collect::<Vec<_>>().as_slice(), journals.len()) {
        let remedy = "`pickfs compare` compares runs of one machine";
        return Err(Exit::usage(format!("all these runs are of one machine, {only}; {remedy}")));
    }
    Ok(machines::between_machines(&models))
}

/// Choices of a store, from its index, which is fast; those of journals, by reading them.
fn of_word(word: &Path) -> Result<Vec<Choice>> {
    if let Some(database) = query::database(word)? {
        return Ok(database.find_works(&Filter::default())?.into_iter().map(|found| found.choice).collect());
    }
    if Store::is_one(word) {
        let found = Store::open(word)?.find_works(&Filter::default())?;
        return Ok(found.into_iter().map(|found| found.choice).collect());
    }
    let models = journals::of_word(word)?.iter().map(|journal| model(journal)).collect::<Result<Vec<_>>>()?;
    Ok(ranking(&models))
}

fn model(journal: &Path) -> Result<analysis::Model> {
    analysis::model(&fold_file(journal)?).with_context(|| format!("cannot judge {}", journal.display()))
}
