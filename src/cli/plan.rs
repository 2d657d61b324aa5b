//! `pickfs plan`: what a run would do, without doing it.

use super::{Outcome, confirm, wanted};
use crate::plan::{Plan, expand};
use crate::stack::{Action, Place, Step, backing, fs};
use crate::units::show_duration;
use crate::{need, workload};
use std::fmt::Write;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    wanted: wanted::Wanted,
    /// Print the plan file that the options stand for, and nothing else
    #[arg(long, conflicts_with = "plan")]
    toml: bool,
}

pub fn main(arguments: &Arguments) -> Outcome {
    if arguments.toml {
        return Ok(match wanted::toml(&arguments.wanted)? {
            Ok(text) => {
                print!("{text}");
                0
            }
            Err(code) => code,
        });
    }
    match wanted::plan(&arguments.wanted)? {
        Ok(plan) => {
            anstream::print!("{}", describe(&plan));
            Ok(0)
        }
        Err(code) => Ok(code),
    }
}

/// The dry run, in words.
fn describe(plan: &Plan) -> String {
    let cells = expand(plan);
    let mut text = String::new();
    let (targets, works, rounds) = (plan.targets.len(), plan.works.len(), plan.stop.most_rounds());
    let _ = writeln!(text, "{}\n", plan.title);
    let _ = writeln!(
        text,
        "{} cells: {targets} targets x {works} works x {rounds} rounds, seed {}",
        cells.len(),
        plan.seed
    );
    let limit = show_duration(plan.stop.cell_ns as f64 * cells.len() as f64);
    let budget = plan
        .stop
        .budget_ns
        .map_or("no budget".to_string(), |ns| format!("no new round after {}", show_duration(ns as f64)));
    let _ = writeln!(text, "time: at most {limit} by the limit of each cell; {budget}\n");
    describe_targets(plan, &mut text);
    describe_works(plan, &mut text);
    describe_destruction(plan, &mut text);
    let _ = writeln!(text, "order:");
    for round in cells.chunks(targets * works) {
        let names: Vec<String> =
            round.iter().map(|cell| format!("{} / {}", cell.target.name, cell.work.name)).collect();
        let _ = writeln!(text, "  round {}: {}", round[0].round, names.join(", "));
    }
    text
}

fn describe_targets(plan: &Plan, text: &mut String) {
    for target in &plan.targets {
        let kind = if target.duplicate { " (hidden duplicate, for the noise floor)" } else { "" };
        let _ = writeln!(text, "target {}{kind}", target.name);
        let place = Place::of_run("RUN");
        let mut steps: Vec<Step> = Vec::new();
        let mut needs = Vec::new();
        if let Some(backing) = backing::find(&target.backing.name) {
            steps.extend(backing.prepare(&target.backing.settings, &place));
            steps.extend(backing.steps(&target.backing.settings, &place));
            needs.extend(backing.needs());
        }
        if let Some(driver) = target.fs.as_deref().and_then(fs::find) {
            let mount_point = place.mount_point();
            let wish = fs::Wish::new(driver, target, std::path::Path::new("DEVICE"), &mount_point);
            steps.extend(driver.before(&wish));
            steps.push(Step::new("make it", Action::Run(driver.mkfs(&wish))));
            steps.push(Step::new("mount it", Action::Run(driver.mount(&wish))));
            needs.extend(driver.needs());
        }
        for step in steps {
            let _ = writeln!(text, "  {}: {}", step.says, shown(&step.action));
        }
        for missing in need::missing(&needs) {
            let _ = writeln!(text, "  will be skipped: {missing}");
        }
    }
}

fn shown(action: &Action) -> String {
    match action {
        Action::Run(argv) | Action::RunForDevice(argv) | Action::Daemon { argv, .. } => argv.join(" "),
        Action::UseDevice(path) | Action::UseDirectory(path) | Action::MakeDirectory(path) => {
            path.display().to_string()
        }
        Action::MakeImage { path, bytes } => {
            format!("{} ({})", path.display(), crate::units::show_bytes(*bytes as f64))
        }
        Action::Set { path, value } => format!("{value} to {}", path.display()),
    }
}

fn describe_works(plan: &Plan, text: &mut String) {
    for work in &plan.works {
        let _ = writeln!(text, "\nwork {} ({})", work.name, work.workload.name);
        let phases = workload::find(&work.workload.name).map(|workload| workload.phases()).unwrap_or_default();
        for phase in phases {
            let _ = writeln!(text, "  phase {}: {}", phase.name, phase.about);
        }
    }
}

fn describe_destruction(plan: &Plan, text: &mut String) {
    let devices = confirm::devices(plan);
    if devices.is_empty() {
        let _ = writeln!(text, "\nnothing is erased: only files and folders of the run's own are made, and removed\n");
    }
    for device in devices {
        let _ = writeln!(text, "\nWILL BE ERASED: {}\n", device.display());
    }
}
