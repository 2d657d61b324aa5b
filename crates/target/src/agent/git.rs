//! Ageing as a developer's day does it: a clone, and pull after pull (Conway et al.: File Systems
//! Fated for Senescence? Nonsense, Says Science!, FAST 2017).
//!
//! The history is made once per run, in memory, and served over `file://`, so that each pull brings
//! a pack and unpacks it as from a server. git's own tidying up is off: it would start in the
//! background whenever it likes.

use crate::stack::{Argv, argv};
use crate::stage::BuiltStack;
use crate::steps::StepRunner;
use anyhow::{Context, Result};
use pickfs_core::plan::{Ageing, Plan, Target};
use pickfs_system::need::Need;
use pickfs_system::process::{self, Mark};
use pickfs_system::process::{Deadline, check_stop};
use pickfs_trees::history::{self, branch};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Number of pulls after which they are made durable, as a kernel would have done by then.
const PULLS_PER_SYNC: u32 = 10;

/// Nothing for a target that no git ages.
pub(crate) fn needs(target: &Target) -> Vec<Need> {
    let pulls = Ageing::of(target).map_or(0, |ageing| ageing.pulls);
    if pulls == 0 { Vec::new() } else { vec![Need::Program { name: "git", package: "git" }] }
}

/// Makes the history that the plan's targets need, if any does.
pub(crate) fn prepare(plan: &Plan, runner: &StepRunner) -> Result<()> {
    let pulls = plan.targets.iter().filter_map(Ageing::of).map(|ageing| ageing.pulls).max().unwrap_or(0);
    if pulls == 0 || pickfs_system::need::find_program("git").is_none() {
        return Ok(()); // without git the cells are skipped, with that reason
    }
    make_history(&history_of(runner), pulls, plan.seed, &runner.marks()).context("cannot make a git history in memory")
}

fn history_of(runner: &StepRunner) -> PathBuf {
    runner.place.memory.join("history.git")
}

fn make_history(history: &Path, pulls: u32, seed: u64, marks: &[Mark]) -> Result<()> {
    let path = history.display().to_string();
    run(&argv(["git", "init", "--quiet", "--bare", "--template=", &path]), marks)?;
    let words = argv(["git", "-C", &path, "fast-import", "--quiet", "--done"]);
    let mut import = git(&words, marks)?;
    let mut child = import.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let stream = child.stdin.take().context("git takes no input")?;
    let written = history::write(pulls, seed, &mut BufWriter::new(stream));
    let output = child.wait_with_output()?;
    // What git says is the better cause: that its input broke off is only what follows.
    anyhow::ensure!(output.status.success(), "`{}`: {}", words.join(" "), process::last_words(&output.stderr));
    Ok(written?)
}

/// Clones the first commit and pulls the others one by one.
pub(crate) fn clone_and_pull(
    to: &Path,
    pulls: u32,
    stack: &BuiltStack,
    runner: &StepRunner,
    deadline: &Deadline,
) -> Result<()> {
    let from = format!("file://{}", history_of(runner).display());
    let (to, marks) = (to.display().to_string(), runner.marks());
    let clone = ["git", "clone", "--quiet", "--template=", "--no-tags", "--single-branch", "--branch"];
    let clone = argv(clone.into_iter().chain([branch(0).as_str(), &from, &to]));
    run(&clone, &marks).context("ageing: the clone")?;
    for pull in 1..=pulls {
        check_stop()?;
        deadline.check()?;
        let words = ["git", "-C", &to, "pull", "--quiet", "--ff-only", "--no-tags", "origin", &branch(pull)];
        run(&argv(words), &marks).with_context(|| format!("ageing: pull {pull} of {pulls}"))?;
        if pull % PULLS_PER_SYNC == 0 {
            stack.make_durable(runner)?;
        }
    }
    Ok(())
}

fn run(words: &Argv, marks: &[Mark]) -> Result<()> {
    process::output_of(git(words, marks)?, words).map(drop)
}

/// Without any user's configuration, so that git works alike for all users.
fn git(words: &Argv, marks: &[Mark]) -> Result<Command> {
    let mut command = process::command(words, marks)?;
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    let settings = [("gc.auto", "0"), ("maintenance.auto", "false"), ("core.autocrlf", "false")];
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (name, value)) in settings.into_iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), name).env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_can_be_imported_and_is_the_same_each_time() {
        if pickfs_system::need::find_program("git").is_none() {
            return pickfs_test_support::not_run("there is no git");
        }
        let folder = tempfile::tempdir().unwrap();
        let head = |name: &str, pulls| {
            let path = folder.path().join(name);
            make_history(&path, pulls, 5, &[]).unwrap();
            let words = argv(["git", "-C", &path.display().to_string(), "rev-parse", &branch(2)]);
            process::output_of(git(&words, &[]).unwrap(), &words).unwrap()
        };
        assert_eq!(head("one", 2), head("two", 4));
    }
}
