//! `pickfs init`: five questions, and a commented plan that answers to them.

use super::{Exit, Outcome, Verb, forewarn, plan_source};
use anyhow::{Context, Result};
use pickfs_core::journal::typed;
use pickfs_core::plan::{PlanArgs, PlanFlags};
use pickfs_host::run::tell;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

/// Ask five questions and write a commented plan
///
/// Questions that options answer are not asked. Answers may come from a pipe, one a line; an empty
/// line takes the default.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The plan to write
    #[arg(default_value = "plan.toml")]
    file: PathBuf,
    /// File systems to compare, such as ext4,xfs,btrfs:zstd:1
    #[arg(long)]
    fs: Option<String>,
    /// Where: a folder for the image, or "memory"
    #[arg(long, value_name = "DIR")]
    on: Option<String>,
    /// The work: a folder with your files, a job file of fio's such as my.fio, or a workload
    /// (`pickfs list workloads`)
    #[arg(long)]
    work: Option<String>,
    /// The longest time that it may take, such as 30min
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,
    /// Features that the pick must have, such as snapshots,checksums
    #[arg(long, value_name = "FEATURE")]
    require: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// Comments of the written plan, above the first line that begins like this.
const COMMENTS: [(&str, &str); 8] = [
    ("executor", "# How the machine that does the work is reached: `pickfs list executors`."),
    ("[backing", "# Where the file systems are made. An image is a file on your disk; it is removed after each cell."),
    (
        "[[target]]",
        "# What is compared: `pickfs list fs`. The first is the reference. Options: mkfs = [...], mount = [...].",
    ),
    (
        "[[work]]",
        "# What is measured: `pickfs list workloads`. With several [[work]] there is a verdict over all of them.",
    ),
    (
        "[stop]",
        "# A run ends with a decision, or when the budget is used up. Differences below 3 % do not matter by default.",
    ),
    (
        "[verdict]",
        "# A file system that lacks one of these features is measured and not picked: `pickfs list features`.",
    ),
    ("source", "# Your files are copied to each file system. Without it, a tree is generated."),
    ("budget", "# More time gives narrower intervals."),
];

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs init", "five questions, then plan.toml"],
        ["pickfs init mine.toml --fs ext4,xfs --work ~/src", "two of them answered"],
        ["yes '' | pickfs init --force", "the defaults, without questions"],
    ];

    fn run(&self) -> Outcome {
        if self.file.exists() && !self.force {
            return Err(Exit::usage(format!("{} exists; name another file, or add --force", self.file.display())));
        }
        // What is wrong is said before the first question.
        if let Some(folder) = self.file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
            return Err(Exit::usage(format!("there is no folder {}; make it first", folder.display())));
        }
        let mut answers = self.given();
        plan_source::checked(as_flags(&answers))?;
        let may_try_again = std::io::stdin().is_terminal();
        self.ask(&mut answers, &mut std::io::stdin().lock(), may_try_again)?;
        let arguments = as_flags(&answers);
        let (plan, text) = plan_source::from_flags(&arguments)?;
        let (shown, word) = (self.file.display(), typed(&self.file));
        std::fs::write(&self.file, commented(&text)).with_context(|| format!("cannot write {shown}"))?;
        forewarn::warnings(&plan).iter().for_each(|warning| tell(&format!("note: {warning}")));
        tell(&format!(
            "{shown} is written. Next:\n  pickfs plan {word}    shows what it will do\n  sudo pickfs run {word}"
        ));
        Ok(0)
    }
}

/// File systems, place, work, time and features.
type Answers = [String; 5];

/// Each with its default.
const QUESTIONS: [(&str, &str); 5] = [
    ("Which file systems? `pickfs list fs` shows all", "ext4,xfs,btrfs"),
    ("Where? A folder on the disk to measure, or `memory` for the software cost alone", "."),
    ("Which work? A folder with your files, a job file such as my.fio, or one of `pickfs list workloads`", "tree"),
    ("How long may it take?", "30min"),
    ("Required features, such as snapshots; Enter for none", "none"),
];

impl Arguments {
    fn options(&self) -> [&Option<String>; 5] {
        [&self.fs, &self.on, &self.work, &self.budget, &self.require]
    }

    /// All that no option says has its default.
    fn given(&self) -> Answers {
        std::array::from_fn(|at| self.options()[at].clone().unwrap_or_else(|| QUESTIONS[at].1.to_string()))
    }

