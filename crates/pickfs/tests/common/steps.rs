//! Steps as the dry run prints them, and steps that were taken, under the same names.

use pickfs_core::journal::{Scope, StepTaken};
use std::collections::BTreeMap;

/// Steps as lines, by the section of the dry run: a target, [`RUN`] or [`GUEST`].
pub type Steps = BTreeMap<String, Vec<String>>;

pub const RUN: &str = "before the first cell";
pub const GUEST: &str = "in each guest, before its cell";

pub fn printed(plan: &str) -> Steps {
    let (mut steps, mut section) = (Steps::new(), String::new());
    for line in plan.lines().take_while(|line| !line.starts_with("work ")) {
        match line.strip_prefix("  ") {
            Some(step) if !section.is_empty() => steps.entry(section.clone()).or_default().push(step.into()),
            _ => {
                let known = [RUN, GUEST].into_iter().find(|name| *name == line);
                section = line.strip_prefix("target ").or(known).unwrap_or("").into();
            }
        }
    }
    steps
}

/// A step as a line, with the names of the dry run for run, cell and loop devices. `loops` are the
/// known ones.
pub fn plain_line(step: &StepTaken, run: &str, loops: &mut Vec<String>) -> String {
    let line = format!("{}: {}", step.says, step.does);
    let line = with_slots(&line, loops).replace(run, "RUN");
    if step.scope == Scope::Run { line } else { line.replace(&*step.scope, "CELL") }
}

/// Loop devices become `DEVICE`, `DEVICE2` ... in the order in which they come.
fn with_slots(line: &str, known: &mut Vec<String>) -> String {
    let mut parts = line.split("/dev/loop");
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        let at = known.iter().position(|one| one == number).unwrap_or_else(|| {
            known.push(number.into());
            known.len() - 1
        });
        text.push_str(&if at == 0 { "DEVICE".to_string() } else { format!("DEVICE{}", at + 1) });
        text.push_str(rest);
    }
    text
}
