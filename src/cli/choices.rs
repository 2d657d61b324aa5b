//! `pickfs choices`: many runs, on disks, hosts or kernels, as one table of what to pick.

use super::{Outcome, report as reporting};
use crate::analysis;
use crate::journal::fold_file;
use crate::render::{self, CHOICE_FORMATS};
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
    render::write_choices(&render::choices(&models), &arguments.format, reporting::width(), &mut text)?;
    reporting::deliver(&text, arguments.output.as_deref()).map(|()| 0)
}

fn model(journal: &Path) -> Result<analysis::Model> {
    analysis::model(&fold_file(journal)?).with_context(|| format!("cannot judge {}", journal.display()))
}
