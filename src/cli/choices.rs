//! `pickfs choices`: many runs, on disks, hosts or kernels, as one table of what to pick.

use super::{Outcome, Verb, journals, report as reporting};
use crate::analysis;
use crate::journal::fold_file;
use crate::render::{self, Document, Kind};
use crate::wording::ranking::ranking;
use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use std::path::{Path, PathBuf};

/// Put many runs into one table: for each disk and work the best, second, third and worst
#[derive(clap::Args)]
pub struct Arguments {
    /// Journals of runs
    #[arg(required = true)]
    journals: Vec<PathBuf>,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(render::names(Kind::Ranking)))]
    format: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs choices nvme.jsonl hdd.jsonl", "best, 2nd and worst for each disk and work"],
        ["pickfs choices *.jsonl --format markdown", "the same as a table to paste"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let models = self.journals.iter().map(|journal| model(journal)).collect::<Result<Vec<_>>>()?;
        let document = Document::Ranking(&ranking(&models));
        let text = render::written(&self.format, document, &reporting::options())?;
        reporting::deliver(&text, self.output.as_deref()).map(|()| 0)
    }
}

/// As text, behind the verdicts of these runs.
pub fn print(journals: &[PathBuf]) -> Result<()> {
    let models = journals.iter().map(|journal| model(journal)).collect::<Result<Vec<_>>>()?;
    let text = render::written("text", Document::Ranking(&ranking(&models)), &reporting::options())?;
    reporting::deliver(&text, None)
}

fn model(journal: &Path) -> Result<analysis::Model> {
    analysis::model(&fold_file(&journals::named(journal)?)?)
        .with_context(|| format!("cannot judge {}", journal.display()))
}
