//! `pickfs compare`: what has changed between two runs of the same targets, and an exit code for whoever waits for it.

use super::{INCONCLUSIVE, Outcome, REGRESSION, USAGE, report as reporting};
use crate::analysis::Gate;
use crate::journal::{Folded, Run, fold_file};
use crate::render::{self, Document, Kind, Options};
use crate::run::tell;
use crate::units::parse_share;
use crate::wording::between_runs::{self, RunComparison};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use std::path::{Path, PathBuf};

/// Exit code 3: something is slower by clearly more than the threshold; 4: that is not excluded; 2: not comparable.
#[derive(clap::Args)]
pub struct Arguments {
    /// Journal of the run before
    old: PathBuf,
    /// Journal of the run now
    new: PathBuf,
    /// The smallest slowdown that matters
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    threshold: String,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(render::names(Kind::Comparison)))]
    format: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn main(arguments: &Arguments) -> Outcome {
    let threshold = match parse_share(&arguments.threshold) {
        Ok(share) if share > 0.0 => share,
        wrong => {
            let why = wrong.err().unwrap_or("the threshold is not above 0".to_string());
            tell(&format!("{why}; give one like --threshold 5%"));
            return Ok(USAGE);
        }
    };
    let (old, new) = (fold_file(&arguments.old)?, fold_file(&arguments.new)?);
    let (old, new) = (with_run(&old, &arguments.old)?, with_run(&new, &arguments.new)?);
    let differences = between_runs::differences(old, new);
    if !differences.is_empty() {
        tell("these runs cannot be compared:");
        for found in differences {
            tell(&format!("  {}: {} in the old run, {} in the new one", found.field, found.old, found.new));
        }
        tell("run the old plan again (`pickfs run PLAN`), or compare runs of one plan");
        return Ok(USAGE);
    }
    let runs = between_runs::comparison(old, new, threshold);
    print(&runs, arguments)?;
    Ok(match runs.gate {
        Gate::Fine => 0,
        Gate::Regression => REGRESSION,
        Gate::Inconclusive => INCONCLUSIVE,
    })
}

fn with_run<'a>(folded: &'a Folded, journal: &Path) -> Result<(&'a Run, &'a Folded)> {
    let shown = journal.display();
    let run = folded.run.as_ref().with_context(|| format!("{shown} is no journal: it has no `run` record"))?;
    if let Some(absurdity) = run.plan.absurd_measure() {
        bail!("the plan of {shown} has {absurdity}, which no plan can have; the journal is damaged or not a journal");
    }
    Ok((run, folded))
}

fn print(runs: &RunComparison, arguments: &Arguments) -> Result<()> {
    let text = render::written(&arguments.format, Document::Comparison(runs), &Options { width: reporting::width() })?;
    reporting::deliver(&text, arguments.output.as_deref())
}