    /// Asks for what no option gives. A wrong answer is asked for again if `may_try_again`.
    fn ask(&self, answers: &mut Answers, input: &mut dyn BufRead, may_try_again: bool) -> Result<()> {
        for (at, (question, default)) in QUESTIONS.iter().enumerate() {
            while self.options()[at].is_none() {
                let mut tried = answers.clone();
                let (text, is_typed) = answer(input, question, default)?;
                tried[at] = text;
                match plan_source::checked(as_flags(&tried)) {
                    Ok(_) => {
                        *answers = tried;
                        break;
                    }
                    Err(error) if may_try_again && is_typed => tell(error.to_string().trim_end()),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

fn as_flags([fs, on, work, budget, require]: &Answers) -> PlanArgs {
    let list = |text: &str| -> Vec<String> {
        text.split(',').map(|one| one.trim().to_string()).filter(|one| !one.is_empty()).collect()
    };
    let is_job = work.ends_with(".fio");
    let is_folder = !is_job && (work.contains('/') || work == "." || work == "..");
    // `--work` stands for several options of `pickfs run`.
    let mut flags = PlanFlags::with_alias(&["workload", "source", "job"], "work");
    flags.set("fs", list(fs));
    match on.as_str() {
        "memory" => flags.set("memory", [""; 0]),
        folder => flags.set("on", [home(folder)]),
    }
    match (is_folder, is_job) {
        (true, _) => flags.set("source", [home(work)]),
        (_, true) => flags.set("job", [home(work)]),
        _ => flags.set("workload", [work]),
    }
    flags.set("budget", [budget]);
    if require != "none" {
        flags.set("require", list(require));
    }
    PlanArgs { flags, ..PlanArgs::default() }
}

/// As a shell would have read it.
fn home(path: &str) -> String {
    let below = path.strip_prefix('~').filter(|below| below.is_empty() || below.starts_with('/'));
    let home = below.and_then(|below| Some(format!("{}{below}", std::env::var("HOME").ok()?)));
    home.unwrap_or_else(|| path.into())
}

/// And whether it was typed: the end of the input takes the default, as an empty line does.
fn answer(input: &mut dyn BufRead, question: &str, default: &str) -> Result<(String, bool)> {
    eprint!("{question} [{default}]: ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    let is_end = input.read_line(&mut line).context("cannot read the answer")? == 0;
    if is_end {
        eprintln!();
    }
    let line = line.trim();
    Ok((if line.is_empty() { default.to_string() } else { line.to_string() }, !is_end))
}

/// A comment above the first line of each kind.
fn commented(plan: &str) -> String {
    let mut text =
        "# Made by `pickfs init`. `pickfs help plans` explains the format; `pickfs plan FILE` checks it.\n\n"
            .to_string();
    let mut left = COMMENTS.to_vec();
    for line in plan.lines() {
        if let Some(at) = left.iter().position(|(begin, _)| line.starts_with(begin)) {
            text.push_str(left.remove(at).1);
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_stand_once_above_their_lines() {
        let text = commented("[[target]]\nfs = \"a\"\n\n[[target]]\nfs = \"b\"\n");
        assert_eq!(text.matches("# What is compared").count(), 1);
        assert!(text.contains("mount = [...].\n[[target]]\nfs = \"a\""), "{text}");
    }

    /// A wrong answer from a pipe is an error: no other one can be given.
    #[test]
    fn each_answer_is_checked_at_once() {
        let none = || Arguments {
            file: "x".into(),
            fs: None,
            on: Some("memory".into()),
            work: None,
            budget: None,
            require: None,
            force: false,
        };
        let typed = "ext4,btfs\next4,btrfs:zstd:1\n\ntea\n5min\nsnapshots\n";
        let mut answers = none().given();
        none().ask(&mut answers, &mut typed.as_bytes(), true).unwrap();
        assert_eq!(answers, ["ext4,btrfs:zstd:1", "memory", "tree", "5min", "snapshots"]);
        let piped = none().ask(&mut none().given(), &mut typed.as_bytes(), false).unwrap_err().to_string();
        assert!(piped.contains("no file system `btfs`") && !piped.contains("tea"), "{piped}");
    }

    #[test]
    fn an_empty_line_and_the_end_take_the_default() {
        let mut input = "\n xfs \n".as_bytes();
        let mut next = || answer(&mut input, "?", "ext4").unwrap().0;
        assert_eq!([next(), next(), next()], ["ext4", "xfs", "ext4"]);
    }
}
