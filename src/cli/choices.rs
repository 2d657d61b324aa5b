//! `pickfs choices`: many runs, on disks, hosts or kernels, as one table of what to pick.

use super::{Outcome, report as reporting};
use crate::journal::fold_file;
use crate::report::{self, CHOICE_FORMATS};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// Journals of runs
    #[arg(required = true)]
    journals: Vec<PathBuf>,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = CHOICE_FORMATS)]
    format: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn main(arguments: &Arguments) -> Outcome {
    let models = arguments.journals.iter().map(|journal| model(journal)).collect::<Result<Vec<_>>>()?;
    let mut text = Vec::new();
    report::write_choices(&report::choices(&models), &arguments.format, reporting::width(), &mut text)?;
    reporting::deliver(&text, arguments.output.as_deref()).map(|()| 0)
}

fn model(journal: &Path) -> Result<report::Model> {
    report::model(&fold_file(journal)?).with_context(|| format!("cannot judge {}", journal.display()))
}
