//! `pickfs compare`: what has changed between two runs of the same targets, and an exit code for whoever waits for it.

use super::{Exit, INCONCLUSIVE, Outcome, REGRESSION, Verb, report as reporting, there};
use crate::analysis::Gate;
use crate::journal::{Folded, Run, fold_file};
use crate::render::{self, Document, Kind};
use crate::units::parse_share;
use crate::wording::between_runs::{self, RunComparison};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use std::path::{Path, PathBuf};

/// Compare two runs of the same targets: another kernel, tool, machine or day
///
/// Exit code 3: something is slower by clearly more than the threshold; 4: that is not excluded; 2: not comparable.
#[derive(clap::Args)]
pub struct Arguments {
    /// Journal of the run before
    old: PathBuf,
    /// Journal of the run now
    new: PathBuf,
    /// The smallest slowdown that matters
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = above_nothing)]
    threshold: f64,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = PossibleValuesParser::new(render::names(Kind::Comparison)))]
    format: String,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn above_nothing(text: &str) -> Result<f64, String> {
    let share = parse_share(text).and_then(|share| if share > 0.0 { Ok(share) } else { Err("not above 0".into()) });
    share.map_err(|why| format!("{why}; give one like --threshold 5%"))
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs compare before.jsonl after.jsonl", "what became slower or faster; exit code 3 if slower"],
        ["pickfs compare before.jsonl after.jsonl --threshold 10%", "only changes above 10 % count"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        let (old, new) = (fold_file(there(&self.old)?)?, fold_file(there(&self.new)?)?);
        let (old, new) = (with_run(&old, &self.old)?, with_run(&new, &self.new)?);
        let differences = between_runs::differences(old, new);
        if !differences.is_empty() {
            let shown: String = differences.iter().map(|line| format!("  {line}\n")).collect();
            let remedy = "run the old plan again (`pickfs run PLAN`), or compare runs of one plan";
            return Err(Exit::usage(format!("these runs cannot be compared:\n{shown}{remedy}")));
        }
        let runs = between_runs::comparison(old, new, self.threshold);
        print(&runs, self)?;
        Ok(match runs.gate {
            Gate::Fine => 0,
            Gate::Regression => REGRESSION,
            Gate::Inconclusive => INCONCLUSIVE,
        })
    }
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
    let text = render::written(&arguments.format, Document::Comparison(runs), &reporting::options())?;
    reporting::deliver(&text, arguments.output.as_deref())
}
