//! A program to run: its words, and where they differ from the usual, its folder, environment and
//! user.

use crate::stack::{Argv, argv};
use anyhow::{Context, Result};
use pickfs_system::process::{Mark, command};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(super) argv: Argv,
    folder: Option<PathBuf>,
    environment: Vec<(String, String)>,
    /// User and group.
    user: Option<(u32, u32)>,
    /// Exit codes that are no failure; 0 alone where there is none.
    accepted: Vec<i32>,
    /// A file that it reads as its input, and one that its output makes.
    input: Option<PathBuf>,
    output: Option<PathBuf>,
}

impl Program {
    pub(crate) fn new<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Program {
        Program { argv: argv(words), ..Program::default() }
    }

    /// The folder that it starts in; by default pickfs's own.
    pub(crate) fn in_folder(mut self, folder: impl Into<PathBuf>) -> Program {
        self.folder = Some(folder.into());
        self
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Program {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// As another user and group, without any other groups; only root may.
    pub(crate) fn for_user(mut self, user: u32, group: u32) -> Program {
        self.user = Some((user, group));
        self
    }

    /// It may end with these exit codes, inside a phase.
    pub(crate) fn may_end_with(mut self, codes: impl IntoIterator<Item = i32>) -> Program {
        self.accepted = codes.into_iter().collect();
        self
    }

    /// The file is its input; without one there is none.
    pub(crate) fn reading(mut self, file: impl Into<PathBuf>) -> Program {
        self.input = Some(file.into());
        self
    }

    /// Its output makes the file. Only outside of phases: a phase has its own uses for what is
    /// printed.
    pub(crate) fn making(mut self, file: impl Into<PathBuf>) -> Program {
        self.output = Some(file.into());
        self
    }

    pub(super) fn accepts(&self, status: ExitStatus) -> bool {
        let listed = |code: i32| self.accepted.contains(&code);
        if self.accepted.is_empty() { status.success() } else { status.code().is_some_and(listed) }
    }

    /// As a shell would show it, without quotes.
    pub(crate) fn shown(&self) -> String {
        self.argv.join(" ")
    }

    pub(super) fn command(&self, marks: &[Mark]) -> Result<Command> {
        use std::os::unix::process::CommandExt;
        let mut command = command(&self.argv, marks)?;
        self.folder.iter().for_each(|folder| {
            command.current_dir(folder);
        });
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        if let Some(file) = &self.input {
            command.stdin(File::open(file).with_context(|| format!("cannot read {}", file.display()))?);
        }
        if let Some(file) = &self.output {
            command.stdout(File::create(file).with_context(|| format!("cannot make {}", file.display()))?);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }
}
